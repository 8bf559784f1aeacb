//! Views: SELECTs of the configuration that can be queried as tables. Runs nothing.

use super::sqlite::Beyond;
use crate::fault::{Fault, quoted};
use shared::schema::is_name;

/// Views in one configuration.
pub const VIEWS_MAX: usize = 64;

/// A SELECT with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// What it is called in a FROM.
    pub name: String,
    /// The database in which it is, and whose tables it reads.
    pub database: String,
    /// One SELECT.
    pub sql: String,
}

/// The views of a configuration, each after those that it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Views {
    views: Vec<View>,
    /// Of each view, the views that it reads itself.
    read: Vec<Vec<usize>>,
}

impl Views {
    /// Checks views: each is one SELECT under a name of its own, and none reads itself.
    pub fn new(views: Vec<View>) -> Result<Self, Fault> {
        if views.len() > VIEWS_MAX {
            let message =
                format!("VIEWS_MAX: there are {} views, at most {VIEWS_MAX} are taken", views.len());
            return Err(Fault::new("capacity", message, "leave some out"));
        }
        let mut tables = Vec::with_capacity(views.len());
        for (at, view) in views.iter().enumerate() {
            let refused = |fault: Fault| Fault { message: format!("{view}: {}", fault.message), ..fault };
            if !is_name(&view.name) || !is_name(&view.database) {
                let message = "a view's name and its database are letters, digits and _";
                return Err(refused(Fault::new("value", message, "name it otherwise")));
            }
            if views[..at].iter().any(|other| other.is_called(&view.database, &view.name)) {
                return Err(refused(Fault::new("value", "another view has this name", "name it otherwise")));
            }
            let beyond = Beyond::parse(&view.sql, 0).map_err(refused)?;
            tables.push(named(&beyond));
        }
        let read: Vec<Vec<usize>> = views
            .iter()
            .zip(&tables)
            .map(|(view, tables)| {
                let is_read =
                    |other: &View| tables.iter().any(|table| other.is_called(&view.database, table));
                (0..views.len()).filter(|place| is_read(&views[*place])).collect()
            })
            .collect();
        let mut sorted: Vec<usize> = Vec::with_capacity(views.len());
        while sorted.len() < views.len() {
            let is_next = |place: &usize| {
                !sorted.contains(place) && read[*place].iter().all(|other| sorted.contains(other))
            };
            let Some(next) = (0..views.len()).find(is_next) else {
                let around = views.iter().enumerate().find(|(place, _)| !sorted.contains(place));
                let view = around.map(|(_, view)| view.to_string()).unwrap_or_default();
                let message = format!("{view}: it reads itself, or a view that does");
                return Err(Fault::new("value", message, "let it read tables, or views that do not read it"));
            };
            sorted.push(next);
        }
        let place = |of: &usize| sorted.iter().position(|place| place == of);
        Ok(Self {
            views: sorted.iter().map(|place| views[*place].clone()).collect(),
            read: sorted.iter().map(|of| read[*of].iter().filter_map(place).collect()).collect(),
        })
    }

    /// Whether there is a view of this name.
    pub fn has(&self, database: &str, name: &str) -> bool {
        self.views.iter().any(|view| view.is_called(database, name))
    }

    /// The names of a database's views.
    pub fn names<'v>(&'v self, database: &'v str) -> impl Iterator<Item = &'v str> {
        self.views.iter().filter(move |view| view.database == database).map(|view| view.name.as_str())
    }

    /// A statement with the views that it names before it, as CTEs; none where it names none. One with CTEs of its own
    /// stands in parentheses, so that a view does not take one of them for a table.
    pub(super) fn added(&self, database: &str, beyond: &Beyond, sql: &str) -> Option<String> {
        let tables = named(beyond);
        let mut is_used: Vec<bool> = self
            .views
            .iter()
            .map(|view| tables.iter().any(|table| view.is_called(database, table)))
            .collect();
        for place in (0..self.views.len()).rev() {
            if is_used[place] {
                self.read[place].iter().for_each(|read| is_used[*read] = true);
            }
        }
        let used = self.views.iter().zip(is_used).filter(|(_, is_used)| *is_used);
        let ctes: Vec<String> =
            used.map(|(view, _)| format!("\"{}\" AS ({})", view.name, without_end(&view.sql))).collect();
        let sql = without_end(sql);
        let begins_with_ctes = sql.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("with"));
        match (ctes.is_empty(), begins_with_ctes) {
            (true, _) => None,
            (false, false) => Some(format!("WITH {} {sql}", ctes.join(", "))),
            (false, true) => Some(format!("WITH {} SELECT * FROM ({sql})", ctes.join(", "))),
        }
    }
}

impl View {
    fn is_called(&self, database: &str, name: &str) -> bool {
        self.database == database && self.name.eq_ignore_ascii_case(name)
    }
}

impl std::fmt::Display for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "view `{}`", quoted(&self.name))
    }
}

/// The tables that a statement names without a database: those of its own.
fn named(beyond: &Beyond) -> Vec<String> {
    let own = beyond.tables().iter().filter(|table| table.database.is_none());
    own.map(|table| table.name.clone()).collect()
}

/// A statement without what ends it.
fn without_end(sql: &str) -> &str {
    sql.trim().trim_end_matches(|c: char| c == ';' || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(name: &str, sql: &str) -> View {
        View { name: name.into(), database: "demo".into(), sql: sql.into() }
    }

    fn added(views: &Views, sql: &str) -> Option<String> {
        views.added("demo", &Beyond::parse(sql, 0).unwrap(), sql)
    }

    #[test]
    fn a_statement_gets_the_views_that_it_names_and_those_that_they_read() {
        let views = Views::new(vec![
            view("hottest", "SELECT max(t) AS t FROM hot;"),
            view("cold", "SELECT * FROM sensors WHERE t < 5"),
            view("hot", "SELECT * FROM sensors WHERE t > 50"),
        ])
        .unwrap();
        assert_eq!(added(&views, "SELECT * FROM sensors"), None);
        assert_eq!(added(&views, "WITH hot AS (SELECT 1) SELECT * FROM hot"), None);
        assert_eq!(
            added(&views, "SELECT t FROM Hottest ;").unwrap(),
            "WITH \"hot\" AS (SELECT * FROM sensors WHERE t > 50), \
             \"hottest\" AS (SELECT max(t) AS t FROM hot) SELECT t FROM Hottest"
        );
        // The CTE of the statement is not the table of the view.
        let sql = "WITH sensors AS (SELECT 1) SELECT * FROM sensors, cold";
        let with = added(&views, sql).unwrap();
        assert_eq!(
            with,
            format!("WITH \"cold\" AS (SELECT * FROM sensors WHERE t < 5) SELECT * FROM ({sql})")
        );
        assert_eq!(Beyond::parse(&with, 0).unwrap().tables().len(), 1);
    }

    #[test]
    fn a_view_that_is_none_is_named() {
        for (views, why) in [
            (vec![view("a b", "SELECT 1")], "letters"),
            (vec![view("a", "SELECT 1"), view("A", "SELECT 2")], "another view"),
            (vec![view("a", "DELETE FROM t")], "only a SELECT"),
            (vec![view("a", "SELECT 1; SELECT 2")], "several"),
            (vec![view("a", "SELECT 1) , b AS (SELECT 2")], "view `a`"),
            (vec![view("a", "SELECT * FROM a")], "reads itself"),
            (
                vec![view("a", "SELECT * FROM b"), view("b", "SELECT * FROM (SELECT * FROM a)")],
                "reads itself",
            ),
        ] {
            let fault = Views::new(views).unwrap_err();
            assert!(fault.message.contains(why), "{fault}");
        }
    }
}
