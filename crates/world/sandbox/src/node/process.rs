//! What a container's process does. The sandbox runs no programs; it decides from the command line and the
//! image's labels, by these rules, the first that fits:
//!
//! | what | the process |
//! |---|---|
//! | image label `scantling.dev/sandbox-exit-after: SECONDS` | ends after so many seconds, with the code of `scantling.dev/sandbox-exit-code` (0 if absent) |
//! | image label `scantling.dev/sandbox-ends: WORD`, and WORD is in the command line | ends at once, code 0 |
//! | `true`, `echo …`, `cp …`, `mkdir …`, `chmod …`, `cat …` | ends at once, code 0 |
//! | `false` | ends at once, code 1 |
//! | `exit N` | ends at once, code N |
//! | `sleep N` (seconds; with `s`, `m`, `h`, `d`), not `infinity` | ends after that time, code 0 |
//! | `sh -c "…"` (also bash, ash, dash) | the rules above for the script, if it is one of these commands or several joined by `&&` or `;` |
//! | everything else | runs until it is stopped |
//!
//! The command line is the container's `command` (else the image's entrypoint) followed by its `args` (else
//! the image's own, unless the container has a `command`).
//!
//! Readiness: a container without a readiness probe is ready when it runs. With one, it is ready after the
//! probe's `initialDelaySeconds` and `successThreshold` periods; the image label
//! `scantling.dev/sandbox-ready-after: SECONDS` adds to that, and `never` means never.

use serde_json::Value;

use crate::value::{int, list, text};

/// What a process will do, from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Process {
    /// Runs until it is stopped.
    Runs,
    /// Ends by itself.
    Ends {
        /// Milliseconds after its start.
        after: u64,
        /// Its exit code.
        code: i32,
    },
}

/// The label that ends a process.
const EXIT_AFTER: &str = "scantling.dev/sandbox-exit-after";
/// The label with a word of the command line whose processes end: one program may serve, and do something once.
const ENDS: &str = "scantling.dev/sandbox-ends";
/// The label with the code it ends with.
const EXIT_CODE: &str = "scantling.dev/sandbox-exit-code";
/// The label that delays readiness.
const READY_AFTER: &str = "scantling.dev/sandbox-ready-after";
/// How long the shortest program runs, in milliseconds.
const SHORTEST_MILLIS: u64 = 50;

fn image_label<'a>(description: &'a Value, name: &str) -> Option<&'a str> {
    description.get("config")?.get("Labels")?.get(name)?.as_str()
}

/// What the process of this container does, started from an image with this config.
pub(crate) fn process(container: &Value, description: &Value) -> Process {
    if let Some(seconds) = image_label(description, EXIT_AFTER).and_then(|text| text.parse::<u64>().ok()) {
        let code = image_label(description, EXIT_CODE).and_then(|text| text.parse().ok()).unwrap_or(0);
        return Process::Ends { after: seconds.saturating_mul(1000).max(SHORTEST_MILLIS), code };
    }
    let words = |value: &Value, pointer: &str| -> Vec<String> {
        list(value, pointer).iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
    };
    let command = words(container, "/command");
    let arguments = words(container, "/args");
    let mut line =
        if command.is_empty() { words(description, "/config/Entrypoint") } else { command.clone() };
    if !arguments.is_empty() {
        line.extend(arguments);
    } else if command.is_empty() {
        line.extend(words(description, "/config/Cmd"));
    }
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    if image_label(description, ENDS).is_some_and(|word| line.contains(&word)) {
        return Process::Ends { after: SHORTEST_MILLIS, code: 0 };
    }
    run(&line)
}

fn run(line: &[&str]) -> Process {
    let Some((program, arguments)) = line.split_first() else { return Process::Runs };
    let program = program.rsplit('/').next().unwrap_or(program);
    match (program, arguments) {
        ("sh" | "bash" | "ash" | "dash", ["-c" | "-ec" | "-euc", script, ..]) => shell(script),
        ("busybox", rest) => run(rest),
        ("true" | "echo" | "cp" | "mkdir" | "chmod" | "cat", _) => {
            Process::Ends { after: SHORTEST_MILLIS, code: 0 }
        }
        ("false", _) => Process::Ends { after: SHORTEST_MILLIS, code: 1 },
        ("exit", [code]) => match code.parse() {
            Ok(code) => Process::Ends { after: SHORTEST_MILLIS, code },
            Err(_) => Process::Runs,
        },
        ("sleep", [time]) => match seconds(time) {
            Some(seconds) => {
                Process::Ends { after: seconds.saturating_mul(1000).max(SHORTEST_MILLIS), code: 0 }
            }
            None => Process::Runs,
        },
        _ => Process::Runs,
    }
}

/// A script of simple commands, one after the other; the first that does not end ends the reading.
fn shell(script: &str) -> Process {
    let mut total: u64 = 0;
    let mut last = 0;
    for command in script.replace("&&", ";").split([';', '\n']) {
        let words: Vec<&str> = command.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        match run(&words) {
            Process::Runs => return Process::Runs,
            Process::Ends { after, code } => {
                total = total.saturating_add(after);
                last = code;
                if code != 0 || words.first() == Some(&"exit") {
                    break;
                }
            }
        }
    }
    Process::Ends { after: total.max(SHORTEST_MILLIS), code: last }
}

fn seconds(text: &str) -> Option<u64> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(number) => (number, text.chars().last()?),
        None => (text, 's'),
    };
    let factor = match unit {
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => 1,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Milliseconds from its start until a container is ready; nothing when it never is.
pub(crate) fn ready_after(container: &Value, description: &Value) -> Option<u64> {
    let probe = container.get("readinessProbe").filter(|probe| probe.is_object());
    let startup = container.get("startupProbe").filter(|probe| probe.is_object());
    let mut delay: u64 = 0;
    for probe in [startup, probe].into_iter().flatten() {
        let number = |field: &str, default: i64| {
            let value = int(probe, &format!("/{field}")).unwrap_or(default);
            u64::try_from(value).unwrap_or(0)
        };
        let periods = number("successThreshold", 1).saturating_sub(1);
        let wait = number("initialDelaySeconds", 0)
            .saturating_add(periods.saturating_mul(number("periodSeconds", 10)));
        // A first probe is made within about a second of the start.
        delay = delay.saturating_add(wait.saturating_mul(1000)).saturating_add(1000);
    }
    let label = image_label(description, READY_AFTER);
    if probe.is_some()
        && let Some(label) = label
    {
        let seconds = label.parse::<u64>().ok()?;
        delay = delay.saturating_add(seconds.saturating_mul(1000));
    }
    Some(delay)
}

/// The name of a container in a pod's lists.
pub(crate) fn container_name(container: &Value) -> &str {
    text(container, "/name").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn processes() {
        let ends = |after, code| Process::Ends { after, code };
        for (container, image, expected) in [
            (json!({}), json!({}), Process::Runs),
            (json!({"command": ["/bin/true"]}), json!({}), ends(50, 0)),
            (json!({"command": ["false"]}), json!({}), ends(50, 1)),
            (json!({"command": ["sleep", "30"]}), json!({}), ends(30_000, 0)),
            (json!({"command": ["sleep"], "args": ["2m"]}), json!({}), ends(120_000, 0)),
            (json!({"command": ["sleep", "infinity"]}), json!({}), Process::Runs),
            (json!({"command": ["sh", "-c", "echo hi && sleep 2; exit 3"]}), json!({}), ends(2100, 3)),
            (json!({"command": ["sh", "-c", "exec server"]}), json!({}), Process::Runs),
            (json!({}), json!({"config": {"Entrypoint": ["/bin/sleep"], "Cmd": ["5"]}}), ends(5000, 0)),
            (
                json!({"args": ["7"]}),
                json!({"config": {"Entrypoint": ["sleep"], "Cmd": ["5"]}}),
                ends(7000, 0),
            ),
            (json!({"args": ["fetch", "x"]}), json!({"config": {"Labels": {ENDS: "fetch"}}}), ends(50, 0)),
            (json!({"args": ["serve"]}), json!({"config": {"Labels": {ENDS: "fetch"}}}), Process::Runs),
            (json!({"command": ["server"]}), json!({"config": {"Cmd": ["true"]}}), Process::Runs),
            (
                json!({"command": ["server"]}),
                json!({"config": {"Labels": {EXIT_AFTER: "2", EXIT_CODE: "9"}}}),
                ends(2000, 9),
            ),
        ] {
            assert_eq!(process(&container, &image), expected, "{container} {image}");
        }
    }

    #[test]
    fn readiness() {
        let never = json!({"config": {"Labels": {READY_AFTER: "never"}}});
        let later = json!({"config": {"Labels": {READY_AFTER: "4"}}});
        for (container, image, expected) in [
            (json!({}), json!({}), Some(0)),
            (json!({}), never.clone(), Some(0)),
            (json!({"readinessProbe": {}}), never, None),
            (json!({"readinessProbe": {}}), later, Some(5000)),
            (json!({"readinessProbe": {"initialDelaySeconds": 3}}), json!({}), Some(4000)),
            (json!({"readinessProbe": {"successThreshold": 3, "periodSeconds": 5}}), json!({}), Some(11_000)),
        ] {
            assert_eq!(ready_after(&container, &image), expected, "{container}");
        }
    }
}
