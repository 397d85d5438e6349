//! Layers of images: archives that registries send, plain or compressed.

use scantling_contents::{ContentsReader, Limits};

use super::{part, parts};

/// Small enough that every one of them can be reached by an input of some kilobytes.
fn limits() -> Limits {
    Limits {
        layers: 4,
        entries: 64,
        layer_bytes: 64 << 10,
        ratio: 100,
        ratio_from: 16 << 10,
        metadata_bytes: 4 << 10,
        packages: 32,
        path_bytes: 256,
    }
}

/// What must hold of all layers. The first byte says how the layers are packed, the first part is the configuration.
pub fn run(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let media_type = match kind % 3 {
        0 => "application/vnd.oci.image.layer.v1.tar",
        1 => "application/vnd.oci.image.layer.v1.tar+gzip",
        _ => "application/vnd.docker.image.rootfs.diff.tar.gzip",
    };
    let parts = parts(data);
    let mut reader = ContentsReader::new(limits());
    if !part(&parts, 0).is_empty() && reader.config(part(&parts, 0)).is_err() {
        return;
    }
    for layer in parts.iter().skip(1) {
        if let Err(error) = reader.layer(media_type, *layer) {
            assert!(!error.to_string().is_empty());
            return;
        }
    }
    let contents = reader.finish();
    assert!(contents.packages.len() <= limits().packages);
    assert!(contents.packages.is_sorted());
    for package in &contents.packages {
        assert!(!package.name.is_empty());
        assert!(contents.find(&package.name).is_some());
    }
}
