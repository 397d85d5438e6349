//! What an update would change, in words.

use std::collections::{BTreeMap, BTreeSet};

use scantling_observed::PackageVersion;

/// Most packages that one text names: people read the first few, and annotations have a limit.
const MAX_NAMED: usize = 20;

/// What differs from `running` to `desired`, by name: "tensorboard 2.4.1 → 2.6.0, tensorflow 2.4.1 → 2.7.0". `None` when no package
/// that `desired` names differs; packages that only `running` has are not mentioned, since a catalogue names those that matter.
pub fn difference(running: &[PackageVersion], desired: &[PackageVersion]) -> Option<String> {
    let key = |name: &str| name.to_lowercase().replace(['_', '.'], "-");
    let mut have: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for package in running {
        have.entry(key(&package.name)).or_default().insert(&package.version);
    }
    let mut changes = BTreeSet::new();
    for package in desired {
        match have.get(&key(&package.name)) {
            Some(versions) if versions.contains(package.version.as_str()) => {}
            Some(versions) => {
                let old: Vec<&str> = versions.iter().copied().collect();
                changes.insert(format!("{} {} → {}", package.name, old.join(" and "), package.version));
            }
            None => {
                changes.insert(format!("{} {} (new)", package.name, package.version));
            }
        }
    }
    if changes.is_empty() {
        return None;
    }
    let more = changes.len().saturating_sub(MAX_NAMED);
    let mut named: Vec<String> = changes.into_iter().take(MAX_NAMED).collect();
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    Some(named.join(", "))
}
