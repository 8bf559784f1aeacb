//! Runs benches and checks what they wrote. A bench is a bench target of the package `picolake-tests`: it
//! measures, prints its table and writes `NAME.json` into the folder that [`RESULTS_VARIABLE`] names.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use clap::builder::PossibleValuesParser;
use serde_json::Value;

use crate::image::{self, IMAGE_VARIABLE};
use crate::workspace::{Workspace, check, step};
use crate::{setup, size};

/// A bench and the image that it boots.
struct Bench {
    name: &'static str,
    /// The program of the QEMU board's package that it runs, and the features that only it needs; none if it boots no
    /// image.
    image: Option<(&'static str, &'static [&'static str])>,
}

/// Every bench, in the order of `all`.
const BENCHES: &[Bench] = &[
    Bench { name: "link", image: Some((image::QEMU_BOARD, &["bench-raw-tcp"])) },
    Bench { name: "board", image: Some(("bench-board", &["bench-board"])) },
    Bench { name: "mcp", image: None },
    Bench { name: "fleet", image: None },
    Bench { name: "archive", image: None },
];

const ALL: &str = "all";

/// Tells a bench the folder for its results, absolute.
const RESULTS_VARIABLE: &str = "PICOLAKE_BENCH_DIR";

/// Tells a bench the bytes of flash that the image takes which people flash.
const FLASH_VARIABLE: &str = "PICOLAKE_FLASH_BYTES";

/// What the command line accepts.
pub(crate) fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(BENCHES.iter().map(|bench| bench.name).chain([ALL]))
}

/// Runs the bench of that name, or all. A missed aim is an error only when `strict`.
pub(crate) fn run(workspace: &Workspace, name: &str, strict: bool) -> Result<()> {
    step("set-up", || setup::run(workspace))?;
    let mut missed = Vec::new();
    for bench in BENCHES.iter().filter(|bench| name == ALL || name == bench.name) {
        missed.extend(step(&format!("bench {}", bench.name), || run_one(workspace, bench))?);
    }
    for aim in &missed {
        println!("missed: {aim}");
    }
    if strict && !missed.is_empty() {
        bail!("{} aims missed", missed.len());
    }
    Ok(())
}

/// Runs one bench and returns the aims that it missed.
fn run_one(workspace: &Workspace, bench: &Bench) -> Result<Vec<String>> {
    let flash_bytes = size::flash_bytes(&image::build(workspace, &[])?)?;
    let build = |(program, features)| image::build_program(workspace, program, features);
    let elf = bench.image.map(build).transpose()?;
    let folder = workspace.bench_results();
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let results = folder.join(format!("{}.json", bench.name));
    remove_if_there(&results)?;

    let mut command = workspace.cargo(&["bench", "-p", "picolake-tests", "--bench", bench.name]);
    if let Some(elf) = &elf {
        command.env(IMAGE_VARIABLE, elf);
    }
    command.env(RESULTS_VARIABLE, &folder);
    check(command.env(FLASH_VARIABLE, flash_bytes.to_string()))?;

    let text = std::fs::read_to_string(&results)
        .with_context(|| format!("the bench ended well, but wrote no {}", results.display()))?;
    let missed = missed_aims(&text).with_context(|| format!("{} is not well-formed", results.display()))?;
    Ok(missed.into_iter().map(|aim| format!("{}: {aim}", bench.name)).collect())
}

/// Old results must not pass for new ones.
fn remove_if_there(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Checks that results are an array of `{"name", "value", "unit", "aim", "ok"}` and returns those with `ok` false.
fn missed_aims(text: &str) -> Result<Vec<String>> {
    let results: Vec<Value> = serde_json::from_str(text).context("not an array in JSON")?;
    ensure!(!results.is_empty(), "no results in it");
    let mut missed = Vec::new();
    for (index, result) in results.iter().enumerate() {
        let (description, ok) = checked(result).with_context(|| format!("result {index}"))?;
        if !ok {
            missed.push(description);
        }
    }
    Ok(missed)
}

/// A result in words, and whether its aim was reached; a result without an aim misses nothing.
fn checked(result: &Value) -> Result<(String, bool)> {
    const FIELDS: [&str; 5] = ["name", "value", "unit", "aim", "ok"];
    let fields = result.as_object().context("not an object")?;
    for field in FIELDS {
        ensure!(fields.contains_key(field), "`{field}` is missing");
    }
    if let Some(field) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        bail!("`{field}` is unknown");
    }
    let name = fields["name"].as_str().context("`name` is no text")?;
    let value = fields["value"].as_f64().context("`value` is no number")?;
    let unit = fields["unit"].as_str().context("`unit` is no text")?;
    let aim = match &fields["aim"] {
        Value::Null => None,
        Value::Number(aim) => Some(aim.to_string()),
        Value::String(aim) => Some(aim.clone()),
        _ => bail!("`aim` is neither number, text nor null"),
    };
    match (aim, &fields["ok"]) {
        (Some(aim), Value::Bool(ok)) => Ok((format!("{name} is {value} {unit}, aim {aim}"), *ok)),
        (None, Value::Null) => Ok((name.to_owned(), true)),
        _ => bail!("`aim` and `ok` must both be given or both be null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_results_with_a_missed_aim_are_returned() {
        let missed = missed_aims(
            r#"[{"name": "rows", "value": 1, "unit": "1/s", "aim": null, "ok": null},
                {"name": "echo", "value": 0.5, "unit": "ms", "aim": 1, "ok": true},
                {"name": "share of raw TCP", "value": 0.25, "unit": "", "aim": "≥ 0.5", "ok": false}]"#,
        );
        assert_eq!(missed.unwrap(), ["share of raw TCP is 0.25 , aim ≥ 0.5"]);
    }

    #[test]
    fn results_that_are_not_well_formed_are_refused() {
        for text in [
            "",
            "{}",
            "[]",
            "[1]",
            r#"[{"name": "a", "value": 1, "unit": "s", "aim": null}]"#,
            r#"[{"name": "a", "value": "1", "unit": "s", "aim": null, "ok": null}]"#,
            r#"[{"name": "a", "value": null, "unit": "s", "aim": null, "ok": null}]"#,
            r#"[{"name": "a", "value": 1, "unit": "s", "aim": 1, "ok": null}]"#,
            r#"[{"name": "a", "value": 1, "unit": "s", "aim": null, "ok": true}]"#,
            r#"[{"name": "a", "value": 1, "unit": "s", "aim": null, "ok": null, "more": 1}]"#,
        ] {
            assert!(missed_aims(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_bench_is_named_twice_or_all() {
        let mut names: Vec<_> = BENCHES.iter().map(|bench| bench.name).chain([ALL]).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), BENCHES.len() + 1);
    }
}
