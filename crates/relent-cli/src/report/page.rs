//! The page: words and JSON put into one HTML file, with its style and its script.

use super::{Report, advice, clients, data, pictures, words};
use crate::plot::svg::{self, escape};
use base64::{Engine, prelude::BASE64_STANDARD};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What the page may do: draw itself by this script and this style, each known by its hash, and by no other that somebody
/// got into it. It may load, send and submit nothing.
fn policy(script: &str, style: &str) -> String {
    let [script, style] = [script, style].map(|text| BASE64_STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; img-src data:; base-uri 'none'; \
         form-action 'none'"
    )
}

/// The page as one file that loads nothing.
pub(super) fn page(report: &Report) -> String {
    let (scenario, outcome) = (report.scenario, report.outcome);
    let facts = escape(&words::scenario(scenario, outcome).join(" "));
    let (script, style) = (format!("\n{SCRIPT}"), format!("\n{STYLE}{}", svg::variables()));
    let mut out = String::with_capacity(1 << 20);
    for part in [
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n",
        "<meta http-equiv=\"Content-Security-Policy\" content=\"",
        &policy(&script, &style),
        "\">\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n",
        "<meta name=\"color-scheme\" content=\"light dark\">\n",
        "<meta name=\"generator\" content=\"relent ",
        env!("CARGO_PKG_VERSION"),
        "\">\n<link rel=\"icon\" href=\"data:,\">\n<title>",
        &escape(report.title()),
        " · relent</title>\n<style>",
        &style,
        "</style>\n<header>\n<p class=\"brand\">relent simulate</p>\n<h1>",
        &escape(report.title()),
        "</h1>\n<p id=\"headline\"></p>\n",
        if outcome.interrupted {
            "<p class=\"cut\">This run was interrupted: it shows what was done.</p>\n"
        } else {
            ""
        },
        "<p class=\"facts\">",
        &facts,
        "</p>\n<p class=\"command\"><span>Made with</span> <code>",
        &escape(report.command),
        "</code> <button id=\"copy\">copy</button></p>\n</header>\n",
        &recommended(report),
        &paced(report),
        &harms(report),
        &helps(report),
        "<main id=\"main\"></main>\n",
        &missing(report),
        "<noscript><p>The plots and the table are drawn by a script in this page, which loads nothing.</p></noscript>\n",
        "<div id=\"tip\" role=\"status\" hidden></div>\n<script type=\"application/json\" id=\"records\">",
        &inert(outcome.to_json().trim()),
        "</script>\n<script type=\"application/json\" id=\"page\">",
        &inert(&data::data(report)),
        "</script>\n<script>",
        &script,
        "</script>\n</html>\n",
    ] {
        out.push_str(part);
    }
    out
}

/// What a herd should do; nothing where that cannot be said.
fn recommended(report: &Report) -> String {
    let advice = report.outcome.advice.as_ref();
    let Some(recommended) = advice.and_then(|advice| advice.recommended.as_ref()) else { return String::new() };
    let sentences = advice::recommendation(report.scenario, recommended);
    let policy = match &recommended.as_good {
        Some(_) => String::new(),
        None => format!(
            "<p><code>{}</code></p>\n<p><code class=\"lines\">{}</code></p>\n",
            escape(&recommended.flags()),
            recommended.toml().lines().map(escape).collect::<Vec<_>>().join("\n")
        ),
    };
    format!(
        "<section class=\"panel\" id=\"recommended\">\n<h3>Recommended</h3>\n<p>{}</p>\n{policy}</section>\n",
        escape(&sentences.join(" ")),
    )
}

/// What a pacer would do for a herd; nothing where none was tried.
fn paced(report: &Report) -> String {
    let Some(paced) = report.outcome.advice.as_ref().and_then(|advice| advice.paced.as_ref()) else {
        return String::new();
    };
    format!(
        "<section class=\"panel\" id=\"paced\">\n<h3>What the server can do</h3>\n<p>{}</p>\n\
         <p><code class=\"lines\">{}</code></p>\n</section>\n",
        escape(&advice::paced(report.outcome, paced).join(" ")),
        paced.toml().lines().map(escape).collect::<Vec<_>>().join("\n")
    )
}

/// What populations do to each other; nothing where there are none.
fn harms(report: &Report) -> String {
    let items: Vec<String> =
        advice::harms(report.outcome).iter().map(|words| format!("<li>{}</li>\n", escape(words))).collect();
    match items.is_empty() {
        true => String::new(),
        false => format!(
            "<section class=\"panel\" id=\"harms\">\n<h3>What populations do to each other, each changed by itself</h3>\n\
             <ul>\n{}</ul>\n</section>\n",
            items.concat()
        ),
    }
}

/// Which pictures there are not, and why, where the world would have them if its clients were all alike.
fn missing(report: &Report) -> String {
    let words = clients::missing(report.scenario);
    match words.is_empty() {
        true => String::new(),
        false => format!(
            "<section class=\"panel\" id=\"missing\">\n<h3>What is not drawn</h3>\n<p>{}</p>\n</section>\n",
            escape(&words.join(" "))
        ),
    }
}

/// What helps the calls of a stream or a chain; nothing where nothing was found.
fn helps(report: &Report) -> String {
    let records = &report.outcome.records;
    let remedies = report.outcome.advice.iter().flat_map(|advice| &advice.remedies);
    let items: String = remedies
        .filter_map(|remedied| {
            let before = records.iter().find(|record| record.policy == remedied.policy)?;
            let words = advice::remedy(before, remedied);
            Some(format!("<li><b>{}</b>: {}</li>\n", escape(&remedied.policy), escape(&words)))
        })
        .collect();
    match items.is_empty() {
        true => String::new(),
        false => format!(
            "<section class=\"panel\" id=\"helps\">\n<h3>What helps, each change tried by itself</h3>\n<ul>\n{items}</ul>\n{}</section>\n",
            pictures::remedies(report).map_or_else(String::new, |picture| drawn(&picture.svg))
        ),
    }
}

/// A picture as it would be in a file of its own, which follows the colours that the reader's machine asks for.
fn drawn(svg: &str) -> String {
    let quoted: String = svg
        .chars()
        .map(|c| match c {
            '%' | '#' | '<' | '>' | '"' | '&' | '\'' => format!("%{:02X}", u32::from(c)),
            '\n' => " ".to_owned(),
            c => c.to_string(),
        })
        .collect();
    format!(
        "<p class=\"scroll\"><img alt=\"Load over time, as it is and with each change\" src=\"data:image/svg+xml,{quoted}\"></p>\n"
    )
}

/// JSON that cannot end the script it stands in. Within JSON, `<` is in strings only, where it may be escaped.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent_sim::{Scenario, Service, World, simulate};

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let evil = "</script><script>alert(1)</script>";
        let mut scenario = Scenario::new(evil, World::Service(Service::herd(10, 5.0)));
        scenario.title = evil.into();
        let scenario = scenario.policy(evil, relent::Policy::default());
        let outcome = simulate(&scenario).unwrap();
        let report = Report { scenario: &scenario, outcome: &outcome, command: evil };
        let html = report.html();
        assert!(!html.contains("<script>alert"), "{html}");
        assert_eq!(html.matches("</script>").count(), 3);
        assert_eq!(html, report.html(), "the same bytes each time");
    }

    #[test]
    fn it_loads_nothing() {
        for asset in [STYLE, SCRIPT] {
            for word in ["http:", "https:", "import ", "@import", "fetch(", "XMLHttpRequest", "//cdn"] {
                let others = asset.replace("http://www.w3.org/2000/svg", "");
                assert!(!others.contains(word), "{word}");
            }
        }
    }
}
