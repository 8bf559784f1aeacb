//! A SELECT from the arguments of a call. Every fragment is read alone first: none can add a clause or an item.

use super::template::missing;
use crate::{
    fault::{Fault, quoted},
    query::check_select,
};
use serde_json::{Map, Value};
use shared::{
    schema::is_name,
    sql::{self, tree::Select},
};

/// The SELECT that `table`, `select`, `where`, `group_by` and `order_by` describe, or the one in `sql`.
pub(super) fn build(arguments: &Map<String, Value>) -> Result<String, Fault> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    if let Some(whole) = text("sql") {
        if let Some(other) =
            ["table", "where", "group_by", "order_by"].iter().find(|name| arguments.contains_key(**name))
        {
            let message = format!("arguments `sql` and `{other}` exclude each other");
            let action = format!("put `{other}` into the SELECT, or leave `sql` out");
            return Err(Fault::new("wrong_argument", message, action).with("argument", *other));
        }
        check_select(whole).map_err(|fault| fault.with("argument", "sql"))?;
        return Ok(whole.to_string());
    }
    let table = text("table").ok_or_else(|| missing("table"))?;
    if !is_name(table) {
        let message = format!("argument `table` cannot be `{}`: it is no name", quoted(table));
        return Err(Fault::new("wrong_argument", message, "name a table").with("argument", "table"));
    }
    let mut items = fragments(arguments, "select", SELECT)?;
    if items.is_empty() {
        items.push("*");
    }
    let mut statement = format!("SELECT {} FROM \"{table}\"", items.join(", "));
    for (name, word, clause) in
        [("where", "WHERE", WHERE), ("group_by", "GROUP BY", GROUP_BY), ("order_by", "ORDER BY", ORDER_BY)]
    {
        let keys = fragments(arguments, name, clause)?;
        if !keys.is_empty() {
            statement = format!("{statement} {word} {}", keys.join(", "));
        }
    }
    sql::parse(&statement).map_err(|failure| Fault::from(failure).with("sql", statement.as_str()))?;
    Ok(statement)
}

/// How a fragment is read alone, and what it must have come to: one of its clause and nothing of another.
#[derive(Clone, Copy)]
struct Clause {
    before: &'static str,
    behind: &'static str,
    /// Items, conditions, groups, keys.
    counts: [usize; 4],
}

const SELECT: Clause = Clause { before: "SELECT ", behind: " FROM t LIMIT 1", counts: [1, 0, 0, 0] };
const WHERE: Clause = Clause { before: "SELECT 1 FROM t WHERE ", behind: " LIMIT 1", counts: [1, 1, 0, 0] };
const GROUP_BY: Clause =
    Clause { before: "SELECT 1 FROM t GROUP BY ", behind: " LIMIT 1", counts: [1, 0, 1, 0] };
const ORDER_BY: Clause =
    Clause { before: "SELECT 1 FROM t ORDER BY ", behind: " LIMIT 1", counts: [1, 0, 0, 1] };

impl Clause {
    fn holds(&self, text: &str, select: &Select) -> bool {
        let counts = [
            select.items.len(),
            usize::from(select.filter.is_some()),
            select.group_by.len(),
            select.order_by.len(),
        ];
        let has_others = select.distinct || select.having.is_some() || select.offset > 0;
        counts == self.counts && !has_others && select.limit == Some(1) && select.from.of(text) == "t"
    }
}

/// The fragments of an argument that is a text or a list of texts.
fn fragments<'a>(
    arguments: &'a Map<String, Value>,
    name: &str,
    clause: Clause,
) -> Result<Vec<&'a str>, Fault> {
    let list: Vec<&str> = match arguments.get(name) {
        None => Vec::new(),
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        Some(value) => value.as_str().into_iter().collect(),
    };
    for fragment in &list {
        let text = format!("{}{fragment}{}", clause.before, clause.behind);
        let wrong = |fault: Fault| fault.with("argument", name).with("fragment", quoted(fragment));
        let select = sql::parse(&text).map_err(|mut failure| {
            failure.position = failure.position.saturating_sub(clause.before.len() as u16);
            wrong(Fault::from(failure))
        })?;
        if !clause.holds(&text, &select) {
            let message = format!("argument `{name}`: `{}` is more than one of its kind", quoted(fragment));
            let action =
                format!("give each member of `{name}` alone, and other clauses in their own arguments");
            return Err(wrong(Fault::new("wrong_argument", message, action)));
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn built(arguments: Value) -> Result<String, Fault> {
        build(arguments.as_object().unwrap())
    }

    #[test]
    fn arguments_become_one_select() {
        let arguments = json!({
            "table": "power", "select": ["state", "avg(voltage) AS mean"], "where": "voltage > 3 OR state = 'a''b'",
            "group_by": ["state"], "order_by": ["mean DESC", "state"], "limit": 5,
        });
        assert_eq!(
            built(arguments).unwrap(),
            "SELECT state, avg(voltage) AS mean FROM \"power\" WHERE voltage > 3 OR state = 'a''b' GROUP BY state ORDER BY mean DESC, state"
        );
        assert_eq!(built(json!({"table": "t"})).unwrap(), "SELECT * FROM \"t\"");
        assert_eq!(built(json!({"sql": "SELECT a FROM t", "select": ["*"]})).unwrap(), "SELECT a FROM t");
    }

    #[test]
    fn no_fragment_adds_a_clause_or_an_item() {
        for (name, fragment) in [
            ("where", "a = 1 ORDER BY b"),
            ("where", "a = 1 LIMIT 9"),
            ("where", "a = 1 GROUP BY b"),
            ("where", "a = 1) OR (1 = 1"),
            ("where", "a = 1;"),
            ("where", "a = 1; SELECT 1 FROM u"),
            ("where", "a = 'x"),
            ("where", "a = 1 -- "),
            ("where", ""),
            ("where", "a = 1\0"),
            ("select", "a, b"),
            ("select", "a FROM u WHERE 1"),
            ("select", "DISTINCT a"),
            ("group_by", "a, b"),
            ("group_by", "a HAVING count(*) > 1"),
            ("order_by", "a, b"),
            ("order_by", "a LIMIT 3 OFFSET 2"),
            ("order_by", "a OFFSET 2"),
        ] {
            let mut arguments = json!({"table": "t"});
            arguments[name] = if name == "where" { fragment.into() } else { json!([fragment]) };
            let fault = built(arguments).expect_err(fragment);
            assert_eq!(fault.details["argument"], name, "{fragment}: {fault}");
        }
        for table in ["t WHERE 1", "t\"", "t;", "", "a.b"] {
            assert_eq!(built(json!({"table": table})).unwrap_err().details["argument"], "table");
        }
        assert_eq!(built(json!({})).unwrap_err().code, "missing_argument");
        assert_eq!(
            built(json!({"sql": "SELECT 1 FROM t", "where": "x"})).unwrap_err().code,
            "wrong_argument"
        );
    }
}
