//! The engines by name.

use std::fmt;

/// The engine that did the arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Every client for itself, to the nanosecond.
    Exact,
    /// Clients without names, counted by time slot and number of attempts.
    Count,
    /// Expectations only: clients as a fluid.
    Fluid,
    /// None: real clients called a real server, and were [observed](crate::Observed).
    Real,
}

impl Engine {
    /// The name in flags and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Engine::Exact => "exact",
            Engine::Count => "count",
            Engine::Fluid => "fluid",
            Engine::Real => "real",
        }
    }

    /// The engine of this name, of those that can be asked for.
    pub fn parse(name: &str) -> Option<Engine> {
        [Engine::Exact, Engine::Count, Engine::Fluid].into_iter().find(|engine| engine.as_str() == name)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_read_by_their_names() {
        for engine in [Engine::Exact, Engine::Count, Engine::Fluid] {
            assert_eq!(Engine::parse(engine.as_str()), Some(engine));
        }
        assert_eq!((Engine::parse("auto"), Engine::parse("real")), (None, None));
    }
}
