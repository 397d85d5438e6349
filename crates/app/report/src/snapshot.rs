//! What a snapshot that was taken holds, and what it does not.

use scantling_snapshot::{Index, IndexedResource};

use crate::page::{Page, shortened};
use crate::style::{BAD, GOOD, NOTED, Screen, count, last_line, paint};

/// Seconds that two clocks may differ before it is worth a word: less is the time that a request takes.
const NOTABLE_SKEW: i64 = 5;

/// Whether somebody has to do something: not all could be seen.
pub fn needs_somebody(index: &Index) -> bool {
    not_seen(index).next().is_some()
}

fn not_seen(index: &Index) -> impl Iterator<Item = &IndexedResource> {
    index.resources.iter().filter(|resource| !resource.not_seen.is_empty())
}

/// The report of `scantling snapshot`.
pub fn taken(index: &Index, folder: &str, screen: Screen) -> String {
    let mut out = Page::new(screen);
    let held: Vec<&IndexedResource> =
        index.resources.iter().filter(|resource| resource.objects > 0).collect();
    let unseen: Vec<&IndexedResource> = not_seen(index).collect();
    if !unseen.is_empty() {
        out.section("Not seen");
        for resource in &unseen {
            let why = match resource.missing_right.as_str() {
                "" => shortened(&resource.not_seen),
                right => format!("the right to {right} is missing"),
            };
            out.marked(2, &format!("{} ", paint(BAD, "✗")), 2, &format!("{}: {why}", resource.resource));
        }
    }
    if let Some(skew) = index.clock_skew_seconds.filter(|skew| skew.abs() >= NOTABLE_SKEW) {
        let way = if skew > 0 { "ahead of" } else { "behind" };
        let text = format!(
            "the server's clock is {} {way} this one",
            count(usize::try_from(skew.abs()).unwrap_or(usize::MAX), "second")
        );
        out.marked(2, &format!("{} ", paint(NOTED, "!")), 2, &text);
    }
    let objects: usize = held.iter().map(|resource| resource.objects).sum();
    let rest = match unseen.len() {
        0 => String::new(),
        number => format!("; {} not seen", count(number, "kind")),
    };
    let last = format!(
        "{} {folder}: {} of {}, taken {}{rest}",
        paint(GOOD, "written"),
        count(objects, "object"),
        count(held.len(), "kind"),
        index.taken
    );
    out.text + &last_line(&last, screen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_comes_first() {
        let resource = |name: &str, objects: usize, not_seen: &str, right: &str| IndexedResource {
            resource: name.to_owned(),
            objects,
            not_seen: not_seen.to_owned(),
            missing_right: right.to_owned(),
            ..IndexedResource::default()
        };
        let mut index = Index {
            taken: "2026-11-30T10:00:00Z".to_owned(),
            clock_skew_seconds: Some(-90),
            resources: vec![
                resource("pods", 3, "", ""),
                resource("secrets", 0, "forbidden", "list secrets"),
                resource("things.example.com", 0, "the server answered 500", ""),
            ],
            ..Index::default()
        };
        let plain = |index: &Index| {
            let text = taken(index, "dump", Screen::new(80));
            anstream::adapter::strip_str(&text).to_string()
        };
        let wanted = "\nNot seen\n  ✗ secrets: the right to list secrets is missing\n  ✗ things.example.com: the server answered 500\n  \
                      ! the server's clock is 90 seconds behind this one\n\
                      written dump: 3 objects of 1 kind, taken 2026-11-30T10:00:00Z; 2 kinds not\n  seen\n";
        assert_eq!(plain(&index), wanted);
        assert!(needs_somebody(&index));
        index.resources.truncate(1);
        index.clock_skew_seconds = Some(1);
        assert_eq!(plain(&index), "written dump: 3 objects of 1 kind, taken 2026-11-30T10:00:00Z\n");
        assert!(!needs_somebody(&index));
    }
}
