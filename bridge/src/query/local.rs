//! A SELECT over the archive alone: SQLite over the pages as they are stored. Asks no board.

use super::{
    Context, Lake, OwnedColumn, Select, United,
    beyond::Statement,
    sqlite::{self, Beyond, PageBytes, PageReader, Source, SourceRows, TableRows, Wanted},
};
use crate::{
    archive::{Readers, Series},
    fault::Fault,
};
use shared::engine::PageColumn;
use std::{ops::Range, sync::Arc};

/// The stored pages of a series.
struct StoredPages {
    readers: Arc<Readers>,
    series: i64,
    rows: Range<u64>,
}

impl PageReader for StoredPages {
    fn pages(&self, wanted: &Wanted) -> Result<Vec<PageBytes>, Fault> {
        let rows = self.rows.start.max(wanted.row_ids.start)..self.rows.end.min(wanted.row_ids.end);
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let chunk = self.readers.chunks(self.series, rows, None).next_blocking()?;
        Ok(chunk.iter().flat_map(|chunk| chunk.pages()).map(|(page, _)| page.bytes().into()).collect())
    }

    fn row_count(&self) -> u64 {
        self.rows.end - self.rows.start
    }
}

impl Lake {
    /// Plans a SELECT over what the archive has now.
    pub(super) async fn local_statement(
        &self,
        select: &Select<'_>,
        context: &Context,
    ) -> Result<Statement, Fault> {
        let Some(archive) = &self.archive else {
            let message = "this runs on the gateway itself, which keeps no rows: it has no archive";
            let action = "use a tool that asks the boards, or serve with an archive (picolake.yaml: archive)";
            return Err(Fault::new("local_not_available", message, action));
        };
        let beyond = Beyond::parse(select.sql, select.now_us)?;
        let mut tables = Vec::with_capacity(beyond.tables().len());
        for used in beyond.tables() {
            let database = used.database.as_deref().unwrap_or(select.database);
            let series = archive.series_of(database, &used.name).await?;
            if series.is_empty() {
                let message = format!("the archive has no table `{}`", crate::fault::quoted(&used.name));
                let action = "list the tables of the database; rows are copied within seconds";
                return Err(Fault::new("unknown_table", message, action));
            }
            tables.push(table_rows(series, archive.reader())?);
        }
        let columns: Vec<Vec<OwnedColumn>> = tables.iter().map(|table| table.columns.clone()).collect();
        let columns = sqlite::check(&beyond, &columns, context)?;
        Ok(Statement::of_archive(select.sql, columns, beyond, tables))
    }
}

/// A table of all boards and boots, each a source.
fn table_rows(series: Vec<Series>, readers: &Arc<Readers>) -> Result<TableRows, Fault> {
    let mut united = United::default();
    for series in &series {
        united.add(&series.key.board_id, &series.columns);
    }
    if let Some(conflict) = (0..united.columns.len()).find_map(|column| united.conflict(column)) {
        return Err(conflict);
    }
    let columns = united.columns;
    let place = |column: &OwnedColumn| columns.iter().position(|united| united.name == column.name);
    let mut sources = Vec::with_capacity(series.len());
    for series in series {
        let layout = series.columns.iter().filter_map(|column| {
            let at = place(column)?;
            Some(PageColumn { kind: column.kind, column: u8::try_from(at).ok()?, to: columns[at].kind })
        });
        let rows = series.first_row..series.watermark;
        let reader = StoredPages { readers: Arc::clone(readers), series: series.id, rows: rows.clone() };
        sources.push(Source {
            board: series.key.board_id,
            epoch: series.key.epoch,
            rows: SourceRows::Pages {
                layout: layout.collect(),
                reader: Box::new(reader),
                clock: series.clock,
                rows,
            },
        });
    }
    sources.sort_by(|a, b| (&a.board, a.epoch).cmp(&(&b.board, b.epoch)));
    Ok(TableRows { columns, sources })
}
