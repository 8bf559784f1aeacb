//! Queries as trees in S-expressions, and faults with their places.

extern crate std;

use crate::{
    limits::*,
    message::ErrorCode,
    sql::{
        parse,
        tree::{BinaryOp, CastTo, List, Node, NodeId, Select, UnaryOp},
    },
};
use std::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// A query as one S-expression a clause, in the order in which they are written.
fn dump(text: &str) -> String {
    match parse(text) {
        Ok(select) => Dump { text, select }.all(),
        Err(failure) => std::panic!("{text}: {failure:?}"),
    }
}

/// An expression as an S-expression.
fn expression(text: &str) -> String {
    let query = format!("SELECT {text} FROM t");
    let Ok(select) = parse(&query) else { std::panic!("{query}: {:?}", parse(&query).err()) };
    let node = select.items[0].node.unwrap();
    Dump { text: &query, select }.node(node)
}

/// Code, position and hint of what is wrong.
fn fault(text: &str) -> (ErrorCode, usize, String) {
    let failure = parse(text).expect_err(text);
    (failure.code, failure.position.into(), failure.hint.to_string())
}

fn syntax(position: usize, hint: &str) -> (ErrorCode, usize, String) {
    (ErrorCode::Syntax, position, hint.to_string())
}

struct Dump<'t> {
    text: &'t str,
    select: Select,
}

impl Dump<'_> {
    fn all(&self) -> String {
        let select = &self.select;
        let mut parts = Vec::from([String::from(if select.distinct { "select-distinct" } else { "select" })]);
        for item in &select.items {
            let node = item.node.map_or("*".to_string(), |node| self.node(node));
            let name = item.name.map_or(String::new(), |name| format!(" as {}", name.of(self.text)));
            parts.push(format!("[{node}{name}]"));
        }
        parts.push(format!("from {}", select.from.of(self.text)));
        parts.extend(select.filter.map(|node| format!("where {}", self.node(node))));
        parts.extend(select.group_by.iter().map(|node| format!("by {}", self.node(*node))));
        parts.extend(select.having.map(|node| format!("having {}", self.node(node))));
        for key in &select.order_by {
            parts.push(format!("order {}{}", self.node(key.node), if key.descending { " desc" } else { "" }));
        }
        parts.extend(select.limit.map(|limit| format!("limit {limit}")));
        if select.offset > 0 {
            parts.push(format!("offset {}", select.offset));
        }
        parts.join(" ")
    }

    fn node(&self, id: NodeId) -> String {
        let not = |is_negated| if is_negated { "not-" } else { "" };
        match self.select.tree.node(id) {
            Node::Null => "null".to_string(),
            Node::Bool(value) => value.to_string(),
            Node::Int(value) => value.to_string(),
            Node::Float(value) => format!("{value:?}"),
            Node::Text(span) => format!("'{}'", span.of(self.text)),
            Node::Timestamp(value) => format!("@{value}"),
            Node::Interval(count, unit) => format!("{count}{unit:?}"),
            Node::Name(span) => span.of(self.text).to_string(),
            Node::Column(column) => format!("#{column}"),
            Node::Slot(slot) => format!("${slot}"),
            Node::Now => "now".to_string(),
            Node::Unary(op, x) => {
                let op = match op {
                    UnaryOp::Minus => "-",
                    UnaryOp::Not => "not",
                };
                format!("({op} {})", self.node(x))
            }
            Node::Binary(op, x, y) => format!("({} {} {})", binary(op), self.node(x), self.node(y)),
            Node::IsNull(is_negated, x) => format!("({}null? {})", not(is_negated), self.node(x)),
            Node::Between(is_negated, x, low, high) => {
                let (x, low, high) = (self.node(x), self.node(low), self.node(high));
                format!("({}between {x} {low} {high})", not(is_negated))
            }
            Node::In(is_negated, x, list) => {
                format!("({}in {}{})", not(is_negated), self.node(x), self.list(list))
            }
            Node::Like(is_negated, x, y) => {
                format!("({}like {} {})", not(is_negated), self.node(x), self.node(y))
            }
            Node::Cast(to, x) => match to {
                CastTo::Int => format!("(int {})", self.node(x)),
                CastTo::Float(None) => format!("(float {})", self.node(x)),
                CastTo::Float(Some(decimals)) => format!("(float.{decimals} {})", self.node(x)),
                CastTo::Text => format!("(text {})", self.node(x)),
            },
            Node::Function(function, list) => format!("({function:?}{})", self.list(list)),
            Node::Aggregate(aggregate, is_distinct, x) => {
                let distinct = if is_distinct { " distinct" } else { "" };
                let x = x.map_or("*".to_string(), |x| self.node(x));
                format!("({aggregate:?}{distinct} {x})")
            }
            Node::Increments(unit, count, x) => format!("(increments {count}{unit:?} {})", self.node(x)),
            Node::Period(unit, count, end, x) => {
                format!("(period {count}{unit:?} {} {})", self.node(end), self.node(x))
            }
        }
    }

    fn list(&self, list: List) -> String {
        self.select.tree.list(list).iter().map(|id| format!(" {}", self.node(*id))).collect()
    }
}

fn binary(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Or => "or",
        BinaryOp::And => "and",
        BinaryOp::Equal => "=",
        BinaryOp::NotEqual => "!=",
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

#[test]
fn every_clause_has_its_place() {
    assert_eq!(dump("SELECT * FROM sensors"), "select [*] from sensors");
    assert_eq!(
        dump(
            "select distinct a, b AS bee, c \"Sea °C\", count(*) n from t where a > 1 group by a, b having count(*) > 2 \
             order by b desc, a asc, c limit 10 offset 5 ;"
        ),
        "select-distinct [a] [b as bee] [c as Sea °C] [(Count *) as n] from t where (> a 1) by a by b \
         having (> (Count *) 2) order b desc order a order c limit 10 offset 5"
    );
    assert_eq!(dump("SELECT a FROM t OFFSET 3"), "select [a] from t offset 3");
    assert_eq!(dump("SELECT a,*FROM\"t\"LIMIT\n0"), "select [a] [*] from t limit 0");
}

#[test]
fn an_item_knows_how_it_was_written() {
    let text = "SELECT  a + 1 , max( b )  AS top FROM t";
    let select = parse(text).unwrap();
    let sources: Vec<&str> = select.items.iter().map(|item| item.source.of(text)).collect();
    assert_eq!(sources, ["a + 1", "max( b )"]);
}

#[test]
fn words_that_are_no_keywords_are_names() {
    assert_eq!(
        dump("SELECT timestamp, state, value, second, first, last, count, interval, now, day FROM period"),
        "select [timestamp] [state] [value] [second] [first] [last] [count] [interval] [now] [day] from period"
    );
    assert_eq!(dump(r#"SELECT "select" FROM "from""#), "select [select] from from");
    let hint = "expected a value; a keyword is a name only in double quotes";
    assert_eq!(fault("SELECT from FROM t"), syntax(7, hint));
    assert_eq!(fault("SELECT a AS limit FROM t"), syntax(12, "a keyword is a name only in double quotes"));
}

#[test]
fn operators_bind_as_in_sqlite() {
    for (text, tree) in [
        ("a OR b AND NOT c = d", "(or a (and b (not (= c d))))"),
        ("a = b = c != d", "(!= (= (= a b) c) d)"),
        ("a = b < c", "(= a (< b c))"),
        ("a < b = c", "(= (< a b) c)"),
        ("a < b < c", "(< (< a b) c)"),
        ("a - b - c * d / e % f", "(- (- a b) (% (/ (* c d) e) f))"),
        ("-a * b", "(* (- a) b)"),
        ("-a::int + +b", "(+ (- (int a)) b)"),
        ("a::int::text", "(text (int a))"),
        ("- - a", "(- (- a))"),
        ("NOT NOT a IS NULL", "(not (not (null? a)))"),
        ("a IS NOT NULL = b", "(= (not-null? a) b)"),
        ("a + 1 IS NULL", "(null? (+ a 1))"),
        ("a BETWEEN 1 AND 2 AND b", "(and (between a 1 2) b)"),
        ("a NOT BETWEEN 1 + 1 AND 2 < 3", "(not-between a (+ 1 1) (< 2 3))"),
        ("a IN (1, b + 2, (3)) = c", "(= (in a 1 (+ b 2) 3) c)"),
        ("a NOT IN (1) OR b NOT LIKE 'x%'", "(or (not-in a 1) (not-like b 'x%'))"),
        ("a == b <> c", "(!= (= a b) c)"),
        ("a <= b >= c", "(>= (<= a b) c)"),
        ("1 = NOT 0 = 1", "(= 1 (not (= 0 1)))"),
        ("2 * NOT 3 + 4 AND 5", "(and (* 2 (not (+ 3 4))) 5)"),
        ("(a OR b) AND (c)", "(and (or a b) c)"),
        ("a = 1 OR b = 2 AND c = 3 OR d", "(or (or (= a 1) (and (= b 2) (= c 3))) d)"),
    ] {
        assert_eq!(expression(text), tree, "{text}");
    }
}

#[test]
fn literals_are_what_sqlite_takes_them_for() {
    for (text, tree) in [
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9.223372036854776e18"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("- 9223372036854775808", "-9223372036854775808"),
        ("-(9223372036854775808)", "(- 9.223372036854776e18)"),
        ("-9223372036854775808.0", "-9.223372036854776e18"),
        ("-1::text", "(- (text 1))"),
        ("-1.5", "-1.5"),
        ("- - 1", "(- -1)"),
        (".5", "0.5"),
        ("1.", "1.0"),
        ("1.e2", "100.0"),
        ("1e3", "1000.0"),
        ("1E-3", "0.001"),
        ("1e+3", "1000.0"),
        ("1e999", "inf"),
        ("007", "7"),
        ("TRUE", "true"),
        ("false", "false"),
        ("Null", "null"),
        ("''", "''"),
        ("'it''s'", "'it''s'"),
        ("'-- no ; comment /*'", "'-- no ; comment /*'"),
        ("'ü'", "'ü'"),
    ] {
        assert_eq!(expression(text), tree, "{text}");
    }
}

#[test]
fn moments_and_spans_of_time_are_literals() {
    for (text, tree) in [
        ("TIMESTAMP '1970-01-01T00:00:01Z'", "@1000000"),
        ("timestamp '1970-01-02'", "@86400000000"),
        ("timestamp'1970-01-01 00:00:00.5'", "@500000"),
        ("now() - 3 days", "(- now 3Day)"),
        ("NOW ( ) + 2 hours", "(+ now 2Hour)"),
        ("now()-3days", "(- now 3Day)"),
        ("now() - interval '3 hours'", "(- now 3Hour)"),
        ("interval '3' hour", "3Hour"),
        ("INTERVAL ' -3  Weeks '", "-3Week"),
        ("-3 months", "-3Month"),
        ("1 year", "1Year"),
        ("1 millisecond", "1Millisecond"),
        ("1 microseconds", "1Microsecond"),
        ("1 minutes", "1Minute"),
        ("increments(minute, 5, timestamp)", "(increments 5Minute timestamp)"),
        ("Increments(weeks, 1, a)", "(increments 1Week a)"),
    ] {
        assert_eq!(expression(text), tree, "{text}");
    }
    assert_eq!(
        dump("SELECT * FROM t WHERE period(day, 1, now(), timestamp) AND period(hour, 2, '1970-01-02', t)"),
        "select [*] from t where (and (period 1Day now timestamp) (period 2Hour @86400000000 t))"
    );
    assert_eq!(
        dump("SELECT * FROM t WHERE period(day, 1, TIMESTAMP '1970-01-02', t)"),
        "select [*] from t where (period 1Day @86400000000 t)"
    );
}

#[test]
fn functions_aggregates_and_casts_are_called() {
    for (text, tree) in [
        ("coalesce(a, coalesce(b, c), d)", "(Coalesce a (Coalesce b c) d)"),
        ("a IN (b, abs(c), d)", "(in a b (Abs c) d)"),
        ("ROUND(a)", "(Round a)"),
        ("round(a, 2)", "(Round a 2)"),
        ("ceil(floor(a)) + ceiling(b)", "(+ (Ceil (Floor a)) (Ceil b))"),
        ("length(lower(upper(a)))", "(Length (Lower (Upper a)))"),
        ("count(*)", "(Count *)"),
        ("count(a)", "(Count a)"),
        ("Count(DISTINCT a + 1)", "(Count distinct (+ a 1))"),
        (
            "sum(distinct a) + avg(b) * min(c) - max(d)",
            "(- (+ (Sum distinct a) (* (Avg b) (Min c))) (Max d))",
        ),
        ("range(a) + first(b) + last(c)", "(+ (+ (Range a) (First b)) (Last c))"),
        ("stddev(a) + stddev_samp(b)", "(+ (Stddev a) (Stddev b))"),
        ("variance(a) + var_samp(b)", "(+ (Variance a) (Variance b))"),
        ("CAST(a + 1 AS bigint)", "(int (+ a 1))"),
        ("cast(a as float(2))", "(float.2 a)"),
        ("a::int + b::INTEGER", "(+ (int a) (int b))"),
        ("a::float + b::double", "(+ (float a) (float b))"),
        ("a::text = b::varchar", "(= (text a) (text b))"),
        ("avg(a)::float(3)", "(float.3 (Avg a))"),
    ] {
        assert_eq!(expression(text), tree, "{text}");
    }
}

#[test]
fn only_one_select_is_asked() {
    assert_eq!(fault("DELETE FROM t"), syntax(0, "only SELECT can be asked"));
    assert_eq!(fault(""), syntax(0, "only SELECT can be asked"));
    assert_eq!(fault("  selec a from t"), syntax(2, "did you mean `SELECT`?"));
    assert_eq!(fault("WITH x AS (SELECT 1)"), syntax(0, "expected `SELECT`: WITH runs on the gateway"));
    let hint = "one query: nothing follows its `;`";
    assert_eq!(fault("SELECT a FROM t; DROP TABLE t"), syntax(17, hint));
    assert_eq!(fault("SELECT a FROM t;;"), syntax(16, hint));
    let hint = "a query has no comments; two minus signs need a space between";
    assert_eq!(fault("SELECT a FROM t -- x"), syntax(16, hint));
    assert_eq!(fault("SELECT a/* x */ FROM t"), syntax(8, hint));
    assert_eq!(fault("SELECT 1--1 FROM t"), syntax(8, hint));
    let hint = "a query has no parameters; write the value itself";
    for sign in ["?", ":a", "$1", "@a"] {
        assert_eq!(fault(&format!("SELECT {sign} FROM t")), syntax(7, hint));
    }
}

#[test]
fn what_the_gateway_does_is_said() {
    let joins = "one table: joins run on the gateway";
    assert_eq!(fault("SELECT a FROM t, u"), syntax(15, joins));
    assert_eq!(fault("SELECT a FROM t JOIN u ON 1"), syntax(16, joins));
    assert_eq!(fault("SELECT a FROM t LEFT JOIN u"), syntax(16, joins));
    let subqueries = "one table: subqueries run on the gateway";
    assert_eq!(fault("SELECT a FROM (SELECT 1)"), syntax(14, subqueries));
    assert_eq!(fault("SELECT (SELECT 1) FROM t"), syntax(8, subqueries));
    assert_eq!(fault("SELECT a FROM t WHERE a IN (SELECT 1)"), syntax(28, subqueries));
    assert_eq!(fault("SELECT a FROM t WHERE EXISTS (SELECT 1)"), syntax(22, subqueries));
    let sets = "one SELECT: sets and windows run on the gateway";
    assert_eq!(fault("SELECT a FROM t UNION SELECT 1"), syntax(16, sets));
    assert_eq!(fault("SELECT sum(a) OVER (ORDER BY b) FROM t"), syntax(14, "windows run on the gateway"));
    assert_eq!(fault("SELECT CASE WHEN a THEN 1 END FROM t"), syntax(7, "CASE runs on the gateway"));
    assert_eq!(fault("SELECT t.a FROM t"), syntax(8, "one table: its columns need no name before theirs"));
    let hint = "expected the table's name only; its database is known already";
    assert_eq!(fault("SELECT a FROM d.t"), syntax(15, hint));
    assert_eq!(fault("SELECT a FROM t AS u"), syntax(16, "a table has no second name"));
}

#[test]
fn a_fault_has_its_place_and_a_suggestion() {
    for (text, position, hint) in [
        ("SELECT a FRM t", 9, "did you mean `FROM`?"),
        ("SELECT", 6, "expected a value"),
        ("SELECT a  ", 10, "expected an operator, `,` or `FROM`"),
        ("SELECT a FROM", 13, "expected the name of a table"),
        ("SELECT a FROM t wher b", 16, "did you mean `WHERE`?"),
        ("SELECT a FROM t WHERE", 21, "expected a value"),
        ("SELECT a FROM t WHERE a = ", 26, "expected a value"),
        ("SELECT a FROM t WHERE (a", 24, "expected an operator or `)`"),
        ("SELECT a FROM t WHERE a NOT", 27, "expected `IN`, `LIKE` or `BETWEEN` after NOT"),
        ("SELECT a FROM t WHERE a BETWEEN 1 OR 2", 34, "expected `AND`"),
        ("SELECT a FROM t WHERE a IS TRUE", 27, "expected `NULL` after IS; values are compared with `=`"),
        ("SELECT a FROM t WHERE a IN ()", 28, "expected a value: a list is not empty"),
        ("SELECT a FROM t GROUP a", 22, "expected `BY`"),
        ("SELECT a FROM t ORDER BY a LIMIT -1", 33, "expected a number of rows, 0 or more"),
        ("SELECT a FROM t LIMIT 5, 6", 23, "expected `LIMIT n OFFSET m`"),
        ("SELECT a FROM t LIMIT 5 WHERE a", 24, "expected an operator, the next clause or the end"),
        ("SELECT a FROM t WHERE 'x", 24, "the ' at byte 22 is not closed"),
        ("SELECT a FROM t WHERE \"x", 24, "the \" at byte 22 is not closed"),
        ("SELECT a FROM t WHERE a 'x'", 24, "expected an operator before this text"),
        ("SELECT abz(a) FROM t", 7, "did you mean `abs`?"),
        ("SELECT frobnicate(a) FROM t", 7, "there is no such function"),
        ("SELECT 12abc FROM t", 9, "a number ends before a letter; expected a space or a sign"),
        ("SELECT 0x1F FROM t", 8, "a number ends before a letter; expected a space or a sign"),
        ("SELECT a || b FROM t", 9, "texts are not joined on the board; select both"),
        ("SELECT `a` FROM t", 7, "write names as they are, or in double quotes"),
        ("SELECT ü FROM t", 7, "no query has this character outside quotes"),
        ("SELECT a + * FROM t", 11, "`*` stands alone or in `count(*)`"),
        ("SELECT \"\" FROM t", 7, "a name has at least one letter"),
        ("SELECT (a, b) FROM t", 9, "expected `)`: only IN takes a list"),
    ] {
        assert_eq!(fault(text), syntax(position, hint), "{text}");
    }
}

#[test]
fn calls_are_checked() {
    for (text, position, hint) in [
        ("abs()", 0, "`abs` takes one value"),
        ("abs(a, b)", 0, "`abs` takes one value"),
        ("round(a, 1, 2)", 0, "`round` takes a number and, if you like, how many decimals"),
        ("coalesce(a)", 0, "`coalesce` takes two values or more"),
        ("now(1)", 4, "`now` takes nothing: `now()`"),
        ("count()", 6, "`count` takes `*` or one value"),
        ("sum(*)", 4, "`*` stands alone or in `count(*)`"),
        ("max(a, b)", 5, "`max` takes one value: it is of many rows, not of many columns"),
        ("1 + sum(avg(a))", 8, "an aggregate does not stand in an aggregate"),
        ("range(DISTINCT a)", 6, "DISTINCT stands in count, sum, avg, min and max only"),
        ("a::intt", 3, "did you mean `int`?"),
        ("a::timestamp", 3, "a cast is to `int`, `float` or `text`"),
        ("a::float(x)", 9, "expected a number of decimals, 0 to 15"),
        ("a::float(16)", 9, "expected a number of decimals, 0 to 15"),
        ("CAST(a, int)", 6, "expected `AS`"),
        ("increments(minut, 1, a)", 11, "did you mean `minute`?"),
        ("increments(minute, a)", 19, "expected a number of units, 1 to 65535"),
        ("period(day, 1, now(), a)", 0, "`period` stands in WHERE only"),
    ] {
        assert_eq!(fault(&format!("SELECT {text} FROM t")), syntax(7 + position, hint), "{text}");
    }
    let hint = "an aggregate does not stand in WHERE; use HAVING";
    assert_eq!(fault("SELECT a FROM t WHERE sum(a) > 1"), syntax(22, hint));
    assert_eq!(
        fault("SELECT a FROM t GROUP BY max(a)"),
        syntax(25, "an aggregate does not stand in GROUP BY")
    );
    let hint = "a period is of a column: expected its name";
    assert_eq!(fault("SELECT a FROM t WHERE period(day, 1, now(), 3)"), syntax(44, hint));
}

#[test]
fn values_are_checked() {
    let value = |position, hint: &str| (ErrorCode::Value, position, hint.to_string());
    let moment = "expected a time such as 2026-11-18T05:00:00Z";
    assert_eq!(fault("SELECT timestamp '2026-13-01' FROM t"), value(23, moment));
    assert_eq!(fault("SELECT a FROM t WHERE period(day, 1, 'soon', a)"), value(38, moment));
    let interval = "an interval is a whole number of 32 bits and a unit: `3 hours`";
    assert_eq!(fault("SELECT 1.5 hours FROM t"), value(7, interval));
    assert_eq!(fault("SELECT 3000000000 hours FROM t"), value(7, interval));
    assert_eq!(fault("SELECT interval '3' FROM t"), value(16, interval));
    assert_eq!(fault("SELECT interval '1 day 2 hours' FROM t"), value(16, interval));
    let count = "expected a number of units, 1 to 65535";
    assert_eq!(fault("SELECT increments(day, 0, a) FROM t"), value(23, count));
    assert_eq!(fault("SELECT increments(day, 65536, a) FROM t"), value(23, count));
    let rows = "expected a number of 64 bits";
    assert_eq!(fault("SELECT a FROM t LIMIT 18446744073709551616"), value(22, rows));
}

#[test]
fn every_bound_is_named() {
    let capacity = |text: &str| {
        let (code, position, hint) = fault(text);
        assert_eq!(code, ErrorCode::Capacity, "{hint}");
        (position, hint)
    };
    let many = |part: &str, count: usize, between: &str| Vec::from_iter([part].repeat(count)).join(between);

    let deep = "EXPRESSION_DEPTH_MAX: at most 16 levels".to_string();
    let chain = |count| format!("SELECT {} FROM t", many("a", count, "+"));
    assert!(parse(&chain(EXPRESSION_DEPTH_MAX)).is_ok());
    assert_eq!(capacity(&chain(EXPRESSION_DEPTH_MAX + 1)), (38, deep.clone()));
    let nested = |count| format!("SELECT {}a{} FROM t", many("(", count, ""), many(")", count, ""));
    assert!(parse(&nested(EXPRESSION_DEPTH_MAX - 1)).is_ok());
    assert_eq!(capacity(&nested(EXPRESSION_DEPTH_MAX)), (23, deep.clone()));
    for part in
        ["- ", "NOT ", "abs(", "(1+", "a IN (", "a LIKE ", "CAST(", "sum(", "coalesce(a,", "a BETWEEN "]
    {
        let text = format!("SELECT {}", many(part, 300 / part.len(), ""));
        assert!(matches!(parse(&text).unwrap_err().code, ErrorCode::Capacity | ErrorCode::Syntax), "{text}");
    }

    let nodes = format!("SELECT {} FROM t", many(&many("a", 9, "+"), 16, ","));
    assert_eq!(capacity(&nodes).1, "SQL_NODES_MAX: at most 128 nodes");
    let list = |count| format!("SELECT a IN ({}) FROM t", many("a", count, ","));
    assert!(parse(&list(SQL_LIST_ITEMS_MAX)).is_ok());
    assert_eq!(
        capacity(&list(SQL_LIST_ITEMS_MAX + 1)),
        (141, "SQL_LIST_ITEMS_MAX: at most 64 members of lists".into())
    );
    let items = |count| format!("SELECT {} FROM t", many("a", count, ","));
    assert!(parse(&items(SELECT_ITEMS_MAX)).is_ok());
    assert_eq!(capacity(&items(SELECT_ITEMS_MAX + 1)), (39, "SELECT_ITEMS_MAX: at most 16 items".into()));
    let keys = |clause, count| format!("SELECT a FROM t {clause} BY {}", many("a", count, ","));
    assert!(parse(&keys("GROUP", GROUP_KEYS_MAX)).is_ok());
    let hint = "GROUP_KEYS_MAX: at most 4 keys of GROUP BY".to_string();
    assert_eq!(capacity(&keys("GROUP", GROUP_KEYS_MAX + 1)), (33, hint));
    assert!(parse(&keys("ORDER", SORT_KEYS_MAX)).is_ok());
    let hint = "SORT_KEYS_MAX: at most 4 keys of ORDER BY".to_string();
    assert_eq!(capacity(&keys("ORDER", SORT_KEYS_MAX + 1)), (33, hint));
    let name = "NAME_BYTES_MAX: at most 32 bytes of a name".to_string();
    assert!(parse(&items(1).replace('a', &many("a", NAME_BYTES_MAX, ""))).is_ok());
    assert_eq!(capacity(&items(1).replace('a', &many("a", NAME_BYTES_MAX + 1, ""))), (7, name.clone()));
    assert_eq!(capacity(&format!("SELECT \"{}\" FROM t", many("ü", 17, ""))), (7, name));
    let text = format!("SELECT '{}' FROM t", many("a", COMMAND_BYTES_MAX, ""));
    let hint = "COMMAND_BYTES_MAX: at most 1000 bytes of a query".to_string();
    assert_eq!(fault(&text), (ErrorCode::TooLong, COMMAND_BYTES_MAX, hint));
}

#[test]
fn a_node_stands_where_its_fault_is() {
    let text = "SELECT -a + abs(b), c::int FROM t WHERE c NOT IN (1)";
    let select = parse(text).unwrap();
    let of = |at: usize| &text[at..at + 1];
    let top = |node: NodeId| select.tree.position(node);
    assert_eq!((top(select.items[0].node.unwrap()), of(10)), (10, "+"));
    assert_eq!(top(select.items[1].node.unwrap()), 21);
    assert_eq!(top(select.filter.unwrap()), 42);
}

#[test]
fn a_place_that_was_used_is_used_again() {
    let mut select =
        parse("SELECT DISTINCT a FROM t WHERE a GROUP BY a HAVING a ORDER BY a LIMIT 1 OFFSET 1").unwrap();
    let text = "SELECT b FROM u";
    crate::sql::parse_into(text, &mut select).unwrap();
    assert_eq!(Dump { text, select }.all(), "select [b] from u");
}
