//! Flash and RAM of the firmware image against their budgets, what takes the most, and that no heap is in it.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::elf::{self, Elf, FLAG_ALLOCATED, KIND_NOBITS, Section};
use crate::image;
use crate::symbol_name::readable;
use crate::workspace::{Workspace, step};

/// Code, constants and the start values of statics. The aim is 160 KiB; it is missed, above all by the language: engine
/// and row code take some 57 KB, commands and SQL 38 KB, core's exact parsing and printing of floats 30 KB.
const FLASH_BYTES_MAX: u64 = 288 * 1024;
/// Statics, without the stack and without what only holds rows.
const RAM_BYTES_MAX: u64 = 80 * 1024;

/// Cortex-M: memory below is code, memory from here on is data.
const RAM_ADDRESS_MIN: u32 = 0x2000_0000;
/// Sections of RAM whose size is a board's choice and no cost of the program: rows, and what survives a reset.
const UNCOUNTED_PREFIXES: [&str; 2] = [".uninit", ".pages"];

/// What a program with a heap allocates with: Rust's names, as they are or within mangled ones, and C's.
const ALLOCATORS_RUST: [&str; 3] = ["__rust_alloc", "__rg_alloc", "__rdl_alloc"];
const ALLOCATOR_C: &str = "malloc";

const LARGEST_SHOWN_MAX: usize = 10;
const NAME_CHARS_MAX: usize = 90;

/// What an image takes.
struct Sizes {
    flash: Part,
    ram: Part,
    /// RAM of the sections that no budget counts.
    uncounted_bytes: u64,
}

/// One memory's share.
struct Part {
    bytes: u64,
    /// Bytes and names, largest first.
    symbols: Vec<(u32, String)>,
}

/// Builds the image and checks it.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let elf = step("image of the QEMU board", || image::build(workspace, &[]))?;
    check_image(workspace, &elf)
}

/// What an image takes of flash.
pub(crate) fn flash_bytes(elf: &Path) -> Result<u64> {
    let file = std::fs::read(elf).with_context(|| format!("cannot read {}", elf.display()))?;
    let elf = elf::parse(&file).with_context(|| format!("cannot read {}", elf.display()))?;
    Ok(measure(&elf).flash.bytes)
}

/// Prints an image's sizes, writes them for the benches' readers, and fails when one is over its budget or when the
/// image has a heap.
pub(crate) fn check_image(workspace: &Workspace, elf: &Path) -> Result<()> {
    let file = std::fs::read(elf).with_context(|| format!("cannot read {}", elf.display()))?;
    let elf = elf::parse(&file).with_context(|| format!("cannot read {}", elf.display()))?;
    let sizes = measure(&elf);
    let budgets = [("flash", &sizes.flash, FLASH_BYTES_MAX), ("ram", &sizes.ram, RAM_BYTES_MAX)];
    for (name, part, bytes_max) in budgets {
        let percent = part.bytes * 100 / bytes_max;
        println!("{name}: {} of {bytes_max} bytes ({percent} %)", part.bytes);
        for (bytes, symbol) in part.symbols.iter().take(LARGEST_SHOWN_MAX) {
            println!("  {bytes:>7}  {}", shortened(symbol));
        }
    }
    println!("ram for rows and across resets, not counted: {} bytes", sizes.uncounted_bytes);

    let results = budgets.map(|(name, part, bytes_max)| {
        json!({"name": name, "value": part.bytes, "unit": "B", "aim": bytes_max, "ok": part.bytes <= bytes_max})
    });
    let folder = workspace.bench_results();
    let path = folder.join("size.json");
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&path, format!("{:#}\n", json!(results))))
        .with_context(|| format!("cannot write {}", path.display()))?;

    let allocators = allocators(&elf);
    ensure!(allocators.is_empty(), "the firmware has no heap, but the image links {}", allocators.join(", "));
    let over: Vec<String> =
        budgets.iter().filter_map(|(name, part, bytes_max)| overrun(name, part.bytes, *bytes_max)).collect();
    ensure!(over.is_empty(), "{} (xtask/src/size.rs holds the budgets)", over.join(", "));
    Ok(())
}

fn overrun(name: &str, bytes: u64, bytes_max: u64) -> Option<String> {
    let over = bytes.checked_sub(bytes_max).filter(|over| *over > 0)?;
    Some(format!("{name} is over its budget by {over} bytes"))
}

fn measure(elf: &Elf) -> Sizes {
    let sum = |counts: fn(&Section) -> bool| {
        elf.sections.iter().filter(|section| counts(section)).map(|section| u64::from(section.bytes)).sum()
    };
    let part = |counts| Part { bytes: sum(counts), symbols: largest(elf, counts) };
    Sizes { flash: part(is_in_flash), ram: part(is_counted_ram), uncounted_bytes: sum(is_uncounted_ram) }
}

/// Everything that the file brings: code, constants, and start values that are copied to RAM.
fn is_in_flash(section: &Section) -> bool {
    section.flags & FLAG_ALLOCATED != 0 && section.kind != KIND_NOBITS
}

fn is_counted_ram(section: &Section) -> bool {
    is_ram(section) && !is_uncounted(section)
}

fn is_uncounted_ram(section: &Section) -> bool {
    is_ram(section) && is_uncounted(section)
}

fn is_ram(section: &Section) -> bool {
    section.flags & FLAG_ALLOCATED != 0 && section.address >= RAM_ADDRESS_MIN
}

fn is_uncounted(section: &Section) -> bool {
    UNCOUNTED_PREFIXES.iter().any(|prefix| section.name.starts_with(prefix))
}

/// The symbols of the counted sections, largest first; a symbol with several names is taken once.
fn largest(elf: &Elf, counts: fn(&Section) -> bool) -> Vec<(u32, String)> {
    let mut places = HashSet::new();
    let mut symbols: Vec<_> = elf
        .symbols
        .iter()
        .filter(|symbol| symbol.bytes > 0 && elf.sections.get(symbol.section).is_some_and(counts))
        .filter(|symbol| places.insert((symbol.address, symbol.bytes)))
        .map(|symbol| (symbol.bytes, readable(&symbol.name)))
        .collect();
    symbols.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    symbols
}

/// The symbols with which memory would be allocated.
fn allocators(elf: &Elf) -> Vec<String> {
    let is_allocator =
        |name: &str| name == ALLOCATOR_C || ALLOCATORS_RUST.iter().any(|rust| name.contains(rust));
    elf.symbols.iter().map(|symbol| &symbol.name).filter(|name| is_allocator(name)).cloned().collect()
}

/// Keeps the end of a long name: the function matters more than its crate.
fn shortened(name: &str) -> String {
    let chars = name.chars().count();
    if chars <= NAME_CHARS_MAX {
        return name.to_owned();
    }
    let end: String = name.chars().skip(chars - NAME_CHARS_MAX + 1).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::made_up;

    const PROGBITS: u32 = 1;

    fn sizes() -> Sizes {
        let file = made_up::elf(
            &[
                (".vector_table", PROGBITS, FLAG_ALLOCATED, 0, 0x100),
                (".text", PROGBITS, FLAG_ALLOCATED, 0x100, 10_000),
                (".rodata", PROGBITS, FLAG_ALLOCATED, 0x4000, 500),
                (".data", PROGBITS, FLAG_ALLOCATED | 1, 0x2000_0000, 64),
                (".bss", KIND_NOBITS, FLAG_ALLOCATED | 1, 0x2000_0040, 2_000),
                (".uninit", KIND_NOBITS, FLAG_ALLOCATED | 1, 0x2000_1000, 300),
                (".pages.rows", KIND_NOBITS, FLAG_ALLOCATED | 1, 0x2000_2000, 40_000),
                (".debug_info", PROGBITS, 0, 0, 900_000),
                (".defmt", PROGBITS, 0, 0, 70),
            ],
            &[
                ("small", 0x101, 20, 1),
                ("_ZN5serve3run17h0123456789abcdefE", 0x201, 4_000, 1),
                ("alias_of_run", 0x201, 4_000, 1),
                ("STARTED", 0x2000_0000, 64, 3),
                ("STORE", 0x2000_0040, 1_900, 4),
                ("ROWS", 0x2000_2000, 40_000, 6),
                ("a_mark_without_size", 0x300, 0, 1),
            ],
        );
        measure(&elf::parse(&file).unwrap())
    }

    #[test]
    fn flash_is_what_the_file_brings_and_ram_what_statics_take() {
        let sizes = sizes();
        assert_eq!(sizes.flash.bytes, 0x100 + 10_000 + 500 + 64);
        assert_eq!(sizes.ram.bytes, 64 + 2_000);
        assert_eq!(sizes.uncounted_bytes, 300 + 40_000);
    }

    #[test]
    fn a_budget_may_be_filled_but_not_overrun() {
        assert_eq!(overrun("flash", FLASH_BYTES_MAX, FLASH_BYTES_MAX), None);
        let over = overrun("flash", FLASH_BYTES_MAX + 1, FLASH_BYTES_MAX);
        assert_eq!(over.as_deref(), Some("flash is over its budget by 1 bytes"));
    }

    #[test]
    fn the_largest_symbols_come_first_and_once() {
        let sizes = sizes();
        let named = |bytes: u32, name: &str| (bytes, name.to_owned());
        assert_eq!(
            sizes.flash.symbols,
            [named(4_000, "serve::run"), named(64, "STARTED"), named(20, "small")]
        );
        assert_eq!(sizes.ram.symbols, [named(1_900, "STORE"), named(64, "STARTED")]);
    }

    #[test]
    fn an_allocator_is_found_by_any_of_its_names() {
        let found = |name: &'static str| {
            let sections = [(".text", PROGBITS, FLAG_ALLOCATED, 0, 1_000)];
            let file = made_up::elf(&sections, &[("main", 0x101, 20, 0), (name, 0x201, 8, 0)]);
            allocators(&elf::parse(&file).unwrap())
        };
        let mangled = "_RNvCs7ldSeZOOJos_7___rustc12___rust_alloc";
        for name in ["malloc", "__rust_alloc", "__rust_alloc_zeroed", "__rg_alloc", "__rdl_alloc", mangled] {
            assert_eq!(found(name), [name]);
        }
        for name in ["FLAG_ALLOCATED", "_ZN5store5alloc17h0123456789abcdefE", "small_malloc_free", ""] {
            assert!(found(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn a_long_name_keeps_its_end() {
        let name = format!("{}::the_end", "x".repeat(200));
        assert_eq!(shortened(&name).chars().count(), NAME_CHARS_MAX);
        assert!(shortened(&name).ends_with("x::the_end"));
        assert_eq!(shortened("short"), "short");
    }
}
