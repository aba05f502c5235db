//! `-w FORMAT`: what is printed at the end, in curl's words.

use super::redirect::{self, Hop};
use crate::{
    breaks::without_messages_within,
    escape::escape_bytes,
    redact, regular,
    talk::{Fault, plain},
};
use http::HeaderMap;
use reqwest::Response;
use std::{borrow::Cow, net::SocketAddr, time::Duration};
use url::Url;

/// A format, read.
#[derive(Debug)]
pub(super) struct WriteOut(Vec<Item>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Text(String),
    Variable(Variable),
    Header(String),
}

/// The last response, as far as a format may ask for it.
pub(super) struct Seen {
    status: u16,
    version: String,
    method: String,
    url: Url,
    redirects: usize,
    redirect_url: Option<String>,
    remote: Option<SocketAddr>,
    headers: HeaderMap,
}

/// How the call ended.
pub(super) struct End<'a> {
    /// The response of the last attempt, if there was one.
    pub(super) seen: Option<&'a Seen>,
    /// The URL that was asked for.
    pub(super) url: &'a Url,
    /// The bytes of the body.
    pub(super) bytes: u64,
    /// The attempts.
    pub(super) attempts: u32,
    /// From the beginning to the end, waits included.
    pub(super) elapsed: Duration,
    /// What relent exits with.
    pub(super) exit: u8,
    /// Where the body went, if not to stdout.
    pub(super) file: Option<&'a str>,
    /// The columns of the terminal that would obey what a server wrote, if it is one.
    pub(super) columns: Option<usize>,
}

macro_rules! variables {
    ($($variant:ident $name:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Variable { $($variant,)* }

        impl Variable {
            const NAMES: &'static [(&'static str, Variable)] = &[$(($name, Variable::$variant),)*];
        }
    };
}

variables! {
    Code "http_code",
    Code2 "response_code",
    Bytes "size_download",
    Total "time_total",
    Url "url",
    Effective "url_effective",
    Redirect "redirect_url",
    Redirects "num_redirects",
    Retries "num_retries",
    Type "content_type",
    Version "http_version",
    Method "method",
    Scheme "scheme",
    RemoteIp "remote_ip",
    RemotePort "remote_port",
    File "filename_effective",
    Exit "exitcode",
}

impl Seen {
    /// What a response to a request says.
    pub(super) fn of(response: &Response, hop: &Hop) -> Seen {
        let location = redirect::location(response.status(), response.headers());
        Seen {
            status: response.status().as_u16(),
            version: format!("{:?}", response.version()).trim_start_matches("HTTP/").replace("2.0", "2"),
            method: hop.method.to_string(),
            url: hop.url.clone(),
            redirects: hop.number,
            redirect_url: location.and_then(|location| Some(hop.url.join(&location).ok()?.into())),
            remote: response.remote_addr(),
            headers: response.headers().clone(),
        }
    }
}

impl WriteOut {
    /// Reads a format: a text, `@FILE` or `@-`.
    pub(super) fn parse(given: &str) -> Result<WriteOut, Fault> {
        match given.strip_prefix('@') {
            None => WriteOut::of_text(given),
            Some(file) => WriteOut::of_text(&regular::text(file, LONGEST).map_err(|error| {
                Fault::new(format!("--write-out: cannot read {file:?}: {}", plain(&error)))
                    .hint("@FILE reads the format from a file")
            })?),
        }
    }

    /// Reads the text of a format.
    pub(super) fn of_text(text: &str) -> Result<WriteOut, Fault> {
        let mut items = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['%', '\\']) {
            items.push(Item::Text(rest[..at].to_owned()));
            let (item, length) = item(&rest[at..])?;
            items.push(item);
            rest = &rest[at + length..];
        }
        items.push(Item::Text(rest.to_owned()));
        Ok(WriteOut(items))
    }

    /// The text at the end of a call; on a terminal no line of it is a message of relent's.
    pub(super) fn text(&self, end: &End<'_>) -> Vec<u8> {
        let text: Vec<u8> = self.0.iter().flat_map(|item| item.text(end)).collect();
        match end.columns {
            Some(columns) => {
                let text = String::from_utf8_lossy(&text);
                let shown = shown(&text);
                // What moves the cursor or colours words may put a message together: it is left out then.
                let text = match without_messages_within(&shown, usize::MAX) {
                    Cow::Owned(_) => &shown,
                    Cow::Borrowed(_) => &*text,
                };
                without_messages_within(text, columns).into_owned().into_bytes()
            }
            None => text,
        }
    }
}

/// What a terminal shows of a text, without the format's escape sequences (ECMA-48): who goes back to where a line begins begins one.
fn shown(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text.chars());
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' | '\u{9b}' => match if c == '\u{9b}' { Some('[') } else { rest.next() } {
                // Colours go nowhere; whatever else it is may go to where a line begins.
                Some('[') => {
                    let end = rest.find(|c| matches!(c, '@'..='~'));
                    out.extend((end != Some('m')).then_some('\n'));
                }
                // For the keyboard, or a title, with an end of its own: what stands in it is left out with it.
                Some('P' | ']' | 'X' | '^' | '_') => {
                    let mut is_escaped = false;
                    let _ = rest.find(|c| {
                        let is_end = matches!(c, '\u{7}' | '\u{9c}') || (is_escaped && *c == '\\');
                        is_escaped = *c == '\u{1b}';
                        is_end
                    });
                }
                Some(' '..='/') => {
                    let _ = rest.next();
                }
                _ => out.push('\n'),
            },
            '\r' | '\u{8}' | '\u{b}' | '\u{c}' | '\u{85}' => out.push('\n'),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// The most bytes of a file with a format.
const LONGEST: u64 = 1 << 20;

/// What begins with `%` or `\`, and how long it is.
fn item(text: &str) -> Result<(Item, usize), Fault> {
    let literal = |literal: &str, length| Ok((Item::Text(literal.to_owned()), length));
    for (sign, meaning) in [("\\n", "\n"), ("\\t", "\t"), ("\\r", "\r"), ("\\\\", "\\"), ("%%", "%")] {
        if text.starts_with(sign) {
            return literal(meaning, 2);
        }
    }
    let within =
        |open: &str| text.strip_prefix(open)?.split_once('}').map(|(name, _)| (name, open.len() + name.len() + 1));
    if let Some((name, length)) = within("%header{") {
        return Ok((Item::Header(name.to_owned()), length));
    }
    let Some((name, length)) = within("%{") else { return literal(&text[..1], 1) };
    let known = Variable::NAMES.iter().find(|(known, _)| *known == name);
    known.map(|(_, variable)| (Item::Variable(*variable), length)).ok_or_else(|| {
        let names: Vec<&str> = Variable::NAMES.iter().map(|(name, _)| *name).collect();
        Fault::new(format!("--write-out: nothing is called {:?}", redact::value(name)))
            .hint(format!("there are {} and %header{{NAME}}", names.join(", ")))
    })
}

impl End<'_> {
    /// What others wrote: byte for byte as data, and as a line that no terminal obeys.
    fn plain(&self, text: Vec<u8>) -> Vec<u8> {
        match self.columns {
            // Whatever stands before it there: the format may go back to where a line begins.
            Some(_) => without_messages_within(&escape_bytes(&text), usize::MAX).into_owned().into_bytes(),
            None => text,
        }
    }
}

impl Item {
    fn text(&self, end: &End<'_>) -> Vec<u8> {
        match self {
            Item::Text(text) => text.clone().into_bytes(),
            Item::Variable(variable) => end.plain(variable.text(end).into_bytes()),
            Item::Header(name) => {
                let value = end.seen.and_then(|seen| seen.headers.get(name.as_str()));
                end.plain(value.map(|value| value.as_bytes().to_owned()).unwrap_or_default())
            }
        }
    }
}

impl Variable {
    fn text(self, end: &End<'_>) -> String {
        let seen = |f: fn(&Seen) -> String| end.seen.map(f).unwrap_or_default();
        match self {
            Variable::Code | Variable::Code2 => format!("{:03}", end.seen.map_or(0, |seen| seen.status)),
            Variable::Bytes => end.bytes.to_string(),
            Variable::Total => format!("{:.6}", end.elapsed.as_secs_f64()),
            Variable::Url => end.url.to_string(),
            Variable::Effective => end.seen.map_or(end.url, |seen| &seen.url).to_string(),
            Variable::Redirect => seen(|seen| seen.redirect_url.clone().unwrap_or_default()),
            Variable::Redirects => end.seen.map_or(0, |seen| seen.redirects).to_string(),
            Variable::Retries => end.attempts.saturating_sub(1).to_string(),
            Variable::Type => seen(|seen| {
                let value = seen.headers.get(http::header::CONTENT_TYPE);
                value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
            }),
            Variable::Version => end.seen.map_or("0".to_owned(), |seen| seen.version.clone()),
            Variable::Method => seen(|seen| seen.method.clone()),
            Variable::Scheme => end.seen.map_or(end.url, |seen| &seen.url).scheme().to_owned(),
            Variable::RemoteIp => seen(|seen| seen.remote.map(|remote| remote.ip().to_string()).unwrap_or_default()),
            Variable::RemotePort => seen(|seen| seen.remote.map_or(0, |remote| remote.port()).to_string()),
            Variable::File => end.file.unwrap_or_default().to_owned(),
            Variable::Exit => end.exit.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(format: &str) -> String {
        shown(format, None, None)
    }

    fn shown(format: &str, seen: Option<&Seen>, columns: Option<usize>) -> String {
        let url = Url::parse("http://a/b").unwrap();
        let elapsed = Duration::from_millis(1500);
        let end = End { seen, url: &url, bytes: 7, attempts: 3, elapsed, exit: 1, file: None, columns };
        String::from_utf8(WriteOut::parse(format).unwrap().text(&end)).unwrap()
    }

    fn hop() -> Hop {
        Hop {
            method: http::Method::GET,
            url: Url::parse("http://a/b").unwrap(),
            headers: HeaderMap::new(),
            has_body: false,
            number: 0,
            says_a_secret: false,
            host_says_a_secret: false,
        }
    }

    #[test]
    fn formats_are_curls() {
        assert_eq!(text("%{http_code} %{size_download}\\n"), "000 7\n");
        assert_eq!(text("100%% %x \\q %{time_total}s"), "100% %x \\q 1.500000s");
        assert_eq!(text("%{num_retries}%header{x}|%{exitcode}|%{url_effective}"), "2|1|http://a/b");
        assert_eq!(text("%{open"), "%{open");
        assert_eq!(text(""), "");
    }

    #[test]
    fn what_a_server_says_is_no_message_on_a_terminal() {
        let answer = http::Response::builder()
            .header("Content-Type", "error: forged")
            .header("X-Long", "a ".repeat(7) + "error: y");
        let seen = Seen::of(&Response::from(answer.body("").unwrap()), &hop());
        let shown = |format: &str, columns| shown(format, Some(&seen), columns);
        assert_eq!(shown("%{content_type}\\n%header{x-long}\\n", None), "error: forged\na a a a a a a error: y\n");
        for (before, shown_before) in [("", ""), ("x\\r", "x\r"), ("\u{1b}[31m", "\u{1b}[31m")] {
            let format = format!("{before}%{{content_type}}\\n");
            assert!(shown(&format, Some(80)).ends_with(&format!("{shown_before}  error: forged\n")), "{format}");
        }
        assert_eq!(shown("1\\t%header{x-long}\\n", Some(24)), "1\ta a a a a a a\n  error: y\n");
        assert_eq!(shown("e%{exitcode}\\n%header{x-long}\\n", Some(14)), "e1\na a a a a a\n  a error: y\n");
    }

    /// By going back, by colours in between, or by both.
    #[test]
    fn nor_is_what_a_format_puts_together_there() {
        let answer =
            http::Response::builder().header("Content-Type", "err").header("X-B", "or: forged").body("").unwrap();
        let seen = Seen::of(&Response::from(answer), &hop());
        let told = |format: &str, columns| shown(format, Some(&seen), columns);
        for format in [
            "\\r%{content_type}%header{x-b}\\n",
            "\u{1b}[1m%{content_type}\u{1b}[0m%header{x-b}\n",
            "\u{9b}2K%{content_type}%header{x-b}\n",
            "a\u{1b}]0;title\u{7}\\r%{content_type}\u{1b}(B%header{x-b}\n",
            "e\u{8}%{content_type}%header{x-b}\n",
            "a\u{c}%{content_type}%header{x-b}\n",
            "a\u{1b}[2K\u{1b}[1G%{content_type}%header{x-b}\n",
            "a\u{1b}[3D%{content_type}%header{x-b}\n",
            "a\u{1b}E%{content_type}%header{x-b}\n",
            "\u{1b}]0;C:\\\\x\u{1b}\\\\%{content_type}%header{x-b}\n",
        ] {
            let shown = told(format, Some(80));
            assert!(shown.contains("  error: forged\n") && !shown.contains('\u{1b}'), "{format:?}: {shown:?}");
            assert!(told(format, None).contains("or: forged"), "{format:?}");
        }
        let fine = "\u{1b}[1m%header{x-b}\u{1b}[0m\\r\\n";
        assert_eq!(told(fine, Some(80)), "\u{1b}[1mor: forged\u{1b}[0m\r\n");
    }

    #[test]
    fn what_is_not_known_is_said_at_once() {
        assert!(WriteOut::parse("%{time_dream}").is_err());
    }
}
