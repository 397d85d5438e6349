//! The page about codes of findings, from their register.

use std::fmt::Write as _;

use scantling_finding::{CODES, CodeInfo, InUpgrade};

/// What the hundreds of the codes are about, in their order.
const GROUPS: [(&str, &str); 9] = [
    ("SCN01", "References in manifests and sources"),
    ("SCN02", "Whether references can be pulled"),
    ("SCN03", "Whether one name means one image"),
    ("SCN04", "References that are live under a condition"),
    ("SCN05", "Whether claims about images are true"),
    ("SCN06", "Files that cannot be read"),
    ("SCN07", "The release's own file and its objects"),
    ("SCN08", "What an upgrade of a cluster meets"),
    ("SCN09", "What an audit finds in a cluster"),
];

/// The page.
pub(crate) fn page() -> String {
    render(CODES)
}

fn render(codes: &[CodeInfo]) -> String {
    let mut page = String::from(
        "<!-- Made by `cargo xtask docs` from crates/model/finding; change the register there. -->\n\n\
         # Findings\n\n\
         A finding has a code that keeps its meaning for ever, a severity, a place, a cause and what to do about it. The texts here are \
         the general ones; a finding says more about its own case.\n\n\
         An *error* stops: `scantling check` exits with 1, an upgrade is refused or ends. A *warning* names a risk and its condition. A \
         *note* needs nothing to be done. A code's severity is the usual one; a finding may have another one where its case is milder or worse.\n\n\
         The column *upgrade* says what an upgrade does that meets it: it *is refused* before anything is written (or stops, when it turns \
         up only later), it *stops* and continues when it is run again, or it *goes on* and reports it. A `-` stands where an upgrade does \
         not look: `scantling check` does. A release that cannot be read is not brought at all.\n",
    );
    for (prefix, about) in GROUPS {
        let group: Vec<&CodeInfo> = codes.iter().filter(|info| info.code.starts_with(prefix)).collect();
        if group.is_empty() {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = write!(page, "\n## {about}\n\n| code | severity | upgrade | what |\n|---|---|---|---|\n");
        for info in &group {
            let _ = writeln!(
                page,
                "| [{}](#{}) | {} | {} | {} |",
                info.code,
                info.code.to_lowercase(),
                info.severity,
                match info.upgrade {
                    InUpgrade::NotSeen => "-".to_owned(),
                    upgrade => upgrade.to_string(),
                },
                info.title
            );
        }
        for info in group {
            let _ = write!(
                page,
                "\n### {}\n\n**{}** ({})\n\nWhy: {}.\n\nWhat to do: {}.\n",
                info.code,
                sentence(info.title),
                info.severity,
                info.explanation,
                info.remedy
            );
        }
    }
    page
}

/// With a capital letter at its beginning.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{CODES, page};

    #[test]
    fn every_code_has_its_own_section() {
        let page = page();
        for info in CODES {
            let heading = format!("\n### {}\n", info.code);
            assert_eq!(page.matches(&heading).count(), 1, "{}: is its hundred in GROUPS?", info.code);
        }
    }
}
