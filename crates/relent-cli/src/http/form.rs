//! `-F name=value`: a form as `multipart/form-data` (RFC 7578), the same bytes in every attempt.

use super::body::Piece;
use crate::{escape::escape, regular, talk::Fault};
use http::HeaderValue;
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
        let (source, extras) = match value.strip_prefix(['@', '<']) {
            Some(file) => file.split_once(';').map_or((file, ""), |(file, extras)| (file, extras)),
            None => {
                let begins = [";type=", ";filename="].into_iter().filter_map(|extra| value.find(extra)).min();
                begins.map_or((value, ""), |at| (&value[..at], &value[at + 1..]))
            }
        };
        let (mut kind, mut file_name) = (None, None);
        for extra in extras.split(';').filter(|extra| !extra.trim().is_empty()) {
            match extra.trim().split_once('=') {
                Some(("type", given)) if HeaderValue::from_str(given).is_ok() => kind = Some(given.to_owned()),
                Some(("filename", given)) => file_name = Some(given.trim_matches('"').to_owned()),
                _ => return Err(bad("what stands after a semicolon is neither type=... nor filename=...")),
            }
        }
        let content =
            if value.starts_with(['@', '<']) { Content::File(source.into()) } else { Content::Text(source.into()) };
        if let (Content::File(path), true) = (&content, value.starts_with('@')) {
            let last = path.file_name().map(|name| name.to_string_lossy().into_owned());
            file_name = file_name.or(last);
            kind = kind.or_else(|| Some(kind_of(source).to_owned()));
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
        assert_eq!(head("a=@x;filename=y\"z;type=a/b"), format!("{begin}; filename=\"y%22z\"|Content-Type: a/b||"));
        assert_eq!(head("a\r\nX: y=1"), "--B|Content-Disposition: form-data; name=\"a%0D%0AX: y\"||");
        for bad in ["a", "=b", "a=@x;y", "a=@x;type=a\r\nX: y"] {
            assert!(Field::parse(bad).is_err(), "{bad}");
        }
    }
}
