//! The seeds, and inputs that once made a target fail, tried without the fuzzer.

use std::fs;
use std::path::Path;

use scantling_fuzz::{TARGETS, target};

#[test]
fn every_seed_passes_its_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    for (name, run) in TARGETS {
        let mut tried = 0;
        for entry in fs::read_dir(folder.join(name)).unwrap() {
            let path = entry.unwrap().path();
            // Named before it is tried: a panic says what, not where from.
            println!("{}", path.display());
            run(&fs::read(&path).unwrap());
            tried += 1;
        }
        assert!(tried > 0, "{name} has no seed");
    }
}

#[test]
fn every_folder_of_seeds_belongs_to_a_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(target(&name).is_some(), "seeds/{name}");
    }
}
