//! Virtual time: milliseconds since the world began.

use std::fmt;

/// A moment of the world's clock, in whole milliseconds since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

impl Time {
    /// The start of the world.
    pub const ZERO: Self = Self(0);

    /// The moment `millis` milliseconds after the start.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// The moment `seconds` seconds after the start.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Milliseconds since the start.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The moment `millis` milliseconds later.
    #[must_use]
    pub const fn plus_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Milliseconds from `earlier` to this moment; 0 when `earlier` is not earlier.
    pub const fn millis_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Seconds with three decimals: `12.040`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:03}", self.0 / 1000, self.0 % 1000);
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_has_three_decimals_and_pads() {
        assert_eq!(Time::from_millis(12_040).to_string(), "12.040");
        assert_eq!(format!("{:>9}", Time::from_secs(1)), "    1.000");
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Time::from_millis(u64::MAX).plus_millis(1).as_millis(), u64::MAX);
        assert_eq!(Time::ZERO.millis_since(Time::from_secs(1)), 0);
    }
}
