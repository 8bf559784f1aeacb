//! Links: addresses as people write them, and the byte streams behind them.

pub mod sim;

use std::{fmt, io, path::PathBuf, str::FromStr, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_serial::SerialPortBuilderExt as _;

/// How long opening a link may take.
pub const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// The line rate of a serial link whose address names none.
pub const BAUD_DEFAULT: u32 = 115_200;

/// Bytes in both directions, in order.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Where a board is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `serial:/dev/ttyACM0?baud=115200`
    Serial {
        /// The device.
        path: String,
        /// The line rate in bits a second.
        baud: u32,
    },
    /// `tcp:HOST:PORT`
    Tcp(String),
    /// `unix:PATH`, where QEMU listens with a board's serial line
    Unix(PathBuf),
    /// `sim:`, `sim:NAME` or `sim:NAME?rows=1000000`, a simulated board inside this process
    Sim {
        /// What its id and its sensors' rows are made from.
        name: String,
        /// Rows that its fastest sensor has made already.
        rows_before: u32,
    },
}

/// An address that is not one.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{text}` is not a link: {why}; write serial:/dev/ttyACM0?baud=115200, tcp:HOST:PORT, unix:PATH or sim:"
)]
pub struct AddressError {
    text: String,
    why: String,
}

/// A link that could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open {address}: {source}; {hint}")]
pub struct OpenError {
    address: Address,
    source: io::Error,
    hint: &'static str,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let fail = |why: &str| AddressError { text: text.into(), why: why.into() };
        let (scheme, rest) = text.split_once(':').ok_or_else(|| fail("it has no scheme"))?;
        match scheme {
            "serial" => {
                let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
                let baud = match query.split_once('=') {
                    None if query.is_empty() => BAUD_DEFAULT,
                    Some(("baud", baud)) => baud
                        .parse()
                        .ok()
                        .filter(|baud| *baud > 0)
                        .ok_or_else(|| fail("its baud is no number"))?,
                    _ => return Err(fail("only ?baud=… may follow the device")),
                };
                let named = !path.is_empty();
                named
                    .then(|| Address::Serial { path: path.into(), baud })
                    .ok_or_else(|| fail("it names no device"))
            }
            "tcp" => match rest.rsplit_once(':') {
                Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {
                    Ok(Address::Tcp(rest.into()))
                }
                _ => Err(fail("it needs a host and a port")),
            },
            "unix" if rest.is_empty() => Err(fail("it names no path")),
            "unix" => Ok(Address::Unix(rest.into())),
            "sim" => {
                let (name, query) = rest.split_once('?').unwrap_or((rest, ""));
                let rows_before = match query.split_once('=') {
                    None if query.is_empty() => 0,
                    Some(("rows", rows)) => {
                        rows.parse().ok().filter(|rows| *rows <= sim::ROWS_BEFORE_MAX).ok_or_else(|| {
                            fail(&format!("its rows are no number up to {}", sim::ROWS_BEFORE_MAX))
                        })?
                    }
                    _ => return Err(fail("only ?rows=… may follow the name")),
                };
                let name = if name.is_empty() { "sim" } else { name };
                Ok(Address::Sim { name: name.into(), rows_before })
            }
            other => Err(fail(&format!("there is no scheme `{other}`"))),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Serial { path, baud } => write!(f, "serial:{path}?baud={baud}"),
            Address::Tcp(to) => write!(f, "tcp:{to}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Sim { name, rows_before: 0 } => write!(f, "sim:{name}"),
            Address::Sim { name, rows_before } => write!(f, "sim:{name}?rows={rows_before}"),
        }
    }
}

impl Address {
    /// Opens the link.
    pub async fn open(&self) -> Result<Box<dyn ByteStream>, OpenError> {
        let opened = match tokio::time::timeout(OPEN_TIMEOUT, self.open_stream()).await {
            Ok(opened) => opened,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time")),
        };
        opened.map_err(|source| OpenError { address: self.clone(), source, hint: self.hint() })
    }

    async fn open_stream(&self) -> io::Result<Box<dyn ByteStream>> {
        Ok(match self {
            Address::Serial { path, baud } => Box::new(tokio_serial::new(path, *baud).open_native_async()?),
            Address::Tcp(to) => {
                let stream = tokio::net::TcpStream::connect(to).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Address::Unix(path) => Box::new(tokio::net::UnixStream::connect(path).await?),
            Address::Sim { name, rows_before } => {
                Box::new(sim::Simulation::with_rows(name, *rows_before).await?.connect()?)
            }
        })
    }

    fn hint(&self) -> &'static str {
        match self {
            Address::Serial { .. } => {
                "is the board plugged in, may you use the device (group dialout), or does another program hold it?"
            }
            Address::Tcp(_) => "is the board on, on this network, and listening on that port?",
            Address::Unix(_) => "is QEMU running with -serial unix:PATH,server=on,wait=off?",
            Address::Sim { .. } => "a simulated board needs a thread of its own, and time to make its rows",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back_as_they_print() {
        for text in [
            "serial:/dev/ttyACM0?baud=921600",
            "tcp:10.0.0.7:7000",
            "tcp:[::1]:7000",
            "unix:/tmp/a b",
            "sim:pump",
            "sim:pump?rows=1000000",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!("serial:COM3".parse::<Address>().unwrap().to_string(), "serial:COM3?baud=115200");
    }

    #[test]
    fn a_wrong_address_says_what_is_wrong_with_it() {
        for (text, why) in [
            ("pump", "it has no scheme"),
            ("usb:1", "there is no scheme `usb`"),
            ("tcp:host", "it needs a host and a port"),
            ("tcp:host:0", "it needs a host and a port"),
            ("serial:", "it names no device"),
            ("serial:/dev/x?baud=fast", "its baud is no number"),
            ("serial:/dev/x?parity=odd", "only ?baud=… may follow the device"),
            ("unix:", "it names no path"),
            ("sim:?rows=many", "its rows are no number up to 1633600"),
            ("sim:?rows=1633601", "its rows are no number up to 1633600"),
            ("sim:?row=1", "only ?rows=… may follow the name"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap_err().why, why, "{text}");
        }
    }
}
