//! Roots, which `core` does not have.

/// The square root, within a unit in the last place; 0 for what has none.
pub(crate) fn sqrt(x: f64) -> f64 {
    if !(x > 0.0 && x.is_finite()) {
        return 0.0;
    }
    let mut root = f64::from_bits((x.to_bits() >> 1) + (0x3FF0_0000_0000_0000 >> 1));
    for _ in 0..6 {
        root = 0.5 * (root + x / root);
    }
    root
}

/// The cube root of what is positive, within a few units in the last place; 0 for everything else.
pub(crate) fn cbrt(x: f64) -> f64 {
    if !(x > 0.0 && x.is_finite()) {
        return 0.0;
    }
    let mut root = f64::from_bits(x.to_bits() / 3 + 0x3FF0_0000_0000_0000 / 3 * 2);
    for _ in 0..6 {
        root -= (root - x / (root * root)) / 3.0;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_roots() {
        for exponent in -40..40 {
            for mantissa in [1.0, 1.1, 2.0, 3.0, 7.99] {
                let x = mantissa * 10_f64.powi(exponent);
                assert!((sqrt(x) - x.sqrt()).abs() <= 1e-15 * x.sqrt(), "sqrt {x}");
                assert!((cbrt(x) - x.cbrt()).abs() <= 1e-15 * x.cbrt(), "cbrt {x}");
            }
        }
        for x in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!((sqrt(x), cbrt(x)), (0.0, 0.0));
        }
    }
}
