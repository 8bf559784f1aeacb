//! The words of a statement before it is parsed: refuses what is too deep or hidden in a comment, and writes `3 days` as an
//! interval that any parser knows.

use super::limits::{SQL_BYTES_MAX, SQL_DEPTH_MAX};
use crate::fault::Fault;
use shared::sql;
use sqlparser::{
    dialect::SQLiteDialect,
    tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Whitespace, Word},
};

/// The words of a statement, each with its place.
pub(super) fn read(text: &str) -> Result<Vec<TokenWithSpan>, Fault> {
    if text.len() > SQL_BYTES_MAX {
        let message = format!(
            "SQL_BYTES_MAX: the statement has {} bytes, at most {SQL_BYTES_MAX} are taken",
            text.len()
        );
        return Err(Fault::new("too_long", message, "shorten the statement"));
    }
    if text.contains('\0') {
        return Err(syntax("the statement has a NUL in it", "leave it out"));
    }
    let words =
        Tokenizer::new(&SQLiteDialect {}, text).with_unescape(false).tokenize_with_location().map_err(
            |error| at(syntax(&error.message, "correct it where the error says"), text, error.location),
        )?;
    let is_comment = |word: &&TokenWithSpan| {
        matches!(
            word.token,
            Token::Whitespace(Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_))
        )
    };
    if let Some(comment) = words.iter().find(is_comment) {
        let fault = syntax("a comment can hide what a statement does; none is taken", "leave it out");
        return Err(at(fault, text, comment.span.start));
    }
    let words: Vec<TokenWithSpan> = words
        .into_iter()
        .filter(|word| !matches!(word.token, Token::Whitespace(_)))
        .map(|TokenWithSpan { token, span }| TokenWithSpan { token: name_of_top(token), span })
        .collect();
    check_depth(&words)?;
    Ok(with_intervals(words))
}

/// Words that only a statement beyond the boards' dialect has.
const BEYOND_WORDS: [&str; 11] = [
    "JOIN",
    "OVER",
    "WINDOW",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "EXISTS",
    "RECURSIVE",
    "CASE",
    "WITH",
    "VALUES",
];

/// Whether a statement is clearly none of the boards' dialect, whatever else is wrong with it.
pub fn is_beyond(text: &str) -> bool {
    if text.len() > SQL_BYTES_MAX {
        return false;
    }
    let words = Tokenizer::new(&SQLiteDialect {}, text).tokenize().unwrap_or_default();
    let words = words.iter().filter_map(|word| match word {
        Token::Word(Word { value, quote_style: None, .. }) => Some(value.to_uppercase()),
        _ => None,
    });
    let mut selects = 0;
    words.into_iter().any(|word| {
        selects += usize::from(word == "SELECT");
        selects > 1 || BEYOND_WORDS.contains(&word.as_str())
    })
}

/// A statement that is not written as it should be.
pub(super) fn syntax(message: &str, action: &str) -> Fault {
    Fault::new("syntax", message, action)
}

/// The same with its place in the text.
pub(super) fn at(fault: Fault, text: &str, place: Location) -> Fault {
    let lines_before = usize::try_from(place.line).unwrap_or(0).saturating_sub(1);
    let line_start: usize = text.split_inclusive('\n').take(lines_before).map(str::len).sum();
    let column = usize::try_from(place.column).unwrap_or(0).saturating_sub(1);
    let in_line: usize =
        text.get(line_start..).unwrap_or_default().chars().take(column).map(char::len_utf8).sum();
    if place.line == 0 { fault } else { fault.with("position", line_start + in_line) }
}

/// A parser makes a tree as deep as words stand in one another or in one row: chains of operators lean to one side.
/// Whatever walks that tree needs stack for it.
fn check_depth(words: &[TokenWithSpan]) -> Result<(), Fault> {
    // Of each parenthesis that is open: how deep what stands since the last comma is, and the deepest before it.
    let mut open = vec![(0_usize, 0_usize)];
    for word in words {
        match word.token {
            Token::LParen | Token::LBracket | Token::LBrace => open.push((0, 0)),
            Token::RParen | Token::RBracket | Token::RBrace => {
                let (current, deepest) = open.pop().unwrap_or_default();
                if open.is_empty() {
                    open.push((0, 0));
                }
                if let Some(last) = open.last_mut() {
                    last.0 += 1 + current.max(deepest);
                }
            }
            Token::Comma => {
                if let Some((current, deepest)) = open.last_mut() {
                    (*deepest, *current) = ((*deepest).max(*current), 0);
                }
            }
            _ => {
                if let Some(last) = open.last_mut() {
                    last.0 += 1;
                }
            }
        }
        if open.last().is_some_and(|last| last.0 > SQL_DEPTH_MAX) || open.len() > SQL_DEPTH_MAX {
            let message = format!(
                "SQL_DEPTH_MAX: an expression has more than {SQL_DEPTH_MAX} words in a row or in one another"
            );
            let action = "use IN (…) or VALUES for many values, or take the statement apart";
            return Err(Fault::new("capacity", message, action));
        }
    }
    Ok(())
}

/// `top` is a name in SQLite; the parser would take `SELECT top` for another dialect's limit.
fn name_of_top(token: Token) -> Token {
    match token {
        Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case("top") => {
            Token::make_word(&value, Some('"'))
        }
        other => other,
    }
}

/// `+ 3 days` → `+ INTERVAL '3 days'`
fn with_intervals(words: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut written: Vec<TokenWithSpan> = Vec::with_capacity(words.len());
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let is_moved = matches!(written.last().map(|before| &before.token), Some(Token::Plus | Token::Minus));
        if let (Token::Number(count, _), true) = (&word.token, is_moved) {
            let unit = words.peek().and_then(|next| match &next.token {
                Token::Word(Word { value, quote_style: None, .. }) if sql::unit(value).is_some() => {
                    Some(value.clone())
                }
                _ => None,
            });
            if let Some(unit) = unit {
                words.next();
                written.push(TokenWithSpan::new(Token::make_keyword("INTERVAL"), word.span));
                let text = Token::SingleQuotedString(format!("{count} {unit}"));
                written.push(TokenWithSpan::new(text, word.span));
                continue;
            }
        }
        written.push(word);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        read(text).unwrap().iter().map(|word| word.token.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn units_behind_a_number_are_intervals() {
        assert_eq!(written("now()-3 days"), "now ( ) - INTERVAL '3 days'");
        assert_eq!(written("SELECT 3 days, a + 4 b"), "SELECT 3 days , a + 4 b");
        assert_eq!(written("a + 2 \"hours\""), "a + 2 \"hours\"");
        assert_eq!(written("SELECT Top, 'top'"), "SELECT \"Top\" , 'top'");
    }

    #[test]
    fn comments_and_nul_are_refused_with_their_place() {
        let fault = read("SELECT 1\n , 'ü' -- ; DROP").unwrap_err();
        assert_eq!((fault.code, fault.details["position"].as_u64()), ("syntax", Some(17)));
        assert_eq!(read("SELECT /* x */ 1").unwrap_err().code, "syntax");
        assert_eq!(read("SELECT '\0'").unwrap_err().code, "syntax");
        assert_eq!(read("SELECT 'open").unwrap_err().code, "syntax");
        assert!(read("SELECT '-- no comment', \"/* nor */\"").is_ok());
    }

    #[test]
    fn a_typing_error_is_none_of_sqlite() {
        for text in [
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "VALUES (1)",
            "SELECT a FROM t join u ON",
            "SELECT sum(x) OVER () FROM t",
            "SELECT a FROM t WHERE b > (SELECT max(b) FROM t)",
            "SELECT a FROM t UNION ALL",
        ] {
            assert!(is_beyond(text), "{text}");
        }
        for text in ["SELCT a FROM t", "SELECT 'JOIN' FROM t", "SELECT \"union\" FROM t", "SELECT 'open", ""]
        {
            assert!(!is_beyond(text), "{text}");
        }
    }

    #[test]
    fn depth_is_bounded_however_it_is_made() {
        let deep = [
            vec!["1"; 600].join("+"),
            format!("{}1{}", "(".repeat(1001), ")".repeat(1001)),
            format!("{}1{}", "(".repeat(400), "+1)".repeat(400)),
            "NOT ".repeat(1001) + "1",
            "f(".repeat(1001),
        ];
        for text in deep {
            assert_eq!(read(&format!("SELECT {text}")).unwrap_err().code, "capacity", "{text:.40}");
        }
        assert!(read(&format!("SELECT 1 IN ({})", vec!["1"; 5_000].join(","))).is_ok());
        assert!(read(")))))((((").is_ok());
        assert_eq!(read(&"x".repeat(SQL_BYTES_MAX + 1)).unwrap_err().code, "too_long");
    }
}
