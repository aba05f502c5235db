//! How it is computed: the queue of events, the sorting of it, random draws, threads, memory, and the engines that count clients
//! instead of naming them. Nothing here knows what happens in a world, except for the herds that are counted.

mod arrival_times;
pub(crate) mod bulk;
pub(crate) mod calendar;
pub(crate) mod control;
pub(crate) mod draws;
pub(crate) mod memory;
pub(crate) mod parallel;
mod radix_sort;
pub(crate) mod task;
pub(crate) mod travel;
