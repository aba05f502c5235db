//! `relent simulate --html` and `--svg`: the same bytes each time, and a page that works in a real browser.

use crate::{
    binary::{Folder, golden},
    browser::Browser,
};
use serde_json::{Value, json};

/// A herd, with and without jitter, and a constant delay.
const HERD: &str = r#"
title = "1,000 clients reconnect at once"
seeds = 3
[clients]
count = 1000
[server]
capacity = 50
queue = 50
[policy.none]
base = "100ms"
cap = "10s"
jitter = "none"
max_attempts = "unlimited"
[policy.full]
base = "100ms"
cap = "10s"
jitter = "full"
max_attempts = "unlimited"
[policy."1s <constant>"]
curve = "constant"
base = "1s"
jitter = "none"
max_attempts = "unlimited"
"#;

/// Pictures of a scenario as a whole.
const STORM: &str = r#"
[clients]
rate = 20
for = "20s"
timeout = "1s"
[server]
capacity = 50
[policy.retries]
curve = "immediate"
max_attempts = 3
"#;

fn herd() -> Folder {
    Folder::new().file("herd.toml", HERD)
}

/// Runs `relent simulate` with these arguments and `--html`, and returns what `--json` says.
#[track_caller]
fn report(folder: &Folder, args: &[&str]) -> Vec<Value> {
    let outcome =
        folder.relent(&[&["simulate"], args, &["--json", "--html", "report.html", "--svg", "plots"]].concat());
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", Some(0)));
    serde_json::from_str(&outcome.stdout).expect("it is an array")
}

#[test]
fn the_plots_are_the_same_bytes_each_time() {
    let folder = herd().file("storm.toml", STORM);
    report(&folder, &["herd.toml"]);
    for name in ["load", "connected", "waits", "cost", "attempts", "arrivals"] {
        golden(&format!("simulate-{name}.svg"), &folder.read(&format!("plots/{name}.svg")));
    }
    golden("simulate-clients-cost.svg", &folder.read("plots/clients-cost.svg"));
    golden("simulate-heat-drain.svg", &folder.read("plots/heat-drain.svg"));
    report(&folder, &["layers", "--failure", "0.9"]);
    golden("simulate-layers.svg", &folder.read("plots/layers.svg"));
    report(&folder, &["storm.toml"]);
    golden("simulate-hysteresis.svg", &folder.read("plots/hysteresis.svg"));
    golden("simulate-recovery.svg", &folder.read("plots/recovery.svg"));
}

/// What the pictures of the docs show: each is the plot of this name of this scenario, in so many runs.
const PICTURES: [(&str, &str, &str, &str); 6] = [
    ("pacer", "load", include_str!("../../../relent-sim/scenarios/pacer.toml"), "3"),
    ("storm", "load", DOCS_HERD, "1"),
    ("heat", "heat-drain", DOCS_HERD, "1"),
    ("outage", "load", DOCS_OUTAGE, "1"),
    ("recovery", "recovery", include_str!("../../../relent-sim/scenarios/storm-stays.toml"), "1"),
    ("clients", "clients-cost", include_str!("../../../relent-sim/scenarios/aws.toml"), "10"),
];

const DOCS_HERD: &str = include_str!("../../../relent-sim/scenarios/jitter.toml");

const DOCS_OUTAGE: &str = r#"
title = "450 calls a second, a server of 1,000, and an outage of ten seconds"
[clients]
rate = 450
for = "4m"
timeout = "1s"
[server]
capacity = 1000
service = "exponential"
[[trouble]]
at = "30s"
for = "10s"
kind = "stall"
[policy."1 retry"]
curve = "immediate"
max_attempts = 2
[policy."2 retries"]
curve = "immediate"
max_attempts = 3
"#;

#[test]
fn the_pictures_of_the_docs_are_those_that_are_drawn() {
    for (picture, plot, scenario, seeds) in PICTURES {
        let folder = Folder::new().file("scenario.toml", scenario);
        report(&folder, &["scenario.toml", "--seeds", seeds]);
        golden(&format!("../../../../docs/{picture}.svg"), &folder.read(&format!("plots/{plot}.svg")));
    }
}

#[test]
fn the_report_is_the_same_bytes_each_time_on_any_number_of_threads() {
    let (one, two) = (herd(), herd());
    report(&one, &["herd.toml"]);
    report(&two, &["herd.toml"]);
    assert!(one.read("report.html") == two.read("report.html"));
    report(&two, &["herd.toml", "--threads", "1"]);
    let page = two.read("report.html").replace(" --threads 1", "");
    assert!(one.read("report.html") == page, "the luck does not depend on the threads");
}

#[test]
fn bands_do_not_depend_on_the_threads() {
    let folder = herd();
    let plots = |threads| {
        let args = ["simulate", "herd.toml", "--json", "--plots", "--pictures", "heat,clients", "--threads", threads];
        folder.relent(&args)
    };
    let (one, three) = (plots("1"), plots("3"));
    assert_eq!((one.stderr.as_str(), one.code), ("", Some(0)));
    assert!(one == three, "the same bytes");
    let records: Vec<Value> = serde_json::from_str(&one.stdout).expect("it is an array");
    for record in &records {
        let bands = &record["plots"]["bands"];
        assert_eq!(bands["runs"], 3);
        let last = |line: &str| bands["connected"][line].as_array().and_then(|line| line.last()).cloned();
        assert_eq!((last("low"), last("high")), (Some(json!(1000)), Some(json!(1000))), "everybody gets in");
        let [low, mean, high] = ["low", "mean", "high"].map(|line| bands["attempts"][line].as_array().unwrap().clone());
        for ((low, mean), high) in low.iter().zip(&mean).zip(&high) {
            assert!(low.as_f64() <= mean.as_f64() && mean.as_f64() <= high.as_f64(), "{low} {mean} {high}");
        }
    }
}

#[test]
fn pictures_are_those_that_are_asked_for() {
    let folder = herd();
    let names = |pictures: &str| {
        let _ = std::fs::remove_dir_all(folder.path().join("plots"));
        report(&folder, &["herd.toml", "--seeds", "1", "--pictures", pictures]);
        let plots = std::fs::read_dir(folder.path().join("plots")).expect("there are plots");
        plots.map(|entry| entry.expect("it is readable").file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let has = |names: &[String], name: &str| names.iter().any(|other| other.starts_with(name));
    let none = names("none");
    assert!(has(&none, "load") && !has(&none, "heat") && !has(&none, "clients") && !has(&none, "layers"), "{none:?}");
    let all = names("all");
    assert!(has(&all, "heat") && has(&all, "clients") && has(&all, "layers") && !has(&all, "recovery"), "{all:?}");
    let says = |args: &[&str], stderr: &str| {
        let outcome = folder.relent(&[&["simulate"], args].concat());
        assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str(), outcome.code), ("", stderr, Some(125)));
    };
    says(
        &["herd.toml", "--pictures", "heat"],
        "error: --pictures: there is nothing to draw them on\nhint: add --html FILE, --svg DIR, or --json --plots\n",
    );
    says(
        &["herd.toml", "--pictures", "hysteresis", "--html", "x.html"],
        "error: --pictures hysteresis: only calls that come in a stream have a load that can be raised\n\
         hint: --pictures all draws what there is\n",
    );
    let told = folder.relent(&[
        "simulate",
        "herd",
        "--clients",
        "100",
        "--capacity",
        "10",
        "--queue",
        "10",
        "--curve",
        "constant",
        "--base",
        "1s",
        "--pictures",
        "heat",
        "--html",
        "x.html",
    ]);
    assert_eq!(told.code, Some(0));
    assert_eq!(
        told.stderr,
        "warning: there is no picture \"heat\": no policy has a base and a cap, in a world that the fluid engine knows\n"
    );
}

#[test]
fn what_cannot_be_written_is_said() {
    let folder = herd();
    let outcome = folder.relent(&["simulate", "herd.toml", "--html", "no/such/folder.html"]);
    assert_eq!(outcome.code, Some(125));
    assert_eq!(
        outcome.stderr,
        "error: cannot write the report to no/such/folder.html: No such file or directory (os error 2)\n\
         hint: --html takes a file, --svg a folder, where you may write\n"
    );
}

#[test]
fn the_page_works_in_a_browser() {
    let mut browser = Browser::start();
    let folder = herd();
    let records = report(&folder, &["herd.toml"]);
    browser.open(&folder.path().join("report.html"));
    shows_the_numbers(&mut browser, &records);
    // Load and raster for each policy, connected, waits, cost, attempts.
    draws(&mut browser, 10);
    for id in ["load", "connected", "waits", "tradeoff", "attempts", "raster", "numbers"] {
        assert_eq!(browser.value(&format!("document.querySelectorAll('#{id}').length")), 1, "{id}");
    }
    // A band for each policy, for what is recommended and for the herd with a pacer, around the mean of its runs.
    assert_eq!(browser.value("document.querySelectorAll('#connected path.band').length"), 5);
    assert_eq!(browser.value("document.querySelectorAll('#waits path.band').length"), 5);
    assert_eq!(browser.value("document.querySelectorAll('#tradeoff path.front').length"), 1);
    answers_the_mouse(&mut browser);
    fits_a_telephone_in_the_dark(&mut browser);
    for (args, plots) in [
        (
            &[
                "open",
                "--rate",
                "450",
                "--capacity",
                "1000",
                "--max-attempts",
                "2",
                "--outage",
                "5s+2s",
                "--for",
                "20s",
            ][..],
            4,
        ),
        (&["aws", "--clients", "20", "--seeds", "3"], 14),
        (&["layers", "--failure", "0.9"], 1),
        (&["ethernet", "--seeds", "10"], 1),
        (&["batch", "--n", "16", "--seeds", "5"], 1),
        (&["channel", "--slots", "10000"], 1),
    ] {
        let records = report(&folder, args);
        browser.open(&folder.path().join("report.html"));
        shows_the_numbers(&mut browser, &records);
        draws(&mut browser, plots);
    }
    let folder = folder.file("storm.toml", STORM);
    for (args, ids) in [
        (&["storm.toml", "--seeds", "2"][..], &["hysteresis", "recovery"][..]),
        (&["herd.toml", "--pictures", "heat"], &["heat"]),
        (&["aws", "--clients", "10", "--seeds", "2"], &["sizes"]),
        (&["channel", "--slots", "10000"], &["sizes"]),
    ] {
        let records = report(&folder, args);
        browser.open(&folder.path().join("report.html"));
        shows_the_numbers(&mut browser, &records);
        draws(&mut browser, 1);
        for id in ids {
            answers_hovering(&mut browser, id);
        }
        if ids.contains(&"heat") {
            // Colours have a scale, and what has no result has a cross in the place of a colour.
            let heat = browser.value(
                "(node => [node.querySelectorAll('.scale').length, node.textContent.includes('no result'), \
                 node.querySelectorAll('rect.cell').length, node.querySelectorAll('svg g.data path').length])\
                 (document.querySelector('#heat'))",
            );
            assert_eq!((&heat[0], &heat[1]), (&json!(1), &json!(true)), "{heat}");
            let [cells, crosses] = [2, 3].map(|nth| heat[nth].as_u64().expect("a number"));
            assert!(cells < 169 && cells + crosses >= 169, "each of 13 x 13 is one or the other: {heat}");
        }
        pictures_are_those_of_the_json(&mut browser, &folder, args);
    }
    assert_eq!(browser.complaints, [""; 0], "nothing is logged and nothing is loaded");
}

/// Over a plot in this section, the tip has a value for a policy.
#[track_caller]
fn answers_hovering(browser: &mut Browser, id: &str) {
    let shapes = format!("document.querySelectorAll('#{id} svg g.data > *').length > 1");
    assert_eq!(browser.value(&shapes), true, "{id}");
    browser.value(&format!("document.querySelector('#{id} svg').scrollIntoView({{ block: 'center' }})"));
    let place = browser.value(&format!(
        "(b => [b.left + b.width * 0.25, b.top + b.height * 0.3])(document.querySelector('#{id} svg').getBoundingClientRect())"
    ));
    let at = json!({ "type": "mouseMoved", "x": place[0], "y": place[1], "button": "none" });
    browser.ask("Input.dispatchMouseEvent", &at);
    let tip = browser.value("[document.getElementById('tip').hidden, document.querySelectorAll('#tip tr').length]");
    assert_eq!(tip[0], false, "{id}: nothing is said");
    assert!(tip[1].as_u64() > Some(0), "{id}: {tip}");
}

/// What the page draws of the scenario as a whole, and how runs differ, is what `--json --plots` says.
#[track_caller]
fn pictures_are_those_of_the_json(browser: &mut Browser, folder: &Folder, args: &[&str]) {
    let outcome = folder.relent(&[&["simulate"], args, &["--json", "--plots"]].concat());
    let records: Vec<Value> = serde_json::from_str(&outcome.stdout).expect("it is an array");
    let page = browser.value("JSON.parse(document.getElementById('page').textContent)");
    let same = |page: &Value, json: &Value, what: &str| {
        let numbers = |value: &Value| {
            let list = value.as_array().unwrap_or_else(|| panic!("{what} is a list: {value}")).clone();
            list.into_iter().map(|value| value.as_f64()).collect::<Vec<_>>()
        };
        let (page, json) = (numbers(page), numbers(json));
        let near = |pair: (&Option<f64>, &Option<f64>)| match pair {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-6,
            (a, b) => a == b,
        };
        assert!(page.len() == json.len() && page.iter().zip(&json).all(near), "{what}: {page:?} is not {json:?}");
    };
    for (nth, record) in records.iter().enumerate() {
        let (policy, plots) = (&page["policies"][nth], &record["plots"]);
        if record["seeds"].as_u64() > Some(1) {
            same(&policy["bands"]["connected"]["high"], &plots["bands"]["connected"]["high"], "connected");
            same(&policy["bands"]["waits"]["mean"], &plots["bands"]["wait_s"]["mean"], "waits");
        }
        let of = |list: &Value| {
            let found = list.as_array().and_then(|list| list.iter().find(|one| one["policy"] == record["policy"]));
            found.cloned().unwrap_or_default()
        };
        let pictures = plots["pictures"].as_object().expect("it is an object");
        for (name, picture) in pictures {
            match name.as_str() {
                "heat" => same(&page["heat"]["drain"][3], &picture["drain_over_ideal"][3], "heat"),
                "recovery" => same(&of(&page["recovery"])["time"], &picture["recovery_s"], "recovery"),
                "clients" => same(&page["sizes"]["clients"], &picture["clients"], "clients"),
                "hysteresis" => {
                    let points = of(&page["hysteresis"])["points"].as_array().expect("there are points").clone();
                    let goodput = points.into_iter().map(|point| point["goodput"].clone()).collect();
                    same(&Value::Array(goodput), &picture["goodput"], "hysteresis");
                }
                _ => {}
            }
        }
        assert!(!pictures.is_empty() || nth > 0 || args.contains(&"heat"), "{args:?} has pictures");
    }
}

/// Every figure in the JSON is in the page's table, and the text of the cell is that number.
#[track_caller]
fn shows_the_numbers(browser: &mut Browser, records: &[Value]) {
    let table = browser.value(
        "[...document.querySelectorAll('#table tr[data-record]')].map(row => [row.dataset.record, \
         [...row.querySelectorAll('td[data-figure]')].map(cell => [cell.dataset.figure, cell.dataset.value ?? null, \
         cell.firstChild?.textContent ?? ''])])",
    );
    let rows = table.as_array().expect("it is a list");
    // What is recommended, and the herd with a pacer, stand among the policies that were asked for.
    let is_advised =
        |row: &&Value| row[0] == "recommended" || row[0].as_str().is_some_and(|policy| policy.ends_with(" + pacer"));
    let rows: Vec<&Value> = rows.iter().filter(|row| !is_advised(row)).collect();
    assert_eq!(rows.len(), records.len());
    let mut compared = 0;
    for (row, record) in rows.iter().zip(records) {
        assert_eq!(row[0], record["policy"]);
        for cell in row[1].as_array().expect("it is a list") {
            let (name, text) = (cell[0].as_str().expect("a name"), cell[2].as_str().expect("a text"));
            let said = &record[name];
            assert!(record.get(name).is_some(), "{name} is not in the JSON");
            let shown = cell[1].as_str().map(|value| value.parse::<f64>().expect("a number"));
            assert_eq!(shown, said.as_f64(), "{name}");
            assert!(text == "–" || means(text, said.as_f64()), "{name}: {text} is not {said}");
            compared += 1;
        }
    }
    assert!(compared >= records.len(), "there are figures");
}

/// Whether a text such as `1,234`, `25.8 s`, `2 min 43 s` or `12.2 %` says this number, to the digits that it has.
fn means(text: &str, value: Option<f64>) -> bool {
    let Some(value) = value else { return false };
    let mut sum = 0.0;
    let mut unit = 1.0;
    let words: Vec<&str> = text.split_whitespace().collect();
    for pair in words.chunks(2) {
        unit = match pair.get(1).copied().unwrap_or("") {
            "" | "s" => 1.0,
            "µs" => 1e-6,
            "ms" => 1e-3,
            "min" => 60.0,
            "h" => 3600.0,
            "%" => 0.01,
            "M" => 1e6,
            "G" => 1e9,
            _ => return false,
        };
        sum += pair[0].replace(',', "").parse::<f64>().unwrap_or(f64::NAN) * unit;
    }
    (sum - value).abs() <= 0.006 * value.abs() + 0.000_06 * unit
}

/// At least so many plots are drawn, and each has something in it: shapes of some size, inside.
#[track_caller]
fn draws(browser: &mut Browser, least: u64) {
    let plots = browser.value(
        "[...document.querySelectorAll('svg[role=img]')].map(svg => { \
           const shapes = [...svg.querySelectorAll('path, circle, rect.cell')].filter(s => !s.matches('.grid, .axis, .cross') && !s.closest('defs')); \
           const boxes = shapes.map(s => s.getBBox()).filter(b => b.width + b.height > 0); \
           return [svg.getAttribute('aria-label'), boxes.length, Math.max(0, ...boxes.map(b => b.width)), /NaN|Infinity/.test(svg.outerHTML), svg.clientWidth]; })",
    );
    let plots = plots.as_array().expect("it is a list");
    assert!(plots.len() as u64 >= least, "{} plots are fewer than {least}: {plots:?}", plots.len());
    for plot in plots {
        assert!(plot[1].as_u64() > Some(0) && plot[2].as_f64() > Some(3.0), "nothing is drawn: {plot}");
        assert_eq!(plot[3], false, "{plot}");
        assert!(plot[4].as_f64() > Some(200.0), "{plot}");
    }
}

/// Hovering shows values; dragging zooms, and a double click goes back; a policy can be hidden.
#[track_caller]
fn answers_the_mouse(browser: &mut Browser) {
    browser.value("document.querySelector('#load svg').scrollIntoView({ block: 'center' })");
    let place = browser.value(
        "(b => [b.left, b.top, b.width, b.height])(document.querySelector('#load svg').getBoundingClientRect())",
    );
    let [left, top, width, height] = [0, 1, 2, 3].map(|nth| place[nth].as_f64().expect("a number"));
    let mut mouse = |kind: &str, share: f64, clicks: u32| {
        let at = json!({ "type": kind, "x": left + width * share, "y": top + height / 2.0, "clickCount": clicks,
            "button": if kind == "mouseMoved" && clicks == 0 { "none" } else { "left" } });
        browser.ask("Input.dispatchMouseEvent", &at);
    };
    mouse("mouseMoved", 0.3, 0);
    let tip = browser.value("[document.getElementById('tip').hidden, document.getElementById('tip').textContent]");
    assert_eq!(tip[0], false);
    assert!(tip[1].as_str().is_some_and(|tip| tip.contains("retries") && tip.contains("/s")), "{tip}");
    let crosses = "document.querySelectorAll('#load .cross').length";
    assert_eq!(browser.value(crosses), 5, "all plots over time point at the same moment");

    let drawn =
        "document.querySelector('#load svg g.data').innerHTML + document.querySelector('#raster svg g.data').innerHTML";
    let before = browser.value(drawn);
    let mut mouse = |kind: &str, share: f64, clicks: u32| {
        let at = json!({ "type": kind, "x": left + width * share, "y": top + height / 2.0, "clickCount": clicks,
            "button": "left", "buttons": 1 });
        browser.ask("Input.dispatchMouseEvent", &at);
    };
    mouse("mousePressed", 0.2, 1);
    mouse("mouseMoved", 0.4, 1);
    mouse("mouseReleased", 0.4, 1);
    let zoomed = browser.value(drawn);
    assert_ne!(zoomed, before, "dragging zooms");
    browser.value("document.querySelector('#load svg').dispatchEvent(new MouseEvent('dblclick'))");
    assert_eq!(browser.value(drawn), before, "a double click goes back");

    browser.value(
        "[...document.querySelectorAll('#load .group button')].find(b => b.textContent.startsWith('first')).click()",
    );
    assert_ne!(browser.value(drawn), before, "the beginning is looked at");
    browser.value("[...document.querySelectorAll('#load .group button')].find(b => b.textContent === 'all').click()");
    assert_eq!(browser.value(drawn), before, "and all of it again");

    browser.value("document.querySelector('#connected .legend button').click()");
    assert_eq!(browser.value("document.querySelector('#load .panel').hidden"), true);
    browser.value("document.querySelector('#connected .legend button').click()");
    browser.value("[...document.querySelectorAll('#load .group button')].forEach(button => button.click())");
    draws(browser, 10);
}

/// In a narrow window nothing sticks out, and in the dark the ground is dark and text is light.
#[track_caller]
fn fits_a_telephone_in_the_dark(browser: &mut Browser) {
    let size = json!({ "width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": false });
    browser.ask("Emulation.setDeviceMetricsOverride", &size);
    let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    let light = browser.value("getComputedStyle(document.body).backgroundColor");
    browser.ask("Emulation.setEmulatedMedia", &dark);
    browser.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    assert_ne!(browser.value("getComputedStyle(document.body).backgroundColor"), light);
    assert_eq!(browser.value("document.documentElement.scrollWidth <= innerWidth"), true, "nothing sticks out");
    draws(browser, 10);
    // A section is a jump away; a table that goes on is shaded where it does, and can be moved.
    let jumps = browser.value(
        "[document.querySelectorAll('#jumps a').length, document.querySelectorAll('main section[id]').length, \
         [...document.querySelectorAll('#jumps a')].every(jump => document.querySelector(jump.getAttribute('href')))]",
    );
    assert!(jumps[0].as_u64() > Some(2) && jumps[0] == jumps[1] && jumps[2] == true, "{jumps}");
    let table = browser.value(
        "(node => [node.scrollWidth > node.clientWidth, getComputedStyle(node).overflowX, \
         getComputedStyle(node).backgroundImage.includes('gradient')])(document.querySelector('#numbers .scroll'))",
    );
    assert_eq!(table, json!([true, "auto", true]));
    let deviations = browser.value(
        "[...document.querySelectorAll('#table td small')].map(cell => cell.textContent).filter(text => \
         text.replace(/[^0-9.]/g, '').replace(/^[0.]+/, '').replace('.', '').replace(/0+$/, '').length > 3)",
    );
    assert_eq!(deviations, json!([]), "a deviation has three digits that count at most");
    assert!(browser.value("document.querySelectorAll('#table td small').length").as_u64() > Some(10));
    browser.ask("Emulation.clearDeviceMetricsOverride", &json!({}));
    browser.ask("Emulation.setEmulatedMedia", &json!({ "features": [] }));
}

/// What to do stands on the page without any script, and each policy's card says how safe it is.
#[test]
fn the_page_says_what_to_do() {
    let folder = herd();
    let records = report(&folder, &["herd.toml"]);
    let page = folder.read("report.html");
    let advice =
        page.split_once("id=\"recommended\"").expect("it is there").1.split_once("</section>").expect("it ends").0;
    assert!(advice.contains("Spread the first attempts over 22s"), "{advice}");
    assert!(advice.contains(records[0]["recommended"]["flags"].as_str().expect("a text")), "{advice}");
    assert!(advice.contains("[policy.recommended]\ncurve = &quot;constant&quot;"), "{advice}");

    let server = page.split_once("id=\"paced\"").expect("it is there").1.split_once("</section>").expect("it ends").0;
    assert!(server.contains("Simulated with the clients of &quot;full&quot;: 1.95 attempts a client"), "{server}");
    assert!(server.contains("[server]\npacer = { capacity = 50, horizon = &quot;1m&quot; }"), "{server}");
    assert_eq!(records[0]["paced"]["clients_of"], "full");

    let storm =
        ["open", "--rate", "60", "--capacity", "100", "--max-attempts", "2", "--outage", "20s+10s", "--for", "60s"];
    report(&folder, &storm);
    let page = folder.read("report.html");
    assert!(!page.contains("id=\"recommended\"") && !page.contains("id=\"paced\""));
    for words in ["stays in the storm", "Safe load: up to 50 calls a second", "Smallest fatal outage: "] {
        assert!(page.contains(words), "{words}");
    }
}

/// A fifth of the clients has got another policy; and layers between clients and a server that is down.
const ROLLOUT: &str = r#"
[clients]
count = 1000
[server]
capacity = 50
queue = 50
[policy.old]
base = "100ms"
cap = "10s"
jitter = "none"
max_attempts = "unlimited"
[policy.new]
base = "100ms"
cap = "10s"
max_attempts = "unlimited"
[[run]]
name = "rollout"
policy = "old"
rollout = { share = 0.2, policy = "new" }
"#;

const CHAIN: &str = r#"
[clients]
count = 100
[server]
capacity = 1000
failure = 1
[policy.retries]
base = "10ms"
max_attempts = 3
[[layer]]
name = "client"
deadline = "3s"
passes_deadline = true
[[layer]]
name = "gateway"
"#;

#[test]
fn the_page_and_the_terminal_tell_populations_and_layers() {
    let folder = Folder::new().file("rollout.toml", ROLLOUT).file("chain.toml", CHAIN);
    report(&folder, &["rollout.toml"]);
    let page = folder.read("report.html");
    let section = |page: &str, id: &str| {
        let rest = page.split_once(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("there is no {id}")).1;
        rest.split_once("</section>").expect("it ends").0.to_owned()
    };
    let harms = section(&page, "harms");
    assert!(harms.contains("rollout: old is better off for new. If new did as old does, "), "{harms}");
    assert!(page.contains("old: exponential 100ms * 2 up to 10s, no jitter, attempts unlimited; new: exponential"));
    assert!(section(&page, "missing").contains("There is no picture of base and cap: "));
    let said = folder.relent(&["simulate", "rollout.toml"]).stdout;
    assert!(said.contains("\nWhat populations do to each other, each changed by itself\n  rollout: "), "{said}");
    assert!(said.contains("\nrollout + pacer: old ") && said.contains("\nrollout + pacer: new "), "{said}");

    report(&folder, &["chain.toml"]);
    let page = folder.read("report.html");
    assert!(page.contains("Between the clients and the server: client &gt; gateway."), "{page}");
    assert!(
        page.contains("client: exponential 10ms * 2 up to 1m4s, full jitter, 3 attempts, 3s for a call, and tells")
    );
    assert!(section(&page, "missing").contains("layers with policies of their own have no one number of attempts"));
    let helps = section(&page, "helps");
    assert!(
        helps.contains("retry at client only, and make one attempt everywhere else: 3 attempts a call instead of 9.")
    );
    assert!(helps.contains("src=\"data:image/svg+xml,"), "it is drawn");
}
