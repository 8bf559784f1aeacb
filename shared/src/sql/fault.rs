//! What is wrong with a query: small enough to be handed through every level of the parser. Not what travels.

use crate::{
    command::nearest,
    message::{ErrorCode, Failure},
};

/// What is wrong, and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) code: ErrorCode,
    /// A byte of the text, or its end.
    pub(super) position: usize,
    pub(super) hint: Hint,
}

/// What to do about it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hint {
    /// In so many words.
    Plain(&'static str),
    /// The word that was probably meant.
    Meant(&'static str),
    /// This sign is missing.
    Missing(&'static str),
    /// The bound that is exceeded, its number, and what it counts.
    Bound(&'static str, usize, &'static str),
    /// The quote that is not closed.
    Unclosed(char, usize),
    /// What was called, and what it takes.
    Arguments(&'static str, &'static str),
}

impl Fault {
    /// The text is not written as it should be.
    pub(super) fn syntax(position: usize, hint: &'static str) -> Self {
        Self { code: ErrorCode::Syntax, position, hint: Hint::Plain(hint) }
    }

    /// A value is not one that can be taken.
    pub(super) fn value(position: usize, hint: &'static str) -> Self {
        Self { code: ErrorCode::Value, position, hint: Hint::Plain(hint) }
    }

    /// More is needed than a bound allows.
    pub(super) fn capacity(position: usize, name: &'static str, bound: usize, counted: &'static str) -> Self {
        Self { code: ErrorCode::Capacity, position, hint: Hint::Bound(name, bound, counted) }
    }

    /// A sign is missing.
    pub(super) fn missing(position: usize, sign: &'static str) -> Self {
        Self { code: ErrorCode::Syntax, position, hint: Hint::Missing(sign) }
    }

    /// `word` is not one that fits; `otherwise` is said where none of `candidates` is near it.
    pub(super) fn word(
        position: usize,
        word: &str,
        candidates: &[&'static str],
        otherwise: &'static str,
    ) -> Self {
        let hint = nearest(word, candidates).map_or(Hint::Plain(otherwise), Hint::Meant);
        Self { code: ErrorCode::Syntax, position, hint }
    }

    pub(super) fn into_failure(self) -> Failure {
        let Self { code, position, hint } = self;
        match hint {
            Hint::Plain(text) => Failure::new(code, position, format_args!("{text}")),
            Hint::Meant(word) => Failure::new(code, position, format_args!("did you mean `{word}`?")),
            Hint::Missing(sign) => Failure::new(code, position, format_args!("expected `{sign}`")),
            Hint::Bound(name, bound, counted) => {
                Failure::new(code, position, format_args!("{name}: at most {bound} {counted}"))
            }
            Hint::Unclosed(quote, start) => {
                Failure::new(code, position, format_args!("the {quote} at byte {start} is not closed"))
            }
            Hint::Arguments(name, takes) => {
                Failure::new(code, position, format_args!("`{name}` takes {takes}"))
            }
        }
    }
}
