//! Python distributions.

/// Metadata of one distribution, by the core metadata specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Distribution {
    pub(crate) name: String,
    pub(crate) version: String,
}

/// Is this the metadata file of a distribution? `*.dist-info/METADATA`, `*.egg-info/PKG-INFO`, a file `*.egg-info`, or
/// `EGG-INFO/PKG-INFO` in an egg.
pub(crate) fn is_metadata(path: &str) -> bool {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = folder.rsplit('/').next().unwrap_or(folder);
    match file {
        "METADATA" => folder.ends_with(".dist-info"),
        "PKG-INFO" => folder.ends_with(".egg-info") || folder == "EGG-INFO",
        _ => file.ends_with(".egg-info"),
    }
}

/// Reads `Name` and `Version` from the header, which ends at the first empty line; the description behind it can be long.
pub(crate) fn parse(text: &str) -> Result<Distribution, &'static str> {
    let (mut name, mut version) = (None, None);
    for line in text.lines() {
        if line.is_empty() {
            break;
        }
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = || Some(value.trim().to_owned()).filter(|value| !value.is_empty());
        // A continuation line begins with a space, so it is no key.
        if key.eq_ignore_ascii_case("Name") && name.is_none() {
            name = value();
        } else if key.eq_ignore_ascii_case("Version") && version.is_none() {
            version = value();
        }
    }
    Ok(Distribution {
        name: name.ok_or("the metadata has no Name")?,
        version: version.ok_or("the metadata has no Version")?,
    })
}

/// Name and version from the folder's name (`NAME-VERSION.dist-info`), for metadata that is a hard link into another layer's file.
pub(crate) fn from_path(path: &str) -> Option<Distribution> {
    let folder = path.strip_suffix("/METADATA")?.rsplit('/').next()?;
    let (name, version) = folder.strip_suffix(".dist-info")?.rsplit_once('-')?;
    (!name.is_empty() && !version.is_empty())
        .then(|| Distribution { name: name.to_owned(), version: version.to_owned() })
}
