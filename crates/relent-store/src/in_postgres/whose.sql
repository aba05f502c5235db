-- What is there of a store, and what there is of other users that would run as this one. $1: the names of the store's tables and of its
-- sequence; $2: those of its functions; $3: those of Postgres' own functions that these call; $4: a role that is believed, or null.
-- Everything is asked so that nothing in another schema than pg_catalog fits better, since it runs before it is known whose that is. The
-- search path has pg_catalog first: that was asked before.
WITH place (oid, name, owner, rights) AS (
    SELECT n.oid, n.nspname, n.nspowner, n.nspacl FROM pg_catalog.pg_namespace n
        WHERE n.nspname = ANY (pg_catalog.current_schemas(true)) AND n.nspname <> 'pg_catalog'::name
), maker (place, role) AS (
    SELECT p.oid, p.owner FROM place p
    UNION ALL SELECT p.oid, a.grantee FROM place p, pg_catalog.aclexplode(p.rights) a WHERE a.privilege_type = 'CREATE'::text
-- Nobody is believed for what they may do in a schema, nor for its being theirs: that is given to whoever makes one; nor a role because
-- this user is a member of it: until Postgres 16 anybody can make others members of themselves.
), believed (role) AS (
    SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolsuper OR r.rolname = current_user
        OR r.oid = (SELECT d.datdba FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
        -- Its one member is the database's owner.
        OR r.rolname = 'pg_database_owner'::name
        OR r.rolname = $4::name
), kept (oid, name, kind, place, owner) AS (
    SELECT c.oid, c.relname, c.relkind::text, c.relnamespace, c.relowner FROM pg_catalog.pg_class c
        WHERE c.relname = ANY ($1::name[]) AND pg_catalog.pg_table_is_visible(c.oid)
), called (name, place, owner) AS (
    SELECT f.proname, f.pronamespace, f.proowner FROM pg_catalog.pg_proc f
        WHERE (f.proname = ANY ($2::name[]) OR f.proname = ANY ($3::name[])) AND pg_catalog.pg_function_is_visible(f.oid)
), owned (what, name, place, owner) AS (
    SELECT 'table'::text, k.name, k.place, k.owner FROM kept k
    UNION ALL SELECT 'function'::text, c.name, c.place, c.owner FROM called c
    UNION ALL SELECT 'type'::text, t.typname, t.typnamespace, t.typowner FROM pg_catalog.pg_type t
        WHERE t.typname = ANY ($1::name[]) AND pg_catalog.pg_type_is_visible(t.oid)
    UNION ALL SELECT 'operator'::text, o.oprname, o.oprnamespace, o.oprowner FROM pg_catalog.pg_operator o
        WHERE o.oprname = ANY ('{=,<>,<,>,<=,>=,+,-,*,/}'::name[]) AND pg_catalog.pg_operator_is_visible(o.oid)
)
SELECT 'there'::text AS what, k.name::text AS name, k.kind AS kind FROM kept k
UNION ALL SELECT 'nobody'::text, ''::text, ''::text WHERE $4::name IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles r WHERE r.rolname = $4::name)
UNION ALL SELECT 'there'::text, c.name::text, 'f'::text FROM called c WHERE c.name = ANY ($2::name[])
UNION ALL SELECT o.what, o.name::text, ''::text FROM owned o WHERE o.place <> 'pg_catalog'::pg_catalog.regnamespace::oid
    AND NOT EXISTS (SELECT 1 FROM believed b WHERE b.role = o.owner)
-- Triggers, rules, policies, defaults and the like of the tables, by the functions that they call.
UNION ALL SELECT 'part'::text, k.name::text, ''::text FROM kept k
    JOIN pg_catalog.pg_depend part ON part.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::oid AND part.refobjid = k.oid
        AND part.deptype <> 'n'::"char"
    JOIN pg_catalog.pg_depend calls ON calls.classid = part.classid AND calls.objid = part.objid
        AND calls.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass::oid
    JOIN pg_catalog.pg_proc f ON f.oid = calls.refobjid
    WHERE NOT EXISTS (SELECT 1 FROM believed b WHERE b.role = f.proowner)
-- Who may lay a trigger on a table need not own it, and by conditions and arguments the functions of others do what they like. A foreign key
-- that refers to it is one, too, by which rows of theirs are deleted, and triggers run.
UNION ALL SELECT 'trigger'::text, k.name::text, ''::text FROM kept k JOIN pg_catalog.pg_trigger t ON t.tgrelid = k.oid
    WHERE t.tgisinternal OR t.tgqual IS NOT NULL OR t.tgnargs <> 0::smallint
UNION ALL SELECT 'open'::text, p.name::text, ''::text FROM place p JOIN maker m ON m.place = p.oid
    WHERE NOT EXISTS (SELECT 1 FROM believed b WHERE b.role = m.role)
