//! The endpoints file: addresses that stand in for registries' names.

use scantling_image::canonical_registry;
use serde::Deserialize;

use crate::mirrors::{Address, Mirrors, MirrorsError};
use crate::scope::host_and_path;

/// The only version of the format.
const VERSION: u32 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Always 1.
    version: u32,
    /// Registries whose names lead elsewhere.
    endpoints: Vec<Endpoint>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Endpoint {
    /// The registry's name as references write it.
    registry: String,
    /// The host and port that are asked instead. The registry's name still goes into requests.
    address: String,
    /// Plain HTTP instead of HTTPS.
    #[serde(default)]
    insecure: bool,
}

pub(crate) fn add(mirrors: &mut Mirrors, origin: &str, yaml: &[u8]) -> Result<(), MirrorsError> {
    let problem = |problem: String| MirrorsError::Yaml { origin: origin.to_owned(), problem };
    let documents = scantling_yaml::parse(yaml).map_err(|error| problem(error.to_string()))?;
    let [document] = documents.as_slice() else {
        return Err(problem(format!("one document is needed, there are {}", documents.len())));
    };
    let file: File = serde_path_to_error::deserialize(document.root.to_json())
        .map_err(|error| problem(error.to_string()))?;
    if file.version != VERSION {
        return Err(problem(format!("version {} is not known, {VERSION} is", file.version)));
    }
    for (place, endpoint) in file.endpoints.into_iter().enumerate() {
        let field = |name: &str, problem: String| MirrorsError::Field {
            origin: origin.to_owned(),
            field: format!("endpoints[{place}].{name}"),
            problem,
        };
        let bare = |text: &str| match host_and_path(text) {
            Ok((_, path)) if path.is_empty() => Ok(()),
            Ok(_) => Err("a host without a path is needed".to_owned()),
            Err(problem) => Err(problem),
        };
        bare(&endpoint.registry).map_err(|problem| field("registry", problem))?;
        bare(&endpoint.address).map_err(|problem| field("address", problem))?;
        if mirrors.address(&endpoint.registry).is_some() {
            let name = canonical_registry(&endpoint.registry);
            return Err(field("registry", format!("{name} has an address already")));
        }
        mirrors.set_address(
            &endpoint.registry,
            Address { address: endpoint.address, insecure: endpoint.insecure },
        );
    }
    Ok(())
}
