//! A number kept in the eight bytes that a call lends to its rule, where 0 means "nothing yet".

pub(super) fn recall(memory: u64) -> Option<f64> {
    memory.checked_sub(1).map(f64::from_bits)
}

pub(super) fn remember(memory: &mut u64, value: f64) {
    // The one pattern that wraps around is a NaN.
    *memory = value.to_bits().wrapping_add(1);
}

pub(super) fn recall_whole(memory: u64) -> Option<i64> {
    memory.checked_sub(1).map(|whole| whole as i64)
}

pub(super) fn remember_whole(memory: &mut u64, value: i64) {
    *memory = (value as u64).wrapping_add(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_remembered_too() {
        let mut memory = 0;
        assert_eq!(recall(memory), None);
        assert_eq!(recall_whole(memory), None);
        for value in [0.0, 1.5, f64::INFINITY, -3.0] {
            remember(&mut memory, value);
            assert_eq!(recall(memory), Some(value));
        }
        for value in [0, 1, i64::MAX, i64::MIN] {
            remember_whole(&mut memory, value);
            assert_eq!(recall_whole(memory), Some(value));
        }
    }
}
