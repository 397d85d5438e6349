//! Fetching from a web server in the process, from folders, and from a small S3 server where there is one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod archives;
mod folders;
mod s3;
mod server;
mod web;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use scantling_model_fetch::{Access, FetchError, Fetched, Limits, Uri, fetch};
use sha2::{Digest as _, Sha256};

/// Without long waits.
fn limits() -> Limits {
    Limits {
        pause: Duration::from_millis(1),
        silence: Duration::from_millis(500),
        attempts: 3,
        ..Limits::default()
    }
}

async fn get(uri: &str, folder: &Path, sha256: Option<&str>, limits: &Limits) -> Result<Fetched, FetchError> {
    fetch(&Uri::parse(uri).unwrap(), &Access::default(), folder, sha256, limits, 1, &mut |_| ()).await
}

/// Every file below a folder but our own, by path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                assert!(!name.starts_with(".scantling"), "parts are left behind");
                walk(root, &path, found);
            } else if !name.starts_with(".scantling") {
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(folder, folder, &mut found);
    found
}

fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Bytes that repeat late.
fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|n| u8::try_from((n * 7 + n / 251) % 256).unwrap()).collect()
}
