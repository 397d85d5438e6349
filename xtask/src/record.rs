//! `cargo xtask record`: the answers of a real API server to the requests that the sandbox's tests hold it against.

#[path = "../../crates/world/sandbox/tests/recorded/normal.rs"]
mod normal;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// What `cargo xtask record` can be told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Address of a fresh server, such as `https://127.0.0.1:6443`.
    #[arg(long)]
    server: String,
    /// Bearer token of a cluster admin.
    #[arg(long, env = "TOKEN", hide_env_values = true)]
    token: String,
    /// Version whose recording is written.
    #[arg(long, default_value = "1.35")]
    version: String,
}

/// Sends every request of the recording to the server and writes its answers in place of the old ones.
///
/// A line may say `pause`: seconds to wait before it, for controllers that make what the request needs. What a line
/// excepts is left as it is: after a recording, the tests say which exceptions have to be looked at.
pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    let path = root.join(format!("crates/world/sandbox/tests/recorded/{}.jsonl", arguments.version));
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut written = String::new();
    for (number, line) in text.lines().enumerate() {
        let mut exchange: Value = serde_json::from_str(line)
            .with_context(|| format!("line {} of {}", number + 1, path.display()))?;
        if let Some(seconds) = exchange["pause"].as_f64() {
            std::thread::sleep(Duration::from_secs_f64(seconds));
        }
        let (code, answer) =
            send(arguments, &exchange["request"]).with_context(|| format!("line {}", number + 1))?;
        exchange["code"] = json!(code);
        exchange["answer"] = normal::normal(&answer);
        written.push_str(&exchange.to_string());
        written.push('\n');
    }
    std::fs::write(&path, written).with_context(|| format!("writing {}", path.display()))
}

/// One request by curl: the code and the answer, which is text if it is no JSON.
fn send(arguments: &Arguments, request: &Value) -> Result<(u16, Value)> {
    let text = |field: &str, otherwise: &'static str| request[field].as_str().unwrap_or(otherwise).to_owned();
    let body = match &request["body"] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut curl = Command::new("curl");
    // The token goes through a pipe, not through the list of arguments that every process can see.
    curl.args(["--silent", "--show-error", "--insecure", "--max-time", "30", "--config", "-"])
        .args(["--request", &text("method", "GET"), "--user-agent", "differ/1.0"])
        .args(["--header", &format!("Accept: {}", text("accept", "application/json"))])
        .args(["--header", &format!("Content-Type: {}", text("contentType", "application/json"))])
        .args(["--write-out", "\n%{http_code}"]);
    if !request["body"].is_null() {
        curl.args(["--data-binary", &body]);
    }
    curl.arg(format!("{}{}", arguments.server, text("path", "/")));
    let mut child = curl.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("running curl")?;
    if let Some(mut input) = child.stdin.take() {
        writeln!(input, "header = \"Authorization: Bearer {}\"", arguments.token)?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("curl: {}", output.status);
    }
    let output = String::from_utf8(output.stdout)?;
    let (answer, code) = output.rsplit_once('\n').context("curl wrote no code")?;
    Ok((code.parse()?, serde_json::from_str(answer).unwrap_or_else(|_| json!(answer))))
}
