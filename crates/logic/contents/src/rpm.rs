//! RPM databases: recognised, so that their absence from the result is not silent.

/// The form of an rpm database, if the path is one.
pub(crate) fn database(path: &str) -> Option<&'static str> {
    let file = ["var/lib/rpm/", "usr/lib/sysimage/rpm/", "usr/share/rpm/"]
        .iter()
        .find_map(|folder| path.strip_prefix(folder))?;
    match file {
        "Packages" => Some("Berkeley DB (Packages)"),
        "rpmdb.sqlite" => Some("SQLite (rpmdb.sqlite)"),
        "Packages.db" => Some("NDB (Packages.db)"),
        _ => None,
    }
}
