//! Wheels into a tree, as the specification of binary distributions says, and the same on every machine: no bytecode, the image's
//! own interpreter in scripts, a sorted `RECORD`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read, Seek, Write};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use camino::Utf8Path;
use scantling_image::{Digest, DigestHasher};
use zip::ZipArchive;

use crate::error::ImagesError;
use crate::lock::PythonPin;
use crate::tree::Tree;

/// The folder that Python packages go into; `PYTHONPATH` leads there.
pub(crate) const SITE: &str = "opt/app";

/// The interpreter that scripts begin with.
const INTERPRETER: &str = "#!/usr/bin/python3";

/// Most bytes of one metadata file of a wheel.
const METADATA_MAX: u64 = 16 << 20;

/// Most bytes of the first line of a script that is looked at.
const SHEBANG_MAX: u64 = 256;

const FILE: (u32, u64, u64) = (0o644, 0, 0);
const PROGRAM: (u32, u64, u64) = (0o755, 0, 0);

/// Installs a wheel.
pub(crate) fn install<S: Read + Write + Seek>(
    tree: &mut Tree<S>,
    pin: &PythonPin,
    file: &Utf8Path,
) -> Result<(), ImagesError> {
    let wheel = std::fs::File::open(file).map_err(ImagesError::file(file))?;
    let package = format!("{} {}", pin.name, pin.version);
    Installation::new(tree, package, io::BufReader::new(wheel))?.run()
}

struct Installation<'a, S, R> {
    tree: &'a mut Tree<S>,
    package: String,
    wheel: ZipArchive<R>,
    /// `NAME-VERSION`, as the wheel writes it.
    stem: String,
    /// Hash and size of every installed file, by its path from the site's folder.
    record: BTreeMap<String, (Digest, u64)>,
}

impl<'a, S: Read + Write + Seek, R: Read + Seek> Installation<'a, S, R> {
    fn new(tree: &'a mut Tree<S>, package: String, wheel: R) -> Result<Self, ImagesError> {
        let refused = |path: &str, problem: String| ImagesError::Entry {
            package: package.clone(),
            path: path.to_owned(),
            problem,
        };
        let wheel = ZipArchive::new(wheel).map_err(|error| refused("", format!("is no wheel: {error}")))?;
        let names: Vec<String> =
            wheel.file_names().filter_map(|name| Some(name.ok()?.into_owned())).collect();
        let stems: Vec<&str> = names
            .iter()
            .filter_map(|name| name.strip_suffix(".dist-info/WHEEL"))
            .filter(|stem| !stem.contains('/'))
            .collect();
        let [stem] = stems.as_slice() else {
            return Err(refused(".dist-info/WHEEL", format!("is there {} times", stems.len())));
        };
        let stem = (*stem).to_owned();
        Ok(Self { tree, package, wheel, stem, record: BTreeMap::new() })
    }

    fn run(mut self) -> Result<(), ImagesError> {
        let information = format!("{}.dist-info", self.stem);
        let record = format!("{information}/RECORD");
        for at in 0..self.wheel.len() {
            let unreadable = |error: zip::result::ZipError| ImagesError::Entry {
                package: self.package.clone(),
                path: String::new(),
                problem: format!("cannot be read: {error}"),
            };
            let mut entry = self.wheel.by_index(at).map_err(unreadable)?;
            let name = entry.name().map_err(unreadable)?.into_owned();
            let refused = |problem: &str| ImagesError::Entry {
                package: self.package.clone(),
                path: name.clone(),
                problem: problem.to_owned(),
            };
            if entry.is_dir() || name.starts_with(&record) || is_bytecode(&name) {
                continue;
            }
            if name.split('/').any(|part| matches!(part, "" | "." | "..")) || name.contains('\\') {
                return Err(refused("leads out of the image"));
            }
            let Some(place) = place(&self.stem, &name) else {
                return Err(refused("belongs nowhere that is known"));
            };
            let is_program = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
            let owner = if is_program || place.is_script { PROGRAM } else { FILE };
            let mut start = Vec::new();
            let broken = |error: io::Error| ImagesError::Entry {
                package: self.package.clone(),
                path: name.clone(),
                problem: format!("cannot be unpacked: {error}"),
            };
            if place.is_script {
                entry.by_ref().take(SHEBANG_MAX).read_to_end(&mut start).map_err(broken)?;
                start = with_interpreter(start);
            }
            let mut data = Hashed { inner: start.as_slice().chain(entry), hasher: Digest::hasher() };
            let path = format!("{SITE}/{}", place.path);
            let size = self.tree.put_file(&path, owner, &mut data).map_err(broken)?;
            self.record.insert(place.path, (data.hasher.finish(), size));
        }
        let points = self.metadata(&format!("{information}/entry_points.txt"))?.unwrap_or_default();
        for (name, target) in scripts(&points) {
            let script = script(&target).ok_or_else(|| ImagesError::Entry {
                package: self.package.clone(),
                path: format!("{information}/entry_points.txt"),
                problem: format!("names no function for {name}: {target:?}"),
            })?;
            self.put(&format!("bin/{name}"), PROGRAM, &script)?;
        }
        self.put(&format!("{information}/INSTALLER"), FILE, "scantling\n")?;
        let mut text = String::new();
        for (path, (digest, size)) in &self.record {
            let _ = writeln!(text, "{},sha256={},{size}", quoted(path), encoded(digest));
        }
        let _ = writeln!(text, "{},,", quoted(&record));
        self.tree
            .put_file(&format!("{SITE}/{record}"), FILE, text.as_bytes())
            .map_err(|error| self.failed(&record, &error))?;
        Ok(())
    }

    fn put(&mut self, path: &str, owner: (u32, u64, u64), text: &str) -> Result<(), ImagesError> {
        self.tree
            .put_file(&format!("{SITE}/{path}"), owner, text.as_bytes())
            .map_err(|error| self.failed(path, &error))?;
        self.record.insert(path.to_owned(), (Digest::of(text.as_bytes()), text.len() as u64));
        Ok(())
    }

    fn failed(&self, path: &str, error: &io::Error) -> ImagesError {
        ImagesError::Entry {
            package: self.package.clone(),
            path: path.to_owned(),
            problem: format!("cannot be written: {error}"),
        }
    }

    fn metadata(&mut self, name: &str) -> Result<Option<String>, ImagesError> {
        let Ok(entry) = self.wheel.by_name(name) else { return Ok(None) };
        let mut text = String::new();
        let read = entry.take(METADATA_MAX).read_to_string(&mut text);
        read.map(|_| Some(text)).map_err(|error| self.failed(name, &error))
    }
}

/// Bytecode names the time of its source; Python makes its own.
fn is_bytecode(name: &str) -> bool {
    Utf8Path::new(name).extension() == Some("pyc")
}

/// Where a file of a wheel goes, from the site's folder.
struct Place {
    path: String,
    is_script: bool,
}

fn place(stem: &str, name: &str) -> Option<Place> {
    let plain = |path: String| Some(Place { path, is_script: false });
    let Some(rest) = name.strip_prefix(stem).and_then(|rest| rest.strip_prefix(".data/")) else {
        return plain(name.to_owned());
    };
    let (scheme, path) = rest.split_once('/')?;
    match scheme {
        "purelib" | "platlib" | "data" => plain(path.to_owned()),
        "scripts" => Some(Place { path: format!("bin/{path}"), is_script: true }),
        "headers" => {
            let project = stem.split('-').next().unwrap_or(stem);
            plain(format!("include/{project}/{path}"))
        }
        _ => None,
    }
}

/// A script of a wheel names its interpreter `#!python`, to be replaced.
fn with_interpreter(start: Vec<u8>) -> Vec<u8> {
    let Some(rest) = start.strip_prefix(b"#!python") else { return start };
    let rest = rest.strip_prefix(b"w").unwrap_or(rest);
    [INTERPRETER.as_bytes(), rest].concat()
}

/// The scripts of `entry_points.txt`: name → `module:function`.
fn scripts(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut is_wanted = false;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_wanted = matches!(section.trim(), "console_scripts" | "gui_scripts");
        } else if is_wanted
            && !line.starts_with(['#', ';'])
            && let Some((name, target)) = line.split_once('=')
            && !name.contains('/')
        {
            found.insert(name.trim().to_owned(), target.trim().to_owned());
        }
    }
    found
}

/// The text of a script that calls `module:function`.
fn script(target: &str) -> Option<String> {
    let target = target.split('[').next().unwrap_or(target).trim();
    let (module, function) = target.split_once(':')?;
    let (module, function) = (module.trim(), function.trim());
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !module.split('.').chain(function.split('.')).all(is_word) {
        return None;
    }
    let first = function.split('.').next().unwrap_or(function);
    Some(format!(
        "{INTERPRETER}\nimport sys\n\nfrom {module} import {first}\n\nif __name__ == \"__main__\":\n    sys.exit({function}())\n"
    ))
}

fn quoted(path: &str) -> String {
    if path.contains([',', '"']) { format!("\"{}\"", path.replace('"', "\"\"")) } else { path.to_owned() }
}

/// A digest as `RECORD` writes it.
fn encoded(digest: &Digest) -> String {
    let hex = digest.hex();
    let bytes: Vec<u8> = (0..hex.len())
        .step_by(2)
        .filter_map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
        .collect();
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

struct Hashed<R> {
    inner: R,
    hasher: DigestHasher,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(buffer.get(..read).unwrap_or(buffer));
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Cursor;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn wheel(files: &[(&str, &str, u32)]) -> Cursor<Vec<u8>> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (path, text, mode) in files {
            writer.start_file(*path, SimpleFileOptions::default().unix_permissions(*mode)).unwrap();
            writer.write_all(text.as_bytes()).unwrap();
        }
        writer.finish().unwrap()
    }

    fn installed(files: &[(&str, &str, u32)]) -> Result<Tree<Cursor<Vec<u8>>>, ImagesError> {
        let mut tree = Tree::new(Cursor::new(Vec::new()));
        Installation::new(&mut tree, "my-tool 1.0".to_owned(), wheel(files))?.run()?;
        Ok(tree)
    }

    const FILES: [(&str, &str, u32); 8] = [
        ("my_tool/__init__.py", "x = 1\n", 0o644),
        ("my_tool/run.sh", "#!/bin/sh\n", 0o755),
        ("my_tool/__pycache__/old.pyc", "bytecode", 0o644),
        ("my_tool-1.0.data/scripts/other", "#!python\nprint(1)\n", 0o644),
        ("my_tool-1.0.data/data/share/jupyter/k.json", "{}", 0o644),
        ("my_tool-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n", 0o644),
        (
            "my_tool-1.0.dist-info/entry_points.txt",
            "[console_scripts]\nmy-tool = my_tool.cli:App.main [extra]\n[other]\nx = y:z\n",
            0o644,
        ),
        ("my_tool-1.0.dist-info/RECORD", "anything", 0o644),
    ];

    #[test]
    fn a_wheel_is_installed_as_the_specification_says() {
        let mut tree = installed(&FILES).unwrap();
        let paths: Vec<String> = tree.all().map(|(path, entry)| format!("{path} {:o}", entry.mode)).collect();
        assert_eq!(
            paths,
            [
                "opt/app/bin/my-tool 755",
                "opt/app/bin/other 755",
                "opt/app/my_tool-1.0.dist-info/INSTALLER 644",
                "opt/app/my_tool-1.0.dist-info/RECORD 644",
                "opt/app/my_tool-1.0.dist-info/WHEEL 644",
                "opt/app/my_tool-1.0.dist-info/entry_points.txt 644",
                "opt/app/my_tool/__init__.py 644",
                "opt/app/my_tool/run.sh 755",
                "opt/app/share/jupyter/k.json 644",
            ]
        );
        assert_eq!(tree.read("opt/app/bin/other").unwrap(), b"#!/usr/bin/python3\nprint(1)\n");
        let script = String::from_utf8(tree.read("opt/app/bin/my-tool").unwrap()).unwrap();
        assert_eq!(
            script,
            "#!/usr/bin/python3\nimport sys\n\nfrom my_tool.cli import App\n\nif __name__ == \"__main__\":\n    sys.exit(App.main())\n"
        );
        let record = String::from_utf8(tree.read("opt/app/my_tool-1.0.dist-info/RECORD").unwrap()).unwrap();
        let lines: Vec<&str> = record.lines().collect();
        // `x = 1` and a line end, hashed by another program.
        assert!(
            lines.contains(&"my_tool/__init__.py,sha256=nia_NpkRxFwkPGhBR7I_yeHc_PJX0pmhxjIBam_NM_Q,6"),
            "{record}"
        );
        assert_eq!(lines.last(), Some(&"my_tool-1.0.dist-info/RECORD,,"));
        assert_eq!(lines.len(), paths.len());
    }

    #[test]
    fn the_order_of_the_wheels_files_does_not_matter() {
        let mut reversed = FILES;
        reversed.reverse();
        let write = |files| installed(files).unwrap().write(Vec::new()).unwrap().0;
        assert_eq!(write(&FILES), write(&reversed));
    }

    #[test]
    fn what_is_no_wheel_is_refused() {
        let check = |files: &[(&str, &str, u32)], expected: &str| {
            let error = installed(files).err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        };
        let head = ("a-1.dist-info/WHEEL", "", 0o644);
        check(&[("a.py", "", 0o644)], "is there 0 times");
        check(&[head, ("../etc/passwd", "", 0o644)], "leads out of the image");
        check(&[head, ("a-1.data/moon/x", "", 0o644)], "belongs nowhere that is known");
        let points = ("a-1.dist-info/entry_points.txt", "[console_scripts]\na = b:c();evil\n", 0o644);
        check(&[head, points], "names no function for a");
    }
}
