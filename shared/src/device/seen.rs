//! Which requests of a session the board has seen, and which of them it began: so that a copy is not begun again, and
//! nothing that was begun is said never to have been.

/// Numbers rise, and wrap; what is asked about is far nearer to the newest than half of them.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The newest number, 0 before the first.
    newest: u16,
    /// Bit n: the request n numbers before the newest was begun.
    begun: u64,
}

impl Seen {
    /// Remembers a number; false if it is not newer than all before it.
    pub(super) fn note(&mut self, request: u16) -> bool {
        let is_first = self.newest == 0;
        let ahead = request.wrapping_sub(self.newest);
        if !is_first && ahead.cast_signed() <= 0 {
            return false;
        }
        self.begun = if is_first { 0 } else { self.begun.checked_shl(ahead.into()).unwrap_or(0) };
        self.newest = request;
        true
    }

    /// A request is begun.
    pub(super) fn begin(&mut self, request: u16) {
        self.begun |= self.bit(request).unwrap_or(0);
    }

    /// Whether a number that was noted may be that of a request that was begun. What is too long ago may.
    pub(super) fn may_have_begun(&self, request: u16) -> bool {
        self.bit(request).is_none_or(|bit| self.begun & bit != 0)
    }

    fn bit(&self, request: u16) -> Option<u64> {
        1_u64.checked_shl(self.newest.wrapping_sub(request).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_new_once_and_known_to_be_begun_also_where_numbers_wrap() {
        let mut seen = Seen::default();
        for request in (65_500..=u16::MAX).chain(1..100) {
            assert!(seen.note(request));
            assert!(!seen.note(request));
            assert!(!seen.may_have_begun(request));
            if request % 2 == 0 {
                seen.begin(request);
            }
            for before in 1..=20_u16 {
                let before = request.wrapping_sub(before);
                if before >= 65_500 || (1..100).contains(&before) {
                    assert!(!seen.note(before));
                    assert_eq!(seen.may_have_begun(before), before % 2 == 0, "{before} at {request}");
                }
            }
        }
    }

    #[test]
    fn what_is_too_long_ago_may_have_been_begun() {
        let mut seen = Seen::default();
        assert!(seen.note(40_000)); // the first of a session may have any number
        assert!(seen.note(40_063));
        assert!(!seen.may_have_begun(40_000));
        assert!(seen.note(40_064));
        assert!(seen.may_have_begun(40_000));
        assert!(seen.note(50_000));
        assert!(!seen.may_have_begun(49_999));
    }
}
