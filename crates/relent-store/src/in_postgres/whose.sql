-- What is there of a store, and what there is of other users that would run as this one. $1: the names of the store's tables and of its
-- sequence; $2: those of its functions; $3: those of Postgres' own functions that these call.
-- Everything is asked so that nothing in another schema than pg_catalog fits better, since it runs before it is known whose that is.
WITH RECURSIVE me (role) AS (
    SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user
    UNION
    -- Also of a superuser only what was given, and nothing that is there to be given on alone (since Postgres 16).
    SELECT m.roleid FROM pg_catalog.pg_auth_members m JOIN me ON m.member = me.role
        WHERE (pg_catalog.to_jsonb(m) OPERATOR(pg_catalog.->>) 'inherit_option'::text) IS DISTINCT FROM 'false'::text
        OR (pg_catalog.to_jsonb(m) OPERATOR(pg_catalog.->>) 'set_option'::text) IS DISTINCT FROM 'false'::text
), place (oid, name, owner, rights) AS (
    SELECT n.oid, n.nspname, n.nspowner, n.nspacl FROM pg_catalog.pg_namespace n
        WHERE n.nspname = ANY (pg_catalog.current_schemas(true)) AND n.nspname <> 'pg_catalog'::name
), maker (place, role) AS (
    SELECT p.oid, a.grantee FROM place p, pg_catalog.aclexplode(p.rights) a
        WHERE a.privilege_type = 'CREATE'::text AND a.grantee <> p.owner
), believed (place, role) AS (
    SELECT p.oid, r.oid FROM place p, pg_catalog.pg_roles r WHERE r.rolsuper OR r.oid IN (SELECT me.role FROM me)
        OR r.oid = (SELECT d.datdba FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
        -- Who may make schemas could make one with this user's name, also for a role that they are a member of; it stands first unless told.
        OR (r.oid = p.owner AND NOT (p.name = current_user
            AND pg_catalog.strpos(pg_catalog.current_setting('search_path'::text), '$user'::text) OPERATOR(pg_catalog.>) 0))
        -- Where this user may make nothing, and one other alone may, that one was chosen to.
        OR (NOT pg_catalog.has_schema_privilege(p.oid, 'CREATE'::text)
            AND r.oid IN (SELECT m.role FROM maker m WHERE m.place = p.oid)
            AND NOT EXISTS (SELECT 1 FROM maker m WHERE m.place = p.oid AND m.role <> r.oid))
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
UNION ALL SELECT 'there'::text, c.name::text, 'f'::text FROM called c WHERE c.name = ANY ($2::name[])
UNION ALL SELECT o.what, o.name::text, ''::text FROM owned o WHERE o.place <> 'pg_catalog'::pg_catalog.regnamespace::oid
    AND NOT EXISTS (SELECT 1 FROM believed b WHERE b.place = o.place AND b.role = o.owner)
-- Triggers, rules, policies, defaults and the like of the tables, by the functions that they call.
UNION ALL SELECT 'part'::text, k.name::text, ''::text FROM kept k
    JOIN pg_catalog.pg_depend part ON part.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::oid AND part.refobjid = k.oid
        AND part.deptype <> 'n'::"char"
    JOIN pg_catalog.pg_depend calls ON calls.classid = part.classid AND calls.objid = part.objid
        AND calls.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass::oid
    JOIN pg_catalog.pg_proc f ON f.oid = calls.refobjid
    WHERE NOT EXISTS (SELECT 1 FROM believed b WHERE b.role = f.proowner)
-- Who may lay a trigger on a table need not own it, and by conditions and arguments the functions of others do what they like.
UNION ALL SELECT 'trigger'::text, k.name::text, ''::text FROM kept k JOIN pg_catalog.pg_trigger t ON t.tgrelid = k.oid
    WHERE NOT t.tgisinternal AND (t.tgqual IS NOT NULL OR t.tgnargs <> 0::smallint)
UNION ALL SELECT 'open'::text, p.name::text, ''::text FROM place p JOIN maker m ON m.place = p.oid
    WHERE NOT EXISTS (SELECT 1 FROM believed b WHERE b.place = m.place AND b.role = m.role)
