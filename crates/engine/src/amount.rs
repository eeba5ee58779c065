//! Amounts of a resource: cpu in milli, everything else in its base unit.
//!
//! Arithmetic saturates. The largest value means *unlimited* and absorbs: unlimited plus or minus anything finite is
//! unlimited; unlimited less unlimited is nothing; anything finite less unlimited is as little as can be. Source:
//! docs/reference/kueue.md §2.7.

use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A signed amount of one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Amount(pub i64);

/// An amount of one resource in billionths of its base unit; what is recorded of consumption, which decays below one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NanoAmount(pub i128);

impl NanoAmount {
    /// Billionths in a base unit.
    pub const PER_UNIT: i128 = 1_000_000_000;
}

impl From<Amount> for NanoAmount {
    fn from(Amount(units): Amount) -> Self {
        Self(i128::from(units) * Self::PER_UNIT)
    }
}

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// More than any request.
    pub const UNLIMITED: Self = Self(i64::MAX);

    /// True for the absorbing value.
    pub fn is_unlimited(self) -> bool {
        self == Self::UNLIMITED
    }

    /// The amount `count` pods need when one needs `self`.
    #[must_use]
    pub fn times(self, count: i64) -> Self {
        Self(self.0.saturating_mul(count))
    }

    /// What a quota of so much of `resource` counts as. Quotas of cpu are measured in whole cores: as many as can be
    /// counted in milli, or more, are unlimited. Requests are not.
    #[must_use]
    pub fn as_quota_of(self, resource: &str) -> Self {
        let most = Self(i64::MAX / 1000 * 1000);
        if resource == "cpu" && self >= most { Self::UNLIMITED } else { self }
    }

    /// Zero when negative.
    #[must_use]
    pub fn clip(self) -> Self {
        self.max(Self::ZERO)
    }
}

impl Add for Amount {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0)).or_unlimited(self, other)
    }
}

impl Sub for Amount {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        match (self.is_unlimited(), other.is_unlimited()) {
            (true, true) => Self::ZERO,
            (true, false) => self,
            (false, true) => Self(i64::MIN),
            (false, false) => Self(self.0.saturating_sub(other.0)),
        }
    }
}

impl Amount {
    fn or_unlimited(self, left: Self, right: Self) -> Self {
        if left.is_unlimited() || right.is_unlimited() { Self::UNLIMITED } else { self }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Amount {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlimited_absorbs() {
        assert_eq!(Amount::UNLIMITED - Amount(5), Amount::UNLIMITED);
        assert_eq!(Amount::UNLIMITED - Amount::UNLIMITED, Amount::ZERO);
        assert_eq!(Amount(5) - Amount::UNLIMITED, Amount(i64::MIN));
        assert_eq!(Amount(-5) + Amount::UNLIMITED, Amount::UNLIMITED);
        assert_eq!(Amount(i64::MAX - 1) + Amount(9), Amount::UNLIMITED);
    }

    #[test]
    fn as_many_cores_as_can_be_counted_in_milli_are_an_unlimited_quota() {
        let cores = |cores: i64| Amount(cores * 1000);
        assert_eq!(cores(9_223_372_036_854_775).as_quota_of("cpu"), Amount::UNLIMITED);
        assert_eq!(cores(9_223_372_036_854_774).as_quota_of("cpu"), cores(9_223_372_036_854_774));
        assert_eq!(Amount(i64::MAX - 1).as_quota_of("memory"), Amount(i64::MAX - 1));
    }

    #[test]
    fn finite_amounts_saturate() {
        assert_eq!(Amount(i64::MIN) - Amount(1), Amount(i64::MIN));
        assert_eq!(Amount(i64::MAX / 2).times(3), Amount::UNLIMITED);
    }
}
