//! Counts of what was served, and their text for Prometheus. Holds no name that a client made up.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Counters since the start.
#[derive(Debug, Default)]
pub struct Metrics {
    counts: Mutex<Counts>,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    calls: BTreeMap<String, Calls>,
    refused: BTreeMap<&'static str, u64>,
    query_rows: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    good: u64,
    failed: u64,
    time: Duration,
}

impl Metrics {
    /// A call of a tool has ended. `tool` is the name of one that there is, or `unknown`.
    pub(super) fn call(&self, tool: &str, is_error: bool, time: Duration) {
        self.change(|counts| {
            let calls = match counts.calls.get_mut(tool) {
                Some(calls) => calls,
                None => counts.calls.entry(tool.into()).or_default(),
            };
            calls.good += u64::from(!is_error);
            calls.failed += u64::from(is_error);
            calls.time += time;
        });
    }

    /// A request was refused before it reached a tool.
    pub(super) fn refused(&self, why: &'static str) {
        self.change(|counts| *counts.refused.entry(why).or_default() += 1);
    }

    /// Rows were streamed.
    pub(super) fn query_rows(&self, rows: u64) {
        self.change(|counts| counts.query_rows += rows);
    }

    /// Everything in Prometheus' text format, with gauges that somebody else counts.
    pub(super) fn text(&self, gauges: &[(&str, &str, usize)]) -> String {
        let counts = self.change(|counts| counts.clone());
        let mut out = String::new();
        let head = |out: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}"); // a String takes everything
        };
        head(&mut out, "picolake_calls_total", "counter", "Calls of tools that have ended.");
        for (tool, calls) in &counts.calls {
            for (outcome, count) in [("ok", calls.good), ("error", calls.failed)] {
                let _ =
                    writeln!(out, "picolake_calls_total{{tool=\"{tool}\",outcome=\"{outcome}\"}} {count}");
            }
        }
        head(&mut out, "picolake_call_seconds_total", "counter", "Time that calls have taken.");
        for (tool, calls) in &counts.calls {
            let seconds = calls.time.as_secs_f64();
            let _ = writeln!(out, "picolake_call_seconds_total{{tool=\"{tool}\"}} {seconds}");
        }
        head(&mut out, "picolake_http_refused_total", "counter", "HTTP requests refused, by reason.");
        for (why, count) in &counts.refused {
            let _ = writeln!(out, "picolake_http_refused_total{{reason=\"{why}\"}} {count}");
        }
        head(&mut out, "picolake_query_rows_total", "counter", "Rows streamed by POST /query.");
        let _ = writeln!(out, "picolake_query_rows_total {}", counts.query_rows);
        for (name, help, value) in gauges {
            head(&mut out, name, "gauge", help);
            let _ = writeln!(out, "{name} {value}");
        }
        out
    }

    fn change<T>(&self, change: impl FnOnce(&mut Counts) -> T) -> T {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_in_the_text_once() {
        let metrics = Metrics::default();
        metrics.call("query", false, Duration::from_millis(1500));
        metrics.call("query", true, Duration::from_millis(500));
        metrics.refused("host");
        metrics.query_rows(7);
        let text = metrics.text(&[("picolake_sessions", "Sessions.", 2)]);
        for line in [
            "picolake_calls_total{tool=\"query\",outcome=\"ok\"} 1",
            "picolake_calls_total{tool=\"query\",outcome=\"error\"} 1",
            "picolake_call_seconds_total{tool=\"query\"} 2",
            "picolake_http_refused_total{reason=\"host\"} 1",
            "picolake_query_rows_total 7",
            "# TYPE picolake_sessions gauge",
            "picolake_sessions 2",
        ] {
            assert_eq!(text.lines().filter(|found| *found == line).count(), 1, "{line}\n{text}");
        }
    }
}
