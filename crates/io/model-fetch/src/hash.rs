//! SHA-256 as text.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::error::{FetchError, at};

/// Bytes read at once.
const BLOCK: usize = 1 << 20;

/// A hash in the making.
#[derive(Clone, Default)]
pub(crate) struct Hasher(Sha256);

impl Hasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// In small hexadecimal digits.
    pub(crate) fn finish(self) -> String {
        use std::fmt::Write as _;
        self.0.finalize().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// Hashes the first `length` bytes of a file; fewer if it has fewer. Gives the hash and how many there were.
pub(crate) fn of_file(path: &Path, length: u64) -> Result<(Hasher, u64), FetchError> {
    let mut file = File::open(path).map_err(at(path))?.take(length);
    let mut hasher = Hasher::default();
    let mut block = vec![0; BLOCK];
    let mut total = 0;
    loop {
        let read = file.read(&mut block).map_err(at(path))?;
        if read == 0 {
            return Ok((hasher, total));
        }
        hasher.update(block.get(..read).unwrap_or_default());
        total += read as u64;
    }
}
