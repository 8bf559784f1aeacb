//! Any text as a query: a fault has a place in the text; what is understood is one bounded tree, means the same in any
//! case, and as it is written from its tree.

use crate::{
    script::Script,
    sql_written::{self, Use},
};
use shared::{
    limits::{COMMAND_BYTES_MAX, EXPRESSION_DEPTH_MAX},
    message::ErrorCode,
    sql::{
        self,
        tree::{Node, NodeId, Select},
    },
};

/// What queries are made of, and what nearly is.
#[rustfmt::skip]
const WORDS: [&str; 96] = [
    "SELECT ", "SELECT a FROM t WHERE ", "SELECT * FROM t ", " FROM t", " WHERE ", " GROUP BY ", " HAVING ",
    " ORDER BY ", " LIMIT ", " OFFSET ", " DISTINCT ", " AS ", " ASC", " DESC", ";", ",", ",", "(", ")", "(", ")", " AND ",
    " OR ", " NOT ", " IS NULL", " IS NOT NULL", " BETWEEN ", " IN (", " LIKE ", "=", "==", "!=", "<>", "<", "<=", ">", ">=",
    "+", "-", "*", "/", "%", "::int", "::float(2)", "::text", "::", "--", "/*", "a", "b", "timestamp", "\"q\"", "t.", "first",
    "0", "1", "9223372036854775808", "1.5", ".5", "1e3", "1.", "65535", "'x'", "''", "'it''s'", "'", "\"", "TRUE", "NULL",
    "TIMESTAMP '2026-11-18'", "'2026-11-18 05:00:00'", "now()", " 3 days", "interval '3 hours'", "hour", "abs(", "round(",
    "coalesce(", "CAST(", " AS int)", "count(*)", "count(DISTINCT ", "sum(", "max(", "last(", "increments(minute, 5, ",
    "period(day, 1, now(), timestamp)", "period(", " ", " ", "\t", "\n", "ü", "?", " JOIN ", " UNION ",
];

/// Any bytes: as text, as a choice of words, as a script for a query that is well written.
pub(crate) fn check(bytes: &[u8]) {
    check_text(&String::from_utf8_lossy(bytes));
    let word = |byte: &u8| WORDS[usize::from(*byte) % WORDS.len()];
    check_text(&bytes.iter().map(word).collect::<String>());
    check_text(&bytes.iter().take(40).map(word).collect::<String>());
    check_text(&format!("SELECT {} FROM t", bytes.iter().take(12).map(word).collect::<String>()));

    let text = sql_written::query(&mut Script::new(bytes));
    if let Some(failure) = check_text(&text) {
        let is_large = matches!(failure, ErrorCode::Capacity | ErrorCode::TooLong);
        assert!(is_large, "{failure:?}: {text}: {:?}", sql::parse(&text).err());
    }
}

/// Returns the code of the failure if it is none.
fn check_text(text: &str) -> Option<ErrorCode> {
    let parsed = sql::parse(text);
    let flipped = sql::parse(&flip_case(text));
    assert_eq!(format!("{parsed:?}"), format!("{flipped:?}"), "the case of {text:?} matters");
    let select = match parsed {
        Ok(select) => select,
        Err(failure) => {
            let is_too_long = text.len() > COMMAND_BYTES_MAX;
            assert_eq!(failure.code == ErrorCode::TooLong, is_too_long);
            assert!(is_too_long || text.is_char_boundary(failure.position.into()), "{failure:?} in {text:?}");
            assert!(!failure.hint.is_empty());
            return Some(failure.code);
        }
    };
    check_tree(&select, text);
    let written = sql_written::written(&select, text);
    match sql::parse(&written) {
        Ok(again) => {
            assert_eq!(sql_written::written(&again, &written), written);
            assert_eq!(again.tree.nodes.len(), select.tree.nodes.len(), "{text:?} is {written:?}");
        }
        // Parentheses take bytes and levels.
        Err(failure) => assert!(
            matches!(failure.code, ErrorCode::Capacity | ErrorCode::TooLong),
            "{text:?} is {written:?}: {failure:?}"
        ),
    }
    let more = format!("{text} )");
    if more.len() <= COMMAND_BYTES_MAX {
        let failure = sql::parse(&more).expect_err("a query ends where it ends");
        assert!(usize::from(failure.position) <= more.len());
    }
    None
}

/// Each node is used once and stands after those it uses; places are in the text; what must not be nested is not.
fn check_tree(select: &Select, text: &str) {
    assert!(!select.items.is_empty() && !select.from.of(text).is_empty());
    let mut used = vec![0; select.tree.nodes.len()];
    for item in &select.items {
        assert!(!item.source.of(text).is_empty() && item.name.is_none_or(|name| !name.of(text).is_empty()));
        if let Some(node) = item.node {
            check_node(select, text, node, Use::default(), &mut used);
        }
    }
    let filter = Use { is_filter: true, is_row: true, depth: 0 };
    let key = Use { is_filter: false, is_row: true, depth: 0 };
    select.filter.iter().for_each(|node| check_node(select, text, *node, filter, &mut used));
    select.group_by.iter().for_each(|node| check_node(select, text, *node, key, &mut used));
    select.having.iter().for_each(|node| check_node(select, text, *node, Use::default(), &mut used));
    select.order_by.iter().for_each(|key| check_node(select, text, key.node, Use::default(), &mut used));
    assert!(used.iter().all(|count| *count == 1), "{used:?} in {text:?}");
}

fn check_node(select: &Select, text: &str, id: NodeId, place: Use, used: &mut [u32]) {
    used[usize::from(id)] += 1;
    assert!(place.depth < EXPRESSION_DEPTH_MAX && select.tree.position(id) < text.len());
    let node = select.tree.node(id);
    let is_row = place.is_row || matches!(node, Node::Aggregate(..));
    match node {
        Node::Column(_) | Node::Slot(_) => panic!("nobody has planned it"),
        Node::Aggregate(..) => assert!(!place.is_row, "{text:?}"),
        Node::Period(..) => assert!(place.is_filter, "{text:?}"),
        Node::Name(name) => assert!(!name.of(text).is_empty()),
        _ => {}
    }
    for child in sql_written::children(select, node) {
        assert!(child < id);
        check_node(select, text, child, Use { is_row, depth: place.depth + 1, ..place }, used);
    }
}

fn flip_case(text: &str) -> String {
    let flip = |c: char| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
    text.chars().map(flip).collect()
}
