//! Reads the section and symbol tables of a 32-bit little-endian ELF file. Safe on any bytes; resolves nothing.
//!
//! ```text
//! header          0: 7F 45 4C 46 · 4: class 1 · 5: order 1 · 32: table offset u32
//! (52 bytes)      46: bytes of an entry u16 · 48: entries u16 · 50: entry of the names u16
//! section         0: name · 4: kind · 8: flags · 12: address · 16: offset · 20: bytes · 24: link    (u32 each)
//! (40 bytes)
//! symbol          0: name u32 · 4: address u32 · 8: bytes u32 · 12: info u8 · 13: other u8 · 14: section u16
//! (16 bytes)
//! ```

use anyhow::{Context, Result, ensure};

/// A section's flag: it is in memory when the program runs.
pub(crate) const FLAG_ALLOCATED: u32 = 2;
/// A section's kind: it has no bytes in the file, only in memory.
pub(crate) const KIND_NOBITS: u32 = 8;

const KIND_SYMBOLS: u32 = 2;
const SECTION_BYTES: usize = 40;
const SYMBOL_BYTES: usize = 16;

/// The tables of an ELF file.
#[derive(Debug)]
pub(crate) struct Elf {
    pub(crate) sections: Vec<Section>,
    pub(crate) symbols: Vec<Symbol>,
}

/// An entry of the section table.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) address: u32,
    pub(crate) bytes: u32,
    name_offset: u32,
    offset: u32,
    link: u32,
}

/// An entry of the symbol table.
#[derive(Debug)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    pub(crate) address: u32,
    pub(crate) bytes: u32,
    /// Index into the sections; out of range for absolute and undefined symbols.
    pub(crate) section: usize,
}

/// Reads both tables; every offset in the file is checked against the file's length.
pub(crate) fn parse(file: &[u8]) -> Result<Elf> {
    ensure!(file.starts_with(b"\x7FELF\x01\x01"), "not a 32-bit little-endian ELF file");
    let sections = sections(file).context("section table")?;
    let mut symbols = Vec::new();
    for table in sections.iter().filter(|section| section.kind == KIND_SYMBOLS) {
        let names = sections.get(table.link as usize).context("no section has the symbols' names")?;
        let names = slice(file, names.offset, names.bytes as usize)?;
        for entry in slice(file, table.offset, table.bytes as usize)?.chunks_exact(SYMBOL_BYTES) {
            symbols.push(symbol(entry, names).context("symbol table")?);
        }
    }
    Ok(Elf { sections, symbols })
}

fn sections(file: &[u8]) -> Result<Vec<Section>> {
    let offset = u32_at(file, 32)?;
    let entry_bytes = usize::from(u16_at(file, 46)?);
    let entries = usize::from(u16_at(file, 48)?);
    let names_entry = usize::from(u16_at(file, 50)?);
    ensure!(entry_bytes >= SECTION_BYTES, "an entry has {entry_bytes} bytes, fewer than {SECTION_BYTES}");
    let table = slice(file, offset, entries * entry_bytes)?;
    let mut sections = table.chunks_exact(entry_bytes).map(section).collect::<Result<Vec<_>>>()?;
    let names = sections.get(names_entry).context("no section has the sections' names")?;
    let names = slice(file, names.offset, names.bytes as usize)?;
    for section in &mut sections {
        section.name = text_at(names, section.name_offset)?;
    }
    Ok(sections)
}

fn section(entry: &[u8]) -> Result<Section> {
    Ok(Section {
        name: String::new(),
        name_offset: u32_at(entry, 0)?,
        kind: u32_at(entry, 4)?,
        flags: u32_at(entry, 8)?,
        address: u32_at(entry, 12)?,
        offset: u32_at(entry, 16)?,
        bytes: u32_at(entry, 20)?,
        link: u32_at(entry, 24)?,
    })
}

fn symbol(entry: &[u8], names: &[u8]) -> Result<Symbol> {
    Ok(Symbol {
        name: text_at(names, u32_at(entry, 0)?)?,
        address: u32_at(entry, 4)?,
        bytes: u32_at(entry, 8)?,
        section: usize::from(u16_at(entry, 14)?),
    })
}

fn slice(bytes: &[u8], offset: u32, length: usize) -> Result<&[u8]> {
    let rest = bytes.get(offset as usize..);
    let part = rest.and_then(|rest| rest.get(..length));
    part.with_context(|| format!("{length} bytes at {offset} lie outside {} bytes", bytes.len()))
}

fn u16_at(bytes: &[u8], offset: u32) -> Result<u16> {
    Ok(u16::from_le_bytes(slice(bytes, offset, 2)?.try_into()?))
}

fn u32_at(bytes: &[u8], offset: u32) -> Result<u32> {
    Ok(u32::from_le_bytes(slice(bytes, offset, 4)?.try_into()?))
}

/// The text at an offset, up to a zero byte.
fn text_at(names: &[u8], offset: u32) -> Result<String> {
    let rest =
        names.get(offset as usize..).with_context(|| format!("a name at {offset} lies outside its table"))?;
    let text = rest.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// Makes ELF files for tests.
#[cfg(test)]
pub(crate) mod made_up {
    use super::{KIND_SYMBOLS, SYMBOL_BYTES};

    /// Name, kind, flags, address, bytes.
    pub(crate) type Section = (&'static str, u32, u32, u32, u32);
    /// Name, address, bytes, index of its section among those given.
    pub(crate) type Symbol = (&'static str, u32, u32, u16);

    /// An ELF file with an empty first section, those given, the symbols and one table of names.
    pub(crate) fn elf(sections: &[Section], symbols: &[Symbol]) -> Vec<u8> {
        let mut names = vec![0];
        let mut name = |text: &str| {
            let offset = names.len() as u32;
            names.extend(text.bytes().chain([0]));
            offset
        };
        let mut table = vec![[0; 10]];
        for &(text, kind, flags, address, bytes) in sections {
            table.push([name(text), kind, flags, address, 0, bytes, 0, 0, 0, 0]);
        }
        let mut entries = Vec::new();
        for &(text, address, bytes, section) in symbols {
            entries.extend([name(text), address, bytes].into_iter().flat_map(u32::to_le_bytes));
            entries.extend([0, 0]);
            entries.extend((section + 1).to_le_bytes());
        }
        let symbols_name = name(".symtab");
        let names_name = name(".strtab");
        let names_entry = table.len() as u32 + 1;
        let entries_offset = 52 + (table.len() as u32 + 2) * 40;
        let names_offset = entries_offset + entries.len() as u32;
        assert_eq!(entries.len(), symbols.len() * SYMBOL_BYTES);
        table.push([
            symbols_name,
            KIND_SYMBOLS,
            0,
            0,
            entries_offset,
            entries.len() as u32,
            names_entry,
            0,
            0,
            0,
        ]);
        table.push([names_name, 3, 0, 0, names_offset, names.len() as u32, 0, 0, 0, 0]);

        let mut file = b"\x7FELF\x01\x01\x01".to_vec();
        file.resize(52, 0);
        file[32..36].copy_from_slice(&52u32.to_le_bytes());
        file[46..48].copy_from_slice(&40u16.to_le_bytes());
        file[48..50].copy_from_slice(&(table.len() as u16).to_le_bytes());
        file[50..52].copy_from_slice(&(names_entry as u16).to_le_bytes());
        file.extend(table.into_iter().flatten().flat_map(u32::to_le_bytes));
        file.extend(entries);
        file.extend(names);
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        made_up::elf(
            &[
                (".text", 1, FLAG_ALLOCATED, 0x40, 100),
                (".bss", KIND_NOBITS, FLAG_ALLOCATED, 0x2000_0000, 0x8000_0000),
            ],
            &[("main", 0x41, 60, 0), ("STORE", 0x2000_0000, 4096, 1)],
        )
    }

    #[test]
    fn sections_and_symbols_are_read() {
        let elf = parse(&sample()).unwrap();
        let names: Vec<_> = elf.sections.iter().map(|section| section.name.as_str()).collect();
        assert_eq!(names, ["", ".text", ".bss", ".symtab", ".strtab"]);
        assert_eq!((elf.sections[1].address, elf.sections[1].bytes), (0x40, 100));
        assert_eq!(elf.sections[2].kind, KIND_NOBITS);
        assert_eq!(
            (elf.symbols[1].name.as_str(), elf.symbols[1].bytes, elf.symbols[1].section),
            ("STORE", 4096, 2)
        );
    }

    #[test]
    fn a_file_cut_anywhere_is_an_error_and_no_panic() {
        let file = sample();
        for length in 0..file.len() {
            assert!(parse(&file[..length]).is_err(), "cut at {length}");
        }
    }

    #[test]
    fn any_single_broken_byte_is_read_without_panic() {
        let file = sample();
        for position in 0..file.len() {
            for byte in [0, 1, 0x7F, 0x80, 0xFF] {
                let mut broken = file.clone();
                broken[position] = byte;
                let _ = parse(&broken);
            }
        }
    }
}
