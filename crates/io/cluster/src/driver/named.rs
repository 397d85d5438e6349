//! Objects that are read by name. A right to list secrets is a right to all of them, so they are not watched: each that somebody names is
//! asked for, and again after a while.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scantling_api::ObjectKey;
use tokio::time::Instant;

/// After this time an object is read again. A pass is made every minute at least, so that a correction is seen within one.
const AGAIN: Duration = Duration::from_secs(50);
/// Objects of one pass. Those that were never read come first, then those that were read longest ago.
const PER_PASS: usize = 200;

#[derive(Debug)]
struct Asked {
    at: Instant,
    unread: Option<String>,
}

/// What was asked for, and when.
#[derive(Debug, Default)]
pub(crate) struct Named(BTreeMap<ObjectKey, Asked>);

impl Named {
    /// Leaves those that nobody names any more; gives them.
    pub(crate) fn forget_others(&mut self, wanted: &BTreeSet<ObjectKey>) -> Vec<ObjectKey> {
        let gone: Vec<ObjectKey> = self.0.keys().filter(|key| !wanted.contains(*key)).cloned().collect();
        for key in &gone {
            self.0.remove(key);
        }
        gone
    }

    /// Those to be read now.
    pub(crate) fn due(&self, wanted: &BTreeSet<ObjectKey>) -> Vec<ObjectKey> {
        let mut due: Vec<(Option<Instant>, &ObjectKey)> = wanted
            .iter()
            .map(|key| (self.0.get(key).map(|asked| asked.at), key))
            .filter(|(at, _)| at.is_none_or(|at| at.elapsed() >= AGAIN))
            .collect();
        due.sort();
        due.into_iter().take(PER_PASS).map(|(_, key)| key.clone()).collect()
    }

    pub(crate) fn was_read(&mut self, key: ObjectKey) {
        self.0.insert(key, Asked { at: Instant::now(), unread: None });
    }

    /// It could not be read; that matters where nothing is known of it.
    pub(crate) fn was_not_read(&mut self, key: ObjectKey, why: &str, is_known: bool) {
        let unread = (!is_known).then(|| why.to_owned());
        self.0.insert(key, Asked { at: Instant::now(), unread });
    }

    /// Those of which nothing is known, and why.
    pub(crate) fn unread(&self) -> BTreeMap<ObjectKey, String> {
        let unread = self.0.iter().filter_map(|(key, asked)| Some((key.clone(), asked.unread.clone()?)));
        unread.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("", "Secret", "n", name)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_named_is_read_once_a_while_and_what_is_not_is_forgotten() {
        let mut named = Named::default();
        let wanted = BTreeSet::from([key("a"), key("b")]);
        assert_eq!(named.due(&wanted), [key("a"), key("b")]);
        named.was_read(key("b"));
        tokio::time::advance(AGAIN / 2).await;
        named.was_not_read(key("a"), "no right", false);
        assert!(named.due(&wanted).is_empty());
        assert_eq!(named.unread(), BTreeMap::from([(key("a"), "no right".to_owned())]));
        tokio::time::advance(AGAIN).await;
        // Longest ago first.
        assert_eq!(named.due(&wanted), [key("b"), key("a")]);
        named.was_not_read(key("b"), "away", true);
        assert!(!named.unread().contains_key(&key("b")), "what is known stands");
        assert_eq!(named.forget_others(&BTreeSet::from([key("b")])), [key("a")]);
        assert!(named.unread().is_empty());
        let many: BTreeSet<ObjectKey> = (0..PER_PASS * 2).map(|n| key(&n.to_string())).collect();
        assert_eq!(named.due(&many).len(), PER_PASS);
    }
}
