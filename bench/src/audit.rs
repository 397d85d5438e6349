//! Reading the dump of a big cluster: bytes in a second and memory, at a tenth, once and three times the size, beside `jq`.

mod generate;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use camino::Utf8PathBuf;
use scantling_snapshot::{Limits, read};

use generate::Size;

/// 5,000 nodes and 150,000 pods.
const ONCE: Size = Size { nodes: 5_000, pods: 150_000 };
/// Pods of the must-gather, each of them twice in it.
const MUST_GATHER: Size = Size { nodes: 100, pods: 6_000 };
/// From this seed everything is made.
const SEED: u64 = 7;
/// What jq does with the same lists: the image that each container runs, beside the one that it asks for. Nothing is judged.
const JOIN: &str = r#".items[] | . as $pod | .status.containerStatuses[]? as $status
    | .spec.containers[] | select(.name == $status.name)
    | [$pod.metadata.namespace, $pod.metadata.name, .name, .image, $status.imageID] | join(" ")"#;

/// How often it is looked how much memory a process has; what it had at most is told by the system itself.
const LOOKED: Duration = Duration::from_millis(10);

/// Measures, with this binary.
pub(crate) fn measure(binary: &Path, runs: usize) -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("failed to make a folder for the dumps")?;
    let mut per_byte = Vec::new();
    for (name, tenths) in [("0.1", 1), ("1", 10), ("3", 30)] {
        let size = Size { nodes: ONCE.nodes * tenths / 10, pods: ONCE.pods * tenths / 10 };
        let dump = folder.path().join(name);
        std::fs::create_dir(&dump)?;
        generate::lists(&dump, size, SEED)?;
        let what = format!("{} nodes, {} pods as JSON", size.nodes, size.pods);
        per_byte.push(child(&dump, &what, runs)?);
        whole(binary, &dump, &what, runs)?;
        if tenths == 10 {
            jq(&dump.join("pods.json"), runs)?;
        }
        std::fs::remove_dir_all(&dump)?;
    }
    if let [first, .., last] = per_byte.as_slice() {
        println!("time for a byte at thirty times the size: {:.2} of the smallest's", last / first);
    }
    generate::must_gather(folder.path(), MUST_GATHER, SEED)?;
    child(
        &folder.path().join("must-gather"),
        &format!("must-gather of {} pods as YAML", MUST_GATHER.pods),
        runs,
    )?;
    Ok(())
}

/// Reads in a process of its own, so that its memory is that of one reading; the time for a byte.
fn child(dump: &Path, what: &str, runs: usize) -> anyhow::Result<f64> {
    let mut results = Vec::new();
    for _ in 0..runs.max(1) {
        let output = Command::new(std::env::current_exe()?)
            .arg("--read")
            .arg(dump)
            .stderr(Stdio::inherit())
            .output()?;
        anyhow::ensure!(output.status.success(), "reading failed: {}", output.status);
        let text = String::from_utf8(output.stdout)?;
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [seconds, bytes, objects, memory] = numbers.as_slice() else {
            anyhow::bail!("reading said {text:?}");
        };
        results.push((*seconds, *bytes, *objects, *memory));
    }
    results.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (seconds, bytes, objects, memory) = results.get(results.len() / 2).copied().unwrap_or_default();
    println!(
        "read {what}: {seconds:.3} s, {:.0} MB, {:.0} MB/s, {objects} objects, {memory:.0} MB of memory",
        bytes / 1e6,
        bytes / 1e6 / seconds
    );
    Ok(seconds / bytes)
}

/// The whole command: reading, judging, and the report as data.
fn whole(binary: &Path, dump: &Path, what: &str, runs: usize) -> anyhow::Result<()> {
    let mut results = Vec::new();
    for _ in 0..runs.max(1) {
        let started = Instant::now();
        let mut process = Command::new(binary)
            .args(["audit", "--output", "json", "--snapshot"])
            .arg(dump)
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("failed to run {}", binary.display()))?;
        let status = format!("/proc/{}/status", process.id());
        let mut memory = 0;
        let code = loop {
            memory = peak_memory(&status).unwrap_or(memory);
            match process.try_wait()? {
                Some(code) => break code,
                None => std::thread::sleep(LOOKED),
            }
        };
        // 1 means that it found what it looked for.
        anyhow::ensure!(matches!(code.code(), Some(0 | 1)), "scantling audit failed: {code}");
        results.push((started.elapsed(), memory));
    }
    results.sort();
    let (time, memory) = results.get(results.len() / 2).copied().unwrap_or_default();
    let mut bytes = 0;
    for file in std::fs::read_dir(dump)? {
        bytes += file?.metadata()?.len();
    }
    let rate = crate::mega_per_second(bytes, time);
    println!("scantling audit, {what}: {}, {rate:.0} MB/s, {memory} MB of memory", crate::shown(time));
    Ok(())
}

/// What [`child`] starts: reads and says time, bytes, objects and the most memory.
pub(crate) fn read_once(dump: PathBuf) -> anyhow::Result<()> {
    let path =
        Utf8PathBuf::from_path_buf(dump).map_err(|path| anyhow::anyhow!("{} is no UTF-8", path.display()))?;
    let started = Instant::now();
    let snapshot = read(&[path], &Limits::default(), &mut |_| {})?;
    let time = started.elapsed();
    anyhow::ensure!(
        snapshot.skipped.is_empty(),
        "not read: {}",
        snapshot.skipped.first().map(ToString::to_string).unwrap_or_default()
    );
    let objects = snapshot.observed.len() + snapshot.observed.held_records();
    println!(
        "{} {} {objects} {}",
        time.as_secs_f64(),
        snapshot.bytes,
        peak_memory("/proc/self/status").unwrap_or_default()
    );
    Ok(())
}

/// Megabytes that a process had at most, from what the system says of it.
fn peak_memory(status: &str) -> Option<u64> {
    let status = std::fs::read_to_string(status).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes / 1024)
}

/// What people use when they have nothing: a join of the same list.
fn jq(pods: &Path, runs: usize) -> anyhow::Result<()> {
    if Command::new("jq").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        println!("jq: left out, it is not installed");
        return Ok(());
    }
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..runs.clamp(1, 3) {
        let started = Instant::now();
        let status = Command::new("jq").args(["-r", JOIN]).arg(pods).stdout(Stdio::null()).status()?;
        anyhow::ensure!(status.success(), "jq failed: {status}");
        times.push(started.elapsed());
    }
    times.sort();
    let time = times.get(times.len() / 2).copied().unwrap_or_default();
    let bytes = pods.metadata()?.len();
    println!(
        "jq joins the same pods: {}, {:.0} MB/s",
        crate::shown(time),
        crate::mega_per_second(bytes, time)
    );
    Ok(())
}
