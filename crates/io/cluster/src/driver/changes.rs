//! That something has changed, for whoever then reads for himself.

use std::task::Poll;

use super::kind_watch::KindWatch;
use crate::cluster::Cluster;
use crate::served::Resource;

/// Watches of a few objects.
pub struct Changes(Vec<KindWatch>);

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(KindWatch::gvk)).finish()
    }
}

impl Cluster {
    /// Watches objects of some kinds in one namespace; only some of a kind, if a field selector says which.
    pub fn changes(&self, namespace: &str, kinds: &[(Resource, Option<&str>)]) -> Changes {
        let open = |(resource, fields): &(Resource, Option<&str>)| {
            KindWatch::open(self.client().clone(), resource, Some(namespace), *fields, self.jitter().clone())
        };
        Changes(kinds.iter().map(open).collect())
    }
}

impl Changes {
    /// Waits until something has changed or may have: a watch that broke and was opened again may have missed something.
    pub async fn next(&mut self) {
        std::future::poll_fn(|cx| {
            let mut changed = false;
            for watch in &mut self.0 {
                while let Poll::Ready(news) = watch.poll_change(cx) {
                    changed |= news.is_ok();
                }
            }
            if changed { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
