//! What is to be done about the platform's release.

use scantling_observed::{Approval, OnFailure, Platform, View as _};

use super::facts::{Outcome, PlatformFacts, RunKind};

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the wanted release is there, or none is wanted.
    Rest,
    /// Somebody else does a run.
    Watch {
        /// Who.
        holder: String,
    },
    /// Somebody must allow it.
    Approve {
        /// The version that waits.
        version: String,
    },
    /// The files of the wanted release are not in the cluster.
    NotStored {
        /// Its version.
        version: String,
    },
    /// The wanted release was tried, and the one before was brought back.
    WasRolledBack {
        /// The version that was tried.
        version: String,
    },
    /// Something must be mended by people first.
    Blocked {
        /// What.
        why: String,
    },
    /// Bring this release.
    Run {
        /// Its version.
        version: String,
        /// Whether somebody has begun it.
        begun: bool,
    },
    /// Bring the release before back.
    Rollback {
        /// The version to bring back.
        to: String,
        /// The version that failed.
        from: String,
    },
}

/// What is to be done about the release, for a process called `me`.
pub fn next(platform: Option<Platform<'_>>, facts: &PlatformFacts, me: &str) -> Next {
    let Some(platform) = platform.filter(|platform| !platform.is_being_deleted()) else { return Next::Rest };
    if let Some(holder) = facts.holder.as_ref().filter(|holder| *holder != me) {
        return Next::Watch { holder: holder.clone() };
    }
    let spec = match platform.spec() {
        Ok(spec) => spec,
        Err(error) => return Next::Blocked { why: format!("the spec cannot be read: {error}") },
    };
    if let Some(problem) = &facts.problem {
        return Next::Blocked { why: problem.clone() };
    }
    let Some(wanted) = spec.release.map(|release| release.version).filter(|version| !version.is_empty())
    else {
        return Next::Rest;
    };
    let begun = facts.run.as_ref().is_some_and(|run| run.version == wanted);
    if facts.installed.as_ref() == Some(&wanted) && facts.run.is_none() {
        return Next::Rest;
    }
    if begun && facts.goes_back {
        let from = facts.installed.clone().unwrap_or_default();
        return Next::Rollback { to: wanted, from };
    }
    // A rollback that was begun is brought to its end, whatever the spec still names.
    if let (Some(run), Some(installed)) = (&facts.run, &facts.installed)
        && run.version == *installed
        && run.version != wanted
        && stopped(facts).is_some_and(|(_, failed)| failed == wanted)
        && spec.on_failure == OnFailure::Rollback
    {
        return Next::Rollback { to: installed.clone(), from: wanted };
    }
    if let Some(last) = &facts.last
        && last.kind == RunKind::Rollback
        && last.outcome == Outcome::Succeeded
        && last.from.as_ref() == Some(&wanted)
        && !begun
    {
        return Next::WasRolledBack { version: wanted };
    }
    if let (OnFailure::Rollback, Some((RunKind::Upgrade, failed)), Some(installed)) =
        (spec.on_failure, stopped(facts), &facts.installed)
        && failed == wanted
        && *installed != wanted
    {
        return if facts.stored.contains(installed) {
            Next::Rollback { to: installed.clone(), from: wanted }
        } else {
            Next::NotStored { version: installed.clone() }
        };
    }
    if !facts.stored.contains(&wanted) {
        return Next::NotStored { version: wanted };
    }
    if spec.approval == Approval::Manual && !begun && platform.approved() != Some(wanted.as_str()) {
        return Next::Approve { version: wanted };
    }
    Next::Run { version: wanted, begun }
}

/// The run that ended last, if it stopped in the middle.
fn stopped(facts: &PlatformFacts) -> Option<(RunKind, &str)> {
    let last = facts.last.as_ref()?;
    matches!(last.outcome, Outcome::Stopped { .. }).then_some((last.kind, last.version.as_str()))
}
