//! The thread that a served world lives on.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use scantling_sandbox::{Reply, Time, WatchId, World};
use tokio::sync::{mpsc, oneshot};

/// The thread looks at its watches this often when nothing else happens: a client that went away is noticed.
const LOOK: Duration = Duration::from_millis(500);

/// Bytes of a watch that may wait for a slow client, in chunks; a client that falls further behind is cut off.
const WATCH_BACKLOG: usize = 4096;

/// What the API server answers.
pub(crate) enum Answer {
    /// A whole response.
    Once(Response<Bytes>),
    /// A stream of what a watch has to say.
    Watch(mpsc::Receiver<Bytes>),
}

enum Command {
    Api(Request<Bytes>, oneshot::Sender<Answer>),
    Registry(String, Request<Bytes>, oneshot::Sender<Response<Bytes>>),
}

/// A way to a world on its thread.
#[derive(Clone)]
pub(crate) struct WorldHandle {
    commands: Sender<Command>,
}

impl WorldHandle {
    /// Starts the thread. `speed` seconds of virtual time pass in a real second. It ends when every handle is gone.
    pub(crate) fn start(world: World, speed: u32) -> std::io::Result<Self> {
        let (commands, received) = channel();
        std::thread::Builder::new().name("sandbox".to_owned()).spawn(move || {
            WorldThread { speed, pacer: Pacer::new(world.now(), speed), world, watches: BTreeMap::new() }
                .run(&received);
        })?;
        Ok(Self { commands })
    }

    /// Asks the API server. Nothing comes back once the thread has ended.
    pub(crate) async fn api(&self, request: Request<Bytes>) -> Option<Answer> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Api(request, reply)).ok()?;
        answer.await.ok()
    }

    /// Asks the registry of that host. Nothing comes back once the thread has ended.
    pub(crate) async fn registry(&self, host: String, request: Request<Bytes>) -> Option<Response<Bytes>> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Registry(host, request, reply)).ok()?;
        answer.await.ok()
    }
}

/// Virtual time as real time goes by.
struct Pacer {
    begun: Instant,
    start: Time,
    speed: u32,
}

impl Pacer {
    #[expect(clippy::disallowed_methods, reason = "this is where real time enters a sandbox that is served")]
    fn new(start: Time, speed: u32) -> Self {
        Self { begun: Instant::now(), start, speed: speed.max(1) }
    }

    fn now(&self) -> Time {
        let passed = self.begun.elapsed().saturating_mul(self.speed);
        Time(self.start.0.saturating_add(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)))
    }

    /// How long until that virtual time.
    fn until(&self, time: Time) -> Duration {
        Duration::from_millis(time.0.saturating_sub(self.now().0)) / self.speed
    }
}

struct WorldThread {
    world: World,
    speed: u32,
    pacer: Pacer,
    watches: BTreeMap<WatchId, mpsc::Sender<Bytes>>,
}

impl WorldThread {
    fn run(&mut self, commands: &Receiver<Command>) {
        debug_assert!(self.speed > 0, "the command line refuses a standing clock");
        loop {
            let wait = self.world.next_event().map_or(LOOK, |time| self.pacer.until(time).min(LOOK));
            let command = commands.recv_timeout(wait);
            self.world.run_until(self.pacer.now());
            match command {
                Ok(Command::Api(request, reply)) => {
                    let answer = match self.world.handle(&request) {
                        Reply::Once(response) => Answer::Once(response),
                        Reply::Watch(id) => {
                            let (sender, receiver) = mpsc::channel(WATCH_BACKLOG);
                            self.watches.insert(id, sender);
                            Answer::Watch(receiver)
                        }
                    };
                    // A client that has gone away doesn't need its answer.
                    let _ = reply.send(answer);
                }
                Ok(Command::Registry(host, request, reply)) => {
                    let _ = reply.send(self.world.registry().handle(&host, &request));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.feed_watches();
        }
    }

    fn feed_watches(&mut self) {
        let ids: Vec<WatchId> = self.watches.keys().copied().collect();
        for id in ids {
            let chunk = self.world.watch_poll(id);
            let Some(sender) = self.watches.get(&id) else { continue };
            let sent = chunk.bytes.is_empty() || sender.try_send(Bytes::from(chunk.bytes.concat())).is_ok();
            if !sent || chunk.closed || sender.is_closed() {
                self.watches.remove(&id);
                self.world.watch_close(id);
            }
        }
    }
}
