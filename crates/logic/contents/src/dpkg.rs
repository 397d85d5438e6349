//! Debian packages.

/// A package that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installed {
    pub(crate) name: String,
    pub(crate) version: String,
}

/// dpkg's own list of packages.
pub(crate) const STATUS: &str = "var/lib/dpkg/status";

/// Is this a list of packages: dpkg's own, or one of the small files that images without dpkg have in its place?
pub(crate) fn is_status(path: &str) -> bool {
    path == STATUS
        || path.strip_prefix("var/lib/dpkg/status.d/").is_some_and(|file| {
            // Beside each list there is a list of checksums.
            !file.contains('/') && !file.ends_with(".md5sums")
        })
}

/// Reads the stanzas. Packages that are not installed (removed, with files left) do not count; the small files have no `Status`, and
/// all of theirs count.
pub(crate) fn parse(text: &str) -> Vec<Installed> {
    let mut found = Vec::new();
    let mut stanza = Stanza::default();
    for line in text.lines() {
        if line.trim().is_empty() {
            found.extend(std::mem::take(&mut stanza).finish());
        } else if let Some((key, value)) = line.split_once(':') {
            // Continuation lines begin with a space and so match no key.
            let value = value.trim();
            match key {
                "Package" => stanza.name = Some(value),
                "Version" => stanza.version = Some(value),
                "Status" => stanza.status = Some(value),
                _ => {}
            }
        }
    }
    found.extend(stanza.finish());
    found
}

#[derive(Default)]
struct Stanza<'a> {
    name: Option<&'a str>,
    version: Option<&'a str>,
    status: Option<&'a str>,
}

impl Stanza<'_> {
    fn finish(self) -> Option<Installed> {
        let installed =
            self.status.is_none_or(|status| status.split_whitespace().nth(2) == Some("installed"));
        match (self.name, self.version) {
            (Some(name), Some(version)) if installed && !name.is_empty() && !version.is_empty() => {
                Some(Installed { name: name.to_owned(), version: version.to_owned() })
            }
            _ => None,
        }
    }
}
