//! The client's parts, shared by all its work.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use scantling_endpoint::{Keyring, Mirrors};
use tower::util::BoxCloneService;

use crate::document::Documents;
use crate::hosts::Hosts;
use crate::options::Options;
use crate::transport::{Body, BoxError, Transport};

/// A client for any number of registries. Clones share connections, tokens and limits.
#[derive(Clone)]
pub struct RegistryClient {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) transport: Mutex<BoxCloneService<Request<Bytes>, Response<Body>, BoxError>>,
    pub(crate) mirrors: Mirrors,
    pub(crate) keyring: Keyring,
    pub(crate) options: Options,
    pub(crate) jitter: Mutex<fastrand::Rng>,
    pub(crate) hosts: Hosts,
    pub(crate) documents: Mutex<Documents>,
}

impl RegistryClient {
    /// A client over a transport, with a cluster's rules and credentials.
    pub fn new(transport: impl Transport, mirrors: Mirrors, keyring: Keyring, options: Options) -> Self {
        let jitter = Mutex::new(fastrand::Rng::with_seed(options.seed));
        Self {
            inner: Arc::new(Inner {
                transport: Mutex::new(BoxCloneService::new(transport)),
                mirrors,
                keyring,
                options,
                jitter,
                hosts: Hosts::default(),
                documents: Mutex::default(),
            }),
        }
    }

    /// A client over the same transport and rules with other credentials. It has no token and no answer from before.
    #[must_use]
    pub fn with_keyring(&self, keyring: Keyring) -> Self {
        let transport = self.inner.transport.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Self {
            inner: Arc::new(Inner {
                transport: Mutex::new(transport),
                mirrors: self.inner.mirrors.clone(),
                keyring,
                options: self.inner.options.clone(),
                jitter: Mutex::new(fastrand::Rng::with_seed(self.inner.options.seed)),
                hosts: Hosts::default(),
                documents: Mutex::default(),
            }),
        }
    }

    /// The rules by which places are chosen.
    pub fn mirrors(&self) -> &Mirrors {
        &self.inner.mirrors
    }

    /// The credentials.
    pub fn keyring(&self) -> &Keyring {
        &self.inner.keyring
    }
}

impl fmt::Debug for RegistryClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RegistryClient").field("options", &self.inner.options).finish_non_exhaustive()
    }
}
