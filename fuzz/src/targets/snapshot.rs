//! A dump of a cluster: split and read whole, and again by blocks of the size that its first byte says.

use std::io::Cursor;

use scantling_snapshot::{Limits, Snapshot, read_text};

/// What must hold of all dumps.
pub fn run(data: &[u8]) {
    let [size, text @ ..] = data else { return };
    let limits =
        |block| Limits { block_bytes: block, object_bytes: 1 << 20, objects: 1_000, ..Limits::default() };
    let read = |block| read_text("dump", Cursor::new(text.to_vec()), &limits(block));
    let (whole, parts) = (read(1 << 20), read(u64::from(*size).max(1)));
    assert_eq!(said(&whole), said(&parts), "blocks change nothing");
    assert!(whole.observed == parts.observed, "blocks change nothing");
    for pod in whole.observed.pod_records() {
        let Ok(pod) = pod else { continue };
        for container in &pod.containers {
            let _ = (container.image_id(), container.pull_policy(), container.state());
        }
    }
}

/// What was not read; sizes of packed texts are not those of their blocks.
fn said(snapshot: &Snapshot) -> Vec<String> {
    snapshot.skipped.iter().map(ToString::to_string).collect()
}
