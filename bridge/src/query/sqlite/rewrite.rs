//! A statement in SQLite's words: tables become virtual tables, the dialect's own words calls of functions, and each column
//! of the answer gets the type that it certainly has. Whatever is not known here is refused.

mod call;
mod expression;

use super::{
    beyond::{Beyond, TableUse, constraint, reads_only, table_name, unsupported},
    kind::{Kind, KindedColumn, Relation, Scope},
    words::syntax,
};
use crate::{
    fault::{Fault, quoted},
    query::OwnedColumn,
};
use shared::{schema::HIDDEN_COLUMNS, value::ColumnType};
use sqlparser::ast::{
    Cte, Distinct, Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, LimitClause, NamedWindowExpr,
    ObjectName, OrderBy, OrderByKind, Query, Select, SelectFlavor, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor, TableWithJoins, Values,
};
use std::collections::HashMap;

/// A statement as SQLite gets it.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) sql: String,
    /// What each column of the answer certainly holds.
    pub(super) kinds: Vec<Option<ColumnType>>,
}

/// The name of a virtual table, which no statement has to know.
pub(super) fn virtual_name(table: usize) -> String {
    format!("table {table}")
}

/// Writes the statement for tables of these columns, in the order of [`Beyond::tables`].
pub(super) fn write(beyond: &Beyond, columns: &[&[OwnedColumn]]) -> Result<Written, Fault> {
    let mut query = beyond.query.clone();
    let mut rewriter = Rewriter { tables: &beyond.tables, columns, now_us: beyond.now_us, ctes: Vec::new() };
    let answer = rewriter.query(&mut query, None)?;
    Ok(Written {
        sql: query.to_string(),
        kinds: answer.iter().map(|column| column.kind.column_type()).collect(),
    })
}

struct Rewriter<'b> {
    tables: &'b [TableUse],
    columns: &'b [&'b [OwnedColumn]],
    now_us: i64,
    /// The CTEs around the place; none for one that is not known yet.
    ctes: Vec<HashMap<String, Option<Vec<KindedColumn>>>>,
}

impl Rewriter<'_> {
    fn query(&mut self, query: &mut Query, outer: Option<&Scope<'_>>) -> Result<Vec<KindedColumn>, Fault> {
        let is_plain = query.fetch.is_none()
            && query.locks.is_empty()
            && query.for_clause.is_none()
            && query.settings.is_none()
            && query.format_clause.is_none()
            && query.pipe_operators.is_empty();
        if !is_plain {
            return Err(unsupported(&query.to_string()));
        }
        let mut names = HashMap::new();
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            names.insert(cte.alias.name.value.to_lowercase(), None);
        }
        self.ctes.push(names);
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            self.cte(cte, outer)?;
        }
        let (answer, relations) = self.body(&mut query.body, outer)?;
        let inner = Scope { relations: &relations, outer };
        let named = [Relation { called: String::new(), columns: answer.clone(), table: None }];
        let scope = Scope { relations: &named, outer: Some(&inner) };
        if let Some(OrderBy { kind, interpolate }) = &mut query.order_by {
            let OrderByKind::Expressions(keys) = kind else { return Err(unsupported("ORDER BY ALL")) };
            if interpolate.is_some() {
                return Err(unsupported("INTERPOLATE"));
            }
            self.keys(keys, &scope)?;
        }
        match &mut query.limit_clause {
            None => {}
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                let exprs = limit.iter_mut().chain(offset.iter_mut().map(|offset| &mut offset.value));
                self.each(exprs, &scope)?;
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => self.each([offset, limit], &scope)?,
            Some(_) => return Err(unsupported("LIMIT BY")),
        }
        self.ctes.pop();
        Ok(answer)
    }

    fn cte(&mut self, cte: &mut Cte, outer: Option<&Scope<'_>>) -> Result<(), Fault> {
        let key = cte.alias.name.value.to_lowercase();
        let called: Vec<String> = cte.alias.columns.iter().map(|column| column.name.value.clone()).collect();
        let renamed = |mut columns: Vec<KindedColumn>| {
            columns.iter_mut().zip(&called).for_each(|(column, name)| column.name.clone_from(name));
            columns
        };
        // What a recursive one begins with says what its rows are.
        let mut leftmost = &*cte.query.body;
        while let SetExpr::SetOperation { left, .. } = leftmost {
            leftmost = left;
        }
        if matches!(*cte.query.body, SetExpr::SetOperation { .. }) {
            let mut first = leftmost.clone();
            if let Ok((columns, _)) = self.body(&mut first, outer) {
                self.define(&key, renamed(columns));
            }
        }
        let columns = self.query(&mut cte.query, outer)?;
        self.define(&key, renamed(columns));
        Ok(())
    }

    fn define(&mut self, cte: &str, columns: Vec<KindedColumn>) {
        if let Some(known) = self.ctes.last_mut() {
            known.insert(cte.into(), Some(columns));
        }
    }

    /// The columns of a SELECT or of several, and the relations that its ORDER BY can name.
    fn body(
        &mut self,
        body: &mut SetExpr,
        outer: Option<&Scope<'_>>,
    ) -> Result<(Vec<KindedColumn>, Vec<Relation>), Fault> {
        match body {
            SetExpr::Select(select) => self.select(select, outer),
            SetExpr::Query(query) => Ok((self.query(query, outer)?, Vec::new())),
            SetExpr::SetOperation { left, right, .. } => {
                let (mut columns, _) = self.body(left, outer)?;
                let (others, _) = self.body(right, outer)?;
                for (column, other) in columns.iter_mut().zip(others) {
                    column.kind = column.kind.or(other.kind);
                }
                Ok((columns, Vec::new()))
            }
            SetExpr::Values(values) => Ok((self.values(values, outer)?, Vec::new())),
            SetExpr::Table(_) => Err(unsupported("TABLE")),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Err(reads_only())
            }
        }
    }

    fn values(&mut self, values: &mut Values, outer: Option<&Scope<'_>>) -> Result<Vec<KindedColumn>, Fault> {
        let scope = Scope { relations: &[], outer };
        let mut kinds: Vec<Kind> = Vec::new();
        for row in &mut values.rows {
            for (index, cell) in row.content.iter_mut().enumerate() {
                let kind = self.expression(cell, &scope)?;
                match kinds.get_mut(index) {
                    Some(known) => *known = known.or(kind),
                    None => kinds.push(kind),
                }
            }
        }
        let column = |(index, kind)| column(format!("column{index}"), kind);
        Ok((1..).zip(kinds).map(column).collect())
    }

    fn select(
        &mut self,
        select: &mut Select,
        outer: Option<&Scope<'_>>,
    ) -> Result<(Vec<KindedColumn>, Vec<Relation>), Fault> {
        check_plain(select)?;
        let mut relations = Vec::new();
        for from in &mut select.from {
            self.from(from, outer, &mut relations)?;
        }
        let scope = Scope { relations: &relations, outer };
        let mut answer = Vec::new();
        for item in &mut select.projection {
            self.item(item, &scope, &mut answer)?;
        }
        // SQLite lets any clause name an item, after the columns.
        let named = [Relation { called: String::new(), columns: answer.clone(), table: None }];
        let items = Scope { relations: &named, outer };
        let scope = Scope { relations: &relations, outer: Some(&items) };
        for from in &mut select.from {
            self.constraints(from, &scope)?;
        }
        self.each(select.selection.iter_mut().chain(select.having.iter_mut()), &scope)?;
        match &mut select.group_by {
            GroupByExpr::Expressions(keys, modifiers) if modifiers.is_empty() => self.each(keys, &scope)?,
            other => return Err(unsupported(&other.to_string())),
        }
        for window in &mut select.named_window {
            if let NamedWindowExpr::WindowSpec(window) = &mut window.1 {
                self.window(window, &scope)?;
            }
        }
        Ok((answer, relations))
    }

    fn item(
        &mut self,
        item: &mut SelectItem,
        scope: &Scope<'_>,
        answer: &mut Vec<KindedColumn>,
    ) -> Result<(), Fault> {
        match item {
            SelectItem::UnnamedExpr(expression) => {
                let written = expression.to_string();
                let name = match expression {
                    Expr::Identifier(name) => name.value.clone(),
                    Expr::CompoundIdentifier(parts) => {
                        parts.last().map_or(String::new(), |name| name.value.clone())
                    }
                    _ => written.clone(),
                };
                let kind = self.expression(expression, scope)?;
                let is_column = matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                if !is_column && expression.to_string() != written {
                    // The answer's column is called as it was written, not as SQLite gets it.
                    let alias = Ident::with_quote('"', written.replace('"', "\"\""));
                    *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias };
                }
                answer.push(column(name, kind));
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                let kind = self.expression(expr, scope)?;
                answer.push(column(alias.value.clone(), kind));
            }
            SelectItem::Wildcard(options) if options.to_string().is_empty() => {
                answer.extend(scope.relations.iter().flat_map(shown));
            }
            SelectItem::QualifiedWildcard(kind, options) if options.to_string().is_empty() => {
                let SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
                    return Err(unsupported(&kind.to_string()));
                };
                let called = table_name(name)?.1.to_string();
                let is_meant = |relation: &&Relation| relation.called.eq_ignore_ascii_case(&called);
                answer.extend(scope.relations.iter().filter(is_meant).flat_map(shown));
                name.0.drain(..name.0.len() - 1);
            }
            other => return Err(unsupported(&other.to_string())),
        }
        Ok(())
    }

    /// Adds the relations of one member of FROM.
    fn from(
        &mut self,
        from: &mut TableWithJoins,
        outer: Option<&Scope<'_>>,
        relations: &mut Vec<Relation>,
    ) -> Result<(), Fault> {
        let first = relations.len();
        self.factor(&mut from.relation, outer, relations)?;
        for join in &mut from.joins {
            let before = relations.len();
            self.factor(&mut join.relation, outer, relations)?;
            let Some(constraint) = constraint(&join.join_operator).filter(|_| !join.global) else {
                return Err(unsupported(&join.to_string()));
            };
            // `*` shows a column that both sides have to share once.
            let (left, right) = relations.split_at_mut(before);
            let left = left.get(first..).unwrap_or_default();
            for column in right.iter_mut().flat_map(|relation| &mut relation.columns) {
                let is_shared = match constraint {
                    JoinConstraint::Using(names) => names.iter().any(|name| {
                        name.0
                            .last()
                            .and_then(|part| part.as_ident())
                            .is_some_and(|name| name.value.eq_ignore_ascii_case(&column.name))
                    }),
                    JoinConstraint::Natural => left.iter().any(|relation| {
                        relation.column(&column.name).is_some_and(|column| !column.is_hidden)
                    }),
                    _ => false,
                };
                column.is_hidden |= is_shared;
            }
        }
        Ok(())
    }

    fn factor(
        &mut self,
        factor: &mut TableFactor,
        outer: Option<&Scope<'_>>,
        relations: &mut Vec<Relation>,
    ) -> Result<(), Fault> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                with_hints,
                version: None,
                with_ordinality: false,
                partitions,
                json_path: None,
                sample: None,
                index_hints,
            } if with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty() => {
                relations.push(self.table(name, alias)?);
            }
            TableFactor::Derived { lateral: false, subquery, alias, sample: None } => {
                let columns = self.query(subquery, outer)?;
                check_alias(alias.as_ref())?;
                let called = alias.as_ref().map_or(String::new(), |alias| alias.name.value.clone());
                relations.push(Relation { called, columns, table: None });
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.from(table_with_joins, outer, relations)?;
            }
            other => return Err(unsupported(&other.to_string())),
        }
        Ok(())
    }

    fn table(&mut self, name: &mut ObjectName, alias: &mut Option<TableAlias>) -> Result<Relation, Fault> {
        check_alias(alias.as_ref())?;
        let (database, table) = table_name(name)?;
        let called = alias.as_ref().map_or(table, |alias| &alias.name.value).to_string();
        let cte = self.ctes.iter().rev().find_map(|ctes| ctes.get(&table.to_lowercase()));
        if let (Some(columns), None) = (cte, database) {
            let Some(columns) = columns.clone() else {
                let message = format!("`{}` is used before it is defined", quoted(table));
                return Err(syntax(&message, "define it before the parts of WITH that use it"));
            };
            return Ok(Relation { called, columns, table: None });
        }
        let is_it = |known: &TableUse| known.database.as_deref() == database && known.name == table;
        let known = self.tables.iter().position(is_it).and_then(|at| Some((at, self.columns.get(at)?)));
        let Some((at, columns)) = known else {
            let message = format!("there is no table `{}`", quoted(table));
            return Err(Fault::new(
                "unknown_table",
                message,
                "list the tables of the database, then ask again",
            ));
        };
        let own = columns.iter().map(|own| column(own.name.clone(), Kind::Of(own.kind)));
        let hidden = HIDDEN_COLUMNS.iter().map(|hidden| KindedColumn {
            is_hidden: true,
            ..column(hidden.name.into(), Kind::Of(hidden.kind))
        });
        let columns = own.chain(hidden).collect();
        if alias.is_none() {
            let name = Ident::with_quote('"', called.replace('"', "\"\""));
            *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
        }
        *name = ObjectName::from(vec![Ident::with_quote('"', virtual_name(at))]);
        Ok(Relation { called, columns, table: Some(at) })
    }

    /// The conditions of joins.
    fn constraints(&mut self, from: &mut TableWithJoins, scope: &Scope<'_>) -> Result<(), Fault> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = &mut from.relation {
            self.constraints(table_with_joins, scope)?;
        }
        for join in &mut from.joins {
            if let TableFactor::NestedJoin { table_with_joins, .. } = &mut join.relation {
                self.constraints(table_with_joins, scope)?;
            }
            match &mut join.join_operator {
                JoinOperator::Join(constraint)
                | JoinOperator::Inner(constraint)
                | JoinOperator::Left(constraint)
                | JoinOperator::LeftOuter(constraint)
                | JoinOperator::Right(constraint)
                | JoinOperator::RightOuter(constraint)
                | JoinOperator::FullOuter(constraint)
                | JoinOperator::CrossJoin(constraint) => {
                    if let JoinConstraint::On(condition) = constraint {
                        self.expression(condition, scope)?;
                    }
                }
                _ => return Err(unsupported(&join.to_string())),
            }
        }
        Ok(())
    }

    fn each<'e>(
        &mut self,
        expressions: impl IntoIterator<Item = &'e mut Expr>,
        scope: &Scope<'_>,
    ) -> Result<(), Fault> {
        expressions.into_iter().try_for_each(|expression| self.expression(expression, scope).map(|_| ()))
    }
}

fn column(name: String, kind: Kind) -> KindedColumn {
    KindedColumn { name, kind, is_hidden: false }
}

fn shown(relation: &Relation) -> impl Iterator<Item = KindedColumn> {
    relation.columns.iter().filter(|column| !column.is_hidden).cloned()
}

fn check_alias(alias: Option<&TableAlias>) -> Result<(), Fault> {
    match alias {
        Some(alias) if !alias.columns.is_empty() || alias.at.is_some() => {
            Err(unsupported(&alias.to_string()))
        }
        _ => Ok(()),
    }
}

/// Other systems' clauses.
fn check_plain(select: &Select) -> Result<(), Fault> {
    let is_plain = select.optimizer_hints.is_empty()
        && !matches!(select.distinct, Some(Distinct::On(_)))
        && select.select_modifiers.is_none()
        && select.top.is_none()
        && select.exclude.is_none()
        && select.lateral_views.is_empty()
        && select.prewhere.is_none()
        && select.connect_by.is_empty()
        && select.cluster_by.is_empty()
        && select.distribute_by.is_empty()
        && select.sort_by.is_empty()
        && select.qualify.is_none()
        && select.value_table_mode.is_none()
        && select.flavor == SelectFlavor::Standard;
    match select.into {
        Some(_) => Err(reads_only()),
        None if is_plain => Ok(()),
        None => Err(unsupported(&select.to_string())),
    }
}
