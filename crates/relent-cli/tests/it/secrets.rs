//! Whatever somebody writes in whichever wrong place: no message, for people or machines, has the password of it.

use crate::binary::Folder;

const SECRET: &str = "hunter2";

/// Where a password may stand, and how it may be written there.
fn values() -> Vec<String> {
    let places = [
        "http://ann:PW@127.0.0.1:1/",
        "postgres://ann:PW@127.0.0.1:1/db",
        "redis://:PW@127.0.0.1:1",
        "postgres://ann:PW",
        "ann:PW@127.0.0.1:1",
        "host=127.0.0.1 port=1 password=PW",
        "host=127.0.0.1 port=1 password='PW'",
        "Server=h;Pwd={PW};x=1",
        "{\"password\":\"PW\"}",
        "Authorization: Bearer PW",
        "PGPASSWORD=PW psql",
        // Nobody can list the names of secrets, nor the signs behind them.
        "kennwort=PW",
        "kennwort: PW",
        "password|PW",
        "ann|PW@h",
        "machine h login ann password PW",
        "postgres://127.0.0.1:1/db?kennwort=PW",
        "ann：PW＠127.0.0.1:1",
        // What stands behind an `@` may be a part of a password.
        "postgres://ann@127.0.0.1:1/db?password=p@PW",
        "postgres://127.0.0.1:1/db?password=p@PW",
        "host=127.0.0.1 port=1 password=p@PW",
        "Authorization: Bearer p@PW",
        "{\"password\":\"p@PW\"}",
        "kennwort=p@PW",
        "token p@PW",
        "Server=h;Pwd=x://PW ;x=1",
        "http：//ann:PW＠127.0.0.1:1",
        // Nobody can say where a value ends that was not written out.
        "http://127.0.0.1:1/?token=a?PW",
        "http://127.0.0.1:1/?kennwort=?PW",
        "http://127.0.0.1:1/#PW",
        "127.0.0.1:1/x?sig=PW&r=a://b",
        "/cb?code=PW&next=https://b/",
        "kennwort:PW,http://b",
        "kennwort:a,PW",
        "ann:a,PW@h",
        "token a,PW",
        "ann:/PW@h",
        "ann:\\PW@h",
        "X-Api-Key:/PW",
        "Server=h;Pass-Phrase='PW'",
        "{\"kennwort\":\"p@PW\"}",
        "<pass>p@PW</pass>",
        "http://127.0.0.1:1/get/https://ann:PW@b/x",
    ];
    let ways =
        ["PW", "\"PW\"", "`PW`", "a PW", "\tPW", "a\\PW", "12/PW", "x''PW", "x\\'PW", "x}}PW", "PW@x", "PW%2540"];
    let with = |place: &str| ways.map(|way| place.replace("PW", way).replace("PW", SECRET));
    // Without an `@` there is nothing in this one but a host, a port and a path.
    let is_url = |value: &String| value.contains(":12/") && !value.contains('@');
    places.iter().flat_map(|place| with(place)).filter(|value| !is_url(value)).collect()
}

/// Commands that take a value for something else, in whose place it stands: each has a third of them.
fn tells(commands: &[&[&str]], has_events: bool) {
    let (folder, values) = (Folder::new(), values());
    for (nth, command) in commands.iter().enumerate() {
        for (turn, value) in values.iter().skip(nth % 3).step_by(3).enumerate() {
            // What somebody calls a lease or an upstream may have such signs in it.
            if value.starts_with("kennwort") && command.iter().any(|word| ["--lease", "--upstream"].contains(word)) {
                continue;
            }
            let words: Vec<String> = command.iter().map(|word| word.replace("VALUE", value)).collect();
            let mut args: Vec<&str> = words.iter().map(String::as_str).collect();
            let end = args.iter().position(|word| *word == "--").unwrap_or(args.len());
            args.splice(end..end, Some("--json").filter(|_| has_events && turn % 2 == 0));
            let outcome = folder.relent(&args);
            let told = [&outcome.stdout, &outcome.stderr].iter().any(|text| text.contains(SECRET));
            assert!(!told, "{args:?}: {outcome:?}");
        }
    }
}

#[test]
fn run_tells_no_password() {
    tells(
        &[
            &["run", "-v", "--max-attempts", "1", "--", "VALUE"],
            &["run", "--policy", "VALUE", "--", "true"],
            &["run", "--base", "VALUE", "--", "true"],
            &["run", "--compat", "VALUE", "--", "true"],
            &["run", "--budget", "VALUE", "--", "true"],
            &["run", "--upstream", "VALUE", "--", "true"],
            &["run", "--report", "no/VALUE", "--", "true"],
            &["run", "--retry-on-exit", "VALUE", "--", "true"],
            &["run", "-v", "--lease", "VALUE", "--store", "sqlite:s.db", "--", "true"],
        ],
        true,
    );
}

#[test]
fn http_tells_no_password() {
    let once = ["--max-attempts=1", "--timeout=2s"];
    tells(
        &[
            &["http", once[0], once[1], "-d", "@VALUE", "http://127.0.0.1:1"],
            &["http", once[0], once[1], "-o", "no/VALUE", "http://127.0.0.1:1"],
            &["http", once[0], once[1], "-E", "VALUE", "https://127.0.0.1:1"],
            &["http", once[0], once[1], "-x", "VALUE", "http://127.0.0.1:1"],
            &["http", once[0], once[1], "--resolve", "VALUE", "http://127.0.0.1:1"],
            &["http", once[0], once[1], "-F", "VALUE", "http://127.0.0.1:1"],
            &["http", once[0], once[1], "http://127.0.0.1:1", "VALUE"],
            &["http", once[0], once[1], "-X", "VALUE", "http://127.0.0.1:1"],
        ],
        true,
    );
}

#[test]
fn connect_and_stores_tell_no_password() {
    tells(
        &[
            &["connect", "--max-attempts", "1", "--timeout", "300ms", "VALUE"],
            &["store", "check", "--timeout", "100ms", "--store", "VALUE"],
            &["upstream", "open", "VALUE", "--store", "sqlite:no/s.db"],
            &["upstream", "--policy", "VALUE"],
        ],
        true,
    );
}

#[test]
fn explain_and_simulations_tell_no_password() {
    let commands: [&[&str]; 6] = [
        &["explain", "--systemd", "VALUE"],
        &["explain", "--compare", "VALUE"],
        &["explain", "--policy", "VALUE"],
        &["explain", "--budget", "VALUE"],
        &["simulate", "VALUE"],
        &["simulate", "herd", "--clients", "VALUE"],
    ];
    tells(&commands, false);
}

/// In a command line that was quoted as a whole.
#[test]
fn a_password_that_touches_its_flag_is_not_told() {
    for given in ["mysql -uroot -pHunter2 shop", "mysql -pHunter2 shop", "-pHunter2 shop"] {
        for how in ["--seed=1", "--json", "-v"] {
            let outcome = Folder::new().relent(&["run", how, "--max-attempts", "1", "--", given]);
            let told = outcome.stdout + &outcome.stderr;
            assert!(told.contains("***") && !told.contains("Hunter"), "{given}: {told}");
        }
    }
}

/// As a script that was given as one word: no more is looked at than its beginning, and it is known as a whole all the same.
#[test]
fn a_long_argument_tells_no_password() {
    let folder = Folder::new();
    for begin in ["ann: Hunter2Long9", "user ann:Hunter2Long9;", "a\nHunter2Long9\n"] {
        let given = format!("{begin} {}", "word ".repeat(4000));
        for args in [
            &["run", "--base", &given, "--", "true"][..],
            &["run", "--json", "--max-attempts=1", "--", &given],
            &["run", "-v", "--max-attempts=1", "--", "no such command", &given],
            &["http", "-X", &given, "http://127.0.0.1:1/"],
            &["connect", &given],
            &["simulate", "herd", "--limit", &given],
        ] {
            let outcome = folder.relent(args);
            assert!(!outcome.stderr.is_empty());
            assert!(!(outcome.stdout + &outcome.stderr).contains("Hunter2"), "{begin}: {}", args[1]);
        }
    }
}

/// A slip in the line of a store's URL quotes the line.
#[test]
fn a_broken_policy_file_tells_no_password() {
    let values = [
        "postgres://ann:PW@h/db",
        "postgres://ann@h/db?password=a;PW",
        "redis://:PW",
        "ann:PW",
        "Bearer PW",
        "kennwort=PW",
        "PW@h",
        "a;\"PW",
        "postgres://ann@h/db?password=p@PW",
    ];
    let lines = [
        "store=\"PLACE\" x",
        "store=\"PLACE",
        "store=PLACE",
        "stoer='PLACE'",
        "breaker=\"PLACE\"",
        "budget={\"PLACE\"=1}",
        "limit={ rate = \"PLACE\" }",
        "kennwort='PLACE'",
        "PLACE",
        "# PLACE\n[[",
        "[policy]\nupstream=\"PLACE\"",
    ];
    for line in lines {
        for value in values {
            let line = line.replace("PLACE", &value.replace("PW", SECRET));
            let folder = Folder::new().file("p.toml", &format!("[upstream.b]\n{line}\n"));
            for command in
                [&["run", "--policy", "p.toml", "--", "true"][..], &["explain", "--json", "--policy", "p.toml"]]
            {
                let outcome = folder.relent(command);
                assert!(outcome.code == Some(125) && outcome.stderr.contains("p.toml"), "{line}: {outcome:?}");
                let told = outcome.stdout + &outcome.stderr;
                assert!(!told.contains(SECRET), "{line}: {told}");
            }
        }
    }
}

/// Nor is a number one that could be an amount elsewhere.
#[test]
fn nothing_is_quoted_beneath_the_name_of_a_secret() {
    for line in ["pin = 4815", "password.a = 4815", "[password]\na = 4815 x", "pin = [\n  4815 x", "x = { otp = 4815 }"]
    {
        let folder = Folder::new().file("p.toml", &format!("[policy.x]\n{line}\n"));
        let outcome = folder.relent(&["explain", "--policy", "p.toml#x"]);
        assert!(outcome.code == Some(125) && outcome.stderr.contains("p.toml"), "{line}: {outcome:?}");
        assert!(!outcome.stderr.contains("4815"), "{line}: {outcome:?}");
    }
}

/// Names are those that somebody chose, and may all the same be what was meant for another place.
#[test]
fn names_of_a_policy_file_tell_no_password() {
    let names = ["ann:PW@h", "postgres://ann:PW@h/db", "kennwort=PW", "password: PW", "postgres://h?kennwort=PW"];
    for name in names.map(|name| name.replace("PW", SECRET)) {
        let file = format!(
            "[policy.{name:?}]\nbase = '1ms'\nmax_attempts = 2\nupstream = {name:?}\n[upstream.{name:?}]\n\
             budget = {{ ratio = 0.1 }}\nbreaker = {{ consecutive = 1 }}\nlimit = {{ rate = 1000 }}\nstore = 'sqlite:s.db'\n"
        );
        let folder = Folder::new().file("p.toml", &file);
        let two = Folder::new().file("p.toml", &format!("{file}[policy.other]\nbase = '1s'\n[upstream.other]\n"));
        for folder in [&folder, &two] {
            assert_eq!(folder.relent(&["store", "migrate", "--store", "sqlite:s.db"]).code, Some(0));
        }
        for command in [
            &["run", "-v", "--policy", "p.toml", "--", "false"][..],
            &["run", "-v", "--json", "--policy", "p.toml", "--", "false"],
            &["run", "--policy", "p.toml#othre", "--", "false"],
            &["run", "--policy", "p.toml", "--upstream", "othre", "--", "false"],
            &["http", "-v", "--policy", "p.toml", "http://127.0.0.1:1"],
            &["explain", "--policy", "p.toml"],
            &["explain", "--json", "--policy", "p.toml"],
            &["explain", "--compare", "p.toml"],
            &["upstream", "--policy", "p.toml"],
            &["upstream", "--json", "--policy", "p.toml"],
            &["simulate", "p.toml", "--clients", "2", "--seeds", "1", "--advice", "never"],
        ] {
            for folder in [&folder, &two] {
                let outcome = folder.relent(command);
                let told = outcome.stdout + &outcome.stderr;
                assert!(!told.contains(SECRET), "{name}: {command:?}: {told}");
            }
        }
    }
}

/// What is for others has names in it, too.
#[test]
fn no_table_page_or_picture_tells_the_password_of_a_name() {
    let scenario = |name: &str| {
        format!(
            "title = {name:?}\nseeds = 2\n[clients]\ncount = 5\n[server]\nservice_time = '1ms'\n[[run]]\nname = {name:?}\n\
             policy = {{ base = '1ms' }}\n[assert.{name:?}]\nattempts = {{ max = 1 }}\n"
        )
    };
    for name in ["http://ann:hunter2@h/x", "kennwort=hunter2", "kennwort=hunter2two"] {
        let file = format!("[policy.{name:?}]\nbase = '1s'\n[policy.'kennwort=hunter2three']\nbase = '2s'\n");
        let folder = Folder::new().file("p.toml", &file).file("s.toml", &scenario(name));
        let (chosen, other) = (format!("p.toml#{name}"), "p.toml#kennwort=hunter2three");
        let files = ["--html", "page.html", "--csv", "table.csv", "--svg", "svg"];
        let herd =
            ["simulate", "herd", "--clients", "5", "--advice", "never", "--compare", &chosen, "--compare", other];
        let of_file = ["simulate", "s.toml", "--assert", "--advice", "never"];
        for command in [
            [&herd[..], &files].concat(),
            [&herd[..], &["--json"]].concat(),
            [&of_file[..], &files].concat(),
            [&of_file[..], &["--json"]].concat(),
            vec!["explain", "--policy", &chosen],
            vec!["explain", "--json", "--policy", &chosen],
        ] {
            let outcome = folder.relent(&command);
            assert!(!(outcome.stdout.clone() + &outcome.stderr).contains(SECRET), "{command:?}: {outcome:?}");
        }
        let pictures =
            std::fs::read_dir(folder.path().join("svg")).into_iter().flatten().map(|file| file.unwrap().path());
        let files: Vec<_> =
            pictures.chain([folder.path().join("page.html"), folder.path().join("table.csv")]).collect();
        assert!(files.len() > 2, "{files:?}");
        for file in files {
            assert!(!std::fs::read_to_string(&file).unwrap().contains(SECRET), "{name}: {file:?}");
        }
    }
}

/// A file may be named by mistake, or have names of others' choice.
#[test]
fn a_file_of_others_is_neither_told_nor_heeded() {
    let file = "[policy.x]\nmax_attempts = 2\nbase = '1ms'\n[policy.'token=exit 1']\n[policy.'password=gave up']\n";
    let folder = Folder::new()
        .file("wg.key", "aHVudGVyMiBodW50ZXIyIGh1bnRlcjIgaHVudGVyMiA0MiE=\n")
        .file("k.toml", "password.hunter2 = 4815\n")
        .file("p.toml", file)
        .file("x.service", "[Service]\nRestart=hunter2\n");
    for words in
        [["explain", "--policy", "wg.key"], ["explain", "--policy", "k.toml"], ["explain", "--systemd", "x.service"]]
    {
        let outcome = folder.relent(&words);
        let is_told = ["aHVudGVy", SECRET].iter().any(|secret| outcome.stderr.contains(secret));
        assert!(outcome.code != Some(0) && !is_told, "{outcome:?}");
    }
    let outcome = folder.relent(&["run", "--policy", "p.toml#x", "--", "false"]);
    assert!(outcome.stderr.contains("gave up") && outcome.stderr.contains("exit 1"), "{outcome:?}");
}

/// A policy may really be called as another is shown.
#[test]
fn two_policies_are_told_by_two_names() {
    let file = "[policy.'kennwort=good']\nbase = '1s'\n[policy.'kennwort=***']\nbase = '2s'\n";
    let folder = Folder::new().file("p.toml", file);
    for names in [["p.toml#kennwort=good", "p.toml#kennwort=***"], ["p.toml#kennwort=***", "p.toml#kennwort=good"]] {
        let args = ["simulate", "herd", "--clients", "5", "--compare", names[0], "--compare", names[1]];
        let outcome = folder.relent(&args);
        assert!(outcome.code == Some(0) && outcome.stdout.contains("kennwort=*** 2"), "{outcome:?}");
    }
}

/// What a hint has for an example is none of anybody's secrets.
#[test]
fn words_of_ours_are_shown_as_they_are() {
    let folder = Folder::new();
    for (args, words) in [
        (["http", "-w", "%{nope}", "http://127.0.0.1:1"], "nothing is called \"nope\""),
        (["store", "check", "--store", "postgres://h:x/db"], "write it like postgres://host:5432/database;"),
        (["http", "-x", "http://pro xy", "http://127.0.0.1:1"], "or socks5h://proxy:1080;"),
    ] {
        let outcome = folder.relent(&args);
        assert!(outcome.stderr.contains(words), "{outcome:?}");
    }
}

/// What a format from a file has in the place of a name is told as that of an argument is.
#[test]
fn a_format_from_a_file_tells_no_password() {
    for name in ["password:PW", "pw:PW", "header:PW", "kennwort=PW", "ann|PW", "ann?PW"] {
        let folder = Folder::new().file("format", &format!("%{{{}}}", name.replace("PW", SECRET)));
        for json in [&[][..], &["--json"]] {
            let outcome = folder.relent(&[&["http", "-w", "@format"], json, &["http://127.0.0.1:1"]].concat());
            assert!(outcome.code == Some(125) && outcome.stderr.contains("nothing is called"), "{name}: {outcome:?}");
            assert!(!outcome.stderr.contains(SECRET), "{name}: {outcome:?}");
        }
    }
}

/// Wherever it is from, a store is told in one way.
#[test]
fn a_store_of_a_policy_file_tells_no_password() {
    for store in
        ["redis://:pw?PW@127.0.0.1:1/0", "sqlite:x.db?key=PW", "sqlite:x.db?PW", "postgres://127.0.0.1:1/db?PW"]
    {
        let file = format!("[upstream.b]\nbudget = {{ ratio = 0.1 }}\nstore = {:?}\n", store.replace("PW", SECRET));
        let folder = Folder::new().file("p.toml", &file);
        for command in [
            &["run", "--policy", "p.toml", "--upstream", "b", "--max-attempts", "1", "--", "true"][..],
            &["run", "--json", "--policy", "p.toml", "--upstream", "b", "--max-attempts", "1", "--", "true"],
            &["upstream", "open", "b", "--policy", "p.toml", "--timeout", "300ms"],
            &["upstream", "list", "--json", "--policy", "p.toml", "--timeout", "300ms"],
        ] {
            let outcome = folder.relent(command);
            let told = outcome.stdout + &outcome.stderr;
            assert!(!told.contains(SECRET), "{store}: {command:?}: {told}");
        }
    }
}

/// Whoever wrote a file that was found has no say in what relent says of it, nor of anything else.
#[test]
fn a_file_that_was_found_hides_nothing() {
    let names = ["the policy of relent.toml, found in this folder", "exit 1", "gave up", "attempt"];
    let tables: String = names.iter().map(|name| format!("[policy.\"token={name}\"]\n")).collect();
    let folder = Folder::new().file("relent.toml", &format!("[policy]\nmax_attempts = 2\nbase = '1ms'\n{tables}"));
    let outcome = folder.relent(&["run", "--", "false"]);
    assert!(!outcome.stderr.contains("***") && outcome.stderr.contains("found in this folder"), "{outcome:?}");
}

/// As a container of a test has it: to hide it in our own words would tell it by what is missing of them.
#[test]
fn a_password_that_is_a_word_of_ours_is_hidden_in_its_url_alone() {
    let outcome = Folder::new().relent(&["store", "check", "--store", "postgres://app:postgres@127.0.0.1:1/postgres"]);
    let told = "error: store postgres://***@127.0.0.1:1/postgres: the Postgres server cannot be reached";
    assert!(outcome.stderr.starts_with(told), "{outcome:?}");
    assert!(!outcome.stderr.contains(":postgres"), "{outcome:?}");
}

/// By default Postgres calls the database like the user.
#[test]
fn a_database_that_is_called_like_its_user_is_shown() {
    let url = "postgres://Warehouse7:hunter2@127.0.0.1:1/Warehouse7";
    let outcome = Folder::new().relent(&["store", "check", "--store", url]);
    assert!(outcome.stderr.contains("store postgres://***@127.0.0.1:1/Warehouse7: "), "{outcome:?}");
}
