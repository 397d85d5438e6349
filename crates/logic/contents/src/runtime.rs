//! Interpreters and toolkits that files give away.

use serde::{Deserialize, Serialize};

/// Something that is installed without being a package, with as much of its version as the evidence has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Runtime {
    /// `python` or `cuda`.
    pub name: String,
    /// Its version; from a folder's name only the first components.
    pub version: String,
    /// Is the version whole? A folder's name leaves components out.
    pub exact: bool,
    /// The evidence: a folder or file, from the root of the image.
    pub path: String,
}

/// What the name of a path says: `…/lib/python3.8/…` and `usr/local/cuda-11.0/…`.
pub(crate) fn from_path(path: &str) -> Option<Runtime> {
    python(path).or_else(|| cuda_folder(path))
}

fn python(path: &str) -> Option<Runtime> {
    let mut end = 0;
    let mut before = "";
    for part in path.split('/') {
        end += part.len();
        if matches!(before, "lib" | "lib64")
            && let Some(version) = part.strip_prefix("python")
            && is_dotted(version)
        {
            let path = path.get(..end)?.to_owned();
            return Some(Runtime {
                name: "python".to_owned(),
                version: version.to_owned(),
                exact: false,
                path,
            });
        }
        before = part;
        end += 1;
    }
    None
}

fn cuda_folder(path: &str) -> Option<Runtime> {
    let rest = path.strip_prefix("usr/local/cuda-")?;
    let version = rest.split('/').next()?;
    is_dotted(version).then(|| Runtime {
        name: "cuda".to_owned(),
        version: version.to_owned(),
        exact: false,
        path: format!("usr/local/cuda-{version}"),
    })
}

/// At least two numbers joined by dots.
fn is_dotted(version: &str) -> bool {
    version.contains('.')
        && version.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}
