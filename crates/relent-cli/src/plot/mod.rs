//! Plots: what a chart shows ([`Chart`]), and the two ways it is drawn ([`svg`] for files, [`terminal`] for people at
//! one).
//!
//! Both are made for values that lie in a band, as delays with jitter do: every point has a low, a middle and a high.
//! A series without a band has the three equal. Nothing here knows what is plotted.

mod bars;
mod chart;
mod grid;
pub mod panels;
pub mod svg;
pub mod terminal;

pub use self::{
    bars::bars,
    chart::{Chart, Mark, Point, Series, Tick, count_ticks, duration_ticks, number_ticks},
    grid::Grid,
};
