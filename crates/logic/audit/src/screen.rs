//! Screen: is what screens say so?
//!
//! Spawners show what the annotations of a stream's tag claim, and start what the tag's status has. The claim is held against the contents of
//! that image, where a lock knows them.

use scantling_contents::{Claim, ClaimVerdict, check_claim};
use scantling_finding::codes::audit::SCREEN_WRONG;
use scantling_image::{Reference, Sameness};
use scantling_observed::{ImageStream, Observed, StreamTag, View as _};
use scantling_release::{CLAIM_ANNOTATIONS, LockedImage};
use serde_json::Value;

use crate::builder::{Builder, Draft};
use crate::facts::Facts;
use crate::remedy::quoted;
use crate::row::{Evidence, Remedy, Row, Section, Subject, Verdict};

/// The rows of this section.
pub(crate) fn rows(facts: &Facts<'_>, builder: &Builder<'_>, observed: &Observed) -> Vec<Row> {
    let mut rows = Vec::new();
    for stream in observed.image_streams().filter(|it| builder.options.wants(Some(it.namespace()))) {
        for tag in stream.tags() {
            rows.extend(claims(facts, stream, tag));
            rows.extend(lags(facts, stream, tag));
        }
    }
    rows
}

fn draft(stream: ImageStream<'_>, tag: StreamTag<'_>) -> Draft {
    let mut draft = Draft::new(Section::Screen, Verdict::Different, SCREEN_WRONG);
    draft.subjects.push(Subject {
        object: stream.key().to_string(),
        namespace: Some(stream.namespace().to_owned()),
        pod: None,
        container: Some(tag.name.to_owned()),
        node: None,
    });
    draft
}

fn evidence(stream: ImageStream<'_>, field: String, value: String) -> Evidence {
    Evidence {
        time: None,
        object: stream.key().to_string(),
        field,
        value,
        resource_version: scantling_api::object::resource_version(stream.object()).to_owned(),
    }
}

/// Claims that the contents of the image contradict.
fn claims(facts: &Facts<'_>, stream: ImageStream<'_>, tag: StreamTag<'_>) -> Option<Row> {
    let digest = tag.newest()?.digest().ok()?;
    let is_it = |image: &&LockedImage| image.identity().contains(&digest);
    let image =
        facts.knowledge.releases.iter().flat_map(crate::knowledge::KnownRelease::images).find(is_it)?;
    let contents = image.platforms.iter().find_map(|platform| platform.contents.as_ref())?;
    let mut wrong = Vec::new();
    let mut draft = draft(stream, tag);
    for annotation in CLAIM_ANNOTATIONS {
        for claim in claimed(tag.annotation(annotation).unwrap_or_default()) {
            if let ClaimVerdict::Differs { found } = check_claim(contents, &claim) {
                wrong.push(format!("{} {} (it is {found})", claim.name, claim.version));
                draft.evidence.push(evidence(
                    stream,
                    format!(".spec.tags[{}].annotations[{annotation}]", tag.name),
                    format!("{} {}", claim.name, claim.version),
                ));
            }
        }
    }
    if wrong.is_empty() {
        return None;
    }
    draft.found.push(digest.to_string());
    draft.why = format!("tag {} claims {}", tag.name, wrong.join(", "));
    draft.remedies.push(Remedy {
        what: "correct the annotation, or give the tag the image that it promises".to_owned(),
        command: Some(format!(
            "oc -n {} edit imagestream {}",
            quoted(stream.namespace()),
            quoted(stream.name())
        )),
    });
    Some(draft.row())
}

/// Name and version of each entry of a claim: a list as JSON.
fn claimed(annotation: &str) -> Vec<Claim> {
    let entries: Vec<Value> = serde_json::from_str(annotation).unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
            Some(Claim { name: text("name")?, version: text("version")? })
        })
        .collect()
}

/// A tag whose spec names a digest, and whose status has another image: what is shown was never imported.
fn lags(facts: &Facts<'_>, stream: ImageStream<'_>, tag: StreamTag<'_>) -> Option<Row> {
    let (kind, from) = tag.from()?;
    let from = Reference::parse(from).ok().filter(|_| kind == "DockerImage")?;
    let (wanted, newest) = (from.digest()?, tag.newest()?);
    let has = newest.digest().ok()?;
    let (one, other) = (facts.images.known(wanted)?, facts.images.known(&has)?);
    // A stream keeps one platform's manifest of an index; which it is decides itself by what is known of both.
    let apart = (0..facts.images.platforms())
        .any(|platform| facts.images.relation((platform, one), (platform, other)) == Sameness::Different);
    if !apart {
        return None;
    }
    let mut draft = draft(stream, tag);
    draft.reference = Some(from.written().to_owned());
    draft.found.push(has.to_string());
    draft.why = format!(
        "tag {} is meant to be {}, and still leads to what was imported before",
        tag.name,
        wanted.short()
    );
    draft.evidence.push(evidence(
        stream,
        format!(".spec.tags[{}].from.name", tag.name),
        from.written().to_owned(),
    ));
    draft.evidence.push(Evidence {
        time: Some(newest.created.to_owned()).filter(|time| !time.is_empty()),
        ..evidence(stream, format!(".status.tags[{}].items[0].image", tag.name), has.to_string())
    });
    draft.remedies.push(Remedy {
        what: "import the tag again".to_owned(),
        command: Some(format!(
            "oc -n {} import-image {} --import-mode=PreserveOriginal",
            quoted(stream.namespace()),
            quoted(&format!("{}:{}", stream.name(), tag.name))
        )),
    });
    Some(draft.row())
}
