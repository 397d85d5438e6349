//! Why a folder is no example.

use scantling_release::Unreadable;
use scantling_yaml::{DecodeError, YamlError};

use super::SCENARIO_FILE;

/// Why a folder is not an example that can be rehearsed.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// There is no `rehearsal.yaml`.
    #[error("{SCENARIO_FILE} is not in this folder: it is not an example")]
    NotAnExample,
    /// A file that another names is not there.
    #[error("{from}: {path} is not in the example")]
    MissingFile {
        /// The file that names it.
        from: String,
        /// What is missing, relative to the example's folder.
        path: String,
    },
    /// A file is not YAML.
    #[error("{file}:{}:{}: {}", source.line, source.column, source.message)]
    Yaml {
        /// The file, relative to the example's folder.
        file: String,
        /// Where and why.
        source: Box<YamlError>,
    },
    /// A file does not have the form it should.
    #[error("{file}:{line}:{column}: {source}")]
    Form {
        /// The file, relative to the example's folder.
        file: String,
        /// 1-based.
        line: u32,
        /// 1-based, in characters.
        column: u32,
        /// What is wrong.
        source: Box<DecodeError>,
    },
    /// A file has the right form but says something impossible.
    #[error("{file}: {what}")]
    Meaning {
        /// The file, relative to the example's folder.
        file: String,
        /// What is wrong and how to mend it.
        what: String,
    },
    /// A release can't be read.
    #[error("{folder}: {source}")]
    Release {
        /// Its folder, relative to the example's.
        folder: String,
        /// Why.
        source: Unreadable,
    },
}
