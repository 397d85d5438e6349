//! Layers that need not fit into memory, written the same way every time.

use std::io::{self, Read, Write};

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use scantling_image::{Digest, DigestHasher};
use tar::{EntryType, Header};

/// Names the algorithm's effort. It is written down because the compressed bytes, and so every digest, depend on it.
const COMPRESSION: u32 = 6;

/// Bytes that the compression gets at a time. What it makes of them depends on how they are cut, so they are always cut the same way.
const BLOCK: usize = 1 << 20;

/// One entry of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerEntry<'a> {
    /// The path from the root of the image, without a slash in front or behind.
    pub path: &'a str,
    /// Permissions, such as `0o755`.
    pub mode: u32,
    /// The owner.
    pub user: u64,
    /// The owner's group.
    pub group: u64,
    /// What it is.
    pub kind: LayerEntryKind<'a>,
}

/// What an entry of a layer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerEntryKind<'a> {
    /// A folder.
    Folder,
    /// A file of so many bytes.
    File(u64),
    /// A symbolic link with this target.
    Link(&'a str),
}

/// A layer that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenLayer {
    /// The digest of its compressed bytes.
    pub digest: Digest,
    /// The digest of the archive before compression, which the configuration names.
    pub diff_id: Digest,
    /// Its compressed size in bytes.
    pub size: u64,
    /// The size of the archive before compression, in bytes.
    pub archive_size: u64,
}

/// Writes one layer as a gzip-compressed archive, and hashes it on the way. Entries come sorted by path; every time is
/// 1970-01-01T00:00:00Z. The same entries give the same bytes.
pub struct LayerStream<W: Write> {
    archive: tar::Builder<Hashed<Blocks<GzEncoder<Hashed<W>>>>>,
    last: Option<String>,
}

impl<W: Write> LayerStream<W> {
    /// An empty layer that goes to `to`.
    pub fn new(to: W) -> Self {
        let compressed = GzBuilder::new().mtime(0).write(Hashed::new(to), Compression::new(COMPRESSION));
        Self { archive: tar::Builder::new(Hashed::new(Blocks::new(compressed))), last: None }
    }

    /// Adds an entry; `data` is read only for a file. An entry that does not sort behind the one before is refused.
    pub fn add(&mut self, entry: &LayerEntry<'_>, data: impl Read) -> io::Result<()> {
        if let Some(last) = self.last.as_deref().filter(|last| *last >= entry.path) {
            let why = format!("entry {:?} comes after {last:?}: a layer is sorted by path", entry.path);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut header = Header::new_gnu();
        header.set_mtime(0);
        header.set_uid(entry.user);
        header.set_gid(entry.group);
        header.set_mode(entry.mode);
        header.set_size(0);
        match entry.kind {
            LayerEntryKind::Folder => {
                header.set_entry_type(EntryType::Directory);
                self.archive.append_data(&mut header, format!("{}/", entry.path), io::empty())?;
            }
            LayerEntryKind::File(size) => {
                header.set_entry_type(EntryType::Regular);
                header.set_size(size);
                let mut counted = Counted { inner: data.take(size), count: 0 };
                self.archive.append_data(&mut header, entry.path, &mut counted)?;
                if counted.count != size {
                    let why = format!("entry {:?} has {} bytes, not {size}", entry.path, counted.count);
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
                }
            }
            LayerEntryKind::Link(target) => {
                header.set_entry_type(EntryType::Symlink);
                self.archive.append_link(&mut header, entry.path, target)?;
            }
        }
        self.last = Some(entry.path.to_owned());
        Ok(())
    }

    /// Ends the layer; gives what it came to, and where it went.
    pub fn finish(self) -> io::Result<(WrittenLayer, W)> {
        let archive = self.archive.into_inner()?;
        let (diff_id, archive_size) = (archive.hasher.finish(), archive.count);
        let compressed = archive.inner.finish()?.finish()?;
        let (digest, size) = (compressed.hasher.finish(), compressed.count);
        let mut to = compressed.inner;
        to.flush()?;
        Ok((WrittenLayer { digest, diff_id, size, archive_size }, to))
    }
}

/// Hashes and counts what is written through it.
struct Hashed<W> {
    inner: W,
    hasher: DigestHasher,
    count: u64,
}

impl<W> Hashed<W> {
    fn new(inner: W) -> Self {
        Self { inner, hasher: Digest::hasher(), count: 0 }
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(bytes.get(..written).unwrap_or(bytes));
        self.count += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Passes bytes on in blocks of one size; only the last may be smaller.
struct Blocks<W> {
    inner: W,
    block: Vec<u8>,
}

impl<W: Write> Blocks<W> {
    fn new(inner: W) -> Self {
        Self { inner, block: Vec::new() }
    }

    fn finish(mut self) -> io::Result<W> {
        self.inner.write_all(&self.block)?;
        Ok(self.inner)
    }
}

impl<W: Write> Write for Blocks<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BLOCK - self.block.len());
        self.block.extend_from_slice(bytes.get(..taken).unwrap_or(bytes));
        if self.block.len() == BLOCK {
            self.inner.write_all(&self.block)?;
            self.block.clear();
        }
        Ok(taken)
    }

    /// Nothing: a block that is not full stays until it is.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Counted<R> {
    inner: R,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn entry<'a>(path: &'a str, kind: LayerEntryKind<'a>) -> LayerEntry<'a> {
        LayerEntry { path, mode: 0o644, user: 0, group: 0, kind }
    }

    fn layer(entries: &[(LayerEntry<'_>, &str)]) -> io::Result<(WrittenLayer, Vec<u8>)> {
        let mut layer = LayerStream::new(Vec::new());
        for (entry, data) in entries {
            layer.add(entry, data.as_bytes())?;
        }
        layer.finish()
    }

    #[test]
    fn what_is_written_is_what_is_said_of_it() {
        let long = format!("a/{}", "x".repeat(200));
        let entries = [
            (entry("a", LayerEntryKind::Folder), ""),
            (entry("a/b", LayerEntryKind::File(2)), "hi"),
            (entry(&long, LayerEntryKind::Link("b")), ""),
        ];
        let (written, bytes) = layer(&entries).unwrap();
        assert_eq!((written.digest.clone(), written.size), (Digest::of(&bytes), bytes.len() as u64));
        let mut archive = Vec::new();
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut archive).unwrap();
        assert_eq!((&written.diff_id, written.archive_size), (&Digest::of(&archive), archive.len() as u64));
        let mut read = tar::Archive::new(archive.as_slice());
        let paths: Vec<_> = read
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(paths, ["a/", "a/b", long.as_str()]);
        assert_eq!(layer(&entries).unwrap(), (written, bytes), "the same entries give the same bytes");
    }

    #[test]
    fn what_is_out_of_order_or_too_short_is_refused() {
        let check = |entries: &[(LayerEntry<'_>, &str)], expected: &str| {
            assert_eq!(layer(entries).unwrap_err().to_string(), expected);
        };
        let file = |path| entry(path, LayerEntryKind::File(1));
        check(
            &[(file("b"), "1"), (file("a"), "2")],
            "entry \"a\" comes after \"b\": a layer is sorted by path",
        );
        check(
            &[(file("a"), "1"), (file("a"), "2")],
            "entry \"a\" comes after \"a\": a layer is sorted by path",
        );
        check(&[(file("a"), "")], "entry \"a\" has 0 bytes, not 1");
    }

    /// Gives so many bytes at a time.
    struct Sips<'a>(&'a [u8], usize);

    impl Read for Sips<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(self.1);
            self.0.read(&mut buffer[..most])
        }
    }

    #[test]
    fn how_data_arrives_does_not_matter() {
        // Words repeat, so that there is something to compress, but not in a simple pattern.
        let mut seed = 1u64;
        let mut text = String::new();
        while text.len() < 2_500_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(["layer ", "image\n", "digest, ", "python ", "0123"][(seed >> 33) as usize % 5]);
        }
        let write = |sip: usize| {
            let mut layer = LayerStream::new(Vec::new());
            let entry = entry("a", LayerEntryKind::File(text.len() as u64));
            layer.add(&entry, Sips(text.as_bytes(), sip)).unwrap();
            layer.finish().unwrap().0.digest
        };
        for sip in [7, 1000, 8191, 8193] {
            assert_eq!(write(sip), write(usize::MAX), "{sip} bytes at a time");
        }
    }
}
