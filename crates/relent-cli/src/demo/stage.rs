//! Where the demo is shown: plain lines in a pipe; on a terminal some emphasis and a picture that moves.

use crate::output;
use std::io::{self, IsTerminal, Write};

/// Standard output, and what may be done with it.
pub(super) struct Stage {
    emphasis: bool,
    moving: bool,
    /// Lines of the picture that is shown and will be drawn over.
    drawn: usize,
}

impl Stage {
    pub(super) fn new() -> Stage {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let smart = io::stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        Stage { emphasis: smart && !set("NO_COLOR"), moving: smart && is_wide(), drawn: 0 }
    }

    /// Whether a picture that moves would be seen.
    pub(super) fn is_moving(&self) -> bool {
        self.moving
    }

    /// A heading.
    pub(super) fn heading(&self, text: &str) -> io::Result<()> {
        self.line(&self.emphasised(text, "1"))
    }

    /// A line.
    pub(super) fn line(&self, text: &str) -> io::Result<()> {
        let mut stdout = output::open()?;
        writeln!(stdout, "{text}")?;
        stdout.flush()
    }

    /// An explanation of the line above.
    pub(super) fn aside(&self, text: &str) -> io::Result<()> {
        self.line(&self.emphasised(&format!("      {text}"), "2"))
    }

    /// A picture, over the one before.
    pub(super) fn picture(&mut self, text: &str) -> io::Result<()> {
        let mut stdout = output::open()?;
        if self.drawn > 0 {
            write!(stdout, "\x1b[{}A", self.drawn)?;
        }
        for line in text.lines() {
            let erase = if self.moving { "\x1b[2K" } else { "" };
            writeln!(stdout, "{erase}{line}")?;
        }
        self.drawn = text.lines().count();
        stdout.flush()
    }

    /// What is shown stays.
    pub(super) fn keep(&mut self) {
        self.drawn = 0;
    }

    fn emphasised(&self, text: &str, code: &str) -> String {
        if self.emphasis { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Whether the pictures fit: drawing over lines that the terminal has broken makes a mess.
fn is_wide() -> bool {
    const WIDEST: u16 = 64;
    rustix::termios::tcgetwinsize(io::stdout()).is_ok_and(|size| size.ws_col >= WIDEST)
}
