//! Joins a sandbox to clients in the same process: one clock, no sockets.
//!
//! The sandbox is a synchronous value with a time of its own; clients are futures on a current-thread tokio runtime whose
//! clock is paused, so that it jumps to the next timer as soon as nothing else can go on. [`InProcess::pace`] holds the
//! two times together: before every request the sandbox is brought to the runtime's time, and the sandbox' next event
//! is a timer of the runtime.
//!
//! **Assumptions**: one thread; the runtime was started with its clock paused. **Guarantees**: the order of all that
//! happens follows from the futures and the seed.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, Full};
use scantling_sandbox::{Reply, Time, WatchId, World};
use tokio::sync::Notify;
use tokio::time::Instant;

/// An error of a body or a service, as tower and kube pass it on.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How long a request to the API server is under way, in virtual time.
const API_LATENCY: Duration = Duration::from_millis(4);

/// How long a request to a registry is under way, in virtual time.
const REGISTRY_LATENCY: Duration = Duration::from_millis(20);

/// A sandbox that clients reach in process.
#[derive(Clone)]
pub struct InProcess {
    shared: Arc<Mutex<Shared>>,
    changed: Arc<Notify>,
    origin: Instant,
}

struct Shared {
    world: World,
    /// Bodies of watches that wait for something to happen.
    waiting: BTreeMap<WatchId, Waker>,
    /// Requests other than reads that came through [`InProcess::request`].
    writes: u64,
}

impl InProcess {
    /// Takes a sandbox over. Its time zero is now.
    pub fn new(world: World) -> Self {
        Self {
            shared: Arc::new(Mutex::new(Shared { world, waiting: BTreeMap::new(), writes: 0 })),
            changed: Arc::new(Notify::new()),
            origin: Instant::now(),
        }
    }

    /// Looks at the sandbox, or acts on it from outside its API, at the present time.
    pub fn with<R>(&self, act: impl FnOnce(&mut World) -> R) -> R {
        let mut shared = self.lock();
        shared.world.run_until(self.now());
        let result = act(&mut shared.world);
        let waiting = std::mem::take(&mut shared.waiting);
        drop(shared);
        for (_, waker) in waiting {
            waker.wake();
        }
        self.changed.notify_one();
        result
    }

    /// Runs a future while the sandbox' time goes on beside it.
    pub async fn pace<F: Future>(&self, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        loop {
            let next = self.lock().world.next_event();
            let event = async {
                match next {
                    Some(time) => tokio::time::sleep_until(self.origin + Duration::from_millis(time.0)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                output = &mut future => return output,
                () = self.changed.notified() => {}
                () = event => self.with(|_| ()),
            }
        }
    }

    /// A service that speaks to the sandbox' API server, for `kube::Client`.
    pub fn kubernetes(&self, gate: Gate) -> KubernetesService {
        KubernetesService { sandbox: self.clone(), gate }
    }

    /// A transport that reaches the sandbox' registries, for the registry client.
    pub fn registry(&self) -> impl scantling_registry::Transport + Sync + use<> {
        let sandbox = self.clone();
        tower::service_fn(move |request: http::Request<Bytes>| {
            let sandbox = sandbox.clone();
            async move {
                tokio::time::sleep(REGISTRY_LATENCY).await;
                let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
                let response = sandbox.with(|world| world.registry().handle(&host, &request));
                Ok::<_, BoxError>(response.map(scantling_registry::full))
            }
        })
    }

    /// Sends one request to the API server and returns the whole response.
    pub async fn request(&self, request: http::Request<Bytes>) -> http::Response<Bytes> {
        tokio::time::sleep(API_LATENCY).await;
        if request.method() != http::Method::GET {
            self.lock().writes += 1;
        }
        match self.with(|world| world.handle(&request)) {
            Reply::Once(response) => response,
            Reply::Watch(id) => {
                self.with(|world| world.watch_close(id));
                http::Response::new(Bytes::new())
            }
        }
    }

    /// How many requests other than reads came through [`InProcess::request`].
    pub fn script_writes(&self) -> u64 {
        self.lock().writes
    }

    /// Gives the sandbox back, if nobody else holds on to it.
    pub fn into_world(self) -> Option<World> {
        let shared = Arc::into_inner(self.shared)?;
        Some(shared.into_inner().unwrap_or_else(PoisonError::into_inner).world)
    }

    fn now(&self) -> Time {
        Time(u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // One thread holds it, and never across a panic that anyone catches.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_error(never: Infallible) -> BoxError {
    match never {}
}

/// What stands between one client and the API server: it counts writes, and can end the client's life at one of them.
#[derive(Clone, Default)]
pub struct Gate {
    state: Arc<Mutex<GateState>>,
    killed: Arc<Notify>,
}

#[derive(Default)]
struct GateState {
    writes: u64,
    kill: Option<Kill>,
    closed: bool,
}

/// When a client's process is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kill {
    /// Just before its n-th write (from 1) reaches the API server.
    Before(u64),
    /// After its n-th write (from 1) was done, before the client learns of it.
    After(u64),
}

impl Gate {
    /// A gate that ends its client's life at a write.
    pub fn killing(kill: Kill) -> Self {
        let gate = Self::default();
        gate.state().kill = Some(kill);
        gate
    }

    /// How many writes have been let through.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// Resolves when the client has been killed; whoever runs it then drops its future.
    pub async fn killed(&self) {
        self.killed.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks to be let through: the number of a write, if it is one, and when to kill. Nobody is let through a closed gate.
    fn enter(&self, is_write: bool) -> Option<(u64, Option<Kill>)> {
        let state = self.state();
        let (closed, number, kill) = (state.closed, state.writes + 1, state.kill);
        drop(state);
        if is_write && !closed && kill == Some(Kill::Before(number)) {
            self.close();
            return None;
        }
        (!closed).then_some((number, kill))
    }

    fn passed(&self, number: u64) {
        self.state().writes = number;
    }

    fn close(&self) {
        self.state().closed = true;
        self.killed.notify_one();
    }
}

/// The sandbox' API server as a tower service.
#[derive(Clone)]
pub struct KubernetesService {
    sandbox: InProcess,
    gate: Gate,
}

impl<B> tower::Service<http::Request<B>> for KubernetesService
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = http::Response<http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let Self { sandbox, gate } = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            let request = http::Request::from_parts(parts, body);
            tokio::time::sleep(API_LATENCY).await;
            // A question about rights is posted and changes nothing.
            let is_write =
                request.method() != http::Method::GET && !request.uri().path().contains("/selfsubject");
            let passed = gate.enter(is_write);
            let Some((number, kill)) = passed else { return std::future::pending().await };
            let reply = sandbox.with(|world| world.handle(&request));
            if is_write {
                gate.passed(number);
                if kill == Some(Kill::After(number)) {
                    gate.close();
                    return std::future::pending().await;
                }
            }
            Ok(match reply {
                Reply::Once(response) => {
                    response.map(|body| Full::new(body).map_err(no_error).boxed_unsync())
                }
                Reply::Watch(id) => {
                    let mut response = http::Response::new(WatchBody { sandbox, id }.boxed_unsync());
                    response.headers_mut().insert(
                        http::header::CONTENT_TYPE,
                        http::HeaderValue::from_static("application/json;stream=watch"),
                    );
                    response
                }
            })
        })
    }
}

/// The body of a watch: what the API server has to say, as it comes.
struct WatchBody {
    sandbox: InProcess,
    id: WatchId,
}

impl http_body::Body for WatchBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut shared = self.sandbox.lock();
        let chunk = shared.world.watch_poll(self.id);
        if !chunk.bytes.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from(chunk.bytes.concat())))));
        }
        if chunk.closed {
            return Poll::Ready(None);
        }
        shared.waiting.insert(self.id, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for WatchBody {
    fn drop(&mut self) {
        let mut shared = self.sandbox.lock();
        shared.waiting.remove(&self.id);
        shared.world.watch_close(self.id);
    }
}
