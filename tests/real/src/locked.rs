//! The registry once more, behind a password that can be changed.

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::cluster::RealCluster;
use crate::files::{self, LOCKED};

/// Somebody whom the registry lets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Password {
    text: &'static str,
    /// As bcrypt, which the registry reads, and which nothing here can make.
    hash: &'static str,
}

/// Two passwords, one to begin with and one to change to.
pub const PASSWORDS: [Password; 2] = [
    Password { text: "first-4711", hash: "$2b$05$abcdefghijklmnopqrstuuGC.MfO0ZSqZSbH0QPN6OX5zLGavvilu" },
    Password { text: "second-4712", hash: "$2b$05$abcdefghijklmnopqrstuuNltn4MkZ/fUo9QA648qMMjEby4DIqim" },
];
const USER: &str = "puller";

impl Password {
    /// The data of a pull secret of type `kubernetes.io/dockerconfigjson`, as `stringData`.
    pub fn pull_secret(self) -> Value {
        let config = json!({"auths": {LOCKED: {"username": USER, "password": self.text}}});
        json!({".dockerconfigjson": config.to_string()})
    }
}

impl RealCluster {
    /// An address at which the registry has the same images and lets in who knows the password. Called again, another password counts
    /// from then on.
    ///
    /// # Errors
    /// The registry does not start or answer.
    pub fn locked_registry(&mut self, password: Password) -> anyhow::Result<&'static str> {
        let (accounts, settings) = (self.folder.join("accounts"), self.folder.join("locked.yml"));
        // Written beside and moved: the registry reads it whenever it has changed.
        let new = self.folder.join("accounts.new");
        std::fs::write(&new, format!("{USER}:{}\n", password.hash))?;
        std::fs::rename(&new, &accounts)?;
        if settings.exists() {
            return Ok(LOCKED);
        }
        let lock = format!("auth: {{htpasswd: {{realm: tests, path: '{}'}}}}\n", accounts.display());
        std::fs::write(&settings, files::registry(&self.folder, LOCKED) + &lock)?;
        let control = self.control.as_mut().context("there is a control plane")?;
        let arguments = ["serve".to_owned(), settings.display().to_string()];
        control.start("locked-registry", "docker-registry", &arguments)?;
        self.answers("the locked registry", |_| std::net::TcpStream::connect(LOCKED).is_ok())?;
        Ok(LOCKED)
    }
}
