//! The one place for each kind of impurity: what may be named in the source of no crate but those listed.

use super::source::{Name, Source};

/// A path that stands anywhere in a name, its homes, and the reason.
type Rule = (&'static str, &'static [&'static str], &'static str);

const CLI: &str = "crates/app/cli/";
const FILES: &str = "crates/io/files/";
/// Images are made by apt, dpkg and pip, from files into files; no run or rehearsal does.
const IMAGES: &str = "crates/io/images/";
/// Models are files, fetched into a pod's volume before anything else runs there; no run or rehearsal does it.
const MODEL_FETCH: &str = "crates/io/model-fetch/";
/// Dumps of gigabytes are read and parsed beside each other, from files into one value; no run or rehearsal does it.
const SNAPSHOT: &str = "crates/io/snapshot/";
const REGISTRY: &str = "crates/io/registry/";

const TIME: &str = "time comes from a clock that is passed in";
const CHANCE: &str = "chance comes from a seed";
const EDGE: &str = "the machine is asked at the edge";
const ONE_TASK: &str = "a rehearsal runs on one task";

const RULES: [Rule; 24] = [
    ("std::fs", &[FILES, IMAGES, MODEL_FETCH, CLI], "files are read in one place"),
    ("tokio::fs", &[], "files are read in one place"),
    ("std::io::stdin", &[CLI], EDGE),
    ("std::env", &[CLI], EDGE),
    ("std::process", &[FILES, IMAGES, CLI], EDGE),
    ("tokio::process", &[CLI], EDGE),
    ("tokio::signal", &[CLI], EDGE),
    ("std::net", &[REGISTRY, CLI], "connections are made in one place"),
    ("tokio::net", &[REGISTRY, CLI], "connections are made in one place"),
    ("SystemTime", &[], TIME),
    ("std::time::Instant", &[CLI], TIME),
    ("Timestamp::now", &[CLI], TIME),
    ("Zoned::now", &[], TIME),
    ("Rng::new", &[], CHANCE),
    ("Rng::default", &[], CHANCE),
    ("getrandom", &[CLI], CHANCE),
    ("RandomState", &[], CHANCE),
    ("std::thread", &[IMAGES, SNAPSHOT, CLI], ONE_TASK),
    ("tokio::spawn", &[CLI], ONE_TASK),
    ("task::spawn", &[CLI], ONE_TASK),
    ("spawn_local", &[], ONE_TASK),
    // Layers are unpacked beside the task, which waits for them.
    ("spawn_blocking", &[REGISTRY, CLI], ONE_TASK),
    ("JoinSet", &[], ONE_TASK),
    ("LocalSet", &[], ONE_TASK),
];

/// Holds what the crates name against the rules.
pub(super) fn check(sources: &[Source], breaches: &mut Vec<String>) {
    let product = |source: &&Source| source.path.starts_with("crates/") && !source.is_test;
    for source in sources.iter().filter(product) {
        for name in &source.code {
            if let Some((word, why)) = breach(&source.path, name) {
                breaches.push(format!("{}:{}: {word}: {why}", source.path, name.line));
            }
        }
    }
}

fn breach(path: &str, name: &Name) -> Option<(String, &'static str)> {
    if let [first, function, ..] = name.segments.as_slice() {
        // The free functions draw from a generator that seeds itself.
        if first == "fastrand" && function.starts_with(char::is_lowercase) {
            return Some((format!("fastrand::{function}"), CHANCE));
        }
    }
    let rule = RULES.iter().find(|(word, homes, _)| {
        stands_in(word, &name.segments) && !homes.iter().any(|home| path.starts_with(home))
    });
    rule.map(|(word, _, why)| ((*word).to_owned(), *why))
}

/// Whether the segments of a word follow each other somewhere in a name.
fn stands_in(word: &str, name: &[String]) -> bool {
    let word: Vec<&str> = word.split("::").collect();
    name.windows(word.len()).any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::stands_in;

    #[test]
    fn words_are_whole_segments() {
        let name = |text: &str| text.split("::").map(str::to_owned).collect::<Vec<_>>();
        assert!(stands_in("std::fs", &name("std::fs::read")));
        assert!(stands_in("task::spawn", &name("tokio::task::spawn")));
        assert!(!stands_in("task::spawn", &name("tokio::task::spawn_blocking")));
        assert!(!stands_in("std::time::Instant", &name("tokio::time::Instant")));
    }
}
