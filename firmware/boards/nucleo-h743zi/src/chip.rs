//! What is particular to the STM32H743: clocks, an erratum, why it was reset, addresses from its unique id.

use embassy_stm32::rcc::{
    AHBPrescaler, APBPrescaler, Hse, HseMode, Pll, PllDiv, PllMul, PllPreDiv, PllSource, Sysclk, VoltageScale,
};
use embassy_stm32::{Config, Peripherals, pac, time::Hertz};
use firmware::board::ResetReason;

/// The ST-LINK's clock output, wired to the chip's HSE input.
const HSE_HZ: u32 = 8_000_000;

/// The first revision (V) without the AXI SRAM erratum.
const REVISION_V: u16 = 0x2000;
/// AXI_TARG7_FN_MOD of the AXI interconnect: how many accesses the AXI SRAM may have under way.
const AXI_SRAM_FN_MOD: usize = 0x5100_8108;
const READ_ONE_AT_A_TIME: u32 = 1;

/// Clocks, caches and what the debugger needs. Call it once, before anything uses a DMA.
///
/// # Panics
///
/// On the second call.
pub(crate) fn init() -> Peripherals {
    guard_axi_sram();
    // Flash is several times slower than the processor. DMA never writes code, so this cache needs no care;
    // the data cache would, and stays off.
    cortex_m::Peripherals::take().unwrap().SCB.enable_icache();
    let peripherals = embassy_stm32::init(config());
    // A breakpoint stops the watchdog too.
    pac::DBGMCU.apb4fzr1().modify(|w| w.set_iwdg1(true));
    peripherals
}

/// Why the chip was reset last, once: the flags are cleared, so that the next reset finds its own alone.
pub(crate) fn take_reset_reason(panicked: bool) -> ResetReason {
    let flags = pac::RCC.rsr().read();
    pac::RCC.rsr().modify(|w| w.set_rmvf(true));

    // Every reset pulls the reset pin as well, and a power-on sets most flags: the special ones first. A panic
    // counts as one even if it took the watchdog to end it.
    if flags.porrstf() || flags.borrstf() {
        ResetReason::PowerOn
    } else if panicked {
        ResetReason::Panic
    } else if flags.iwdg1rstf() || flags.wwdg1rstf() {
        ResetReason::Watchdog
    } else if flags.sftrstf() || flags.pinrstf() {
        ResetReason::Requested
    } else {
        ResetReason::Unknown
    }
}

/// A locally administered address of this chip's own. Ids of one lot differ in a few bits only, hence the hash
/// (FNV-1a).
pub(crate) fn mac_address(uid: &[u8; 12]) -> [u8; 6] {
    let hash = uid.iter().fold(0xCBF2_9CE4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    let [a, b, c, d, e, ..] = hash.to_be_bytes();
    [0x02, a, b, c, d, e]
}

/// 400 MHz, the most that every revision can do. HSE and not the internal oscillator, which is off by up to 1 %:
/// half a minute an hour in the time stamps.
fn config() -> Config {
    let mut config = Config::default();
    config.rcc.hse = Some(Hse { freq: Hertz(HSE_HZ), mode: HseMode::Bypass });
    config.rcc.pll1 = Some(Pll {
        source: PllSource::HSE,
        prediv: PllPreDiv::DIV1,
        mul: PllMul::MUL100,
        fracn: None,
        divp: Some(PllDiv::DIV2),
        divq: None,
        divr: None,
    });
    config.rcc.sys = Sysclk::PLL1_P; // 400 MHz
    config.rcc.ahb_pre = AHBPrescaler::DIV2; // 200 MHz
    config.rcc.apb1_pre = APBPrescaler::DIV2; // 100 MHz
    config.rcc.apb2_pre = APBPrescaler::DIV2; // 100 MHz
    config.rcc.apb3_pre = APBPrescaler::DIV2; // 100 MHz
    config.rcc.apb4_pre = APBPrescaler::DIV2; // 100 MHz
    config.rcc.voltage_scale = VoltageScale::Scale1;
    config.rcc.hsi48 = Some(Default::default()); // clocks the RNG
    config
}

/// In revisions before V, reads of the AXI SRAM may return wrong data when several masters read it, here the
/// processor and the Ethernet DMA: errata sheet ES0392, "Reading from AXI SRAM may lead to data read corruption".
fn guard_axi_sram() {
    if pac::DBGMCU.idc().read().rev_id() < REVISION_V {
        let register = core::ptr::with_exposed_provenance_mut::<u32>(AXI_SRAM_FN_MOD);
        // SAFETY: a register of the AXI interconnect that nothing else writes; the value is the sheet's remedy.
        unsafe { register.write_volatile(READ_ONE_AT_A_TIME) };
    }
}
