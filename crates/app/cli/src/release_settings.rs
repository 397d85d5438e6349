//! What an admin decides about a release, as options of the commands that read one.

use clap::Args;
use scantling_release::Settings;

/// The options.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "About the release")]
pub(crate) struct ReleaseArguments {
    /// Where the release's images live, if that is left to you.
    #[arg(long, value_name = "HOST[/PREFIX]")]
    registry: Option<String>,
    /// One of the release's environments.
    #[arg(long, value_name = "NAME")]
    environment: Option<String>,
    /// A component that is left out otherwise. May be given several times.
    #[arg(long, value_name = "NAME")]
    with: Vec<String>,
    /// A component that is there otherwise. May be given several times.
    #[arg(long, value_name = "NAME")]
    without: Vec<String>,
}

impl ReleaseArguments {
    /// The settings that a release is read with.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            registry: self.registry.clone(),
            environment: self.environment.clone(),
            with: self.with.iter().cloned().collect(),
            without: self.without.iter().cloned().collect(),
        }
    }
}
