//! How much is read at most.

/// Bounds on one reading. The defaults hold the largest public platform's manifests a hundred times over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files and folders visited together, skipped ones included.
    pub entries: usize,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of all files together.
    pub total_bytes: u64,
    /// Folders inside each other, counted from the root.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 20_000, file_bytes: 16 << 20, total_bytes: 256 << 20, depth: 32 }
    }
}
