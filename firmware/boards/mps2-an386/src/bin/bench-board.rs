//! An image that measures the board's work in ticks of a timer, prints a line for each figure, and ends QEMU. With
//! `-icount` a tick is so many instructions; the first line says how many.

#![no_std]
#![no_main]

#[path = "../mmio.rs"]
mod mmio;
#[path = "../pages.rs"]
mod pages;

use core::arch::asm;
use core::panic::PanicInfo;

use cortex_m as _; // its critical section
use cortex_m_rt::entry;
use defmt_semihosting as _;
use firmware::Facts;
use firmware::bench::{self, Histogram};
use firmware::board::{QueryMemory, ResetReason, StackUse, query_memory};
use firmware::samplers::{self, Samplers};
use semihosting::{eprintln, println, process};
use static_cell::{ConstStaticCell, StaticCell};

use mmio::Register;

/// Turns of the loop that says what a tick is.
const LOOP_TURNS: u32 = 1_000_000;
const LOOP_INSTRUCTIONS: u32 = 2 * LOOP_TURNS;

// SAFETY: registers of the CMSDK timer TIMER0, which has no DMA.
const TIMER_CTRL: Register = unsafe { Register::at(0x4000_0000) };
// SAFETY: as above.
const TIMER_VALUE: Register = unsafe { Register::at(0x4000_0004) };
// SAFETY: as above.
const TIMER_RELOAD: Register = unsafe { Register::at(0x4000_0008) };

static QUERIES: ConstStaticCell<QueryMemory> = ConstStaticCell::new(query_memory());
static SAMPLERS: StaticCell<Samplers> = StaticCell::new();
static HISTOGRAM: ConstStaticCell<Histogram> = ConstStaticCell::new(Histogram::new());

/// No line has a handler: none is enabled.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [usize; 1] = [0];

#[entry]
fn main() -> ! {
    TIMER_RELOAD.write(u32::MAX);
    TIMER_VALUE.write(u32::MAX);
    TIMER_CTRL.write(1);
    let start = ticks();
    turn(LOOP_TURNS);
    println!("tick: {} / {}", LOOP_INSTRUCTIONS, ticks().wrapping_sub(start));

    let facts = Facts {
        kind: "mps2-an386",
        id: [0; 6].into_iter().collect(),
        epoch: 1,
        boot_count: 0,
        panic_count: 0,
        reset_reason: ResetReason::Unknown,
        stack: StackUse::default,
    };
    let samplers = SAMPLERS.init(Samplers::new(bench::SEED));
    match samplers::board(facts, pages::take(), QUERIES.take(), samplers, 0) {
        Ok(mut board) => {
            bench::run(&mut board, ticks, HISTOGRAM.take(), &mut |line| println!("{line}"));
            process::exit(0)
        }
        Err(_) => panic!("the tables have no room"),
    }
}

/// Counts up; wraps.
fn ticks() -> u32 {
    !TIMER_VALUE.read()
}

/// Two instructions a turn.
fn turn(turns: u32) {
    // SAFETY: counts a register down.
    unsafe {
        asm!("1: subs {turns}, {turns}, #1", "bne 1b", turns = inout(reg) turns => _, options(nomem, nostack));
    }
}

#[panic_handler]
fn on_panic(info: &PanicInfo<'_>) -> ! {
    eprintln!("{info}");
    process::exit(101)
}
