//! A source file as its tokens and the paths that it names. Knows no rule; understands just enough of Rust for them.

/// A source file, with its path from the root, `/` between the parts.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) first_line: String,
    pub(crate) line_count: usize,
    pub(crate) tokens: Vec<Token>,
}

/// A word or a sign of code; `::` is one sign. Comments and literals are none.
#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let first_line = text.lines().next().unwrap_or_default().to_owned();
        Self { path: path.to_owned(), first_line, line_count: text.lines().count(), tokens: tokens(text) }
    }

    /// Whether the file is in that folder, or is the folder's module itself (`mcp.rs` for `mcp`).
    pub(crate) fn is_in(&self, place: &str) -> bool {
        let rest = self.path.strip_prefix(place);
        rest.is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
    }

    pub(crate) fn finding(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }

    /// The tokens without items under `#[cfg(test)]`; none in a file of tests.
    pub(crate) fn tokens_outside_tests(&self) -> Vec<Token> {
        if self.path.ends_with("/tests.rs") || self.path.contains("/tests/") {
            return Vec::new();
        }
        let mut kept = Vec::new();
        let mut rest = self.tokens.as_slice();
        while let Some((first, after)) = rest.split_first() {
            if is_test_attribute(rest) {
                let end = rest.iter().position(|token| token.text == "]");
                rest = after_item(&rest[end.map_or(rest.len(), |end| end + 1)..]);
            } else {
                kept.push(first.clone());
                rest = after;
            }
        }
        kept
    }

    /// The paths that the code names outside tests, with their lines: imports, groups taken apart, and paths of two
    /// parts or more anywhere else.
    pub(crate) fn paths_used(&self) -> Vec<(usize, String)> {
        let tokens = self.tokens_outside_tests();
        let mut paths = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let is_import =
                tokens[at].text == "use" && tokens.get(at + 1).is_some_and(|next| next.text != "<");
            let is_extern = tokens[at].text == "crate" && at > 0 && tokens[at - 1].text == "extern";
            if is_import || is_extern {
                at = import_paths(&tokens, at + 1, "", &mut paths);
            } else if is_word(&tokens[at].text) {
                let start = at;
                let path = plain_path(&tokens, &mut at);
                if path.contains("::") {
                    paths.push((tokens[start].line, path));
                }
            } else {
                at += 1;
            }
        }
        paths
    }
}

/// Whether these tokens begin with `#[cfg(test)]` or `#[cfg(all(test, …))]`.
fn is_test_attribute(tokens: &[Token]) -> bool {
    let begins = |texts: &[&str]| {
        tokens.len() >= texts.len() && texts.iter().zip(tokens).all(|(text, token)| token.text == *text)
    };
    begins(&["#", "[", "cfg", "(", "test", ")", "]"])
        || begins(&["#", "[", "cfg", "(", "all", "(", "test", ","])
}

/// The tokens after an item: after its block, or after its `;`.
fn after_item(tokens: &[Token]) -> &[Token] {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(token.text.as_str(), "}" | ";") {
            return &tokens[at + 1..];
        }
    }
    &[]
}

/// Reads one branch of an import's tree from `at`, or a whole group; returns where it ended.
fn import_paths(tokens: &[Token], mut at: usize, prefix: &str, paths: &mut Vec<(usize, String)>) -> usize {
    let mut path = prefix.to_owned();
    let Some(line) = tokens.get(at).map(|token| token.line) else {
        return at;
    };
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.text != "}" && token.text != ";") {
                    at = import_paths(tokens, at, &path, paths);
                    at += usize::from(tokens.get(at).is_some_and(|token| token.text == ","));
                }
                return at + 1;
            }
            "::" => at += 1,
            "as" => at += 2,
            "," | "}" | ";" => break,
            text => {
                path = if path.is_empty() { text.to_owned() } else { format!("{path}::{text}") };
                at += 1;
            }
        }
    }
    paths.push((line, path));
    at
}

/// Reads `a::b::c` from `at` on and moves `at` behind it.
fn plain_path(tokens: &[Token], at: &mut usize) -> String {
    let mut path = tokens[*at].text.clone();
    *at += 1;
    while let [sign, word, ..] = &tokens[*at..] {
        if sign.text != "::" || !is_word(&word.text) {
            break;
        }
        path = format!("{path}::{}", word.text);
        *at += 2;
    }
    path
}

/// Whether a path is, or is within, another.
pub(crate) fn starts_with_path(path: &str, start: &str) -> bool {
    path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, is_code) = token_length(rest, first);
        let (token, after) = rest.split_at(length);
        if is_code {
            tokens.push(Token { line, text: token.to_owned() });
        }
        line += token.matches('\n').count();
        rest = after;
    }
    tokens
}

/// How many bytes the token at the start has, and whether it is code: not white space, no comment, no literal.
fn token_length(rest: &str, first: char) -> (usize, bool) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), false);
    }
    if rest.starts_with("/*") {
        return (block_comment_length(rest), false);
    }
    let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let after_word = &rest[word..];
    if matches!(&rest[..word], "" | "b" | "c") && after_word.starts_with('"') {
        return (word + quoted_length(after_word, '"'), false);
    }
    let hashes = after_word.len() - after_word.trim_start_matches('#').len();
    if matches!(&rest[..word], "r" | "br" | "cr") && after_word[hashes..].starts_with('"') {
        let end = format!("\"{}", "#".repeat(hashes));
        let start = word + hashes + 1;
        return (rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len()), false);
    }
    if matches!(&rest[..word], "" | "b") && after_word.starts_with('\'') {
        let mut chars = after_word[1..].chars();
        let is_char = chars.next() == Some('\\') || chars.next() == Some('\'');
        return (word + if is_char { quoted_length(after_word, '\'') } else { 1 }, false);
    }
    if word > 0 {
        return (word, !first.is_numeric());
    }
    if rest.starts_with("::") {
        return (2, true);
    }
    (first.len_utf8(), !first.is_whitespace())
}

/// The length of a literal up to its closing quote; a backslash takes the next character with it.
fn quoted_length(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    rest.len()
}

/// Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}
