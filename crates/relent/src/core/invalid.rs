//! Why settings make no sense: told as an error where they come from a file or a flag, and as a panic, which in a `const` is an
//! error of the compiler, where they stand in the source.

use core::fmt;

/// Why settings make no sense: of a [`Policy`](crate::Policy), or of a machine that protects a far side.
///
/// ```
/// use relent::Settings;
/// use std::time::Duration;
///
/// let invalid = Settings { cap: Some(Duration::from_millis(1)), ..Settings::default() }.policy().unwrap_err();
/// eprintln!("error: {}: {invalid}\nhint: {}", invalid.key, invalid.hint);
/// assert_eq!(invalid.key, "cap");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Invalid {
    /// The setting, by the name it has in policy files.
    pub key: &'static str,
    /// What is wrong with it.
    pub problem: &'static str,
    /// What to do.
    pub hint: &'static str,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.problem)
    }
}

impl core::error::Error for Invalid {}

/// More than the longest of them.
const LONGEST: usize = 256;

impl Invalid {
    /// A panic that says what is wrong and what to do, at the place of whoever called the builder.
    #[cold]
    #[track_caller]
    pub(crate) const fn refuse(self) -> ! {
        let (mut text, mut length) = ([0; LONGEST], 0);
        length = append(&mut text, length, self.problem);
        length = append(&mut text, length, "\nhint: ");
        length = append(&mut text, length, self.hint);
        match core::str::from_utf8(text.split_at(length).0) {
            Ok(text) => panic!("{}", text),
            // Cut in the middle of a character.
            Err(_) => panic!("{}", self.problem),
        }
    }
}

/// As much of it as there is room for; says where it ends.
const fn append(text: &mut [u8; LONGEST], mut at: usize, more: &str) -> usize {
    let (more, mut from) = (more.as_bytes(), 0);
    while from < more.len() && at < LONGEST {
        text[at] = more[from];
        (at, from) = (at + 1, from + 1);
    }
    at
}
