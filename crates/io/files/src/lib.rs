//! Bounded reading of folders from disk.
