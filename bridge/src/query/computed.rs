//! The whole answer of one board that groups, sorts or counts. A board computes it in a few kilobytes, so it is kept.

use super::{
    Context, OwnedColumn, Statement,
    source::{Batch, kinds},
};
use crate::{
    board::{OwnedRequest, Piece, decode_rows},
    fault::Fault,
    field::Board,
};
use shared::{
    limits::{SORT_ROWS_MAX, WORKSPACE_BYTES},
    message::{Class, Part},
    schema::Column,
    value::Value,
};

/// Bytes of an answer at most that a bridge believes: what a board computes fits its workspace, and each row of it
/// can repeat a text.
const BYTES_MAX: usize = 64 * WORKSPACE_BYTES;
/// Times that a board is asked for fewer sorted rows until it has room for them.
const SORT_ATTEMPTS_MAX: u32 = 4;

/// An answer that is complete.
#[derive(Clone, Debug, Default)]
pub struct Computed {
    /// The columns of every row.
    pub columns: Vec<OwnedColumn>,
    /// All rows.
    pub batches: Vec<Batch>,
    /// How many.
    pub row_count: u64,
    /// The board sorted as many of the first rows as it has room for; there are more.
    pub is_clipped: bool,
    /// Rows that were overwritten before they could be read.
    pub rows_lost: u64,
    /// Whether timestamps are UTC.
    pub clock_set: bool,
    kinds: Vec<Column<'static>>,
}

impl Computed {
    /// Asks one board. Where it cannot sort all rows it is asked for the first of them.
    pub async fn ask(
        database: &str,
        statement: &Statement,
        board: &Board,
        context: &Context,
    ) -> Result<Self, Fault> {
        let whole = Self::ask_once(database, statement, statement.limit, board, context).await;
        let mut limit = SORT_ROWS_MAX as u64;
        let mut answered = whole;
        for _ in 0..SORT_ATTEMPTS_MAX {
            let is_full = matches!(&answered, Err(fault) if fault.code == "capacity");
            if !is_full || !statement.only_sorts() || statement.limit.is_some_and(|asked| asked <= limit) {
                break;
            }
            answered = Self::ask_once(database, statement, Some(limit), board, context).await;
            if let Ok(computed) = &mut answered {
                computed.is_clipped = computed.row_count == limit;
            }
            limit /= 2;
        }
        answered.map_err(|fault| fault.with("board", board.name.as_str()))
    }

    async fn ask_once(
        database: &str,
        statement: &Statement,
        limit: Option<u64>,
        board: &Board,
        context: &Context,
    ) -> Result<Self, Fault> {
        let command = format!("sql {database} \"{}\"", statement.computed_sql(limit));
        let asked = board.session.ask(OwnedRequest::Command(command), Class::Interactive);
        let mut answer = context.board(&board.session, asked).await??;
        let mut computed = Self { clock_set: true, ..Self::default() };
        let mut bytes_kept = 0;
        while let Some(piece) = context.board(&board.session, answer.next()).await?? {
            match piece {
                Piece::Part(bytes) => {
                    let Some(Part::Started(started)) = bytes.part() else {
                        return Err(Fault::protocol("an answer does not begin with its columns"));
                    };
                    computed.columns = started.columns.iter().map(OwnedColumn::from).collect();
                    computed.kinds = kinds(&computed.columns);
                    computed.clock_set = started.clock_set;
                }
                Piece::Rows { count, bytes, .. } => {
                    bytes_kept += bytes.len();
                    if bytes_kept > BYTES_MAX {
                        let message = format!("the answer has more than {BYTES_MAX} bytes");
                        return Err(Fault::new("capacity", message, "add a LIMIT or a narrower WHERE"));
                    }
                    computed.row_count += u64::from(count);
                    computed.batches.push(Batch { leg: 0, count, bytes, lost: 0 });
                }
            }
        }
        computed.rows_lost = answer.complete().map_or(0, |end| end.rows_lost);
        Ok(computed)
    }

    /// Gives each row of a batch to `each`.
    pub fn rows(&self, batch: &Batch, each: impl FnMut(&[Value<'_>])) -> Result<(), Fault> {
        decode_rows(&self.kinds, batch.count, &batch.bytes, each)
            .map_err(|_| Fault::protocol("a batch cannot be read"))
    }
}
