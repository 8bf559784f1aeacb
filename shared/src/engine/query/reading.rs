//! Reading pages: rows that go out as they are read, and rows that are kept in the workspace.

use super::{Phase, Progress, Query, RowSink, damaged, fitted, sink_failure};
use crate::{
    engine::{
        eval::Scope,
        plan::{Mode, Plan},
        records,
        scan::{PageRows, Pages, ScanFault},
        workspace::Memory,
    },
    limits::{COLUMNS_MAX, EXPRESSION_TEXT_BYTES_MAX},
    message::Failure,
    page::Page,
    rowcode::RowError,
};

impl<M: Memory> Query<M> {
    /// The page at which reading goes on; none at the end. Counts what is gone.
    fn next_page<'p>(&mut self, pages: &'p impl Pages) -> Result<Option<Page<'p>>, Failure> {
        if self.next >= self.rows.end {
            return Ok(None);
        }
        let Some(bytes) = pages.page(self.next) else {
            self.skip_to(self.rows.end);
            return Ok(None);
        };
        let page = Page::read(bytes).map_err(|_| damaged())?;
        self.skip_to(page.first_row_id());
        Ok(if self.next < self.rows.end { Some(page) } else { None })
    }

    /// The next page that may have rows for the filter; those of other times are passed over by their heads.
    fn next_page_in_time<'p>(&mut self, pages: &'p impl Pages) -> Result<Option<Page<'p>>, Failure> {
        while let Some(page) = self.next_page(pages)? {
            let (first_us, last_us) = (pages.utc_us(page.time_min_us()), pages.utc_us(page.time_max_us()));
            if self.plan.time.touches(first_us, last_us) {
                return Ok(Some(page));
            }
            let after = page.next_row_id();
            self.next = after.max(self.next + 1).min(self.rows.end);
        }
        Ok(None)
    }

    pub(super) fn stream(
        &mut self,
        pages: &impl Pages,
        sink: &mut impl RowSink,
    ) -> Result<Progress, Failure> {
        let given_before = self.given;
        if self.select.limit.is_some_and(|limit| self.given >= limit) {
            self.next = self.rows.end;
        }
        if let Some(page) = self.next_page_in_time(pages)? {
            self.stream_page(pages, &page, sink)?;
        }
        Ok(if self.given > given_before {
            Progress::Rows(self.next)
        } else if self.next >= self.rows.end {
            Progress::Done
        } else {
            Progress::Working
        })
    }

    /// Gives the rows of a page, as many as the empty sink has room for.
    fn stream_page(
        &mut self,
        pages: &impl Pages,
        page: &Page<'_>,
        sink: &mut impl RowSink,
    ) -> Result<(), Failure> {
        let given_before = self.given;
        let mut rows = PageRows::new(pages, page, &self.plan, self.next..self.rows.end);
        let streamed = self.stream_rows(pages, &mut rows, sink);
        self.next = rows.next();
        match streamed.map_err(|fault| self.scan_failure(fault))? {
            Ok(()) => Ok(()),
            Err(error) => {
                self.next -= 1; // this row comes again
                match error {
                    RowError::Full if self.given > given_before => Ok(()),
                    error => Err(sink_failure(error)),
                }
            }
        }
    }

    /// Gives rows until there are no more, there are enough, or the sink refuses one.
    #[inline(never)]
    fn stream_rows(
        &mut self,
        pages: &impl Pages,
        rows: &mut PageRows<'_>,
        sink: &mut impl RowSink,
    ) -> Result<Result<(), RowError>, ScanFault> {
        let Self { select, plan, text, given, offset_left, .. } = self;
        let mut scratch = [0; EXPRESSION_TEXT_BYTES_MAX];
        while select.limit.is_none_or(|limit| *given < limit) && rows.advance(pages)? {
            let passes = plan.filter.passes_at_once(rows.cells());
            if passes == Some(false) {
                continue;
            }
            let mut bump = &mut scratch[..];
            let scope = Scope { tree: &select.tree, text, cells: rows.cells(), slots: &[] };
            if passes.is_none() && !plan.filter.passes(&scope, &mut bump)? {
                continue;
            }
            if *offset_left > 0 {
                *offset_left -= 1;
                continue;
            }
            let mut row = heapless::Vec::<_, COLUMNS_MAX>::new();
            for output in &plan.outputs {
                let _ = row.push(fitted(scope.value(output.node, &mut bump)?, output.kind)); // as many as outputs
            }
            if let Err(error) = sink.push(&row) {
                return Ok(Err(error));
            }
            *given += 1;
        }
        Ok(Ok(()))
    }

    /// Reads one page into the workspace.
    pub(super) fn gather(&mut self, pages: &impl Pages) -> Result<(), Failure> {
        self.begin_only_group()?;
        let Some(page) = self.next_page_in_time(pages)? else {
            self.phase = Phase::Finish(0);
            return Ok(());
        };
        if self.counts_only() {
            let after = page.next_row_id();
            let counted = after.min(self.rows.end) - self.next;
            records::count_rows(&self.plan, &mut self.work, counted);
            self.next += counted;
            return Ok(());
        }
        let mut rows = PageRows::new(pages, &page, &self.plan, self.next..self.rows.end);
        let is_enough = self.gather_rows(pages, &mut rows).map_err(|fault| self.scan_failure(fault))?;
        self.next = if is_enough { self.rows.end } else { rows.next() };
        Ok(())
    }

    /// Takes all rows of a page; true if no more are needed.
    #[inline(never)]
    fn gather_rows(&mut self, pages: &impl Pages, rows: &mut PageRows<'_>) -> Result<bool, ScanFault> {
        let Self { select, plan, text, work, .. } = self;
        let keep = Plan::rows_kept(select);
        let mut scratch = [0; EXPRESSION_TEXT_BYTES_MAX];
        let mut last_group = 0;
        while rows.advance(pages)? {
            let passes = plan.filter.passes_at_once(rows.cells());
            if passes == Some(false) {
                continue;
            }
            let mut bump = &mut scratch[..];
            let scope = Scope { tree: &select.tree, text, cells: rows.cells(), slots: &[] };
            if passes.is_none() && !plan.filter.passes(&scope, &mut bump)? {
                continue;
            }
            match plan.mode {
                Mode::Group => records::take_row(plan, work, &scope, &mut bump, &mut last_group)?,
                Mode::Sort => records::sort_row(plan, work, &scope, &mut bump, keep)?,
                Mode::Distinct => {
                    records::distinct_row(plan, work, &scope, &mut bump)?;
                    if plan.order.is_empty() && keep.is_some_and(|keep| work.records() as u64 >= keep) {
                        return Ok(true);
                    }
                }
                Mode::Stream => {}
            }
        }
        Ok(false)
    }

    /// Whether only rows are counted, so that pages need not be opened.
    fn counts_only(&self) -> bool {
        self.plan.mode == Mode::Group
            && self.plan.keys.is_empty()
            && self.select.filter.is_none()
            && self.plan.aggregates.iter().all(|aggregate| aggregate.argument.is_none())
    }
}
