//! Layers as streams, kept down to package metadata.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use serde::Deserialize;

use crate::limits::Limits;
use crate::os_release::{self, OsRelease};
use crate::package::{Contents, Ecosystem, Note, Package};
use crate::runtime::{self, Runtime};
use crate::tar_stream::{EntryKind, Head, TarError, TarStream};
use crate::{conda, dpkg, python, rpm};

/// Why a layer was not read.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// The compression or format is not known.
    #[error(
        "layer {layer}: media type {media_type:?} is not read; known are tar layers, plain or compressed with gzip{hint}"
    )]
    MediaType {
        /// Counted from 0 at the bottom.
        layer: usize,
        /// As given.
        media_type: String,
        /// What to do, where that is known.
        hint: &'static str,
    },
    /// The stream broke off or the compression is damaged.
    #[error("layer {layer}: cannot read the stream: {source}")]
    Read {
        /// Counted from 0 at the bottom.
        layer: usize,
        /// What the stream said.
        source: io::Error,
    },
    /// Not a tar archive, or damaged.
    #[error("layer {layer}: {reason}")]
    Archive {
        /// Counted from 0 at the bottom.
        layer: usize,
        /// What is wrong.
        reason: String,
    },
    /// An entry leaves the root of the image.
    #[error(
        "layer {layer}: entry {path:?} points outside of the image; container runtimes refuse such a layer"
    )]
    Escape {
        /// Counted from 0 at the bottom.
        layer: usize,
        /// The entry.
        path: String,
    },
    /// More than [`Limits`] allows.
    #[error("layer {layer}: more than {limit} {what}; raise the limit if the image is to be trusted")]
    Limit {
        /// Counted from 0 at the bottom.
        layer: usize,
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The configuration is not one.
    #[error("the image configuration does not parse: {0}")]
    Config(serde_json::Error),
}

/// What one metadata file said.
#[derive(Debug, Clone)]
enum Fact {
    Packages(Vec<Package>),
    Os(OsRelease),
    Note(String),
}

/// Facts by path, and runtimes by path. Whiteouts of a layer hide what the layers below have, not its own.
#[derive(Debug, Clone, Default)]
struct Tree {
    facts: BTreeMap<String, Fact>,
    runtimes: BTreeMap<String, Runtime>,
}

impl Tree {
    /// Removes a path and what is below it.
    fn hide(&mut self, path: &str) {
        hide(&mut self.facts, path);
        hide(&mut self.runtimes, path);
    }

    /// Removes what is below a path; the root when it is empty.
    fn hide_below(&mut self, path: &str) {
        hide_below(&mut self.facts, path);
        hide_below(&mut self.runtimes, path);
    }
}

fn hide<T>(map: &mut BTreeMap<String, T>, path: &str) {
    map.remove(path);
    if !path.is_empty() {
        hide_below(map, path);
    }
}

fn hide_below<T>(map: &mut BTreeMap<String, T>, path: &str) {
    if path.is_empty() {
        map.clear();
        return;
    }
    let prefix = format!("{path}/");
    let below: Vec<String> = map
        .range(prefix.clone()..)
        .map(|(key, _)| key)
        .take_while(|key| key.starts_with(&prefix))
        .cloned()
        .collect();
    for key in below {
        map.remove(&key);
    }
}

/// Reads the layers of an image from the bottom up.
#[derive(Debug, Clone)]
pub struct ContentsReader {
    limits: Limits,
    tree: Tree,
    env: BTreeMap<String, String>,
    layers: usize,
    entries: u64,
    packages: usize,
}

impl ContentsReader {
    /// A reader that has seen nothing.
    pub fn new(limits: Limits) -> Self {
        Self { limits, tree: Tree::default(), env: BTreeMap::new(), layers: 0, entries: 0, packages: 0 }
    }

    /// Takes the environment from the image's configuration (JSON), which often names the version of an interpreter or toolkit.
    pub fn config(&mut self, json: &[u8]) -> Result<(), LayerError> {
        #[derive(Deserialize)]
        struct Image {
            config: Option<Config>,
        }
        #[derive(Deserialize)]
        struct Config {
            #[serde(rename = "Env")]
            env: Option<Vec<String>>,
        }
        let image: Image = serde_json::from_slice(json).map_err(LayerError::Config)?;
        self.env = image
            .config
            .and_then(|config| config.env)
            .unwrap_or_default()
            .iter()
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Ok(())
    }

    /// Reads the next layer. After an error the reader is of no more use.
    pub fn layer(&mut self, media_type: &str, stream: impl Read) -> Result<(), LayerError> {
        let layer = self.layers;
        if layer >= self.limits.layers {
            return Err(self.limit("layers", self.limits.layers as u64));
        }
        match Compression::of(media_type) {
            Ok(Compression::None) => self.archive(Bounded::new(Plain(stream), &self.limits))?,
            Ok(Compression::Gzip) => {
                self.archive(Bounded::new(MultiGzDecoder::new(Counted::new(stream)), &self.limits))?;
            }
            Err(hint) => {
                return Err(LayerError::MediaType { layer, media_type: media_type.to_owned(), hint });
            }
        }
        self.layers += 1;
        Ok(())
    }

    /// What all layers come to.
    pub fn finish(self) -> Contents {
        let mut contents = Contents { env: self.env, ..Contents::default() };
        let mut os = BTreeMap::new();
        for (path, fact) in self.tree.facts {
            match fact {
                Fact::Packages(packages) => contents.packages.extend(packages),
                Fact::Os(release) => {
                    os.insert(path, release);
                }
                Fact::Note(message) => contents.notes.push(Note { path, message }),
            }
        }
        contents.os = os_release::PATHS.iter().find_map(|path| os.remove(*path));
        contents.packages.sort();
        contents.runtimes = self.tree.runtimes.into_values().collect();
        contents.runtimes.sort();
        contents
    }

    fn limit(&self, what: &'static str, limit: u64) -> LayerError {
        LayerError::Limit { layer: self.layers, what, limit }
    }

    fn archive(&mut self, stream: impl Read) -> Result<(), LayerError> {
        let layer = self.layers;
        let failed = |error: TarError| match error {
            TarError::Io(source) => match source.get_ref().and_then(|inner| inner.downcast_ref::<Exceeded>())
            {
                Some(Exceeded { what, limit }) => LayerError::Limit { layer, what, limit: *limit },
                None => LayerError::Read { layer, source },
            },
            error => LayerError::Archive { layer, reason: error.to_string() },
        };
        let mut archive = TarStream::new(stream);
        let mut own = Tree::default();
        let mut folders = BTreeSet::new();
        while let Some(head) = archive.next().map_err(failed)? {
            self.entries += 1;
            if self.entries > self.limits.entries {
                return Err(self.limit("archive entries", self.limits.entries));
            }
            let path = self.path(&head)?;
            if self.whiteout(&path) {
                continue;
            }
            self.replace(&path, head.kind, &mut folders);
            // A path that comes twice in one archive means the later entry.
            own.facts.remove(&path);
            if let Some(runtime) = runtime::from_path(&path) {
                own.runtimes.entry(runtime.path.clone()).or_insert(runtime);
            }
            if let Some(fact) = self.fact(&path, &head, archive.data()).map_err(failed)? {
                if let Fact::Packages(packages) = &fact {
                    self.packages += packages.len();
                    if self.packages > self.limits.packages {
                        return Err(self.limit("packages", self.limits.packages as u64));
                    }
                }
                own.facts.insert(path, fact);
            }
        }
        self.tree.facts.extend(own.facts);
        self.tree.runtimes.extend(own.runtimes);
        Ok(())
    }

    /// The path from the root of the image, without a leading slash.
    fn path(&self, head: &Head) -> Result<String, LayerError> {
        if head.path.len() > self.limits.path_bytes {
            return Err(self.limit("bytes in a path", self.limits.path_bytes as u64));
        }
        let text = String::from_utf8_lossy(&head.path);
        let mut parts = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => return Err(LayerError::Escape { layer: self.layers, path: text.into_owned() }),
                part => parts.push(part),
            }
        }
        Ok(parts.join("/"))
    }

    /// Obeys a whiteout; says whether the path was one.
    fn whiteout(&mut self, path: &str) -> bool {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let Some(name) = file.strip_prefix(".wh.") else { return false };
        if name == ".wh..opq" {
            self.tree.hide_below(folder);
        } else if !name.starts_with(".wh.") {
            let hidden = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            self.tree.hide(&hidden);
        }
        true
    }

    /// An entry hides what lower layers have at its place: a file hides a folder with all in it, and anything below a path hides a
    /// file that was there.
    fn replace(&mut self, path: &str, kind: EntryKind, folders: &mut BTreeSet<String>) {
        if kind == EntryKind::Directory {
            self.tree.facts.remove(path);
        } else {
            self.tree.hide(path);
        }
        let mut folder = path;
        while let Some((parent, _)) = folder.rsplit_once('/') {
            if !folders.insert(parent.to_owned()) {
                break;
            }
            self.tree.facts.remove(parent);
            folder = parent;
        }
    }

    fn fact(&self, path: &str, head: &Head, data: impl Read) -> Result<Option<Fact>, TarError> {
        if head.kind == EntryKind::HardLink {
            // The data is that of another entry, which may be in a layer below; the folder's name says as much.
            return Ok(python::is_metadata(path).then(|| match python::from_path(path) {
                Some(found) => self.one(Ecosystem::Python, found.name, found.version, path),
                None => {
                    Fact::Note("a hard link to package metadata, whose target is not followed".to_owned())
                }
            }));
        }
        if head.kind != EntryKind::File {
            return Ok(None);
        }
        if let Some(form) = rpm::database(path) {
            return Ok(Some(Fact::Note(format!("rpm database form {form} is not read yet"))));
        }
        let wanted = python::is_metadata(path)
            || conda::is_record(path)
            || dpkg::is_status(path)
            || os_release::PATHS.contains(&path);
        if !wanted {
            return Ok(None);
        }
        if head.size > self.limits.metadata_bytes {
            let text = format!(
                "{} bytes are more than the {} that are read of package metadata",
                head.size, self.limits.metadata_bytes
            );
            return Ok(Some(Fact::Note(text)));
        }
        let mut bytes = Vec::new();
        data.take(head.size).read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < head.size {
            return Err(TarError::Damaged("it ends inside an entry"));
        }
        let text = String::from_utf8_lossy(&bytes);
        let fact = if os_release::PATHS.contains(&path) {
            Fact::Os(os_release::parse(&text))
        } else if dpkg::is_status(path) {
            let package =
                |found: dpkg::Installed| self.package(Ecosystem::Dpkg, found.name, found.version, path);
            Fact::Packages(dpkg::parse(&text).into_iter().map(package).collect())
        } else if conda::is_record(path) {
            match conda::parse(&bytes) {
                Ok(found) => self.one(Ecosystem::Conda, found.name, found.version, path),
                Err(reason) => Fact::Note(reason),
            }
        } else {
            match python::parse(&text) {
                Ok(found) => self.one(Ecosystem::Python, found.name, found.version, path),
                Err(reason) => Fact::Note(reason.to_owned()),
            }
        };
        Ok(Some(fact))
    }

    fn package(&self, ecosystem: Ecosystem, name: String, version: String, path: &str) -> Package {
        Package { ecosystem, name, version, path: path.to_owned(), layer: self.layers }
    }

    fn one(&self, ecosystem: Ecosystem, name: String, version: String, path: &str) -> Fact {
        Fact::Packages(vec![self.package(ecosystem, name, version, path)])
    }
}

/// How a layer is packed.
enum Compression {
    None,
    Gzip,
}

impl Compression {
    /// From the media types of OCI and Docker; parameters do not matter.
    fn of(media_type: &str) -> Result<Self, &'static str> {
        let kind = media_type.split(';').next().unwrap_or_default().trim();
        match kind {
            "application/vnd.oci.image.layer.v1.tar"
            | "application/vnd.oci.image.layer.nondistributable.v1.tar"
            | "application/vnd.docker.image.rootfs.diff.tar" => Ok(Self::None),
            "application/vnd.oci.image.layer.v1.tar+gzip"
            | "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"
            | "application/vnd.docker.image.rootfs.diff.tar.gzip"
            | "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip" => Ok(Self::Gzip),
            kind if kind.ends_with("zstd") => Err(
                "; zstd is not read yet: have the image recompressed with gzip, or leave its contents unchecked",
            ),
            _ => Err(""),
        }
    }
}

/// Says through an I/O error that a limit was hit, so that it passes every reader on the way.
#[derive(Debug, thiserror::Error)]
#[error("more than {limit} {what}")]
struct Exceeded {
    what: &'static str,
    limit: u64,
}

impl Exceeded {
    fn error(what: &'static str, limit: u64) -> io::Error {
        io::Error::other(Self { what, limit })
    }
}

/// Counts what goes into the decompression.
struct Counted<R> {
    inner: R,
    count: u64,
}

impl<R> Counted<R> {
    fn new(inner: R) -> Self {
        Self { inner, count: 0 }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.count += n as u64;
        Ok(n)
    }
}

/// A stream that may know how many bytes it was made from.
trait Source: Read {
    fn consumed(&self) -> Option<u64>;
}

impl<R: Read> Source for MultiGzDecoder<Counted<R>> {
    fn consumed(&self) -> Option<u64> {
        Some(self.get_ref().count)
    }
}

/// A layer as it is.
struct Plain<R>(R);

impl<R: Read> Read for Plain<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<R: Read> Source for Plain<R> {
    fn consumed(&self) -> Option<u64> {
        None
    }
}

/// The bytes of the archive, held against the limits of size and ratio.
struct Bounded<S> {
    inner: S,
    out: u64,
    limits: Limits,
}

impl<S> Bounded<S> {
    fn new(inner: S, limits: &Limits) -> Self {
        Self { inner, out: 0, limits: limits.clone() }
    }
}

impl<S: Source> Read for Bounded<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.out += n as u64;
        if self.out > self.limits.layer_bytes {
            return Err(Exceeded::error("bytes after decompression", self.limits.layer_bytes));
        }
        let ratio = self.inner.consumed().map_or(0, |consumed| self.out / consumed.max(1));
        if self.out > self.limits.ratio_from && ratio > self.limits.ratio {
            return Err(Exceeded::error("times the layer's size by decompression", self.limits.ratio));
        }
        Ok(n)
    }
}
