//! The simulator against what is known: algebra, the literature, and other simulators.

mod herd;
