//! What was computed: records in the order of the answer, and the rows they make.

use super::{Phase, Progress, Query, RowSink, sink_failure};
use crate::{
    engine::{plan::Mode, records::Sorted, workspace::Memory},
    message::Failure,
    rowcode::RowError,
};

impl<M: Memory> Query<M> {
    /// Puts one record in its place, or all of them.
    #[inline(never)]
    pub(super) fn finish(&mut self, record: usize) -> Result<(), Failure> {
        if M::SORTS_AT_ONCE && Sorted::can_arrange(&self.plan, &self.select) {
            let sorted = Sorted { select: &self.select, plan: &self.plan, text: &self.text };
            sorted.arrange(&mut self.work).map_err(|fault| self.failure(fault))?;
            self.phase = Phase::Emit(0);
            return Ok(());
        }
        if record >= self.work.records() || self.plan.mode == Mode::Sort {
            self.phase = Phase::Emit(0);
            return Ok(());
        }
        let sorted = Sorted { select: &self.select, plan: &self.plan, text: &self.text };
        let place = sorted.place(&self.work, record).map_err(|fault| self.failure(fault))?;
        if let Some(place) = place {
            if let Some(same) = place.instead_of {
                self.work.remove(same);
            }
            self.work.insert(place.at, record);
        }
        self.phase = Phase::Finish(record + 1);
        Ok(())
    }

    pub(super) fn rows_computed(&self) -> u64 {
        let all = self.work.ordered() as u64;
        let left = all.saturating_sub(self.select.offset);
        self.select.limit.map_or(left, |limit| left.min(limit))
    }

    #[inline(never)]
    pub(super) fn emit(&mut self, at: u64, sink: &mut impl RowSink) -> Result<Progress, Failure> {
        let (mut at, begun, end) = (at, at, self.rows_computed());
        let sorted = Sorted { select: &self.select, plan: &self.plan, text: &self.text };
        while at < end {
            let place = (self.select.offset + at) as usize;
            let record = self.work.at(place);
            let mut pushed = Ok(());
            sorted
                .row(&self.work, record, &mut |cells| pushed = sink.push(cells))
                .map_err(|fault| self.failure(fault))?;
            match pushed {
                Ok(()) => at += 1,
                Err(RowError::Full) if at > begun => break,
                Err(error) => return Err(sink_failure(error)),
            }
        }
        self.phase = Phase::Emit(at);
        Ok(if at > begun { Progress::Rows(at) } else { Progress::Done })
    }
}
