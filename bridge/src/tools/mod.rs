//! Tools: what `tools.yaml` defines, called with JSON arguments, answered with texts. Knows no MCP and no HTTP.
//!
//! ```text
//!   call ── definition ── arguments ── sql, template ── executor ── paging, listing, internal ── Outcome
//!           look up       defaults,    build            route,      run and format            wrap
//!                         check                         run
//! ```

mod arguments;
mod definition;
mod executor;
mod internal;
mod listing;
mod page;
mod paging;
mod processes;
mod snapshot;
mod sql;
mod stream;
mod template;

pub use crate::{
    fault::Fault as ToolError,
    query::{Context, Progress, ProgressSender},
};
pub use definition::{Annotations, Definition, DefinitionError};
pub(crate) use executor::Answered;
pub use page::{CHARACTERS_MAX, ROWS_DEFAULT, ROWS_MAX};
pub use stream::{RowStream, RowsJson};

use crate::{
    archive::Archive,
    field::Field,
    jobs::Jobs,
    query::{Lake, Views},
};
use futures_util::FutureExt as _;
use serde_json::{Map, Value};
use shared::command::Format;
use snapshot::Snapshots;
use std::{
    panic::AssertUnwindSafe,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// How often a user's file of tools is looked at.
const FILE_LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// What tools there are and what they work on. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tools {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    lake: Lake,
    options: Options,
    set: Mutex<Set>,
    snapshots: Mutex<Snapshots>,
    jobs: Jobs,
}

/// How tools are set up.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The boards' rows on this machine, where they are kept.
    pub archive: Option<Archive>,
    /// A file of tools that adds, replaces and hides.
    pub user_file: Option<PathBuf>,
    /// Where exports go; without it there are none.
    pub export_folder: Option<PathBuf>,
    /// Every board can be written to, whatever its configuration says.
    pub allow_writes: bool,
    /// Boards send whole rows, and everything is computed here: to compare with what they can do themselves.
    pub without_pushdown: bool,
    /// SELECTs that can be queried as tables.
    pub views: Views,
    /// Bytes of one export; none is a default.
    pub export_bytes_max: Option<u64>,
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Texts: the data, and what is to be said of it; or an error.
    pub items: Vec<String>,
    /// The only text is an error.
    pub is_error: bool,
}

impl Outcome {
    fn of(result: Result<Vec<String>, ToolError>) -> Self {
        match result {
            Ok(items) => Self { items, is_error: false },
            Err(fault) => Self { items: vec![fault.to_json().to_string()], is_error: true },
        }
    }
}

/// Tools that cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ToolsError {
    /// A file of tools is wrong.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The folder for exports cannot be used.
    #[error("cannot use {} for exports: {source}; name another folder", path.display())]
    ExportFolder {
        /// Which folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The tools there are now, and the state of the file that they are from.
#[derive(Debug)]
struct Set {
    tools: Vec<Arc<Definition>>,
    looked_at: Instant,
    /// Of what the file had when it was looked at.
    fingerprint: Option<u64>,
    /// What was wrong with it then.
    fault: Option<String>,
    /// Counts the times that the tools have changed.
    version: u64,
}

impl Tools {
    /// Reads the definitions. The standard tools are always there.
    pub fn new(field: Field, options: Options) -> Result<Self, ToolsError> {
        let fingerprint = options.user_file.as_deref().map(definition::fingerprint);
        let tools = definition::load(options.user_file.as_deref())?;
        let jobs =
            Jobs::new(options.export_folder.as_deref(), options.export_bytes_max).map_err(|source| {
                ToolsError::ExportFolder { path: options.export_folder.clone().unwrap_or_default(), source }
            })?;
        let set = Set { tools, looked_at: Instant::now(), fingerprint, fault: None, version: 0 };
        let views = Arc::new(options.views.clone());
        let archive = options.archive.clone();
        let lake = Lake { field, archive, views, without_pushdown: options.without_pushdown };
        let inner = Inner { lake, options, set: Mutex::new(set), snapshots: Mutex::default(), jobs };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The tools there are, in their order. A user's file that has changed is read again; while it is wrong the
    /// tools stay as they were.
    pub fn list(&self) -> Vec<Arc<Definition>> {
        self.now().tools.clone()
    }

    /// A number that is another one when the tools have changed.
    pub fn version(&self) -> u64 {
        self.now().version
    }

    /// What is wrong with the user's file, so that the tools are still those of before.
    pub fn file_fault(&self) -> Option<String> {
        self.now().fault.clone()
    }

    /// Whether there is a user's file, which may change.
    pub fn can_change(&self) -> bool {
        self.inner.options.user_file.is_some()
    }

    fn now(&self) -> MutexGuard<'_, Set> {
        let mut set = self.inner.set.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = &self.inner.options.user_file
            && set.looked_at.elapsed() >= FILE_LOOK_INTERVAL
        {
            set.looked_at = Instant::now();
            let fingerprint = Some(definition::fingerprint(path));
            if fingerprint != set.fingerprint {
                set.fingerprint = fingerprint;
                match definition::load(Some(path)) {
                    Ok(tools) => (set.tools, set.fault, set.version) = (tools, None, set.version + 1),
                    Err(error) => {
                        tracing::warn!(%error, "the tools stay as they were");
                        set.fault = Some(error.to_string());
                    }
                }
            }
        }
        set
    }

    /// Calls a tool. Whatever happens, there is an outcome within the context's deadline.
    pub async fn call(&self, name: &str, arguments: Map<String, Value>, context: Context) -> Outcome {
        let called = Box::pin(executor::call(self, name, arguments, &context));
        Outcome::of(context.whole(unbroken(called)).await.unwrap_or_else(Err))
    }

    /// The boards.
    pub fn field(&self) -> &Field {
        &self.inner.lake.field
    }

    /// How they were set up.
    pub(crate) fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The boards' rows on this machine, where they are kept.
    pub fn archive(&self) -> Option<&Archive> {
        self.inner.options.archive.as_ref()
    }

    /// The jobs.
    pub fn jobs(&self) -> &Jobs {
        &self.inner.jobs
    }

    /// Runs a line of the command language on the boards that are named, or on all. Where one is named, the answer is
    /// that board's own. What is written to a board is up to its configuration.
    pub(crate) async fn command(
        &self,
        text: &str,
        boards: Option<Vec<String>>,
        format: Format,
        context: Context,
    ) -> Result<Answered, ToolError> {
        let called = Box::pin(executor::command(self, text, boards, format, &context));
        context.whole(called).await?
    }

    /// Streams the whole answer to a SELECT, batch by batch.
    pub async fn stream_query(
        &self,
        database: &str,
        sql: &str,
        context: Context,
    ) -> Result<RowStream, ToolError> {
        Box::pin(RowStream::open(&self.inner.lake, database, sql, None, context)).await
    }

    /// The same on the boards that are named, in the only database where none is.
    pub(crate) async fn stream(
        &self,
        database: Option<&str>,
        sql: &str,
        boards: Option<&[String]>,
        context: Context,
    ) -> Result<RowStream, ToolError> {
        let lake = &self.inner.lake;
        let database = match database {
            Some(database) => database.to_string(),
            None => executor::only_database(&lake.field, boards).await?,
        };
        Box::pin(RowStream::open(lake, &database, sql, boards, context)).await
    }
}

/// What a call comes to, also if it panics: somebody waits for an answer. Whatever it shares with other calls is
/// changed under locks, in steps that do not panic.
async fn unbroken<T>(called: impl Future<Output = Result<T, ToolError>>) -> Result<T, ToolError> {
    AssertUnwindSafe(called).catch_unwind().await.unwrap_or_else(|_| {
        let action = "this is a fault of the bridge: report it with its log, and ask in another way";
        Err(ToolError::new("internal", "the call broke off inside the bridge", action))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn is_send<T: Send>(value: T) -> T {
        value
    }

    #[tokio::test]
    async fn a_call_can_run_on_any_thread_and_answers_with_rows() {
        let tools = Tools::new(Field::demo().unwrap(), Options::default()).unwrap();
        let call = |name: &'static str, arguments: Value| {
            let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
            is_send(tools.call(name, arguments, Context::default()))
        };
        let bytes = size_of_val(&call("list_databases", json!({})));
        assert!(bytes < 2048, "{bytes} bytes: what a call needs is not on the caller's stack");
        let answer = call("list_databases", json!({})).await;
        assert_eq!(answer, Outcome { items: vec![r#"["demo"]"#.into()], is_error: false });
        let answer = call("list_tables", json!({"database": "demo"})).await;
        assert_eq!(answer.items, [r#"["environment","power","vibration"]"#]);
        let answer = call("query", json!({"table": "vibration", "select": ["x"], "limit": 2})).await;
        assert!(!answer.is_error && answer.items[0].starts_with("[{\"x\":"), "{answer:?}");
        is_send(tools.stream_query("demo", "SELECT x FROM vibration", Context::default())).await.unwrap();
    }

    #[tokio::test]
    async fn a_call_that_panics_is_answered() {
        let broken = unbroken(async {
            tokio::task::yield_now().await;
            let rows: Vec<String> = Vec::new();
            Ok(rows[1..].to_vec())
        });
        let outcome = Outcome::of(broken.await);
        assert!(outcome.is_error && outcome.items[0].contains(r#""code":"internal""#), "{outcome:?}");
        assert_eq!(unbroken(async { Ok(1) }).await, Ok(1));
    }

    #[tokio::test]
    async fn a_forged_cursor_is_refused_wherever_it_leads() {
        let tools = Tools::new(Field::demo().unwrap(), Options::default()).unwrap();
        let call = async |arguments: Value| {
            let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
            tools.call("query", arguments, Context::default()).await
        };
        for first in [
            json!({"table": "vibration", "select": ["x"], "limit": 2}),
            json!({"table": "vibration", "select": ["x"], "order_by": ["x"], "limit": 2}),
        ] {
            let answer = call(first).await;
            assert!(!answer.is_error, "{answer:?}");
            let notes: Value = serde_json::from_str(&answer.items[1]).unwrap();
            let cursor = notes["next_cursor"].as_str().unwrap();
            let id = cursor.split('-').next().unwrap();
            for place in [
                "0-2-18446744073709551615",
                "0-18446744073709551615-0",
                "0-18446744073709551615-18446744073709551615",
                "99999999999999999-0-0",
                "18446744073709551615-1-1",
                "3-0-0",
                "0-0-18446744073709551614",
            ] {
                let forged = call(json!({"cursor": format!("{id}-{place}")})).await;
                assert!(forged.items[0].contains(r#""code":"wrong_argument""#), "{place}: {forged:?}");
            }
            let second = call(json!({"cursor": cursor, "limit": 2})).await;
            assert!(!second.is_error, "the true one goes on: {second:?}");
        }
    }
}
