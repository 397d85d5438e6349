//! Plays a story: the same people and the same cluster, with the vendor's upgrade or with Scantling's.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use scantling_api::ObjectKey;
use scantling_cluster::{Clock, Cluster};
use scantling_endpoint::Keyring;
use scantling_plan::Outcome;
use scantling_registry::RegistryClient;
use scantling_release::{Against, check};
use scantling_run::{Entropy, Environment, Options as RunOptions, RunError, RunReport};
use scantling_sandbox::World;

use crate::bridge::{Gate, Kill};
use crate::check::{self, Evidence};
use crate::compare::Objects;
use crate::controllers::Controllers;
use crate::images::BuiltImages;
use crate::record::{Actor, Line, Recorder};
use crate::rehearsal::{Attempt, Options, Rehearsal, RehearseError, ReleaseSeen, VariantSeen, Way};
use crate::scenario::{Before, Event, Installer, Scenario, ScenarioRelease, Step, Variant};
use crate::stage::Stage;
use crate::vendor::Variables;
use crate::whose::compare_with;

/// What is left when everybody is done comes to rest within this time.
const SETTLE: Duration = Duration::from_mins(1);

/// Called with every line of the story as it happens.
pub type Progress = Arc<dyn Fn(&Line) + Send + Sync>;

/// Plays an example from beginning to end.
pub fn rehearse(
    scenario: &Scenario,
    options: &Options,
    progress: Progress,
) -> Result<Rehearsal, RehearseError> {
    if options.variant.is_some() && options.way != Way::AsShipped {
        return Err(RehearseError::VariantNeedsShipped);
    }
    if options.way == Way::AsShipped && scenario.shipped.upgrade.is_empty() {
        return Err(RehearseError::NothingShipped);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(play(scenario, options, progress))
}

/// The cluster of an example: as it stands just before the upgrade, or with nothing installed.
pub fn cluster_of(scenario: &Scenario, seed: u64, history: bool) -> Result<World, RehearseError> {
    let options = Options { way: Way::AsShipped, fresh: false, variant: None, seed, kill: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(async {
        let images = BuiltImages::build(&scenario.images).map_err(RehearseError::Example)?;
        let mut stage = Stage::new(scenario, &options, &images, Recorder::new(Arc::new(|_| ())))?;
        let sandbox = stage.sandbox.clone();
        if history {
            Box::pin(sandbox.pace(past(&mut stage))).await?;
        }
        drop(stage);
        sandbox
            .into_world()
            .ok_or_else(|| RehearseError::Example("the story does not let go of its cluster".to_owned()))
    })
}

/// Plays what comes before the upgrade, and returns the name of the release that is installed then.
async fn past(stage: &mut Stage<'_>) -> Result<Option<String>, RehearseError> {
    let scenario = stage.scenario;
    let mut installed = None;
    let mut controllers: Option<Pin<Box<dyn Future<Output = RehearseError>>>> = None;
    for event in scenario.story.iter().take_while(|event| !matches!(event, Event::Upgrade { .. })) {
        if let Event::Install { release, .. } = event {
            installed = Some(release.clone());
        }
        let Some(current) = &installed else {
            return Err(RehearseError::Example(
                "the story does something before anything is installed".to_owned(),
            ));
        };
        let release = named(scenario, current)?;
        match &mut controllers {
            None => act(stage, event, release, false).await?,
            Some(controllers) => tokio::select! {
                biased;
                result = act(stage, event, release, false) => result?,
                error = controllers => return Err(error),
            },
        }
        if matches!(event, Event::Install { by: Installer::Scantling, .. }) {
            controllers =
                connected(stage, release).map(|it| Box::pin(run_controllers(Some(it))) as Pin<Box<_>>);
        }
    }
    Ok(installed)
}

async fn play(
    scenario: &Scenario,
    options: &Options,
    progress: Progress,
) -> Result<Rehearsal, RehearseError> {
    let variant = variant(scenario, options)?;
    let images = BuiltImages::build(&scenario.images).map_err(RehearseError::Example)?;
    let mut stage = Stage::new(scenario, options, &images, Recorder::new(progress))?;
    let sandbox = stage.sandbox.clone();
    let played = Box::pin(sandbox.pace(story(&mut stage, variant))).await?;
    let duration_ms = stage.recorder.now_ms();

    let fresh =
        if options.fresh { None } else { Some(install_fresh(scenario, options, &images, &played).await?) };
    let objects = stage.objects();
    let kept = kept(&played);
    let comparison =
        fresh.as_ref().map(|fresh| compare_with(&stage, &objects, &fresh.objects, &played.release, &kept));
    let (notebooks, models) = stage.seen(&played.release);
    let told = told(&played);
    let failure = played.attempts.last().and_then(|attempt| attempt.failure.clone());
    let promises = sandbox.with(|world| {
        check::check(&Evidence {
            release: &played.release,
            objects: &objects,
            before: &played.before,
            registry: world.registry(),
            mirrors: &stage.mirrors,
            people: &stage.people,
            notebooks: &notebooks,
            models: &models,
            comparison: comparison.as_ref(),
            told: &told,
            kept: &kept,
            false_claims: &false_claims(&played),
            fresh: fresh.as_ref().map(|fresh| &fresh.objects),
            fresh_failure: fresh.as_ref().and_then(|fresh| fresh.failure.as_deref()),
            platforms: &scenario.cluster.nodes.iter().map(|node| node.platform.clone()).collect(),
            failure: failure.as_deref(),
        })
    });
    let trace: Vec<String> =
        sandbox.with(|world| world.trace().iter().map(scantling_sandbox::TraceEvent::line).collect());
    Ok(Rehearsal {
        version: 1,
        title: scenario.title.clone(),
        about: scenario.about.clone(),
        way: options.way,
        fresh: options.fresh,
        variant: options
            .variant
            .clone()
            .zip(variant)
            .map(|(name, it)| VariantSeen { name, about: it.about.clone() }),
        seed: options.seed,
        release: release_seen(scenario, &played),
        attempts: played.attempts,
        story: stage.recorder.lines(),
        notebooks,
        models,
        promises,
        comparison,
        must_hold: variant.map_or_else(|| scenario.must_hold.clone(), |variant| variant.must_hold.clone()),
        duration_ms,
        events: trace.len(),
        trace,
        objects,
    })
}

/// What is left of a story after it has been played.
struct Played {
    /// The old release's name in the scenario, if the cluster has a history.
    old: Option<String>,
    /// The new release's name in the scenario.
    new: String,
    /// The release that the cluster is meant to be at: the one of the last attempt.
    release: ScenarioRelease,
    attempts: Vec<Attempt>,
    before: Objects,
}

fn variant<'s>(scenario: &'s Scenario, options: &Options) -> Result<Option<&'s Variant>, RehearseError> {
    let Some(name) = &options.variant else { return Ok(None) };
    scenario.variants.get(name).map(Some).ok_or_else(|| RehearseError::NoSuchVariant {
        wanted: name.clone(),
        known: scenario.variants.keys().cloned().collect(),
    })
}

fn named<'s>(scenario: &'s Scenario, name: &str) -> Result<&'s ScenarioRelease, RehearseError> {
    scenario.release(name).ok_or_else(|| RehearseError::Example(format!("there is no release {name:?}")))
}

async fn story(stage: &mut Stage<'_>, variant: Option<&Variant>) -> Result<Played, RehearseError> {
    let scenario = stage.scenario;
    let position = scenario.story.iter().position(|event| matches!(event, Event::Upgrade { .. }));
    let (history, rest) = scenario.story.split_at(position.unwrap_or(scenario.story.len()));
    let Some((Event::Upgrade { release: new, if_refused }, after)) = rest.split_first() else {
        return Err(RehearseError::Example("the story has no upgrade".to_owned()));
    };
    let mut old = None;
    if stage.options.fresh {
        // A fresh cluster has no history, but the same people with the same projects.
        for event in history.iter().filter(|event| matches!(event, Event::Project { .. })) {
            act(stage, event, named(scenario, new)?, false).await?;
        }
    } else {
        old = past(stage).await?;
    }
    if let Some(variant) = variant.filter(|variant| variant.before == Before::Upgrade) {
        work_round(stage, variant, named(scenario, old.as_deref().unwrap_or(new))?).await?;
    }
    let before = stage.objects();
    let (attempts, name) = upgrade(stage, old.as_deref(), new, if_refused.as_deref()).await?;
    let release = named(scenario, &name)?;

    let connected = connected(stage, release);
    let mut waiting = variant.filter(|variant| variant.before != Before::Upgrade);
    let rest = async {
        for event in after {
            let due = waiting.is_some_and(|variant| match variant.before {
                Before::Upgrade => false,
                Before::Open => matches!(event, Event::Open(_)),
                Before::Deploy => matches!(event, Event::Deploy(_)),
            });
            if due && let Some(variant) = waiting.take() {
                work_round(stage, variant, release).await?;
            }
            act(stage, event, release, true).await?;
        }
        tokio::time::sleep(SETTLE).await;
        Ok::<_, RehearseError>(())
    };
    let controllers = run_controllers(connected);
    tokio::select! {
        biased;
        result = rest => result?,
        error = controllers => return Err(error),
    }
    Ok(Played { old, new: new.clone(), release: release.clone(), attempts, before })
}

/// Scantling's controllers, where Scantling is.
fn connected(stage: &Stage<'_>, release: &ScenarioRelease) -> Option<Controllers> {
    (stage.options.way == Way::Scantling).then(|| Controllers {
        cluster: cluster(stage, Gate::default()),
        registry: registry(stage),
        namespace: release.release.namespace.clone().unwrap_or_default(),
        clock: Clock::starting_at(stage.sandbox.with(|world| world.timestamp())),
        recorder: stage.recorder.clone(),
        entropy: Entropy::from_seed(stage.options.seed),
    })
}

/// Runs the controllers, if there are any. They end only when they can't go on.
async fn run_controllers(connected: Option<Controllers>) -> RehearseError {
    let Some(connected) = connected else { return std::future::pending().await };
    let why = connected.run().await;
    RehearseError::Example(format!("the controllers ended: {why}"))
}

async fn act(
    stage: &mut Stage<'_>,
    event: &Event,
    release: &ScenarioRelease,
    upgraded: bool,
) -> Result<(), RehearseError> {
    match event {
        Event::Install { release: name, by } => {
            let attempt = match (by, stage.options.way) {
                (Installer::Scantling, Way::Scantling) => by_scantling(stage, None, name, None).await?,
                _ => by_script(stage, name, &stage.scenario.shipped.install).await?,
            };
            match attempt.failure {
                None => Ok(()),
                Some(error) => Err(RehearseError::Story {
                    at: stage.recorder.now_ms(),
                    actor: Actor::Vendor.to_string(),
                    error,
                }),
            }
        }
        Event::Upgrade { .. } => Ok(()),
        Event::Open(open) => stage.open(open, release, upgraded).await,
        Event::Close { person } => stage.close(person, release).await,
        Event::Project { person, name } => stage.project(person, name).await,
        Event::Deploy(deploy) => {
            stage.deploy(deploy, release).await;
            Ok(())
        }
        Event::Edit { person, steps } => stage.edit(person, steps, release).await,
        Event::Wait(duration) => {
            tokio::time::sleep(duration.unsigned_abs()).await;
            Ok(())
        }
    }
}

async fn work_round(
    stage: &mut Stage<'_>,
    variant: &Variant,
    release: &ScenarioRelease,
) -> Result<(), RehearseError> {
    stage.recorder.say(&Actor::Admin, variant.about.clone());
    stage.script(release, Actor::Admin, &variant.steps, Variables::new()).await.map(|_| ()).map_err(|error| {
        RehearseError::Story { at: stage.recorder.now_ms(), actor: Actor::Admin.to_string(), error }
    })
}

/// Upgrades, and returns the tries with the name of the release that the last one was for.
async fn upgrade(
    stage: &mut Stage<'_>,
    old: Option<&str>,
    new: &str,
    if_refused: Option<&str>,
) -> Result<(Vec<Attempt>, String), RehearseError> {
    match stage.options.way {
        Way::AsShipped => {
            let shipped = &stage.scenario.shipped;
            let attempt = by_script(stage, new, &shipped.upgrade).await?;
            Ok((vec![attempt], new.to_owned()))
        }
        Way::Scantling => {
            let kill = stage.options.kill;
            let first = by_scantling(stage, old, new, kill).await?;
            let instead = if_refused.filter(|_| first.refused);
            let mut attempts = vec![first];
            if let Some(instead) = instead {
                attempts.push(by_scantling(stage, old, instead, kill).await?);
            }
            let name = instead.unwrap_or(new).to_owned();
            Ok((attempts, name))
        }
    }
}

async fn by_script(stage: &mut Stage<'_>, name: &str, steps: &[Step]) -> Result<Attempt, RehearseError> {
    let release = named(stage.scenario, name)?;
    let title = release.release.title();
    stage.recorder.say(&Actor::Vendor, format!("script for {title} starts"));
    let writes = stage.sandbox.script_writes();
    let result = stage.script(release, Actor::Vendor, steps, Variables::new()).await;
    let failure = match result {
        Ok(created) => {
            stage.installed.extend(created);
            None
        }
        Err(error) => Some(error),
    };
    let writes = stage.sandbox.script_writes().saturating_sub(writes);
    stage.recorder.say(
        &Actor::Vendor,
        match &failure {
            None => format!("script for {title} ends, exit code 0"),
            Some(error) => format!("script for {title} fails: {error}"),
        },
    );
    Ok(Attempt {
        name: name.to_owned(),
        release: title,
        writes,
        failure,
        refused: false,
        restarts: 0,
        report: None,
    })
}

async fn by_scantling(
    stage: &mut Stage<'_>,
    old: Option<&str>,
    name: &str,
    kill: Option<Kill>,
) -> Result<Attempt, RehearseError> {
    let release = named(stage.scenario, name)?;
    let old = old.map(|old| named(stage.scenario, old)).transpose()?;
    let mut writes = 0;
    let mut restarts = 0;
    let mut gate = kill.map_or_else(Gate::default, Gate::killing);
    let outcome = loop {
        let result = tokio::select! {
            biased;
            result = run(stage, release, old, &gate, restarts) => Some(result),
            () = gate.killed() => None,
        };
        writes += gate.writes();
        if let Some(result) = result {
            break result;
        }
        restarts += 1;
        stage.recorder.say(&Actor::Scantling, format!("killed at write {writes}, and started again"));
        gate = Gate::default();
    };
    let (failure, refused, report) = match outcome {
        Ok(report) => (None, false, report),
        Err(RunError::Refused { why, report }) => (Some(why), true, *report),
        Err(RunError::Stopped { stage, why, report }) => (Some(format!("{stage}: {why}")), false, *report),
    };
    Ok(Attempt {
        name: name.to_owned(),
        release: release.release.title(),
        writes,
        failure,
        refused,
        restarts,
        report: Some(report),
    })
}

/// The cluster, as a process behind that gate reaches it.
fn cluster(stage: &Stage<'_>, gate: Gate) -> Cluster {
    Cluster::over(stage.sandbox.kubernetes(gate), stage.options.seed)
}

/// The registries, as a process in the cluster reaches them.
fn registry(stage: &Stage<'_>) -> RegistryClient {
    let options =
        scantling_registry::Options { seed: stage.options.seed, ..scantling_registry::Options::default() };
    RegistryClient::new(stage.sandbox.registry(), stage.mirrors.clone(), Keyring::default(), options)
}

/// Runs Scantling's upgrade once, as a process of its own would.
async fn run(
    stage: &Stage<'_>,
    release: &ScenarioRelease,
    old: Option<&ScenarioRelease>,
    gate: &Gate,
    restarts: u32,
) -> Result<RunReport, RunError> {
    let environment = Environment {
        cluster: cluster(stage, gate.clone()),
        registry: registry(stage),
        clock: Clock::starting_at(stage.sandbox.with(|world| world.timestamp())),
        // Another process draws other bytes: what it generates anew would be seen.
        entropy: Entropy::from_seed(stage.options.seed ^ (u64::from(restarts) << 48)),
        vantage: "here".to_owned(),
    };
    let options = RunOptions { installed: old.map(|old| old.release.clone()), ..RunOptions::default() };
    let recorder = stage.recorder.clone();
    scantling_run::upgrade(&environment, &release.release, &options, &mut |event| {
        recorder.run(&event);
    })
    .await
}

/// A cluster on which the same release was installed by the same means, with nothing before.
struct Fresh {
    objects: Objects,
    failure: Option<String>,
}

async fn install_fresh(
    scenario: &Scenario,
    options: &Options,
    images: &BuiltImages,
    played: &Played,
) -> Result<Fresh, RehearseError> {
    let quiet = Recorder::new(Arc::new(|_| ()));
    let options = Options { fresh: true, variant: None, kill: None, ..options.clone() };
    let name = played.attempts.last().map_or(played.new.as_str(), |attempt| attempt.name.as_str());
    let mut stage = Stage::new(scenario, &options, images, quiet)?;
    let sandbox = stage.sandbox.clone();
    let install: Pin<Box<dyn Future<Output = Result<Attempt, RehearseError>>>> = match options.way {
        Way::AsShipped => Box::pin(by_script(&mut stage, name, &scenario.shipped.upgrade)),
        Way::Scantling => Box::pin(by_scantling(&mut stage, None, name, None)),
    };
    let failure = sandbox.pace(install).await?.failure;
    // Controllers that the install set off come to rest.
    sandbox.pace(tokio::time::sleep(SETTLE)).await;
    Ok(Fresh { objects: stage.objects(), failure })
}

/// How each object ended, by what Scantling says.
fn told(played: &Played) -> BTreeMap<ObjectKey, Outcome> {
    last_report(played)
        .map(|report| report.outcomes.iter().map(|it| (it.key.clone(), it.outcome)).collect())
        .unwrap_or_default()
}

/// The fields that Scantling says it left to their users.
fn kept(played: &Played) -> BTreeSet<(ObjectKey, String)> {
    let outcomes = last_report(played).into_iter().flat_map(|report| &report.outcomes);
    outcomes.flat_map(|it| it.kept.iter().map(|field| (it.key.clone(), field.field.clone()))).collect()
}

/// Claims of the release that the images do not hold.
fn false_claims(played: &Played) -> Vec<String> {
    let entries = last_report(played).into_iter().flat_map(|report| &report.catalogue);
    entries
        .flat_map(|entry| entry.claims.iter().filter(|claim| !claim.holds).map(move |claim| (entry, claim)))
        .map(|(entry, claim)| {
            format!(
                "the release says {} {} of {}, the image holds {}",
                claim.name,
                claim.claimed,
                entry.tag,
                claim.found.as_deref().unwrap_or("none")
            )
        })
        .collect()
}

fn last_report(played: &Played) -> Option<&RunReport> {
    played.attempts.last()?.report.as_ref()
}

fn release_seen(scenario: &Scenario, played: &Played) -> ReleaseSeen {
    let old = played.old.as_deref().and_then(|name| scenario.release(name));
    let new = scenario.release(&played.new).unwrap_or(&played.release);
    let against = Against { previous: old.map(|old| (&old.release, None)), ..Against::default() };
    let checked = check(&new.release, against);
    ReleaseSeen {
        title: new.release.title(),
        folder: new.folder.clone(),
        from: old.map(|old| old.release.title()),
        objects: new.release.objects.len(),
        references: new.release.distinct_references().len(),
        builds: new.release.builds.len(),
        changes: checked.changes,
        findings: checked.findings,
    }
}
