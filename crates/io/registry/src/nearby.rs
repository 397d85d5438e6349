//! What a registry has instead of what is missing.

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use scantling_endpoint::{Attempt, Selector};
use serde::Deserialize;

use crate::access::{Action, uri};
use crate::client::Inner;
use crate::error::{Place, Problem, RegistryError};
use crate::exchange::Outgoing;

/// Most tags that are asked for; one page, not the whole list of a repository with years of builds.
const TAGS_MAX: usize = 1000;
/// Largest list of tags that is read, in bytes: a thousand tags of the greatest length.
const LIST_MAX: usize = 256 * 1024;
/// Most tags that are named in a message.
const NAMED_MAX: usize = 5;

#[derive(Deserialize)]
struct TagList {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

impl Inner {
    /// Adds to "this tag is not there" the tags that are nearly the same. Nothing is ever chosen in its place.
    pub(crate) async fn with_nearby(&self, attempt: &Attempt, mut error: RegistryError) -> RegistryError {
        let Selector::Tag(wanted) = &attempt.selector else {
            return error;
        };
        if let Problem::Absent { nearby, .. } = error.problem.as_mut() {
            let tags = self.tags(attempt).await.unwrap_or_default();
            let near = near(wanted, &tags);
            if !near.is_empty() {
                *nearby = Some(format!("there is {}", near.join(", ")));
            }
        }
        error
    }

    /// The first tags of the repository; `None` if the registry does not list them.
    async fn tags(&self, attempt: &Attempt) -> Option<Vec<String>> {
        let place = Place::new(&attempt.host, &attempt.repository, "list of tags");
        let path = format!("/v2/{}/tags/list?n={TAGS_MAX}", attempt.repository);
        let request = Outgoing::new(Method::GET, uri(&place, attempt, &path).ok()?);
        let answered = self.send(&place, attempt, Action::Pull, &request).await.ok()?;
        if answered.response.status() != StatusCode::OK {
            return None;
        }
        let bytes = self.whole(&place, answered.response, LIST_MAX).await.ok()?;
        serde_json::from_slice::<TagList>(&bytes).ok()?.tags
    }
}

/// The tags that differ from the wanted one only by case, by a `v` in front, or by their separators.
fn near(wanted: &str, tags: &[String]) -> Vec<String> {
    let plain = |tag: &str| -> String {
        let lower = tag.to_ascii_lowercase();
        let bare = match lower.strip_prefix('v') {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => rest,
            _ => &lower,
        };
        bare.chars().map(|c| if matches!(c, '.' | '_' | '-') { '.' } else { c }).collect()
    };
    let same: BTreeSet<&String> = tags.iter().filter(|tag| plain(tag) == plain(wanted)).collect();
    same.into_iter().filter(|tag| *tag != wanted).take(NAMED_MAX).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // C118, attune-io/attune#554: the default tag and the published tag differ by a prefix.
    #[test]
    fn nearly_the_same_tags() {
        let check = |wanted: &str, tags: &[&str], expected: &[&str]| {
            let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
            assert_eq!(near(wanted, &tags), expected, "{wanted}");
        };
        check("0.1.23", &["v0.1.22", "v0.1.23", "latest"], &["v0.1.23"]);
        check("v1.2", &["1.2", "1-2", "V1.2", "1.2.0"], &["1-2", "1.2", "V1.2"]);
        check("vision", &["ision", "Vision"], &["Vision"]);
        check("1", &["2"], &[]);
    }
}
