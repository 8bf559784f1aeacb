//! The firmware image of the Nucleo-H743ZI: starts the devices and one task a link.
//!
//! Links: USART3, which the ST-LINK shows as a serial port, and TCP port 7000 with two sockets. Protocol
//! decisions are not made here.

#![no_std]
#![no_main]

mod chip;
mod panic;
mod retained;
mod serial;
mod stack;

use core::cell::RefCell;

use cortex_m_rt::entry;
use defmt_rtt as _;
use embassy_executor::{Executor, Spawner};
use embassy_net::{Runner, Stack, StackResources};
use embassy_stm32::eth::{self, Ethernet, GenericPhy, PacketQueue, Sma};
use embassy_stm32::gpio::{Level, Output, Speed};
use embassy_stm32::peripherals::{ETH, ETH_SMA, IWDG1, RNG, USART3};
use embassy_stm32::rng::{self, Rng};
use embassy_stm32::usart::{self, BufferedUartRx};
use embassy_stm32::wdg::IndependentWatchdog;
use embassy_stm32::{Peripherals, bind_interrupts};
use embassy_time::{Duration, Timer};
use firmware::clock::EmbassyClock;
use firmware::net::{self, LINK_PORT, LINK_SOCKETS, LinkBuffers};
use firmware::serve::Closed;
use firmware::{Board, Facts};
use static_cell::{ConstStaticCell, StaticCell};

use retained::BootFacts;
use serial::SerialTx;

const LINK_BAUD: u32 = 115_200;

const DHCP_SOCKETS: usize = 1;
const SOCKETS: usize = DHCP_SOCKETS + LINK_SOCKETS;

/// Frames that the Ethernet DMA holds. Received ones also wait there while another task runs.
const FRAMES_TX: usize = 4;
const FRAMES_RX: usize = 8;

/// Starting the devices takes less, and so does the longest step of any task.
const WATCHDOG_TIMEOUT_US: u32 = 4_000_000;
const WATCHDOG_PET_EVERY: Duration = Duration::from_millis(500);

type Device = Ethernet<'static, ETH, GenericPhy<Sma<'static, ETH_SMA>>>;
type SharedBoard = &'static RefCell<Board>;

static LINK_BUFFERS: ConstStaticCell<[LinkBuffers; LINK_SOCKETS]> =
    ConstStaticCell::new([const { LinkBuffers::new() }; LINK_SOCKETS]);

/// The DMA reads and writes it behind the processor's back: it has to lie in AXI SRAM, as all statics
/// do, and the data cache has to stay off, as it is after a reset.
static FRAMES: ConstStaticCell<PacketQueue<FRAMES_TX, FRAMES_RX>> = ConstStaticCell::new(PacketQueue::new());

static NETWORK: StaticCell<StackResources<SOCKETS>> = StaticCell::new();
static BOARD: StaticCell<RefCell<Board>> = StaticCell::new();
static EXECUTOR: StaticCell<Executor> = StaticCell::new();

bind_interrupts!(struct Irqs {
    ETH => eth::InterruptHandler;
    RNG => rng::InterruptHandler<RNG>;
    USART3 => usart::BufferedInterruptHandler<USART3>;
});

#[entry]
fn main() -> ! {
    let peripherals = chip::init();
    let boot = retained::start();
    EXECUTOR.init(Executor::new()).run(|spawner| start(spawner, peripherals, boot))
}

/// Starts every device and spawns every task. It can panic: a board without its devices is none.
fn start(spawner: Spawner, p: Peripherals, boot: BootFacts) {
    // First of all, since a device that does not answer would keep its driver waiting for ever.
    let mut watchdog = IndependentWatchdog::new(p.IWDG1, WATCHDOG_TIMEOUT_US);
    watchdog.unleash();
    let heartbeat = Output::new(p.PB0, Level::Low, Speed::Low);
    spawner.spawn(pet_watchdog(watchdog, heartbeat).unwrap());

    let mut random = Rng::new(p.RNG, Irqs);
    let uid = embassy_stm32::uid::uid();
    let reset_reason = chip::take_reset_reason(boot.panicked);
    defmt::info!("boot {=u32}, panics {=u32}, {=str}", boot.boots, boot.panics, reset_reason.name());
    let board: SharedBoard = BOARD.init(RefCell::new(Board::new(Facts {
        kind: "nucleo-h743zi",
        id: uid.into_iter().collect(),
        // Zero would mean that there is no source of randomness.
        epoch: random.next_u64().max(1),
        boot_count: boot.boots,
        panic_count: boot.panics,
        reset_reason,
        stack: stack::usage,
    })));

    let (rx, tx) = serial::start(p.USART3, p.PD9, p.PD8, Irqs, LINK_BAUD);
    spawner.spawn(serial_link(board, rx, tx).unwrap());

    let mac = chip::mac_address(&uid);
    defmt::info!("MAC address {=[u8; 6]:02x}", mac);
    // RMII as the board wires it to its LAN8742A.
    let ethernet = Ethernet::new(
        FRAMES.take(),
        p.ETH,
        Irqs,
        p.PA1,  // REF_CLK
        p.PA7,  // CRS_DV
        p.PC4,  // RXD0
        p.PC5,  // RXD1
        p.PG13, // TXD0
        p.PB13, // TXD1
        p.PG11, // TX_EN
        mac,
        p.ETH_SMA,
        p.PA2, // MDIO
        p.PC1, // MDC
    );
    let (network, runner) = embassy_net::new(
        ethernet,
        embassy_net::Config::dhcpv4(Default::default()),
        NETWORK.init(StackResources::new()),
        random.next_u64(),
    );
    spawner.spawn(run_network(runner).unwrap());
    spawner.spawn(tell_address(network).unwrap());
    for buffers in LINK_BUFFERS.take() {
        spawner.spawn(tcp_link(board, network, buffers).unwrap());
    }
}

/// All tasks share one executor: one that never yields keeps this one from petting, and the board resets.
#[embassy_executor::task]
async fn pet_watchdog(
    mut watchdog: IndependentWatchdog<'static, IWDG1>,
    mut heartbeat: Output<'static>,
) -> ! {
    loop {
        watchdog.pet();
        heartbeat.toggle();
        Timer::after(WATCHDOG_PET_EVERY).await;
    }
}

#[embassy_executor::task]
async fn run_network(mut runner: Runner<'static, Device>) -> ! {
    runner.run().await
}

/// Whoever configures a bridge needs it.
#[embassy_executor::task]
async fn tell_address(network: Stack<'static>) -> ! {
    loop {
        network.wait_config_up().await;
        if let Some(config) = network.config_v4() {
            defmt::info!("listening on {}, port {=u16}", config.address, LINK_PORT);
        }
        network.wait_config_down().await;
        defmt::info!("no network");
    }
}

#[embassy_executor::task]
async fn serial_link(board: SharedBoard, mut rx: BufferedUartRx<'static>, mut tx: SerialTx) -> ! {
    loop {
        // The line itself never closes: when a session ends, or nobody began one, the next may begin.
        let closed = firmware::serve(board, &EmbassyClock, &mut rx, &mut tx).await;
        if closed != Closed::Mute {
            defmt::info!("serial link: {}", closed);
        }
    }
}

#[embassy_executor::task(pool_size = LINK_SOCKETS)]
async fn tcp_link(board: SharedBoard, network: Stack<'static>, buffers: &'static mut LinkBuffers) -> ! {
    net::serve_tcp(board, network, buffers, &EmbassyClock).await
}
