//! Other users of the database in Postgres, who may make something where a store is.

use crate::servers::PostgresServer;
use relent_store::{ErrorKind, Key, Store, Version, in_postgres::Postgres};
use std::time::Duration;
use tokio_postgres::Client;

/// A connection of a user's, as soon as the server has started.
async fn client(server: &PostgresServer, user: &str) -> Client {
    for _ in 0..1000 {
        if let Ok((client, connection)) = tokio_postgres::connect(&url(server, user), tokio_postgres::NoTls).await {
            tokio::spawn(connection);
            return client;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the server lets {user} not in");
}

/// The store, for a user.
fn url(server: &PostgresServer, user: &str) -> String {
    server.url().replace("relent:hunter2@", &format!("{user}@"))
}

/// Does something with the store: reads and writes.
async fn uses(server: &PostgresServer, user: &str) -> Result<(), relent_store::Error> {
    uses_with(server, user, "").await
}

async fn uses_with(server: &PostgresServer, user: &str, query: &str) -> Result<(), relent_store::Error> {
    let store = Store::new(Postgres::open_url(&format!("{}{query}", url(server, user))).await?);
    let key = Key::new(user).unwrap();
    let version = store.read(&key).await?.version;
    let _ = store.replace(&key, version, Some(b"x")).await?;
    // Let go now, and not in the background, when somebody has laid something there.
    let _ = store.lease(&key).ttl(Duration::from_secs(5)).acquire().await.unwrap().release().await.unwrap();
    Ok(())
}

/// Drops all that is there.
async fn anew(admin: &Client) {
    let sql = "DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO PUBLIC;
        ALTER ROLE mallory NOSUPERUSER";
    admin.batch_execute(sql).await.unwrap();
}

/// What makes mallory a superuser, if a superuser runs it.
const TROJAN: &str = "CREATE FUNCTION trojan() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    IF current_user <> 'mallory' THEN EXECUTE 'ALTER ROLE mallory SUPERUSER'; END IF; END $$;";

/// What somebody who may make something in the schema lays there, before the store is made or when it is there.
#[tokio::test]
async fn nothing_of_another_user_of_the_database_runs_as_the_one_who_opens_a_store_there() {
    let server = PostgresServer::start_with(|_| vec!["fsync=off".into()]);
    let admin = client(&server, "relent").await;
    admin.batch_execute("CREATE ROLE mallory LOGIN; CREATE ROLE app LOGIN").await.unwrap();
    let mallory = client(&server, "mallory").await;
    let view = "CREATE FUNCTION ev() RETURNS integer LANGUAGE sql VOLATILE AS 'SELECT trojan(); SELECT 99';
        CREATE VIEW relent_meta AS SELECT ev() AS version; GRANT SELECT ON relent_meta TO PUBLIC";
    let now = "CREATE OR REPLACE FUNCTION relent_now() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT trojan(); SELECT 7::bigint'";
    let better =
        "CREATE FUNCTION nextval(text) RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT trojan(); SELECT 7::bigint'";
    let overload = "CREATE FUNCTION relent_left(bigint, bigint, integer) RETURNS bigint LANGUAGE sql AS 'SELECT trojan(); SELECT 7::bigint'";
    let operator = "CREATE FUNCTION times(numeric, integer) RETURNS numeric LANGUAGE sql VOLATILE AS 'SELECT trojan(); SELECT 7::numeric';
        CREATE OPERATOR * (FUNCTION = times, LEFTARG = numeric, RIGHTARG = integer)";
    let domain = "CREATE DOMAIN relent_once AS integer CHECK (trojan() IS NULL)";
    let trigger =
        "CREATE FUNCTION on_lease() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM trojan(); RETURN NEW; END $$;
        CREATE TRIGGER theirs BEFORE INSERT OR UPDATE ON relent_lease FOR EACH ROW EXECUTE FUNCTION on_lease()";
    // By a function of Postgres' own, and by what stands before it.
    let condition = |sql: &str| {
        format!(
            "CREATE FUNCTION evil(x bytea) RETURNS boolean LANGUAGE sql VOLATILE AS 'SELECT trojan(); SELECT true';
            CREATE DOMAIN checked AS bytea CHECK (evil(VALUE));
            CREATE FUNCTION same(a bytea, b bytea) RETURNS boolean LANGUAGE sql VOLATILE AS 'SELECT trojan(); SELECT false';
            CREATE OPERATOR === (FUNCTION = same, LEFTARG = bytea, RIGHTARG = bytea);
            CREATE TRIGGER theirs BEFORE UPDATE ON relent_lease FOR EACH ROW WHEN ({sql})
                EXECUTE FUNCTION suppress_redundant_updates_trigger()"
        )
    };
    let domain_of = condition("(NEW.name::checked) IS NULL");
    let operator_of = condition("NEW.name OPERATOR(public.===) NEW.name");
    let text_of = condition("query_to_xml('SELECT public.trojan()', true, true, '') IS NULL");
    let key = "CREATE TABLE theirs (key bytea REFERENCES relent_value (key) ON DELETE CASCADE)";
    let told = "CREATE TRIGGER theirs BEFORE UPDATE ON relent_lease FOR EACH ROW EXECUTE FUNCTION checks('x')";
    for (whose, what, says) in [
        ("", view, "the table 'relent_meta' belongs to"),
        ("mallory", now, "belongs to another user of the database"),
        ("mallory", "SELECT 1", "belongs to another user of the database"),
        ("", now, "the function 'relent_now' belongs to"),
        ("relent", better, "the function 'nextval' belongs to"),
        ("relent", overload, "the function 'relent_left' belongs to"),
        ("", operator, "an operator that is called like one of Postgres' own belongs to"),
        ("relent", operator, "an operator that is called like one of Postgres' own belongs to"),
        ("", domain, "the type 'relent_once' belongs to"),
        ("relent", trigger, "a trigger, rule or default of 'relent_lease' belongs to"),
        ("relent", &domain_of, "'relent_lease' has a trigger with a condition"),
        ("relent", &operator_of, "'relent_lease' has a trigger with a condition"),
        ("relent", &text_of, "'relent_lease' has a trigger with a condition"),
        ("relent", key, "or a table that refers to it"),
        ("relent", told, "'relent_lease' has a trigger with a condition"),
    ] {
        anew(&admin).await;
        if !whose.is_empty() {
            uses(&server, whose).await.unwrap();
            let given = "GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO PUBLIC;
                CREATE FUNCTION checks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SELECT ' || TG_ARGV[0]; RETURN NEW; END $$";
            admin.batch_execute(given).await.unwrap();
        }
        mallory.batch_execute(&format!("{TROJAN} {what}")).await.unwrap();
        // Until version 16 anybody can do that.
        let _ = mallory.batch_execute("GRANT mallory TO relent; GRANT mallory TO app").await;
        for caller in ["relent", "app"] {
            for make in ["", "?make=no"] {
                let error = Postgres::open_url(&format!("{}{make}", url(&server, caller))).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Refused, "{error:?} {caller} {what}");
                assert!(error.to_string().contains(says), "{error:?} {caller} {what}");
                assert!(error.hint_text().is_some_and(|hint| hint.contains("owner=any")), "{error:?}");
            }
        }
        let is_super = "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'";
        assert!(!admin.query_one(is_super, &[]).await.unwrap().get::<_, bool>(0), "{what}");
    }
    // Who says that they are believed has what they made: here a store of hers as it should be.
    anew(&admin).await;
    uses(&server, "mallory").await.unwrap();
    assert_eq!(uses(&server, "relent").await.unwrap_err().kind(), ErrorKind::Refused);
    let believed = Store::open(&format!("{}?owner=any", url(&server, "relent"))).await.unwrap();
    assert_eq!(believed.read(&Key::new("nobody's").unwrap()).await.unwrap().version, Version::ABSENT);
    assert!(!believed.about().await.unwrap().cautions.iter().any(|caution| caution.contains("schema public")));
    // And who made it goes on.
    uses(&server, "mallory").await.unwrap();
    let cautions = Store::open(&url(&server, "mallory")).await.unwrap().about().await.unwrap().cautions;
    assert!(cautions.iter().any(|caution| caution.contains("may make functions in the schema public")), "{cautions:?}");
}

/// Whoever made the store need not be who uses it: believed are those who may do what they like anyway, and who is named.
#[tokio::test]
async fn a_store_in_postgres_that_another_role_has_made_goes_on_where_that_role_is_named() {
    let server = PostgresServer::start_with(|_| vec!["fsync=off".into()]);
    let admin = client(&server, "relent").await;
    admin
        .batch_execute(
            "CREATE ROLE mallory LOGIN; CREATE ROLE app LOGIN; CREATE ROLE migrator LOGIN; CREATE ROLE team; CREATE ROLE \"The Team\";
            REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT USAGE ON SCHEMA public TO PUBLIC",
        )
        .await
        .unwrap();
    let give = |schema: &str| {
        ["TABLES", "SEQUENCES"].map(|what| format!("GRANT ALL ON ALL {what} IN SCHEMA {schema} TO app")).join("; ")
    };
    let is_refused = async |user: &str, query: &str| {
        let refused = uses_with(&server, user, query).await.unwrap_err();
        assert!(refused.kind() == ErrorKind::Refused && refused.to_string().contains("belongs to"), "{refused:?}");
        assert!(refused.hint_text().is_some_and(|hint| hint.contains("owner=NAME")), "{refused:?}");
    };
    let run = async |sql: &str| admin.batch_execute(sql).await.unwrap_or_else(|error| panic!("{error:?}: {sql}"));
    let cautions = async |query: &str| {
        let store = Store::open(&format!("{}{query}", url(&server, "app"))).await.unwrap();
        let cautions = store.about().await.unwrap().cautions;
        cautions.into_iter().find(|caution| caution.contains("may make functions in the schema"))
    };
    // The only one who may make something there was not chosen by who asks, unless they say so.
    run("GRANT CREATE ON SCHEMA public TO migrator").await;
    uses(&server, "migrator").await.unwrap();
    run(&give("public")).await;
    is_refused("app", "").await;
    is_refused("relent", "").await;
    is_refused("app", "?owner=team").await;
    uses_with(&server, "app", "?owner=migrator").await.unwrap();
    uses_with(&server, "relent", "?owner=%6Digrator").await.unwrap();
    assert_eq!(cautions("?owner=migrator").await, None);
    // It is one role, whoever else may do what it may.
    run("GRANT CREATE ON SCHEMA public TO mallory").await;
    uses_with(&server, "app", "?owner=migrator").await.unwrap();
    assert!(cautions("?owner=migrator").await.is_some_and(|caution| caution.contains("owner=NAME")));
    let mallory = client(&server, "mallory").await;
    let better = "CREATE FUNCTION public.nextval(text) RETURNS bigint LANGUAGE sql AS 'SELECT 7::bigint'";
    mallory.batch_execute(better).await.unwrap();
    is_refused("app", "?owner=migrator").await;
    run("DROP FUNCTION public.nextval(text); REVOKE CREATE ON SCHEMA public FROM mallory").await;
    // A role that is not there is not taken for nobody, nor what is no name for one.
    for (query, says) in [
        ("?owner=Migrator", "no role of the server"),
        ("?owner=migrator'%20OR%20true--", "no role of the server"),
        ("?owner=", "makes no sense"),
        ("?owner=a%00", "makes no sense"),
        (&format!("?owner={}", "m".repeat(64)), "makes no sense"),
        ("?owner=any&owner=migrator", "twice"),
    ] {
        let error = uses_with(&server, "app", query).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains(says), "{query}: {error:?}");
    }
    // Of the database's owner; who owns the schema is nobody special.
    run("ALTER DATABASE postgres OWNER TO migrator").await;
    uses(&server, "app").await.unwrap();
    run("ALTER DATABASE postgres OWNER TO relent; ALTER SCHEMA public OWNER TO migrator").await;
    is_refused("app", "").await;
    run("ALTER SCHEMA public OWNER TO relent").await;
    // Of a role that is named as Postgres writes it. To be a member of one is given by others.
    run("GRANT team TO app; GRANT team TO relent; REASSIGN OWNED BY migrator TO team").await;
    is_refused("app", "").await;
    is_refused("relent", "").await;
    uses_with(&server, "app", "?owner=team").await.unwrap();
    run("REASSIGN OWNED BY team TO \"The Team\"").await;
    is_refused("app", "?owner=team").await;
    uses_with(&server, "app", "?owner=The%20Team").await.unwrap();
    run("REASSIGN OWNED BY \"The Team\" TO relent").await;
    uses(&server, "app").await.unwrap();
    // In a schema of their own, with a trigger of the owner's.
    run("DROP SCHEMA public CASCADE; CREATE SCHEMA jobs AUTHORIZATION migrator; GRANT USAGE ON SCHEMA jobs TO app;
        ALTER ROLE migrator SET search_path = jobs; ALTER ROLE app SET search_path = jobs")
    .await;
    uses(&server, "migrator").await.unwrap();
    client(&server, "migrator")
        .await
        .batch_execute(
            "CREATE FUNCTION seen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
            CREATE TRIGGER ours BEFORE INSERT ON relent_lease FOR EACH ROW EXECUTE FUNCTION seen();
            ALTER TABLE relent_lease ENABLE ROW LEVEL SECURITY; CREATE POLICY all_of_it ON relent_lease USING (true)",
        )
        .await
        .unwrap();
    run(&give("jobs")).await;
    is_refused("app", "").await;
    uses_with(&server, "app", "?owner=migrator").await.unwrap();
    // A view of somebody else's upon a table of the store is no part of it.
    run("GRANT SELECT ON jobs.relent_lease TO mallory; GRANT USAGE ON SCHEMA jobs TO mallory; CREATE SCHEMA theirs AUTHORIZATION mallory").await;
    mallory
        .batch_execute(
            "CREATE FUNCTION theirs.plain(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT $1';
            CREATE VIEW theirs.leases AS SELECT theirs.plain(name) FROM jobs.relent_lease",
        )
        .await
        .unwrap();
    uses_with(&server, "app", "?owner=migrator").await.unwrap();
    // Who may make schemas may have made one that is called like a user, where its names are looked for first.
    run("ALTER ROLE app RESET search_path; GRANT CREATE ON DATABASE postgres TO mallory").await;
    mallory.batch_execute("CREATE SCHEMA app; GRANT ALL ON SCHEMA app TO PUBLIC; SET search_path = app").await.unwrap();
    let theirs = format!("{}?options=-c%20search_path%3Dapp", url(&server, "mallory"));
    assert!(Store::open(&theirs).await.is_ok());
    is_refused("app", "").await;
    // Also for a role that may make none, of which they are a member, or as the only ones who may make something in it.
    run("CREATE ROLE devs; GRANT devs TO mallory; ALTER SCHEMA app OWNER TO devs; REASSIGN OWNED BY mallory TO devs")
        .await;
    is_refused("app", "").await;
    run("ALTER SCHEMA app OWNER TO mallory; REVOKE ALL ON SCHEMA app FROM PUBLIC; GRANT USAGE ON SCHEMA app TO PUBLIC; GRANT CREATE ON SCHEMA app TO devs")
        .await;
    is_refused("app", "").await;
    // That the path is named says nothing of whose it is.
    run(&give("app")).await;
    is_refused("app", "?options=-c%20search_path%3Dapp").await;
    let named = format!("{}?options=-c%20search_path%3Dapp&owner=devs", url(&server, "app"));
    Store::open(&named).await.unwrap();
}

/// What is asked first must not run what a stranger has put before Postgres' own.
#[tokio::test]
async fn an_operator_that_is_found_before_postgres_own_never_runs() {
    let server = PostgresServer::start_with(|_| vec!["fsync=off".into()]);
    let root = client(&server, "relent").await;
    root.batch_execute("CREATE ROLE app LOGIN; CREATE ROLE mallory LOGIN; GRANT CREATE ON SCHEMA public TO PUBLIC")
        .await
        .unwrap();
    client(&server, "mallory")
        .await
        .batch_execute(
            "CREATE SEQUENCE public.runs; GRANT ALL ON public.runs TO PUBLIC;
            CREATE FUNCTION public.same(name, name) RETURNS bool LANGUAGE sql
                AS $$ SELECT pg_catalog.nextval('public.runs') IS NOT NULL $$;
            CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = name, FUNCTION = public.same)",
        )
        .await
        .unwrap();
    let behind = format!("{}?options=-c%20search_path%3Dpublic,pg_catalog", url(&server, "app"));
    // Nor in what is temporary of another session, which superusers may use.
    let mallory = client(&server, "mallory").await;
    let temporary = "CREATE FUNCTION pg_temp.same(name, name) RETURNS bool LANGUAGE sql
            AS $$ SELECT pg_catalog.nextval('public.runs') IS NOT NULL $$;
        CREATE OPERATOR pg_temp.= (LEFTARG = name, RIGHTARG = name, FUNCTION = pg_temp.same)";
    mallory.batch_execute(temporary).await.unwrap();
    let row = mallory.query_one("SELECT nspname::text FROM pg_namespace WHERE oid = pg_my_temp_schema()", &[]).await;
    let theirs: String = row.unwrap().get(0);
    let of_another = format!("{}?options=-c%20search_path%3D{theirs},pg_catalog", url(&server, "relent"));
    for url in [&behind, &of_another] {
        let refused = Store::open(url).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
        assert!(refused.to_string().contains("the search path names pg_catalog behind another schema"), "{refused}");
    }
    let runs: bool = root.query_one("SELECT is_called FROM public.runs", &[]).await.unwrap().get(0);
    assert!(!runs, "it has never run");
    Store::open(&format!("{behind}&owner=any")).await.unwrap();
}

/// With the default search path, what others may make in `public` is found from a schema of one's own, too.
#[tokio::test]
async fn whoever_may_make_something_in_public_is_not_believed_where_the_store_is_elsewhere() {
    let server = PostgresServer::start_with(|_| vec!["fsync=off".into()]);
    let admin = client(&server, "relent").await;
    let caution = async || {
        let cautions = Store::open(&url(&server, "app")).await.unwrap().about().await.unwrap().cautions;
        cautions.iter().any(|caution| caution.contains("may make functions in the schema public"))
    };
    let better = "CREATE FUNCTION public.nextval(text) RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT 7::bigint'";
    let start = "CREATE ROLE app LOGIN; CREATE ROLE mallory LOGIN; CREATE SCHEMA app AUTHORIZATION app; REVOKE CREATE ON SCHEMA public FROM PUBLIC";
    admin.batch_execute(start).await.unwrap();
    uses(&server, "app").await.unwrap();
    // The database's owner's, though it is called otherwise.
    let same = "ALTER SCHEMA public OWNER TO pg_database_owner";
    if admin.batch_execute(same).await.is_ok() {
        assert!(!caution().await);
    }
    // As the only one who may; then as the owner, where it was dropped.
    for rights in [
        "GRANT CREATE ON SCHEMA public TO mallory",
        "DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION mallory; GRANT USAGE ON SCHEMA public TO PUBLIC",
    ] {
        admin.batch_execute(rights).await.unwrap();
        uses(&server, "app").await.unwrap();
        assert!(caution().await, "{rights}");
        client(&server, "mallory").await.batch_execute(better).await.unwrap();
        let refused = uses(&server, "app").await.unwrap_err();
        let is_told = refused.to_string().contains("the function 'nextval' belongs to another user");
        assert!(refused.kind() == ErrorKind::Refused && is_told, "{rights}: {refused:?}");
    }
}
