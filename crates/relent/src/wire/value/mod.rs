//! How values of headers are read and written, apart from which headers there are: those are in `dialect.rs`.

pub(super) mod attempt;
pub(super) mod deadline;
pub(super) mod pushback;

pub(super) use self::pushback::Clock;
pub use self::pushback::Pushback;
