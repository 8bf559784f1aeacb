//! embassy-time on two CMSDK timers of 25 MHz: TIMER0 counts time, TIMER1 counts down to the
//! next alarm. One tick is one microsecond.

use core::cell::RefCell;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::Waker;

use critical_section::{CriticalSection, Mutex};
use embassy_time_driver::{Driver, TICK_HZ};
use embassy_time_queue_utils::Queue;

use crate::interrupts::Interrupt;
use crate::mmio::Register;

const CLOCK_HZ: u64 = 25_000_000;
const CYCLES_PER_TICK: u32 = (CLOCK_HZ / TICK_HZ) as u32;

/// A period of TIMER0 is a power of two of ticks, and as long as its 32 bits allow (134 s).
/// So `now` needs no 64-bit division.
const TICKS_PER_PERIOD_LOG2: u32 = 27;
const PERIOD_CYCLES: u32 = CYCLES_PER_TICK << TICKS_PER_PERIOD_LOG2;

/// A later alarm is counted down to in several turns.
const ALARM_TICKS_MAX: u64 = 1 << TICKS_PER_PERIOD_LOG2;

const _: () = assert!(CLOCK_HZ.is_multiple_of(TICK_HZ));
const _: () = assert!(CYCLES_PER_TICK as u64 * ALARM_TICKS_MAX <= u32::MAX as u64);

const CTRL_STOP: u32 = 0;
const CTRL_RUN_WITH_INTERRUPT: u32 = 1 | 1 << 3;
const INTERRUPT_PENDING: u32 = 1;

// SAFETY: the bases of the two CMSDK timers.
const CLOCK: Timer = unsafe { Timer::at(0x4000_0000) };
// SAFETY: as above.
const ALARM: Timer = unsafe { Timer::at(0x4000_1000) };

/// A CMSDK timer: counts down, raises its interrupt on the step from 1 to 0, stays at 0 for one
/// cycle and starts again from RELOAD. With RELOAD = 0 it stays at 0: a one-shot.
struct Timer {
    ctrl: Register,
    value: Register,
    reload: Register,
    /// Read: 1 while the interrupt is pending. Write 1: clear it.
    interrupt: Register,
}

impl Timer {
    /// # Safety
    ///
    /// `base` is the address of a CMSDK timer.
    const unsafe fn at(base: usize) -> Self {
        // SAFETY: the offsets of the registers; the timer has no DMA.
        unsafe {
            Self {
                ctrl: Register::at(base),
                value: Register::at(base + 0x4),
                reload: Register::at(base + 0x8),
                interrupt: Register::at(base + 0xC),
            }
        }
    }
}

struct TimeDriver {
    /// Periods of TIMER0 that its interrupt has counted. At 134 s each, 32 bits last 18,000 years.
    periods: AtomicU32,
    queue: Mutex<RefCell<Queue>>,
}

embassy_time_driver::time_driver_impl!(static DRIVER: TimeDriver = TimeDriver {
    periods: AtomicU32::new(0),
    queue: Mutex::new(RefCell::new(Queue::new())),
});

/// Starts the clock. Time is not monotonic across this call: make it the first of `main`.
pub(crate) fn init() {
    CLOCK.reload.write(PERIOD_CYCLES - 1);
    CLOCK.value.write(PERIOD_CYCLES - 1);
    CLOCK.interrupt.write(INTERRUPT_PENDING);
    CLOCK.ctrl.write(CTRL_RUN_WITH_INTERRUPT);
    ALARM.ctrl.write(CTRL_STOP);
    ALARM.reload.write(0);
    ALARM.interrupt.write(INTERRUPT_PENDING);
    Interrupt::Timer0.enable();
    Interrupt::Timer1.enable();
}

impl Driver for TimeDriver {
    fn now(&self) -> u64 {
        critical_section::with(|cs| self.now_in(cs))
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|cs| {
            let mut queue = self.queue.borrow_ref_mut(cs);
            if queue.schedule_wake(at, waker) {
                self.set_alarm(cs, &mut queue);
            }
        });
    }
}

impl TimeDriver {
    fn now_in(&self, _: CriticalSection) -> u64 {
        let mut periods = self.periods.load(Ordering::Relaxed);
        let mut cycles_left = CLOCK.value.read();
        let mut cycles = PERIOD_CYCLES - cycles_left;

        // The order decides: a period that ends after the look at VALUE does not concern it, and
        // one that is found ended here has certainly ended before the second look.
        if CLOCK.interrupt.read() == INTERRUPT_PENDING {
            periods = periods.wrapping_add(1);
            cycles_left = CLOCK.value.read();
            // The cycle at 0, before the reload, already belongs to the new period.
            cycles = if cycles_left == 0 { 0 } else { PERIOD_CYCLES - cycles_left };
        }
        // Added, not or-ed: QEMU can show VALUE = 0 a moment before the interrupt, and then
        // `cycles` is a whole period.
        (u64::from(periods) << TICKS_PER_PERIOD_LOG2) + u64::from(cycles / CYCLES_PER_TICK)
    }

    /// Wakes what is due and starts TIMER1 for what comes next. It cannot miss an alarm, since
    /// TIMER1 counts a delay down and does not compare with a time that may have gone by.
    fn set_alarm(&self, cs: CriticalSection, queue: &mut Queue) {
        let now = self.now_in(cs);
        let next = queue.next_expiration(now);
        ALARM.ctrl.write(CTRL_STOP);
        if next == u64::MAX {
            return;
        }
        let ticks = next.saturating_sub(now).clamp(1, ALARM_TICKS_MAX);
        ALARM.value.write(ticks as u32 * CYCLES_PER_TICK);
        ALARM.ctrl.write(CTRL_RUN_WITH_INTERRUPT);
    }
}

/// A period of the clock has ended.
pub(crate) extern "C" fn timer0() {
    critical_section::with(|_| {
        CLOCK.interrupt.write(INTERRUPT_PENDING);
        let periods = DRIVER.periods.load(Ordering::Relaxed);
        DRIVER.periods.store(periods.wrapping_add(1), Ordering::Relaxed);
    });
}

/// The alarm is due, or one turn of a long one is over.
pub(crate) extern "C" fn timer1() {
    critical_section::with(|cs| {
        ALARM.interrupt.write(INTERRUPT_PENDING);
        DRIVER.set_alarm(cs, &mut DRIVER.queue.borrow_ref_mut(cs));
    });
}
