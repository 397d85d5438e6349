//! What form of an answer a client asks for with `Accept`.

use super::Status;

/// Media types in one header; more are a mistake or an attack.
const MAX_ALTERNATIVES: usize = 50;
/// What this server writes, for the refusal.
const OFFERED: &str = "application/json, application/yaml";

/// The form of objects in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Form {
    /// As they are.
    #[default]
    Whole,
    /// Rows with the columns that people read.
    Table,
    /// Only `metadata`.
    Metadata,
    /// Discovery: all groups in one document.
    AggregatedDiscovery,
}

/// What of an object stands in its row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Include {
    /// Nothing.
    None,
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

/// Form and encoding of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Accept {
    /// The form.
    pub(super) form: Form,
    /// YAML instead of JSON.
    pub(super) yaml: bool,
    /// What stands in the rows of a table.
    pub(super) include: Include,
}

impl Accept {
    /// The first alternative that this server can produce. Weights are not looked at: clients of Kubernetes order by
    /// preference, and so does its server.
    pub(super) fn parse(header: &str) -> Result<Self, Status> {
        if header.trim().is_empty() {
            return Ok(Self::default());
        }
        header
            .split(',')
            .take(MAX_ALTERNATIVES)
            .find_map(alternative)
            .ok_or_else(|| Status::not_acceptable(OFFERED))
    }
}

impl Include {
    /// The parameter `includeObject`.
    pub(super) fn parse(parameter: Option<&str>) -> Result<Self, Status> {
        match parameter {
            None | Some("Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::None),
            Some("Object") => Ok(Self::Object),
            Some(other) => Err(Status::bad_request(format!("unrecognized includeObject value: {other:?}"))),
        }
    }
}

fn alternative(text: &str) -> Option<Accept> {
    let mut parts = text.split(';').map(str::trim);
    let yaml = match parts.next()? {
        "application/json" | "application/*" | "*/*" | "text/*" => false,
        "application/yaml" => true,
        _ => return None,
    };
    let (mut kind, mut group, mut version, mut stream) = ("", "", "", false);
    for part in parts {
        match part.split_once('=') {
            Some(("as", value)) => kind = value,
            Some(("g", value)) => group = value,
            Some(("v", value)) => version = value,
            Some(("stream", value)) => stream = value == "watch",
            _ => {}
        }
    }
    let form = match (kind, group, version) {
        ("", _, _) => Form::Whole,
        ("Table", "meta.k8s.io", "v1") => Form::Table,
        ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => Form::Metadata,
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Form::AggregatedDiscovery,
        _ => return None,
    };
    // Streams are written as JSON only.
    (!(stream && yaml)).then_some(Accept { form, yaml, include: Include::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_possible_alternative_is_taken() {
        let json = |form| Ok(Accept { form, ..Accept::default() });
        for (header, accept) in [
            ("", json(Form::Whole)),
            ("*/*", json(Form::Whole)),
            ("application/vnd.kubernetes.protobuf,application/json", json(Form::Whole)),
            ("application/yaml", Ok(Accept { yaml: true, ..Accept::default() })),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
                json(Form::Table),
            ),
            ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", json(Form::Whole)),
            ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", json(Form::Metadata)),
            (
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
                json(Form::AggregatedDiscovery),
            ),
        ] {
            assert_eq!(Accept::parse(header), accept, "{header}");
        }
        assert_eq!(
            Accept::parse("application/vnd.kubernetes.protobuf").map_err(|status| status.code),
            Err(406)
        );
    }
}
