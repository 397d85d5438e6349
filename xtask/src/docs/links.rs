//! Links between pages: what they lead to must be there, headings included.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// Fails with every link of a page that leads nowhere.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let mut broken = Vec::new();
    for page in pages(root)? {
        let text =
            std::fs::read_to_string(&page).with_context(|| format!("failed to read {}", page.display()))?;
        let shown = page.strip_prefix(root).unwrap_or(&page).display().to_string();
        for (line, target) in links(&text) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = match path {
                "" => page.clone(),
                path => page.parent().unwrap_or(root).join(path),
            };
            let found = file.exists()
                && (anchor.is_empty()
                    || std::fs::read_to_string(&file).is_ok_and(|text| anchors(&text).contains(anchor)));
            if !found {
                broken.push(format!("{shown}:{line}: {target}"));
            }
        }
    }
    if broken.is_empty() {
        return Ok(());
    }
    bail!("links that lead nowhere:\n  {}", broken.join("\n  "))
}

fn pages(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(root).context("failed to list the repository")? {
        let path = entry?.path();
        if is_page(&path) {
            pages.push(path);
        }
    }
    for folder in ["docs", "examples", "tests", "fuzz"] {
        walk(&root.join(folder), &mut pages)?;
    }
    pages.sort();
    Ok(pages)
}

fn walk(folder: &Path, pages: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            walk(&path, pages)?;
        } else if is_page(&path) {
            pages.push(path);
        }
    }
    Ok(())
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// Links to other places of the repository, with their lines. What stands in code is no link.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_block = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        for (index, prose) in line.split('`').enumerate() {
            let starts = prose.match_indices("](").map(|(at, mark)| at + mark.len());
            for start in starts.filter(|_| index % 2 == 0) {
                let target = prose.get(start..).and_then(|rest| rest.split(')').next()).unwrap_or_default();
                if !target.contains("://") && !target.starts_with("mailto:") {
                    found.push((number, target));
                }
            }
        }
    }
    found
}

/// The anchors of a page's headings, made as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        }
        let heading = line.trim_start_matches('#');
        if in_block || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor = heading
            .trim()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() });
        found.insert(anchor.collect());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_from_prose() {
        let text = "a [b](c.md#d) and `[no](x)` [e](#f)\n```\n[no](y)\n```\n[web](https://example.org)\n[g `h`](i)\n";
        assert_eq!(links(text), [(1, "c.md#d"), (1, "#f"), (6, "i")]);
    }

    #[test]
    fn anchors_are_those_of_headings() {
        let text = "# The File\n## release.yaml\n```sh\n# comment\n```\n#no\n### A: b-c\n";
        let expected = ["a-b-c", "releaseyaml", "the-file"].map(str::to_owned);
        assert_eq!(anchors(text), BTreeSet::from(expected));
    }
}
