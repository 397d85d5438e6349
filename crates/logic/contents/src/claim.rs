//! Claims about versions, held against contents.
//!
//! # The rule of versions
//! A claim is a prefix by components: "2.7" holds for 2.7.0 and 2.7.12, "v3.8" for 3.8.13, "2.4.1" does not hold for 2.4, and "2.7" does
//! not hold for 2.70. A leading `v` and a local part (`+cpu`) that the claim does not write do not matter. Components are compared as
//! numbers where they are numbers, so that "3.08" is "3.8".
//!
//! # The rule of names
//! Names are compared [`normalised`]. Catalogues write products, not packages; the names that differ are in [`ALIASES`]. A name that no
//! package has is looked for among the runtimes that files give away, and then in the environment: `NAME_VERSION`.
//!
//! # Evidence of interpreters
//! "Python" is normally no package of the image's package manager. It holds by `PYTHON_VERSION` of the configuration as long as a
//! library folder `lib/pythonX.Y` does not contradict it, else by those folders alone. A folder tells two components; a claim that asks
//! for more is not decided by it.

use serde::{Deserialize, Serialize};

use crate::package::{Contents, normalised};
use crate::runtime::Runtime;

/// Display names that differ from the package's, normalised: (display name, packages, in order of preference).
const ALIASES: &[(&str, &[&str])] = &[
    ("pytorch", &["torch", "pytorch"]),
    ("jupyter-notebook", &["notebook"]),
    ("jupyter-lab", &["jupyterlab"]),
    ("sklearn", &["scikit-learn"]),
    ("opencv", &["opencv-python", "opencv-python-headless", "opencv"]),
    ("tensorflow", &["tensorflow", "tensorflow-gpu", "tensorflow-cpu", "intel-tensorflow"]),
];

/// What somebody says of an image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Claim {
    /// The name as it is shown, "TensorFlow".
    pub name: String,
    /// The version as it is shown, "2.7" or "v3.8".
    pub version: String,
}

/// What the contents say to a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "verdict")]
pub enum ClaimVerdict {
    /// It is so.
    Holds,
    /// Another version is there.
    Differs {
        /// The version found.
        found: String,
    },
    /// The contents have no such thing, or nothing that tells its version.
    Absent,
}

/// Holds a claim against the contents of an image; the rules are in this module's documentation.
pub fn check_claim(contents: &Contents, claim: &Claim) -> ClaimVerdict {
    match evidence(contents, &claim.name) {
        Some(Evidence { version, exact: true }) => decide(&version, &claim.version),
        Some(Evidence { version, exact: false }) => {
            let (found, claimed) = (components(&version), components(&claim.version));
            if claimed.len() > found.len() && claimed.starts_with(&found) {
                ClaimVerdict::Absent
            } else {
                decide(&version, &claim.version)
            }
        }
        None => ClaimVerdict::Absent,
    }
}

/// The whole version of what is shown under this name, from the evidence that [`check_claim`] uses.
pub fn shown_version(contents: &Contents, name: &str) -> Option<String> {
    evidence(contents, name).map(|evidence| evidence.version)
}

fn decide(found: &str, claimed: &str) -> ClaimVerdict {
    if is_prefix(claimed, found) {
        ClaimVerdict::Holds
    } else {
        ClaimVerdict::Differs { found: found.to_owned() }
    }
}

struct Evidence {
    version: String,
    exact: bool,
}

impl From<&Runtime> for Evidence {
    fn from(runtime: &Runtime) -> Self {
        Self { version: runtime.version.clone(), exact: runtime.exact }
    }
}

/// The version of what is shown under this name, from the strongest evidence.
fn evidence(contents: &Contents, shown: &str) -> Option<Evidence> {
    let name = normalised(&shown.replace(' ', "-"));
    let aliases = ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, packages)| *packages);
    let packaged = match aliases {
        Some(packages) => packages.iter().find_map(|package| contents.version_of(package)),
        None => contents.version_of(&name),
    };
    if let Some(version) = packaged {
        return Some(Evidence { version: version.to_owned(), exact: true });
    }
    let runtimes: Vec<&Runtime> = contents.runtimes.iter().filter(|runtime| runtime.name == name).collect();
    let variable = format!("{}_VERSION", name.replace('-', "_").to_uppercase());
    let stated = contents.env.get(&variable).filter(|version| !version.trim().is_empty());
    if let Some(version) = stated {
        let agrees = |runtime: &&Runtime| is_prefix(&runtime.version, version);
        if runtimes.is_empty() || runtimes.iter().any(agrees) {
            return Some(Evidence { version: version.trim().to_owned(), exact: true });
        }
    }
    // The newest, where there are several: the older one is the system's own.
    runtimes.into_iter().max_by_key(|runtime| components(&runtime.version)).map(Evidence::from)
}

/// Does the claim hold for this version?
fn is_prefix(claimed: &str, found: &str) -> bool {
    let claimed_components = components(claimed);
    if claimed_components.is_empty() {
        return false;
    }
    // Debian's epoch and revision, and Python's local part, count only if the claim writes them.
    let bare = if claimed.contains('+') { found } else { found.split('+').next().unwrap_or(found) };
    let bare = if claimed.contains(':') { bare } else { bare.split_once(':').map_or(bare, |(_, rest)| rest) };
    components(bare).starts_with(&claimed_components)
}

/// One part of a version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Component {
    Text(String),
    /// Without leading zeros; the number of digits comes first, so that the order is that of numbers of any size.
    Number(usize, String),
}

/// Cuts a version at its separators and where digits meet letters ("1rc2" is three parts); the separators do not matter.
fn components(version: &str) -> Vec<Component> {
    let version = version.trim().to_lowercase();
    let version = match version.strip_prefix('v') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => rest,
        _ => &version,
    };
    let mut parts = Vec::new();
    for piece in version.split(|c: char| !c.is_alphanumeric()) {
        let mut rest = piece;
        while let Some(first) = rest.chars().next() {
            let numeric = first.is_ascii_digit();
            let end = rest.find(|c: char| c.is_ascii_digit() != numeric).unwrap_or(rest.len());
            let (part, behind) = rest.split_at(end);
            rest = behind;
            parts.push(if numeric {
                let digits = part.trim_start_matches('0');
                Component::Number(digits.len(), digits.to_owned())
            } else {
                Component::Text(part.to_owned())
            });
        }
    }
    parts
}
