//! From what happened to what the shell is told: the one place where errors become messages and exit codes.

use std::fmt::Write as _;
use std::process::ExitCode;

use scantling_files::FilesError;
use scantling_finding::{Code, Finding, codes};
use scantling_release::LockError;
use scantling_report::findings::Texts;
use scantling_report::style::{BAD, NOTED, Screen, paint, safe};

use crate::terminal;

/// The exit code of what could not be done.
const FAILED: u8 = 3;

/// What a command that did its work has to say by its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All is well.
    Fine,
    /// Faults were found and have been shown.
    Faults,
    /// The cluster could not be asked any more; what was done until then has been shown.
    CutOff,
    /// A command that was run has this exit code.
    Other(u8),
}

impl Outcome {
    /// Faults if there are any.
    pub(crate) fn of(faults: usize) -> Self {
        if faults == 0 { Self::Fine } else { Self::Faults }
    }
}

/// Why a command did not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The command line asks for what cannot be.
    Usage,
    /// The world was in the way.
    Failed,
}

impl Failure {
    /// The command line is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, message: message.into(), hint: None }
    }

    /// Something could not be done.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { kind: Kind::Failed, message: message.into(), hint: None }
    }

    /// What it says, for whoever goes on all the same.
    pub(crate) fn into_message(self) -> String {
        self.message
    }

    /// A release that cannot be read, for commands that need one. Where only the settings do not fit it, the command is what is wrong.
    pub(crate) fn unreadable(findings: &[Finding], texts: &Texts<'_>, screen: Screen) -> Self {
        const OF_SETTINGS: [Code; 3] =
            [codes::release::REGISTRY_MISSING, codes::release::BAD_REGISTRY, codes::release::UNKNOWN_SETTING];
        let shown = scantling_report::findings::findings(findings, texts, screen);
        let shown = shown.trim_end();
        if !findings.is_empty() && findings.iter().all(|finding| OF_SETTINGS.contains(&finding.code)) {
            return Self::usage(format!("the settings do not fit the release\n\n{shown}"));
        }
        Self::failed(format!("the release cannot be read\n\n{shown}"))
    }

    /// With what to do about it.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<FilesError> for Failure {
    fn from(error: FilesError) -> Self {
        let kind = if error.is_usage() { Kind::Usage } else { Kind::Failed };
        Self { kind, message: error.to_string(), hint: error.hint() }
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        Self::failed(error.to_string()).with_hint("make the lock again with `scantling lock`")
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::failed(format!("cannot write JSON: {error}"))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::failed(error.to_string())
    }
}

/// Tells the user about a failure and the shell about the outcome.
pub(crate) fn exit_code(result: Result<Outcome, Failure>) -> ExitCode {
    match result {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Faults) => ExitCode::from(1),
        Ok(Outcome::CutOff) => ExitCode::from(FAILED),
        Ok(Outcome::Other(code)) => ExitCode::from(code),
        Err(failure) => {
            let mut text = format!("{} {}\n", paint(BAD, "error:"), failure.message);
            if let Some(hint) = &failure.hint {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{} {}", paint(NOTED, "hint:"), safe(hint));
            }
            terminal::complain(&text);
            ExitCode::from(match failure.kind {
                Kind::Usage => 2,
                Kind::Failed => FAILED,
            })
        }
    }
}
