//! Fetching.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt as _;
use serde::{Deserialize, Serialize};

use crate::archive;
use crate::error::{FetchError, at};
use crate::hash::{self, Hasher};
use crate::limits::{LONGEST_PAUSE, Limits};
use crate::manifest::{ArchiveRecord, FileRecord, Manifest, PARTS};
use crate::place;
use crate::source::{Access, Item, Opened, Source, Trouble, Uri};

/// How far it is. Told after every piece that arrives: whoever shows it chooses how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The file that is being fetched.
    pub file: &'a str,
    /// Files that are whole.
    pub files_done: usize,
    /// Files that there are.
    pub files: usize,
    /// Bytes that are here.
    pub bytes: u64,
    /// Bytes that there are, if the server said so.
    pub total: Option<u64>,
    /// What went wrong, if this is a new attempt.
    pub again: Option<&'a str>,
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Files of the model.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Files as they are at the source that were here already, whole.
    pub reused: usize,
    /// The archive that was unpacked.
    pub unpacked: Option<String>,
}

/// Looks whether there is a model at a path that is mounted here.
///
/// # Errors
/// When there is nothing, or only empty files.
pub fn check(uri: &Uri, limits: &Limits) -> Result<Fetched, FetchError> {
    let Uri::File(path) = uri else {
        return Err(FetchError::Uri {
            uri: uri.to_string(),
            why: "only a path that is mounted can be looked at: write file:///PATH".to_owned(),
        });
    };
    let items = crate::source::list_folder(path, limits)?;
    let bytes = items.iter().filter_map(|item| item.size).sum();
    if bytes == 0 {
        return Err(FetchError::Missing { uri: uri.to_string() });
    }
    Ok(Fetched { files: items.len(), bytes, ..Fetched::default() })
}

/// Fetches a model into a folder, which is made. Pauses between attempts are drawn from the seed.
///
/// # Errors
/// See [`FetchError`]. What had arrived stays for the next time.
pub async fn fetch(
    uri: &Uri,
    access: &Access,
    folder: &Path,
    sha256: Option<&str>,
    limits: &Limits,
    seed: u64,
    tell: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Fetched, FetchError> {
    let parts = folder.join(PARTS);
    fs::create_dir_all(&parts).map_err(at(&parts))?;
    let before = Manifest::read(folder);
    let mut work = Work {
        uri,
        source: Source::new(uri, access, limits)?,
        folder,
        parts,
        limits,
        before: if before.uri == uri.to_string() { before.clone() } else { Manifest::default() },
        random: fastrand::Rng::with_seed(seed),
        done: Fetched::default(),
        files: 0,
        total: None,
        here: 0,
        tell,
    };
    let items = work.list().await?;
    if sha256.is_some() && items.len() != 1 {
        return Err(FetchError::ChecksumOfMany { uri: uri.to_string(), files: items.len() });
    }
    let manifest = work.all(&items, sha256).await?;
    manifest.write(folder)?;
    // What an earlier fetch has brought and this one has not is of no model any more.
    let keep: BTreeSet<&String> = manifest.files.keys().collect();
    for name in before.files.keys().filter(|name| !keep.contains(name)) {
        if let Ok(path) = place::inside(name) {
            let _ = fs::remove_file(folder.join(path));
        }
    }
    fs::remove_dir_all(&work.parts).map_err(at(&work.parts))?;
    let mut done = work.done;
    done.files = manifest.files.len();
    done.bytes = manifest.files.values().map(|file| file.size).sum();
    done.unpacked = manifest.archive.map(|archive| archive.name);
    Ok(done)
}

/// What is known of a part, beside it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct PartRecord {
    path: String,
    etag: Option<String>,
}

struct Work<'a> {
    uri: &'a Uri,
    source: Source,
    folder: &'a Path,
    parts: PathBuf,
    limits: &'a Limits,
    /// What was fetched from here before.
    before: Manifest,
    random: fastrand::Rng,
    done: Fetched,
    files: usize,
    total: Option<u64>,
    /// Bytes of files that are whole.
    here: u64,
    tell: &'a mut (dyn FnMut(Progress<'_>) + Send),
}

impl Work<'_> {
    fn too_much(&self, limit: String) -> FetchError {
        FetchError::TooMuch { uri: self.uri.to_string(), limit }
    }

    /// The pause before another attempt.
    async fn pause(&mut self, attempt: u32) {
        let whole = self.limits.pause.saturating_mul(1 << attempt.min(10)).min(LONGEST_PAUSE);
        let jitter = 0.5 + self.random.f64() / 2.0;
        tokio::time::sleep(whole.mul_f64(jitter)).await;
    }

    async fn list(&mut self) -> Result<Vec<Item>, FetchError> {
        let mut attempt = 0;
        loop {
            let listed = tokio::time::timeout(self.limits.silence, self.source.list(self.limits)).await;
            let why = match listed {
                Ok(Ok(items)) => {
                    if items.len() > self.limits.files {
                        return Err(self.too_much(format!("{} files", self.limits.files)));
                    }
                    self.files = items.len();
                    self.total = items.iter().map(|item| item.size).sum();
                    if self.total.is_some_and(|total| total > self.limits.bytes) {
                        return Err(self.too_much(format!("{} bytes", self.limits.bytes)));
                    }
                    return Ok(items);
                }
                Ok(Err(Trouble::Final(error))) => return Err(error),
                Ok(Err(Trouble::Again(why))) => why,
                Ok(Err(Trouble::Changed)) => "it changed while it was looked at".to_owned(),
                Err(_) => silent(self.limits.silence),
            };
            attempt += 1;
            if attempt >= self.limits.attempts {
                return Err(FetchError::Unreachable { uri: self.uri.to_string(), attempts: attempt, why });
            }
            self.say("", 0, Some(&why));
            self.pause(attempt).await;
        }
    }

    fn say(&mut self, file: &str, bytes: u64, again: Option<&str>) {
        (self.tell)(Progress {
            file,
            files_done: self.done.files,
            files: self.files,
            bytes: self.here.saturating_add(bytes),
            total: self.total,
            again,
        });
    }

    async fn all(&mut self, items: &[Item], sha256: Option<&str>) -> Result<Manifest, FetchError> {
        let mut manifest = Manifest { uri: self.uri.to_string(), ..Manifest::default() };
        for item in items {
            place::inside(&item.path)?;
        }
        if let [item] = items
            && let Some(kind) = archive::Kind::of(&item.path)
        {
            let record = self.archive(item, kind, sha256, &mut manifest.files).await?;
            manifest.archive = Some(ArchiveRecord { name: item.path.clone(), file: record });
            return Ok(manifest);
        }
        for item in items {
            let target = self.folder.join(place::inside(&item.path)?);
            let known = self.before.files.get(&item.path).cloned();
            let (record, part) = self.one(item, known, Some(&target)).await?;
            checked(&item.path, &record, sha256)?;
            if let Some(part) = part {
                put(&part, &target)?;
            }
            self.here = self.here.saturating_add(record.size);
            self.done.files += 1;
            manifest.files.insert(item.path.clone(), record);
        }
        Ok(manifest)
    }

    /// An archive that is all there is.
    async fn archive(
        &mut self,
        item: &Item,
        kind: archive::Kind,
        sha256: Option<&str>,
        files: &mut BTreeMap<String, FileRecord>,
    ) -> Result<FileRecord, FetchError> {
        let before = self.before.clone();
        let known =
            before.archive.filter(|archive| archive.name == item.path && self.are_whole(&before.files));
        let (record, part) = self.one(item, known.map(|archive| archive.file), None).await?;
        checked(&item.path, &record, sha256)?;
        let Some(part) = part else {
            *files = before.files;
            return Ok(record);
        };
        let unpacked = self.parts.join("unpacked");
        if unpacked.exists() {
            fs::remove_dir_all(&unpacked).map_err(at(&unpacked))?;
        }
        *files = archive::unpack(&item.path, kind, &part, &unpacked, self.limits)?;
        for name in files.keys() {
            let inside = place::inside(name)?;
            put(&unpacked.join(&inside), &self.folder.join(&inside))?;
        }
        Ok(record)
    }

    fn are_whole(&self, files: &BTreeMap<String, FileRecord>) -> bool {
        !files.is_empty()
            && files.iter().all(|(name, record)| {
                place::inside(name).is_ok_and(|path| is_whole(&self.folder.join(path), record))
            })
    }

    /// One file: its record, and where its bytes are; none when they are in their place already.
    async fn one(
        &mut self,
        item: &Item,
        known: Option<FileRecord>,
        target: Option<&Path>,
    ) -> Result<(FileRecord, Option<PathBuf>), FetchError> {
        let name = {
            let mut hasher = Hasher::default();
            hasher.update(item.path.as_bytes());
            hasher.finish()
        };
        let part = self.parts.join(format!("{name:.24}.part"));
        let about = self.parts.join(format!("{name:.24}.json"));
        let mut attempt = 0;
        let mut why = String::new();
        loop {
            if attempt > 0 {
                if attempt >= self.limits.attempts {
                    return Err(FetchError::Unreachable {
                        uri: self.uri.to_string(),
                        attempts: attempt,
                        why,
                    });
                }
                self.say(&item.path, 0, Some(&why));
                self.pause(attempt).await;
            }
            let begun = read_part(&about, item);
            let have =
                if begun.etag.is_some() { fs::metadata(&part).map_or(0, |about| about.len()) } else { 0 };
            let etag = begun.etag.clone().filter(|_| have > 0);
            let opening = self.source.open(item, have, etag.as_deref());
            let opened = match tokio::time::timeout(self.limits.silence, opening).await {
                Ok(Ok(opened)) => opened,
                Ok(Err(Trouble::Final(error))) => return Err(error),
                Ok(Err(Trouble::Changed)) => {
                    discard(&part, &about)?;
                    "it changed while it was fetched".clone_into(&mut why);
                    attempt += 1;
                    continue;
                }
                Ok(Err(Trouble::Again(reason))) => {
                    why = reason;
                    attempt += 1;
                    continue;
                }
                Err(_) => {
                    why = silent(self.limits.silence);
                    attempt += 1;
                    continue;
                }
            };
            if let Some(known) = &known
                && known.etag.is_some()
                && known.etag == opened.etag
                && opened.size.is_none_or(|size| size == known.size)
                && target.is_none_or(|target| is_whole(target, known))
            {
                self.done.reused += 1;
                return Ok((known.clone(), None));
            }
            match self.take(item, opened, &part, &about, have).await? {
                Taken::Whole(record) => return Ok((record, Some(part))),
                Taken::Cut { reason, arrived } => {
                    why = reason;
                    attempt = if arrived { 1 } else { attempt + 1 };
                }
            }
        }
    }

    /// Writes what comes to the part.
    async fn take(
        &mut self,
        item: &Item,
        opened: Opened,
        part: &Path,
        about: &Path,
        have: u64,
    ) -> Result<Taken, FetchError> {
        let Opened { mut chunks, from, size, etag } = opened;
        let size = size.or(item.size);
        let left = self.limits.bytes.saturating_sub(self.here);
        if size.is_some_and(|size| size > left) {
            return Err(self.too_much(format!("{} bytes", self.limits.bytes)));
        }
        if self.total.is_none() && self.files == 1 {
            self.total = size;
        }
        let (mut hasher, mut length) =
            if from > 0 && from == have { hash::of_file(part, have)? } else { (Hasher::default(), 0) };
        if length != from {
            // The server went on from where we are not.
            discard(part, about)?;
            return Ok(Taken::Cut { reason: "the server began in the middle".to_owned(), arrived: false });
        }
        write_part(about, item, etag.as_deref())?;
        let mut file = OpenOptions::new().create(true).append(true).open(part).map_err(at(part))?;
        file.set_len(length).map_err(at(part))?;
        let mut arrived = false;
        let cut = loop {
            match tokio::time::timeout(self.limits.silence, chunks.next()).await {
                Ok(Some(Ok(chunk))) => {
                    length = length.saturating_add(chunk.len() as u64);
                    if length > left {
                        return Err(self.too_much(format!("{} bytes", self.limits.bytes)));
                    }
                    if let Some(expected) = size.filter(|size| length > *size) {
                        discard(part, about)?;
                        return Err(FetchError::Length { path: item.path.clone(), got: length, expected });
                    }
                    file.write_all(&chunk).map_err(at(part))?;
                    hasher.update(&chunk);
                    arrived |= !chunk.is_empty();
                    self.say(&item.path, length, None);
                }
                Ok(Some(Err(reason))) => break Some(reason),
                Ok(None) => break None,
                Err(_) => break Some(silent(self.limits.silence)),
            }
        };
        file.sync_all().map_err(at(part))?;
        match (cut, size) {
            (Some(reason), _) => Ok(Taken::Cut { reason, arrived }),
            (None, Some(size)) if length < size => Ok(Taken::Cut {
                reason: format!("the connection ended after {length} of {size} bytes"),
                arrived,
            }),
            (None, _) => Ok(Taken::Whole(FileRecord { size: length, sha256: hasher.finish(), etag })),
        }
    }
}

/// What came of one connection.
enum Taken {
    Whole(FileRecord),
    Cut { reason: String, arrived: bool },
}

fn silent(time: Duration) -> String {
    format!("nothing came for {} seconds", time.as_secs())
}

fn checked(path: &str, record: &FileRecord, wanted: Option<&str>) -> Result<(), FetchError> {
    let Some(wanted) = wanted else { return Ok(()) };
    let expected = wanted.trim().trim_start_matches("sha256:").to_ascii_lowercase();
    if expected == record.sha256 {
        return Ok(());
    }
    Err(FetchError::Checksum { path: path.to_owned(), got: record.sha256.clone(), expected })
}

/// Is a file here, with the content that a record says?
fn is_whole(path: &Path, record: &FileRecord) -> bool {
    let same_size = fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() == record.size);
    same_size && hash::of_file(path, record.size).is_ok_and(|(hasher, _)| hasher.finish() == record.sha256)
}

/// Moves a whole file into its place, over an older one.
fn put(part: &Path, target: &Path) -> Result<(), FetchError> {
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent).map_err(at(parent))?;
    }
    fs::rename(part, target).map_err(at(target))
}

fn read_part(about: &Path, item: &Item) -> PartRecord {
    let record: Option<PartRecord> = fs::read(about).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let same =
        |record: &PartRecord| record.path == item.path && (item.etag.is_none() || item.etag == record.etag);
    record.filter(same).unwrap_or_default()
}

fn write_part(about: &Path, item: &Item, etag: Option<&str>) -> Result<(), FetchError> {
    let record = PartRecord { path: item.path.clone(), etag: etag.map(str::to_owned) };
    let text = serde_json::to_vec(&record).unwrap_or_default();
    File::create(about).and_then(|mut file| file.write_all(&text)).map_err(at(about))
}

fn discard(part: &Path, about: &Path) -> Result<(), FetchError> {
    for path in [part, about] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(at(path)(error)),
            _ => {}
        }
    }
    Ok(())
}
