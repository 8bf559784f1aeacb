//! A file inside one folder: JSON lines or CSV, written beside its place and moved there when it is whole. The disk is
//! touched on threads of its own, which may wait for it.

use super::{Excerpt, Folder};
use crate::{
    fault::{Fault, quoted},
    query::OwnedColumn,
};
use cap_std::fs::{Dir, DirEntry, OpenOptions};
use shared::{
    format::{Printable, is_unseen, write_json_text, write_json_value},
    value::Value,
};
use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    path::{Component, Path},
    sync::Arc,
    time::Duration,
};

/// Bytes that are gathered before they are written: few waits for the disk, and little memory.
const CHUNK_BYTES: usize = 64 << 10;
/// Bytes of a character at most.
const CHARACTER_BYTES_MAX: usize = 4;
/// What the name of a file that is not whole ends with, behind eight hexadecimal digits.
const PART_SUFFIX: &str = ".part";
/// A part that is younger may be another bridge's, which has not locked it yet.
const PART_AGE_MIN: Duration = Duration::from_secs(60);
/// Names in the export folder that are looked at for parts that were left.
const NAMES_MAX: usize = 10_000;

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

/// Rows on their way into a file. Dropped before it is finished, it leaves nothing.
#[derive(Debug)]
pub(super) struct FileSink {
    /// None while another thread writes.
    part: Option<PartFile>,
    form: Form,
    /// Lines that are not written yet.
    text: String,
    bytes_max: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

/// A file that is not whole yet. It is reached through its folder as that was opened: whatever happens to the names
/// above it meanwhile, it is in the export folder.
#[derive(Debug)]
struct PartFile {
    file: File,
    folder: Dir,
    name: String,
    /// Its name until it is whole.
    part_name: String,
}

impl PartFile {
    fn create(exports: &Dir, name: &str) -> Result<Self, Fault> {
        let (folder, name) = place_in(exports, name)?;
        if folder.symlink_metadata(&name).is_ok() {
            return Err(exists(&name));
        }
        let part_name = format!("{name}.{:08x}{PART_SUFFIX}", rand::random::<u32>());
        let options = OpenOptions::new().write(true).create_new(true).clone(); // follows no link
        let file = folder.open_with(&part_name, &options).map_err(|error| broken(&error))?.into_std();
        // So that no other bridge takes it for one that was left. Where there are no locks, none is removed either.
        let _ = file.try_lock();
        Ok(Self { file, folder, name, part_name })
    }

    /// It gets its name.
    fn take_name(&self) -> Result<(), Fault> {
        // A hard link fails where something has taken the name since; a rename would replace it.
        match self.folder.hard_link(&self.part_name, &self.folder, &self.name) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(exists(&self.name)),
            // There are no links on a stick or a card with the file system of cameras.
            Err(_) if self.folder.symlink_metadata(&self.name).is_err() => self
                .folder
                .rename(&self.part_name, &self.folder, &self.name)
                .map_err(|error| broken(&error))?,
            Err(error) => return Err(broken(&error)),
        }
        #[cfg(unix)] // elsewhere a folder cannot be synced
        if let Err(error) = self.folder.try_clone().and_then(|folder| folder.into_std_file().sync_all()) {
            tracing::debug!(%error, "the export folder cannot be synced");
        }
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        match self.folder.remove_file(&self.part_name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "a part of an export could not be removed");
            }
            _ => {}
        }
    }
}

impl FileSink {
    /// A new file of this name in the export folder. The name cannot lead out of the folder.
    pub(super) async fn create(
        exports: Arc<Dir>,
        name: String,
        form: Form,
        bytes_max: u64,
    ) -> Result<Self, Fault> {
        let part = off_the_runtime(move || PartFile::create(&exports, &name)).await??;
        Ok(Self { part: Some(part), form, text: String::new(), bytes_max, rows: 0, bytes: 0 })
    }

    /// The head.
    pub(super) fn begin(&mut self, columns: &[OwnedColumn]) -> Result<(), Fault> {
        if self.form == Form::Csv {
            let names: Vec<String> = columns.iter().map(|column| csv_text(&column.name)).collect();
            let begin = self.text.len();
            self.text.push_str(&names.join(","));
            self.end_line(begin)?;
        }
        Ok(())
    }

    /// One row; it is gathered, not written yet.
    pub(super) fn row(&mut self, columns: &[OwnedColumn], cells: &[Value<'_>]) -> Result<(), Fault> {
        let begin = self.text.len();
        let line = &mut self.text;
        let mut written = Ok(());
        for (index, (column, cell)) in columns.iter().zip(cells).enumerate() {
            line.push_str(match (self.form, index) {
                (Form::JsonLines, 0) => "{",
                (Form::Csv, 0) => "",
                _ => ",",
            });
            written = written.and_then(|()| match (self.form, cell) {
                (Form::JsonLines, _) => {
                    write_json_text(&column.name, line)?;
                    line.push(':');
                    write_json_value(cell, line)
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
                (Form::Csv, _) => write_json_value(cell, line),
            });
        }
        written.map_err(|_| Fault::protocol("a row cannot be written"))?;
        if self.form == Form::JsonLines {
            line.push('}');
        }
        self.rows += 1;
        self.end_line(begin)
    }

    fn end_line(&mut self, begin: usize) -> Result<(), Fault> {
        self.text.push('\n');
        self.bytes += (self.text.len() - begin) as u64;
        if self.bytes > self.bytes_max {
            let message = format!("the file would have more than {} bytes", self.bytes_max);
            return Err(Fault::new("capacity", message, "export less, or allow larger files"));
        }
        Ok(())
    }

    /// Writes what is gathered, if it is enough.
    pub(super) async fn write(&mut self) -> Result<(), Fault> {
        if self.text.len() < CHUNK_BYTES {
            return Ok(());
        }
        self.write_all().await
    }

    async fn write_all(&mut self) -> Result<(), Fault> {
        let text = std::mem::take(&mut self.text);
        self.with_part(move |part| part.file.write_all(text.as_bytes()).map_err(|error| broken(&error))).await
    }

    /// All is written: the file is made to last, and gets its name if it may. Returns its bytes.
    pub(super) async fn finish(mut self, may_be_named: impl FnOnce() -> bool) -> Result<u64, Fault> {
        self.write_all().await?;
        self.with_part(|part| part.file.sync_all().map_err(|error| broken(&error))).await?;
        if !may_be_named() {
            return Err(Fault::cancelled());
        }
        self.with_part(|part| part.take_name()).await?;
        Ok(self.bytes)
    }

    async fn with_part(
        &mut self,
        work: impl FnOnce(&mut PartFile) -> Result<(), Fault> + Send + 'static,
    ) -> Result<(), Fault> {
        let Some(mut part) = self.part.take() else {
            return Err(Fault::new("export_failed", "the file is gone", "export again"));
        };
        let (part, done) = off_the_runtime(move || {
            let done = work(&mut part);
            (part, done)
        })
        .await?;
        self.part = Some(part);
        done
    }
}

/// Removes the parts in the export folder and the folders in it that a bridge which was killed has left.
pub(super) fn remove_left_parts(exports: &Dir) {
    let mut folders: Vec<Dir> = exports.try_clone().into_iter().collect();
    let mut names_left = NAMES_MAX;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = folder.entries() else { continue };
        for entry in entries.flatten() {
            if names_left == 0 {
                return;
            }
            names_left -= 1;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.extend(entry.open_dir()),
                Ok(kind) if kind.is_file() && is_left_part(&entry) => {
                    if let Err(error) = entry.remove_file() {
                        tracing::warn!(%error, "a part of an export could not be removed");
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether it has the name of a part, and nobody writes it: who does has locked it.
fn is_left_part(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let number = name.to_str().and_then(|name| name.strip_suffix(PART_SUFFIX)?.rsplit_once('.'));
    if !number.is_some_and(|(_, number)| number.len() == 8 && u32::from_str_radix(number, 16).is_ok()) {
        return false;
    }
    let Ok(file) = entry.open().map(cap_std::fs::File::into_std) else { return false };
    let changed = file.metadata().and_then(|about| about.modified());
    let is_old = changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= PART_AGE_MIN));
    is_old && file.try_lock().is_ok()
}

/// The beginning of a file in the export folder, in whole lines.
pub(super) async fn excerpt(
    folder: Folder,
    name: String,
    is_csv: bool,
    characters_max: usize,
) -> Result<Excerpt, Fault> {
    off_the_runtime(move || {
        let path = folder.path.join(&name);
        let read = || -> io::Result<(Vec<u8>, u64)> {
            let file = folder.opened.open(&name)?; // follows no link that leads out
            let bytes = file.metadata()?.len();
            let mut begin = Vec::new();
            file.take(characters_max.saturating_mul(CHARACTER_BYTES_MAX) as u64).read_to_end(&mut begin)?;
            Ok((begin, bytes))
        };
        let (begin, bytes) = read().map_err(|error| {
            let message = format!("the file cannot be read: {error}");
            Fault::new("export_gone", message, "look whether it was moved or removed; export again")
        })?;
        let begin = String::from_utf8_lossy(&begin);
        let mut text: String = begin.chars().take(characters_max).collect();
        let is_cut = (text.len() as u64) < bytes;
        if is_cut {
            text.truncate(text.rfind('\n').map_or(text.len(), |end| end + 1));
        }
        Ok(Excerpt { text, path, bytes, is_cut, is_csv })
    })
    .await?
}

/// Does what may wait for a disk where nobody else waits.
async fn off_the_runtime<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Fault::new("export_failed", format!("the writer broke: {error}"), "export again"))
}

fn broken(error: &io::Error) -> Fault {
    let (action, message) = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ("make room in the export folder, or export less", "the disk is full")
        }
        _ => ("look at the export folder", "the file cannot be written"),
    };
    Fault::new("export_failed", format!("{message}: {error}"), action)
}

fn exists(name: &str) -> Fault {
    let message = format!("file `{}` is there already", quoted(name));
    Fault::new("exists", message, "choose another `file`").with("argument", "file")
}

/// The folder of a file of this name, and its name there. Its folders must be there, and be in the export folder also
/// behind symbolic links: [`Dir`] follows none that leads out, also if it is made in this moment.
fn place_in(exports: &Dir, name: &str) -> Result<(Dir, String), Fault> {
    let refuse = |why: &str| {
        let message = format!("file `{}` cannot be written: {why}", quoted(name));
        let action = "give a name inside the export folder, such as june.csv";
        Fault::new("wrong_argument", message, action).with("argument", "file")
    };
    if name.contains(|c: char| is_unseen(c) || c == '\\' || c == ':') {
        return Err(refuse("its name has characters that no file here has"));
    }
    let path = Path::new(name);
    let is_inside = path.components().all(|component| matches!(component, Component::Normal(_)));
    let file = path.file_name().filter(|_| is_inside && !name.ends_with('/'));
    let Some(file) = file.and_then(|file| file.to_str()) else {
        return Err(refuse("it is not inside the export folder"));
    };
    if file.starts_with('.') {
        return Err(refuse("its name begins with a dot"));
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = match parent {
        None => exports.try_clone(),
        Some(parent) => exports.open_dir(parent),
    };
    let folder =
        folder.map_err(|_| refuse("its folder is not there, or a link leads out of the export folder"))?;
    Ok((folder, file.to_string()))
}

/// A text as CSV, quoted where it must be: an empty one too, for nothing at all is NULL. What is not seen is escaped as
/// in a table, and a `'` stands before what a spreadsheet would take for a formula: quotes alone do not keep it from
/// that. JSON lines have every text as it is.
fn csv_text(text: &str) -> String {
    let mark = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    let shown = format!("{mark}{}", Printable(text));
    let needs_quotes = text.is_empty() || shown.contains([',', '"']);
    if needs_quotes { format!("\"{}\"", shown.replace('"', "\"\"")) } else { shown }
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

    fn exports(folder: &tempfile::TempDir) -> Arc<Dir> {
        Arc::new(Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap())
    }

    async fn written(form: Form, bytes_max: u64) -> Result<String, Fault> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let mut sink = FileSink::create(exports(&folder), "x".into(), form, bytes_max).await?;
        let result = sink.begin(&columns()).and_then(|()| {
            sink.row(&columns(), &[Value::Text("x\"\n"), Value::Null])?;
            sink.row(&columns(), &[Value::Int(1), Value::Float64(f64::NAN)])
        });
        assert!(!path.join("x").exists(), "it has its name when it is whole, not before");
        if let Err(fault) = result {
            drop(sink);
            assert_eq!(std::fs::read_dir(path).unwrap().count(), 0, "nothing is left of what failed");
            return Err(fault);
        }
        sink.finish(|| true).await?;
        assert_eq!(std::fs::read_dir(path).unwrap().count(), 1);
        Ok(std::fs::read_to_string(path.join("x")).unwrap())
    }

    #[tokio::test]
    async fn rows_are_lines() {
        assert_eq!(written(Form::Csv, 99).await.unwrap(), "a,\"b,\"\n\"x\"\"\\n\",\n1,\n");
        assert_eq!(
            written(Form::JsonLines, 99).await.unwrap(),
            "{\"a\":\"x\\\"\\n\",\"b,\":null}\n{\"a\":1,\"b,\":null}\n"
        );
        assert_eq!(written(Form::Csv, 10).await.unwrap_err().code, "capacity");
    }

    #[tokio::test]
    async fn a_file_of_many_chunks_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = FileSink::create(exports(&folder), "x".into(), Form::Csv, u64::MAX).await.unwrap();
        let text = "y".repeat(1000);
        for row in 0..1000 {
            sink.row(&columns(), &[Value::Int(row), Value::Text(&text)]).unwrap();
            sink.write().await.unwrap();
            assert!(sink.text.len() < CHUNK_BYTES, "what is gathered is written in time");
        }
        let bytes = sink.finish(|| true).await.unwrap();
        let whole: String = (0..1000).map(|row| format!("{row},{text}\n")).collect();
        assert_eq!(
            (bytes, std::fs::read_to_string(folder.path().join("x")).unwrap()),
            (whole.len() as u64, whole)
        );
    }

    #[tokio::test]
    async fn no_name_leads_out_of_the_folder() {
        let outside = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        std::fs::create_dir(path.join("in")).unwrap();
        std::os::unix::fs::symlink(outside.path(), path.join("out")).unwrap();
        std::os::unix::fs::symlink("in", path.join("also_in")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("new"), path.join("link.csv")).unwrap();
        let create = async |name: &str| {
            let sink = FileSink::create(exports(&folder), name.into(), Form::Csv, 9).await;
            sink.map(drop).map_err(|fault| fault.code)
        };
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
            "vsc.\u{202e}x",
            "c:x",
            "no/x",
            ".x",
            "in/..",
            "./x",
        ] {
            assert_eq!(create(name).await, Err("wrong_argument"), "{name:?}");
        }
        assert_eq!(create("link.csv").await, Err("exists"));
        for name in ["x.csv", "in/x.csv", "also_in/x.csv"] {
            assert_eq!(create(name).await, Ok(()), "{name}");
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_folder_that_becomes_a_link_to_elsewhere_gets_nothing_there() {
        let outside = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("in");
        std::fs::create_dir(&inside).unwrap();
        let mut sink = FileSink::create(exports(&folder), "in/x".into(), Form::Csv, 999).await.unwrap();
        std::fs::rename(&inside, folder.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(outside.path(), &inside).unwrap();
        sink.row(&columns(), &[Value::Int(1), Value::Int(2)]).unwrap();
        sink.finish(|| true).await.unwrap();
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
        assert_eq!(std::fs::read_to_string(folder.path().join("moved/x")).unwrap(), "1,2\n");
    }

    #[tokio::test]
    async fn of_two_files_with_one_name_the_first_that_is_whole_stays() {
        let folder = tempfile::tempdir().unwrap();
        let create = async || {
            let mut sink = FileSink::create(exports(&folder), "x".into(), Form::Csv, 999).await.unwrap();
            sink.row(&columns(), &[Value::Int(1), Value::Int(2)]).unwrap();
            sink
        };
        let (first, mut second) = (create().await, create().await);
        second.row(&columns(), &[Value::Int(3), Value::Int(4)]).unwrap();
        first.finish(|| true).await.unwrap();
        assert_eq!(second.finish(|| true).await.unwrap_err().code, "exists");
        assert_eq!(std::fs::read_to_string(folder.path().join("x")).unwrap(), "1,2\n");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn parts_that_were_left_go_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        std::fs::create_dir(path.join("in")).unwrap();
        let long_ago = std::time::SystemTime::now() - 2 * PART_AGE_MIN;
        let is_old = |name: &str| File::create(path.join(name)).unwrap().set_modified(long_ago).unwrap();
        let others = ["june.csv", "june.part", "june.csv.0123.part", "june.csv.0123456x.part"];
        for name in others {
            is_old(name);
        }
        is_old("june.csv.0123abcd.part");
        is_old("in/july.csv.89abcdef.part");
        File::create(path.join("young.0123abcd.part")).unwrap();
        let sink = FileSink::create(exports(&folder), "now".into(), Form::Csv, 9).await.unwrap();
        let writing = sink.part.as_ref().unwrap();
        writing.file.set_modified(long_ago).unwrap();
        remove_left_parts(&exports(&folder));
        let mut there: Vec<String> = std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        there.sort();
        let mut expected: Vec<&str> = others.to_vec();
        expected.extend(["in", "young.0123abcd.part", &writing.part_name]);
        expected.sort_unstable();
        assert_eq!(there, expected);
        assert_eq!(std::fs::read_dir(path.join("in")).unwrap().count(), 0);
    }

    #[test]
    fn a_text_in_csv_is_a_text_and_no_formula() {
        for (text, written) in [
            ("", "\"\""),
            ("on", "on"),
            ("a,b", "\"a,b\""),
            ("=1+1", "'=1+1"),
            ("@x", "'@x"),
            ("-", "'-"),
            ("+\"", "\"'+\"\"\""),
            ("\t=1", "'\\t=1"),
            ("a\r\nb", "a\\r\\nb"),
            ("\u{1b}[2J\u{202e}cod.x", "\\u{1b}[2J\\u{202e}cod.x"),
            ("1-2=°", "1-2=°"),
        ] {
            assert_eq!(csv_text(text), written, "{text:?}");
        }
    }

    #[tokio::test]
    async fn in_csv_an_empty_text_is_not_null() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = FileSink::create(exports(&folder), "x".into(), Form::Csv, 99).await.unwrap();
        sink.row(&columns(), &[Value::Text(""), Value::Null]).unwrap();
        sink.row(&columns(), &[Value::Int(-1), Value::Float64(-0.5)]).unwrap();
        sink.finish(|| true).await.unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("x")).unwrap(), "\"\",\n-1,-0.5\n");
    }
}
