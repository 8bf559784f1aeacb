//! Text → tokens: words, names, literals, signs. Knows what a token is, not where one may stand.

use super::{
    fault::{Fault, Hint},
    tree::{Span, Unit},
};
use crate::{limits::NAME_BYTES_MAX, message::ErrorCode};

/// A token and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// Its first byte.
    pub(super) start: usize,
    /// The byte after it.
    pub(super) end: usize,
}

impl Token {
    /// Where it stands, without the quotes around it.
    pub(super) fn span(&self) -> Span {
        let quotes = usize::from(matches!(self.kind, Kind::QuotedName | Kind::Text));
        let (start, end) = (self.start + quotes, self.end - quotes);
        // A text of at most COMMAND_BYTES_MAX has no place beyond 16 bits.
        Span { start: start as u16, len: (end - start) as u16 }
    }
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word that cannot be a name.
    Keyword(Keyword),
    /// Any other word.
    Word,
    /// `"name"`
    QuotedName,
    /// `'text'`
    Text,
    /// `3`
    Integer,
    /// `1.5`, `.5`, `1e3`
    Decimal,
    /// `+`, `::`, …
    Sign(Sign),
    /// The end of the text.
    End,
}

/// A word that means the same everywhere: none of them is a name unless it is quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    And,
    As,
    Asc,
    Between,
    By,
    Desc,
    Distinct,
    False,
    From,
    Group,
    Having,
    In,
    Is,
    Like,
    Limit,
    Not,
    Null,
    Offset,
    Or,
    Order,
    Select,
    True,
    Where,
}

const KEYWORDS: [(&str, Keyword); 23] = [
    ("AND", Keyword::And),
    ("AS", Keyword::As),
    ("ASC", Keyword::Asc),
    ("BETWEEN", Keyword::Between),
    ("BY", Keyword::By),
    ("DESC", Keyword::Desc),
    ("DISTINCT", Keyword::Distinct),
    ("FALSE", Keyword::False),
    ("FROM", Keyword::From),
    ("GROUP", Keyword::Group),
    ("HAVING", Keyword::Having),
    ("IN", Keyword::In),
    ("IS", Keyword::Is),
    ("LIKE", Keyword::Like),
    ("LIMIT", Keyword::Limit),
    ("NOT", Keyword::Not),
    ("NULL", Keyword::Null),
    ("OFFSET", Keyword::Offset),
    ("OR", Keyword::Or),
    ("ORDER", Keyword::Order),
    ("SELECT", Keyword::Select),
    ("TRUE", Keyword::True),
    ("WHERE", Keyword::Where),
];

/// A token that is neither a word nor a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// `,`
    Comma,
    /// `.`
    Dot,
    /// `;`
    Semicolon,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `%`
    Percent,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `=`, `==`
    Equal,
    /// `!=`, `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `::`
    Cast,
}

/// Every sign, the longer before those it begins with.
const SIGNS: [(&str, Sign); 19] = [
    ("::", Sign::Cast),
    ("==", Sign::Equal),
    ("!=", Sign::NotEqual),
    ("<>", Sign::NotEqual),
    ("<=", Sign::LessOrEqual),
    (">=", Sign::GreaterOrEqual),
    (",", Sign::Comma),
    (".", Sign::Dot),
    (";", Sign::Semicolon),
    ("(", Sign::Open),
    (")", Sign::Close),
    ("*", Sign::Star),
    ("/", Sign::Slash),
    ("%", Sign::Percent),
    ("+", Sign::Plus),
    ("-", Sign::Minus),
    ("=", Sign::Equal),
    ("<", Sign::Less),
    (">", Sign::Greater),
];

/// The token at or after byte `at` of the text.
pub(super) fn token(text: &str, at: usize) -> Result<Token, Fault> {
    let bytes = text.as_bytes();
    let start = at + run(bytes, at, |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0C));
    let (kind, end) = match bytes.get(start) {
        None => (Kind::End, start),
        Some(b'A'..=b'Z' | b'a'..=b'z' | b'_') => word(text, start)?,
        Some(b'0'..=b'9') => number(text, start)?,
        Some(b'.') if bytes.get(start + 1).is_some_and(u8::is_ascii_digit) => number(text, start)?,
        Some(b'\'') => quoted(text, start, Kind::Text)?,
        Some(b'"') => quoted_name(text, start)?,
        Some(_) => sign(text, start)?,
    };
    Ok(Token { kind, start, end })
}

/// The unit of time that a word names, in the singular or the plural.
pub fn unit(word: &str) -> Option<Unit> {
    const UNITS: [(&str, Unit); 9] = [
        ("microsecond", Unit::Microsecond),
        ("millisecond", Unit::Millisecond),
        ("second", Unit::Second),
        ("minute", Unit::Minute),
        ("hour", Unit::Hour),
        ("day", Unit::Day),
        ("week", Unit::Week),
        ("month", Unit::Month),
        ("year", Unit::Year),
    ];
    let is_named = |name: &str| {
        let (singular, plural) = word.split_at_checked(name.len()).unwrap_or_default();
        singular.eq_ignore_ascii_case(name) && (plural.is_empty() || plural.eq_ignore_ascii_case("s"))
    };
    UNITS.iter().find(|(name, _)| is_named(name)).map(|(_, unit)| *unit)
}

/// How many bytes from `start` on are such.
fn run(bytes: &[u8], start: usize, is_such: impl Fn(u8) -> bool) -> usize {
    bytes.iter().skip(start).take_while(|byte| is_such(**byte)).count()
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn word(text: &str, start: usize) -> Result<(Kind, usize), Fault> {
    let end = start + run(text.as_bytes(), start, is_of_word);
    let word = &text[start..end];
    if let Some((_, keyword)) = KEYWORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
        return Ok((Kind::Keyword(*keyword), end));
    }
    if word.len() > NAME_BYTES_MAX {
        return Err(long_name(start));
    }
    Ok((Kind::Word, end))
}

/// Digits, a point and more digits, an exponent. A word may follow at once only if it is a unit of time.
fn number(text: &str, start: usize) -> Result<(Kind, usize), Fault> {
    let bytes = text.as_bytes();
    let digits = |at| run(bytes, at, |byte| byte.is_ascii_digit());
    let mut end = start + digits(start);
    let mut kind = Kind::Integer;
    if bytes.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
        kind = Kind::Decimal;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
            kind = Kind::Decimal;
        }
    }
    let after = run(bytes, end, is_of_word);
    if after > 0 && unit(&text[end..end + after]).is_none() {
        return Err(Fault::syntax(end, "a number ends before a letter; expected a space or a sign"));
    }
    Ok((kind, end))
}

/// From a quote to the next that is not followed by another.
fn quoted(text: &str, start: usize, kind: Kind) -> Result<(Kind, usize), Fault> {
    let bytes = text.as_bytes();
    let quote = bytes[start];
    let mut end = start + 1;
    loop {
        end += run(bytes, end, |byte| byte != quote);
        if end >= bytes.len() {
            let hint = Hint::Unclosed(quote.into(), start);
            return Err(Fault { code: ErrorCode::Syntax, position: text.len(), hint });
        }
        if bytes.get(end + 1) != Some(&quote) {
            return Ok((kind, end + 1));
        }
        end += 2;
    }
}

fn quoted_name(text: &str, start: usize) -> Result<(Kind, usize), Fault> {
    let (kind, end) = quoted(text, start, Kind::QuotedName)?;
    let name = &text[start + 1..end - 1];
    if name.is_empty() {
        return Err(Fault::syntax(start, "a name has at least one letter"));
    }
    if name.contains(|c: char| c == '"' || c.is_control()) {
        return Err(Fault::syntax(start, "a name has no quote and no control character in it"));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(long_name(start));
    }
    Ok((kind, end))
}

fn long_name(start: usize) -> Fault {
    Fault::capacity(start, "NAME_BYTES_MAX", NAME_BYTES_MAX, "bytes of a name")
}

fn sign(text: &str, start: usize) -> Result<(Kind, usize), Fault> {
    let rest = &text[start..];
    if rest.starts_with("--") || rest.starts_with("/*") {
        return Err(Fault::syntax(start, "a query has no comments; two minus signs need a space between"));
    }
    if let Some((name, sign)) = SIGNS.iter().find(|(name, _)| rest.starts_with(name)) {
        return Ok((Kind::Sign(*sign), start + name.len()));
    }
    let hint = match rest.as_bytes().first() {
        Some(b'?' | b'$' | b'@' | b':') => "a query has no parameters; write the value itself",
        Some(b'|') => "texts are not joined on the board; select both",
        Some(b'`' | b'[') => "write names as they are, or in double quotes",
        _ => "no query has this character outside quotes",
    };
    Err(Fault::syntax(start, hint))
}
