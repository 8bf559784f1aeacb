//! A SELECT beyond the board's dialect, parsed: one statement that only reads, which tables it reads, and what of them. Runs
//! nothing.

use super::{
    limits::{NESTING_MAX, STACK_BYTES, TABLES_MAX},
    pushed, words,
};
use crate::fault::{Fault, quoted};
use shared::{
    schema::{HIDDEN_COLUMNS, TIME_COLUMN},
    value::ColumnType,
};
use sqlparser::{
    ast::{
        Expr, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query, Select, SelectItem,
        SelectItemQualifiedWildcardKind, SetExpr, Statement, TableFactor, TableWithJoins, Visit, Visitor,
    },
    dialect::SQLiteDialect,
    parser::{Parser, ParserError, ParserOptions},
};
use std::{
    collections::{BTreeSet, HashSet},
    ops::ControlFlow,
};

/// A SELECT that SQLite runs.
#[derive(Clone, Debug)]
pub struct Beyond {
    pub(super) query: Box<Query>,
    pub(super) tables: Vec<TableUse>,
    pub(super) now_us: i64,
}

/// A table that a statement reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableUse {
    /// Its database, where the statement names it.
    pub database: Option<String>,
    /// Its name.
    pub name: String,
    /// Which of its columns are in use.
    pub columns: ColumnsInUse,
    /// Conditions that every row must meet of which the statement makes any use, in the board's dialect.
    pub(super) conditions: Vec<String>,
}

/// The columns of a table that a statement uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnsInUse {
    /// Every column but the hidden ones, and of those the named.
    All(BTreeSet<String>),
    /// Columns with these names, whatever their case; not every name needs to be one of this table.
    Named(BTreeSet<String>),
}

impl ColumnsInUse {
    /// Whether this column is in use.
    pub fn has(&self, name: &str) -> bool {
        match self {
            ColumnsInUse::All(names) => !is_hidden(name) || names.contains(&name.to_lowercase()),
            ColumnsInUse::Named(names) => names.contains(&name.to_lowercase()),
        }
    }
}

impl TableUse {
    /// The conditions that these columns allow, as one that follows WHERE on a board; none where there is none. The
    /// statement itself looks at every row again, so that leaving it out only costs rows.
    pub fn filter(&self, columns: &[(&str, ColumnType)]) -> Option<String> {
        pushed::filter(&self.conditions, columns)
    }
}

impl Beyond {
    /// Reads a statement. `now()` is this moment, wherever it stands.
    pub fn parse(sql: &str, now_us: i64) -> Result<Self, Fault> {
        let words = words::read(sql)?;
        // The parser calls itself; a thread of its own has the stack for that, whoever calls.
        let parse = move || {
            let mut parser = Parser::new(&SQLiteDialect {})
                .with_options(ParserOptions::new().with_unescape(false))
                .with_recursion_limit(NESTING_MAX)
                .with_tokens_with_locations(words);
            let statements = parser.parse_statements().map_err(refused)?;
            let query = only_query(statements)?;
            let tables = read_tables(&query, now_us)?;
            Ok(Self { query, tables, now_us })
        };
        on_deep_stack(parse)?
    }

    /// The tables that it reads, each once.
    pub fn tables(&self) -> &[TableUse] {
        &self.tables
    }
}

/// Runs something on a thread with enough stack for the deepest statement.
pub(super) fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Fault> {
    let failed =
        |why: &str| Fault::new("internal", format!("a statement could not be read: {why}"), "ask again");
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("sql".into()).stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, work).map_err(|error| failed(&error.to_string()))?;
        thread.join().map_err(|_| failed("the parser panicked"))
    })
}

fn refused(error: ParserError) -> Fault {
    match error {
        ParserError::RecursionLimitExceeded => {
            let message = format!("NESTING_MAX: expressions nest at most {NESTING_MAX} deep");
            Fault::new("capacity", message, "take the statement apart: WITH names its parts")
        }
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
            Fault::new("syntax", quoted_long(&message), "correct it where the error says, and ask again")
        }
    }
}

/// A parser's message repeats the statement's words.
fn quoted_long(message: &str) -> String {
    message.split_inclusive(", found: ").map(quoted).collect()
}

fn only_query(mut statements: Vec<Statement>) -> Result<Box<Query>, Fault> {
    let statement = statements.pop();
    if !statements.is_empty() {
        return Err(words::syntax("there are several statements", "ask for one after the other"));
    }
    match statement {
        Some(Statement::Query(query)) => Ok(query),
        Some(_) => Err(reads_only()),
        None => Err(words::syntax("there is no statement", "write a SELECT")),
    }
}

/// Something else than reading was asked for.
pub(super) fn reads_only() -> Fault {
    words::syntax("only a SELECT is run here: nothing is written, attached or set", "write a SELECT")
}

/// Something that SQLite, or this use of it, does not know.
pub(super) fn unsupported(what: &str) -> Fault {
    Fault::new(
        "unsupported",
        format!("`{}` is not known here", quoted(what)),
        "write it in the words of SQLite",
    )
}

fn is_hidden(name: &str) -> bool {
    HIDDEN_COLUMNS.iter().any(|column| column.name.eq_ignore_ascii_case(name))
}

/// The parts of a name.
pub(super) fn parts(name: &ObjectName) -> Result<Vec<&str>, Fault> {
    name.0
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(name) => Ok(name.value.as_str()),
            ObjectNamePart::Function(_) => Err(unsupported(&name.to_string())),
        })
        .collect()
}

/// The database and the table of a name.
pub(super) fn table_name(name: &ObjectName) -> Result<(Option<&str>, &str), Fault> {
    match parts(name)?[..] {
        [table] => Ok((None, table)),
        [database, table] => Ok((Some(database), table)),
        _ => Err(words::syntax("a table is named `table` or `database.table`", "shorten its name")),
    }
}

/// The tables and what of them is in use.
fn read_tables(query: &Query, now_us: i64) -> Result<Vec<TableUse>, Fault> {
    let mut collector = Collector { now_us, ..Collector::default() };
    if let ControlFlow::Break(fault) = query.visit(&mut collector) {
        return Err(fault);
    }
    let Collector { tables, names, whole, conditions, has_period, .. } = collector;
    if tables.len() > TABLES_MAX {
        let message = format!("TABLES_MAX: a statement reads at most {TABLES_MAX} tables");
        return Err(Fault::new("capacity", message, "ask for one part after the other"));
    }
    // Read twice, a table has rows that only one reading wants; a period ends at a row that no condition may hide.
    let conditions_of = |key: &Key, reads: usize| {
        let of_table = conditions.iter().filter(|(of, _)| of == key && reads == 1 && !has_period);
        of_table.map(|(_, condition)| condition.clone()).collect()
    };
    let in_use = |(key, reads): (Key, usize)| TableUse {
        conditions: conditions_of(&key, reads),
        columns: if whole.contains(&key) {
            ColumnsInUse::All(names.clone())
        } else {
            ColumnsInUse::Named(names.clone())
        },
        database: key.0,
        name: key.1,
    };
    Ok(tables.into_iter().map(in_use).collect())
}

/// A table as a statement names it.
type Key = (Option<String>, String);

/// Walks a statement: what is no CTE is a table, and a name that stands anywhere is a column of each that has it.
#[derive(Default)]
struct Collector {
    /// Names of the CTEs around the place, in small letters.
    ctes: Vec<HashSet<String>>,
    /// Each table and how often it is read.
    tables: Vec<(Key, usize)>,
    conditions: Vec<(Key, String)>,
    has_period: bool,
    now_us: i64,
    /// Tables of which every column is in use.
    whole: HashSet<Key>,
    /// Names that stand in expressions, in small letters.
    names: BTreeSet<String>,
}

impl Collector {
    fn key(&self, name: &ObjectName) -> Result<Option<Key>, Fault> {
        let (database, table) = table_name(name)?;
        let is_cte =
            database.is_none() && self.ctes.iter().any(|names| names.contains(&table.to_lowercase()));
        Ok((!is_cte).then(|| (database.map(Into::into), table.into())))
    }

    /// Of the tables of a FROM that `is_meant` says, every column is in use.
    fn take_whole(&mut self, from: &TableWithJoins, is_meant: &dyn Fn(&str) -> bool) -> Result<(), Fault> {
        let factors = std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation));
        for factor in factors {
            match factor {
                TableFactor::Table { name, alias, .. } => {
                    let called = alias.as_ref().map_or(table_name(name)?.1, |alias| &alias.name.value);
                    if let (true, Some(key)) = (is_meant(called), self.key(name)?) {
                        self.whole.insert(key);
                    }
                }
                TableFactor::NestedJoin { table_with_joins, .. } => {
                    self.take_whole(table_with_joins, is_meant)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn select(&mut self, select: &Select) -> Result<(), Fault> {
        for item in &select.projection {
            match item {
                SelectItem::Wildcard(_) => {
                    select.from.iter().try_for_each(|from| self.take_whole(from, &|_| true))?;
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let (_, wanted) = table_name(name)?;
                    let is_meant = |called: &str| called.eq_ignore_ascii_case(wanted);
                    select.from.iter().try_for_each(|from| self.take_whole(from, &is_meant))?;
                }
                _ => {}
            }
        }
        if let Some(filter) = &select.selection {
            let relations = pushed::relations(select);
            for (relation, condition) in pushed::conditions(filter, &relations, self.now_us) {
                if let TableFactor::Table { name, .. } = relation.factor
                    && let Some(key) = self.key(name)?
                {
                    self.conditions.push((key, condition));
                }
            }
        }
        select.from.iter().try_for_each(|from| self.joins(from))
    }

    /// Columns that a join compares without an expression.
    fn joins(&mut self, from: &TableWithJoins) -> Result<(), Fault> {
        for join in &from.joins {
            match constraint(&join.join_operator) {
                Some(JoinConstraint::Using(names)) => {
                    for name in names {
                        let names = parts(name)?.into_iter().map(str::to_lowercase);
                        self.names.extend(names);
                    }
                }
                Some(JoinConstraint::Natural) => self.take_whole(from, &|_| true)?,
                _ => {}
            }
        }
        let factors = std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation));
        for factor in factors {
            if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
                self.joins(table_with_joins)?;
            }
        }
        Ok(())
    }

    fn table_factor(&mut self, factor: &TableFactor) -> Result<(), Fault> {
        match factor {
            TableFactor::Table { name, args: None, .. } => {
                if let Some(key) = self.key(name)? {
                    match self.tables.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, reads)) => *reads += 1,
                        None => self.tables.push((key, 1)),
                    }
                }
                Ok(())
            }
            TableFactor::Derived { .. } | TableFactor::NestedJoin { .. } => Ok(()),
            TableFactor::Table { name, .. } | TableFactor::Function { name, .. } => {
                let message =
                    format!("`{}` is called as a table; only tables are read", quoted(&name.to_string()));
                Err(Fault::new("unsupported", message, "name a table, or a SELECT in parentheses"))
            }
            _ => Err(unsupported(&factor.to_string())),
        }
    }
}

/// How a join compares; none for one that has no such.
pub(super) fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::CrossJoin(constraint) => Some(constraint),
        _ => None,
    }
}

fn flow(result: Result<(), Fault>) -> ControlFlow<Fault> {
    result.map_or_else(ControlFlow::Break, ControlFlow::Continue)
}

impl Visitor for Collector {
    type Break = Fault;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Fault> {
        let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
        self.ctes.push(ctes.map(|cte| cte.alias.name.value.to_lowercase()).collect());
        flow(check_reads(&query.body))
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Fault> {
        self.ctes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Fault> {
        flow(self.select(select))
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Fault> {
        flow(self.table_factor(factor))
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Fault> {
        match expression {
            Expr::Identifier(name) => {
                self.names.insert(name.value.to_lowercase());
            }
            Expr::CompoundIdentifier(parts) => {
                self.names.extend(parts.last().map(|name| name.value.to_lowercase()));
            }
            Expr::Function(function) => match function.name.to_string().to_lowercase().as_str() {
                // What is first or last is so by its row's time.
                "first" | "last" | "first_at" | "last_at" => {
                    self.names.insert(TIME_COLUMN.name.into());
                }
                "period" => self.has_period = true,
                _ => {}
            },
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// No writing in disguise.
fn check_reads(body: &SetExpr) -> Result<(), Fault> {
    match body {
        SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => Ok(()),
        SetExpr::SetOperation { left, right, .. } => {
            check_reads(left)?;
            check_reads(right)
        }
        SetExpr::Table(_) => Err(unsupported("TABLE")),
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => Err(reads_only()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> ColumnsInUse {
        ColumnsInUse::Named(names.iter().map(|name| (*name).to_string()).collect())
    }

    fn tables(sql: &str) -> Vec<TableUse> {
        Beyond::parse(sql, 0).unwrap_or_else(|fault| panic!("{sql}: {fault}")).tables
    }

    #[test]
    fn tables_are_told_from_ctes_and_aliases() {
        let sql = "WITH hot AS (SELECT device, max(temp) AS top FROM demo.sensors GROUP BY device), \
                   b AS (SELECT * FROM hot) \
                   SELECT s.state, b.top FROM b JOIN states s ON s.device = b.device \
                   WHERE EXISTS (SELECT 1 FROM other.states o WHERE o.id = s.id)";
        let read = tables(sql);
        let names: Vec<(Option<&str>, &str)> =
            read.iter().map(|table| (table.database.as_deref(), table.name.as_str())).collect();
        assert_eq!(names, [(Some("demo"), "sensors"), (None, "states"), (Some("other"), "states")]);
        assert_eq!(read[0].columns, named(&["device", "id", "state", "temp", "top"]));
        let nested = "SELECT a FROM t WHERE a IN (WITH u AS (SELECT 1) SELECT * FROM u) AND b > (SELECT max(b) FROM u)";
        let names: Vec<String> = tables(nested).into_iter().map(|table| table.name).collect();
        assert_eq!(names, ["t", "u"], "a CTE is one within its own statement only");
    }

    #[test]
    fn a_star_uses_every_column_of_what_it_stands_for() {
        let is_all = |table: &TableUse| matches!(table.columns, ColumnsInUse::All(_));
        let read = tables("SELECT a.*, b.x FROM t a JOIN u b ON a.k = b.k");
        assert_eq!(read.iter().map(is_all).collect::<Vec<_>>(), [true, false]);
        let read = tables("SELECT count(*), sum(x) OVER () FROM t JOIN u USING (k)");
        assert_eq!(read[0].columns, named(&["k", "x"]));
        let read = tables("SELECT * FROM t NATURAL JOIN (SELECT y FROM u) v");
        assert_eq!(read.iter().map(is_all).collect::<Vec<_>>(), [true, false]);
        let all = &tables("SELECT *, _board FROM t, u")[0].columns;
        assert!(all.has("temp") && all.has("_board") && !all.has("_row_id"), "{all:?}");
    }

    #[test]
    fn what_is_not_one_select_is_refused() {
        for sql in [
            "",
            ";",
            "SELECT 1; SELECT 2",
            "SELECT 1; DROP TABLE t",
            "INSERT INTO t VALUES (1)",
            "DELETE FROM t",
            "UPDATE t SET a = 1",
            "CREATE TABLE x (a)",
            "DROP TABLE t",
            "ATTACH 'f' AS g",
            "PRAGMA user_version",
            "VACUUM INTO 'f'",
            "REINDEX",
            "EXPLAIN SELECT 1",
            "BEGIN",
            "REPLACE INTO t VALUES (1)",
            "WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x",
            "WITH x AS (INSERT INTO t VALUES (1)) SELECT 1",
            "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
            "WITH x AS (SELECT 1) DELETE FROM t",
            "SELECT 1 -- x",
            "SELCT 1",
            "SELECT * FROM a.b.c",
        ] {
            let fault = Beyond::parse(sql, 0).expect_err(sql);
            assert_eq!(fault.code, "syntax", "{sql}: {fault}");
            assert!(!fault.suggested_action.is_empty());
        }
        for sql in ["SELECT * FROM pragma_table_info('t')", "SELECT * FROM json_each('[1]')"] {
            assert_eq!(Beyond::parse(sql, 0).expect_err(sql).code, "unsupported", "{sql}");
        }
    }
}
