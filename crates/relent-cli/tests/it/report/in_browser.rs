//! The page of `relent simulate --html` in a real browser: it shows the numbers, draws, answers and loads nothing.

use super::{CHAIN, STORM, herd, report};
use crate::{binary::Folder, browser::Browser};
use serde_json::{Value, json};

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

/// Somebody who gets something into the page does not get it run, loaded or shown in another way: only what relent wrote is.
#[test]
fn nothing_runs_in_the_page_but_its_own_script() {
    const EVIL: &str = "<script>document.documentElement.dataset.evil = 'a script'</script>\n\
        <img src=\"data:,\" onerror=\"document.documentElement.dataset.evil = 'an attribute'\">\n\
        <script src=\"data:text/javascript,document.documentElement.dataset.evil='data'\"></script>\n\
        <a id=\"link\" href=\"javascript:document.documentElement.dataset.evil='a link'\">link</a>\n\
        <iframe srcdoc=\"<script>parent.document.documentElement.dataset.evil='a frame'</script>\"></iframe>\n\
        <style>h1 { display: none }</style>\n<p id=\"styled\" style=\"display:none\">shown</p>\n<main id=\"main\">";
    let folder = herd();
    let records = report(&folder, &["herd.toml", "--seeds", "1", "--pictures", "none"]);
    let page = folder.read("report.html");
    assert_eq!(page.matches("<main id=\"main\">").count(), 1);
    let folder = folder.file("evil.html", &page.replace("<main id=\"main\">", EVIL));
    let mut browser = Browser::start();
    browser.open(&folder.path().join("evil.html"));
    shows_the_numbers(&mut browser, &records);
    browser.value("document.getElementById('link').click()");
    browser.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    let state = browser.value(
        "[document.documentElement.dataset.evil ?? 'nothing ran', \
         ...['h1', '#styled'].map(which => getComputedStyle(document.querySelector(which)).display)]",
    );
    assert_eq!(state, json!(["nothing ran", "block", "block"]));
    let refused = browser.complaints.iter().filter(|said| said.contains("Content Security Policy")).count();
    assert!(refused >= 6, "the browser says what it refused: {:#?}", browser.complaints);
}

/// What the page's own rules for styles must not take from it: how lines are laid out, and the colours of a picture.
#[test]
fn the_page_and_its_pictures_have_their_styles() {
    let folder = herd().file("chain.toml", CHAIN);
    let mut browser = Browser::start();
    report(&folder, &["herd.toml", "--seeds", "1", "--pictures", "none"]);
    browser.open(&folder.path().join("report.html"));
    let lines =
        "(style => [style.display, style.whiteSpaceCollapse])(getComputedStyle(document.querySelector('code.lines')))";
    assert_eq!(browser.value(lines), json!(["block", "preserve"]));
    report(&folder, &["chain.toml"]);
    browser.open(&folder.path().join("report.html"));
    let colours = browser.value(
        "(async image => { await image.decode(); const canvas = document.createElement('canvas'); \
         [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight]; \
         const context = canvas.getContext('2d'); context.drawImage(image, 0, 0); \
         const data = context.getImageData(0, 0, canvas.width, canvas.height).data; let found = 0; \
         for (let at = 0; at < data.length; at += 4) \
         found += Math.max(data[at], data[at + 1], data[at + 2]) - Math.min(data[at], data[at + 1], data[at + 2]) > 60; \
         return found })(document.querySelector('#helps img'))",
    );
    assert!(colours.as_u64() > Some(100), "a picture without its style is black: {colours}");
    assert_eq!(browser.complaints, [""; 0]);
}
