-- What is there of a store, and what there is of other users that would run as this one. $1: the names of the store's tables and of its
-- sequence; $2: those of its functions; $3: those of Postgres' own functions that these call; $4: a role that is believed, or null.
-- Everything is asked of pg_catalog by name, operators and types, too: nothing in another schema fits better, whatever the search path is, since
-- this runs before it is known whose that is.
WITH place (oid, name, owner, rights) AS (
    SELECT n.oid, n.nspname, n.nspowner, n.nspacl FROM pg_catalog.pg_namespace n
        WHERE n.nspname OPERATOR(pg_catalog.=) ANY (pg_catalog.current_schemas(true)) AND n.nspname OPERATOR(pg_catalog.<>) 'pg_catalog'::pg_catalog.name
), maker (place, role) AS (
    SELECT p.oid, p.owner FROM place p
    UNION ALL SELECT p.oid, a.grantee FROM place p, pg_catalog.aclexplode(p.rights) a WHERE a.privilege_type OPERATOR(pg_catalog.=) 'CREATE'::pg_catalog.text
-- Nobody is believed for what they may do in a schema, nor for its being theirs: that is given to whoever makes one; nor a role because
-- this user is a member of it: until Postgres 16 anybody can make others members of themselves.
), believed (role) AS (
    SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolsuper OR r.rolname OPERATOR(pg_catalog.=) current_user
        OR r.oid OPERATOR(pg_catalog.=) (SELECT d.datdba FROM pg_catalog.pg_database d WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())
        -- Its one member is the database's owner.
        OR r.rolname OPERATOR(pg_catalog.=) 'pg_database_owner'::pg_catalog.name
        OR r.rolname OPERATOR(pg_catalog.=) $4::pg_catalog.name
), kept (oid, name, kind, place, owner) AS (
    SELECT c.oid, c.relname, c.relkind::pg_catalog.text, c.relnamespace, c.relowner FROM pg_catalog.pg_class c
        WHERE c.relname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[]) AND pg_catalog.pg_table_is_visible(c.oid)
), called (name, place, owner) AS (
    SELECT f.proname, f.pronamespace, f.proowner FROM pg_catalog.pg_proc f
        WHERE (f.proname OPERATOR(pg_catalog.=) ANY ($2::pg_catalog.name[]) OR f.proname OPERATOR(pg_catalog.=) ANY ($3::pg_catalog.name[])) AND pg_catalog.pg_function_is_visible(f.oid)
), owned (what, name, place, owner) AS (
    SELECT 'table'::pg_catalog.text, k.name, k.place, k.owner FROM kept k
    UNION ALL SELECT 'function'::pg_catalog.text, c.name, c.place, c.owner FROM called c
    UNION ALL SELECT 'type'::pg_catalog.text, t.typname, t.typnamespace, t.typowner FROM pg_catalog.pg_type t
        WHERE t.typname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[]) AND pg_catalog.pg_type_is_visible(t.oid)
    UNION ALL SELECT 'operator'::pg_catalog.text, o.oprname, o.oprnamespace, o.oprowner FROM pg_catalog.pg_operator o
        WHERE o.oprname OPERATOR(pg_catalog.=) ANY ('{=,<>,<,>,<=,>=,+,-,*,/}'::pg_catalog.name[]) AND pg_catalog.pg_operator_is_visible(o.oid)
)
SELECT 'there'::pg_catalog.text AS what, k.name::pg_catalog.text AS name, k.kind AS kind FROM kept k
UNION ALL SELECT 'nobody'::pg_catalog.text, ''::pg_catalog.text, ''::pg_catalog.text WHERE $4::pg_catalog.name IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles r WHERE r.rolname OPERATOR(pg_catalog.=) $4::pg_catalog.name)
UNION ALL SELECT 'there'::pg_catalog.text, c.name::pg_catalog.text, 'f'::pg_catalog.text FROM called c WHERE c.name OPERATOR(pg_catalog.=) ANY ($2::pg_catalog.name[])
UNION ALL SELECT o.what, o.name::pg_catalog.text, ''::pg_catalog.text FROM owned o WHERE o.place OPERATOR(pg_catalog.<>) 'pg_catalog'::pg_catalog.regnamespace::pg_catalog.oid
    AND NOT EXISTS (SELECT 1 FROM believed b WHERE b.role OPERATOR(pg_catalog.=) o.owner)
-- Triggers, rules, policies, defaults and the like of the tables, by the functions that they call.
UNION ALL SELECT 'part'::pg_catalog.text, k.name::pg_catalog.text, ''::pg_catalog.text FROM kept k
    JOIN pg_catalog.pg_depend part ON part.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND part.refobjid OPERATOR(pg_catalog.=) k.oid
        AND part.deptype OPERATOR(pg_catalog.<>) 'n'::pg_catalog."char"
    JOIN pg_catalog.pg_depend calls ON calls.classid OPERATOR(pg_catalog.=) part.classid AND calls.objid OPERATOR(pg_catalog.=) part.objid
        AND calls.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid
    JOIN pg_catalog.pg_proc f ON f.oid OPERATOR(pg_catalog.=) calls.refobjid
    WHERE NOT EXISTS (SELECT 1 FROM believed b WHERE b.role OPERATOR(pg_catalog.=) f.proowner)
-- Who may lay a trigger on a table need not own it, and by conditions and arguments the functions of others do what they like. A foreign key
-- that refers to it is one, too, by which rows of theirs are deleted, and triggers run.
UNION ALL SELECT 'trigger'::pg_catalog.text, k.name::pg_catalog.text, ''::pg_catalog.text FROM kept k JOIN pg_catalog.pg_trigger t ON t.tgrelid OPERATOR(pg_catalog.=) k.oid
    WHERE t.tgisinternal OR t.tgqual IS NOT NULL OR t.tgnargs OPERATOR(pg_catalog.<>) 0::smallint
UNION ALL SELECT 'open'::pg_catalog.text, p.name::pg_catalog.text, ''::pg_catalog.text FROM place p JOIN maker m ON m.place OPERATOR(pg_catalog.=) p.oid
    WHERE NOT EXISTS (SELECT 1 FROM believed b WHERE b.role OPERATOR(pg_catalog.=) m.role)
