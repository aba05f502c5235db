//! The one way by which URLs and headers are printed or written: without what lets others in.
//!
//! Secret is what comes before the `@` of a URL, what is not plainly harmless in its query, its fragment, a header or a setting whose name
//! says so, and URLs inside of headers and messages alike. A text that is no URL may still have been meant as one, so it loses everything
//! before its last `@`. A secret that is part of a path (`/bot123:AAE/send`) cannot be told from a path, and is shown.
//!
//! What is left may still hold characters that a terminal obeys: [`escape`](crate::escape) comes after this.

mod basic;
mod chosen;
mod cut;
mod entities;
mod given;
mod head;
mod headers;
mod learnt;
mod letters;
mod lines;
mod looks;
mod most;
mod names;
mod pairs;
mod parts;
mod plain;
mod query;
mod said_again;
mod settings;
mod signed;
mod table;
mod texts;
mod told;
mod undone;
mod url;
mod users;
mod value;
mod words;

pub(crate) use chosen::file_of_a_field;
pub(crate) use given::{
    get_ready, know, know_name_in_a_path, know_place, know_secrets, know_store, name, without as without_given,
    without_secrets,
};
pub(crate) use head::Head;
pub use headers::header;
pub(crate) use headers::{hidden_of_header, is_known_header, is_of_urls};
pub(crate) use lines::{is_beneath_a_secret, lines_of_a_file};
pub use names::is_secret;
pub(crate) use pairs::secrets_of_a_pair;
pub(crate) use plain::narrowed;
pub use texts::text;
pub(crate) use texts::title;
pub(crate) use url::path;
pub use url::url;
pub use value::server;
pub(crate) use value::{value, word};

/// What stands in place of a secret.
pub const HIDDEN: &str = "***";

/// What a server says in one value is no longer than that; nobody is kept looking for what is secret in more, and nothing of it is shown.
pub(crate) fn within_reach(value: &str) -> &str {
    const LONGEST: usize = 16 << 10;
    if value.len() > LONGEST { HIDDEN } else { value }
}

/// The sign behind a user, and those that an input method writes for it.
const AT: [char; 3] = ['@', '\u{ff20}', '\u{fe6b}'];

#[cfg(test)]
mod tests;
