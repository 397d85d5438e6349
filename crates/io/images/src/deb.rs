//! Debian packages into a tree: what dpkg would unpack, without its scripts.

use std::io::{self, BufReader, Read, Seek, Write};
use std::process::{Command, Stdio};

use camino::Utf8Path;
use tar::EntryType;

use crate::error::ImagesError;
use crate::lock::DebianPin;
use crate::program::{captured, started};
use crate::recipe::{Recipe, is_meant};
use crate::tree::{Entry, Node, Tree};

/// Folders of the root that are links into `usr`: Debian's packages still name some of their files by the old places.
pub(crate) const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// What programs may do beyond their user's rights (setuid, setgid) has no place in an image whose processes are restricted.
const MODE_MASK: u32 = 0o1777;

/// Unpacks a package, and enters it where scanners look for packages of images that have no dpkg.
pub(crate) fn unpack<S: Read + Write + Seek>(
    tree: &mut Tree<S>,
    recipe: &Recipe,
    pin: &DebianPin,
    file: &Utf8Path,
) -> Result<(), ImagesError> {
    let mut command = Command::new("dpkg-deb");
    command.arg("--fsys-tarfile").arg(file).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = started(&mut command, "dpkg-deb")?;
    let result = match child.stdout.take() {
        Some(output) => archive(tree, recipe, pin, BufReader::with_capacity(1 << 16, output)),
        None => Ok(false),
    };
    let output = child.wait_with_output().map_err(ImagesError::file(file))?;
    let has_files = result?;
    if !output.status.success() {
        return Err(ImagesError::Program {
            command: format!("dpkg-deb --fsys-tarfile {file}"),
            problem: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    if !has_files && !recipe.only.is_empty() {
        // Nothing of it is in the image, so it isn't listed.
        return Ok(());
    }
    let control = captured(Command::new("dpkg-deb").arg("--field").arg(file), "dpkg-deb")?;
    let stanza = stanza(&control, pin)
        .map_err(|problem| ImagesError::Recipe { path: file.to_owned(), problem: problem.to_owned() })?;
    let path = format!("var/lib/dpkg/status.d/{}", pin.name);
    tree.put_file(&path, (0o644, 0, 0), stanza.as_bytes()).map_err(ImagesError::file(file))?;
    Ok(())
}

/// The package's entry in the list of what is installed: its own control fields, and that it is installed.
fn stanza(control: &str, pin: &DebianPin) -> Result<String, &'static str> {
    let field = |name: &str| {
        control.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    if field("Package") != Some(&pin.name) || field("Version") != Some(&pin.version) {
        return Err("it is another package than the lock says");
    }
    let mut text = String::new();
    for line in control.trim_end().lines() {
        text.push_str(line);
        text.push('\n');
        if line.starts_with("Package:") {
            text.push_str("Status: install ok installed\n");
        }
    }
    Ok(text)
}

/// Unpacks the files; says whether there were any.
fn archive<S: Read + Write + Seek>(
    tree: &mut Tree<S>,
    recipe: &Recipe,
    pin: &DebianPin,
    stream: impl Read,
) -> Result<bool, ImagesError> {
    let package = format!("{} {}", pin.name, pin.version);
    let broken = |error: io::Error| ImagesError::Entry {
        package: package.clone(),
        path: String::new(),
        problem: format!("cannot be unpacked: {error}"),
    };
    let mut has_files = false;
    let mut archive = tar::Archive::new(stream);
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let written = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let refused = |problem: &str| ImagesError::Entry {
            package: package.clone(),
            path: written.clone(),
            problem: problem.to_owned(),
        };
        let path = place(&written).ok_or_else(|| refused("leads out of the image"))?;
        if path.is_empty() || left_out(recipe, &path) {
            continue;
        }
        let header = entry.header();
        has_files |= header.entry_type() != EntryType::Directory;
        let mode = header.mode().map_err(broken)? & MODE_MASK;
        let (user, group) = (header.uid().map_err(broken)?, header.gid().map_err(broken)?);
        let target = |entry: &tar::Entry<'_, _>| {
            entry.link_name_bytes().map(|target| String::from_utf8_lossy(&target).into_owned())
        };
        match entry.header().entry_type() {
            EntryType::Directory => {
                tree.put(&path, Entry { mode, user, group, node: Node::Folder });
            }
            EntryType::Regular | EntryType::Continuous => {
                tree.put_file(&path, (mode, user, group), &mut entry).map_err(broken)?;
            }
            EntryType::Symlink => {
                let target = target(&entry).ok_or_else(|| refused("is a link to nothing"))?;
                tree.put(&path, Entry { mode: 0o777, user, group, node: Node::Link(target) });
            }
            EntryType::Link => {
                let from = target(&entry).and_then(|target| place(&target));
                if !from.is_some_and(|from| tree.copy(&from, &path)) {
                    return Err(refused("is a hard link to what is not in the image"));
                }
            }
            _ => return Err(refused("is neither file, folder nor link")),
        }
    }
    Ok(has_files)
}

fn left_out(recipe: &Recipe, path: &str) -> bool {
    if !recipe.only.is_empty() {
        return !is_meant(path, &recipe.only);
    }
    is_meant(path, &recipe.leave_out) && !is_meant(path, &recipe.keep)
}

/// The path from the root, in the place where merged folders have it; `None` if it leads out.
fn place(written: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in written.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            part => parts.push(part),
        }
    }
    match parts.as_slice() {
        [first, _, ..] if MERGED.contains(first) => parts.insert(0, "usr"),
        [only] if MERGED.contains(only) => parts.insert(0, "usr"),
        _ => {}
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Cursor;

    use scantling_image::Digest;

    use super::*;

    fn pin() -> DebianPin {
        DebianPin {
            name: "tool".to_owned(),
            version: "1:2.0-1".to_owned(),
            architecture: "amd64".to_owned(),
            digest: Digest::of(b""),
        }
    }

    fn recipe(fields: &str) -> Recipe {
        let head = "apiVersion: scantling.dev/v1alpha1\nkind: ImageRecipe\nabout: a\n";
        Recipe::read(format!("{head}{fields}").as_bytes()).unwrap()
    }

    /// An archive as packages have it: kind, path, and text or target.
    fn packed(entries: &[(EntryType, &str, &str)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (kind, path, text) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o4755);
            header.set_uid(0);
            header.set_gid(0);
            header.set_size(0);
            // As it stands, so that a path may lead out.
            header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            match kind {
                EntryType::Regular => header.set_size(text.len() as u64),
                EntryType::Symlink | EntryType::Link => header.set_link_name_literal(text).unwrap(),
                _ => {}
            }
            header.set_cksum();
            let data = if *kind == EntryType::Regular { text.as_bytes() } else { b"" };
            builder.append(&header, data).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn unpacked(fields: &str, entries: &[(EntryType, &str, &str)]) -> Result<Vec<String>, ImagesError> {
        let mut tree = Tree::new(Cursor::new(Vec::new()));
        archive(&mut tree, &recipe(fields), &pin(), packed(entries).as_slice())?;
        Ok(tree.all().map(|(path, entry)| format!("{path} {:o} {}", entry.mode, tree_kind(entry))).collect())
    }

    fn tree_kind(entry: &Entry) -> String {
        match &entry.node {
            Node::Folder => "folder".to_owned(),
            Node::File { size, .. } => format!("file {size}"),
            Node::Link(target) => format!("-> {target}"),
        }
    }

    #[test]
    fn packages_are_unpacked_into_merged_folders() {
        let entries = [
            (EntryType::Directory, "./", ""),
            (EntryType::Directory, "./bin/", ""),
            (EntryType::Regular, "./bin/tool", "program"),
            (EntryType::Link, "./usr/bin/same", "./bin/tool"),
            (EntryType::Symlink, "./sbin/tool", "../bin/tool"),
            (EntryType::Regular, "./usr/share/man/tool.1", "page"),
            (EntryType::Regular, "./usr/share/doc/tool/copyright", "law"),
            (EntryType::Regular, "./usr/share/doc/tool/NEWS", "news"),
        ];
        let left = "leaveOut: [usr/share/man/, usr/share/doc/]\nkeep: [usr/share/doc/*/copyright]\n";
        assert_eq!(
            unpacked(left, &entries).unwrap(),
            [
                "usr/bin 755 folder",
                "usr/bin/same 755 file 7",
                "usr/bin/tool 755 file 7",
                "usr/sbin/tool 777 -> ../bin/tool",
                "usr/share/doc/tool/copyright 755 file 3",
            ]
        );
        let only = "only: [usr/bin/*]\n";
        assert_eq!(unpacked(only, &entries).unwrap().len(), 2);
    }

    #[test]
    fn what_cannot_go_into_an_image_is_refused() {
        let check = |entry: (EntryType, &str, &str), expected: &str| {
            let error = unpacked("", &[entry]).unwrap_err().to_string();
            assert!(error.starts_with("tool 1:2.0-1: ") && error.contains(expected), "{error}");
        };
        check((EntryType::Regular, "./../etc/passwd", "x"), "leads out of the image");
        check((EntryType::Link, "./a", "./b"), "hard link to what is not in the image");
        check((EntryType::Char, "./dev/null", ""), "neither file, folder nor link");
    }

    #[test]
    fn the_list_of_packages_holds_the_packages_own_words() {
        let control = "Package: tool\nVersion: 1:2.0-1\nDescription: a\n long\n";
        let expected =
            "Package: tool\nStatus: install ok installed\nVersion: 1:2.0-1\nDescription: a\n long\n";
        assert_eq!(stanza(control, &pin()).unwrap(), expected);
        assert!(stanza("Package: tool\nVersion: 2\n", &pin()).is_err());
    }
}
