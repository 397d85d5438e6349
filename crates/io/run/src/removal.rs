//! Stage 8 and uninstalling: objects are deleted, several at a time, each only if it still is what was decided about.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt as _;
use scantling_api::{ObjectKey, object};
use scantling_cluster::{ClusterError, Write};
use scantling_plan::{Outcome, Step, still_used};
use serde_json::Value;

use crate::apply::{AT_ONCE, DECISIONS};
use crate::event::Stage;
use crate::report::Stop;
use crate::session::Session;
use crate::wait::Wait;

/// Between two looks at objects that are to be gone.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// An object that is being deleted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Going {
    pub(crate) key: ObjectKey,
    pub(crate) uid: String,
}

/// What became of one deletion.
enum Removed {
    /// It is gone, or another one of its name is there, which is not the one that we created.
    Gone,
    /// The server has begun.
    Going(Going),
    /// It stays, for a reason that came up since it was decided.
    Kept(String),
    /// Another one failed before it was begun.
    NotBegun,
}

impl Session<'_> {
    /// Stage 8: removes what only the previous release had.
    pub(crate) async fn prune(&mut self, steps: &[Step]) -> Result<(), Stop> {
        self.stage = Stage::Prune;
        self.remove_all(steps).await.map(|_| ())
    }

    /// Deletes what is to be pruned, and tells of each step how it ended. What is not gone with the answer comes back.
    pub(crate) async fn remove_all(&mut self, steps: &[Step]) -> Result<Vec<Going>, Stop> {
        let doomed: Vec<&Step> = steps.iter().filter(|step| step.outcome == Outcome::Pruned).collect();
        let mut removed = Vec::new();
        if !doomed.is_empty() {
            self.open().await?;
            let session: &Self = self;
            let failed = &AtomicBool::new(false);
            removed = futures::stream::iter(doomed)
                .map(|step| async move {
                    if failed.load(Ordering::Relaxed) {
                        return Ok(Removed::NotBegun);
                    }
                    let ended = session.remove_one(step).await;
                    failed.fetch_or(ended.is_err(), Ordering::Relaxed);
                    ended
                })
                .buffered(AT_ONCE)
                .collect::<Vec<_>>()
                .await;
        }
        let mut removed = removed.into_iter();
        let mut going = Vec::new();
        let mut stop = None;
        for step in steps {
            if step.outcome != Outcome::Pruned {
                self.ended(step, step.outcome, step.cause.clone());
                continue;
            }
            let Some(ended) = removed.next() else { continue };
            match ended {
                Ok(Removed::NotBegun) => continue,
                Ok(Removed::Kept(why)) => {
                    self.ended(step, Outcome::Kept, why);
                    continue;
                }
                Ok(Removed::Gone) => {}
                Ok(Removed::Going(one)) => going.push(one),
                Err(error) => {
                    let failed = self.not_written(step, error);
                    stop = stop.or(Some(failed));
                    continue;
                }
            }
            self.remember(&step.key, None);
            self.ended(step, Outcome::Pruned, step.cause.clone());
        }
        stop.map_or(Ok(going), Err)
    }

    /// Deletes one object as it was read. One that has moved since is read again: another one of its name is not ours.
    async fn remove_one(&self, step: &Step) -> Result<Removed, ClusterError> {
        let uid = object::uid(&step.body);
        let mut object = step.body.clone();
        for _ in 0..DECISIONS {
            let deleted = self.put(&Write::DeleteAsRead { object }).await;
            match deleted {
                Ok(written) => {
                    return Ok(if is_going(&written.object, uid) {
                        Removed::Going(Going { key: step.key.clone(), uid: uid.to_owned() })
                    } else {
                        Removed::Gone
                    });
                }
                Err(ClusterError::Moved { .. }) => {}
                Err(error) => return Err(error),
            }
            match self.read(&step.key).await?.filter(|found| object::uid(found) == uid) {
                None => return Ok(Removed::Gone),
                Some(found) if is_going(&found, uid) => {
                    return Ok(Removed::Going(Going { key: step.key.clone(), uid: uid.to_owned() }));
                }
                Some(found) => {
                    if let Some(why) = still_used(&found) {
                        return Ok(Removed::Kept(why));
                    }
                    object = found;
                }
            }
        }
        Err(ClusterError::Moved {
            what: format!("delete {}", step.key),
            message: format!("it changed {DECISIONS} times between reading and deleting"),
        })
    }

    /// Waits until objects are gone; others of the same names do not count.
    pub(crate) async fn wait_until_gone(&mut self, going: Vec<Going>) -> Result<(), Stop> {
        let mut left = going;
        let mut wait: Option<Wait> = None;
        loop {
            let session: &Self = self;
            let looked: Vec<Result<Option<(Going, String)>, ClusterError>> = futures::stream::iter(left)
                .map(|one| async move {
                    let found = session.read(&one.key).await?.filter(|found| object::uid(found) == one.uid);
                    Ok(found.map(|found| (one, why_it_stays(&found))))
                })
                .buffered(AT_ONCE)
                .collect()
                .await;
            let found: Vec<(Going, String)> =
                looked.into_iter().filter_map(Result::transpose).collect::<Result<_, _>>()?;
            let Some((first, why)) = found.first().map(|(one, why)| (one.key.to_string(), why.clone()))
            else {
                return Ok(());
            };
            let more = match found.len() - 1 {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            let wait =
                wait.get_or_insert_with(|| Wait::new(first.clone(), self.options.waits.removal, PAUSE));
            if wait.is_over() {
                return Err(Stop::Halt(format!(
                    "{first}{more} is not gone: {why}; see who answers for that, then uninstall again"
                )));
            }
            left = found.into_iter().map(|(one, _)| one).collect();
            self.pause(wait, format!("{why}{more}")).await;
        }
    }
}

/// Whether the answer to a deletion shows the object still there: it waits for finalizers or for its time to end.
fn is_going(answer: &Value, uid: &str) -> bool {
    object::uid(answer) == uid && answer.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string)
}

/// What holds an object that is to go: its finalizers, or, of a namespace, what the server says of its contents.
fn why_it_stays(object: &Value) -> String {
    let list = |pointer: &str| object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let conditions: Vec<&str> = list("/status/conditions")
        .filter(|_| object::text(object, "/kind") == "Namespace")
        .filter(|condition| object::text(condition, "/status") == "True")
        .map(|condition| object::text(condition, "/message"))
        .filter(|message| !message.is_empty())
        .collect();
    let finalizers: Vec<&str> = list("/metadata/finalizers").filter_map(Value::as_str).collect();
    match (conditions.as_slice(), finalizers.as_slice()) {
        ([], []) => "its removal has not ended".to_owned(),
        ([], held) => format!("finalizers hold it: {}", held.join(", ")),
        (said, _) => said.join("; "),
    }
}
