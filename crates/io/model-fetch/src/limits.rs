//! How much is fetched at most.

use std::time::Duration;

/// How much is fetched at most. Everything beyond is an error, never cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all files, and again of all that an archive unpacks to. The largest models that one node can hold have some hundred
    /// gigabytes.
    pub bytes: u64,
    /// Files. Models in shards have hundreds; a bucket that was named by mistake has millions.
    pub files: usize,
    /// How often a request is tried again while nothing arrives.
    pub attempts: u32,
    /// The first pause between attempts; it doubles each time, with jitter.
    pub pause: Duration,
    /// How long nothing may arrive before a connection counts as broken.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 1 << 40,
            files: 20_000,
            attempts: 6,
            pause: Duration::from_millis(500),
            silence: Duration::from_mins(1),
        }
    }
}

/// Most redirects that are followed: browsers follow twenty, which is for pages and not for files.
pub(crate) const MAX_REDIRECTS: usize = 5;
/// The longest pause between attempts.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// Longest path of a file in the folder, in bytes: file systems take 4096 for the whole path.
pub(crate) const MAX_PATH: usize = 1024;
/// Longest part of a path, as file systems have it.
pub(crate) const MAX_NAME: usize = 255;
/// Deepest folder.
pub(crate) const MAX_DEPTH: usize = 32;
/// Largest manifest that is read back, in bytes: 20,000 files with long paths.
pub(crate) const MAX_MANIFEST: u64 = 64 << 20;
