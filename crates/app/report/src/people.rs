//! What an upgrade means for those who work on the platform: their notebooks and models, and what they could have besides.

use std::collections::BTreeMap;

use scantling_plan::{Plan, PlannedNotebook};
use scantling_reconcile::{Forecast, Roll};

use crate::objects::Detail;
use crate::page::Page;
use crate::style::count;

/// Names in one line.
const NAMED: usize = 5;

/// The notebooks and models that a plan concerns, those alike together, and the components on offer.
pub(crate) fn people(out: &mut Page, plan: &Plan, detail: Detail) {
    let notebooks = plan.notebooks.iter().map(|it| (format!("{}/{}", it.namespace, it.name), notebook(it)));
    alike(out, "Notebooks", notebooks, detail);
    let models = plan.models.iter().map(|it| {
        (format!("{}/{}", it.service.namespace.as_deref().unwrap_or_default(), it.service.name), model(it))
    });
    alike(out, "Models", models, detail);
    if plan.on_offer.is_empty() {
        return;
    }
    out.section("On offer");
    for component in &plan.on_offer {
        let about = component.about.as_ref().map(|about| format!(": {about}")).unwrap_or_default();
        let have = if component.nodes == 1 { "has" } else { "have" };
        let nodes = count(component.nodes, "node");
        let text = format!(
            "{}{about} {nodes} {have} {}; `--with {0}` brings it",
            component.component, component.resource
        );
        out.put(2, 2, &text);
    }
}

/// A section with everybody to whom the same happens in one paragraph.
fn alike(out: &mut Page, title: &str, all: impl Iterator<Item = (String, String)>, detail: Detail) {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, text) in all {
        groups.entry(text).or_default().push(name);
    }
    if groups.is_empty() {
        return;
    }
    out.section(title);
    for (text, names) in groups {
        let shown = if detail == Detail::All { names.len() } else { NAMED };
        let more = names.len().saturating_sub(shown);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let names: Vec<String> = names.into_iter().take(shown).collect();
        out.put(2, 2, &format!("{}{more}: {text}", names.join(", ")));
    }
}

fn notebook(notebook: &PlannedNotebook) -> String {
    let difference = notebook.difference.as_ref().map(|text| format!(", {text}")).unwrap_or_default();
    format!("{}{difference}: {}", notebook.selection, notebook.why)
}

fn model(model: &Forecast) -> String {
    if let Some(why) = &model.refused {
        return format!("not served as it is written: {why}; pods that run stay");
    }
    let runtime = model.runtime.as_deref().unwrap_or("no runtime");
    let instead = model.instead_of.as_ref().map(|old| format!(" instead of {old}")).unwrap_or_default();
    let difference = model.difference.as_ref().map(|text| format!(", {text}")).unwrap_or_default();
    let roll = match &model.roll {
        None | Some(Roll::Unchanged) => "its pods stay".to_owned(),
        Some(Roll::First) => "it gets its first pods".to_owned(),
        Some(Roll::Surge) => "a new pod is ready before an old one goes".to_owned(),
        Some(Roll::Recreate { why }) => {
            format!("old pods go first, nobody answers until the new ones are ready: {why}")
        }
        Some(Roll::Queued { why } | Roll::Waits { why }) => format!("its pods stay: {why}"),
    };
    format!("{runtime}{instead}{difference}: {roll}")
}
