//! What is found: references and what looks like them.

use std::fmt;

use scantling_finding::Place;
use scantling_image::Reference;
use serde::Serialize;

/// A text that is an image reference, stands for one, or looks like one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// What it is.
    #[serde(flatten)]
    pub what: What,
    /// The text as it is written; of several fields that make one reference, the first.
    pub written: String,
    /// Where it is written: file, line, column and bytes, the object, and the path of the field through nested documents.
    pub place: Place,
    /// How the cluster comes to use it.
    pub route: Route,
    /// What must hold for it to be used, beside the object being applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Whether it stands in a document inside a string, such as YAML in a `ConfigMap` or JSON in an annotation.
    pub nested: bool,
    /// The `imagePullPolicy` that is written beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_policy: Option<String>,
}

/// What a candidate is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum What {
    /// A reference.
    Reference {
        /// The reference.
        reference: Reference,
    },
    /// A reference that is written in several fields: repository and tag, base and digest, the parts of a kustomize entry.
    Joined {
        /// The reference that the parts make.
        reference: Reference,
        /// Every part with its role, in the order registry, name, tag, digest.
        parts: Vec<Part>,
    },
    /// A text that has to be replaced before it reaches the cluster.
    Placeholder {
        /// The names of what has to be given, as `RELATED_IMAGE_ODH_OPENVINO_IMAGE` or `ovms-image`.
        names: Vec<String>,
        /// What fills it, as far as the files say.
        filled_by: Vec<Filling>,
    },
    /// The name of an image stream's tag inside the cluster, which no registry knows by this name.
    ImageStreamTag {
        /// The namespace, where it is written.
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        /// The image stream.
        stream: String,
        /// The tag, or a digest for an `ImageStreamImage`.
        tag: String,
    },
    /// A text that stands where a reference is expected but is none.
    Malformed {
        /// What is wrong.
        reason: String,
        /// What was probably meant.
        #[serde(skip_serializing_if = "Option::is_none")]
        suggestion: Option<String>,
    },
    /// A text that follows the grammar of references but means something else.
    Decoy {
        /// What it is, or why it is none.
        reason: String,
    },
    /// A text that could be a reference; nothing says whether it is one.
    Unclassified {
        /// Why it is in doubt.
        reason: String,
    },
}

/// One of the fields that together make a reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// What the field gives.
    pub role: Role,
    /// The field's text.
    pub written: String,
    /// Where it is.
    pub place: Place,
}

/// What a field gives to a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The registry.
    Registry,
    /// The repository, with or without its registry.
    Name,
    /// The tag.
    Tag,
    /// The digest.
    Digest,
}

/// What gives a placeholder its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Filling {
    /// What it is: "kustomize replacement", "environment variable", …
    pub by: String,
    /// The text that takes the placeholder's place; empty if it is given by somebody who is not among the files.
    pub value: String,
    /// Where that is written.
    pub place: Place,
}

/// How the cluster comes to use a reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "by", content = "name", rename_all = "kebab-case")]
pub enum Route {
    /// The field of an object names it.
    Direct,
    /// An environment variable of a container carries it to the program inside.
    Environment(String),
    /// A command-line flag or argument of a container carries it.
    Argument(String),
    /// A parameter of the release: an entry of an env file, a kustomize image, a `KfDef` or pipeline parameter.
    Parameter(String),
    /// The default of a template's parameter or of a schema's field.
    TemplateDefault(String),
    /// What is used if something else is not given: `${NAME:-this}`, `process.env.NAME || "this"`.
    Fallback(String),
    /// A bundle lists it among its related images, for mirroring.
    Listed,
    /// An annotation or label says it; nothing pulls it.
    Noted,
    /// A build pushes to it.
    Pushed,
    /// A status says that it was seen.
    Observed,
    /// The release offers it to people, under this name.
    Catalogue(String),
    /// A program's source has it; which code path uses it is not known.
    SourceText,
}

impl Route {
    /// Whether something will pull the image when the release is used as the route's condition says.
    pub fn is_pulled(&self) -> bool {
        !matches!(self, Self::Noted | Self::Pushed | Self::Observed)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct => formatter.write_str("direct"),
            Self::Environment(name) => write!(formatter, "environment variable {name}"),
            Self::Argument(name) => write!(formatter, "argument {name}"),
            Self::Parameter(name) => write!(formatter, "parameter {name}"),
            Self::TemplateDefault(name) => write!(formatter, "default of parameter {name}"),
            Self::Fallback(name) => write!(formatter, "fallback for {name}"),
            Self::Listed => formatter.write_str("related image"),
            Self::Noted => formatter.write_str("note"),
            Self::Pushed => formatter.write_str("pushed by a build"),
            Self::Observed => formatter.write_str("status"),
            Self::Catalogue(name) => write!(formatter, "catalogue, as {name}"),
            Self::SourceText => formatter.write_str("source text"),
        }
    }
}

impl Candidate {
    /// The reference, written in one piece or in several.
    pub fn reference(&self) -> Option<&Reference> {
        match &self.what {
            What::Reference { reference } | What::Joined { reference, .. } => Some(reference),
            _ => None,
        }
    }

    /// Whether it is a reference that something will pull, be it under a condition.
    pub fn is_pulled(&self) -> bool {
        self.reference().is_some() && self.route.is_pulled()
    }

    /// Whether it becomes live only if something else is missing.
    pub fn is_fallback(&self) -> bool {
        matches!(self.route, Route::Fallback(_) | Route::TemplateDefault(_) | Route::SourceText)
    }
}
