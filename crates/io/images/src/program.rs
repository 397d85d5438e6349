//! Running the programs that know packages.

use std::io;
use std::process::{Child, Command};

use crate::error::ImagesError;

/// Most bytes of what a program says that go into an error: pip can list thousands of versions.
const SAID_MAX: usize = 2000;

/// The programs, and how each is installed.
const PROGRAMS: [(&str, &str); 5] = [
    ("apt-get", "they are made on Debian"),
    ("apt-cache", "they are made on Debian"),
    ("dpkg-deb", "they are made on Debian"),
    ("python3", "apt-get install python3"),
    ("pip", "apt-get install python3-pip"),
];

/// The error of a program that is not there.
pub(crate) fn missing(program: &str) -> ImagesError {
    let (program, how) = PROGRAMS
        .iter()
        .find(|(known, _)| *known == program)
        .copied()
        .unwrap_or(("a program", "see its documentation"));
    ImagesError::Missing { program, how }
}

/// Starts a program.
pub(crate) fn started(command: &mut Command, program: &str) -> Result<Child, ImagesError> {
    command.spawn().map_err(|error| failed_to_start(&error, program))
}

fn failed_to_start(error: &io::Error, program: &str) -> ImagesError {
    match error.kind() {
        io::ErrorKind::NotFound => missing(program),
        _ => ImagesError::Program { command: program.to_owned(), problem: error.to_string() },
    }
}

/// What a program that succeeds prints.
pub(crate) fn captured(command: &mut Command, program: &str) -> Result<String, ImagesError> {
    attempt(command, program)?
        .map_err(|problem| ImagesError::Program { command: program.to_owned(), problem })
}

/// What a program prints: its output, or its words about why it failed.
pub(crate) fn attempt(command: &mut Command, program: &str) -> Result<Result<String, String>, ImagesError> {
    let output = command.output().map_err(|error| failed_to_start(&error, program))?;
    if output.status.success() {
        return Ok(Ok(String::from_utf8_lossy(&output.stdout).into_owned()));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    // The last words are the ones that say why.
    let start = said.char_indices().rev().nth(SAID_MAX).map_or(0, |(at, _)| at);
    Ok(Err(said.get(start..).unwrap_or(said).to_owned()))
}
