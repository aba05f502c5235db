//! Texts that the system keeps: names in them are whatever somebody made of them, in any encoding.

use std::{fs, io, path::Path};

/// One of them, with what is no text in it as a sign that says so.
pub(crate) fn read(path: impl AsRef<Path>) -> io::Result<String> {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_text_hides_nothing_beside_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"a\xfc\nann:7\n").unwrap();
        assert_eq!(read(file.path()).unwrap(), "a\u{fffd}\nann:7\n");
        assert_eq!(read(file.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }
}
