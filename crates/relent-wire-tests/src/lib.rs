//! Nothing: this crate is its tests and examples. They are apart from the library's own because of what they depend on.
