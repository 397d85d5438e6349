//! Conda packages.

use serde::Deserialize;

/// What is read of a record.
#[derive(Debug, Deserialize)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) version: String,
}

/// Is this the record of an installed package: `PREFIX/conda-meta/NAME-VERSION-BUILD.json`?
pub(crate) fn is_record(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let is_json =
        parts.next().and_then(|file| file.rsplit_once('.')).is_some_and(|(_, suffix)| suffix == "json");
    is_json && parts.next() == Some("conda-meta")
}

/// Reads a record.
pub(crate) fn parse(bytes: &[u8]) -> Result<Record, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("not a conda record: {error}"))
}
