//! `-F name=value`: a form as `multipart/form-data` (RFC 7578), the same bytes in every attempt.

use super::body::Piece;
use crate::{escape::escape, regular, talk::Fault};
use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use std::path::PathBuf;

const HINT: &str = "write it like name=text, name=@FILE, name=<FILE or name=@FILE;type=text/csv;filename=data.csv";

/// The body that all `--form` together mean, and its type.
pub(super) fn resolve(fields: &[String], boundary: u128) -> Result<(Vec<Piece>, HeaderValue), Fault> {
    let boundary = format!("relent-{boundary:032x}");
    let mut pieces = Vec::new();
    for field in fields {
        let field = Field::parse(field)?;
        pieces.push(Piece::Text(field.head(&boundary).into()));
        pieces.push(field.content.check()?);
        pieces.push(Piece::Text("\r\n".into()));
    }
    pieces.push(Piece::Text(format!("--{boundary}--\r\n").into()));
    let kind = format!("multipart/form-data; boundary={boundary}");
    Ok((pieces, HeaderValue::from_str(&kind).expect("letters and digits are a header value")))
}

/// A type of the caller's for a form gets the boundary by which its parts are told from each other.
pub(super) fn set_type(headers: &mut HeaderMap, made: HeaderValue) -> Result<(), Fault> {
    let given = headers.get_all(CONTENT_TYPE).iter().map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
    let kind = match &given.collect::<Vec<_>>()[..] {
        [] => made,
        [given] if is_of_parts(given) => {
            let made = made.to_str().unwrap_or_default();
            let boundary = made.split_once(';').map_or("", |(_, boundary)| boundary);
            let kind = format!("{};{boundary}", given.trim_end_matches([' ', ';']));
            HeaderValue::from_str(&kind).map_err(|_| no_type_of_a_form())?
        }
        _ => return Err(no_type_of_a_form()),
    };
    headers.insert(CONTENT_TYPE, kind);
    Ok(())
}

/// Whether a type is one of a body in parts, and does not say what parts them.
fn is_of_parts(kind: &str) -> bool {
    let kind = kind.trim_start().to_ascii_lowercase();
    kind.starts_with("multipart/") && !kind.contains("boundary")
}

fn no_type_of_a_form() -> Fault {
    Fault::new("-F sends a form, and the Content-Type that -H sets is none of one, or says by what its parts are told from each other")
        .hint("leave the header out: -F says it, and what the boundary is; -d sends a body of another type")
}

/// A field of a form.
pub(super) struct Field {
    name: String,
    content: Content,
    file_name: Option<String>,
    kind: Option<String>,
}

enum Content {
    Text(String),
    File(PathBuf),
}

impl Content {
    fn check(self) -> Result<Piece, Fault> {
        let path = match self {
            Content::Text(text) => return Ok(Piece::Text(text.into())),
            Content::File(path) => path,
        };
        let shown = escape(&path.to_string_lossy()).into_owned();
        let piece = regular::read(&path).and_then(|file| Piece::of_file(&path, &file));
        piece.map_err(|error| {
            Fault::new(format!("cannot read {shown}: {}", crate::talk::plain(&error))).hint(HINT).by(&error)
        })
    }
}

impl Field {
    /// What one `--form` means; nothing is read yet.
    pub(super) fn parse(text: &str) -> Result<Field, Fault> {
        let bad = |what: &str| Fault::new(format!("--form: {what}")).hint(HINT);
        let (name, value) = text.split_once('=').ok_or_else(|| bad("a field has no ="))?;
        if name.is_empty() {
            return Err(bad("a field has no name"));
        }
        let of_a_file = value.strip_prefix(['@', '<']);
        let given = of_a_file.unwrap_or(value);
        let (source, mut rest) = match quoted_word(given) {
            Some(quoted) => quoted,
            None => {
                // A text may have semicolons of its own.
                let mut ends = given.match_indices(';').map(|(at, _)| at);
                let end = ends.find(|at| of_a_file.is_some() || extra(&given[at + 1..]).is_some());
                let (source, rest) = given.split_at(end.unwrap_or(given.len()));
                (source.to_owned(), rest)
            }
        };
        let (mut kind, mut file_name) = (None::<String>, None);
        while let Some(behind) = rest.strip_prefix(';') {
            let (piece, next) = behind.split_at(behind.find(';').unwrap_or(behind.len()));
            rest = next;
            match (extra(behind), &mut kind) {
                (Some((Extra::Kind, _)), _) => kind = piece.split_once('=').map(|(_, kind)| kind.trim().to_owned()),
                (Some((Extra::FileName, word)), _) => {
                    let (name, behind) = quoted_word(word).unwrap_or_else(|| {
                        let (name, behind) = word.split_at(word.find(';').unwrap_or(word.len()));
                        (name.trim().to_owned(), behind)
                    });
                    (file_name, rest) = (Some(name), behind);
                }
                (None, _) if piece.trim().is_empty() => {}
                // Its parameters, as a charset.
                (None, Some(kind)) => kind.extend([";", piece]),
                (None, None) => return Err(bad("what stands after a semicolon is neither type=... nor filename=...")),
            }
        }
        if kind.as_ref().is_some_and(|kind| HeaderValue::from_str(kind).is_err()) {
            return Err(bad("a type has signs that no header may have"));
        }
        let file = source.clone();
        let content = if of_a_file.is_some() { Content::File(source.into()) } else { Content::Text(source) };
        if let (Content::File(path), true) = (&content, value.starts_with('@')) {
            let last = path.file_name().map(|name| name.to_string_lossy().into_owned());
            file_name = file_name.or(last);
            kind = kind.or_else(|| Some(kind_of(&file).to_owned()));
        }
        Ok(Field { name: name.to_owned(), content, file_name, kind })
    }

    /// What stands before its content.
    pub(super) fn head(&self, boundary: &str) -> String {
        let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", quoted(&self.name));
        if let Some(file_name) = &self.file_name {
            head.push_str(&format!("; filename=\"{}\"", quoted(file_name)));
        }
        if let Some(kind) = &self.kind {
            head.push_str(&format!("\r\nContent-Type: {kind}"));
        }
        head + "\r\n\r\n"
    }
}

/// What may follow a value behind a semicolon.
enum Extra {
    Kind,
    FileName,
}

/// Which of them a text begins with, as curl reads it, and what stands behind its `=`.
fn extra(text: &str) -> Option<(Extra, &str)> {
    // Neither name has a semicolon in it.
    let (name, behind) = text.split_at(text.find(['=', ';'])?);
    let behind = behind.strip_prefix('=')?;
    let extra = match name.trim_start().to_ascii_lowercase().as_str() {
        "type" => Extra::Kind,
        "filename" => Extra::FileName,
        _ => return None,
    };
    Some((extra, behind.trim_start()))
}

/// What stands in quotes, as curl reads it, and what follows behind a semicolon. `None`: it begins with none, or something else follows.
fn quoted_word(text: &str) -> Option<(String, &str)> {
    let (mut word, mut chars) = (String::new(), text.strip_prefix('"')?.chars());
    loop {
        match chars.next()? {
            '"' => break,
            '\\' if chars.as_str().starts_with(['"', '\\']) => word.extend(chars.next()),
            c => word.push(c),
        }
    }
    let rest = chars.as_str().trim_start();
    (rest.is_empty() || rest.starts_with(';')).then_some((word, rest))
}

/// What browsers write for the characters that would end the value (WHATWG HTML, multipart/form-data).
fn quoted(text: &str) -> String {
    text.replace('\r', "%0D").replace('\n', "%0A").replace('"', "%22")
}

/// The type of a file by its name, as curl has it.
fn kind_of(file: &str) -> &'static str {
    match file.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).as_deref() {
        Some("gif") => "image/gif",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain",
        Some("htm" | "html") => "text/html",
        Some("pdf") => "application/pdf",
        Some("xml") => "application/xml",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> String {
        Field::parse(text).unwrap().head("B").replace("\r\n", "|")
    }

    #[test]
    fn fields_of_every_kind() {
        let begin = "--B|Content-Disposition: form-data; name=\"a\"";
        assert_eq!(head("a=b=c"), format!("{begin}||"));
        assert_eq!(head("a=b;type=text/csv"), format!("{begin}|Content-Type: text/csv||"));
        for text in ["a=b;filename=c;type=text/csv", "a=b;type=text/csv;filename=c"] {
            assert_eq!(head(text), format!("{begin}; filename=\"c\"|Content-Type: text/csv||"), "{text}");
        }
        assert_eq!(head("a=@d/x.PNG"), format!("{begin}; filename=\"x.PNG\"|Content-Type: image/png||"));
        assert_eq!(head("a=<x.png"), format!("{begin}||"));
        for text in ["a=b; FileName=\"c;\\\"d\" ;Type=a/b", "a=\"b\"; type=a/b;filename=\"c;\\\"d\""] {
            assert_eq!(head(text), format!("{begin}; filename=\"c;%22d\"|Content-Type: a/b||"), "{text}");
        }
        assert_eq!(
            head("a=b;type=a/b; charset=x;filename=c"),
            format!("{begin}; filename=\"c\"|Content-Type: a/b; charset=x||")
        );
        assert_eq!(head("a=@\"x;y.png\""), format!("{begin}; filename=\"x;y.png\"|Content-Type: image/png||"));
        assert_eq!(head("a=@x;filename=y\"z;type=a/b"), format!("{begin}; filename=\"y%22z\"|Content-Type: a/b||"));
        assert_eq!(head("a\r\nX: y=1"), "--B|Content-Disposition: form-data; name=\"a%0D%0AX: y\"||");
        for (text, sent) in [
            ("a=\"x;filename=b\"", "x;filename=b"),
            ("a=\"x\\\"\\\\\\y\"", "x\"\\\\y"),
            ("a=\"x\" y;z", "\"x\" y;z"),
            ("a=\"x", "\"x"),
            ("a=x;y=\"z\"; type=a/b", "x;y=\"z\""),
            ("a={\"b\": \"c;d\"}", "{\"b\": \"c;d\"}"),
        ] {
            match Field::parse(text).unwrap().content {
                Content::Text(text) => assert_eq!(text, sent),
                Content::File(_) => panic!("{text}"),
            }
        }
        for bad in ["a", "=b", "a=@x;y", "a=@x;type=a\r\nX: y"] {
            assert!(Field::parse(bad).is_err(), "{bad}");
        }
    }
}
