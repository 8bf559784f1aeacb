//! A file inside one folder: JSON lines or CSV, written beside its place and moved there when it is whole.

use crate::{
    fault::{Fault, quoted},
    query::OwnedColumn,
};
use shared::{
    format::{write_json_text, write_json_value},
    value::Value,
};
use std::{
    fs::{File, OpenOptions},
    io::{BufWriter, Write as _},
    path::{Component, Path, PathBuf},
};

/// What is written in which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An object a line.
    JsonLines,
    /// A head and a line for each row.
    Csv,
}

impl Form {
    pub(super) fn extension(self) -> &'static str {
        match self {
            Form::JsonLines => "jsonl",
            Form::Csv => "csv",
        }
    }
}

/// A file that is being written. Dropped before it is finished, it leaves nothing.
#[derive(Debug)]
pub(super) struct FileSink {
    out: BufWriter<File>,
    form: Form,
    place: PathBuf,
    /// Where it is written until it is whole.
    part: PathBuf,
    is_finished: bool,
    line: String,
    bytes_max: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

impl FileSink {
    /// A new file of this name in the folder, which is canonical. The name cannot lead out of the folder.
    pub(super) fn create(folder: &Path, name: &str, form: Form, bytes_max: u64) -> Result<Self, Fault> {
        let place = place_in(folder, name)?;
        if place.symlink_metadata().is_ok() {
            let message = format!("file `{}` is there already", quoted(name));
            return Err(Fault::new("exists", message, "choose another `file`").with("argument", "file"));
        }
        let mut part = place.clone().into_os_string();
        part.push(format!(".{:08x}.part", rand::random::<u32>()));
        let part = PathBuf::from(part);
        let file =
            OpenOptions::new().write(true).create_new(true).open(&part).map_err(|error| broken(&error))?;
        Ok(Self {
            out: BufWriter::new(file),
            form,
            place,
            part,
            is_finished: false,
            line: String::new(),
            bytes_max,
            rows: 0,
            bytes: 0,
        })
    }

    /// The head.
    pub(super) fn begin(&mut self, columns: &[OwnedColumn]) -> Result<(), Fault> {
        if self.form == Form::Csv {
            let names: Vec<String> = columns.iter().map(|column| csv_text(&column.name)).collect();
            self.line = names.join(",");
            self.write_line()?;
        }
        Ok(())
    }

    /// One row.
    pub(super) fn row(&mut self, columns: &[OwnedColumn], cells: &[Value<'_>]) -> Result<(), Fault> {
        let mut line = std::mem::take(&mut self.line);
        let mut written = Ok(());
        for (index, (column, cell)) in columns.iter().zip(cells).enumerate() {
            line.push_str(match (self.form, index) {
                (Form::JsonLines, 0) => "{",
                (Form::Csv, 0) => "",
                _ => ",",
            });
            written = written.and_then(|()| match (self.form, cell) {
                (Form::JsonLines, _) => {
                    write_json_text(&column.name, &mut line)?;
                    line.push(':');
                    write_json_value(cell, &mut line)
                }
                (Form::Csv, Value::Null) => Ok(()),
                (Form::Csv, Value::Text(text)) => {
                    line.push_str(&csv_text(text));
                    Ok(())
                }
                (Form::Csv, Value::Timestamp(us)) => {
                    line.push_str(&shared::time::Utc(*us).to_string());
                    Ok(())
                }
                (Form::Csv, Value::Float32(v)) if !v.is_finite() => Ok(()),
                (Form::Csv, Value::Float64(v)) if !v.is_finite() => Ok(()),
                (Form::Csv, _) => write_json_value(cell, &mut line),
            });
        }
        written.map_err(|_| Fault::protocol("a row cannot be written"))?;
        if self.form == Form::JsonLines {
            line.push('}');
        }
        self.line = line;
        self.rows += 1;
        self.write_line()
    }

    fn write_line(&mut self) -> Result<(), Fault> {
        self.line.push('\n');
        self.bytes += self.line.len() as u64;
        if self.bytes > self.bytes_max {
            let message = format!("the file would have more than {} bytes", self.bytes_max);
            return Err(Fault::new("capacity", message, "export less, or allow larger files"));
        }
        self.out.write_all(self.line.as_bytes()).map_err(|error| broken(&error))?;
        self.line.clear();
        Ok(())
    }

    /// All is written: the file gets its name. Returns its bytes.
    pub(super) fn finish(mut self) -> Result<u64, Fault> {
        self.out.flush().and_then(|()| self.out.get_ref().sync_all()).map_err(|error| broken(&error))?;
        // A hard link fails where something has taken the name since; a rename would replace it.
        std::fs::hard_link(&self.part, &self.place).map_err(|error| broken(&error))?;
        self.is_finished = true;
        Ok(self.bytes)
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.part) {
            tracing::warn!(%error, finished = self.is_finished, "a part of an export could not be removed");
        }
    }
}

fn broken(error: &std::io::Error) -> Fault {
    Fault::new("export_failed", format!("the file cannot be written: {error}"), "look at the export folder")
}

/// Where a file of this name is. Its folders must be there, and be in the folder also behind symbolic links.
fn place_in(folder: &Path, name: &str) -> Result<PathBuf, Fault> {
    let refuse = |why: &str| {
        let message = format!("file `{}` cannot be written: {why}", quoted(name));
        let action = "give a name inside the export folder, such as june.csv";
        Fault::new("wrong_argument", message, action).with("argument", "file")
    };
    if name.contains(|c: char| c.is_control() || c == '\\' || c == ':') {
        return Err(refuse("its name has characters that no file here has"));
    }
    let path = Path::new(name);
    let is_inside = path.components().all(|component| matches!(component, Component::Normal(_)));
    let file = path.file_name().filter(|_| is_inside && !name.ends_with('/'));
    let Some(file) = file else { return Err(refuse("it is not inside the export folder")) };
    if file.to_string_lossy().starts_with('.') {
        return Err(refuse("its name begins with a dot"));
    }
    let parent = folder.join(path.parent().unwrap_or(Path::new("")));
    let parent = parent.canonicalize().map_err(|_| refuse("its folder is not there"))?;
    if !parent.starts_with(folder) {
        return Err(refuse("a link leads out of the export folder"));
    }
    Ok(parent.join(file))
}

/// A text as CSV; quoted where it must be. What a spreadsheet would run stays a text.
fn csv_text(text: &str) -> String {
    let needs_quotes = text.contains([',', '"', '\n', '\r']) || text.starts_with(['=', '+', '-', '@', '\t']);
    if needs_quotes { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::value::ColumnType;

    fn columns() -> Vec<OwnedColumn> {
        ["a", "b,"]
            .map(|name| OwnedColumn { name: name.into(), kind: ColumnType::Text, unit: String::new() })
            .into()
    }

    fn written(form: Form, bytes_max: u64) -> Result<String, Fault> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let mut sink = FileSink::create(&path, "x", form, bytes_max)?;
        let result = sink.begin(&columns()).and_then(|()| {
            sink.row(&columns(), &[Value::Text("x\"\n"), Value::Null])?;
            sink.row(&columns(), &[Value::Int(1), Value::Float64(f64::NAN)])
        });
        assert!(!path.join("x").exists(), "it has its name when it is whole, not before");
        if let Err(fault) = result {
            drop(sink);
            assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0, "nothing is left of what failed");
            return Err(fault);
        }
        sink.finish()?;
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
        Ok(std::fs::read_to_string(path.join("x")).unwrap())
    }

    #[test]
    fn rows_are_lines() {
        assert_eq!(written(Form::Csv, 99).unwrap(), "a,\"b,\"\n\"x\"\"\n\",\n1,\n");
        assert_eq!(
            written(Form::JsonLines, 99).unwrap(),
            "{\"a\":\"x\\\"\\n\",\"b,\":null}\n{\"a\":1,\"b,\":null}\n"
        );
        assert_eq!(written(Form::Csv, 10).unwrap_err().code, "capacity");
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let outside = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        std::fs::create_dir(path.join("in")).unwrap();
        std::os::unix::fs::symlink(outside.path(), path.join("out")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("new"), path.join("link.csv")).unwrap();
        let create =
            |name: &str| FileSink::create(&path, name, Form::Csv, 9).map(drop).map_err(|fault| fault.code);
        for name in [
            "../x",
            "/tmp/x",
            "in/../../x",
            "out/x",
            "",
            ".",
            "..",
            "in/",
            "a\0b",
            "c:x",
            "no/x",
            ".x",
            "in/..",
            "./x",
        ] {
            assert_eq!(create(name), Err("wrong_argument"), "{name:?}");
        }
        assert_eq!(create("link.csv"), Err("exists"));
        assert_eq!((create("x.csv"), create("in/x.csv")), (Ok(()), Ok(())));
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
