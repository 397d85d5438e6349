//! A tar archive as a stream of entries, with bounded memory.
//!
//! The `tar` crate reads extended headers of any length into memory; here a layer comes from anywhere, so their size is bounded. Known:
//! ustar, GNU long names, PAX (path, size, sparse names), old GNU sparse headers.

use std::io::{self, Read};

const BLOCK: usize = 512;
/// Longest extended header that is read: paths and attributes, never contents.
const MAX_EXTENDED: u64 = 1 << 20;

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TarError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the archive is damaged: {0}")]
    Damaged(&'static str),
    #[error("an extended header has {0} bytes, more than the {MAX_EXTENDED} allowed")]
    ExtendedHeader(u64),
}

/// What an entry is, as far as contents are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    HardLink,
    Directory,
    /// Symbolic links, devices, pipes, sparse files: nothing to read.
    Other,
}

/// The head of an entry; its data is read through [`TarStream::data`] before the next head.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) path: Vec<u8>,
    pub(crate) kind: EntryKind,
    pub(crate) size: u64,
}

pub(crate) struct TarStream<R> {
    inner: R,
    /// Data of the current entry that was not read, and the padding behind it.
    unread: u64,
    padding: u64,
}

/// What extended headers say of the entry behind them.
#[derive(Default)]
struct Extended {
    path: Option<Vec<u8>>,
    size: Option<u64>,
}

impl<R: Read> TarStream<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, unread: 0, padding: 0 }
    }

    /// The next entry; `None` at the end of the archive.
    pub(crate) fn next(&mut self) -> Result<Option<Head>, TarError> {
        let mut extended = Extended::default();
        loop {
            self.skip_data()?;
            let Some(block) = self.block()? else { return Ok(None) };
            if block.iter().all(|b| *b == 0) {
                return Ok(None);
            }
            check_sum(&block)?;
            let typeflag = byte(&block, 156);
            let mut size = number(field(&block, 124, 12))?;
            match typeflag {
                b'L' => {
                    let mut path = self.extended(size)?;
                    path.truncate(path.iter().position(|b| *b == 0).unwrap_or(path.len()));
                    extended.path = Some(path);
                    continue;
                }
                b'x' => {
                    let records = self.extended(size)?;
                    pax(&records, &mut extended)?;
                    continue;
                }
                // Long link targets, global attributes, volume labels: nothing here depends on them.
                b'K' | b'g' | b'V' => {
                    self.begin(size);
                    continue;
                }
                _ => {}
            }
            if let Some(own) = extended.size {
                size = own;
            }
            // Links and devices have no data, whatever their header says.
            if matches!(typeflag, b'1'..=b'6') && !(typeflag == b'1' && extended.size.is_some()) {
                size = 0;
            }
            if typeflag == b'S' {
                self.skip_sparse_headers(&block)?;
            }
            self.begin(size);
            let path = extended.path.take().unwrap_or_else(|| name(&block));
            let kind = match typeflag {
                b'0' | 0 | b'7' if path.last() == Some(&b'/') => EntryKind::Directory,
                b'0' | 0 | b'7' => EntryKind::File,
                b'1' => EntryKind::HardLink,
                b'5' => EntryKind::Directory,
                _ => EntryKind::Other,
            };
            return Ok(Some(Head { path, kind, size }));
        }
    }

    /// The data of the entry that was returned last.
    pub(crate) fn data(&mut self) -> impl Read + '_ {
        Data { stream: self }
    }

    fn begin(&mut self, size: u64) {
        self.unread = size;
        self.padding = size.wrapping_neg() % BLOCK as u64;
    }

    fn skip_data(&mut self) -> Result<(), TarError> {
        let rest = self
            .unread
            .checked_add(self.padding)
            .ok_or(TarError::Damaged("an entry's size is out of range"))?;
        self.unread = 0;
        self.padding = 0;
        let skipped = io::copy(&mut self.inner.by_ref().take(rest), &mut io::sink())?;
        if skipped < rest { Err(TarError::Damaged("it ends inside an entry")) } else { Ok(()) }
    }

    /// One block; `None` at the very end of the stream (some writers leave out the empty blocks).
    fn block(&mut self) -> Result<Option<[u8; BLOCK]>, TarError> {
        let mut block = [0; BLOCK];
        let mut have = 0;
        while have < BLOCK {
            let Some(rest) = block.get_mut(have..) else { break };
            match self.inner.read(rest) {
                Ok(0) if have == 0 => return Ok(None),
                Ok(0) => return Err(TarError::Damaged("it ends inside a header")),
                Ok(n) => have += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(block))
    }

    fn extended(&mut self, size: u64) -> Result<Vec<u8>, TarError> {
        if size > MAX_EXTENDED {
            return Err(TarError::ExtendedHeader(size));
        }
        self.begin(size);
        let mut data = Vec::new();
        self.data().read_to_end(&mut data)?;
        if (data.len() as u64) < size {
            return Err(TarError::Damaged("it ends inside an extended header"));
        }
        Ok(data)
    }

    /// Old GNU sparse files may have further header blocks, which the size does not count.
    fn skip_sparse_headers(&mut self, block: &[u8; BLOCK]) -> Result<(), TarError> {
        let mut more = byte(block, 482) != 0;
        while more {
            let next = self.block()?.ok_or(TarError::Damaged("it ends inside a sparse header"))?;
            more = byte(&next, 504) != 0;
        }
        Ok(())
    }
}

struct Data<'a, R> {
    stream: &'a mut TarStream<R>,
}

impl<R: Read> Read for Data<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.stream.unread).unwrap_or(usize::MAX).min(buffer.len());
        let Some(buffer) = buffer.get_mut(..most) else { return Ok(0) };
        let n = self.stream.inner.read(buffer)?;
        self.stream.unread -= n as u64;
        Ok(n)
    }
}

fn byte(block: &[u8; BLOCK], at: usize) -> u8 {
    block.get(at).copied().unwrap_or(0)
}

fn field(block: &[u8; BLOCK], start: usize, length: usize) -> &[u8] {
    block.get(start..start + length).unwrap_or_default()
}

fn text(field: &[u8]) -> &[u8] {
    field.split(|b| *b == 0).next().unwrap_or_default()
}

/// A name of at most 100 bytes, with the prefix of ustar before it.
fn name(block: &[u8; BLOCK]) -> Vec<u8> {
    let name = text(field(block, 0, 100));
    let prefix = text(field(block, 345, 155));
    // GNU's format has times where ustar has the prefix.
    if field(block, 257, 6) == b"ustar\0" && !prefix.is_empty() {
        [prefix, b"/", name].concat()
    } else {
        name.to_vec()
    }
}

/// A number in octal, or in base 256 when the first bit is set.
fn number(field: &[u8]) -> Result<u64, TarError> {
    const BAD: TarError = TarError::Damaged("a number in a header is malformed");
    if let Some((first, rest)) = field.split_first()
        && first & 0x80 != 0
    {
        // Negative numbers (0xff) overflow here and are refused; sizes have none.
        return rest.iter().try_fold(u64::from(first & 0x7f), |sum, b| {
            sum.checked_mul(256).and_then(|sum| sum.checked_add(u64::from(*b))).ok_or(BAD)
        });
    }
    let digits = text(field).trim_ascii();
    digits.iter().try_fold(0u64, |sum, b| match b {
        b'0'..=b'7' => sum.checked_mul(8).and_then(|sum| sum.checked_add(u64::from(b - b'0'))).ok_or(BAD),
        _ => Err(BAD),
    })
}

fn check_sum(block: &[u8; BLOCK]) -> Result<(), TarError> {
    let stated = number(field(block, 148, 8))?;
    let unsigned: u64 = block
        .iter()
        .enumerate()
        .map(|(at, b)| if (148..156).contains(&at) { u64::from(b' ') } else { u64::from(*b) })
        .sum();
    let signed: i64 = block
        .iter()
        .enumerate()
        .map(|(at, b)| if (148..156).contains(&at) { i64::from(b' ') } else { i64::from(b.cast_signed()) })
        .sum();
    // Some old writers summed signed bytes.
    if stated == unsigned || i64::try_from(stated) == Ok(signed) {
        Ok(())
    } else {
        Err(TarError::Damaged("a header's checksum is wrong; is it a tar archive?"))
    }
}

/// Reads PAX records: `LENGTH KEY=VALUE\n`, the length counting itself.
fn pax(mut records: &[u8], extended: &mut Extended) -> Result<(), TarError> {
    const BAD: TarError = TarError::Damaged("a PAX record is malformed");
    while !records.is_empty() {
        let space = records.iter().position(|b| *b == b' ').ok_or(BAD)?;
        let (digits, _) = records.split_at_checked(space).ok_or(BAD)?;
        let length: usize = std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok()).ok_or(BAD)?;
        let (record, rest) = records.split_at_checked(length).ok_or(BAD)?;
        let body = record.get(space + 1..).and_then(|body| body.strip_suffix(b"\n")).ok_or(BAD)?;
        records = rest;
        let equals = body.iter().position(|b| *b == b'=').ok_or(BAD)?;
        let (key, value) = body.split_at_checked(equals).ok_or(BAD)?;
        let value = value.get(1..).unwrap_or_default();
        match key {
            b"path" | b"GNU.sparse.name" => extended.path = Some(value.to_vec()),
            b"size" => {
                let size = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok()).ok_or(BAD)?;
                extended.size = Some(size);
            }
            _ => {}
        }
    }
    Ok(())
}
