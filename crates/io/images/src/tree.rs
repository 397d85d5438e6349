//! The files of one layer, gathered from packages in any order and written in one.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};

use scantling_contents::{LayerEntry, LayerEntryKind, LayerStream, WrittenLayer};

/// Most links that are followed one after the other.
const LINKS_MAX: usize = 16;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Folder,
    /// A file: where its bytes are in the spool, and how many.
    File {
        offset: u64,
        size: u64,
    },
    Link(String),
}

/// What is at a path, with its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mode: u32,
    pub(crate) user: u64,
    pub(crate) group: u64,
    pub(crate) node: Node,
}

/// The files of a layer. Contents go into a spool as they come, so that memory holds only names.
pub(crate) struct Tree<S> {
    spool: S,
    end: u64,
    entries: BTreeMap<String, Entry>,
    /// Paths that a later package wrote over with something else.
    replaced: Vec<String>,
}

impl<S: Read + Write + Seek> Tree<S> {
    /// No files; contents will go into `spool`, which is empty.
    pub(crate) fn new(spool: S) -> Self {
        Self { spool, end: 0, entries: BTreeMap::new(), replaced: Vec::new() }
    }

    /// Everything, sorted by path.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    /// Every file and link below a folder, sorted by path.
    pub(crate) fn files_below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a str> {
        self.entries
            .range(folder.to_owned()..)
            .take_while(move |(path, _)| path.starts_with(folder))
            .filter(|(_, entry)| entry.node != Node::Folder)
            .map(|(path, _)| path.as_str())
            .filter(move |path| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
    }

    /// Paths that were written twice with different content.
    pub(crate) fn replaced(&self) -> &[String] {
        &self.replaced
    }

    /// Puts a folder or link at a path. A folder that is there already stays as it is.
    pub(crate) fn put(&mut self, path: &str, entry: Entry) {
        let is_folder = entry.node == Node::Folder;
        match self.entries.get(path) {
            Some(old) if is_folder && old.node == Node::Folder => {}
            // dpkg follows a link to a folder where a package has the folder itself.
            Some(old) if is_folder && matches!(old.node, Node::Link(_)) => {}
            Some(old) if *old == entry => {}
            old => {
                if old.is_some() {
                    self.replaced.push(path.to_owned());
                }
                self.entries.insert(path.to_owned(), entry);
            }
        }
    }

    /// Puts a folder at a path with this owner and these permissions, whatever they were.
    pub(crate) fn set_folder(&mut self, path: &str, mode: u32, user: u64, group: u64) {
        self.entries.insert(path.to_owned(), Entry { mode, user, group, node: Node::Folder });
    }

    /// Puts a file at a path; `owner` gives permissions, user and group.
    pub(crate) fn put_file(
        &mut self,
        path: &str,
        owner: (u32, u64, u64),
        mut data: impl Read,
    ) -> io::Result<u64> {
        let offset = self.end;
        self.spool.seek(SeekFrom::Start(offset))?;
        let size = io::copy(&mut data, &mut self.spool)?;
        let (mode, user, group) = owner;
        let entry = Entry { mode, user, group, node: Node::File { offset, size } };
        let is_same = match self.entries.get(path) {
            Some(Entry { node: Node::File { offset: old, size: old_size }, .. }) => {
                let (old, old_size) = (*old, *old_size);
                old_size == size && self.same(old, offset, size)?
            }
            None => true,
            Some(_) => false,
        };
        if !is_same {
            self.replaced.push(path.to_owned());
        }
        self.end = offset + size;
        self.entries.insert(path.to_owned(), entry);
        Ok(size)
    }

    /// Puts what is at `from` at a path too, as a hard link does.
    pub(crate) fn copy(&mut self, from: &str, path: &str) -> bool {
        let Some(entry) = self.entries.get(from).cloned() else { return false };
        self.entries.insert(path.to_owned(), entry);
        true
    }

    /// The content of a file; links within the tree are followed.
    pub(crate) fn read(&mut self, path: &str) -> io::Result<Vec<u8>> {
        let mut path = path.to_owned();
        for _ in 0..LINKS_MAX {
            match self.entries.get(&path).map(|entry| &entry.node) {
                Some(Node::File { offset, size }) => {
                    let (offset, size) = (*offset, *size);
                    let mut bytes = Vec::new();
                    self.spool.seek(SeekFrom::Start(offset))?;
                    Read::by_ref(&mut self.spool).take(size).read_to_end(&mut bytes)?;
                    return Ok(bytes);
                }
                Some(Node::Link(target)) => path = resolve(&path, target),
                Some(Node::Folder) | None => break,
            }
        }
        Err(io::Error::new(io::ErrorKind::NotFound, format!("no file at /{path}")))
    }

    fn same(&mut self, one: u64, other: u64, size: u64) -> io::Result<bool> {
        let mut blocks = [vec![0; 1 << 16], vec![0; 1 << 16]];
        let mut done = 0;
        while done < size {
            let length = usize::try_from(size - done).unwrap_or(usize::MAX).min(1 << 16);
            for (block, start) in blocks.iter_mut().zip([one, other]) {
                block.truncate(length);
                self.spool.seek(SeekFrom::Start(start + done))?;
                self.spool.read_exact(block)?;
            }
            let [a, b] = &blocks;
            if a != b {
                return Ok(false);
            }
            done += length as u64;
        }
        Ok(true)
    }

    /// Writes the layer, sorted by path, with the folders that lead to its entries.
    pub(crate) fn write<W: Write>(mut self, to: W) -> io::Result<(WrittenLayer, W)> {
        let paths: Vec<String> = self.entries.keys().cloned().collect();
        for path in paths {
            for (at, _) in path.match_indices('/') {
                if let Some(folder) = path.get(..at) {
                    let entry = Entry { mode: 0o755, user: 0, group: 0, node: Node::Folder };
                    self.entries.entry(folder.to_owned()).or_insert(entry);
                }
            }
        }
        let mut layer = LayerStream::new(to);
        for (path, entry) in &self.entries {
            let (kind, data) = match &entry.node {
                Node::Folder => (LayerEntryKind::Folder, None),
                Node::Link(target) => (LayerEntryKind::Link(target), None),
                Node::File { offset, size } => {
                    self.spool.seek(SeekFrom::Start(*offset))?;
                    (LayerEntryKind::File(*size), Some(Read::by_ref(&mut self.spool).take(*size)))
                }
            };
            let Entry { mode, user, group, .. } = *entry;
            let entry = LayerEntry { path, mode, user, group, kind };
            match data {
                Some(data) => layer.add(&entry, data)?,
                None => layer.add(&entry, io::empty())?,
            }
        }
        layer.finish()
    }
}

/// Where a link at `path` leads, from the root.
fn resolve(path: &str, target: &str) -> String {
    let mut parts: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => path.rsplit_once('/').map_or(Vec::new(), |(folder, _)| folder.split('/').collect()),
    };
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Cursor;

    use super::*;

    const OWNER: (u32, u64, u64) = (0o644, 0, 0);

    fn tree() -> Tree<Cursor<Vec<u8>>> {
        Tree::new(Cursor::new(Vec::new()))
    }

    fn link(target: &str) -> Entry {
        Entry { mode: 0o777, user: 0, group: 0, node: Node::Link(target.to_owned()) }
    }

    #[test]
    fn the_order_of_packages_does_not_matter() {
        let files = [("usr/b", "two"), ("etc/a", "one"), ("usr/a/c", "three"), ("usr.x", "four")];
        let write = |order: &[usize]| {
            let mut tree = tree();
            for at in order {
                let (path, text) = files[*at];
                tree.put_file(path, OWNER, text.as_bytes()).unwrap();
            }
            tree.write(Vec::new()).unwrap()
        };
        let (layer, bytes) = write(&[0, 1, 2, 3]);
        assert_eq!(write(&[3, 1, 0, 2]), (layer, bytes.clone()));
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
        let paths: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(paths, ["etc/", "etc/a", "usr/", "usr.x", "usr/a/", "usr/a/c", "usr/b"]);
    }

    #[test]
    fn what_two_packages_say_differently_is_named() {
        let mut tree = tree();
        tree.put_file("a", OWNER, &b"one"[..]).unwrap();
        tree.put_file("a", OWNER, &b"one"[..]).unwrap();
        tree.put("l", link("a"));
        tree.put("l", link("a"));
        assert!(tree.replaced().is_empty());
        tree.put_file("a", OWNER, &b"two"[..]).unwrap();
        tree.put("l", link("b"));
        assert_eq!(tree.replaced(), ["a", "l"]);
        assert_eq!(tree.read("a").unwrap(), b"two");
    }

    #[test]
    fn links_are_followed_within_the_tree() {
        let mut tree = tree();
        tree.put_file("usr/share/x/file", OWNER, &b"here"[..]).unwrap();
        tree.put("etc/one", link("../usr/share/x/file"));
        tree.put("etc/two", link("/etc/one"));
        tree.put("etc/loop", link("loop"));
        assert_eq!(tree.read("etc/two").unwrap(), b"here");
        assert_eq!(tree.read("etc/loop").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(tree.copy("usr/share/x/file", "usr/share/x/again"));
        assert_eq!(tree.read("usr/share/x/again").unwrap(), b"here");
        let below: Vec<&str> = tree.files_below("usr/share/x").collect();
        assert_eq!(below, ["usr/share/x/again", "usr/share/x/file"]);
    }
}
