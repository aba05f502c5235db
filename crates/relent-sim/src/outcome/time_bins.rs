//! Counters over time: bins that widen as the run goes on, and the peaks within windows that slide.

/// The most bins there are; when time goes beyond them, pairs are joined.
const BINS: usize = 2048;
/// The first width: a millisecond.
const FIRST_WIDTH: u64 = MILLISECOND;

/// Counters of `K` kinds in bins of time.
#[derive(Clone, Debug)]
pub(crate) struct TimeBins<const K: usize> {
    width: u64,
    most: usize,
    bins: Vec<[u64; K]>,
    /// The bin last used and where it ends: consecutive events mostly share it.
    current: usize,
    begins: u64,
}

impl<const K: usize> TimeBins<K> {
    pub(crate) fn new() -> TimeBins<K> {
        TimeBins::with_bins(BINS)
    }

    pub(crate) fn with_bins(most: usize) -> TimeBins<K> {
        TimeBins { width: FIRST_WIDTH, most, bins: vec![[0; K]], current: 0, begins: 0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, time: u64, kind: usize) {
        self.add_many(time, kind, 1);
    }

    #[inline]
    pub(crate) fn add_many(&mut self, time: u64, kind: usize, count: u64) {
        if time.wrapping_sub(self.begins) >= self.width {
            self.seek(time);
        }
        self.bins[self.current][kind] += count;
    }

    fn seek(&mut self, time: u64) {
        while time / self.width >= self.most as u64 {
            self.widen();
        }
        self.current = (time / self.width) as usize;
        self.begins = self.current as u64 * self.width;
        if self.bins.len() <= self.current {
            self.bins.resize(self.current + 1, [0; K]);
        }
    }

    fn widen(&mut self) {
        let joined = self.bins.chunks(2).map(|pair| {
            let mut sum = [0; K];
            for bin in pair {
                for (sum, count) in sum.iter_mut().zip(bin) {
                    *sum += count;
                }
            }
            sum
        });
        self.bins = joined.collect();
        self.width *= 2;
        self.current = 0;
        self.begins = 0;
    }

    pub(crate) const fn width(&self) -> u64 {
        self.width
    }

    pub(crate) fn widen_to(&mut self, width: u64) {
        while self.width < width {
            self.widen();
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.bins.len()
    }

    pub(crate) fn total(&self, kind: usize) -> u64 {
        (0..self.len()).map(|bin| self.bin(bin)[kind]).sum()
    }

    pub(crate) fn bin(&self, bin: usize) -> [u64; K] {
        self.bins.get(bin).copied().unwrap_or([0; K])
    }
}

/// The most events within a millisecond, a tenth of a second and a second. The wider windows slide from millisecond to
/// millisecond, so that a rush counts as much whenever it begins.
#[derive(Clone, Debug)]
pub(crate) struct Peaks {
    ends: u64,
    count: u64,
    most: u64,
    /// The events of the last second, by millisecond: a ring.
    last: Box<[u64; SECOND]>,
    tenth: Window,
    second: Window,
}

/// A second in milliseconds.
const SECOND: usize = 1000;

impl Peaks {
    pub(crate) fn new() -> Peaks {
        let (tenth, second) = (Window::new(100), Window::new(SECOND));
        Peaks { ends: MILLISECOND, count: 0, most: 0, last: Box::new([0; SECOND]), tenth, second }
    }

    /// Events of one millisecond. Times do not decrease.
    #[inline]
    pub(crate) fn add_many(&mut self, time: u64, count: u64) {
        if time >= self.ends {
            self.turn(time);
        }
        self.count += count;
    }

    /// A millisecond is over: the wider windows get its events, and move on to the one that `time` is in.
    fn turn(&mut self, time: u64) {
        self.close();
        let begins = self.ends / MILLISECOND;
        self.ends = (time / MILLISECOND).saturating_add(1).saturating_mul(MILLISECOND);
        // Milliseconds without events leave the windows no fuller; after a second of them they are empty.
        let quiet = (time / MILLISECOND).saturating_sub(begins).min(SECOND as u64);
        for place in 0..quiet {
            self.put((begins + place) as usize, 0);
        }
    }

    fn close(&mut self) {
        self.most = self.most.max(self.count);
        let count = std::mem::take(&mut self.count);
        self.put((self.ends / MILLISECOND - 1) as usize, count);
    }

    fn put(&mut self, millisecond: usize, count: u64) {
        self.tenth.slide(count, self.last[(millisecond + SECOND - self.tenth.width) % SECOND]);
        self.second.slide(count, self.last[millisecond % SECOND]);
        self.last[millisecond % SECOND] = count;
    }

    /// The peaks, from the narrowest window to the widest.
    pub(crate) fn most(mut self) -> [u64; 3] {
        self.close();
        [self.most, self.tenth.most, self.second.most]
    }
}

/// All windows and bins begin at a whole one.
pub(crate) const MILLISECOND: u64 = 1_000_000;

/// The most events within a window that slides.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// In milliseconds.
    width: usize,
    count: u64,
    most: u64,
}

impl Window {
    const fn new(width: usize) -> Window {
        Window { width, count: 0, most: 0 }
    }

    fn slide(&mut self, comes: u64, goes: u64) {
        self.count = self.count + comes - goes;
        self.most = self.most.max(self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widening_loses_no_count_and_moves_none_across_bins() {
        let mut bins: TimeBins<2> = TimeBins::new();
        for ms in 0..10_000u64 {
            bins.add(ms * 1_000_000, (ms % 2) as usize);
        }
        bins.add(3, 0);
        assert_eq!(bins.width(), 8_000_000);
        assert_eq!(bins.bin(0), [5, 4]);
        assert_eq!(bins.bin(1), [4, 4]);
        assert_eq!((0..bins.len()).map(|bin| bins.bin(bin)[1]).sum::<u64>(), 5000);
    }

    #[test]
    fn a_peak_is_the_fullest_window() {
        let mut peaks = Peaks::new();
        for ms in [0, 1, 9, 100, 110, 110, 120, 1040, 1041, 3000] {
            peaks.add_many(ms * MILLISECOND + 7, 1);
        }
        assert_eq!(peaks.most(), [2, 4, 7]);
        assert_eq!(Peaks::new().most(), [0, 0, 0]);
    }

    /// A rush of a second is as high whenever it begins; windows that lie end to end would cut it in halves.
    #[test]
    fn a_rush_that_begins_at_half_past_is_a_rush() {
        for begins in [10_000, 10_500, 10_999, 5, 0] {
            let mut peaks = Peaks::new();
            for ms in begins..begins + 1000 {
                peaks.add_many(ms * MILLISECOND, 3);
            }
            peaks.add_many((begins + 9_999) * MILLISECOND, 1);
            assert_eq!(peaks.most(), [3, 300, 3000], "{begins}");
        }
    }
}
