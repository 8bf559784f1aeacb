//! Completions: names of databases, tables, columns and boards that go on as the user began.

use super::Server;
use rmcp::model::{CompleteRequestParams, CompletionInfo};

impl Server {
    /// The names that fit what was typed of an argument, given the arguments before it.
    pub(super) async fn completions(&self, request: &CompleteRequestParams) -> CompletionInfo {
        let before = |name: &str| {
            request.context.as_ref().and_then(|context| context.get_argument(name)).map_or("", String::as_str)
        };
        let names = match request.argument.name.as_str() {
            "database" => self.databases().await,
            "table" => self.table_names(before("database")).await,
            "column" => self.column_names(before("database"), before("table")).await,
            "board" => self.board_names(),
            _ => Vec::new(),
        };
        fitting(names, &request.argument.value)
    }
}

/// Those that begin with what was typed, in their order, as many as MCP takes.
fn fitting(names: Vec<String>, typed: &str) -> CompletionInfo {
    let typed = typed.to_lowercase();
    let mut names: Vec<String> =
        names.into_iter().filter(|name| name.to_lowercase().starts_with(&typed)).collect();
    let total = names.len();
    names.truncate(CompletionInfo::MAX_VALUES);
    let mut found = CompletionInfo::default();
    found.has_more = Some(total > names.len());
    found.total = u32::try_from(total).ok();
    found.values = names;
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_begin_so_are_given_and_no_more_than_allowed() {
        let found = fitting(["Power", "pump", "mill"].map(String::from).into(), "p");
        assert_eq!(
            (found.values.join(" ").as_str(), found.total, found.has_more),
            ("Power pump", Some(2), Some(false))
        );
        let found = fitting((0..500).map(|n| format!("t{n}")).collect(), "");
        assert_eq!((found.values.len(), found.total, found.has_more), (100, Some(500), Some(true)));
    }
}
