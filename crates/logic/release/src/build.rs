//! Images that are built on the cluster.

use scantling_api::object;
use scantling_finding::Place;
use scantling_yaml::Node;
use serde::Serialize;

use crate::ImageName;
use crate::object::{Item, ReleaseObject};
use crate::source::Source;

/// A build configuration: what it is built from, and the name that its result gets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Build {
    /// Namespace of the build configuration, if known.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// What the result is pushed to.
    pub output: ImageName,
    /// Where the sources come from.
    pub source: BuildSource,
    /// The image that it builds upon.
    pub base: Option<ImageName>,
    /// Where the output is named.
    pub place: Place,
    /// Where the base is named.
    pub base_place: Option<Place>,
}

/// Where the sources of a build come from.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BuildSource {
    /// The repository.
    pub uri: Option<Written>,
    /// The branch, tag or commit; the repository's default branch if not given.
    #[serde(rename = "ref")]
    pub git_ref: Option<Written>,
    /// The folder inside the repository.
    pub context_dir: Option<Written>,
    /// The Dockerfile's path, for Docker builds.
    pub dockerfile: Option<Written>,
}

/// A text and where it is written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Written {
    /// The text.
    pub text: String,
    /// Where.
    pub place: Place,
}

const STRATEGIES: [&str; 3] = ["dockerStrategy", "sourceStrategy", "customStrategy"];

/// Reads a `BuildConfig`. None if it has no output: such a build only runs and makes no image.
pub(crate) fn read(source: &Source<'_>, item: Item<'_>, object: &ReleaseObject) -> Option<Build> {
    if object.gvk.group != "build.openshift.io" || object.gvk.kind != "BuildConfig" {
        return None;
    }
    let node = item.node;
    let namespace = object.key.namespace.as_deref();
    let owner = object.key.to_string();
    let written = |pointer: &str| {
        let node = node.pointer(pointer)?;
        let text = object.value.pointer(pointer)?.as_str().filter(|text| !text.is_empty())?.to_owned();
        let place = source.value_place(node).with_object(owner.clone()).with_field(field(pointer));
        Some(Written { text, place })
    };
    let output = image_name(object, "/spec/output/to", namespace)?;
    let place = written("/spec/output/to/name")?.place;
    let base_pointer = STRATEGIES
        .iter()
        .map(|strategy| format!("/spec/strategy/{strategy}/from"))
        .find(|pointer| node.pointer(pointer).is_some_and(Node::is_collection));
    let base = base_pointer.as_deref().and_then(|pointer| image_name(object, pointer, namespace));
    let base_place =
        base_pointer.and_then(|pointer| written(&format!("{pointer}/name"))).map(|base| base.place);
    Some(Build {
        namespace: object.key.namespace.clone(),
        name: object::name(&object.value).to_owned(),
        output,
        source: BuildSource {
            uri: written("/spec/source/git/uri"),
            git_ref: written("/spec/source/git/ref"),
            context_dir: written("/spec/source/contextDir"),
            dockerfile: written("/spec/strategy/dockerStrategy/dockerfilePath"),
        },
        base,
        place,
        base_place,
    })
}

/// What a `{kind, name, namespace}` reference to an image means.
pub(crate) fn image_name(
    object: &ReleaseObject,
    pointer: &str,
    namespace: Option<&str>,
) -> Option<ImageName> {
    let reference = object.value.pointer(pointer)?;
    let text = |field: &str| reference.get(field).and_then(serde_json::Value::as_str);
    let name = text("name").filter(|name| !name.is_empty())?;
    Some(match text("kind")? {
        // `stream@sha256:…` is as fixed as a reference by digest.
        "DockerImage" | "ImageStreamImage" => ImageName::Reference(name.to_owned()),
        "ImageStreamTag" => ImageName::stream_tag(text("namespace").or(namespace), name),
        _ => return None,
    })
}

/// A JSON pointer as a field path.
fn field(pointer: &str) -> String {
    pointer.replace('/', ".")
}
