//! The parts of a pod that have an image.

use scantling_api::object::ContainerKind;
use scantling_image::{PullPolicy, Reference};

/// A container or a volume, and where it stands in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// A container of one of the three lists.
    Container(ContainerKind, usize),
    /// A volume that is an image.
    Volume(usize),
}

impl Part {
    /// Does it stand in this list of containers?
    pub(crate) fn is_of(self, kind: ContainerKind) -> bool {
        matches!(self, Self::Container(own, _) if own == kind)
    }

    /// The field of a pod's spec that holds the image, as a JSON pointer.
    pub(crate) fn pointer(self) -> String {
        match self {
            Self::Container(kind, index) => format!("/{}/{index}/image", kind.field()),
            Self::Volume(index) => format!("/volumes/{index}/image/reference"),
        }
    }

    /// The field of a pod's status that holds the image ID of a container of this name.
    pub(crate) fn status_field(self, name: &str) -> String {
        match self {
            Self::Container(kind, _) => format!(".status.{}[{name}].imageID", kind.status_field()),
            Self::Volume(_) => format!(".spec.volumes[{name}].image"),
        }
    }

    /// A written policy, else what the API server makes of the image.
    pub(crate) fn policy(written: &str, image: &str) -> Option<PullPolicy> {
        match written {
            "" => Reference::parse(image).ok().map(|reference| PullPolicy::defaulted(&reference)),
            written => PullPolicy::parse(written).ok(),
        }
    }
}
