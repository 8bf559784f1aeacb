//! One SELECT taken apart into its clauses, so that bounds can be added to it. Its meaning is the parser's, in `shared`.

use crate::fault::Fault;
use shared::{
    limits::{COMMAND_BYTES_MAX, NAME_BYTES_MAX, SELECT_ITEMS_MAX},
    sql::{
        self,
        tree::{Node, Select},
    },
    time::Utc,
};
use std::{fmt::Write as _, ops::Range};

/// The column that says which row a row is.
const ROW_ID: &str = "_row_id";

/// A SELECT whose `now()` is a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The table.
    pub table: String,
    /// LIMIT; none is no limit.
    pub limit: Option<u64>,
    /// OFFSET
    pub offset: u64,
    is_distinct: bool,
    items: String,
    item_count: usize,
    filter: Option<String>,
    group_by: Option<String>,
    having: Option<String>,
    order_by: Option<String>,
    has_aggregate: bool,
    has_period: bool,
}

impl Statement {
    /// Reads one SELECT; every `now()` in it becomes the moment `now_us`.
    pub fn parse(text: &str, now_us: i64) -> Result<Self, Fault> {
        let pinned = pin_now(text, &sql::parse(text)?, now_us);
        let select = sql::parse(&pinned)?;
        let text = pinned.as_str();
        let clauses = Clauses::of(text);
        let has = |is_such: fn(&Node) -> bool| select.tree.nodes.iter().any(is_such);
        let mut items = clauses.text(text, "SELECT").unwrap_or_default();
        if select.distinct {
            items = items.get("DISTINCT".len()..).unwrap_or_default().trim();
        }
        Ok(Self {
            table: select.from.of(text).into(),
            limit: select.limit,
            offset: select.offset,
            is_distinct: select.distinct,
            items: items.into(),
            item_count: select.items.len(),
            filter: clauses.text(text, "WHERE").map(Into::into),
            group_by: clauses.by(text, "GROUP"),
            having: clauses.text(text, "HAVING").map(Into::into),
            order_by: clauses.by(text, "ORDER"),
            has_aggregate: has(|node| matches!(node, Node::Aggregate(..))),
            has_period: has(|node| matches!(node, Node::Period(..))),
        })
    }

    /// Whether it selects just every column of its table.
    pub fn selects_all(&self) -> bool {
        self.items == "*"
    }

    /// Whether a board sends its rows as it reads them, and keeps none.
    pub fn is_stream(&self) -> bool {
        let computes = self.has_aggregate || self.is_distinct || self.having.is_some();
        !computes && self.group_by.is_none() && self.order_by.is_none()
    }

    /// Whether rows of several boards cannot just stand one behind the other.
    pub fn needs_one_board(&self) -> bool {
        !self.is_stream() || self.has_period
    }

    /// Whether only the order of rows makes it more than a stream: then the first rows can be had by a LIMIT.
    pub fn only_sorts(&self) -> bool {
        let without_order = Self { order_by: None, ..self.clone() };
        self.order_by.is_some() && without_order.is_stream()
    }

    /// What a board is asked for a stream of at most `limit` rows in `rows`; the last column is the row's id.
    pub fn stream_sql(&self, rows: Option<&Range<u64>>, limit: Option<u64>) -> Result<String, Fault> {
        if self.item_count >= SELECT_ITEMS_MAX {
            let message = format!("SELECT_ITEMS_MAX: at most {} items can be selected", SELECT_ITEMS_MAX - 1);
            return Err(Fault::new("capacity", message, "select fewer columns, or *"));
        }
        let mut sql = format!("SELECT {}, {ROW_ID} FROM \"{}\"", self.items, self.table);
        let mut conditions = Vec::new();
        if let Some(rows) = rows {
            conditions.push(format!("{ROW_ID} >= {} AND {ROW_ID} < {}", rows.start, rows.end));
        }
        if let Some(filter) = &self.filter {
            conditions.push(if conditions.is_empty() { filter.clone() } else { format!("({filter})") });
        }
        if !conditions.is_empty() {
            let _ = write!(sql, " WHERE {}", conditions.join(" AND ")); // a String takes everything
        }
        if let Some(limit) = limit {
            let _ = write!(sql, " LIMIT {limit}");
        }
        Ok(sql)
    }

    /// Whether it still can be asked when the bounds of any rows are added: a long statement outgrows a command.
    pub fn can_be_bounded(&self, database: &str) -> bool {
        let widest = i64::MAX as u64..i64::MAX as u64;
        self.stream_sql(Some(&widest), Some(u64::MAX)).is_ok_and(|sql| {
            let command_bytes = "sql  \"\"".len() + database.len() + sql.len();
            command_bytes <= COMMAND_BYTES_MAX && sql::parse(&sql).is_ok()
        })
    }

    /// What a board is asked for a computed answer of at most `limit` rows.
    pub fn computed_sql(&self, limit: Option<u64>) -> String {
        let distinct = if self.is_distinct { "DISTINCT " } else { "" };
        let mut sql = format!("SELECT {distinct}{} FROM \"{}\"", self.items, self.table);
        let clauses = [
            ("WHERE", &self.filter),
            ("GROUP BY", &self.group_by),
            ("HAVING", &self.having),
            ("ORDER BY", &self.order_by),
        ];
        for (word, clause) in clauses {
            if let Some(clause) = clause {
                let _ = write!(sql, " {word} {clause}");
            }
        }
        if let Some(limit) = limit {
            let _ = write!(sql, " LIMIT {limit}");
        }
        if self.offset > 0 {
            let _ = write!(sql, " OFFSET {}", self.offset);
        }
        sql
    }
}

/// Writes a moment for each `now()`. An item that was named by its own text keeps that name.
fn pin_now(text: &str, select: &Select, now_us: i64) -> String {
    let is_now = |(node, position): (&Node, &u16)| (*node == Node::Now).then_some(usize::from(*position));
    let nows: Vec<usize> = select.tree.nodes.iter().zip(&select.tree.positions).filter_map(is_now).collect();
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for start in &nows {
        let len = text.get(*start..).and_then(|call| call.find(')')).map_or(0, |close| close + 1);
        edits.push((*start..start + len, format!("TIMESTAMP '{}'", Utc(now_us))));
    }
    for item in &select.items {
        let (source, start) = (item.source.of(text), usize::from(item.source.start));
        let end = start + source.len();
        let can_be_name = source.len() <= NAME_BYTES_MAX && !source.contains(['"', '\n', '\r', '\t']);
        if item.name.is_none() && can_be_name && nows.iter().any(|now| (start..end).contains(now)) {
            edits.push((end..end, format!(" AS \"{source}\"")));
        }
    }
    edits.sort_by_key(|(place, _)| std::cmp::Reverse((place.start, place.end)));
    let mut pinned = text.to_string();
    for (place, written) in edits {
        pinned.replace_range(place, &written);
    }
    pinned
}

/// Where the clauses of a SELECT that parses begin. Their words are no names, so none is found in an expression.
struct Clauses(Vec<(&'static str, Range<usize>)>);

impl Clauses {
    const WORDS: [&'static str; 8] =
        ["SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET"];

    fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut found: Vec<(&'static str, Range<usize>)> = Vec::new();
        let (mut at, mut depth) = (0, 0_u32);
        while let Some(byte) = bytes.get(at) {
            let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            let len = match byte {
                // A quote that is written twice is two texts side by side here: it ends at the same place.
                b'\'' | b'"' => 2 + bytes[at + 1..].iter().take_while(|other| *other != byte).count(),
                byte if is_word(byte) => bytes[at..].iter().take_while(|byte| is_word(byte)).count(),
                _ => 1,
            };
            match byte {
                b'(' => depth += 1,
                b')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            let end = (at + len).min(bytes.len());
            let written = &bytes[at..end];
            let word = Self::WORDS.iter().find(|word| word.as_bytes().eq_ignore_ascii_case(written));
            if (depth == 0 && word.is_some()) || *byte == b';' {
                if let Some((_, before)) = found.last_mut() {
                    before.end = at;
                }
                if let Some(word) = word {
                    found.push((word, end..bytes.len()));
                }
            }
            at = end;
        }
        Self(found)
    }

    fn text<'t>(&self, text: &'t str, word: &str) -> Option<&'t str> {
        let (_, place) = self.0.iter().find(|(found, _)| *found == word)?;
        text.get(place.clone()).map(str::trim)
    }

    /// What stands behind `BY`.
    fn by(&self, text: &str, word: &str) -> Option<String> {
        self.text(text, word)?.get("BY".len()..).map(|keys| keys.trim().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(text: &str) -> Statement {
        Statement::parse(text, 1_500_000).unwrap()
    }

    #[test]
    fn a_stream_gets_bounds_and_its_rows_ids() {
        let sql = statement("select a, b x from t where a = 1 or b = 'it''s (' limit 5 offset 2 ;");
        assert!(sql.is_stream() && !sql.needs_one_board());
        assert_eq!((sql.limit, sql.offset, sql.table.as_str()), (Some(5), 2, "t"));
        assert_eq!(
            sql.stream_sql(Some(&(3..9)), Some(7)).unwrap(),
            "SELECT a, b x, _row_id FROM \"t\" WHERE _row_id >= 3 AND _row_id < 9 AND (a = 1 or b = 'it''s (') LIMIT 7"
        );
        assert_eq!(
            statement("SELECT * FROM t;").stream_sql(None, None).unwrap(),
            "SELECT *, _row_id FROM \"t\""
        );
    }

    #[test]
    fn a_computed_answer_keeps_its_clauses() {
        let text = "SELECT DISTINCT \"order\", max(b) FROM t WHERE c < 'GROUP' GROUP BY a, c HAVING max(b) > 1 ORDER BY a DESC, 2";
        let sql = statement(text);
        assert!(!sql.is_stream() && sql.needs_one_board() && !sql.only_sorts());
        assert_eq!(sql.computed_sql(None), text.replace("FROM t", "FROM \"t\""));
        assert_eq!(sql.computed_sql(Some(3)), text.replace("FROM t", "FROM \"t\"") + " LIMIT 3");
        assert!(statement("SELECT a FROM t ORDER BY b").only_sorts());
        let period = statement("SELECT a FROM t WHERE period(day, 1, now(), timestamp)");
        assert!(period.is_stream() && period.needs_one_board());
    }

    #[test]
    fn now_is_one_moment_and_its_item_keeps_its_name() {
        let sql = statement("SELECT NOW ( ), now() AS n, a FROM t WHERE timestamp > now() - 3 days");
        assert_eq!(
            sql.computed_sql(None),
            "SELECT TIMESTAMP '1970-01-01T00:00:01.5Z' AS \"NOW ( )\", TIMESTAMP '1970-01-01T00:00:01.5Z' AS n, a \
             FROM \"t\" WHERE timestamp > TIMESTAMP '1970-01-01T00:00:01.5Z' - 3 days"
        );
    }

    #[test]
    fn two_statements_and_other_statements_are_refused() {
        for text in ["SELECT a FROM t; SELECT b FROM t", "DROP TABLE t", "", "SELECT a FROM t -- x", "SELECT"]
        {
            let fault = Statement::parse(text, 0).unwrap_err();
            assert_eq!(fault.code, "syntax", "{text}");
        }
        assert!(statement("SELECT a FROM t WHERE a = 1").can_be_bounded("demo"));
        let long = format!("SELECT a FROM t WHERE a = '{}'", "x".repeat(COMMAND_BYTES_MAX - 60));
        assert!(!statement(&long).can_be_bounded("demo"));
        let many = format!("SELECT {} FROM t", vec!["a"; SELECT_ITEMS_MAX].join(", "));
        assert_eq!(statement(&many).stream_sql(None, None).unwrap_err().code, "capacity");
    }
}
