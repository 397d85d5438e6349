//! Locks, as they are read in a terminal.

use std::fmt::Write as _;

use scantling_finding::Finding;
use scantling_release::{Lock, Release};

use crate::style::{BAD, FAINT, GOOD, STRONG, Screen, bytes, count, last_line, paint, safe, wrap};

/// What a lock holds, and where it was written.
pub fn lock(lock: &Lock, path: &str, screen: Screen) -> String {
    let mut out = String::new();
    for image in &lock.images {
        let _ = writeln!(out, "{}", paint(STRONG, &safe(image.reference.written())));
        if image.reference.digest() != Some(&image.digest) {
            let _ = writeln!(out, "  {}", paint(GOOD, image.digest.as_str()));
        }
        for platform in &image.platforms {
            let packages = platform
                .contents
                .as_ref()
                .map(|contents| format!(", {}", count(contents.packages.len(), "package")))
                .unwrap_or_default();
            let line = format!(
                "{} {} {}{packages}, found at {}",
                platform.platform,
                platform.manifest.short(),
                bytes(platform.size),
                safe(&image.found_at)
            );
            let _ = writeln!(out, "  {}", paint(FAINT, &line));
        }
    }
    if !lock.images.is_empty() {
        out.push('\n');
    }
    for build in &lock.built {
        let parts = [
            build.uri.as_ref().map(|uri| format!("from {uri}")),
            build.git_ref.as_ref().map(|git_ref| format!("at {git_ref}")),
            build.base.as_ref().map(|base| format!("upon {base}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let _ =
            writeln!(out, "{} {}", paint(STRONG, &safe(&build.output)), paint(FAINT, "built on the cluster"));
        for line in wrap(&safe(&parts.join(" ")), screen.width.saturating_sub(2)) {
            let _ = writeln!(out, "  {}", paint(FAINT, &line));
        }
    }
    if !lock.built.is_empty() {
        out.push('\n');
    }
    let built = match lock.built.len() {
        0 => String::new(),
        n => format!(", {} without a digest until the cluster has built them", count(n, "image")),
    };
    let last = format!(
        "{} {}: {}{built}",
        paint(GOOD, "written"),
        safe(path),
        count(lock.images.len(), "reference")
    );
    out + &last_line(&last, screen)
}

/// The last line when there is no lock.
pub fn refused(release: &Release, faults: &[Finding]) -> String {
    format!(
        "{} {}: {} cannot be locked, nothing was written",
        paint(BAD, "no lock for"),
        paint(STRONG, &safe(&release.title())),
        count(faults.len(), "reference")
    )
}
