//! What is read from a folder, what is left out, and what is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::symlink;

use camino::{Utf8Path, Utf8PathBuf};
use scantling_files::{FilesError, Limits, SkipReason, read_file, read_tree, write_file};
use tempfile::TempDir;

struct Folder(TempDir);

impl Folder {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let folder = Self(TempDir::new().unwrap());
        for (path, bytes) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        folder
    }
    fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.0.path()).unwrap()
    }
}

#[test]
fn reads_text_and_lists_the_rest() {
    let folder = Folder::new(&[
        ("release.yaml", b"kind: Release\n"),
        ("manifests/a.yaml", b"a: 1\n"),
        ("manifests/deep/b.yaml", b"b: 2\n"),
        (".git/config", b"x"),
        ("manifests/.hidden.yaml", b"x"),
        ("logo.png", b"\x89PNG\0\0"),
        ("latin.yaml", b"name: Gr\xf6\xdfe\n"),
    ]);
    let reading = read_tree(folder.path(), &Limits::default()).unwrap();
    assert_eq!(
        reading.tree.keys().map(String::as_str).collect::<Vec<_>>(),
        ["manifests/a.yaml", "manifests/deep/b.yaml", "release.yaml"]
    );
    assert_eq!(reading.tree["manifests/deep/b.yaml"], b"b: 2\n");
    let skipped: Vec<_> = reading.skipped.iter().map(|s| (s.path.as_str(), s.reason)).collect();
    assert_eq!(
        skipped,
        [
            (".git", SkipReason::Hidden),
            ("latin.yaml", SkipReason::NotUtf8),
            ("logo.png", SkipReason::Binary),
            ("manifests/.hidden.yaml", SkipReason::Hidden),
        ]
    );
}

#[test]
fn a_file_is_a_tree_of_one() {
    let folder = Folder::new(&[("a.yaml", b"a: 1\n"), ("b.yaml", b"b: 1\n")]);
    let reading = read_tree(&folder.path().join("a.yaml"), &Limits::default()).unwrap();
    assert_eq!(reading.tree.into_iter().collect::<Vec<_>>(), [("a.yaml".to_owned(), b"a: 1\n".to_vec())]);
    assert_eq!(reading.root, folder.path());
}

#[test]
fn links_inside_are_followed_links_outside_are_refused() {
    let outside = Folder::new(&[("secret.yaml", b"password: x\n")]);
    let folder = Folder::new(&[("real/a.yaml", b"a: 1\n")]);
    symlink("real", folder.path().join("alias")).unwrap();
    let reading = read_tree(folder.path(), &Limits::default()).unwrap();
    assert_eq!(reading.tree.keys().map(String::as_str).collect::<Vec<_>>(), ["alias/a.yaml", "real/a.yaml"]);

    let link = folder.path().join("real/out.yaml");
    symlink(outside.path().join("secret.yaml"), &link).unwrap();
    let error = read_tree(folder.path(), &Limits::default()).unwrap_err();
    assert!(matches!(error, FilesError::LinkOutside { .. }), "{error}");
    assert!(error.to_string().contains("out.yaml"), "{error}");
    fs::remove_file(&link).unwrap();

    symlink("..", folder.path().join("real/up")).unwrap();
    let error = read_tree(folder.path(), &Limits::default()).unwrap_err();
    assert!(matches!(error, FilesError::LinkLoop { .. }), "{error}");
    fs::remove_file(folder.path().join("real/up")).unwrap();

    symlink("nowhere", folder.path().join("real/gone")).unwrap();
    let error = read_tree(folder.path(), &Limits::default()).unwrap_err();
    assert!(matches!(error, FilesError::LinkBroken { .. }), "{error}");
}

#[test]
fn limits_hold() {
    let folder = Folder::new(&[("a/b/c.yaml", b"123456"), ("a/d.yaml", b"123456")]);
    let read = |limits: Limits| read_tree(folder.path(), &limits).map(|r| r.tree.len());
    let wide = Limits::default();
    assert_eq!(read(wide).unwrap(), 2);
    assert!(matches!(read(Limits { entries: 3, ..wide }).unwrap_err(), FilesError::TooManyEntries { .. }));
    assert!(matches!(read(Limits { file_bytes: 5, ..wide }).unwrap_err(), FilesError::FileTooLarge { .. }));
    assert!(matches!(read(Limits { total_bytes: 11, ..wide }).unwrap_err(), FilesError::TreeTooLarge { .. }));
    assert!(matches!(read(Limits { depth: 2, ..wide }).unwrap_err(), FilesError::TooDeep { .. }));
    assert_eq!(read(Limits { entries: 4, file_bytes: 6, total_bytes: 12, depth: 3 }).unwrap(), 2);
}

#[test]
fn a_misspelt_path_is_met_with_the_right_one() {
    let folder = Folder::new(&[("release.yaml", b"")]);
    let error = read_file(&folder.path().join("relaese.yaml"), &Limits::default()).unwrap_err();
    assert!(error.hint().unwrap().contains("release.yaml"), "{error} {:?}", error.hint());
    let error = read_file(&folder.path().join("quite-other"), &Limits::default()).unwrap_err();
    assert!(!error.hint().unwrap().contains("release.yaml"));
}

#[test]
fn a_named_file_must_be_text() {
    let folder = Folder::new(&[("a.bin", b"\0")]);
    let error = read_file(&folder.path().join("a.bin"), &Limits::default()).unwrap_err();
    assert!(matches!(error, FilesError::NotText { reason: SkipReason::Binary, .. }));
    let error = read_file(folder.path(), &Limits::default()).unwrap_err();
    assert!(matches!(error, FilesError::IsFolder { .. }));
}

#[test]
fn writing_replaces_the_whole_file() {
    let folder = Folder::new(&[("out.lock", b"a long old content")]);
    let path: Utf8PathBuf = folder.path().join("out.lock");
    write_file(&path, b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(write_file(&folder.path().join("missing/out.lock"), b"x").is_err());
    assert!(matches!(write_file(folder.path(), b"x").unwrap_err(), FilesError::IsFolder { .. }));
}

#[test]
fn links_are_written_through_and_devices_are_left_alone() {
    let folder = Folder::new(&[("target", b"old")]);
    let (link, device) = (folder.path().join("link"), folder.path().join("device"));
    symlink("target", &link).unwrap();
    write_file(&link, b"through").unwrap();
    assert_eq!(fs::read(folder.path().join("target")).unwrap(), b"through");
    symlink("/dev/full", &device).unwrap();
    assert!(write_file(&device, b"x").is_err(), "a device is no file");
    for path in [&link, &device] {
        assert!(fs::symlink_metadata(path).unwrap().is_symlink(), "{path}");
    }
}
