//! Counts what test programs print, line by line. Reads no stream itself.
//!
//! A test that finds it cannot run (no QEMU, no Node) returns after one line on stderr that begins with
//! `skipped: `. Its test program counts it as passed; here it is counted as skipped only.

use std::fmt;

/// The counts over all test programs of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
    skipped_by_themselves: u64,
    programs: u64,
    failed_names: Vec<String>,
}

impl Tally {
    /// Takes a line of a test program's stdout.
    pub(crate) fn read_stdout(&mut self, line: &str) {
        if let Some([passed, failed, ignored]) = result_counts(line) {
            self.passed += passed;
            self.failed += failed;
            self.ignored += ignored;
            self.programs += 1;
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failed_names.push(name.to_owned());
        }
    }

    /// Takes a line of a test program's stderr.
    pub(crate) fn read_stderr(&mut self, line: &str) {
        if line.starts_with("skipped: ") {
            self.skipped_by_themselves += 1;
        }
    }

    /// A failed step counts as one failure where no failed test explains it, so that the counts never look green.
    pub(crate) fn count_failed_step(&mut self) {
        self.failed = self.failed.max(1);
    }

    /// How many tests failed.
    pub(crate) fn failed(&self) -> u64 {
        self.failed
    }

    /// How many test programs reported a result.
    pub(crate) fn programs(&self) -> u64 {
        self.programs
    }

    /// The names of the failed tests, as printed.
    pub(crate) fn failed_names(&self) -> &[String] {
        &self.failed_names
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passed = self.passed.saturating_sub(self.skipped_by_themselves);
        let skipped = self.ignored + self.skipped_by_themselves;
        write!(f, "{passed} passed, {} failed, {skipped} skipped", self.failed)
    }
}

/// Passed, failed and ignored of `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; …`.
fn result_counts(line: &str) -> Option<[u64; 3]> {
    let (_verdict, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut counts = counts.split("; ");
    let mut next =
        |what: &str| -> Option<u64> { counts.next()?.strip_suffix(what)?.strip_suffix(' ')?.parse().ok() };
    Some([next("passed")?, next("failed")?, next("ignored")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stdout: &[&str], stderr: &[&str]) -> Tally {
        let mut tally = Tally::default();
        stdout.iter().for_each(|line| tally.read_stdout(line));
        stderr.iter().for_each(|line| tally.read_stderr(line));
        tally
    }

    #[test]
    fn the_counts_of_all_programs_are_summed() {
        let tally = read(
            &[
                "running 4 tests",
                "test a ... ok",
                "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s",
                "test frame::b ... FAILED",
                "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.00s",
            ],
            &["   Compiling shared v0.1.0"],
        );
        assert_eq!(tally.to_string(), "13 passed, 2 failed, 1 skipped");
        assert_eq!((tally.programs(), tally.failed()), (2, 2));
        assert_eq!(tally.failed_names(), ["frame::b"]);
    }

    #[test]
    fn a_test_that_skips_itself_is_skipped_and_not_passed() {
        let result =
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s";
        let tally =
            read(&[result], &["skipped: no qemu-system-arm", "not skipped: this", "skipped: no node"]);
        assert_eq!(tally.to_string(), "1 passed, 0 failed, 3 skipped");
    }

    #[test]
    fn lines_that_only_look_like_a_result_are_not_counted() {
        let lines = [
            "test result: ok",
            "test result: ok. many passed; 0 failed; 0 ignored",
            "test result: ok. 3 passed",
            "test result: ok. 3passed; 0 failed; 0 ignored;",
            " test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured",
            "the test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured",
        ];
        assert_eq!(read(&lines, &[]), Tally::default());
    }

    #[test]
    fn a_failed_step_never_looks_green_and_never_counts_twice() {
        let mut tally = Tally::default();
        tally.count_failed_step();
        assert_eq!(tally.to_string(), "0 passed, 1 failed, 0 skipped");
        let mut tally = read(&["test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured"], &[]);
        tally.count_failed_step();
        assert_eq!(tally.to_string(), "1 passed, 2 failed, 0 skipped");
    }
}
