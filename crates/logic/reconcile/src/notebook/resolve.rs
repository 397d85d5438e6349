//! Which image a notebook gets.

use scantling_image::Reference;
use scantling_observed::{Notebook, View as _, annotations};

use crate::catalogue::{Catalogue, Entry, Unresolved};
use crate::context::Context;
use crate::notebook::MAX_NAME;

/// Most selections that a message lists.
pub(super) const MAX_LISTED: usize = 20;

/// Why a notebook is not made: a word for the condition and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// The image of a notebook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolved<'a> {
    /// What a selection stands for.
    Entry(&'a Entry),
    /// The owner wrote an image by digest and selected nothing.
    Written(&'a str),
}

impl<'a> Resolved<'a> {
    pub(super) fn image(&self) -> &'a str {
        match self {
            Self::Entry(entry) => entry.spec.image.written(),
            Self::Written(image) => image,
        }
    }

    pub(super) fn entry(&self) -> Option<&'a Entry> {
        match self {
            Self::Entry(entry) => Some(entry),
            Self::Written(_) => None,
        }
    }
}

/// Resolves: the selection in the catalogue of its namespace; without a selection, an image that the catalogue names, or one by digest.
pub(super) fn resolve<'a>(
    notebook: Notebook<'a>,
    catalogue: &'a Catalogue,
    context: &Context<'_>,
) -> Result<Resolved<'a>, Refusal> {
    let refuse = |reason, message| Err(Refusal { reason, message });
    if !is_service_name(notebook.name()) {
        return refuse(
            "InvalidName",
            format!(
                "a service cannot be called {:?}: make the notebook anew under a name of small letters, digits and `-` that begins with a letter",
                notebook.name()
            ),
        );
    }
    if notebook.name().len() > MAX_NAME {
        return refuse(
            "NameTooLong",
            format!(
                "the name has {} characters; a StatefulSet's pods need at most {MAX_NAME}: make the notebook anew under a shorter name",
                notebook.name().len()
            ),
        );
    }
    let Some(container) = notebook.container() else {
        return refuse(
            "InvalidTemplate",
            format!(
                "the template has no container called {:?}, the notebook's name, to run the notebook in",
                notebook.name()
            ),
        );
    };
    let Some(selection) = notebook.selection() else {
        let image = container.image().unwrap_or_default();
        return match Reference::parse(image) {
            Err(error) => refuse(
                "NoSelection",
                format!(
                    "there is no annotation {} and the image does not parse: {error}",
                    annotations::SELECTION
                ),
            ),
            Ok(reference) => match catalogue.named(&reference) {
                Some(entry) => Ok(Resolved::Entry(entry)),
                None if reference.is_pinned() => Ok(Resolved::Written(image)),
                None => refuse(
                    "NotPinned",
                    format!(
                        "the image {image} can change under its name: select an image of the catalogue, or write a digest"
                    ),
                ),
            },
        };
    };
    let namespace = notebook.catalogue_namespace().unwrap_or(context.namespace);
    match catalogue.select(namespace, selection) {
        Ok(entry) => Ok(Resolved::Entry(entry)),
        Err(Unresolved::Unknown { known }) => Err(unknown(selection, namespace, &known)),
        Err(Unresolved::Broken { name, reason }) => {
            refuse("BrokenEntry", format!("NotebookImage {namespace}/{name} cannot be used: {reason}"))
        }
        Err(Unresolved::Ambiguous { names }) => refuse(
            "AmbiguousSelection",
            format!(
                "{selection:?} is the selection of {} in namespace {namespace}: keep one",
                names.join(" and ")
            ),
        ),
    }
}

/// A selection that the catalogue does not have: the tag is gone, or the whole stream. Neither says that what runs is gone.
fn unknown(selection: &str, namespace: &str, known: &[String]) -> Refusal {
    if known.is_empty() {
        return Refusal {
            reason: "UnknownStream",
            message: format!("no image {selection:?}: the catalogue in namespace {namespace} is empty"),
        };
    }
    let stream =
        |selection: &str| selection.rsplit_once(':').map_or(selection, |(stream, _)| stream).to_owned();
    let of_stream: Vec<&String> = known.iter().filter(|other| stream(other) == stream(selection)).collect();
    let (reason, offered) = if of_stream.is_empty() {
        ("UnknownStream", known.iter().collect())
    } else {
        ("UnknownTag", of_stream)
    };
    let more = offered.len().saturating_sub(MAX_LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names: Vec<&str> = offered.into_iter().take(MAX_LISTED).map(String::as_str).collect();
    Refusal {
        reason,
        message: format!(
            "no image {selection:?} in the catalogue of namespace {namespace}: select one of {}{more}",
            names.join(", ")
        ),
    }
}

/// Is this a name that a service can have (RFC 1035)?
fn is_service_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_lowercase())
        && characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && !name.ends_with('-')
}
