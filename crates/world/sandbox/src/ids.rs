//! Everything random in the world, from one seed: uids, generated names, container ids, small delays.

use fastrand::Rng;

use crate::api::IdSource;

/// The characters of generated names: no vowels and no digits that look like them, so no words.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The sources of randomness. Each purpose has its own, so that one more name does not move every delay.
#[derive(Debug)]
pub(crate) struct Ids {
    names: Rng,
    delays: Rng,
    faults: Rng,
}

impl Ids {
    /// Everything that follows is a function of the seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        Self { names: rng.fork(), delays: rng.fork(), faults: rng.fork() }
    }

    /// A number of milliseconds below `bound`; 0 when the bound is 0.
    pub(crate) fn delay(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.delays.u64(0..bound) }
    }

    /// Whether something with this probability happens, in parts of 1000.
    pub(crate) fn happens(&mut self, per_mille: u16) -> bool {
        self.faults.u16(0..1000) < per_mille
    }

    /// 64 hexadecimal digits, as a container runtime names containers.
    pub(crate) fn hex64(&mut self) -> String {
        let (high, low) = (self.names.u128(..), self.names.u128(..));
        format!("{high:032x}{low:032x}")
    }

    /// 16 hexadecimal digits, as event names end.
    pub(crate) fn hex16(&mut self) -> String {
        format!("{:016x}", self.names.u64(..))
    }
}

impl IdSource for Ids {
    fn uid(&mut self) -> String {
        // Version 4, variant 1, as every random UUID says.
        let bits = self.names.u128(..) & !(0xf000 << 64) | (0x4000 << 64);
        let bits = bits & !(0xc000 << 48) | (0x8000 << 48);
        let hex = format!("{bits:032x}");
        let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
        format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
    }

    fn suffix(&mut self, length: usize) -> String {
        (0..length)
            .map(|_| char::from(SUFFIX.get(self.names.usize(0..SUFFIX.len())).copied().unwrap_or(b'b')))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn uids_are_version_4_and_follow_from_the_seed() {
        let (mut a, mut b) = (Ids::new(7), Ids::new(7));
        let uid = a.uid();
        assert_eq!(uid, b.uid());
        assert_ne!(uid, a.uid());
        let parts: Vec<&str> = uid.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(parts[2].starts_with('4'));
        assert!(parts[3].starts_with(['8', '9', 'a', 'b']));
    }

    #[test]
    fn names_do_not_move_delays() {
        let (mut a, mut b) = (Ids::new(7), Ids::new(7));
        a.suffix(100);
        assert_eq!(a.delay(1000), b.delay(1000));
        assert_eq!(a.suffix(5).len(), 5);
    }
}
