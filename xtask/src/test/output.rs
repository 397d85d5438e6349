//! What test programs print, read line by line.

/// The sum over all test programs of a run.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct Read {
    /// Tests that passed and did not skip themselves.
    pub(super) passed: u64,
    /// Tests that failed.
    pub(super) failed: u64,
    /// Programs that said of themselves that they failed.
    pub(super) programs_failed: u64,
    /// Why tests were skipped, one entry for each.
    pub(super) skipped: Vec<String>,
}

/// The part of a program's output that a line belongs to.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Between two programs, or one that is not made of `#[test]` functions.
    #[default]
    Outside,
    /// One line for each test.
    Tests,
    /// What tests that passed printed.
    Successes,
    /// What tests that failed printed: shown as it is.
    Failures,
}

/// Reads the output of test programs that were run with `--show-output`.
#[derive(Default)]
pub(super) struct Reading {
    read: Read,
    part: Part,
    /// The lines of the program so far, for the case that it dies.
    lines: Vec<String>,
    /// Reasons that its tests gave for skipping themselves.
    skipped: Vec<String>,
    /// Whether the test whose output is being read has given its reason.
    told: bool,
}

impl Reading {
    /// Takes the next line, and shows what a person must see of it.
    pub(super) fn line(&mut self, line: &str, show: &mut impl FnMut(&str)) {
        if is_start(line) {
            self.died(show);
            self.part = Part::Tests;
        }
        if let Some((passed, failed)) = result(line) {
            self.result(line, passed, failed, show);
            return;
        }
        if let Some(name) = ignored(line) {
            self.read.skipped.push(format!("ignored: {name}"));
        }
        match (self.part, line) {
            (Part::Tests, "successes:") => self.part = Part::Successes,
            (Part::Tests | Part::Successes, "failures:") => self.part = Part::Failures,
            (Part::Successes, _) if line.starts_with("---- ") && line.ends_with(" stdout ----") => {
                self.told = false;
            }
            _ => {}
        }
        if matches!(self.part, Part::Successes | Part::Outside)
            && !self.told
            && let Some(reason) = line.strip_prefix("skipped: ")
        {
            self.skipped.push(reason.to_owned());
            self.told = self.part == Part::Successes;
        }
        let is_seen = match self.part {
            Part::Failures => true,
            Part::Outside => !line.trim().is_empty() && !line.starts_with("all doctests ran in "),
            Part::Tests => line.starts_with("test ") && line.ends_with("FAILED"),
            Part::Successes => false,
        };
        if is_seen {
            show(line);
        } else {
            self.lines.push(line.to_owned());
        }
    }

    fn result(&mut self, line: &str, passed: u64, failed: u64, show: &mut impl FnMut(&str)) {
        if failed > 0 || line.starts_with("test result: FAILED") {
            show(line);
            self.read.programs_failed += 1;
        }
        // A test that skips itself passes as far as its program knows.
        self.skipped.truncate(usize::try_from(passed).unwrap_or(usize::MAX));
        self.read.passed += passed - self.skipped.len() as u64;
        self.read.failed += failed;
        self.read.skipped.append(&mut self.skipped);
        self.part = Part::Outside;
        self.lines.clear();
        self.told = false;
    }

    /// Shows what a program printed that began and gave no result. Its failure is counted by what cargo says of it.
    fn died(&mut self, show: &mut impl FnMut(&str)) {
        if self.part != Part::Outside {
            show("a test program ended without a result; this is what it had printed:");
            self.lines.iter().for_each(|line| show(line));
        }
        self.lines.clear();
        self.skipped.clear();
        self.told = false;
        self.part = Part::Outside;
    }

    /// The sum, after the last line.
    pub(super) fn finish(mut self, show: &mut impl FnMut(&str)) -> Read {
        self.died(show);
        self.read
    }
}

/// Whether a program of `#[test]` functions begins: `running 3 tests`.
fn is_start(line: &str) -> bool {
    let number = line
        .strip_prefix("running ")
        .and_then(|rest| rest.strip_suffix(" tests").or(rest.strip_suffix(" test")));
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// The name in a line `test NAME ... ignored`, with or without a reason.
fn ignored(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    (rest.is_empty() || rest.starts_with(',')).then_some(name)
}

/// Passed and failed of a line `test result: ok. 3 passed; 0 failed; …`.
fn result(line: &str) -> Option<(u64, u64)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number = |word: &str| {
        counts.split(';').find_map(|part| part.trim().strip_suffix(word)?.trim().parse::<u64>().ok())
    };
    Some((number("passed")?, number("failed")?))
}

#[cfg(test)]
mod tests {
    use super::{Read, Reading};

    fn read(output: &str) -> (Read, Vec<String>) {
        let mut shown = Vec::new();
        let mut reading = Reading::default();
        for line in output.lines() {
            reading.line(line, &mut |line: &str| shown.push(line.to_owned()));
        }
        let read = reading.finish(&mut |line: &str| shown.push(line.to_owned()));
        (read, shown)
    }

    const GOOD: &str = "\nrunning 2 tests\ntest a ... ok\ntest b ... ok\n\nsuccesses:\n\n---- a stdout ----\nhello\n\n\n\
        successes:\n    a\n    b\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\n";

    const BAD: &str = "\nrunning 3 tests\ntest a ... ok\ntest b ... FAILED\ntest c ... ok\n\nsuccesses:\n\n---- a stdout ----\n\
        hello\n\n\nsuccesses:\n    a\n    c\n\nfailures:\n\n---- b stdout ----\n\nthread 'b' panicked at src/lib.rs:3:5:\n\
        assertion `left == right` failed\n  left: 1\n right: 2\n\n\nfailures:\n    b\n\n\
        test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n";

    #[test]
    fn programs_that_pass_are_counted_and_not_shown() {
        let (read, shown) = read(&GOOD.repeat(2));
        assert_eq!(read, Read { passed: 4, ..Read::default() });
        assert_eq!(shown, Vec::<String>::new());
    }

    #[test]
    fn failures_are_shown_whole() {
        let (read, shown) = read(&format!("{GOOD}{BAD}{GOOD}"));
        assert_eq!(read, Read { passed: 6, failed: 1, programs_failed: 1, skipped: Vec::new() });
        let whole = BAD
            .split_once("failures:")
            .map(|(_, rest)| format!("test b ... FAILED\nfailures:{}", rest.trim_end()));
        assert_eq!(Some(shown.join("\n")), whole);
    }

    #[test]
    fn a_test_that_skips_itself_is_skipped_once_and_has_not_passed() {
        let output = GOOD.replace("hello", "skipped: no kubectl\nskipped: no helm");
        let (read, _) = read(&output);
        assert_eq!(read, Read { passed: 1, skipped: vec!["no kubectl".to_owned()], ..Read::default() });
    }

    #[test]
    fn what_a_failed_test_prints_skips_nothing() {
        let (read, _) = read(&BAD.replace("  left: 1", "skipped: no kubectl"));
        assert_eq!(read, Read { passed: 2, failed: 1, programs_failed: 1, skipped: Vec::new() });
    }

    #[test]
    fn a_program_skips_no_more_than_it_has_tests() {
        let output = "skipped: one\nskipped: two\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
        let (read, _) = read(output);
        assert_eq!(read, Read { skipped: vec!["one".to_owned()], ..Read::default() });
    }

    #[test]
    fn ignored_tests_are_skipped() {
        let output = "running 2 tests\ntest a ... ignored\ntest src/lib.rs - b (line 3) ... ignored, takes an hour\n\n\
            test result: ok. 0 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out\n";
        let (read, _) = read(output);
        let skipped = vec!["ignored: a".to_owned(), "ignored: src/lib.rs - b (line 3)".to_owned()];
        assert_eq!(read, Read { skipped, ..Read::default() });
    }

    #[test]
    fn a_program_that_dies_is_shown_and_takes_nothing_from_the_next() {
        let (read, shown) = read(&format!("running 2 tests\ntest a ... ok\n{GOOD}running 1 test\n"));
        assert_eq!(read, Read { passed: 2, ..Read::default() });
        assert_eq!(shown.iter().filter(|line| line.contains("without a result")).count(), 2);
        assert!(shown.contains(&"test a ... ok".to_owned()));
    }
}
