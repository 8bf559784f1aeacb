//! Facts that survive a reset: how often the board has started and panicked, and why it started
//! last. They lie in RAM that the start-up code leaves alone, under a check word that RAM after
//! a power-on does not have.

use core::cell::UnsafeCell;
use core::fmt::{self, Write};
use core::mem::MaybeUninit;
use core::panic::PanicInfo;

use critical_section::CriticalSection;
use firmware::board::ResetReason;

const PANIC_TEXT_BYTES_MAX: usize = 64;

const MAGIC: u32 = 0x5049_434F;

const CAUSE_UNKNOWN: u32 = 0;
const CAUSE_PANIC: u32 = 1;

/// What is known about the starts since the power came on.
#[derive(Clone, Copy)]
pub(crate) struct BootFacts {
    /// This start included.
    pub(crate) boots: u32,
    pub(crate) panics: u32,
    pub(crate) reset_reason: ResetReason,
    pub(crate) last_panic: PanicText,
}

/// The beginning of a panic's message, with file and line; empty if there was none.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct PanicText {
    bytes: [u8; PANIC_TEXT_BYTES_MAX],
    len: u32,
}

/// Valid for every bit pattern, as it may be read from RAM that was never written.
#[derive(Clone, Copy)]
#[repr(C)]
struct Record {
    magic: u32,
    boots: u32,
    panics: u32,
    /// Of the reset to come.
    cause: u32,
    last_panic: PanicText,
    check: u32,
}

struct Retained(UnsafeCell<MaybeUninit<Record>>);

// SAFETY: accessed in critical sections only.
unsafe impl Sync for Retained {}

#[unsafe(link_section = ".uninit.retained")]
static RETAINED: Retained = Retained(UnsafeCell::new(MaybeUninit::uninit()));

/// Counts this start and tells what is known of the earlier ones. Call it once, early.
pub(crate) fn start() -> BootFacts {
    critical_section::with(|cs| {
        let before = load(cs);
        let mut record = before.unwrap_or(Record::EMPTY);
        record.boots = record.boots.saturating_add(1);
        record.cause = CAUSE_UNKNOWN;
        store(cs, record);
        BootFacts {
            boots: record.boots,
            panics: record.panics,
            reset_reason: match before.map(|record| record.cause) {
                None => ResetReason::PowerOn,
                Some(CAUSE_PANIC) => ResetReason::Panic,
                // A reset pin, a debugger, QEMU's `system_reset`, the console.
                Some(_) => ResetReason::Requested,
            },
            last_panic: record.last_panic,
        }
    })
}

/// Counts a panic and keeps the beginning of its message, which it returns.
pub(crate) fn record_panic(info: &PanicInfo) -> PanicText {
    critical_section::with(|cs| {
        let mut record = load(cs).unwrap_or(Record::EMPTY);
        record.panics = record.panics.saturating_add(1);
        record.cause = CAUSE_PANIC;
        record.last_panic = PanicText::new(info);
        store(cs, record);
        record.last_panic
    })
}

impl Record {
    const EMPTY: Self = Self {
        magic: MAGIC,
        boots: 0,
        panics: 0,
        cause: CAUSE_UNKNOWN,
        last_panic: PanicText::EMPTY,
        check: 0,
    };

    /// FNV-1a over everything before `check`.
    fn expected_check(&self) -> u32 {
        let words = [self.magic, self.boots, self.panics, self.cause, self.last_panic.len];
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).chain(self.last_panic.bytes);
        bytes.fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }
}

impl PanicText {
    const EMPTY: Self = Self { bytes: [0; PANIC_TEXT_BYTES_MAX], len: 0 };

    fn new(info: &PanicInfo) -> Self {
        let mut text = Self::EMPTY;
        // Writing fails when the text is full, which is when it is done.
        let _ = match info.location() {
            // The folders would leave no room for the message.
            Some(location) => {
                let file = location.file().rsplit('/').next().unwrap_or_default();
                write!(text, "{file}:{}: {}", location.line(), info.message())
            }
            None => write!(text, "{}", info.message()),
        };
        text
    }

    pub(crate) fn as_str(&self) -> &str {
        let bytes = &self.bytes[..(self.len as usize).min(PANIC_TEXT_BYTES_MAX)];
        match core::str::from_utf8(bytes) {
            Ok(text) => text,
            // A character that was cut in two.
            Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        }
    }
}

impl Write for PanicText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.len as usize..];
        let count = text.len().min(room.len());
        room[..count].copy_from_slice(&text.as_bytes()[..count]);
        self.len += count as u32;
        if count == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

fn load(_: CriticalSection) -> Option<Record> {
    // SAFETY: in a critical section. The RAM holds what the last run or the power-on left there;
    // volatile, so that the compiler does not take it for uninitialised, and any bits are a
    // valid `Record`.
    let record = unsafe { RETAINED.0.get().cast::<Record>().read_volatile() };
    (record.magic == MAGIC && record.check == record.expected_check()).then_some(record)
}

fn store(_: CriticalSection, mut record: Record) {
    record.check = record.expected_check();
    // SAFETY: in a critical section; volatile, since only the next run reads it.
    unsafe { RETAINED.0.get().cast::<Record>().write_volatile(record) };
}
