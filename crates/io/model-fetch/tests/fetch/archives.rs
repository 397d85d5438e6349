//! Archives.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use scantling_model_fetch::{FetchError, Fetched, Limits};

use crate::{files, get, limits};

/// A tar with these entries. Names are written as they are, also bad ones.
fn tar(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn link() -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    builder.append_link(&mut header, "out", "/etc/passwd").unwrap();
    builder.into_inner().unwrap()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in entries {
        writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

async fn unpacked(
    name: &str,
    bytes: &[u8],
    limits: &Limits,
) -> (Result<Fetched, FetchError>, tempfile::TempDir) {
    let from = tempfile::tempdir().unwrap();
    std::fs::write(from.path().join(name), bytes).unwrap();
    let to = tempfile::tempdir().unwrap();
    let result = get(&format!("file://{}/{name}", from.path().display()), to.path(), None, limits).await;
    (result, to)
}

#[tokio::test]
async fn an_archive_that_is_all_there_is_gets_unpacked() {
    let entries: &[(&str, &[u8])] = &[("iris/model.joblib", b"m"), ("./iris/model-settings.json", b"{}")];
    for (name, bytes) in [
        ("m.tar", tar(entries)),
        ("m.tar.gz", gz(&tar(entries))),
        ("m.TGZ", gz(&tar(entries))),
        ("m.zip", zip(&[("iris/model.joblib", b"m"), ("iris/model-settings.json", b"{}")])),
    ] {
        let (done, to) = unpacked(name, &bytes, &limits()).await;
        let done = done.unwrap();
        assert_eq!((done.files, done.unpacked.as_deref()), (2, Some(name)));
        let found = files(to.path());
        assert_eq!(
            found.keys().collect::<Vec<_>>(),
            ["iris/model-settings.json", "iris/model.joblib"],
            "{name}"
        );
    }
}

#[tokio::test]
async fn an_archive_that_does_harm_is_refused_whole() {
    let big = vec![0; 100_000];
    let small = Limits { bytes: 50_000, ..limits() };
    let few = Limits { files: 2, ..limits() };
    for (name, bytes, limits, expected) in [
        ("m.tar", tar(&[("ok", b"1"), ("../../evil", b"1")]), limits(), "leaves the folder"),
        ("m.tar", tar(&[("/etc/evil", b"1")]), limits(), "leaves the folder"),
        ("m.tar", link(), limits(), "is a link or a device"),
        ("m.tar", tar(&[("a", b"1"), ("a", b"2")]), limits(), "is in it twice"),
        ("m.tar.gz", gz(&tar(&[("a", &big)])), small, "unpacks to more than 50000 bytes"),
        ("m.zip", zip(&[("a", &big)]), small, "unpacks to more than 50000 bytes"),
        ("m.tar", tar(&[("a", b"1"), ("b", b"1"), ("c", b"1")]), few, "more than 2 entries"),
        ("m.tar.gz", gz(&tar(&[("a", b"1")]))[..20].to_vec(), limits(), "damaged"),
        ("m.tar.gz", b"no archive".to_vec(), limits(), "cannot be unpacked"),
        ("m.zip", b"no archive".to_vec(), limits(), "cannot be unpacked"),
        ("m.zip", zip(&[("../evil", b"1")]), limits(), "leaves the folder"),
        ("m.tar", tar(&[]), limits(), "no file in it"),
    ] {
        let (result, to) = unpacked(name, &bytes, &limits).await;
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error} instead of {expected}");
        let left: Vec<_> =
            std::fs::read_dir(to.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name == ".scantling-fetch"), "{left:?}");
    }
}
