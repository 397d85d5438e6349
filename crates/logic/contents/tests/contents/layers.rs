//! Layers as they come: well-made, odd, hostile.

use std::io::{self, Read, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use scantling_contents::{Contents, ContentsReader, LayerError, Limits};
use tar::{Builder, EntryType, Header};

const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
const GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

enum Entry<'a> {
    File(&'a str),
    Folder,
    Link(EntryType, &'a str),
}

/// An archive, written by the `tar` crate.
fn tar(entries: &[(&str, Entry<'_>)]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (path, entry) in entries {
        let mut header = Header::new_gnu();
        header.set_mode(0o644);
        match entry {
            Entry::File(text) => {
                header.set_size(text.len() as u64);
                builder.append_data(&mut header, path, text.as_bytes()).unwrap();
            }
            Entry::Folder => {
                header.set_entry_type(EntryType::Directory);
                header.set_size(0);
                builder.append_data(&mut header, path, io::empty()).unwrap();
            }
            Entry::Link(kind, target) => {
                header.set_entry_type(*kind);
                header.set_size(0);
                builder.append_link(&mut header, path, target).unwrap();
            }
        }
    }
    builder.into_inner().unwrap()
}

/// One header block with any path, which the `tar` crate would refuse to write.
fn raw(path: &[u8], kind: EntryType, data: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..path.len()].copy_from_slice(path);
    header.set_entry_type(kind);
    header.set_size(data.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    let mut block = header.as_bytes().to_vec();
    block.extend_from_slice(data);
    block.resize(block.len().next_multiple_of(512), 0);
    block
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn read(layers: &[Vec<u8>]) -> Contents {
    let mut reader = ContentsReader::new(Limits::default());
    for layer in layers {
        reader.layer(TAR, layer.as_slice()).unwrap();
    }
    reader.finish()
}

fn found(contents: &Contents) -> Vec<String> {
    contents.packages.iter().map(|p| format!("{} {} {}", p.ecosystem, p.name, p.version)).collect()
}

fn metadata(name: &str, version: &str) -> String {
    format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: x\n\nName: not this\n")
}

#[test]
fn every_kind_of_metadata() {
    let python = |name: &str| metadata(name, "1.0");
    let (a, b, c, d) = (python("a"), python("b"), python("c"), python("d"));
    let status = "Package: libc6\nStatus: install ok installed\nVersion: 2.36-9\nDescription: x\n Version: 9\n\n\
                  Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\nPackage: half\nStatus: install ok half-installed\nVersion: 1\n";
    let contents = read(&[tar(&[
        ("usr/lib/python3/dist-packages/a-1.0.dist-info/METADATA", Entry::File(&a)),
        ("usr/lib/python3/dist-packages/b.egg-info", Entry::File(&b)),
        ("opt/app/lib/python3.9/site-packages/c-1.0-py3.9.egg-info/PKG-INFO", Entry::File(&c)),
        ("opt/app/lib/python3.9/site-packages/d.egg/EGG-INFO/PKG-INFO", Entry::File(&d)),
        (
            "opt/conda/conda-meta/numpy-1.19.2-py38_0.json",
            Entry::File(r#"{"name": "numpy", "version": "1.19.2", "files": []}"#),
        ),
        ("opt/conda/conda-meta/history", Entry::File("==>")),
        ("var/lib/dpkg/status", Entry::File(status)),
        ("var/lib/dpkg/status.d/tzdata", Entry::File("Package: tzdata\nVersion: 2024a\n")),
        ("var/lib/dpkg/status.d/tzdata.md5sums", Entry::File("Package: no\nVersion: 1\n")),
        (
            "./etc/os-release",
            Entry::File("NAME=\"Red Hat\"\nPRETTY_NAME='RHEL \"8\"'\nID=rhel\nVERSION_ID=\"8.4\"\n"),
        ),
        ("usr/local/cuda-11.0/bin/nvcc", Entry::File("")),
        ("usr/share/doc/METADATA", Entry::File(&a)),
    ])]);
    assert_eq!(
        found(&contents),
        [
            "python a 1.0",
            "python b 1.0",
            "python c 1.0",
            "python d 1.0",
            "conda numpy 1.19.2",
            "dpkg libc6 2.36-9",
            "dpkg tzdata 2024a"
        ]
    );
    let os = contents.os.unwrap();
    assert_eq!(
        (os.id.as_str(), os.version.as_deref(), os.name.as_deref()),
        ("rhel", Some("8.4"), Some("RHEL \"8\""))
    );
    let runtimes: Vec<String> =
        contents.runtimes.iter().map(|r| format!("{} {}", r.name, r.version)).collect();
    assert_eq!(runtimes, ["cuda 11.0", "python 3.9"]);
    assert!(contents.notes.is_empty());
}

#[test]
fn what_cannot_be_read_is_noted() {
    let contents = read(&[tar(&[
        ("var/lib/rpm/Packages", Entry::File("x")),
        ("var/lib/rpm/rpmdb.sqlite", Entry::File("x")),
        ("usr/lib/sysimage/rpm/Packages.db", Entry::File("x")),
        ("var/lib/rpm/.rpm.lock", Entry::File("")),
        ("s/a-1.dist-info/METADATA", Entry::File("Version: 1\n")),
        ("s/b-1.dist-info/METADATA", Entry::File("Name: b\n\nVersion: 1\n")),
        ("opt/conda/conda-meta/c.json", Entry::File("{}")),
        ("s/d.egg-info", Entry::Link(EntryType::Link, "elsewhere")),
    ])]);
    let notes: Vec<String> = contents.notes.iter().map(ToString::to_string).collect();
    assert!(contents.packages.is_empty());
    assert_eq!(notes.len(), 7, "{notes:#?}");
    for says in [
        "var/lib/rpm/Packages: rpm database form Berkeley DB (Packages) is not read yet",
        "SQLite (rpmdb.sqlite)",
        "NDB (Packages.db)",
        "a-1.dist-info/METADATA: the metadata has no Name",
        "b-1.dist-info/METADATA: the metadata has no Version",
        "c.json: not a conda record",
        "d.egg-info: a hard link",
    ] {
        assert!(notes.iter().any(|note| note.contains(says)), "{says}: {notes:#?}");
    }
}

#[test]
fn upper_layers_hide_lower_ones() {
    let site = "opt/lib/site-packages";
    let dist = |name: &str| format!("{site}/{name}-1.dist-info/METADATA");
    let file = metadata("a", "1");
    let other = metadata("b", "1");
    let base = || tar(&[(&dist("a"), Entry::File(&file)), (&dist("b"), Entry::File(&other))]);
    let wh = |path: &str| format!("{site}/.wh.{path}");
    let inner = format!("{site}/a-1.dist-info/.wh.METADATA");
    let opaque = format!("{site}/.wh..wh..opq");
    let new = metadata("a", "2");
    let cases: Vec<(&str, Vec<u8>, Vec<&str>)> = vec![
        ("nothing", tar(&[]), vec!["python a 1", "python b 1"]),
        ("a whiteout of a folder", tar(&[(&wh("a-1.dist-info"), Entry::File(""))]), vec!["python b 1"]),
        ("a whiteout of a file", tar(&[(&inner, Entry::File(""))]), vec!["python b 1"]),
        (
            "a whiteout of a name that begins the same",
            tar(&[(&wh("a-1"), Entry::File(""))]),
            vec!["python a 1", "python b 1"],
        ),
        ("a whiteout far up", tar(&[(".wh.opt", Entry::File(""))]), vec![]),
        ("an opaque folder", tar(&[(&opaque, Entry::File(""))]), vec![]),
        (
            "an opaque folder with something new, in either order",
            tar(&[(&dist("a"), Entry::File(&new)), (&opaque, Entry::File(""))]),
            vec!["python a 2"],
        ),
        (
            "a whiteout and the same path, in either order",
            tar(&[(&dist("a"), Entry::File(&new)), (&wh("a-1.dist-info"), Entry::File(""))]),
            vec!["python a 2", "python b 1"],
        ),
        (
            "new metadata at the same path",
            tar(&[(&dist("a"), Entry::File(&new))]),
            vec!["python a 2", "python b 1"],
        ),
        (
            "twice in one layer",
            tar(&[(&dist("a"), Entry::File(&file)), (&dist("a"), Entry::File(&new))]),
            vec!["python a 2", "python b 1"],
        ),
        ("a file in place of a folder", tar(&[(site, Entry::File(""))]), vec![]),
        ("a link in place of a folder", tar(&[("opt", Entry::Link(EntryType::Symlink, "usr"))]), vec![]),
        ("a folder in place of a file", tar(&[(&dist("a"), Entry::Folder)]), vec!["python b 1"]),
        (
            "something below what was a file",
            tar(&[(&format!("{}/x", dist("a")), Entry::File(""))]),
            vec!["python b 1"],
        ),
        ("a folder that is there", tar(&[(site, Entry::Folder)]), vec!["python a 1", "python b 1"]),
        (
            "aufs' own files",
            tar(&[(&format!("{site}/.wh..wh.plnk"), Entry::File(""))]),
            vec!["python a 1", "python b 1"],
        ),
    ];
    for (what, upper, want) in cases {
        assert_eq!(found(&read(&[base(), upper])), want, "{what}");
    }
    // A third layer brings back what the second took away.
    assert_eq!(found(&read(&[base(), tar(&[(".wh.opt", Entry::File(""))]), base()])).len(), 2);
}

#[test]
fn os_release_of_either_place() {
    let both = tar(&[
        ("usr/lib/os-release", Entry::File("ID=debian\n")),
        ("etc/os-release", Entry::File("ID=mine\n")),
    ]);
    assert_eq!(read(std::slice::from_ref(&both)).os.unwrap().id, "mine");
    let linked = tar(&[("etc/os-release", Entry::Link(EntryType::Symlink, "../usr/lib/os-release"))]);
    assert_eq!(read(&[both, linked]).os.unwrap().id, "debian");
    assert_eq!(read(&[tar(&[("etc/os-release", Entry::File("# nothing\n"))])]).os.unwrap().id, "linux");
}

#[test]
fn long_names_and_odd_headers() {
    let text = metadata("long", "1");
    let deep = format!("{}/x-1.dist-info/METADATA", "folder".repeat(40));
    assert_eq!(found(&read(&[tar(&[(&deep, Entry::File(&text))])])), ["python long 1"]);
    // The same name as PAX writes it, with a wrong size in the plain header.
    let record = |key: &str, value: &str| {
        let body = format!(" {key}={value}\n");
        let digits = (1..6).find(|digits| (body.len() + digits).to_string().len() == *digits).unwrap();
        format!("{}{body}", body.len() + digits)
    };
    let mut pax = raw(
        b"pax",
        EntryType::XHeader,
        format!("{}{}", record("path", &deep), record("mtime", "1.5")).as_bytes(),
    );
    pax.extend(raw(b"short", EntryType::Regular, text.as_bytes()));
    assert_eq!(found(&read(&[pax])), ["python long 1"]);
    // Global headers, volume labels, a file without a type, no empty blocks at the end.
    let mut odd = raw(b"g", EntryType::XGlobalHeader, record("path", "no").as_bytes());
    odd.extend(raw(b"label", EntryType::new(b'V'), b""));
    odd.extend(raw(b"x-1.dist-info/METADATA", EntryType::new(0), text.as_bytes()));
    assert_eq!(found(&read(&[odd])), ["python long 1"]);
    // A hard link to metadata in another layer: the folder's name says it.
    let hard = tar(&[("s/tensorflow-2.7.0.dist-info/METADATA", Entry::Link(EntryType::Link, "cache/x"))]);
    assert_eq!(found(&read(&[hard])), ["python tensorflow 2.7.0"]);
}

fn refused(media_type: &str, bytes: &[u8], limits: Limits) -> LayerError {
    ContentsReader::new(limits).layer(media_type, bytes).unwrap_err()
}

#[test]
fn media_types() {
    let layer = tar(&[]);
    for (media_type, packed) in [
        (TAR, false),
        (GZIP, true),
        ("application/vnd.docker.image.rootfs.diff.tar", false),
        ("application/vnd.docker.image.rootfs.diff.tar.gzip", true),
        ("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", true),
        ("application/vnd.oci.image.layer.nondistributable.v1.tar+gzip; x=y", true),
    ] {
        let bytes = if packed { gzip(&layer) } else { layer.clone() };
        ContentsReader::new(Limits::default()).layer(media_type, bytes.as_slice()).unwrap();
    }
    let zstd = refused("application/vnd.oci.image.layer.v1.tar+zstd", &layer, Limits::default()).to_string();
    assert!(zstd.contains("zstd is not read yet"), "{zstd}");
    let other = refused("application/json", &layer, Limits::default()).to_string();
    assert!(other.contains("layer 0: media type \"application/json\" is not read"), "{other}");
}

#[test]
fn hostile_layers_are_refused() {
    let small = Limits::default;
    let one = tar(&[("a", Entry::File(&"x".repeat(2000)))]);
    let zeros = gzip(&tar(&[("a", Entry::File(&"\0".repeat(4 << 20)))]));
    let many = tar(&[("a", Entry::Folder), ("b", Entry::Folder), ("c", Entry::Folder)]);
    let status: String = "Package: p\nVersion: 1\n\n".repeat(20);
    let packages = tar(&[("var/lib/dpkg/status.d/x", Entry::File(&status))]);
    let mut sum = one.clone();
    sum[0] ^= 1;
    let mut huge = raw(b"pax", EntryType::XHeader, b"");
    huge[124..136].copy_from_slice(b"77777777777\0");
    let mut header = Header::new_gnu();
    header.as_mut_bytes().copy_from_slice(&huge[..512]);
    header.set_cksum();
    let huge = header.as_bytes().to_vec();
    let mut endless = raw(b"a", EntryType::Regular, b"");
    endless[124..136]
        .copy_from_slice(&[0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    let mut header = Header::new_gnu();
    header.as_mut_bytes().copy_from_slice(&endless[..512]);
    header.set_cksum();
    let endless = header.as_bytes().to_vec();
    for (what, media_type, bytes, limits, says) in [
        ("a path upwards", TAR, raw(b"../../etc/passwd", EntryType::Regular, b""), small(), "points outside"),
        (
            "a path that goes down and up",
            TAR,
            raw(b"a/../../b", EntryType::Regular, b""),
            small(),
            "points outside",
        ),
        ("cut in the data", TAR, one[..1000].to_vec(), small(), "ends inside an entry"),
        ("cut in a header", TAR, one[..100].to_vec(), small(), "ends inside a header"),
        ("a wrong checksum", TAR, sum, small(), "checksum is wrong"),
        ("no archive", TAR, vec![7; 2048], small(), "damaged"),
        ("no gzip", GZIP, one.clone(), small(), "cannot read the stream"),
        ("cut gzip", GZIP, gzip(&one)[..20].to_vec(), small(), "cannot read the stream"),
        ("an extended header of gigabytes", TAR, huge, small(), "extended header"),
        ("a size beyond all", TAR, endless, small(), "malformed"),
        ("a broken PAX record", TAR, raw(b"p", EntryType::XHeader, b"99 path=x\n"), small(), "PAX"),
        ("a PAX record without a length", TAR, raw(b"p", EntryType::XHeader, b"path=x\n"), small(), "PAX"),
        ("a bomb", GZIP, zeros, Limits { ratio: 100, ratio_from: 1 << 20, ..small() }, "more than 100 times"),
        ("too large", GZIP, gzip(&one), Limits { layer_bytes: 1500, ..small() }, "more than 1500 bytes"),
        (
            "too large without compression",
            TAR,
            one,
            Limits { layer_bytes: 1500, ..small() },
            "more than 1500 bytes",
        ),
        (
            "too many entries",
            TAR,
            many.clone(),
            Limits { entries: 2, ..small() },
            "more than 2 archive entries",
        ),
        ("too long a path", TAR, many, Limits { path_bytes: 0, ..small() }, "more than 0 bytes in a path"),
        ("too many packages", TAR, packages, Limits { packages: 10, ..small() }, "more than 10 packages"),
    ] {
        let mut reader = ContentsReader::new(limits);
        let error = reader.layer(media_type, bytes.as_slice()).expect_err(what).to_string();
        assert!(error.contains(says) && error.contains("layer 0"), "{what}: {error}");
    }
    let mut reader = ContentsReader::new(Limits { layers: 1, ..small() });
    reader.layer(TAR, tar(&[]).as_slice()).unwrap();
    assert!(reader.layer(TAR, tar(&[]).as_slice()).unwrap_err().to_string().contains("more than 1 layers"));
}

#[test]
fn a_metadata_file_that_is_too_large_is_noted_and_the_rest_is_read() {
    let text = metadata("a", "1");
    let layer = tar(&[
        ("var/lib/dpkg/status", Entry::File(&"x".repeat(5000))),
        ("a-1.dist-info/METADATA", Entry::File(&text)),
    ]);
    let mut reader = ContentsReader::new(Limits { metadata_bytes: 1000, ..Limits::default() });
    reader.layer(TAR, layer.as_slice()).unwrap();
    let contents = reader.finish();
    assert_eq!(found(&contents), ["python a 1"]);
    assert!(contents.notes[0].message.contains("5000 bytes are more than the 1000"));
}

#[test]
fn a_stream_that_comes_in_drops() {
    struct Drops<'a>(&'a [u8]);
    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let end = buffer.len().min(7);
            self.0.read(&mut buffer[..end])
        }
    }
    let text = metadata("a", "1");
    let layer = gzip(&tar(&[("a-1.dist-info/METADATA", Entry::File(&text))]));
    let mut reader = ContentsReader::new(Limits::default());
    reader.layer(GZIP, Drops(&layer)).unwrap();
    assert_eq!(found(&reader.finish()), ["python a 1"]);
}

#[test]
fn the_environment_comes_from_the_configuration() {
    let mut reader = ContentsReader::new(Limits::default());
    reader.config(br#"{"config": {"Env": ["A=1", "B=x=y", "bad"]}}"#).unwrap();
    let env = reader.finish().env;
    assert_eq!(env.into_iter().collect::<Vec<_>>(), [("A".into(), "1".into()), ("B".into(), "x=y".into())]);
    for text in ["{}", r#"{"config": null}"#, r#"{"config": {"Env": null}}"#] {
        ContentsReader::new(Limits::default()).config(text.as_bytes()).unwrap();
    }
    assert!(ContentsReader::new(Limits::default()).config(b"[").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2048)) {
        let _ = ContentsReader::new(Limits::default()).layer(TAR, bytes.as_slice());
        let _ = ContentsReader::new(Limits::default()).layer(GZIP, bytes.as_slice());
        let _ = ContentsReader::new(Limits::default()).layer(GZIP, gzip(&bytes).as_slice());
    }

    #[test]
    fn a_damaged_archive_is_read_or_refused(at in 0usize..2560, value in any::<u8>()) {
        let text = metadata("a", "1");
        let mut layer = tar(&[("a-1.dist-info/METADATA", Entry::File(&text)), ("etc/os-release", Entry::File("ID=x\n"))]);
        let at = at % layer.len();
        layer[at] = value;
        let mut reader = ContentsReader::new(Limits::default());
        if reader.layer(TAR, layer.as_slice()).is_ok() {
            prop_assert!(reader.finish().packages.len() <= 1);
        }
    }

    #[test]
    fn every_archive_of_the_tar_crate_is_read(names in proptest::collection::btree_set("[a-z]{1,90}(/[a-z]{1,90}){0,3}", 1..8), size in 0usize..1500) {
        let text = metadata("a", "1");
        let filler = "x".repeat(size);
        let entries: Vec<(String, Entry<'_>)> = names.iter().map(|name| (format!("{name}/x.dist-info/METADATA"), Entry::File(&text)))
            .chain(names.iter().map(|name| (format!("{name}/filler"), Entry::File(&filler)))).collect();
        let borrowed: Vec<(&str, Entry<'_>)> = entries.iter().map(|(name, entry)| (name.as_str(), match entry {
            Entry::File(text) => Entry::File(text),
            _ => Entry::Folder,
        })).collect();
        prop_assert_eq!(read(&[tar(&borrowed)]).packages.len(), names.len());
    }
}
