//! How a query is run, in words. Runs nothing.

use super::Query;
use crate::{
    engine::{plan::Mode, records, scan::Pages, workspace::Memory},
    limits::WORKSPACE_BYTES,
    page::Page,
};

impl<M: Memory> Query<M> {
    /// Says how the query is run, a step at a time.
    #[inline(never)]
    pub fn explain(&self, pages: &impl Pages, mut say: impl FnMut(&'static str, core::fmt::Arguments<'_>)) {
        let (mut read, mut skipped, mut next) = (0_u32, 0_u32, self.rows.start);
        while next < self.rows.end
            && let Some(page) = pages.page(next).and_then(|bytes| Page::read(bytes).ok())
        {
            let (first_us, last_us) = (pages.utc_us(page.time_min_us()), pages.utc_us(page.time_max_us()));
            let inside = self.plan.time.touches(first_us, last_us);
            *(if inside { &mut read } else { &mut skipped }) += 1;
            next = (page.next_row_id()).max(next + 1);
        }
        say("scan", format_args!("{read} pages read, {skipped} skipped by time"));
        say("rows", format_args!("{} to {}", self.rows.start, self.rows.end));
        if self.select.filter.is_some() {
            say("filter", format_args!("{} nodes in all expressions", self.select.tree.nodes.len()));
        }
        if self.plan.has_period {
            say("period", format_args!("a first scan finds its last row"));
        }
        let (record_bytes, _) = records::sizes(&self.plan);
        let records_max = WORKSPACE_BYTES.checked_div(record_bytes).unwrap_or(0);
        match self.plan.mode {
            Mode::Stream => say("answer", format_args!("a stream; nothing is kept")),
            Mode::Sort => say(
                "answer",
                format_args!(
                    "sorted; up to {} rows of {record_bytes} bytes",
                    records_max.min(M::SORT_ROWS_MAX)
                ),
            ),
            Mode::Distinct => say(
                "answer",
                format_args!(
                    "different rows; up to {} of {record_bytes} bytes",
                    records_max.min(M::DISTINCT_ROWS_MAX)
                ),
            ),
            Mode::Group => say(
                "answer",
                format_args!(
                    "groups by {} keys with {} aggregates; up to {} of {record_bytes} bytes",
                    self.plan.keys.len(),
                    self.plan.aggregates.len(),
                    records_max.min(M::GROUPS_MAX),
                ),
            ),
        }
        if self.plan.aggregates.iter().any(|aggregate| aggregate.distinct) {
            say("distinct", format_args!("up to {} values", M::DISTINCT_VALUES_MAX));
        }
    }
}
