//! Operating system, architecture and variant, and which image fits which node.

use std::fmt;

use crate::serde_text::as_text;

/// A platform as an OCI index or a node names it, normalised as containerd does (`x86_64` → `amd64`, `aarch64` →
/// `arm64`, `armhf` → `arm/v7`, `arm` → `arm/v7`, `arm64/v8` → `arm64`, `amd64/v1` → `amd64`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Platform {
    os: String,
    architecture: String,
    variant: Option<String>,
}

/// Why a text is no platform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlatformError {
    /// Not two or three parts.
    #[error("`{text}` is no platform: write OS/ARCHITECTURE or OS/ARCHITECTURE/VARIANT, such as linux/amd64")]
    Parts {
        /// What was written, at most 80 characters.
        text: String,
    },
    /// A part is empty or has a character that does not belong there.
    #[error("`{part}` in a platform must be 1 to 64 letters, digits, `.`, `_` or `-`")]
    Part {
        /// The part, at most 80 characters.
        part: String,
    },
}

/// Longest part that is accepted; the longest known name (`loongarch64`) has eleven characters.
const PART_MAX: usize = 64;

impl Platform {
    /// Makes a platform from the fields of an index entry or of a node (`nodeInfo.operatingSystem`, `architecture`).
    /// An empty variant is no variant.
    pub fn new(os: &str, architecture: &str, variant: Option<&str>) -> Result<Self, PlatformError> {
        let variant = variant.filter(|variant| !variant.is_empty());
        for part in [os, architecture].into_iter().chain(variant) {
            let fits = (1..=PART_MAX).contains(&part.len())
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
            if !fits {
                return Err(PlatformError::Part { part: part.chars().take(80).collect() });
            }
        }
        let os = match os.to_ascii_lowercase() {
            os if os == "macos" => "darwin".to_owned(),
            os => os,
        };
        let (architecture, variant) =
            normalised(&architecture.to_ascii_lowercase(), variant.unwrap_or_default().to_ascii_lowercase());
        Ok(Self { os, architecture, variant: Some(variant).filter(|variant| !variant.is_empty()) })
    }

    /// Reads `os/architecture` or `os/architecture/variant`.
    pub fn parse(text: &str) -> Result<Self, PlatformError> {
        let mut parts = text.split('/');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(os), Some(architecture), None, _) => Self::new(os, architecture, None),
            (Some(os), Some(architecture), Some(variant), None) if !variant.is_empty() => {
                Self::new(os, architecture, Some(variant))
            }
            _ => Err(PlatformError::Parts { text: text.chars().take(80).collect() }),
        }
    }

    /// Linux on 64-bit x86, the platform of most clusters.
    pub fn linux_amd64() -> Self {
        Self { os: "linux".to_owned(), architecture: "amd64".to_owned(), variant: None }
    }

    /// The operating system, such as `linux`.
    pub fn os(&self) -> &str {
        &self.os
    }

    /// The architecture, such as `amd64`.
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// The variant, such as `v7`; absent where it is the architecture's base (`amd64/v1`, `arm64/v8`).
    pub fn variant(&self) -> Option<&str> {
        self.variant.as_deref()
    }

    /// True if an image of this platform runs on a node of the wanted one: same system, same architecture, and a
    /// variant that the node's includes (`arm/v6` runs on `arm/v7`, `amd64` on `amd64/v3`, not the other way).
    ///
    /// Unlike containerd's own fallback, a 32-bit image is not taken for a 64-bit node (`arm/v7` on `arm64`, `386` on
    /// `amd64`): other runtimes refuse it, and many arm64 processors cannot run it.
    pub fn matches(&self, wanted: &Self) -> bool {
        self.os == wanted.os
            && self.architecture == wanted.architecture
            && match (self.level(), wanted.level()) {
                (Some(image), Some(node)) => image.included_in(node),
                _ => self.variant == wanted.variant,
            }
    }

    /// The place of the best match for a node: the highest variant that fits, the first of equals. `None` if no
    /// candidate fits.
    pub fn select<'a>(candidates: impl IntoIterator<Item = &'a Self>, wanted: &Self) -> Option<usize> {
        let mut best: Option<(usize, Option<Level>)> = None;
        for (place, candidate) in candidates.into_iter().enumerate() {
            if candidate.matches(wanted) && best.is_none_or(|(_, level)| candidate.level() > level) {
                best = Some((place, candidate.level()));
            }
        }
        best.map(|(place, _)| place)
    }

    /// The variant as a level that can be compared, for architectures whose variants build on each other.
    fn level(&self) -> Option<Level> {
        let base = match self.architecture.as_str() {
            "amd64" => "v1",
            "arm64" => "v8",
            "arm" => "v7",
            _ => return None,
        };
        let text = self.variant.as_deref().unwrap_or(base).strip_prefix('v')?;
        let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
        Some(Level { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Level {
    major: u16,
    minor: u16,
}

impl Level {
    /// Armv9.x includes Armv8.(x+5), as Arm's architecture manual says; below that a higher number includes all lower.
    fn included_in(self, node: Self) -> bool {
        if self.major == 8 && node.major == 9 {
            return self.minor <= node.minor.saturating_add(5);
        }
        self <= node
    }
}

/// containerd's `normalizeArch` (`platforms/database.go`).
fn normalised(architecture: &str, variant: String) -> (String, String) {
    let (architecture, variant) = match architecture {
        "i386" => ("386", String::new()),
        "x86_64" | "x86-64" | "amd64" => ("amd64", if variant == "v1" { String::new() } else { variant }),
        "aarch64" | "arm64" => match variant.as_str() {
            "8" | "v8" | "v8.0" => ("arm64", String::new()),
            "9" | "9.0" | "v9.0" => ("arm64", "v9".to_owned()),
            _ => ("arm64", variant),
        },
        "armhf" => ("arm", "v7".to_owned()),
        "armel" => ("arm", "v6".to_owned()),
        "arm" => match variant.as_str() {
            "" | "7" => ("arm", "v7".to_owned()),
            "5" | "6" | "8" => ("arm", format!("v{variant}")),
            _ => ("arm", variant),
        },
        other => (other, variant),
    };
    (architecture.to_owned(), variant)
}

impl fmt::Display for Platform {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.variant {
            Some(variant) => formatter.pad(&format!("{}/{}/{variant}", self.os, self.architecture)),
            None => formatter.pad(&format!("{}/{}", self.os, self.architecture)),
        }
    }
}

as_text!(Platform, PlatformError, "a platform such as linux/amd64");

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn platform(text: &str) -> Platform {
        Platform::parse(text).unwrap()
    }

    #[test]
    fn normalised_text() {
        let check = |text: &str, normal: &str| assert_eq!(platform(text).to_string(), normal, "{text}");
        check("linux/amd64", "linux/amd64");
        check("linux/x86_64", "linux/amd64");
        check("Linux/AMD64/v1", "linux/amd64");
        check("linux/amd64/v3", "linux/amd64/v3");
        check("linux/aarch64", "linux/arm64");
        check("linux/arm64/v8", "linux/arm64");
        check("linux/arm", "linux/arm/v7");
        check("linux/arm/6", "linux/arm/v6");
        check("linux/armhf", "linux/arm/v7");
        check("linux/armel", "linux/arm/v6");
        check("linux/i386", "linux/386");
        check("linux/ppc64le", "linux/ppc64le");
        check("macos/arm64", "darwin/arm64");
    }

    #[test]
    fn what_is_no_platform_says_why() {
        for text in ["", "linux", "linux/amd64/v1/x", "linux/amd64/"] {
            assert!(matches!(Platform::parse(text), Err(PlatformError::Parts { .. })), "{text}");
        }
        for text in ["/amd64", "linux/", "linux/am d64", "linux/é"] {
            assert!(matches!(Platform::parse(text), Err(PlatformError::Part { .. })), "{text}");
        }
    }

    #[test]
    fn image_on_node() {
        let check = |image: &str, node: &str, expected: bool| {
            assert_eq!(platform(image).matches(&platform(node)), expected, "{image} on {node}");
        };
        check("linux/amd64", "linux/amd64", true);
        check("linux/amd64", "linux/amd64/v3", true);
        check("linux/amd64/v3", "linux/amd64", false);
        check("linux/amd64/v2", "linux/amd64/v3", true);
        check("linux/arm/v6", "linux/arm", true);
        check("linux/arm/v8", "linux/arm", false);
        check("linux/arm64/v8", "linux/arm64", true);
        check("linux/arm64", "linux/arm64/v8", true);
        check("linux/arm64/v8.5", "linux/arm64/v9", true);
        check("linux/arm64/v8.6", "linux/arm64/v9", false);
        check("linux/arm64/v9", "linux/arm64/v8.9", false);
        check("linux/arm/v7", "linux/arm64", false);
        check("linux/386", "linux/amd64", false);
        check("windows/amd64", "linux/amd64", false);
        check("linux/s390x", "linux/s390x", true);
        check("linux/mips64/hardfloat", "linux/mips64", false);
    }

    // C019, oauth2-proxy/oauth2-proxy#2218: an index with two 32-bit arm entries and no arm64.
    #[test]
    fn arm_entries_do_not_serve_arm64() {
        let index = ["linux/amd64", "linux/arm/v6", "linux/arm/v7", "linux/ppc64le"].map(platform);
        assert_eq!(Platform::select(&index, &platform("linux/amd64")), Some(0));
        assert_eq!(Platform::select(&index, &platform("linux/arm64")), None);
        assert_eq!(Platform::select(&index, &platform("linux/arm/v7")), Some(2));
        assert_eq!(Platform::select(&index, &platform("linux/arm/v6")), Some(1));
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_normal_form_is_stable(text in "[a-zA-Z0-9/._é-]{0,30}") {
            if let Ok(parsed) = Platform::parse(&text) {
                prop_assert_eq!(platform(&parsed.to_string()), parsed.clone());
                prop_assert!(parsed.matches(&parsed));
            }
        }
    }
}
