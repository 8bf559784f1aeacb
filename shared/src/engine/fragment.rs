//! A query split: the SQL that each board is asked, written from the plan. Runs nothing; no board needs it.
//!
//! ```text
//!   stream     SELECT the outputs, _row_id                                        rows that go on as they are
//!   rows       SELECT the columns in use, _row_id                                 everything else is done here
//!   all        the same without WHERE                                             the filter is done here, too
//!   top        the same ORDER BY … LIMIT                                          sorted again here
//!   distinct   SELECT DISTINCT the outputs                                        made different again here
//!   groups     SELECT keys, values that must differ, partial aggregates GROUP BY  merged here, see [`partials`]
//! ```

use super::{
    aggregate::{is_by_time, is_whole},
    plan::{AggregateUse, Mode, Output, Plan, column_at},
    query::Query,
    workspace::Memory,
};
use crate::{
    limits::SELECT_ITEMS_MAX,
    schema::Column,
    sql::tree::{Aggregate, BinaryOp, CastTo, Function, Node, NodeId, Select, UnaryOp, Unit},
    time::{UTC_US_MAX, UTC_US_MIN, Utc},
    value::ColumnType,
};
use core::{
    fmt::{self, Write},
    ops::Range,
};

/// Which part of a query a board does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragment {
    /// All of it but LIMIT and OFFSET: each row with its id behind.
    Stream,
    /// The filter: the columns in use, each row with its id behind.
    Rows,
    /// Nothing: the columns in use of every row, with its id behind.
    All,
    /// The filter, and the first rows in the order that was asked for.
    Top,
    /// The different rows among its own.
    Distinct,
    /// Its own groups.
    Groups,
}

/// What a board is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Target<'t> {
    /// The table.
    pub table: &'t str,
    /// The columns of the query's table.
    pub columns: &'t [Column<'t>],
    /// The type of each of them on this board; none where the board has no such column.
    pub kinds: &'t [Option<ColumnType>],
    /// The board's table has just these columns in this order, so that `*` means them.
    pub is_same: bool,
    /// The rows that are meant; none is all there are.
    pub rows: Option<&'t Range<u64>>,
    /// Rows of the answer at most.
    pub limit: Option<u64>,
}

/// The aggregates that a board computes in place of one.
pub(super) fn partials(used: &AggregateUse) -> &'static [Aggregate] {
    let is_whole = is_whole(used.kind);
    match used.aggregate {
        Aggregate::Count => &[Aggregate::Count],
        Aggregate::Sum | Aggregate::SumRest if is_whole => &[Aggregate::Sum],
        Aggregate::Sum | Aggregate::SumRest => &[Aggregate::Sum, Aggregate::SumRest],
        Aggregate::Avg if is_whole => &[Aggregate::Sum, Aggregate::Count],
        Aggregate::Avg => &[Aggregate::Sum, Aggregate::SumRest, Aggregate::Count],
        Aggregate::Min => &[Aggregate::Min],
        Aggregate::Max => &[Aggregate::Max],
        Aggregate::Range => &[Aggregate::Min, Aggregate::Max],
        Aggregate::First | Aggregate::FirstAt => &[Aggregate::First, Aggregate::FirstAt],
        Aggregate::Last | Aggregate::LastAt => &[Aggregate::Last, Aggregate::LastAt],
        Aggregate::Stddev | Aggregate::Variance => &[Aggregate::Count, Aggregate::Avg, Aggregate::Variance],
    }
}

impl<M: Memory> Query<M> {
    /// The largest part of the query that boards can do by themselves.
    pub fn fragment(&self) -> Fragment {
        match self.plan.mode {
            Mode::Stream => Fragment::Stream,
            Mode::Sort if self.select.limit.is_some() => Fragment::Top,
            Mode::Sort => Fragment::Rows,
            Mode::Distinct => Fragment::Distinct,
            // Values that must differ split a board's groups, and then of two rows of one time nobody knows the later.
            Mode::Group if self.has(|used| used.distinct) && self.has(|used| is_by_time(used.aggregate)) => {
                Fragment::Rows
            }
            Mode::Group => Fragment::Groups,
        }
    }

    /// Whether the outputs are the columns of the table, each as it is.
    pub fn selects_all(&self) -> bool {
        let is_column =
            |(index, output): (u8, &Output)| self.select.tree.node(output.node) == Node::Column(index);
        let width = self.plan.kinds.len();
        width > 0 && self.plan.outputs.len() == width && (0..).zip(&self.plan.outputs).all(is_column)
    }

    fn has(&self, is_such: impl Fn(&AggregateUse) -> bool) -> bool {
        self.plan.aggregates.iter().any(is_such)
    }

    /// The columns whose cells [`feed`](Self::feed) needs, in the order in which a fragment of rows gives them.
    pub fn columns_in_use(&self) -> impl Iterator<Item = usize> + '_ {
        let width = self.plan.kinds.len();
        let own = self.plan.columns_used & !(u32::MAX << width);
        let is_too_long = own.count_ones() as usize >= SELECT_ITEMS_MAX; // `*` is one item, however wide the table
        (0..width).filter(move |index| is_too_long || own & (1 << index) != 0)
    }

    /// Says what is done with the answers of boards, a step at a time.
    pub fn explain_join(&self, mut say: impl FnMut(&'static str, fmt::Arguments<'_>)) {
        match self.plan.mode {
            Mode::Stream => say("join", format_args!("rows as they come, by board, epoch and row_id")),
            Mode::Sort => say(
                "sort",
                format_args!("by {} keys; ties by board, epoch and row_id", self.plan.order.len()),
            ),
            Mode::Distinct => say("distinct", format_args!("rows that no other board gave")),
            Mode::Group => {
                say("group", format_args!("by {} keys", self.plan.keys.len()));
                for used in &self.plan.aggregates {
                    let name = aggregate_name(used.aggregate);
                    let how = match used.aggregate {
                        _ if used.distinct => "of the different values of all boards",
                        Aggregate::Count => "sum of the counts",
                        Aggregate::Sum | Aggregate::SumRest => "sum of the sums and of what rounding took",
                        Aggregate::Avg => "sum of the sums by sum of the counts",
                        Aggregate::Min => "least of the least",
                        Aggregate::Max => "greatest of the greatest",
                        Aggregate::Range => "greatest of the greatest less least of the least",
                        Aggregate::First | Aggregate::FirstAt => "that of the earliest row",
                        Aggregate::Last | Aggregate::LastAt => "that of the latest row",
                        Aggregate::Stddev | Aggregate::Variance => "from counts, means and squares (Chan)",
                    };
                    say("merge", format_args!("{name}: {how}"));
                }
            }
        }
        if self.plan.mode == Mode::Group {
            if self.select.having.is_some() {
                say("having", format_args!("after the merge"));
            }
            if !self.plan.order.is_empty() {
                say("sort", format_args!("by {} keys", self.plan.order.len()));
            }
        }
        if let Some(limit) = self.select.limit {
            say("limit", format_args!("{limit} rows after {}", self.select.offset));
        }
    }

    /// Writes what a board is asked. Periods must have been [set](Self::set_period) before.
    pub fn write_fragment(
        &self,
        fragment: Fragment,
        target: &Target<'_>,
        out: &mut impl Write,
    ) -> fmt::Result {
        let writer = Writer { select: &self.select, plan: &self.plan, text: &self.text, target };
        match fragment {
            Fragment::Stream => {
                out.write_str("SELECT ")?;
                let mut at = 0;
                while let Some(output) = self.plan.outputs.get(at) {
                    if writer.is_all(at) {
                        out.write_str("*, ")?;
                        at += target.columns.len();
                        continue;
                    }
                    writer.expression(output.node, LOWEST, out)?;
                    out.write_str(", ")?;
                    at += 1;
                }
                out.write_str("_row_id")?;
                writer.from(true, out)?;
                writer.limit(target.limit, out)
            }
            Fragment::Rows | Fragment::All | Fragment::Top => {
                out.write_str("SELECT ")?;
                if target.is_same && self.columns_in_use().count() == target.columns.len() {
                    out.write_str("*, ")?;
                } else {
                    for index in self.columns_in_use() {
                        writer.column(index as u8, out)?;
                        out.write_str(", ")?;
                    }
                }
                out.write_str("_row_id")?;
                writer.from(fragment != Fragment::All, out)?;
                if fragment == Fragment::Top {
                    writer.order(out)?;
                    let kept = Plan::rows_kept(&self.select);
                    return writer.limit(kept.into_iter().chain(target.limit).min(), out);
                }
                writer.limit(target.limit, out)
            }
            Fragment::Distinct => {
                out.write_str("SELECT DISTINCT ")?;
                for (nth, output) in self.plan.outputs.iter().enumerate() {
                    out.write_str(if nth > 0 { ", " } else { "" })?;
                    writer.expression(output.node, LOWEST, out)?;
                }
                writer.from(true, out)?;
                let kept = Plan::rows_kept(&self.select).filter(|_| self.plan.order.is_empty());
                writer.limit(kept, out)
            }
            Fragment::Groups => writer.groups(out),
        }
    }
}

struct Writer<'w> {
    select: &'w Select,
    plan: &'w Plan,
    text: &'w str,
    target: &'w Target<'w>,
}

/// How tightly the parts of an expression hold together.
type Strength = u8;
const LOWEST: Strength = 0;
const OR: Strength = 1;
const AND: Strength = 2;
const NOT: Strength = 3;
const COMPARISON: Strength = 4;
const SUM: Strength = 5;
const PRODUCT: Strength = 6;
const SIGN: Strength = 7;
const ATOM: Strength = 8;

impl Writer<'_> {
    /// Whether the outputs from here on are the columns of the table, one after the other.
    fn is_all(&self, at: usize) -> bool {
        let outputs = self.plan.outputs.get(at..at + self.target.columns.len()).unwrap_or_default();
        let is_column =
            |(index, output): (u8, &Output)| self.select.tree.node(output.node) == Node::Column(index);
        !outputs.is_empty() && (0..).zip(outputs).all(is_column) && self.target.is_same
    }

    fn groups(&self, out: &mut impl Write) -> fmt::Result {
        out.write_str("SELECT ")?;
        let mut grouped = 0;
        let mut items = 0;
        let mut separator = |out: &mut dyn Write| {
            items += 1;
            out.write_str(if items > 1 { ", " } else { "" })
        };
        for key in &self.plan.keys {
            separator(out)?;
            self.expression(key.node, LOWEST, out)?;
            grouped += 1;
        }
        for used in self.plan.aggregates.iter().filter(|used| used.distinct) {
            separator(out)?;
            self.argument(used, out)?;
            grouped += 1;
        }
        for used in self.plan.aggregates.iter().filter(|used| !used.distinct) {
            for partial in partials(used) {
                separator(out)?;
                write!(out, "{}(", aggregate_name(*partial))?;
                self.argument(used, out)?;
                out.write_str(")")?;
            }
        }
        self.from(true, out)?;
        for item in 1..=grouped {
            write!(out, "{}{item}", if item == 1 { " GROUP BY " } else { ", " })?;
        }
        Ok(())
    }

    fn argument(&self, used: &AggregateUse, out: &mut impl Write) -> fmt::Result {
        match used.argument {
            Some(argument) => self.expression(argument, LOWEST, out),
            None => out.write_str("*"),
        }
    }

    /// FROM and WHERE.
    fn from(&self, has_filter: bool, out: &mut impl Write) -> fmt::Result {
        write!(out, " FROM \"{}\"", self.target.table)?;
        if let Some(rows) = self.target.rows {
            write!(out, " WHERE _row_id >= {} AND _row_id < {}", rows.start, rows.end)?;
        }
        if let Some(filter) = self.select.filter.filter(|_| has_filter) {
            let is_first = self.target.rows.is_none();
            out.write_str(if is_first { " WHERE " } else { " AND " })?;
            self.expression(filter, if is_first { LOWEST } else { NOT }, out)?;
        }
        Ok(())
    }

    fn order(&self, out: &mut impl Write) -> fmt::Result {
        for (nth, key) in self.plan.order.iter().enumerate() {
            out.write_str(if nth == 0 { " ORDER BY " } else { ", " })?;
            // A number alone would mean an item.
            let is_number = matches!(self.select.tree.node(key.node), Node::Int(_));
            out.write_str(if is_number { "0 + " } else { "" })?;
            self.expression(key.node, if is_number { SUM + 1 } else { LOWEST }, out)?;
            out.write_str(if key.descending { " DESC" } else { "" })?;
        }
        Ok(())
    }

    fn limit(&self, limit: Option<u64>, out: &mut impl Write) -> fmt::Result {
        limit.map_or(Ok(()), |limit| write!(out, " LIMIT {limit}"))
    }

    /// A column, as this board has it.
    fn column(&self, index: u8, out: &mut impl Write) -> fmt::Result {
        let Some(column) = column_at(self.target.columns, index) else { return out.write_str("NULL") };
        let is_hidden = usize::from(index) >= self.target.columns.len();
        match self.target.kinds.get(usize::from(index)).copied().flatten() {
            Some(kind) if kind == column.kind => write!(out, "\"{}\"", column.name),
            Some(ColumnType::Int) if column.kind == ColumnType::Float64 => {
                write!(out, "CAST(\"{}\" AS float)", column.name)
            }
            Some(_) => write!(out, "\"{}\"", column.name),
            None if is_hidden => out.write_str(column.name),
            None => out.write_str("NULL"),
        }
    }

    /// An expression in a place that needs this strength.
    fn expression(&self, id: NodeId, needed: Strength, out: &mut impl Write) -> fmt::Result {
        let node = self.select.tree.node(id);
        let is_wrapped = strength(&node) < needed;
        out.write_str(if is_wrapped { "(" } else { "" })?;
        self.node(node, out)?;
        out.write_str(if is_wrapped { ")" } else { "" })
    }

    fn node(&self, node: Node, out: &mut impl Write) -> fmt::Result {
        let not = |negated: bool| if negated { " NOT" } else { "" };
        match node {
            Node::Null => out.write_str("NULL"),
            Node::Bool(v) => out.write_str(if v { "TRUE" } else { "FALSE" }),
            Node::Int(i64::MIN) => write!(out, "({} - 1)", i64::MIN + 1),
            Node::Int(v) => write!(out, "{v}"),
            Node::Float(v) if v.is_infinite() => out.write_str(if v > 0.0 { "9e999" } else { "-9e999" }),
            Node::Float(v) => write!(out, "{v:?}"),
            Node::Text(span) => write_text(span.of(self.text), out),
            Node::Timestamp(us) => write!(out, "TIMESTAMP '{}'", Utc(us.clamp(UTC_US_MIN, UTC_US_MAX))),
            Node::Interval(count, unit) => {
                let sign = if count < 0 { "-" } else { "" };
                write!(out, "{sign}INTERVAL '{} {}'", count.unsigned_abs(), unit_name(unit))
            }
            Node::Column(index) => self.column(index, out),
            Node::Unary(UnaryOp::Minus, x) => {
                out.write_str("-")?;
                self.expression(x, ATOM, out)
            }
            Node::Unary(UnaryOp::Not, x) => {
                out.write_str("NOT ")?;
                self.expression(x, NOT, out)
            }
            Node::Binary(op, a, b) => {
                let own = operator_strength(op);
                let left = if own == COMPARISON { own + 1 } else { own };
                self.expression(a, left, out)?;
                write!(out, " {} ", operator_name(op))?;
                self.expression(b, own + 1, out)
            }
            Node::IsNull(negated, x) => {
                self.expression(x, COMPARISON + 1, out)?;
                write!(out, " IS{} NULL", not(negated))
            }
            Node::Between(negated, x, low, high) => {
                self.expression(x, COMPARISON + 1, out)?;
                write!(out, "{} BETWEEN ", not(negated))?;
                self.expression(low, COMPARISON + 1, out)?;
                out.write_str(" AND ")?;
                self.expression(high, COMPARISON + 1, out)
            }
            Node::In(negated, x, list) => {
                self.expression(x, COMPARISON + 1, out)?;
                write!(out, "{} IN (", not(negated))?;
                self.list(self.select.tree.list(list), out)?;
                out.write_str(")")
            }
            Node::Like(negated, x, pattern) => {
                self.expression(x, COMPARISON + 1, out)?;
                write!(out, "{} LIKE ", not(negated))?;
                self.expression(pattern, COMPARISON + 1, out)
            }
            Node::Cast(to, x) => {
                out.write_str("CAST(")?;
                self.expression(x, LOWEST, out)?;
                match to {
                    CastTo::Int => out.write_str(" AS int)"),
                    CastTo::Float(None) => out.write_str(" AS float)"),
                    CastTo::Float(Some(decimals)) => write!(out, " AS float({decimals}))"),
                    CastTo::Text => out.write_str(" AS text)"),
                }
            }
            Node::Function(function, list) => {
                write!(out, "{}(", function_name(function))?;
                self.list(self.select.tree.list(list), out)?;
                out.write_str(")")
            }
            Node::Increments(unit, count, x) => {
                write!(out, "increments({}, {count}, ", unit_name(unit))?;
                self.expression(x, LOWEST, out)?;
                out.write_str(")")
            }
            // The planner has replaced these, or they do not stand in what a board is asked.
            Node::Name(_) | Node::Slot(_) | Node::Now | Node::Aggregate(..) | Node::Period(..) => {
                Err(fmt::Error)
            }
        }
    }

    fn list(&self, members: &[NodeId], out: &mut impl Write) -> fmt::Result {
        for (nth, member) in members.iter().enumerate() {
            out.write_str(if nth > 0 { ", " } else { "" })?;
            self.expression(*member, LOWEST, out)?;
        }
        Ok(())
    }
}

/// A text between quotes.
fn write_text(text: &str, out: &mut impl Write) -> fmt::Result {
    out.write_str("'")?;
    for (nth, piece) in text.split('\'').enumerate() {
        out.write_str(if nth > 0 { "''" } else { "" })?;
        out.write_str(piece)?;
    }
    out.write_str("'")
}

fn strength(node: &Node) -> Strength {
    match node {
        Node::Binary(op, ..) => operator_strength(*op),
        Node::Unary(UnaryOp::Not, _) => NOT,
        Node::Unary(UnaryOp::Minus, _) => SIGN,
        Node::Int(v) if *v < 0 => SIGN,
        Node::Float(v) if v.is_sign_negative() => SIGN,
        Node::Interval(count, _) if *count < 0 => SIGN,
        Node::IsNull(..) | Node::Between(..) | Node::In(..) | Node::Like(..) => COMPARISON,
        _ => ATOM,
    }
}

fn operator_strength(op: BinaryOp) -> Strength {
    match op {
        BinaryOp::Or => OR,
        BinaryOp::And => AND,
        BinaryOp::Add | BinaryOp::Subtract => SUM,
        BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Remainder => PRODUCT,
        _ => COMPARISON,
    }
}

fn operator_name(op: BinaryOp) -> &'static str {
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

fn function_name(function: Function) -> &'static str {
    match function {
        Function::Abs => "abs",
        Function::Round => "round",
        Function::Floor => "floor",
        Function::Ceil => "ceil",
        Function::Lower => "lower",
        Function::Upper => "upper",
        Function::Length => "length",
        Function::Coalesce => "coalesce",
    }
}

fn aggregate_name(aggregate: Aggregate) -> &'static str {
    match aggregate {
        Aggregate::Count => "count",
        Aggregate::Sum => "sum",
        Aggregate::SumRest => "sum_rest",
        Aggregate::Avg => "avg",
        Aggregate::Min => "min",
        Aggregate::Max => "max",
        Aggregate::Range => "range",
        Aggregate::First => "first",
        Aggregate::Last => "last",
        Aggregate::FirstAt => "first_at",
        Aggregate::LastAt => "last_at",
        Aggregate::Stddev => "stddev",
        Aggregate::Variance => "variance",
    }
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Microsecond => "microsecond",
        Unit::Millisecond => "millisecond",
        Unit::Second => "second",
        Unit::Minute => "minute",
        Unit::Hour => "hour",
        Unit::Day => "day",
        Unit::Week => "week",
        Unit::Month => "month",
        Unit::Year => "year",
    }
}
