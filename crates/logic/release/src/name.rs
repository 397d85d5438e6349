//! Names that lead to an image.

use std::fmt;

use serde::{Serialize, Serializer};

/// A name that pods or builds use for an image, and under which nodes cache it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageName {
    /// A tag of an image stream.
    StreamTag {
        /// Namespace of the stream, if known.
        namespace: Option<String>,
        /// Name of the stream.
        stream: String,
        /// Name of the tag.
        tag: String,
    },
    /// A reference as written.
    Reference(String),
}

impl ImageName {
    /// The name that a `from` or `to` of kind `ImageStreamTag` means: `stream:tag`, `latest` if there is no tag.
    pub(crate) fn stream_tag(namespace: Option<&str>, written: &str) -> Self {
        let (stream, tag) = written.split_once(':').unwrap_or((written, "latest"));
        Self::StreamTag {
            namespace: namespace.map(str::to_owned),
            stream: stream.to_owned(),
            tag: tag.to_owned(),
        }
    }

    /// With a namespace, if it has none of its own.
    #[must_use]
    pub(crate) fn in_namespace(self, default: Option<&str>) -> Self {
        match self {
            Self::StreamTag { namespace: None, stream, tag } => {
                Self::StreamTag { namespace: default.map(str::to_owned), stream, tag }
            }
            other => other,
        }
    }

    /// Without the namespace, as people say it within one release.
    pub fn short(&self) -> String {
        match self {
            Self::StreamTag { stream, tag, .. } => format!("{stream}:{tag}"),
            Self::Reference(written) => written.clone(),
        }
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::StreamTag { namespace: Some(namespace), .. } = self {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.short())
    }
}

impl Serialize for ImageName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
