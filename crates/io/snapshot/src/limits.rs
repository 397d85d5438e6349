//! How much is read at most.

/// Bounds on one reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files and folders looked at. The must-gather of a large cluster has some 100,000.
    pub entries: usize,
    /// Folders inside each other.
    pub depth: usize,
    /// Bytes of one file, unpacked. A dump of 150,000 pods has 2 GB.
    pub file_bytes: u64,
    /// Bytes of one object as it is written. etcd takes none above some megabytes.
    pub object_bytes: usize,
    /// Objects that are kept. One costs about a kilobyte.
    pub objects: usize,
    /// Bytes of objects that wait for the end of their list, which says their kind.
    pub waiting_bytes: usize,
    /// Bytes that are read at once: many objects, and little enough to stay in a processor's cache.
    pub block_bytes: u64,
    /// Reasons for not reading something that are kept one by one; the others are counted.
    pub skipped: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 1_000_000,
            depth: 32,
            file_bytes: 16 << 30,
            object_bytes: 16 << 20,
            objects: 3_000_000,
            waiting_bytes: 64 << 20,
            block_bytes: 512 << 10,
            skipped: 10_000,
        }
    }
}

/// How deep lists of lists may be nested: kubectl writes one list, tools that join its output write lists of lists.
pub(crate) const LIST_DEPTH: usize = 4;
