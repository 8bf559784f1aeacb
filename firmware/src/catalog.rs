//! Which tables the board has: those it was built with, and those created while it runs. Holds no rows.

use shared::{
    limits::{
        CREATED_TABLES_MAX, CREATED_UNITS_MAX, NAME_BYTES_MAX, TABLE_COLUMNS_MAX, TABLES_MAX, UNIT_BYTES_MAX,
    },
    page,
    rowcode::row_bits_max,
    schema::{self, Column, TIME_COLUMN, TableSpec},
    value::ColumnType,
};

/// Names a table of this board; stays the same until the board restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(u8);

impl TableId {
    pub(crate) fn index(self) -> usize {
        self.0.into()
    }
}

/// Why a table could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableError {
    /// There is one of this name.
    Exists,
    /// More is needed than this bound, which is called so in `shared::limits` or is the board's memory.
    Capacity(&'static str, usize),
    /// A name is not `[A-Za-z_][A-Za-z0-9_]*` or too long.
    Name,
    /// Two columns have one name, or `timestamp` is not the first or not a timestamp.
    Columns,
}

/// The tables of a board.
#[derive(Debug, Default)]
pub struct Catalog {
    tables: heapless::Vec<Definition, TABLES_MAX>,
    created: heapless::Vec<Created, CREATED_TABLES_MAX>,
    /// Those of the created tables' columns, each once: a board measures few things, in many columns.
    units: heapless::Vec<Unit, CREATED_UNITS_MAX>,
}

#[derive(Clone, Copy, Debug)]
enum Definition {
    Built(&'static TableSpec),
    /// With its place among those that were created.
    Created(u8),
}

type Name = heapless::String<NAME_BYTES_MAX, u8>;
type Unit = heapless::String<UNIT_BYTES_MAX, u8>;

#[derive(Debug)]
struct Created {
    dbms: Name,
    name: Name,
    /// Without the first, which is [`TIME_COLUMN`].
    columns: heapless::Vec<CreatedColumn, { TABLE_COLUMNS_MAX - 1 }, u8>,
}

#[derive(Debug)]
struct CreatedColumn {
    name: Name,
    kind: ColumnType,
    /// Its place among the units.
    unit: Option<u8>,
}

impl Catalog {
    /// Every table.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, Table<'_>)> {
        (0_u8..).zip(&self.tables).map(|(index, definition)| (TableId(index), self.table_of(*definition)))
    }

    /// One table.
    pub fn table(&self, id: TableId) -> Option<Table<'_>> {
        self.tables.get(id.index()).map(|definition| self.table_of(*definition))
    }

    /// The table of this name.
    pub fn find(&self, dbms: &str, name: &str) -> Option<TableId> {
        let is_it = |table: &Table<'_>| table.dbms() == dbms && table.name() == name;
        self.tables().find(|(_, table)| is_it(table)).map(|(id, _)| id)
    }

    /// Changes when a table or a column does.
    pub fn hash(&self) -> u64 {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        self.tables().fold(0xCBF2_9CE4_8422_2325, |hash, (_, table)| {
            let names = table.dbms().bytes().chain([0]).chain(table.name().bytes()).chain([0]);
            names.chain(table.schema_hash().to_le_bytes()).fold(hash, mix)
        })
    }

    /// Adds a table that the board was built with.
    pub(crate) fn add(&mut self, spec: &'static TableSpec) -> Result<TableId, TableError> {
        if spec.columns.first().is_none_or(|first| first.column() != TIME_COLUMN.column()) {
            return Err(TableError::Columns);
        }
        self.check(spec.dbms, spec.name, spec.columns[1..].iter().map(|column| (column.name, column.kind)))?;
        self.push(Definition::Built(spec))
    }

    /// Whether [`create`](Self::create) would make this table.
    pub(crate) fn can_create(
        &self,
        dbms: &str,
        name: &str,
        columns: &[Column<'_>],
    ) -> Result<(), TableError> {
        self.check(dbms, name, columns.iter().map(|column| (column.name, column.kind)))?;
        if columns.iter().any(|column| column.unit.len() > UNIT_BYTES_MAX) {
            return Err(UNIT_BOUND);
        }
        let is_new = |column: &Column<'_>, before: &[Column<'_>]| {
            self.unit_place(column.unit).is_none() && before.iter().all(|other| other.unit != column.unit)
        };
        let with_unit = columns.iter().enumerate().filter(|(_, column)| !column.unit.is_empty());
        let units_new = with_unit.filter(|(index, column)| is_new(column, &columns[..*index])).count();
        if self.units.len() + units_new > CREATED_UNITS_MAX {
            return Err(UNITS_BOUND);
        }
        if self.created.is_full() {
            return Err(TableError::Capacity("CREATED_TABLES_MAX", CREATED_TABLES_MAX));
        }
        Ok(())
    }

    /// Adds a table of these columns behind the time.
    pub(crate) fn create(
        &mut self,
        dbms: &str,
        name: &str,
        columns: &[Column<'_>],
    ) -> Result<TableId, TableError> {
        self.can_create(dbms, name, columns)?;
        let copy = |text: &str| Name::try_from(text).map_err(|_| TableError::Name);
        let mut created = Created { dbms: copy(dbms)?, name: copy(name)?, columns: heapless::Vec::new() };
        for Column { name, kind, unit } in columns {
            let column = CreatedColumn { name: copy(name)?, kind: *kind, unit: self.keep_unit(unit)? };
            created.columns.push(column).map_err(|_| COLUMNS_BOUND)?;
        }
        let id = self.push(Definition::Created(self.created.len() as u8))?;
        self.created
            .push(created)
            .map_err(|_| TableError::Capacity("CREATED_TABLES_MAX", CREATED_TABLES_MAX))?;
        Ok(id)
    }

    fn unit_place(&self, unit: &str) -> Option<u8> {
        (0..).zip(&self.units).find(|(_, kept)| *kept == unit).map(|(place, _)| place)
    }

    /// The place of a unit, which it has from now on.
    fn keep_unit(&mut self, unit: &str) -> Result<Option<u8>, TableError> {
        if unit.is_empty() {
            return Ok(None);
        }
        if let Some(place) = self.unit_place(unit) {
            return Ok(Some(place));
        }
        let place = self.units.len() as u8;
        self.units.push(Unit::try_from(unit).map_err(|_| UNIT_BOUND)?).map_err(|_| UNITS_BOUND)?;
        Ok(Some(place))
    }

    fn push(&mut self, definition: Definition) -> Result<TableId, TableError> {
        let id = TableId(self.tables.len() as u8);
        self.tables.push(definition).map_err(|_| TABLES_BOUND)?;
        Ok(id)
    }

    /// What holds of every table: names are names, no column has another's, and a page has room for its longest row.
    fn check<'c>(
        &self,
        dbms: &str,
        name: &str,
        columns: impl Iterator<Item = (&'c str, ColumnType)> + Clone,
    ) -> Result<(), TableError> {
        let mut names = columns.clone().map(|(name, _)| name);
        if !schema::is_name(dbms) || !schema::is_name(name) || !names.all(schema::is_name) {
            return Err(TableError::Name);
        }
        if self.find(dbms, name).is_some() {
            return Err(TableError::Exists);
        }
        if self.tables.is_full() {
            return Err(TABLES_BOUND);
        }
        if columns.clone().count() + 1 > TABLE_COLUMNS_MAX {
            return Err(COLUMNS_BOUND);
        }
        let times = |name: &str| columns.clone().filter(|(other, _)| *other == name).count();
        let is_twice = columns.clone().any(|(name, _)| name == TIME_COLUMN.name || times(name) > 1);
        if is_twice {
            return Err(TableError::Columns);
        }
        let kinds = columns.map(|(_, kind)| kind).chain([TIME_COLUMN.kind]);
        if row_bits_max(kinds) > page::PAYLOAD_BITS_MAX {
            return Err(TableError::Capacity("PAGE_BYTES", shared::limits::PAGE_BYTES));
        }
        Ok(())
    }

    fn table_of(&self, definition: Definition) -> Table<'_> {
        match definition {
            Definition::Built(spec) => Table(Columns::Built(spec)),
            Definition::Created(index) => {
                Table(Columns::Created(&self.created[usize::from(index)], &self.units))
            }
        }
    }
}

const TABLES_BOUND: TableError = TableError::Capacity("TABLES_MAX", TABLES_MAX);
const COLUMNS_BOUND: TableError = TableError::Capacity("TABLE_COLUMNS_MAX", TABLE_COLUMNS_MAX);
const UNIT_BOUND: TableError = TableError::Capacity("UNIT_BYTES_MAX", UNIT_BYTES_MAX);
const UNITS_BOUND: TableError = TableError::Capacity("CREATED_UNITS_MAX", CREATED_UNITS_MAX);

/// What a table is: its names and its columns.
#[derive(Clone, Copy, Debug)]
pub struct Table<'c>(Columns<'c>);

#[derive(Clone, Copy, Debug)]
enum Columns<'c> {
    Built(&'static TableSpec),
    /// With the catalogue's units.
    Created(&'c Created, &'c [Unit]),
}

impl<'c> Table<'c> {
    /// Its database.
    pub fn dbms(&self) -> &'c str {
        match self.0 {
            Columns::Built(spec) => spec.dbms,
            Columns::Created(created, _) => &created.dbms,
        }
    }

    /// Its name there.
    pub fn name(&self) -> &'c str {
        match self.0 {
            Columns::Built(spec) => spec.name,
            Columns::Created(created, _) => &created.name,
        }
    }

    /// How many columns it has, the time among them.
    pub fn width(&self) -> usize {
        match self.0 {
            Columns::Built(spec) => spec.columns.len(),
            Columns::Created(created, _) => 1 + created.columns.len(),
        }
    }

    /// The column at this place; the first is the time.
    pub fn column(&self, index: usize) -> Option<Column<'c>> {
        match self.0 {
            Columns::Built(spec) => spec.columns.get(index).map(|column| column.column()),
            Columns::Created(..) if index == 0 => Some(TIME_COLUMN.column()),
            Columns::Created(created, units) => {
                let CreatedColumn { name, kind, unit } = created.columns.get(index - 1)?;
                let unit = unit.and_then(|place| units.get(usize::from(place)));
                Some(Column { name, kind: *kind, unit: unit.map_or("", |unit| unit.as_str()) })
            }
        }
    }

    /// What the column at this place is, in a few words; `""` where nobody said.
    pub fn description(&self, index: usize) -> &'static str {
        match self.0 {
            Columns::Built(spec) => spec.columns.get(index).map_or("", |column| column.description),
            Columns::Created(..) if index == 0 => TIME_COLUMN.description,
            Columns::Created(..) => "",
        }
    }

    /// Every column, the time first.
    pub fn columns(self) -> impl Iterator<Item = Column<'c>> {
        (0..self.width()).filter_map(move |index| self.column(index))
    }

    /// What the cells of a row hold.
    pub fn kinds(self) -> impl Iterator<Item = ColumnType> {
        self.columns().map(|column| column.kind)
    }

    /// Tells its columns apart from others; stands in its pages.
    pub fn schema_hash(self) -> u32 {
        schema::hash(self.columns().map(|column| (column.name, column.kind)))
    }
}
