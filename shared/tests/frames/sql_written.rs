//! Queries as text: made from a script so that they are well written, and written again from their trees.

use crate::script::Script;
use shared::{
    sql::tree::{BinaryOp, CastTo, List, Node, NodeId, Select, UnaryOp},
    time::Utc,
};

/// Where an expression stands.
#[derive(Clone, Copy, Default)]
pub(crate) struct Use {
    /// In WHERE.
    pub(crate) is_filter: bool,
    /// Where there is one row at a time: no aggregate fits.
    pub(crate) is_row: bool,
    /// How many nodes are above it.
    pub(crate) depth: usize,
}

/// A query that is well written, though perhaps larger than a bound.
pub(crate) fn query(script: &mut Script<'_>) -> String {
    let mut maker = Maker { script };
    let mut text = String::from(if maker.dice(4) == 0 { "SELECT DISTINCT " } else { "SELECT " });
    let (top, row) = (Use::default(), Use { is_row: true, ..Use::default() });
    for item in 0..=maker.dice(4) {
        let before = if item == 0 { "" } else { ", " };
        let name = maker.pick(&["", "", " AS x", " y", " AS \"a b\""]);
        match maker.dice(8) {
            0 => text += &format!("{before}*"),
            _ => text += &format!("{before}{}{name}", maker.expression(top)),
        }
    }
    text += " FROM t";
    if maker.dice(2) == 0 {
        text += &format!(" WHERE {}", maker.expression(Use { is_filter: true, ..row }));
    }
    if maker.dice(3) == 0 {
        text += &format!(" GROUP BY {}, {}", maker.expression(row), maker.expression(row));
    }
    if maker.dice(4) == 0 {
        text += &format!(" HAVING {}", maker.expression(top));
    }
    if maker.dice(3) == 0 {
        text += &format!(" ORDER BY {} DESC, {}", maker.expression(top), maker.expression(top));
    }
    text += maker.pick(&["", "", " LIMIT 10", " LIMIT 0 OFFSET 3", " OFFSET 18446744073709551615"]);
    text + maker.pick(&["", ";", "\n", " ; "])
}

struct Maker<'s, 'b> {
    script: &'s mut Script<'b>,
}

impl Maker<'_, '_> {
    /// At the end of the script always 0, which ends every choice.
    fn dice(&mut self, bound: u8) -> u8 {
        self.script.below(bound).unwrap_or(0)
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[usize::from(self.dice(from.len() as u8))]
    }

    fn expression(&mut self, place: Use) -> String {
        let place = Use { depth: place.depth + 1, ..place };
        let choices = if place.depth > 5 { 6 } else { 24 };
        match self.dice(choices) {
            0..6 => self.leaf(),
            6..11 => {
                let ops = [
                    "+", "-", "*", " / ", "%", " = ", "==", "<>", "!=", "<", "<=", ">", ">=", " AND ", " OR ",
                ];
                let op = self.pick(&ops);
                format!("{}{op} {}", self.expression(place), self.expression(place))
            }
            11 => format!("({})", self.expression(place)),
            12 => format!("NOT {}", self.expression(place)),
            13 => format!("- {}", self.expression(place)),
            14 => format!("({}) IS{} NULL", self.expression(place), self.pick(&["", " NOT"])),
            15 => {
                let [x, low, high] = [0; 3].map(|_| self.expression(place));
                format!("({x}){} BETWEEN ({low}) AND ({high})", self.pick(&["", " NOT"]))
            }
            16 => {
                let [x, y, z] = [0; 3].map(|_| self.expression(place));
                format!("({x}){} IN ({y}, {z})", self.pick(&["", " not"]))
            }
            17 => {
                let (x, y) = (self.expression(place), self.expression(place));
                format!("({x}){} LIKE ({y})", self.pick(&["", " NOT"]))
            }
            18 => format!(
                "({})::{}",
                self.expression(place),
                self.pick(&["int", "float", "float(3)", "varchar"])
            ),
            19 => format!("CAST({} AS {})", self.expression(place), self.pick(&["bigint", "double", "text"])),
            20 => format!("coalesce({}, {})", self.expression(place), self.expression(place)),
            21 => {
                let name = self.pick(&["abs", "round", "floor", "ceil", "lower", "UPPER", "length"]);
                format!("{name}({})", self.expression(place))
            }
            22 if !place.is_row => {
                let name =
                    self.pick(&["count(", "sum(DISTINCT ", "avg(", "min(", "range(", "first(", "stddev("]);
                format!("{name}{})", self.expression(Use { is_row: true, ..place }))
            }
            22 if place.is_filter => {
                self.pick(&["period(day, 1, now(), a)", "period(hours, 2, '2026-11-18', b)"]).into()
            }
            _ => format!("increments({}, 5, {})", self.pick(&["minute", "year"]), self.expression(place)),
        }
    }

    fn leaf(&mut self) -> String {
        self.pick(&[
            "a",
            "b",
            "timestamp",
            "\"from\"",
            "1",
            "0",
            "9223372036854775807",
            "9223372036854775808",
            "1.5",
            "1e3",
            "'x'",
            "'it''s'",
            "''",
            "TRUE",
            "NULL",
            "now()",
            "3 days",
            "interval '-2' week",
            "TIMESTAMP '2026-11-18'",
        ])
        .into()
    }
}

/// A query written from its tree, with parentheses around everything that is not a leaf.
pub(crate) fn written(select: &Select, text: &str) -> String {
    let writer = Writer { select, text };
    let list = |nodes: Vec<String>| nodes.join(", ");
    let items = select.items.iter().map(|item| {
        let node = item.node.map_or("*".to_string(), |node| writer.node(node));
        node + &item.name.map_or(String::new(), |name| format!(" AS \"{}\"", name.of(text)))
    });
    let distinct = if select.distinct { "DISTINCT " } else { "" };
    let mut written = format!("SELECT {distinct}{} FROM \"{}\"", list(items.collect()), select.from.of(text));
    if let Some(filter) = select.filter {
        written += &format!(" WHERE {}", writer.node(filter));
    }
    if !select.group_by.is_empty() {
        let keys = select.group_by.iter().map(|key| writer.node(*key));
        written += &format!(" GROUP BY {}", list(keys.collect()));
    }
    if let Some(having) = select.having {
        written += &format!(" HAVING {}", writer.node(having));
    }
    if !select.order_by.is_empty() {
        let keys = select.order_by.iter();
        let keys = keys.map(|key| writer.node(key.node) + if key.descending { " DESC" } else { "" });
        written += &format!(" ORDER BY {}", list(keys.collect()));
    }
    if let Some(limit) = select.limit {
        written += &format!(" LIMIT {limit}");
    }
    written + &if select.offset > 0 { format!(" OFFSET {}", select.offset) } else { String::new() }
}

struct Writer<'s> {
    select: &'s Select,
    text: &'s str,
}

impl Writer<'_> {
    /// An operand: in parentheses unless it is a leaf or a call.
    fn operand(&self, id: NodeId) -> String {
        let is_open = matches!(
            self.select.tree.node(id),
            Node::Unary(..)
                | Node::Binary(..)
                | Node::IsNull(..)
                | Node::Between(..)
                | Node::In(..)
                | Node::Like(..)
        );
        if is_open { format!("({})", self.node(id)) } else { self.node(id) }
    }

    fn node(&self, id: NodeId) -> String {
        let not = |is_negated| if is_negated { " NOT" } else { "" };
        match self.select.tree.node(id) {
            Node::Null | Node::Column(_) | Node::Slot(_) => "NULL".to_string(),
            Node::Bool(value) => value.to_string(),
            Node::Int(value) => value.to_string(),
            Node::Float(value) if value.is_infinite() => {
                format!("{}1e999", if value < 0.0 { "-" } else { "" })
            }
            Node::Float(value) => format!("{value:?}"),
            Node::Text(place) => format!("'{}'", place.of(self.text)),
            Node::Timestamp(value) => format!("TIMESTAMP '{}'", Utc(value)),
            Node::Interval(count, unit) => format!("INTERVAL '{count} {unit:?}'"),
            Node::Name(name) => format!("\"{}\"", name.of(self.text)),
            Node::Now => "now()".to_string(),
            Node::Unary(UnaryOp::Minus, x) => format!("- ({})", self.node(x)), // a number would take the sign
            Node::Unary(UnaryOp::Not, x) => format!("NOT {}", self.operand(x)),
            Node::Binary(op, x, y) => format!("{} {} {}", self.operand(x), sign(op), self.operand(y)),
            Node::IsNull(is_negated, x) => format!("{} IS{} NULL", self.operand(x), not(is_negated)),
            Node::Between(is_negated, x, low, high) => {
                let [x, low, high] = [x, low, high].map(|node| self.operand(node));
                format!("{x}{} BETWEEN {low} AND {high}", not(is_negated))
            }
            Node::In(is_negated, x, list) => {
                format!("{}{} IN ({})", self.operand(x), not(is_negated), self.list(list))
            }
            Node::Like(is_negated, x, y) => {
                format!("{}{} LIKE {}", self.operand(x), not(is_negated), self.operand(y))
            }
            Node::Cast(to, x) => {
                let to = match to {
                    CastTo::Int => "int".to_string(),
                    CastTo::Float(None) => "float".to_string(),
                    CastTo::Float(Some(decimals)) => format!("float({decimals})"),
                    CastTo::Text => "text".to_string(),
                };
                format!("CAST({} AS {to})", self.node(x))
            }
            Node::Function(function, list) => format!("{function:?}({})", self.list(list)),
            Node::Aggregate(aggregate, is_distinct, x) => {
                let distinct = if is_distinct { "DISTINCT " } else { "" };
                format!("{aggregate:?}({distinct}{})", x.map_or("*".to_string(), |x| self.node(x)))
            }
            Node::Increments(unit, count, x) => format!("increments({unit:?}, {count}, {})", self.node(x)),
            Node::Period(unit, count, end, x) => {
                format!("period({unit:?}, {count}, {}, {})", self.node(end), self.node(x))
            }
        }
    }

    fn list(&self, list: List) -> String {
        let members = self.select.tree.list(list).iter().map(|id| self.node(*id));
        members.collect::<Vec<String>>().join(", ")
    }
}

/// The nodes that a node uses.
pub(crate) fn children(select: &Select, node: Node) -> Vec<NodeId> {
    match node {
        Node::Unary(_, x) | Node::IsNull(_, x) | Node::Cast(_, x) | Node::Increments(_, _, x) => vec![x],
        Node::Binary(_, x, y) | Node::Like(_, x, y) | Node::Period(_, _, x, y) => vec![x, y],
        Node::Between(_, x, y, z) => vec![x, y, z],
        Node::In(_, x, list) => [&[x], select.tree.list(list)].concat(),
        Node::Function(_, list) => select.tree.list(list).to_vec(),
        Node::Aggregate(_, _, x) => Vec::from_iter(x),
        _ => Vec::new(),
    }
}

fn sign(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Or => "OR",
        BinaryOp::And => "AND",
        BinaryOp::Equal => "=",
        BinaryOp::NotEqual => "<>",
        BinaryOp::Less => "<",
        BinaryOp::LessOrEqual => "<=",
        BinaryOp::Greater => ">",
        BinaryOp::GreaterOrEqual => ">=",
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::Remainder => "%",
    }
}
