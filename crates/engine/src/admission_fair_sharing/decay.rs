//! Exponential decay in whole numbers.
//!
//! Half of a usage is forgotten per half-life: after t, 0.5^(t/h) of it is left. The power is the product of 0.5^(2^-i)
//! over the bits of the fraction t/h, each factor the square root of the one before. All roundings are downwards.

/// Amounts are kept in 2^-32 of a unit: one unit in use leaves a trace in one second of a half-life of months, and the
/// largest amount times a resource weight fits into 128 bits.
pub(super) const BITS: u32 = 32;

/// Factors are kept in 2^-62.
const FACTOR_BITS: u32 = 62;
const ONE: u128 = 1 << FACTOR_BITS;

/// Bits of the exponent's fraction. 0.5^(2^-40) differs from 1 by less than an amount can show.
const FRACTION_BITS: u32 = 40;

/// A part between nothing and all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecayFactor(u128);

impl DecayFactor {
    /// What is left after `elapsed`.
    pub(super) fn left(elapsed: i64, usage_half_life: i64) -> Self {
        if usage_half_life <= 0 {
            return Self(0);
        }
        let (elapsed, usage_half_life) =
            (u128::from(elapsed.max(0).unsigned_abs()), u128::from(usage_half_life.unsigned_abs()));
        let (halvings, rest) = (elapsed / usage_half_life, elapsed % usage_half_life);
        let fraction = (rest << FRACTION_BITS) / usage_half_life;
        let mut power = ONE;
        let mut factor = ONE / 2;
        for bit in (0..FRACTION_BITS).rev() {
            factor = (factor << FACTOR_BITS).isqrt();
            // Each bit of the fraction is a factor of its own.
            if fraction >> bit & 1 == 1 {
                power = (power * factor) >> FACTOR_BITS;
            }
        }
        Self(u32::try_from(halvings).ok().and_then(|by| power.checked_shr(by)).unwrap_or(0))
    }

    /// The rest.
    pub(super) fn rest(self) -> Self {
        Self(ONE - self.0)
    }

    /// This part of an amount.
    pub(super) fn of(self, amount: i128) -> i128 {
        // Split, since amount and factor together exceed 128 bits.
        let factor = i128::try_from(self.0).unwrap_or(0);
        let (high, low) = (amount >> 31, amount & ((1 << 31) - 1));
        let (high, low) = (high.saturating_mul(factor), low.saturating_mul(factor));
        (high >> 31).saturating_add(low >> FACTOR_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: i128 = 1 << BITS;

    fn left(elapsed: i64, amount: i128) -> i128 {
        DecayFactor::left(elapsed, 100).of(amount * UNIT)
    }

    #[test]
    fn a_half_life_halves() {
        for (elapsed, expected) in [(0, 1024), (100, 512), (200, 256), (1000, 1)] {
            assert_eq!(left(elapsed, 1024), expected * UNIT, "{elapsed}");
        }
        assert_eq!(left(i64::MAX, 1024), 0);
        assert_eq!(DecayFactor::left(5, 0).of(UNIT), 0, "no half-life forgets at once");
    }

    #[test]
    fn powers_are_as_exact_as_amounts() {
        for elapsed in 1..400_i32 {
            let exact = 0.5_f64.powf(f64::from(elapsed) / 100.0) * 1e6;
            let error = left(elapsed.into(), 1_000_000) - (exact * (UNIT as f64)) as i128;
            assert!(error.abs() <= 1 << 12, "{elapsed}: {error}");
        }
    }

    #[test]
    fn parts_add_up_and_more_is_never_less() {
        for elapsed in 0..300 {
            let part = DecayFactor::left(elapsed, 77);
            for amount in [0, 1, 1000, i128::from(i64::MAX) * UNIT] {
                let lost = amount - part.of(amount) - part.rest().of(amount);
                assert!((0..=1 << 35).contains(&lost) && (lost <= 2 || amount > 1 << 60), "{lost}");
            }
            assert!(DecayFactor::left(elapsed + 1, 77).of(UNIT) <= part.of(UNIT));
        }
    }
}
