//! One query over many sources: pages of several boards one after the other, rows and groups that boards sent.
//! A board reads its own pages only; this is for whoever joins their answers.

use super::{Phase, Query, capacity, fitted};
use crate::{
    engine::{
        eval::Scope,
        fragment::partials,
        plan::{Mode, Plan},
        records,
        workspace::Memory,
    },
    limits::{COLUMNS_MAX, EXPRESSION_TEXT_BYTES_MAX},
    message::Failure,
    sql::tree::Node,
    value::Value,
};
use core::ops::Range;

/// Where a `period` of a query ends, in the whole field: at the last row at or before a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodEnd {
    /// The column whose last moment counts.
    pub column: usize,
    /// No later than this.
    pub until_us: i64,
}

impl<M: Memory> Query<M> {
    /// The next period whose end is to be [set](Self::set_period); none if there is none left.
    pub fn period(&self) -> Option<PeriodEnd> {
        let tree = &self.select.tree;
        tree.nodes.iter().find_map(|node| match node {
            Node::Period(_, _, end, column) => match (tree.node(*end), tree.node(*column)) {
                (Node::Timestamp(until_us), Node::Column(column)) => {
                    Some(PeriodEnd { column: column.into(), until_us })
                }
                _ => None,
            },
            _ => None,
        })
    }

    /// Forgets everything that was gathered or given; periods stay [set](Self::set_period).
    pub fn start_over(&mut self) {
        self.restart();
        self.turn_to(0..0);
    }

    /// Goes on with the rows `rows` of other pages. What was gathered or given so far stays.
    pub fn turn_to(&mut self, rows: Range<u64>) {
        (self.next, self.period_next) = (rows.start, rows.start);
        self.rows = rows;
        self.phase = Phase::Scan;
    }

    /// Whether a stream has given all rows that LIMIT asks for, or different rows are enough.
    pub fn is_enough(&self) -> bool {
        let keep = Plan::rows_kept(&self.select);
        match self.plan.mode {
            Mode::Stream => self.select.limit.is_some_and(|limit| self.given >= limit),
            Mode::Distinct => {
                self.plan.order.is_empty() && keep.is_some_and(|keep| self.work.records() as u64 >= keep)
            }
            Mode::Sort | Mode::Group => false,
        }
    }

    /// Takes a row: the cells of the table's columns, then of the hidden ones. Not for streams.
    pub fn feed(&mut self, cells: &[Value<'_>]) -> Result<(), Failure> {
        self.begin_only_group()?;
        let Self { select, plan, text, work, .. } = self;
        let mut scratch = [0; EXPRESSION_TEXT_BYTES_MAX];
        let mut bump = &mut scratch[..];
        let scope = Scope { tree: &select.tree, text, cells, slots: &[] };
        let mut last_group = 0;
        let passes = match plan.filter.passes_at_once(cells) {
            Some(passes) => Ok(passes),
            None => plan.filter.passes(&scope, &mut bump),
        };
        let taken = passes.and_then(|passes| {
            if !passes {
                return Ok(());
            }
            match plan.mode {
                Mode::Group => records::take_row(plan, work, &scope, &mut bump, &mut last_group),
                Mode::Sort => records::sort_row(plan, work, &scope, &mut bump, Plan::rows_kept(select)),
                Mode::Distinct => records::distinct_row(plan, work, &scope, &mut bump),
                Mode::Stream => Ok(()),
            }
        });
        taken.map_err(|fault| self.failure(fault))
    }

    /// Gives the row that a stream makes of a row of the table, if the filter lets it through. Counts nothing.
    pub fn stream_row(&self, cells: &[Value<'_>], give: &mut dyn FnMut(&[Value<'_>])) -> Result<(), Failure> {
        let Self { select, plan, text, .. } = self;
        let mut scratch = [0; EXPRESSION_TEXT_BYTES_MAX];
        let mut bump = &mut scratch[..];
        let scope = Scope { tree: &select.tree, text, cells, slots: &[] };
        let mut made = || {
            if plan.filter.passes_at_once(cells) != Some(true) && !plan.filter.passes(&scope, &mut bump)? {
                return Ok(());
            }
            let mut row = [Value::Null; COLUMNS_MAX];
            for (cell, output) in row.iter_mut().zip(&plan.outputs) {
                *cell = fitted(scope.value(output.node, &mut bump)?, output.kind);
            }
            give(&row[..plan.outputs.len()]);
            Ok(())
        };
        made().map_err(|fault| self.failure(fault))
    }

    /// Takes a row of what a board computed for the fragment [`Groups`](crate::engine::Fragment::Groups) or
    /// [`Distinct`](crate::engine::Fragment::Distinct).
    pub fn absorb(&mut self, cells: &[Value<'_>]) -> Result<(), Failure> {
        self.begin_only_group()?;
        let Self { plan, work, .. } = self;
        let taken = match plan.mode {
            Mode::Distinct => records::keep_distinct(plan, work, cells),
            Mode::Group => records::absorb(plan, work, cells),
            Mode::Stream | Mode::Sort => Ok(()),
        };
        taken.map_err(|fault| self.failure(fault))
    }

    /// How many cells a row of the fragment [`Groups`](crate::engine::Fragment::Groups) has.
    pub fn group_cells(&self) -> usize {
        let cells = |used: &crate::engine::plan::AggregateUse| {
            if used.distinct { 1 } else { partials(used).len() }
        };
        self.plan.keys.len() + self.plan.aggregates.iter().map(cells).sum::<usize>()
    }

    /// Everything has been read, fed and absorbed: what is next is the answer.
    pub fn end_reading(&mut self) -> Result<(), Failure> {
        if self.is_stream() {
            self.turn_to(0..0);
            return Ok(());
        }
        self.begin_only_group()?;
        self.phase = Phase::Finish(0);
        Ok(())
    }

    /// Without GROUP BY there is one group, even of no rows.
    pub(super) fn begin_only_group(&mut self) -> Result<(), Failure> {
        if self.plan.mode == Mode::Group && self.plan.keys.is_empty() && self.work.records() == 0 {
            self.work.push(0).map_err(|_| capacity("WORKSPACE_BYTES: ask for fewer aggregates at once"))?;
        }
        Ok(())
    }

    /// Ends the [next period](Self::period) at this moment; none if no row is that old.
    pub fn set_period(&mut self, latest_us: Option<i64>) -> Result<(), Failure> {
        let is_period = |node: &Node| matches!(node, Node::Period(..));
        let Some(id) = self.select.tree.nodes.iter().position(is_period) else { return Ok(()) };
        let Node::Period(unit, count, _, column) = self.select.tree.nodes[id] else { return Ok(()) };
        self.end_period(id, unit, count, column, latest_us)?;
        self.periods_are_set();
        Ok(())
    }
}
