//! The head of a request or an answer, as it is shown: however many headers it has, looking for secrets in it takes as long as in one text.

use super::{HIDDEN, given::without_secrets_within, headers::header_within, most::Budget};
use std::borrow::Cow;

/// The longest value or path that is looked at, in bytes: twice what servers take of all headers together. Nothing is shown of one that is longer, so that
/// nobody is kept looking.
const LONGEST: usize = 16 << 10;

/// What there is to look with.
pub(crate) struct Head(Budget);

impl Head {
    pub(crate) fn new() -> Head {
        Head(Budget::of(""))
    }

    /// The value of one of its headers.
    pub(crate) fn header<'a>(&mut self, name: &str, value: &'a str) -> Cow<'a, str> {
        if value.len() > LONGEST {
            return Cow::Borrowed(HIDDEN);
        }
        self.0.also(value);
        header_within(name, value, &mut self.0)
    }

    /// What is asked for, in its first line.
    pub(crate) fn path(&self, path: &str) -> String {
        if path.len() > LONGEST { HIDDEN.to_owned() } else { super::path(path) }
    }

    /// Its lines, once its headers were looked at: a name may be a secret, too, or a value may be one since something was left out. What is
    /// looked for takes no notice of the ends of lines, which are our own here.
    pub(crate) fn lines(mut self, head: &str) -> String {
        head.lines().map(|line| without_secrets_within(line, &mut self.0).into_owned() + "\n").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_kept_looking() {
        let mut head = Head::new();
        let most = "a".repeat(LONGEST);
        assert_eq!(head.header("Via", &most), most);
        assert_eq!(head.header("Via", &(most.clone() + "a")), HIDDEN);
        assert_eq!(head.path(&most), most);
        assert_eq!(head.path(&(most + "a")), HIDDEN);
    }
}
