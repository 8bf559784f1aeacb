//! The firmware image of the QEMU board `mps2-an386`: starts the devices and one task a link.
//!
//! Links: UART0, and TCP port 7000 with two sockets. UART1 is a text console. Protocol decisions
//! are not made here.

#![no_std]
#![no_main]

mod executor;
mod interrupts;
mod lan9118;
mod mmio;
mod panic;
mod retained;
mod stack;
mod time_driver;
mod uart;

use core::cell::RefCell;
use core::fmt::Write as _;

use cortex_m::peripheral::SCB;
use cortex_m_rt::entry;
use defmt_semihosting as _;
use embassy_executor::Spawner;
#[cfg(feature = "bench-raw-tcp")]
use embassy_net::tcp::TcpSocket;
use embassy_net::{Runner, Stack, StackResources};
use embassy_time::{Duration, Instant, Timer, with_timeout};
use embedded_io_async::{Read, Write};
use firmware::clock::EmbassyClock;
use firmware::net::{self, LINK_SOCKETS, LinkBuffers};
use firmware::serve::Closed;
use firmware::{Board, Facts};
use static_cell::{ConstStaticCell, StaticCell};

use lan9118::Lan9118;
use retained::BootFacts;
use uart::{ConsoleRx, ConsoleTx, LinkRx, LinkTx};

const LINK_BAUD: u32 = 921_600;
const CONSOLE_BAUD: u32 = 115_200;
const CONSOLE_TEXT_BYTES: usize = 192;

/// DHCP takes a few milliseconds where it works at all.
const NETWORK_WAIT_MAX: Duration = Duration::from_millis(200);

const BENCH_SOCKETS: usize = if cfg!(feature = "bench-raw-tcp") { 1 } else { 0 };
const DHCP_SOCKETS: usize = 1;
const SOCKETS: usize = DHCP_SOCKETS + LINK_SOCKETS + BENCH_SOCKETS;

/// The id of a board without Ethernet: the chip has none of its own.
const ID_WITHOUT_ETHERNET: [u8; 6] = [0x02, 0, 0, 0, 0x03, 0x86];

type SharedBoard = &'static RefCell<Board>;

static LINK_BUFFERS: ConstStaticCell<[LinkBuffers; LINK_SOCKETS]> =
    ConstStaticCell::new([const { LinkBuffers::new() }; LINK_SOCKETS]);

static NETWORK: StaticCell<StackResources<SOCKETS>> = StaticCell::new();
static BOARD: StaticCell<RefCell<Board>> = StaticCell::new();

defmt::timestamp!("{=u64:us}", Instant::now().as_micros());

#[entry]
fn main() -> ! {
    stack::paint();
    time_driver::init();
    let boot = retained::start();
    defmt::info!("boot {=u32}, panics {=u32}, {=str}", boot.boots, boot.panics, boot.reset_reason.name());
    executor::run(|spawner| start(spawner, boot))
}

/// Starts every device and spawns every task. It panics if a task has no room, which would be so at every start.
fn start(spawner: Spawner, boot: BootFacts) {
    let (rx, tx) = uart::CONSOLE.start(CONSOLE_BAUD);
    spawner.spawn(console(rx, tx, boot).unwrap());

    let ethernet = Lan9118::new();
    let id = ethernet.as_ref().map_or(ID_WITHOUT_ETHERNET, Lan9118::mac_address);
    let board: SharedBoard = BOARD.init(RefCell::new(Board::new(Facts {
        kind: "mps2-an386",
        id: id.into_iter().collect(),
        // No source of randomness: the first bridge gives one.
        epoch: 0,
        boot_count: boot.boots,
        panic_count: boot.panics,
        reset_reason: boot.reset_reason,
        stack: stack::usage,
    })));

    let network = match ethernet {
        Ok(ethernet) => Some(start_network(spawner, board, ethernet, boot)),
        Err(error) => {
            defmt::warn!("no Ethernet: {}", error);
            None
        }
    };
    let (rx, tx) = uart::LINK.start(LINK_BAUD);
    spawner.spawn(uart_link(board, network, rx, tx).unwrap());
}

fn start_network(spawner: Spawner, board: SharedBoard, ethernet: Lan9118, boot: BootFacts) -> Stack<'static> {
    let mac = ethernet.mac_address();
    defmt::info!("MAC address {=[u8; 6]:02x}", mac);
    let (network, runner) = embassy_net::new(
        ethernet,
        embassy_net::Config::dhcpv4(Default::default()),
        NETWORK.init(StackResources::new()),
        network_seed(mac, boot),
    );
    spawner.spawn(run_network(runner).unwrap());
    spawner.spawn(turn_host_loop().unwrap());
    for buffers in LINK_BUFFERS.take() {
        spawner.spawn(tcp_link(board, network, buffers).unwrap());
    }
    #[cfg(feature = "bench-raw-tcp")]
    spawner.spawn(bench_raw_tcp(network).unwrap());
    network
}

/// Differs between boards and between starts, so that a new connection is not taken for an old
/// one; it need not be secret.
fn network_seed(mac: [u8; 6], boot: BootFacts) -> u64 {
    let [a, b, c, d, e, f] = mac;
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) ^ u64::from(boot.boots) << 48
}

#[embassy_executor::task]
async fn run_network(mut runner: Runner<'static, Lan9118>) -> ! {
    runner.run().await
}

/// QEMU's user-mode network looks anew at the host's sockets when QEMU's main loop turns. A frame
/// from the board does not turn it, but a timer does. Without this, what a client sends first on
/// a new connection can wait 500 ms; an idle board ticks not at all.
#[embassy_executor::task]
async fn turn_host_loop() -> ! {
    loop {
        lan9118::frame_sent().await;
        Timer::after_millis(1).await;
    }
}

#[embassy_executor::task]
async fn uart_link(board: SharedBoard, network: Option<Stack<'static>>, mut rx: LinkRx, mut tx: LinkTx) -> ! {
    if let Some(network) = network {
        // Whoever waits for the hello may use the network next. A connection that comes before the
        // board has its address is lost, and QEMU's network tries again only after six seconds.
        let _ = with_timeout(NETWORK_WAIT_MAX, network.wait_config_up()).await;
    }
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

/// Says what the board knows of itself, and answers to single keys.
#[embassy_executor::task]
async fn console(mut rx: ConsoleRx, mut tx: ConsoleTx, boot: BootFacts) {
    let mut text = heapless::String::<CONSOLE_TEXT_BYTES>::new();
    // A text that does not fit is cut.
    let _ = write!(
        text,
        "\r\npicolake mps2-an386\r\nboot {} panics {} reset {} last panic \"{}\"\r\n\
         s stack, r reset, p panic\r\n",
        boot.boots,
        boot.panics,
        boot.reset_reason.name(),
        boot.last_panic.as_str(),
    );
    loop {
        let Ok(()) = tx.write_all(text.as_bytes()).await;
        let Ok(()) = tx.flush().await;
        text.clear();
        let mut key = [0];
        let Ok(_) = rx.read(&mut key).await;
        match key[0] {
            b's' => {
                let usage = stack::usage();
                let _ = write!(text, "stack {} of {} bytes\r\n", usage.bytes_used_max, usage.bytes);
            }
            b'r' => SCB::sys_reset(),
            b'p' => panic!("asked for on the console"),
            _ => {}
        }
    }
}

/// Sends to whoever connects to port 7001, as fast as the network stack and the driver can.
#[cfg(feature = "bench-raw-tcp")]
#[embassy_executor::task]
async fn bench_raw_tcp(network: Stack<'static>) {
    const PORT: u16 = 7001;
    static PATTERN: [u8; 1024] = [0x55; 1024];
    static BUFFERS: ConstStaticCell<LinkBuffers> = ConstStaticCell::new(LinkBuffers::new());
    let buffers = BUFFERS.take();
    loop {
        let mut socket = TcpSocket::new(network, &mut buffers.rx, &mut buffers.tx);
        socket.set_timeout(Some(net::LINK_TIMEOUT));
        if socket.accept(PORT).await.is_ok() {
            while socket.write(&PATTERN).await.is_ok() {}
        }
    }
}
