//! Bars on a terminal, in eighths of a character: loads over time.

/// Draws counts as bars of one character each, `height` lines high, to the scale of `most`; each line ended.
///
/// A count above zero is always seen.
pub fn bars(counts: &[u32], most: u32, height: usize) -> String {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let levels = height as u64 * 8;
    let level = |count: u32| (u64::from(count) * levels).div_ceil(u64::from(most.max(1))).min(levels);
    let mut out = String::new();
    for row in (0..height as u64).rev() {
        let line: String =
            counts.iter().map(|&count| EIGHTHS[level(count).saturating_sub(row * 8).min(8) as usize]).collect();
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_to_scale() {
        assert_eq!(bars(&[0, 1, 8, 16, 12, 4], 16, 2), "   █▄\n ▁████▄\n".replace("████▄", "███▄"));
        assert_eq!(bars(&[1], 1000, 1), "▁\n", "never invisible");
        assert_eq!(bars(&[5, 5], 0, 1), "██\n");
        assert_eq!(bars(&[], 3, 2), "\n\n");
    }
}
