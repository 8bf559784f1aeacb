//! Names of what the field has, for resources and completions. A board that does not answer is told by what was known
//! of it last.

use super::Server;
use crate::{
    board::State,
    field::{Catalogue, ColumnInfo},
};
use futures_util::future::join_all;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A table as the whole field has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    /// Each column once, as the first board that has it tells it.
    pub(super) columns: Vec<ColumnInfo>,
    /// The boards that have the table.
    pub(super) boards: Vec<String>,
}

/// Tables by database and name.
pub(super) type Tables = BTreeMap<(String, String), Table>;

impl Server {
    /// Every table of every board. Waits a little for boards that are coming up.
    pub(super) async fn all_tables(&self) -> Tables {
        let boards = self.tools.field().boards();
        let catalogues = join_all(boards.iter().map(async |board| board.catalogue().await.ok())).await;
        self.united(catalogues)
    }

    /// The same without waiting for a board that is away.
    pub(super) async fn tables_now(&self) -> Tables {
        let boards = self.tools.field().boards();
        let catalogues = boards.iter().map(async |board| match board.session.state() {
            State::Up(_) => board.catalogue().await.ok(),
            _ => None,
        });
        let catalogues = join_all(catalogues).await;
        self.united(catalogues)
    }

    /// The tables of each board, of which some could not be had.
    fn united(&self, catalogues: Vec<Option<Arc<Catalogue>>>) -> Tables {
        let boards = self.tools.field().boards();
        let mut tables = Tables::new();
        for (board, catalogue) in boards.iter().zip(catalogues) {
            let Some(catalogue) = catalogue.or_else(|| board.known_catalogue()) else { continue };
            for found in &catalogue.tables {
                let table = tables.entry((found.dbms.clone(), found.name.clone())).or_default();
                table.boards.push(board.name.clone());
                for column in &found.columns {
                    if table.columns.iter().all(|known| known.name != column.name) {
                        table.columns.push(column.clone());
                    }
                }
            }
        }
        tables
    }

    pub(super) async fn databases(&self) -> Vec<String> {
        let databases: BTreeSet<String> = self.all_tables().await.into_keys().map(|(dbms, _)| dbms).collect();
        databases.into_iter().collect()
    }

    /// The tables of a database, or of all where none is named.
    pub(super) async fn table_names(&self, database: &str) -> Vec<String> {
        let tables = self.all_tables().await.into_keys();
        let fitting = tables.filter(|(dbms, _)| database.is_empty() || dbms == database);
        let names: BTreeSet<String> = fitting.map(|(_, name)| name).collect();
        names.into_iter().collect()
    }

    /// The columns of a table, or of all that fit where database or table is not named.
    pub(super) async fn column_names(&self, database: &str, table: &str) -> Vec<String> {
        let tables = self.all_tables().await;
        let fitting = tables.into_iter().filter(|((dbms, name), _)| {
            (database.is_empty() || dbms == database) && (table.is_empty() || name == table)
        });
        let names: BTreeSet<String> =
            fitting.flat_map(|(_, table)| table.columns).map(|column| column.name).collect();
        names.into_iter().collect()
    }

    pub(super) fn board_names(&self) -> Vec<String> {
        self.tools.field().boards().iter().map(|board| board.name.clone()).collect()
    }
}
