//! What a registry has instead of what is missing.

use std::collections::BTreeSet;

use http::{Method, StatusCode, Uri, header};
use scantling_endpoint::{Attempt, Selector};
use scantling_image::{Digest, Platform, Reference};
use serde::Deserialize;

use crate::access::{Action, resolved, uri};
use crate::client::{Inner, RegistryClient};
use crate::error::{Place, Problem, RegistryError};
use crate::exchange::Outgoing;
use crate::resolve::most_telling;

/// Tags of one page.
const TAGS_MAX: usize = 1000;
/// Most tags of a repository that are listed; those with years of nightly builds have some tens of thousands.
const ALL_TAGS_MAX: usize = 100_000;
/// Most images of an index that are looked for where the index is missing.
const CHILDREN_MAX: usize = 16;
/// Largest list of tags that is read, in bytes: a thousand tags of the greatest length.
const LIST_MAX: usize = 256 * 1024;
/// Most tags that are named in a message.
const NAMED_MAX: usize = 5;

#[derive(Default)]
struct TagPage {
    tags: Vec<String>,
    next: Option<Uri>,
}

#[derive(Deserialize)]
struct TagList {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

impl RegistryClient {
    /// The tags of a reference's repository, as the first place that answers lists them, sorted. At most 100 000.
    pub async fn tags(&self, reference: &Reference) -> Result<Vec<String>, RegistryError> {
        let mut errors = Vec::new();
        for attempt in self.inner.attempts(reference)? {
            match self.inner.all_tags(&attempt).await {
                Ok(tags) => return Ok(tags),
                Err(error) => errors.push(error),
            }
        }
        Err(most_telling(errors, reference))
    }
}

impl Inner {
    /// Adds to "this is not there" what is there instead: the tags that are nearly the same, the platforms of the index that
    /// were copied without it, or where the tag beside the digest leads. Nothing is ever chosen in its place.
    pub(crate) async fn with_nearby(
        &self,
        attempt: &Attempt,
        tag: Option<&str>,
        children: &[(Platform, Digest)],
        mut error: RegistryError,
    ) -> RegistryError {
        if let Problem::Absent { nearby, .. } = error.problem.as_mut() {
            *nearby = match &attempt.selector {
                Selector::Tag(wanted) => {
                    let place = Place::new(&attempt.host, &attempt.repository, "list of tags");
                    let page = self.tag_page(&place, attempt, None).await.unwrap_or_default();
                    let near = near(wanted, &page.tags);
                    (!near.is_empty()).then(|| format!("there is {}", near.join(", ")))
                }
                Selector::Digest(_) => match (self.copied(attempt, children).await, tag) {
                    (Some(copied), _) => Some(copied),
                    (None, Some(tag)) => self.moved(attempt, tag).await,
                    (None, None) => None,
                },
            };
        }
        error
    }

    /// Which of an index's images are there though the index is not.
    async fn copied(&self, attempt: &Attempt, children: &[(Platform, Digest)]) -> Option<String> {
        let mut there = Vec::new();
        for (platform, digest) in children.iter().take(CHILDREN_MAX) {
            if let Ok(Some(_)) = self.head(attempt, &Selector::Digest(digest.clone())).await {
                there.push(format!("{platform} ({})", digest.short()));
            }
        }
        (!there.is_empty()).then(|| {
            format!(
                "only images of the index are there, for {}: the copy left the index out",
                there.join(", ")
            )
        })
    }

    /// Where the tag leads that stands beside a digest that is not there.
    async fn moved(&self, attempt: &Attempt, tag: &str) -> Option<String> {
        let found = self.head(attempt, &Selector::Tag(tag.to_owned())).await;
        found.ok().flatten().map(|digest| format!("the tag {tag} leads to {digest} there"))
    }

    async fn all_tags(&self, attempt: &Attempt) -> Result<Vec<String>, RegistryError> {
        let place = Place::new(&attempt.host, &attempt.repository, "list of tags");
        let mut tags = BTreeSet::new();
        let mut next = None;
        loop {
            let page = self.tag_page(&place, attempt, next).await?;
            let before = tags.len();
            tags.extend(page.tags);
            // A page without anything new would repeat for ever.
            if page.next.is_none() || tags.len() == before || tags.len() >= ALL_TAGS_MAX {
                return Ok(tags.into_iter().collect());
            }
            next = page.next;
        }
    }

    async fn tag_page(
        &self,
        place: &Place,
        attempt: &Attempt,
        next: Option<Uri>,
    ) -> Result<TagPage, RegistryError> {
        let path = format!("/v2/{}/tags/list?n={TAGS_MAX}", attempt.repository);
        let first = uri(place, attempt, &path)?;
        let address = match next {
            // The credential goes along, so a list does not go on at another host.
            Some(next) if next.authority() == first.authority() && next.scheme() == first.scheme() => next,
            Some(_) => return Err(place.malformed("the list of tags goes on at another host")),
            None => first,
        };
        let request = Outgoing::new(Method::GET, address.clone());
        let answered = self.send(place, attempt, Action::Pull, &request).await?;
        if answered.response.status() != StatusCode::OK {
            return Err(self.refused(place, attempt, answered).await);
        }
        let next = answered
            .response
            .headers()
            .get(header::LINK)
            .and_then(|value| value.to_str().ok())
            .and_then(|link| next_link(&address, link));
        let bytes = self.whole(place, answered.response, LIST_MAX).await?;
        let list: TagList = serde_json::from_slice(&bytes).map_err(|_| place.malformed("no list of tags"))?;
        Ok(TagPage { tags: list.tags.unwrap_or_default(), next })
    }
}

/// The address in `<…>; rel="next"`.
fn next_link(base: &Uri, link: &str) -> Option<Uri> {
    let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
    let next = parameters.split(';').any(|parameter| matches!(parameter.trim(), "rel=\"next\"" | "rel=next"));
    next.then(|| resolved(base, target)).flatten()
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
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn links() {
        let base: Uri = "https://a.example/v2/x/tags/list?n=2".parse().unwrap();
        let check = |link: &str, expected: Option<&str>| {
            assert_eq!(next_link(&base, link).map(|uri| uri.to_string()).as_deref(), expected, "{link}");
        };
        check(
            "</v2/x/tags/list?n=2&last=b>; rel=\"next\"",
            Some("https://a.example/v2/x/tags/list?n=2&last=b"),
        );
        check("<https://b.example/t>; rel=next", Some("https://b.example/t"));
        check("</v2/x>; rel=\"prev\"", None);
        check("</v2/x", None);
        check("", None);
    }

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
