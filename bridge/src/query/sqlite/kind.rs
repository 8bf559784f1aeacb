//! What an expression is known to give, before any row is read: so that a moment is shown as one.

use shared::value::ColumnType;

/// What an expression gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing but NULL.
    Null,
    /// Values of a column's type, or NULL.
    Of(ColumnType),
    /// That shows with each value.
    Unknown,
}

pub(super) const BOOL: Kind = Kind::Of(ColumnType::Bool);
pub(super) const INT: Kind = Kind::Of(ColumnType::Int);
pub(super) const FLOAT: Kind = Kind::Of(ColumnType::Float64);
pub(super) const MOMENT: Kind = Kind::Of(ColumnType::Timestamp);
pub(super) const TEXT: Kind = Kind::Of(ColumnType::Text);

impl Kind {
    /// Either of the two.
    pub(super) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Kind::Null, other) | (other, Kind::Null) => other,
            (one, other) if one == other => one,
            _ => Kind::Unknown,
        }
    }

    /// What `+ - * / %` give.
    pub(super) fn computed(self, other: Self) -> Self {
        let is_float = |kind| matches!(kind, Kind::Of(ColumnType::Float32 | ColumnType::Float64));
        let is_whole = |kind| matches!(kind, Kind::Of(ColumnType::Int | ColumnType::Bool));
        match (self, other) {
            (one, other) if is_float(one) && (is_float(other) || is_whole(other)) => FLOAT,
            (one, other) if is_whole(one) && is_float(other) => FLOAT,
            (one, other) if is_whole(one) && is_whole(other) => INT,
            _ => Kind::Unknown,
        }
    }

    /// What a sum, a sign or `abs` makes of it: a float of 32 bits is computed with 64.
    pub(super) fn widened(self) -> Self {
        match self {
            Kind::Of(ColumnType::Float32 | ColumnType::Float64) => FLOAT,
            Kind::Of(ColumnType::Int | ColumnType::Bool) => INT,
            Kind::Null => Kind::Null,
            _ => Kind::Unknown,
        }
    }

    pub(super) fn column_type(self) -> Option<ColumnType> {
        match self {
            Kind::Of(kind) => Some(kind),
            Kind::Null | Kind::Unknown => None,
        }
    }
}

/// A column of a relation or of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KindedColumn {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// `*` leaves it out.
    pub(super) is_hidden: bool,
}

/// What stands in a FROM.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    pub(super) called: String,
    pub(super) columns: Vec<KindedColumn>,
    /// The table that it is, by its place among the statement's.
    pub(super) table: Option<usize>,
}

impl Relation {
    pub(super) fn column(&self, name: &str) -> Option<&KindedColumn> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }
}

/// The relations that an expression can name, nearest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'s> {
    pub(super) relations: &'s [Relation],
    pub(super) outer: Option<&'s Scope<'s>>,
}

impl<'s> Scope<'s> {
    /// The relations that this can be a column of; those of the nearest scope that has some.
    pub(super) fn owners(&self, qualifier: Option<&str>, name: &str) -> Vec<&'s Relation> {
        let is_meant = |relation: &&Relation| {
            qualifier.is_none_or(|qualifier| relation.called.eq_ignore_ascii_case(qualifier))
                && relation.column(name).is_some()
        };
        let owners: Vec<&Relation> = self.relations.iter().filter(is_meant).collect();
        match self.outer {
            Some(outer) if owners.is_empty() => outer.owners(qualifier, name),
            _ => owners,
        }
    }

    /// What a column holds, where all that it can be hold the same.
    pub(super) fn kind(&self, qualifier: Option<&str>, name: &str) -> Kind {
        let owners = self.owners(qualifier, name);
        let kinds = owners.iter().filter_map(|relation| relation.column(name)).map(|column| column.kind);
        kinds.reduce(Kind::or).unwrap_or(Kind::Unknown)
    }
}
