//! Queries made from dice, written twice: as Picolake is asked, and so that SQLite answers in the same order.
//!
//! Picolake gives rows by row_id where nothing else is asked, ends ties on it, gives groups by their keys, and different
//! rows in the order in which they first appear. SQLite promises none of that, so its text says it.

use super::{
    Dice,
    expression::{Expression, Kind},
    maker::{Maker, kind_of},
    table::Table,
    written::{picolake, picolake_name, sqlite},
};
use shared::limits::COMMAND_BYTES_MAX;

/// A query in two languages.
#[derive(Clone, Debug)]
pub struct Query {
    /// As Picolake is asked.
    pub picolake: String,
    /// As SQLite is asked.
    pub sqlite: String,
    /// The columns of the answer.
    pub columns: Vec<AnswerColumn>,
}

/// What is known of a column of the answer.
#[derive(Clone, Debug)]
pub struct AnswerColumn {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// Whether its floats are computed in another way by SQLite, so that they are less near.
    pub is_near: bool,
}

/// A query and the three that its rows fall into: those for which a condition holds, does not, and is unknown.
#[derive(Clone, Debug)]
pub struct Partition {
    /// All rows.
    pub whole: Query,
    /// `WHERE p`, `WHERE NOT p`, `WHERE p IS NULL`
    pub parts: [Query; 3],
}

/// One item of the list.
struct Item {
    /// None for `*`.
    expression: Option<Expression>,
    kind: Kind,
    alias: Option<String>,
}

/// A key of GROUP BY or ORDER BY, and how it is written for Picolake: perhaps as the name or the number of an item.
struct Key {
    expression: Expression,
    written: String,
    is_descending: bool,
}

/// A SELECT, clause by clause.
#[derive(Default)]
struct Clauses {
    is_distinct: bool,
    items: Vec<Item>,
    filter: Option<Expression>,
    is_grouped: bool,
    group_by: Vec<Key>,
    having: Option<Expression>,
    order_by: Vec<Key>,
    limit: Option<u64>,
    offset: u64,
}

impl Query {
    /// The query of a seed about a table.
    pub fn of(seed: u64, table: &Table) -> Self {
        let mut dice = Dice::new(seed);
        loop {
            let mut maker = Maker { dice: Dice::new(dice.number()), table, keys: None, takes_spread: true };
            let query = clauses(&mut maker).written(table);
            if query.picolake.len() <= COMMAND_BYTES_MAX {
                return query;
            }
        }
    }
}

impl Partition {
    /// The partition of a seed.
    pub fn of(seed: u64, table: &Table) -> Self {
        let mut maker = Maker { dice: Dice::new(seed), table, keys: None, takes_spread: true };
        let condition = maker.varying(Kind::Bool, 2);
        let mut clauses = Clauses { items: row_items(&mut maker), ..Clauses::default() };
        let whole = clauses.written(table);
        let not = Expression::Not(condition.clone().boxed());
        let unknown = Expression::IsNull(false, condition.clone().boxed());
        let parts = [condition, not, unknown].map(|condition| {
            clauses.filter = Some(condition);
            clauses.written(table)
        });
        Self { whole, parts }
    }
}

// ---- Making ----

fn clauses(maker: &mut Maker<'_>) -> Clauses {
    let mut clauses = Clauses::default();
    if maker.dice.percent(60) {
        clauses.filter = Some(maker.varying(Kind::Bool, 3));
    }
    if maker.dice.percent(10) {
        let period = maker.period();
        clauses.filter = Some(match clauses.filter.take() {
            Some(filter) => Expression::Binary("AND", filter.boxed(), period.boxed()),
            None => period,
        });
    }
    clauses.is_distinct = maker.dice.percent(15);
    clauses.is_grouped = maker.dice.percent(45);
    if clauses.is_grouped {
        groups(maker, &mut clauses);
    } else {
        clauses.items = row_items(maker);
    }
    order(maker, &mut clauses);
    limit(maker, &mut clauses);
    clauses
}

fn row_items(maker: &mut Maker<'_>) -> Vec<Item> {
    let mut items = Vec::new();
    for index in 0..=maker.dice.below(4) {
        if maker.dice.percent(8) {
            items.push(Item { expression: None, kind: Kind::Int, alias: None });
            continue;
        }
        let kind = maker.kind();
        let expression = maker.of(kind, 3);
        items.push(Item { expression: Some(expression), kind, alias: alias(maker, index) });
    }
    items
}

fn alias(maker: &mut Maker<'_>, index: u64) -> Option<String> {
    if maker.dice.percent(50) { Some(format!("x{index}")) } else { None }
}

fn groups(maker: &mut Maker<'_>, clauses: &mut Clauses) {
    let mut keys = Vec::new();
    for _ in 0..maker.dice.pick(&[0, 1, 1, 1, 2, 2, 3]) {
        keys.push(group_key(maker));
    }
    let mut written: Vec<String> = keys.iter().map(|(key, _)| picolake(key)).collect();
    for (index, (key, kind)) in keys.iter().enumerate() {
        if maker.dice.percent(70) {
            let alias = alias(maker, index as u64);
            match &alias {
                Some(alias) if maker.dice.percent(50) => written[index].clone_from(alias),
                _ if maker.dice.percent(20) => written[index] = (clauses.items.len() + 1).to_string(),
                _ => {}
            }
            clauses.items.push(Item { expression: Some(key.clone()), kind: *kind, alias });
        }
    }
    maker.keys = Some(keys.clone());
    for index in 0..=maker.dice.below(3) {
        let kind = maker.dice.pick(&[
            Kind::Int,
            Kind::Int,
            Kind::Float,
            Kind::Float,
            Kind::Bool,
            Kind::Text,
            Kind::Moment,
        ]);
        let depth = maker.dice.pick(&[0, 0, 0, 1, 2]);
        maker.takes_spread = depth == 0;
        let mut expression = maker.of(kind, depth);
        if keys.is_empty() && !expression.has_aggregate() {
            expression = Expression::Aggregate("count", false, None);
        }
        let kind = if expression == Expression::Aggregate("count", false, None) { Kind::Int } else { kind };
        clauses.items.push(Item { expression: Some(expression), kind, alias: alias(maker, index + 4) });
    }
    maker.takes_spread = false;
    if maker.dice.percent(25) && !clauses.has_large_sum(maker.table) {
        clauses.having = Some(maker.varying(Kind::Bool, 2));
    }
    let key = |((expression, _), written)| Key { expression, written, is_descending: false };
    clauses.group_by = keys.into_iter().zip(written).map(key).collect();
}

/// What rows are grouped by: few different values, and of one type in every row.
fn group_key(maker: &mut Maker<'_>) -> (Expression, Kind) {
    let kind = maker.kind();
    let column = maker.column(kind);
    match (maker.dice.below(6), column) {
        (0, _) => (maker.increments(0), Kind::Moment),
        (1, _) => {
            let column = Expression::Column(maker.column(Kind::Int).unwrap_or("timestamp"));
            let column = match column {
                Expression::Column("timestamp") => Expression::RowId,
                column => column,
            };
            let by = Expression::Int(maker.dice.between(2, 9));
            (Expression::Binary("%", column.boxed(), by.boxed()), Kind::Int)
        }
        (2, _) => (maker.varying(Kind::Bool, 1), Kind::Bool),
        (3, Some(name)) if kind == Kind::Text => {
            (Expression::Call("lower", vec![Expression::Column(name)]), Kind::Text)
        }
        (_, Some(name)) => (Expression::Column(name), kind),
        (_, None) => (
            Expression::Increments(shared::sql::tree::Unit::Hour, 1, Expression::Column("timestamp").boxed()),
            Kind::Moment,
        ),
    }
}

fn order(maker: &mut Maker<'_>, clauses: &mut Clauses) {
    if maker.dice.percent(55) {
        return;
    }
    for _ in 0..maker.dice.pick(&[1, 1, 2, 3]) {
        let is_descending = maker.dice.percent(50);
        let has_star = clauses.items.iter().any(|item| item.expression.is_none());
        let index = maker.dice.below(clauses.items.len() as u64) as usize;
        let item = &clauses.items[index];
        let usable =
            item.expression.clone().filter(|expression| expression.has_column() && !expression.has_spread());
        if let Some(expression) = usable {
            let written = match (&item.alias, maker.dice.below(3)) {
                (Some(alias), 0 | 1) => alias.clone(),
                (_, 2) if !has_star => (index + 1).to_string(),
                _ => picolake(&expression),
            };
            clauses.order_by.push(Key { expression, written, is_descending });
        } else if !clauses.is_distinct {
            let kind = maker.kind();
            let expression = maker.varying(kind, 2);
            clauses.order_by.push(Key { written: picolake(&expression), expression, is_descending });
        }
    }
}

fn limit(maker: &mut Maker<'_>, clauses: &mut Clauses) {
    // Whether a sum that overflows is looked at may depend on how many rows are wanted.
    if clauses.has_large_sum(maker.table) {
        return;
    }
    let is_long = maker.table.rows.len() > 100 && !clauses.order_by.is_empty();
    if maker.dice.percent(if is_long { 95 } else { 30 }) {
        clauses.limit = Some(maker.dice.pick(&[0, 1, 2, 5, 10, 20, 50]));
    }
    if maker.dice.percent(15) {
        clauses.offset = maker.dice.pick(&[1, 2, 3, 10, 100]);
    }
}

// ---- Writing ----

impl Clauses {
    /// Whether integers are added up whose sum may overflow.
    fn has_large_sum(&self, table: &Table) -> bool {
        let is_extreme =
            |name: &str| table.columns.iter().any(|column| column.name == name && column.is_extreme);
        let is_large = |node: &Expression| match node {
            Expression::Aggregate("sum", _, Some(x)) => {
                matches!(**x, Expression::Column(name) if is_extreme(name))
            }
            _ => false,
        };
        let items = self.items.iter().filter_map(|item| item.expression.as_ref());
        let keys = self.order_by.iter().map(|key| &key.expression);
        items.chain(keys).chain(&self.having).any(|expression| expression.has(&is_large))
    }

    fn written(&self, table: &Table) -> Query {
        Query { picolake: self.picolake(), sqlite: self.sqlite(table), columns: self.columns(table) }
    }

    fn columns(&self, table: &Table) -> Vec<AnswerColumn> {
        let mut columns = Vec::new();
        for Item { expression, kind, alias } in &self.items {
            match expression {
                None => columns.extend(table.columns.iter().map(|column| AnswerColumn {
                    name: column.name.to_string(),
                    kind: kind_of(column.kind),
                    is_near: false,
                })),
                Some(expression) => {
                    let source = match expression {
                        Expression::Column(name) => name.to_string(),
                        _ => picolake(expression),
                    };
                    let name = alias.clone().unwrap_or(source);
                    columns.push(AnswerColumn { name, kind: *kind, is_near: expression.has_spread() });
                }
            }
        }
        columns
    }

    fn picolake(&self) -> String {
        let items = self.items.iter().map(|item| {
            let text = item.expression.as_ref().map_or("*".to_string(), picolake);
            text + &item.alias.as_ref().map_or(String::new(), |alias| format!(" AS {alias}"))
        });
        let distinct = if self.is_distinct { "DISTINCT " } else { "" };
        let mut text = format!("SELECT {distinct}{} FROM {}", joined(items), picolake_name(Table::NAME));
        if let Some(filter) = &self.filter {
            text += &format!(" WHERE {}", picolake(filter));
        }
        if !self.group_by.is_empty() {
            text += &format!(" GROUP BY {}", joined(self.group_by.iter().map(|key| key.written.clone())));
        }
        if let Some(having) = &self.having {
            text += &format!(" HAVING {}", picolake(having));
        }
        if !self.order_by.is_empty() {
            let keys = self.order_by.iter().map(|key| key.written.clone() + key.direction());
            text += &format!(" ORDER BY {}", joined(keys));
        }
        if let Some(limit) = self.limit {
            text += &format!(" LIMIT {limit}");
        }
        text + &if self.offset > 0 { format!(" OFFSET {}", self.offset) } else { String::new() }
    }

    fn sqlite(&self, table: &Table) -> String {
        let mut items = Vec::new();
        for item in &self.items {
            match &item.expression {
                None => items.extend(table.columns.iter().map(|column| format!("\"{}\"", column.name))),
                Some(expression) => items.push(sqlite(expression, table)),
            }
        }
        let named = joined(items.iter().enumerate().map(|(index, item)| format!("{item} AS c{index}")));
        let names = joined((0..items.len()).map(|index| format!("c{index}")));
        let filter =
            self.filter.as_ref().map_or(String::new(), |filter| format!(" WHERE {}", sqlite(filter, table)));
        let mut order: Vec<String> =
            self.order_by.iter().map(|key| key.sqlite(table) + key.direction()).collect();
        let limit = self.limit.map_or(-1, |limit| limit as i64);
        let limit = format!("LIMIT {limit} OFFSET {}", self.offset);
        let name = Table::NAME;
        if !self.is_grouped {
            order.push("rowid".to_string());
            let order = joined(order.into_iter());
            if !self.is_distinct {
                return format!("SELECT {named} FROM {name}{filter} ORDER BY {order} {limit}");
            }
            let numbered =
                format!("SELECT {named}, row_number() OVER (ORDER BY {order}) AS n FROM {name}{filter}");
            return format!("SELECT {names} FROM ({numbered}) GROUP BY {names} ORDER BY min(n) {limit}");
        }
        let keys: Vec<String> = self.group_by.iter().map(|key| key.sqlite(table)).collect();
        order.extend(keys.iter().cloned());
        let order = if order.is_empty() { "1".to_string() } else { joined(order.into_iter()) };
        let by =
            if keys.is_empty() { String::new() } else { format!(" GROUP BY {}", joined(keys.into_iter())) };
        let having =
            self.having.as_ref().map_or(String::new(), |having| format!(" HAVING {}", sqlite(having, table)));
        let from = format!("FROM {name}{filter}{by}{having}");
        if !self.is_distinct {
            return format!("SELECT {named} {from} ORDER BY {order} {limit}");
        }
        let numbered = format!("SELECT {named}, row_number() OVER (ORDER BY {order}) AS n {from}");
        format!("SELECT {names} FROM ({numbered}) GROUP BY {names} ORDER BY min(n) {limit}")
    }
}

impl Key {
    /// Not as it is: what SQLite finds to be a constant, it takes for the number of an item.
    fn sqlite(&self, table: &Table) -> String {
        format!("coalesce({}, NULL)", sqlite(&self.expression, table))
    }

    fn direction(&self) -> &'static str {
        if self.is_descending { " DESC" } else { "" }
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}
