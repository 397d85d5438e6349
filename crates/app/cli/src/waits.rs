//! How long a run waits for what, from the command line.

use std::time::Duration;

use clap::Args;
use scantling_run::Waits;

/// Limits of waits.
#[derive(Debug, Args)]
pub(crate) struct WaitArguments {
    /// How long to wait for something before the run stops, such as rollout=5m. WHAT is definitions (2m by default), imports
    /// (15m), build (3h), prepull (1h), rollout (20m) or removal (5m). May be repeated.
    #[arg(long, value_name = "WHAT=TIME", value_parser = limit)]
    timeout: Vec<(What, Duration)>,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Definitions,
    Imports,
    Build,
    Prepull,
    Rollout,
    Removal,
}

const NAMES: [(&str, What); 6] = [
    ("definitions", What::Definitions),
    ("imports", What::Imports),
    ("build", What::Build),
    ("prepull", What::Prepull),
    ("rollout", What::Rollout),
    ("removal", What::Removal),
];

fn limit(text: &str) -> Result<(What, Duration), String> {
    let (name, time) = text.split_once('=').ok_or("write WHAT=TIME, such as rollout=5m")?;
    let what = NAMES.iter().find(|(known, _)| *known == name).map(|(_, what)| *what);
    let what = what.ok_or_else(|| {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        format!("nothing is waited for under this name; there are {}", names.join(", "))
    })?;
    let time = time.parse::<jiff::SignedDuration>().map_err(|_| "write a time such as 90s, 5m or 1h 30m")?;
    let time = Duration::try_from(time).map_err(|_| "a time cannot be negative")?;
    Ok((what, time))
}

impl WaitArguments {
    /// The waits of a run.
    pub(crate) fn waits(&self) -> Waits {
        let mut waits = Waits::default();
        for (what, time) in &self.timeout {
            let limit = match what {
                What::Definitions => &mut waits.definitions,
                What::Imports => &mut waits.imports,
                What::Build => &mut waits.build,
                What::Prepull => &mut waits.prepull,
                What::Rollout => &mut waits.rollout,
                What::Removal => &mut waits.removal,
            };
            *limit = *time;
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_the_last_one_counts() {
        let read = |texts: &[&str]| {
            let timeout = texts.iter().map(|text| limit(text)).collect::<Result<_, _>>();
            timeout.map(|timeout| WaitArguments { timeout }.waits())
        };
        let waits = read(&["rollout=90s", "build=1h 30m", "rollout=5m"]);
        let expected =
            Waits { rollout: Duration::from_mins(5), build: Duration::from_mins(90), ..Waits::default() };
        assert_eq!(waits, Ok(expected));
        for wrong in ["rollout", "rollout=", "rollout=soon", "rollout=-5m", "rollouts=5m", "=5m"] {
            assert!(read(&[wrong]).is_err(), "{wrong}");
        }
    }
}
