//! Small images that run: a static busybox, files and a command.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use scantling_contents::{BuiltImage, BuiltPlatform};
use scantling_endpoint::{Address, Keyring, Mirrors};
use scantling_image::{Digest, Platform};
use scantling_registry::{Options, RegistryClient, tcp_transport};
use serde_json::json;

use crate::files::{LOCKED, REGISTRY};

/// Names under which busybox is called.
const APPLETS: [&str; 8] = ["sh", "cat", "sleep", "httpd", "wget", "nc", "mkdir", "id"];
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A file in an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    bytes: Vec<u8>,
    mode: u32,
}

impl File {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { bytes: text.into().into_bytes(), mode: 0o644 }
    }

    /// A program or library of this machine.
    ///
    /// # Errors
    /// It can't be read.
    pub fn program(path: &Path) -> anyhow::Result<Self> {
        let bytes = std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
        Ok(Self { bytes, mode: 0o755 })
    }
}

/// An image of busybox and files, by absolute path, that runs a command as nobody in particular. The same in gives the same
/// digest.
///
/// # Errors
/// No busybox is installed, or it can't be put into a layer.
pub fn image(files: &BTreeMap<String, File>, command: &[&str]) -> anyhow::Result<BuiltImage> {
    let busybox = std::fs::read("/bin/busybox").or_else(|_| std::fs::read("/usr/bin/busybox"));
    let busybox = busybox.context("failed to read busybox")?;
    let mut tar = tar::Builder::new(Vec::new());
    entry(&mut tar, "bin/busybox", 0o755, &busybox)?;
    for applet in APPLETS {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, format!("bin/{applet}"), "busybox")?;
    }
    for (path, file) in files {
        entry(&mut tar, path.trim_start_matches('/'), file.mode, &file.bytes)?;
    }
    let layer = tar.into_inner()?;

    let mut blobs = BTreeMap::new();
    let mut add = |media_type: &str, bytes: Vec<u8>| {
        let digest = Digest::of(&bytes);
        let about = json!({"mediaType": media_type, "digest": digest.to_string(), "size": bytes.len()});
        blobs.insert(digest.clone(), (media_type.to_owned(), bytes));
        (digest, about)
    };
    let (layer, layer_about) = add(LAYER, layer);
    let config = json!({
        "architecture": "amd64", "os": "linux",
        "config": {"Entrypoint": command, "Env": ["PATH=/bin"], "User": "1001"},
        "rootfs": {"type": "layers", "diff_ids": [layer.to_string()]},
    });
    let (config, config_about) = add(CONFIG, serde_json::to_vec(&config)?);
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config_about, "layers": [layer_about],
    });
    let (root, _) = add(MANIFEST, serde_json::to_vec(&manifest)?);
    let platform = BuiltPlatform {
        platform: Platform::linux_amd64(),
        manifest: root.clone(),
        config,
        layers: vec![(layer, LAYER.to_owned())],
    };
    Ok(BuiltImage { media_type: MANIFEST.to_owned(), root, blobs, platforms: vec![platform] })
}

fn entry(tar: &mut tar::Builder<Vec<u8>>, path: &str, mode: u32, bytes: &[u8]) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_size(bytes.len() as u64);
    tar.append_data(&mut header, path, bytes)
}

/// A client of the cluster's registry, for a thread in the cluster's network.
///
/// # Errors
/// The client can't be made.
pub fn pusher() -> anyhow::Result<RegistryClient> {
    puller(Keyring::new())
}

/// The same with credentials.
///
/// # Errors
/// The client can't be made.
pub fn puller(keyring: Keyring) -> anyhow::Result<RegistryClient> {
    let mut mirrors = Mirrors::new();
    for registry in [REGISTRY, LOCKED] {
        mirrors.set_address(registry, Address { address: registry.to_owned(), insecure: true });
    }
    let transport = tcp_transport(&mirrors, &[])?;
    Ok(RegistryClient::new(transport, mirrors, keyring, Options::default()))
}
