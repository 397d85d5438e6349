//! `scantling rbac`: the least rights with which a release can be brought.

use camino::Utf8PathBuf;
use clap::Args;
use scantling_plan::rights;
use scantling_report::findings::Texts;
use scantling_report::rbac::{self, Subject};

use crate::commands::Format;
use crate::input::Folder;
use crate::outcome::{Failure, Outcome};
use crate::release_settings::ReleaseArguments;
use crate::terminal;

/// Print the least roles with which a release can be brought, gone back from and removed, for `kubectl apply -f -`.
#[derive(Debug, Args)]
#[command(
    after_help = "No cluster is asked. A role for a namespace can be written once the namespace is there; a namespace that you make \
                  yourself is adopted by the upgrade and stays when the platform is removed."
)]
pub(crate) struct Arguments {
    /// The release: a folder with a release.yaml.
    release: Utf8PathBuf,
    /// Whom the roles are given to: user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME. Without it only roles are printed.
    #[arg(long, value_name = "WHO", value_parser = subject)]
    to: Option<Subject>,
    /// What the roles are called.
    #[arg(long, value_name = "NAME", default_value = "scantling-run")]
    name: String,
    /// How the objects are written: as YAML to be read, or as data.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    output: Format,
    #[command(flatten)]
    settings: ReleaseArguments,
}

fn subject(text: &str) -> Result<Subject, String> {
    let forms = "write user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME";
    match text.split_once(':') {
        Some(("user", name)) if !name.is_empty() => Ok(Subject::User(name.to_owned())),
        Some(("group", name)) if !name.is_empty() => Ok(Subject::Group(name.to_owned())),
        Some(("serviceaccount", both)) => match both.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
                Ok(Subject::ServiceAccount(namespace.to_owned(), name.to_owned()))
            }
            _ => Err(forms.to_owned()),
        },
        _ => Err(forms.to_owned()),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    let folder = Folder::read(&arguments.release)?.whole()?;
    let mut texts = Texts::new();
    folder.texts(&mut texts);
    let release = folder
        .release(&arguments.settings.settings())
        .map_err(|unreadable| Failure::unreadable(&unreadable.findings, &texts, terminal::screen()))?;
    let rules = rights(&release);
    let subject = arguments.to.as_ref();
    terminal::print(&match arguments.output {
        Format::Json => rbac::list(&rules, &arguments.name, subject)? + "\n",
        Format::Terminal => {
            let about = format!(
                "The least rights with which {} can be brought, gone back from and removed.",
                release.title()
            );
            rbac::yaml(&rules, &about, &arguments.name, subject)
        }
    })?;
    Ok(Outcome::Fine)
}
