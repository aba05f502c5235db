//! The head of a request or an answer, as it is shown: however many headers it has, looking for secrets in it takes as long as in one text.

use super::{given::without_secrets_within, headers::header_within, most::Budget};
use std::borrow::Cow;

/// What there is to look with.
pub(crate) struct Head(Budget);

impl Head {
    pub(crate) fn new() -> Head {
        Head(Budget::of(""))
    }

    /// The value of one of its headers.
    pub(crate) fn header<'a>(&mut self, name: &str, value: &'a str) -> Cow<'a, str> {
        self.0.also(value);
        header_within(name, value, &mut self.0)
    }

    /// Its lines, once its headers were looked at: a name may be a secret, too, or a value may be one since something was left out. What is
    /// looked for takes no notice of the ends of lines, which are our own here.
    pub(crate) fn lines(mut self, head: &str) -> String {
        head.lines().map(|line| without_secrets_within(line, &mut self.0).into_owned() + "\n").collect()
    }
}
