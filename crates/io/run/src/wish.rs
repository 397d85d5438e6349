//! The release that the cluster is to have, where the operator reads it: whoever brings a release wants it.

use scantling_api::{ObjectKey, object};
use scantling_cluster::Write;
use scantling_observed::PLATFORM_NAME;
use serde_json::json;

use crate::report::Stop;
use crate::session::Session;

impl Session<'_> {
    /// Writes the version into the platform's spec, so that the operator goes on if this run does not come to its end. Only
    /// for releases that bring an operator, and when there is the kind.
    pub(crate) async fn want(&mut self) -> Result<(), Stop> {
        if self.release.operator.is_none() || !self.options.announce {
            return Ok(());
        }
        let Some(resource) = self.served.by_kind("scantling.dev", "Platform") else { return Ok(()) };
        let api_version = resource.gvk.api_version();
        let live = self.read(&ObjectKey::cluster("scantling.dev", "Platform", PLATFORM_NAME)).await?;
        let spec = json!({"release": {"version": self.report.version}});
        let platform =
            json!({"apiVersion": api_version, "kind": "Platform", "metadata": {"name": PLATFORM_NAME}});
        let write = match live {
            None => {
                let mut object = platform;
                object["spec"] = spec;
                Write::Create { object }
            }
            Some(live) if object::text(&live, "/spec/release/version") == self.report.version => {
                return Ok(());
            }
            // A patch, not an apply: policies may have been applied under the same name.
            Some(_) => {
                Write::MergePatch { object: platform, subresource: None, patch: json!({"spec": spec}) }
            }
        };
        self.write(write).await?;
        Ok(())
    }
}
