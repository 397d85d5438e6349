//! What image streams claim to hold.

use scantling_contents::Claim;
use scantling_finding::{Finding, Place, codes};
use scantling_yaml::{Node, NodeKind, Span};
use serde::Serialize;

use crate::source::Source;

/// The annotations of an image stream's tag that name software and its versions.
pub const CLAIM_ANNOTATIONS: [&str; 2] =
    ["opendatahub.io/notebook-software", "opendatahub.io/notebook-python-dependencies"];

/// One claim and where it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacedClaim {
    /// What is claimed.
    pub claim: Claim,
    /// The annotation that claims it.
    pub annotation: &'static str,
    /// Where it stands.
    pub place: Place,
}

/// Reads the claims in a tag's annotations.
pub(crate) fn read(
    source: &Source<'_>,
    annotations: &Node,
    place: &Place,
    findings: &mut Vec<Finding>,
) -> Vec<PlacedClaim> {
    let mut claims = Vec::new();
    for annotation in CLAIM_ANNOTATIONS {
        let Some(node) = annotations.get(annotation) else { continue };
        let here = Place { object: place.object.clone(), ..source.value_place(node) };
        match list(source, node, &here) {
            Ok(found) => claims.extend(found.into_iter().map(|(claim, place)| PlacedClaim {
                claim,
                annotation,
                place,
            })),
            Err(reason) => findings.push(Finding::new(
                codes::contents::CLAIM_UNREADABLE,
                format!("the annotation {annotation} cannot be read: {reason}"),
                here,
            )),
        }
    }
    claims
}

fn list(source: &Source<'_>, node: &Node, here: &Place) -> Result<Vec<(Claim, Place)>, String> {
    let text = node.as_str().ok_or("it is not a string")?;
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let documents = scantling_yaml::parse(text.as_bytes()).map_err(|error| error.to_string())?;
    let [document] = documents.as_slice() else { return Err("it is not one JSON list".to_owned()) };
    let NodeKind::Sequence(items) = &document.root.kind else {
        return Err("it is not a JSON list".to_owned());
    };
    items
        .iter()
        .map(|item| {
            let field = |name: &str| item.get(name).and_then(|node| scalar(node, text));
            let name = field("name").ok_or("an entry has no name")?;
            let version = field("version").ok_or_else(|| format!("{name} has no version"))?;
            let range = item.get("version").map_or(item.span, inside_quotes);
            let place = Place { object: here.object.clone(), ..source.inner_place(node, range) };
            Ok((Claim { name, version }, place))
        })
        .collect()
}

/// A scalar's text as it is written: a version `2.10` must not become 2.1.
fn scalar(node: &Node, text: &str) -> Option<String> {
    match &node.kind {
        NodeKind::String(value) => Some(value.clone()),
        NodeKind::Number(_) => Some(node.written(text).to_owned()),
        _ => None,
    }
}

/// The span of a scalar without its quotes.
fn inside_quotes(node: &Node) -> Span {
    match node.style {
        scantling_yaml::Style::SingleQuoted | scantling_yaml::Style::DoubleQuoted
            if node.span.end > node.span.start + 1 =>
        {
            Span::new(node.span.start + 1, node.span.end - 1)
        }
        _ => node.span,
    }
}
