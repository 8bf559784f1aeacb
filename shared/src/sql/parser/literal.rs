//! Numbers, moments and spans of time as they are written, and the words they begin with.

use super::Parser;
use crate::{
    sql::{
        fault::Fault,
        lexer::{self, Kind, Sign},
        tree::{Node, NodeId, Span, Unit},
    },
    time,
};

const WHOLE_UNITS: &str = "an interval is a whole number of 32 bits and a unit: `3 hours`";

impl Parser<'_, '_> {
    /// A number, or a span of time if a unit follows.
    pub(super) fn number(&mut self) -> Result<NodeId, Fault> {
        let text = self.next_text();
        let number = self.take()?;
        if let Some(unit) = self.takes_unit()? {
            let count = text.parse().map_err(|_| Fault::value(number.start, WHOLE_UNITS))?;
            return self.node(Node::Interval(count, unit), number.start, &[]);
        }
        let node = match text.parse() {
            Ok(integer) if number.kind == Kind::Integer => Node::Int(integer),
            // Digits, a point and an exponent are a float whatever their number.
            _ => Node::Float(text.parse().map_err(|_| Fault::value(number.start, "expected a number"))?),
        };
        self.node(node, number.start, &[])
    }

    /// A name, a call, or a literal that begins with a word.
    pub(super) fn word(&mut self) -> Result<NodeId, Fault> {
        let text = self.next_text();
        let word = self.take()?;
        match self.next.kind {
            Kind::Sign(Sign::Open) => return self.call(text, word.start),
            Kind::Text if text.eq_ignore_ascii_case("timestamp") => {
                let moment = self.moment(self.next.span())?;
                self.take()?;
                return self.node(Node::Timestamp(moment), word.start, &[]);
            }
            Kind::Text if text.eq_ignore_ascii_case("interval") => return self.interval(word.start),
            Kind::Text => return Err(self.fault("expected an operator before this text")),
            Kind::Word if text.eq_ignore_ascii_case("case") => {
                return Err(Fault::syntax(word.start, "CASE runs on the gateway"));
            }
            _ => {}
        }
        self.one_table(word.kind)?;
        self.node(Node::Name(word.span()), word.start, &[])
    }

    /// The moment that a text names.
    pub(super) fn moment(&self, place: Span) -> Result<i64, Fault> {
        time::parse_timestamp(place.of(self.text)).map_err(|offset| {
            let hint = "expected a time such as 2026-11-18T05:00:00Z";
            Fault::value(usize::from(place.start) + offset, hint)
        })
    }

    /// `'3 hours'` or `'3' hours`, after `interval`.
    fn interval(&mut self, position: usize) -> Result<NodeId, Fault> {
        let text = self.take()?;
        let mut words = text.span().of(self.text).split_ascii_whitespace();
        let (count, inside, more) = (words.next(), words.next(), words.next());
        let unit = match inside {
            Some(word) => lexer::unit(word),
            None => self.takes_unit()?,
        };
        let count = count.and_then(|count| count.parse().ok());
        let (Some(count), Some(unit), None) = (count, unit, more) else {
            return Err(Fault::value(text.start, WHOLE_UNITS));
        };
        self.node(Node::Interval(count, unit), position, &[])
    }

    /// Takes a unit of time if it is the next token.
    pub(super) fn takes_unit(&mut self) -> Result<Option<Unit>, Fault> {
        let unit = if self.next.kind == Kind::Word { lexer::unit(self.next_text()) } else { None };
        if unit.is_some() {
            self.take()?;
        }
        Ok(unit)
    }
}
