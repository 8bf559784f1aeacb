//! Where a `period` ends: a first look at the table, after which the period is two comparisons.

use super::{Phase, Query, damaged};
use crate::{
    engine::{
        calendar,
        filter::Filter,
        plan::TimeRange,
        scan::{PageRows, Pages},
        workspace::Memory,
    },
    message::{ErrorCode, Failure},
    page::Page,
    sql::tree::{BinaryOp, Node, NodeId, Unit},
    value::Value,
};

impl<M: Memory> Query<M> {
    #[inline(never)]
    pub(super) fn look_for_period(&mut self, pages: &impl Pages, latest: Option<i64>) -> Result<(), Failure> {
        let is_period = |node: &Node| matches!(node, Node::Period(..));
        let Some(id) = self.select.tree.nodes.iter().position(is_period) else {
            self.phase = Phase::Scan;
            self.periods_are_set();
            return Ok(());
        };
        let Node::Period(unit, count, end, column) = self.select.tree.nodes[id] else { return Ok(()) };
        let rows = self.period_next..self.rows.end;
        let bytes = if rows.is_empty() { None } else { pages.page(rows.start) };
        let page = bytes.map(Page::read).transpose().map_err(|_| damaged())?;
        let Some(page) = page.filter(|page| page.first_row_id() < rows.end) else {
            self.end_period(id, unit, count, column, latest)?;
            self.period_next = self.rows.start;
            self.phase = Phase::Period(None);
            return Ok(());
        };
        let (Node::Timestamp(end_us), Node::Column(column)) =
            (self.select.tree.node(end), self.select.tree.node(column))
        else {
            return Ok(());
        };
        let mut found = latest;
        let mut note = |us: i64| {
            if us <= end_us {
                found = Some(found.map_or(us, |before: i64| before.max(us)));
            }
        };
        let after = page.next_row_id();
        let is_whole = page.first_row_id() >= rows.start && after <= rows.end;
        let newest_us = pages.utc_us(page.time_max_us());
        if column == 0 && is_whole && newest_us <= end_us {
            note(newest_us); // no need to look inside
        } else {
            let mut scan = PageRows::new(pages, &page, &self.plan, rows.clone());
            while scan.advance(pages).map_err(|_| damaged())? {
                if let Some(Value::Timestamp(us)) = scan.cells().get(usize::from(column)) {
                    note(*us);
                }
            }
        }
        self.period_next = after.max(rows.start + 1).min(rows.end);
        self.phase = Phase::Period(found);
        Ok(())
    }

    /// Each period is two comparisons now: the filter can be read.
    pub(super) fn periods_are_set(&mut self) {
        if let Some(filter) = self.select.filter {
            self.plan.time = TimeRange::of(&self.select.tree, filter);
            self.plan.filter = Filter::of(&self.select.tree, Some(filter));
        }
    }

    /// `period(…)` becomes `column > from AND column <= latest`.
    pub(super) fn end_period(
        &mut self,
        id: usize,
        unit: Unit,
        count: u16,
        column: NodeId,
        latest: Option<i64>,
    ) -> Result<(), Failure> {
        let tree = &mut self.select.tree;
        // Without such a row nothing is inside; a NULL is unknown all the same.
        let (from, latest) = match latest {
            Some(latest) => (calendar::moved(latest, unit, -i64::from(count)).unwrap_or(i64::MIN), latest),
            None => (i64::MAX, i64::MIN),
        };
        let position = tree.positions[id];
        let first = tree.nodes.len() as NodeId;
        let made = [
            Node::Timestamp(from),
            Node::Timestamp(latest),
            Node::Binary(BinaryOp::Greater, column, first),
            Node::Binary(BinaryOp::LessOrEqual, column, first + 1),
        ];
        for node in made {
            if tree.nodes.push(node).is_err() || tree.positions.push(position).is_err() {
                let hint = format_args!("SQL_NODES_MAX: shorten the query");
                return Err(Failure::new(ErrorCode::Capacity, position.into(), hint));
            }
        }
        tree.nodes[id] = Node::Binary(BinaryOp::And, first + 2, first + 3);
        Ok(())
    }
}
