//! Hides in an answer what is another each time, and nothing else; all else is compared byte for byte.
//!
//! | What                                                            | becomes                       |
//! |-----------------------------------------------------------------|-------------------------------|
//! | a moment, such as `2026-11-18T15:11:50.16786Z`                  | `<time>`                      |
//! | `0 to 17` in the plan of a query, the rows that a board has     | `0 to <rows>`                 |
//! | the value of a field of [`FIELDS`], or of those that a call names: `"field":value`, `│ field │ value │` | `<field>` |
//! | in a table where one of these was found: more spaces, more `─`  | one, as widths depend on them |
//! | a text of more than one line                                    | a list of its lines           |

use serde_json::Value;

/// Fields whose values are others each time, whichever tool answers: ids of a run, durations, counters that go on,
/// and the version, which a release changes.
const FIELDS: [&str; 12] = [
    "epoch",
    "firmware",
    "job",
    "link_frames_in",
    "link_frames_out",
    "next_cursor",
    "path",
    "round_trip_ms",
    "Time",
    "uptime_us",
    "uri",
    "version",
];

/// An answer without what is another each time; `fields` are those of this call besides [`FIELDS`].
pub(crate) fn normal(answer: &Value, fields: &[&str]) -> Value {
    match answer {
        Value::String(text) => {
            let text = normal_text(text, fields);
            match text.contains('\n') {
                true => text.split('\n').collect(),
                false => text.into(),
            }
        }
        Value::Array(items) => items.iter().map(|item| normal(item, fields)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), normal(member, fields))).collect()
        }
        other => other.clone(),
    }
}

fn normal_text(text: &str, fields: &[&str]) -> String {
    let mut hidden = without_row_counts(&without_times(text));
    for field in FIELDS.iter().chain(fields) {
        hidden = without_field(&hidden, field);
    }
    if hidden != text && hidden.contains('│') {
        hidden = without_runs(&without_runs(&hidden, ' '), '─');
    }
    hidden
}

fn without_times(text: &str) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        if let Some(behind) = behind_time(rest) {
            kept += "<time>";
            rest = behind;
        } else {
            kept.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    kept
}

/// What comes behind the moment that a text begins with.
fn behind_time(text: &str) -> Option<&str> {
    const SHAPE: &str = "0000-00-00T00:00:00";
    let begins = text.get(..SHAPE.len())?;
    let fits = |(shape, byte): (u8, u8)| if shape == b'0' { byte.is_ascii_digit() } else { byte == shape };
    if !SHAPE.bytes().zip(begins.bytes()).all(fits) {
        return None;
    }
    let rest = &text[SHAPE.len()..];
    let rest = rest.strip_prefix('.').map_or(rest, without_number);
    rest.strip_prefix('Z')
}

fn without_number(text: &str) -> &str {
    text.trim_start_matches(|character: char| character.is_ascii_digit())
}

fn without_row_counts(text: &str) -> String {
    hidden_behind(text, "0 to ", "<rows>", |rest| Some(without_number(rest)).filter(|behind| *behind != rest))
}

/// In JSON, or in a table whose rows are a name and a value.
fn without_field(text: &str, field: &str) -> String {
    let hidden = format!("<{field}>");
    let json = hidden_behind(text, &format!("\"{field}\":\""), &hidden, |rest| {
        rest.find('"').map(|end| &rest[end..])
    });
    let json = hidden_behind(&json, &format!("\"{field}\":"), &hidden, |rest| {
        rest.find([',', '}', ']']).filter(|_| !rest.starts_with('"')).map(|end| &rest[end..])
    });
    let lines = json.split('\n').map(|line| {
        let mut cells: Vec<&str> = line.split('│').collect();
        if cells.len() == 4 && cells[1].trim() == field {
            let value = format!(" {hidden} ");
            cells[2] = &value;
            return cells.join("│");
        }
        line.to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Replaces what stands behind a marker, up to where `behind` says that the rest begins.
fn hidden_behind(
    text: &str,
    marker: &str,
    placeholder: &str,
    behind: impl Fn(&str) -> Option<&str>,
) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(marker) {
        let (before, value) = rest.split_at(at + marker.len());
        kept += before;
        rest = value;
        if let Some(behind) = behind(value) {
            kept += placeholder;
            rest = behind;
        }
    }
    kept + rest
}

fn without_runs(text: &str, of: char) -> String {
    let mut kept = String::new();
    for character in text.chars() {
        if character != of || !kept.ends_with(of) {
            kept.push(character);
        }
    }
    kept
}

#[test]
fn what_changes_from_run_to_run_is_hidden_and_nothing_else() {
    let hides = |text: &str, expected: &str| assert_eq!(normal_text(text, &["rows"]), expected);
    hides(r#"{"as_of":"2026-11-18T15:11:50.16786Z","n":2}"#, r#"{"as_of":"<time>","n":2}"#);
    hides("2026-11-18T15:11:50Z 2026-11-18 15:11", "<time> 2026-11-18 15:11");
    hides(r#"[{"rows":12},{"rows":3,"x":1}]"#, r#"[{"rows":<rows>},{"rows":<rows>,"x":1}]"#);
    hides(r#"{"job":"14aeaf8b","jobs":"a","Time":"00:01"}"#, r#"{"job":"<job>","jobs":"a","Time":"<Time>"}"#);
    hides(r#""detail":"0 to 17""#, r#""detail":"0 to <rows>""#);
    hides("go 0 to nowhere,  twice  two spaces", "go 0 to nowhere,  twice  two spaces");
    hides("┌────┬────┐\n│ ab  │ 12 │\n", "┌────┬────┐\n│ ab  │ 12 │\n");
    hides("┌───────────┐\n│ uptime_us  │   12 │\n", "┌─┐\n│ uptime_us │ <uptime_us> │\n");
    let table = serde_json::json!({"text": "a\nb", "count": 7});
    assert_eq!(normal(&table, &[]), serde_json::json!({"text": ["a", "b"], "count": 7}));
}
