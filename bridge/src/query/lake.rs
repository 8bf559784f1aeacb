//! What questions are put to: the boards of a field. Knows no tool.

use super::{Asked, Context, Question, Views};
use crate::{archive::Archive, fault::Fault, field::Field};
use std::sync::Arc;

/// Everything that has rows. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Lake {
    /// The boards.
    pub field: Field,
    /// The boards' rows on this machine, where they are kept.
    pub archive: Option<Archive>,
    /// SELECTs that can be queried as tables.
    pub views: Arc<Views>,
    /// Boards send whole rows, and everything is computed here: to compare with what they can do themselves.
    pub without_pushdown: bool,
}

/// A SELECT, and whom it is put to.
#[derive(Clone, Copy, Debug)]
pub struct Select<'q> {
    /// The database.
    pub database: &'q str,
    /// Its text.
    pub sql: &'q str,
    /// The boards that are asked; none is all that have the table.
    pub boards: Option<&'q [String]>,
    /// What `now()` is, in microseconds since 1970 UTC.
    pub now_us: i64,
    /// A board that is not there is an error.
    pub is_strict: bool,
    /// The archive is asked, and no board.
    pub is_local: bool,
}

impl Lake {
    /// Plans a SELECT of the dialect over the boards that have its table.
    pub async fn plan(&self, select: &Select<'_>, context: &Context) -> Result<Asked, Fault> {
        let table = Question::table_of(select.sql)?;
        let having = self.field.boards_with(select.database, &table, select.boards).await?;
        let mut asked = Asked::plan(select, having, context).await?;
        asked.question.without_pushdown = self.without_pushdown;
        Ok(asked)
    }
}
