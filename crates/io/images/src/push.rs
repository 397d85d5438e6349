//! Images into a registry.

use scantling_endpoint::{Address, Keyring, Mirrors};
use scantling_image::Reference;
use scantling_registry::{Copied, Options, RegistryClient, tcp_transport};

use crate::error::ImagesError;
use crate::layout::Image;

/// An image that is in a registry now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// Where it is, with tag.
    pub tagged: Reference,
    /// Where it is, with digest and without tag.
    pub pinned: Reference,
    /// What was sent.
    pub copied: Copied,
}

/// Pushes images to `registry`, which is `HOST:PORT` or `HOST:PORT/PREFIX`, as `registry/NAME:VERSION`. Layers that several images
/// share are sent once.
pub async fn push_all(
    client: &RegistryClient,
    images: &[Image],
    registry: &str,
) -> Result<Vec<Pushed>, ImagesError> {
    let mut pushed: Vec<Pushed> = Vec::new();
    for (at, image) in images.iter().enumerate() {
        let name = format!("{}/{}", registry.trim_end_matches('/'), image.name.name());
        let refused = |error: scantling_image::ReferenceError| ImagesError::Program {
            command: format!("push to {registry}"),
            problem: error.to_string(),
        };
        let tagged = Reference::parse(&format!("{name}:{}", image.name.version())).map_err(refused)?;
        let pinned = Reference::parse(&name).map_err(refused)?.with_digest(&image.digest);
        // The one that has most of its layers in the registry already.
        let shared = |other: &Image| other.layers.iter().filter(|layer| image.layers.contains(layer)).count();
        let before = images.get(..at).unwrap_or_default().iter().zip(&pushed);
        let source = before.filter(|(other, _)| shared(other) > 0).max_by_key(|(other, _)| shared(other));
        let from = source.map(|(_, pushed)| pushed.tagged.repository());
        let copied = image.push(client, from, &tagged).await?;
        pushed.push(Pushed { tagged, pinned, copied });
    }
    Ok(pushed)
}

/// A client for a registry that speaks plain HTTP, such as one on this machine; `host` is its `HOST:PORT`.
pub fn plain_http(host: &str) -> Result<RegistryClient, ImagesError> {
    let mut mirrors = Mirrors::new();
    mirrors.set_address(host, Address { address: host.to_owned(), insecure: true });
    let transport = tcp_transport(&mirrors, b"").map_err(|error| ImagesError::Program {
        command: format!("connect to {host}"),
        problem: error.to_string(),
    })?;
    Ok(RegistryClient::new(transport, mirrors, Keyring::new(), Options::default()))
}
