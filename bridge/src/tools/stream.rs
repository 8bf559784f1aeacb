//! The whole answer to a SELECT, batch by batch, for programs that are no MCP clients and for exports.

use super::executor;
use crate::{
    fault::Fault,
    query::{Asked, Batch, Context, Joined, Lake, OwnedColumn, Planned, Scan, Select, Source},
};
use shared::{
    command::Format,
    format::{RowsFormat, Shape, Statistics},
    message::Class,
    schema::Column,
    value::Value,
};

/// Rows on their way. Dropping it cancels the query, on the boards too.
#[derive(Debug)]
pub struct RowStream {
    source: Source,
    /// Rows that OFFSET skips still.
    skip: u64,
    /// Rows that LIMIT leaves.
    left: u64,
}

/// A batch as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowsJson {
    /// `[{"a":1},…]`
    pub rows: String,
    /// How many.
    pub row_count: u64,
}

impl RowStream {
    /// Asks the boards that are named, or all that have the table. A board that is not there is an error here.
    pub(crate) async fn open(
        lake: &Lake,
        database: &str,
        sql: &str,
        boards: Option<&[String]>,
        context: Context,
    ) -> Result<Self, Fault> {
        let opened = Self::open_now(lake, database, sql, boards, &context);
        context.whole(opened).await?
    }

    async fn open_now(
        lake: &Lake,
        database: &str,
        sql: &str,
        boards: Option<&[String]>,
        context: &Context,
    ) -> Result<Self, Fault> {
        if !shared::schema::is_name(database) {
            let message = "argument `database` is no name: letters, digits and _";
            return Err(Fault::new("wrong_argument", message, "name a database").with("argument", "database"));
        }
        let select =
            Select { database, sql, boards, now_us: executor::now_us(), is_strict: true, is_local: false };
        let asked = match lake.planned(&select, context).await? {
            Planned::Dialect(asked) => *asked,
            Planned::Beyond(statement) => {
                let rows = statement.ask(true, Class::Background, context).await?;
                return Ok(Self { source: Source::Beyond(Box::new(rows)), skip: 0, left: u64::MAX });
            }
        };
        if !asked.question.is_stream() {
            let joined = Joined::ask(asked, true, context).await?;
            return Ok(Self { source: Source::Joined(Box::new(joined)), skip: 0, left: u64::MAX });
        }
        let Asked { question, legs, .. } = asked;
        let wanted = question.limit.map(|limit| limit.saturating_add(question.offset));
        let scan =
            Scan::open(&question, question.fragment(), legs, wanted, context, Class::Background).await?;
        let (skip, left) = (question.offset, question.limit.unwrap_or(u64::MAX));
        Ok(Self { source: Source::Scan(Box::new(scan), Box::new(question)), skip, left })
    }

    /// The columns of every row.
    pub fn columns(&self) -> &[OwnedColumn] {
        self.source.columns()
    }

    /// Rows that boards overwrote before they could send them, as far as the stream has come.
    pub fn rows_lost(&self) -> u64 {
        self.source.rows_lost()
    }

    /// Whether the clocks of all boards are set.
    pub(crate) fn is_clock_set(&self) -> bool {
        self.source.is_clock_set()
    }

    /// The next rows as JSON, or the end.
    pub async fn next(&mut self) -> Result<Option<RowsJson>, Fault> {
        while let Some(batch) = self.next_batch().await? {
            let owned = self.columns().to_vec();
            let columns: Vec<Column<'_>> = owned.iter().map(OwnedColumn::borrowed).collect();
            let mut writer = RowsFormat::new(Shape::Query { statistics: false }, Format::Mcp, &columns);
            let (mut rows, mut row_count) = (String::new(), 0);
            let mut written = writer.begin(&mut rows);
            self.rows(&batch, |cells| {
                row_count += 1;
                written = written.and_then(|()| writer.row(cells, &mut rows));
            })?;
            written
                .and_then(|()| writer.end(&Statistics::default(), &mut rows))
                .map_err(|_| Fault::protocol("a row cannot be written"))?;
            if row_count > 0 {
                return Ok(Some(RowsJson { rows, row_count }));
            }
        }
        Ok(None)
    }

    /// The next batch, or the end.
    pub async fn next_batch(&mut self) -> Result<Option<Batch>, Fault> {
        if self.left == 0 {
            return Ok(None);
        }
        self.source.next().await
    }

    /// How many boards it is from.
    pub(crate) fn boards(&self) -> u32 {
        u32::try_from(self.source.boards().len()).unwrap_or(u32::MAX)
    }

    /// Gives each row of a batch to `each`, and takes none of them: for the widths of a table.
    pub(crate) fn measure(&self, batch: &Batch, each: impl FnMut(&[Value<'_>])) -> Result<(), Fault> {
        self.source.rows(batch, each)
    }

    /// Gives each row of a batch that OFFSET and LIMIT leave to `each`.
    pub fn rows(&mut self, batch: &Batch, mut each: impl FnMut(&[Value<'_>])) -> Result<(), Fault> {
        let Self { source, skip, left } = self;
        source.rows(batch, |cells| {
            if *skip > 0 {
                *skip -= 1;
            } else if *left > 0 {
                *left -= 1;
                each(cells);
            }
        })
    }
}
