//! How large a thing may be that somebody else wrote.

/// Bytes of one stream. The largest real files are operator catalogs of some tens of megabytes.
pub const MAX_BYTES: usize = 128 << 20;
/// Nesting of collections, aliases expanded. Kubernetes' own types nest less than 30 deep; 128 is what JSON readers bear.
pub const MAX_DEPTH: usize = 128;
/// Nodes of one stream, aliases expanded: a node costs about 100 bytes of memory.
pub const MAX_NODES: usize = 8_000_000;
/// Nodes that come from expanding aliases. Real manifests use a few dozen.
pub const MAX_ALIAS_NODES: usize = 250_000;
/// Bytes of strings that come from expanding aliases.
pub const MAX_ALIAS_BYTES: usize = 16 << 20;
