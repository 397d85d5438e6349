//! What Go's encoder does with zero values, read from the declarations of the API's types.
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde_json::Value;

#[derive(Default)]
pub(crate) struct GoTypes;

impl GoTypes {
    pub(crate) fn read_module(&mut self, _module: &str, _folder: &Path) -> Result<()> {
        Ok(())
    }
    pub(crate) fn annotate(&self, _types: &mut BTreeMap<String, Value>) {}
}
