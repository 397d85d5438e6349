//! How much a layer may ask of the reader.

/// Bounds of one [`crate::ContentsReader`]. The defaults fit the largest images in use (tens of gigabytes, a million files).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Layers of one image; container runtimes stop at 127.
    pub layers: usize,
    /// Archive entries over all layers.
    pub entries: u64,
    /// Bytes of one layer after decompression.
    pub layer_bytes: u64,
    /// How many times larger a layer may become by decompression, once it is larger than [`Self::ratio_from`]. Deflate cannot exceed
    /// about 1030; package trees stay below 10, and zeroed files below 500 in practice.
    pub ratio: u64,
    /// Bytes after decompression from which the ratio counts: small layers may be all zeros.
    pub ratio_from: u64,
    /// Bytes of one metadata file. The largest known are dpkg's status (some megabytes) and conda's lists of files.
    pub metadata_bytes: u64,
    /// Packages found in all.
    pub packages: usize,
    /// Bytes of one path.
    pub path_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            layers: 256,
            entries: 10_000_000,
            layer_bytes: 64 << 30,
            ratio: 500,
            ratio_from: 256 << 20,
            metadata_bytes: 64 << 20,
            packages: 500_000,
            path_bytes: 4096,
        }
    }
}
