//! The catalogue's images, as `release.yaml` lists them.

use std::collections::BTreeMap;

use scantling_finding::{Finding, Place, codes};
use scantling_image::Reference;
use scantling_manifest::Route;
use scantling_yaml::Node;
use serde::Serialize;

use crate::faults::is_name;
use crate::format::ReleaseFile;
use crate::read::at;
use crate::settings::Chosen;
use crate::source::Source;
use crate::substitution::Substitutions;
use crate::{Reach, UsedReference};

/// Longest tag: what the distribution specification allows.
const TAG_MAX: usize = 128;

/// A tag of the catalogue, as a release lists it: what people choose, and the image that they get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferedImage {
    /// The image's name, which is that of the image stream where there are any.
    pub stream: String,
    /// What screens call it.
    pub title: String,
    /// What it is for.
    pub about: Option<String>,
    /// The component that it belongs to.
    pub component: Option<String>,
    /// The resource that a notebook of it needs.
    pub accelerator: Option<String>,
    /// The tag.
    pub tag: String,
    /// The reference, its registry filled in.
    pub reference: Reference,
    /// The packages whose versions are shown.
    pub shows: Vec<String>,
    /// Whether it is what people get unless they choose another.
    pub recommended: bool,
    /// Whether it is retired: kept for the notebooks that use it, not offered to others.
    pub outdated: bool,
    /// Where its image is written.
    pub place: Place,
}

impl OfferedImage {
    /// What people choose: `stream:tag`.
    pub fn selection(&self) -> String {
        format!("{}:{}", self.stream, self.tag)
    }

    /// The use of its reference.
    pub(crate) fn used(&self) -> UsedReference {
        UsedReference {
            reference: self.reference.clone(),
            place: self.place.clone(),
            route: Route::Catalogue(self.selection()),
            reach: Reach::Applied,
        }
    }
}

/// The images that are offered with the components chosen, in the order of the file.
pub(crate) fn read(
    source: &Source<'_>,
    root: &Node,
    file: &ReleaseFile,
    chosen: &Chosen,
    substitutions: &Substitutions,
    findings: &mut Vec<Finding>,
) -> Vec<OfferedImage> {
    let mut offered = Vec::new();
    let images = file.catalogue.iter().flat_map(|catalogue| &catalogue.images);
    for (number, image) in images.enumerate() {
        let here = chosen.has(image.component.as_ref());
        for (index, tag) in image.tags.iter().enumerate() {
            let place = at(source, root, &format!("/catalogue/images/{number}/tags/{index}/image"))
                .with_field(format!(".catalogue.images[{number}].tags[{index}].image"));
            // What is left out is filled, too: its placeholders are not without use.
            let text = substitutions.filled(&tag.image).unwrap_or_else(|| tag.image.clone());
            let reference = match Reference::parse(&text) {
                Ok(reference) => reference,
                Err(error) => {
                    let message = match substitutions.filled(&tag.image) {
                        Some(text) => format!("{} becomes {text:?}: {error}", tag.image),
                        None => error.to_string(),
                    };
                    findings.push(Finding::new(codes::references::MALFORMED_REFERENCE, message, place));
                    continue;
                }
            };
            if here {
                offered.push(OfferedImage {
                    stream: image.name.clone(),
                    title: image.title.clone(),
                    about: image.about.clone(),
                    component: image.component.clone(),
                    accelerator: image.accelerator.clone(),
                    tag: tag.name.clone(),
                    reference,
                    shows: tag.shows.clone(),
                    recommended: tag.recommended,
                    outdated: tag.outdated,
                    place,
                });
            }
        }
    }
    offered
}

/// What is wrong with a catalogue although it decodes: pointers into the file, and why.
pub(crate) fn faults(file: &ReleaseFile) -> Vec<(String, String)> {
    let Some(catalogue) = &file.catalogue else { return Vec::new() };
    let mut faults = Vec::new();
    let mut bad = |pointer: String, message: String| faults.push((pointer, message));
    match &catalogue.image_stream_label {
        Some(label) if !label.contains('=') => {
            bad("/catalogue/imageStreamLabel".to_owned(), "write the label as key=value".to_owned());
        }
        Some(_) if !catalogue.images.is_empty() => {
            let message = "image streams with a label and images that are listed: a catalogue is one of both";
            bad("/catalogue/images".to_owned(), message.to_owned());
        }
        None if catalogue.images.is_empty() => {
            let message = "the catalogue offers nothing: write `imageStreamLabel` or `images`";
            bad("/catalogue".to_owned(), message.to_owned());
        }
        _ => {}
    }
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, image) in catalogue.images.iter().enumerate() {
        let at = |field: &str| format!("/catalogue/images/{number}/{field}");
        if !is_name(&image.name) {
            bad(at("name"), format!("{:?} is no name: write lower-case letters, digits and -", image.name));
        }
        if names.insert(&image.name, number).is_some() {
            bad(at("name"), format!("{} is listed twice", image.name));
        }
        if image.title.trim().is_empty() {
            bad(at("title"), "an empty title".to_owned());
        }
        if image.tags.is_empty() {
            bad(at("tags"), format!("{} has no tags: there is nothing to choose", image.name));
        }
        let mut tags: BTreeMap<&str, usize> = BTreeMap::new();
        let mut recommended: Option<&str> = None;
        for (index, tag) in image.tags.iter().enumerate() {
            let at = |field: &str| format!("/catalogue/images/{number}/tags/{index}/{field}");
            if !is_tag(&tag.name) {
                let message = format!("{:?} is no tag: write lower-case letters, digits, . and -", tag.name);
                bad(at("name"), message);
            }
            if tags.insert(&tag.name, index).is_some() {
                bad(at("name"), format!("{}:{} is listed twice", image.name, tag.name));
            }
            if tag.recommended && tag.outdated {
                bad(at("recommended"), format!("{}:{} is outdated as well", image.name, tag.name));
            }
            if let Some(first) = recommended.filter(|_| tag.recommended) {
                bad(at("recommended"), format!("{}:{first} is recommended as well", image.name));
            }
            if tag.recommended {
                recommended = Some(&tag.name);
            }
            if let Some(empty) = tag.shows.iter().position(|name| name.trim().is_empty()) {
                bad(at(&format!("shows/{empty}")), "an empty name of a package".to_owned());
            }
        }
    }
    faults
}

/// A tag that is part of an object's name as it stands.
fn is_tag(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.len() <= TAG_MAX
        && edge(text.chars().next())
        && edge(text.chars().next_back())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.' || b == b'-')
}
