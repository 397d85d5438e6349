//! Image streams and their tags.

use scantling_api::object;
use scantling_finding::{Finding, Place};
use scantling_yaml::Node;
use serde::Serialize;

use crate::build::image_name;
use crate::claim::{self, PlacedClaim};
use crate::object::{Item, ReleaseObject};
use crate::source::Source;
use crate::{Catalogue, ImageName};

/// One tag of an image stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamTag {
    /// Its name.
    pub name: ImageName,
    /// What people read in the spawner, from the stream's annotation.
    pub display_name: Option<String>,
    /// Whether people choose notebooks from it.
    pub offered: bool,
    /// What it is imported from; nothing for the output of a build.
    pub from: Option<ImageName>,
    /// What it claims to hold.
    pub claims: Vec<PlacedClaim>,
    /// Where its name is written.
    pub place: Place,
    /// Where its `from` is written.
    pub from_place: Option<Place>,
}

/// Reads the tags of an `ImageStream`.
pub(crate) fn read(
    source: &Source<'_>,
    item: Item<'_>,
    object: &ReleaseObject,
    catalogue: Option<&Catalogue>,
    findings: &mut Vec<Finding>,
) -> Vec<StreamTag> {
    if object.gvk.group != "image.openshift.io" || object.gvk.kind != "ImageStream" {
        return Vec::new();
    }
    let offered = catalogue.is_some_and(|catalogue| is_offered(catalogue, object));
    let display_name =
        object::annotation(&object.value, "opendatahub.io/notebook-image-name").map(str::to_owned);
    let tags = item.node.pointer("/spec/tags").map(Node::items).unwrap_or_default();
    tags.iter()
        .enumerate()
        .filter_map(|(index, tag)| {
            let pointer = format!("/spec/tags/{index}");
            let name = object.value.pointer(&format!("{pointer}/name"))?.as_str()?;
            let at = |node: &Node, field: &str| {
                source
                    .value_place(node)
                    .with_object(object.key.to_string())
                    .with_field(format!(".spec.tags[{index}]{field}"))
            };
            let place = at(tag.get("name")?, ".name");
            let claims = tag
                .get("annotations")
                .map(|annotations| claim::read(source, annotations, &place, findings))
                .unwrap_or_default();
            Some(StreamTag {
                name: ImageName::StreamTag {
                    namespace: object.key.namespace.clone(),
                    stream: object.key.name.clone(),
                    tag: name.to_owned(),
                },
                display_name: display_name.clone(),
                offered,
                from: image_name(object, &format!("{pointer}/from"), object.key.namespace.as_deref()),
                claims,
                place,
                from_place: tag.pointer("/from/name").map(|node| at(node, ".from.name")),
            })
        })
        .collect()
}

fn is_offered(catalogue: &Catalogue, object: &ReleaseObject) -> bool {
    let label = catalogue.image_stream_label.as_deref();
    label
        .and_then(|label| label.split_once('='))
        .is_some_and(|(key, value)| object::label(&object.value, key) == Some(value))
}
