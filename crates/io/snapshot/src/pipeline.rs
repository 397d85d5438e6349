//! Reading with two threads that parse while one reads and splits.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use camino::Utf8PathBuf;
use flate2::read::MultiGzDecoder;
use scantling_files::{Found, open, survey};
use scantling_observed::Names;

use crate::collect::{Collector, Done, Waiting};
use crate::error::{SnapshotError, Why};
use crate::limits::Limits;
use crate::parse::{Parsed, parse};
use crate::piece::Piece;
use crate::snapshot::{Progress, Snapshot};
use crate::sniff::{Looks, is_log, looks};
use crate::{json, yaml};

/// Bytes at the beginning of a file by which it is told what it holds.
const SNIFFED: u64 = 64 << 10;
/// Threads that parse. The third, which splits, needs a quarter of the time of one of them.
const PARSERS: usize = 2;
/// Blocks that wait for a parser, and for the collector.
const WAITING: usize = 4;

/// Reads files and folders into one snapshot. `progress` is called as it goes on.
///
/// # Errors
/// When none is named, or one that is named cannot be looked at. What is wrong inside of them is in [`Snapshot::skipped`].
pub fn read(
    paths: &[Utf8PathBuf],
    limits: &Limits,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Snapshot, SnapshotError> {
    if paths.is_empty() {
        return Err(SnapshotError::NoPath);
    }
    let mut collector = Collector::new(limits);
    let mut files = Vec::new();
    let bounds =
        scantling_files::Limits { entries: limits.entries, depth: limits.depth, ..Default::default() };
    for path in paths {
        let found = survey(path, &bounds)?;
        // Folders that are named together may hold files of the same name.
        let shown = |relative: &str| match relative {
            "" => path.to_string(),
            relative if paths.len() == 1 => relative.to_owned(),
            relative => path.join(relative).into_string(),
        };
        for (relative, why) in found.passed_over {
            collector.skip(&shown(&relative), None, Why::Unreachable(why.to_string()));
        }
        for mut file in found.files {
            if !file.named && is_log(&file.relative) {
                collector.log();
            } else {
                file.relative = if file.named { path.to_string() } else { shown(&file.relative) };
                files.push(file);
            }
        }
    }
    let total = files.iter().map(|file| file.bytes).sum();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (jobs, taken) = sync_channel::<Job>(WAITING);
        let (results, collected) = sync_channel::<ReadPart>(WAITING);
        let taken = Arc::new(Mutex::new(taken));
        for _ in 0..PARSERS {
            let (taken, results) = (Arc::clone(&taken), results.clone());
            scope.spawn(move || parse_jobs(&taken, &results));
        }
        drop((results, taken));
        let stop_here = &stop;
        scope.spawn(move || {
            let mut send = |job: Job| {
                if stop_here.load(Ordering::Relaxed) {
                    Err(Stopped)
                } else {
                    jobs.send(job).map_err(|_| Stopped)
                }
            };
            let mut producer = Producer { send: &mut send, number: 0, limits };
            // It ends early when nobody wants more.
            let _ = files.iter().try_for_each(|file| producer.file(file));
        });
        gather(&collected, &mut collector, &stop, total, progress);
    });
    Ok(collector.finish())
}

/// Reads one text, without threads: for what is no file.
pub fn read_text(name: &str, text: impl Read + Send + 'static, limits: &Limits) -> Snapshot {
    let mut collector = Collector::new(limits);
    let mut names = Names::new();
    let file: Arc<str> = Arc::from(name);
    let mut held_objects = false;
    let mut send = |job: Job| {
        let read = parse_job(job, &mut names);
        take_part(read, &mut collector, &mut held_objects);
        if collector.is_full() { Err(Stopped) } else { Ok(()) }
    };
    let mut producer = Producer { send: &mut send, number: 0, limits };
    let _ = match unpacked(text) {
        Ok(reader) => producer.text(&file, reader),
        Err(error) => producer.nothing(&file, Why::Unreachable(error.to_string())),
    };
    collector.finish()
}

/// A part of a file on its way to a parser.
struct Job {
    number: u64,
    file: Arc<str>,
    pieces: Vec<Piece>,
    bytes: u64,
    is_last: bool,
}

/// The same, parsed.
struct ReadPart {
    number: u64,
    file: Arc<str>,
    done: Vec<Done>,
    bytes: u64,
    is_last: bool,
}

/// Nobody takes jobs any more.
struct Stopped;

struct Producer<'a> {
    send: &'a mut dyn FnMut(Job) -> Result<(), Stopped>,
    number: u64,
    limits: &'a Limits,
}

/// Either way of splitting.
enum Splitter {
    Json(json::Splitter),
    Yaml(yaml::Splitter),
}

impl Splitter {
    fn room(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Json(splitter) => splitter.room(),
            Self::Yaml(splitter) => splitter.room(),
        }
    }

    fn pieces(&mut self) -> Vec<Piece> {
        match self {
            Self::Json(splitter) => splitter.pieces(),
            Self::Yaml(splitter) => splitter.pieces(),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Json(splitter) => splitter.is_over(),
            Self::Yaml(splitter) => splitter.is_over(),
        }
    }

    fn finish(self, cut: Option<Why>) -> Vec<Piece> {
        match self {
            Self::Json(splitter) => splitter.finish(cut),
            Self::Yaml(splitter) => splitter.finish(cut),
        }
    }
}

impl Producer<'_> {
    fn file(&mut self, file: &Found) -> Result<(), Stopped> {
        let name: Arc<str> = Arc::from(file.relative.as_str());
        match open(&file.path).map(unpacked) {
            Ok(Ok(reader)) => self.text(&name, reader),
            Ok(Err(error)) => self.nothing(&name, Why::Unreachable(error.to_string())),
            Err(error) => self.nothing(&name, Why::Unreachable(error.to_string())),
        }
    }

    fn nothing(&mut self, name: &Arc<str>, why: Why) -> Result<(), Stopped> {
        self.send(name, vec![Piece::Bad { offset: u64::MAX, why }], 0, true)
    }

    fn text(&mut self, name: &Arc<str>, mut reader: impl Read) -> Result<(), Stopped> {
        let mut begin = Vec::new();
        let block = self.limits.block_bytes.max(1);
        let mut read = |into: &mut Vec<u8>, bytes: u64| {
            let before = into.len();
            into.reserve(usize::try_from(bytes).unwrap_or_default() + 64);
            let result = reader.by_ref().take(bytes).read_to_end(into);
            (result, (into.len() - before) as u64)
        };
        let (mut result, mut bytes) = read(&mut begin, block.max(SNIFFED));
        let mut splitter = match looks(&begin) {
            Looks::Json => Splitter::Json(json::Splitter::new(self.limits.object_bytes)),
            Looks::Yaml => Splitter::Yaml(yaml::Splitter::new(self.limits.object_bytes)),
            Looks::Archive => return self.nothing(name, Why::Archive),
            Looks::Other => {
                let why = match result {
                    Ok(_) => Why::NotObjects,
                    Err(error) => Why::Unreachable(error.to_string()),
                };
                return self.nothing(name, why);
            }
        };
        let mut total = bytes;
        // Of a small block, the first bytes are several.
        let mut first = begin.chunks(usize::try_from(block).unwrap_or(usize::MAX)).peekable();
        while let Some(chunk) = first.next() {
            splitter.room().extend_from_slice(chunk);
            if first.peek().is_some() {
                let pieces = splitter.pieces();
                self.send(name, pieces, 0, false)?;
            }
        }
        let cut = loop {
            match result {
                Err(error) => break Some(Why::Unreachable(format!("the file cannot be read on: {error}"))),
                Ok(0) => break None,
                Ok(_) => {}
            }
            if total > self.limits.file_bytes {
                break Some(Why::FileTooLarge(self.limits.file_bytes));
            }
            let pieces = splitter.pieces();
            self.send(name, pieces, bytes, false)?;
            if splitter.is_over() {
                break None;
            }
            (result, bytes) = read(splitter.room(), block);
            total += bytes;
        };
        self.send(name, splitter.finish(cut), 0, true)
    }

    fn send(
        &mut self,
        file: &Arc<str>,
        pieces: Vec<Piece>,
        bytes: u64,
        is_last: bool,
    ) -> Result<(), Stopped> {
        if pieces.is_empty() && bytes == 0 && !is_last {
            return Ok(());
        }
        let job = Job { number: self.number, file: Arc::clone(file), pieces, bytes, is_last };
        self.number += 1;
        (self.send)(job)
    }
}

/// The text of a file that may be packed with gzip.
fn unpacked(mut file: impl Read + Send + 'static) -> std::io::Result<Box<dyn Read>> {
    let mut begin = Vec::new();
    file.by_ref().take(2).read_to_end(&mut begin)?;
    let is_packed = begin == [0x1f, 0x8b];
    let whole = std::io::Cursor::new(begin).chain(file);
    Ok(if is_packed {
        Box::new(MultiGzDecoder::new(std::io::BufReader::with_capacity(64 << 10, whole)))
    } else {
        Box::new(whole)
    })
}

fn parse_jobs(jobs: &Mutex<Receiver<Job>>, results: &SyncSender<ReadPart>) {
    let mut names = Names::new();
    loop {
        // Nobody panics while holding it; if somebody did, there would be nothing to go on with.
        let next = jobs.lock().ok().and_then(|jobs| jobs.recv().ok());
        let Some(job) = next else { return };
        if results.send(parse_job(job, &mut names)).is_err() {
            return;
        }
    }
}

fn parse_job(job: Job, names: &mut Names) -> ReadPart {
    let done = job.pieces.into_iter().flat_map(|piece| parse_piece(piece, names)).collect();
    ReadPart { number: job.number, file: job.file, done, bytes: job.bytes, is_last: job.is_last }
}

fn parse_piece(piece: Piece, names: &mut Names) -> Vec<Done> {
    match piece {
        Piece::ListEnd { list, kind } => vec![Done::ListEnd { list, kind }],
        Piece::Bad { offset, why } => {
            vec![Done::Bad { offset: Some(offset).filter(|at| *at != u64::MAX), why }]
        }
        Piece::Items { form, text, items } => {
            let read = items.into_iter().map(|item| {
                let own = text.get(item.range).unwrap_or_default();
                match (parse(form, own, item.kind.as_deref(), names), item.list) {
                    (Parsed::NoKind, Some(list)) if item.kind.is_none() => Done::Waiting {
                        list,
                        waiting: Waiting { form, text: own.to_vec(), offset: item.offset },
                    },
                    (parsed, _) => Done::Object { offset: item.offset, parsed },
                }
            });
            read.collect()
        }
    }
}

/// Takes results in the order of the text.
fn gather(
    results: &Receiver<ReadPart>,
    collector: &mut Collector<'_>,
    stop: &AtomicBool,
    total: u64,
    progress: &mut dyn FnMut(&Progress),
) {
    let mut early: BTreeMap<u64, ReadPart> = BTreeMap::new();
    let mut next = 0;
    let mut held_objects = false;
    for result in results {
        early.insert(result.number, result);
        while let Some(result) = early.remove(&next) {
            next += 1;
            let bytes = take_part(result, collector, &mut held_objects);
            progress(&Progress { bytes, total, objects: collector.objects() });
        }
        if collector.is_full() {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Takes one part; `held_objects` is whether its file has held any so far. All bytes that were taken.
fn take_part(part: ReadPart, collector: &mut Collector<'_>, held_objects: &mut bool) -> u64 {
    *held_objects |= part.done.iter().any(|done| !matches!(done, Done::Bad { .. }));
    for done in part.done {
        collector.take(&part.file, done);
    }
    if part.is_last {
        collector.end_of_file(&part.file);
        if *held_objects {
            collector.file();
        }
        *held_objects = false;
    }
    collector.bytes(part.bytes)
}
