//! Tokens → [`Select`]: the clauses of a SELECT in their order. Expressions are in [`expression`], calls in [`call`].

mod call;
mod expression;
mod literal;
#[cfg(test)]
mod tests;

use super::{
    fault::{Fault, Hint},
    lexer::{self, Keyword, Kind, Sign, Token},
    tree::{Item, List, Node, NodeId, Select, SortKey, Span, Tree},
};
use crate::{
    command::nearest,
    limits::{
        COMMAND_BYTES_MAX, EXPRESSION_DEPTH_MAX, GROUP_KEYS_MAX, SELECT_ITEMS_MAX, SORT_KEYS_MAX,
        SQL_LIST_ITEMS_MAX, SQL_NODES_MAX,
    },
    message::ErrorCode,
};

const ONE_TABLE: &str = "one table: joins run on the gateway";
const NO_SUBQUERY: &str = "one table: subqueries run on the gateway";
const CLAUSES: [&str; 6] = ["WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET"];

/// Reads a whole query.
pub(super) fn parse_into(text: &str, select: &mut Select) -> Result<(), Fault> {
    clear(select);
    if text.len() > COMMAND_BYTES_MAX {
        let hint = Hint::Bound("COMMAND_BYTES_MAX", COMMAND_BYTES_MAX, "bytes of a query");
        return Err(Fault { code: ErrorCode::TooLong, position: COMMAND_BYTES_MAX, hint });
    }
    let mut parser = Parser {
        text,
        next: lexer::token(text, 0)?,
        taken_end: 0,
        select,
        depths: [0; SQL_NODES_MAX],
        pending: heapless::Vec::new(),
        nesting: 0,
        place: Place::Item,
    };
    parser.select()
}

/// Empties it where it is: another one beside it would take as much stack again.
fn clear(select: &mut Select) {
    let Tree { nodes, positions, list_items } = &mut select.tree;
    nodes.clear();
    positions.clear();
    list_items.clear();
    select.items.clear();
    select.group_by.clear();
    select.order_by.clear();
    select.from = Span::default();
    (select.distinct, select.filter, select.having) = (false, None, None);
    (select.limit, select.offset) = (None, 0);
}

/// Where an expression stands: not every function fits everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Item,
    Where,
    GroupBy,
    Having,
    OrderBy,
    /// Inside an aggregate.
    Aggregate,
}

/// A query that is read token by token.
struct Parser<'t, 's> {
    text: &'t str,
    /// The token that is looked at.
    next: Token,
    /// The end of the token before it.
    taken_end: usize,
    select: &'s mut Select,
    /// How deep the tree under each node is.
    depths: [u8; SQL_NODES_MAX],
    /// The members of lists that are still open: the innermost list's are the last.
    pending: heapless::Vec<NodeId, SQL_LIST_ITEMS_MAX>,
    /// How often the parser is inside itself.
    nesting: usize,
    place: Place,
}

impl<'t> Parser<'t, '_> {
    fn select(&mut self) -> Result<(), Fault> {
        self.first_word()?;
        self.select.distinct = self.takes_keyword(Keyword::Distinct)?;
        self.items()?;
        self.from()?;
        if self.takes_keyword(Keyword::Where)? {
            self.place = Place::Where;
            self.select.filter = Some(self.expression()?);
        }
        if self.takes_keyword(Keyword::Group)? {
            self.keyword(Keyword::By, "BY")?;
            self.group_by()?;
        }
        if self.takes_keyword(Keyword::Having)? {
            self.place = Place::Having;
            self.select.having = Some(self.expression()?);
        }
        if self.takes_keyword(Keyword::Order)? {
            self.keyword(Keyword::By, "BY")?;
            self.order_by()?;
        }
        if self.takes_keyword(Keyword::Limit)? {
            self.select.limit = Some(self.row_count()?);
            if self.next.kind == Kind::Sign(Sign::Comma) {
                return Err(self.fault("expected `LIMIT n OFFSET m`"));
            }
        }
        if self.takes_keyword(Keyword::Offset)? {
            self.select.offset = self.row_count()?;
        }
        self.end()
    }

    fn first_word(&mut self) -> Result<(), Fault> {
        if self.takes_keyword(Keyword::Select)? {
            return Ok(());
        }
        let word = self.next_text();
        if word.eq_ignore_ascii_case("WITH") {
            return Err(self.fault("expected `SELECT`: WITH runs on the gateway"));
        }
        Err(Fault::word(self.next.start, word, &["SELECT"], "only SELECT can be asked"))
    }

    fn items(&mut self) -> Result<(), Fault> {
        loop {
            let start = self.next.start;
            let item = if self.takes(Sign::Star)? {
                Item { node: None, name: None, source: self.span_from(start) }
            } else {
                self.place = Place::Item;
                let node = Some(self.expression()?);
                let source = self.span_from(start);
                Item { node, name: self.item_name()?, source }
            };
            if self.select.items.push(item).is_err() {
                return Err(Fault::capacity(start, "SELECT_ITEMS_MAX", SELECT_ITEMS_MAX, "items"));
            }
            if !self.takes(Sign::Comma)? {
                return Ok(());
            }
        }
    }

    /// `[[AS] name]`
    fn item_name(&mut self) -> Result<Option<Span>, Fault> {
        if self.takes_keyword(Keyword::As)? {
            return self.name("expected a name").map(Some);
        }
        match self.next.kind {
            Kind::Word | Kind::QuotedName => self.name("expected a name").map(Some),
            _ => Ok(None),
        }
    }

    fn from(&mut self) -> Result<(), Fault> {
        if !self.takes_keyword(Keyword::From)? {
            // A misspelt FROM was taken for the last item's name.
            let name = self.select.items.last().and_then(|item| item.name).unwrap_or_default();
            let near = nearest(name.of(self.text), &["FROM"]).filter(|_| self.next.kind == Kind::Word);
            let position = near.map_or(self.next.start, |_| name.start.into());
            let hint = near.map_or(Hint::Plain("expected an operator, `,` or `FROM`"), Hint::Meant);
            return Err(Fault { code: ErrorCode::Syntax, position, hint });
        }
        if self.next.kind == Kind::Sign(Sign::Open) {
            return Err(self.fault(NO_SUBQUERY));
        }
        self.select.from = self.name("expected the name of a table")?;
        match self.next.kind {
            Kind::Sign(Sign::Comma) => Err(self.fault(ONE_TABLE)),
            Kind::Sign(Sign::Dot) => {
                Err(self.fault("expected the table's name only; its database is known already"))
            }
            Kind::Keyword(Keyword::As) | Kind::QuotedName => Err(self.fault("a table has no second name")),
            _ => Ok(()),
        }
    }

    fn group_by(&mut self) -> Result<(), Fault> {
        self.place = Place::GroupBy;
        loop {
            let start = self.next.start;
            let key = self.expression()?;
            if self.select.group_by.push(key).is_err() {
                return Err(Fault::capacity(start, "GROUP_KEYS_MAX", GROUP_KEYS_MAX, "keys of GROUP BY"));
            }
            if !self.takes(Sign::Comma)? {
                return Ok(());
            }
        }
    }

    fn order_by(&mut self) -> Result<(), Fault> {
        self.place = Place::OrderBy;
        loop {
            let start = self.next.start;
            let node = self.expression()?;
            let descending = self.takes_keyword(Keyword::Desc)?;
            if !descending {
                self.takes_keyword(Keyword::Asc)?;
            }
            if self.select.order_by.push(SortKey { node, descending }).is_err() {
                return Err(Fault::capacity(start, "SORT_KEYS_MAX", SORT_KEYS_MAX, "keys of ORDER BY"));
            }
            if !self.takes(Sign::Comma)? {
                return Ok(());
            }
        }
    }

    /// The number after LIMIT or OFFSET.
    fn row_count(&mut self) -> Result<u64, Fault> {
        if self.next.kind != Kind::Integer {
            return Err(self.fault("expected a number of rows, 0 or more"));
        }
        let count = self.next_text().parse();
        let count = count.map_err(|_| Fault::value(self.next.start, "expected a number of 64 bits"))?;
        self.take()?;
        Ok(count)
    }

    fn end(&mut self) -> Result<(), Fault> {
        if self.takes(Sign::Semicolon)? && self.next.kind != Kind::End {
            return Err(self.fault("one query: nothing follows its `;`"));
        }
        if self.next.kind == Kind::End {
            return Ok(());
        }
        const JOINS: [&str; 8] = ["join", "inner", "left", "right", "full", "outer", "cross", "natural"];
        const OTHERS: [&str; 4] = ["union", "intersect", "except", "window"];
        let is_one_of = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(self.next_text()));
        if is_one_of(&JOINS) {
            return Err(self.fault(ONE_TABLE));
        }
        if is_one_of(&OTHERS) {
            return Err(self.fault("one SELECT: sets and windows run on the gateway"));
        }
        Err(self.unexpected(&CLAUSES, "expected an operator, the next clause or the end"))
    }

    // ---- Tokens ----

    /// Takes the token that is looked at.
    fn take(&mut self) -> Result<Token, Fault> {
        let taken = self.next;
        self.taken_end = taken.end;
        self.next = lexer::token(self.text, taken.end)?;
        Ok(taken)
    }

    /// Takes this sign if it is the next token.
    fn takes(&mut self, sign: Sign) -> Result<bool, Fault> {
        let is_next = self.next.kind == Kind::Sign(sign);
        if is_next {
            self.take()?;
        }
        Ok(is_next)
    }

    /// Takes this keyword if it is the next token.
    fn takes_keyword(&mut self, keyword: Keyword) -> Result<bool, Fault> {
        let is_next = self.next.kind == Kind::Keyword(keyword);
        if is_next {
            self.take()?;
        }
        Ok(is_next)
    }

    fn sign(&mut self, sign: Sign, written: &'static str) -> Result<(), Fault> {
        if self.takes(sign)? { Ok(()) } else { Err(Fault::missing(self.next.start, written)) }
    }

    fn keyword(&mut self, keyword: Keyword, written: &'static str) -> Result<(), Fault> {
        if self.takes_keyword(keyword)? { Ok(()) } else { Err(Fault::missing(self.next.start, written)) }
    }

    fn name(&mut self, expected: &'static str) -> Result<Span, Fault> {
        match self.next.kind {
            Kind::Word | Kind::QuotedName => Ok(self.take()?.span()),
            Kind::Keyword(_) => Err(self.fault("a keyword is a name only in double quotes")),
            _ => Err(self.fault(expected)),
        }
    }

    /// The token that is looked at, as it is written.
    fn next_text(&self) -> &'t str {
        &self.text[self.next.start..self.next.end]
    }

    /// From `start` to the end of the token that was taken last.
    fn span_from(&self, start: usize) -> Span {
        Span { start: start as u16, len: self.taken_end.saturating_sub(start) as u16 }
    }

    /// A fault at the token that is looked at.
    fn fault(&self, hint: &'static str) -> Fault {
        Fault::syntax(self.next.start, hint)
    }

    /// The token that is looked at is none of `words`; names the nearest if one is near.
    fn unexpected(&self, words: &[&'static str], otherwise: &'static str) -> Fault {
        let word = if self.next.kind == Kind::Word { self.next_text() } else { "" };
        Fault::word(self.next.start, word, words, otherwise)
    }

    // ---- Nodes ----

    /// Adds a node over `children`.
    fn node(&mut self, node: Node, position: usize, children: &[NodeId]) -> Result<NodeId, Fault> {
        let depth = children.iter().map(|child| self.depth(*child)).max().unwrap_or(0) + 1;
        if depth > EXPRESSION_DEPTH_MAX {
            return Err(deep(position));
        }
        let Tree { nodes, positions, .. } = &mut self.select.tree;
        let id = nodes.len();
        if nodes.push(node).is_err() || positions.push(position as u16).is_err() {
            return Err(Fault::capacity(position, "SQL_NODES_MAX", SQL_NODES_MAX, "nodes"));
        }
        self.depths[id] = depth as u8;
        Ok(id as NodeId)
    }

    fn depth(&self, id: NodeId) -> usize {
        self.depths.get(usize::from(id)).copied().unwrap_or(0).into()
    }

    /// Adds a member to the innermost open list.
    fn list_member(&mut self, id: NodeId, position: usize) -> Result<(), Fault> {
        let is_full = self.select.tree.list_items.len() + self.pending.len() >= SQL_LIST_ITEMS_MAX;
        if is_full || self.pending.push(id).is_err() {
            let counted = "members of lists";
            return Err(Fault::capacity(position, "SQL_LIST_ITEMS_MAX", SQL_LIST_ITEMS_MAX, counted));
        }
        Ok(())
    }

    /// Closes the list whose first member is the pending one with this number.
    fn close_list(&mut self, first: usize) -> List {
        let list_items = &mut self.select.tree.list_items;
        let (start, members) = (list_items.len(), self.pending.get(first..).unwrap_or_default());
        // There is room: a member is not pending if it has none here.
        let _ = list_items.extend_from_slice(members);
        let list = List { start: start as u8, len: members.len() as u8 };
        self.pending.truncate(first);
        list
    }

    /// How deep the tree under a node with this list is at most.
    fn deepest(&self, list: List) -> NodeId {
        let members = self.select.tree.list(list);
        members.iter().copied().max_by_key(|member| self.depth(*member)).unwrap_or(NodeId::MAX)
    }
}

fn deep(position: usize) -> Fault {
    Fault::capacity(position, "EXPRESSION_DEPTH_MAX", EXPRESSION_DEPTH_MAX, "levels")
}
