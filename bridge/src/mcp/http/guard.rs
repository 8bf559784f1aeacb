//! Who may ask over HTTP: the Host, Origin and token of every request, whatever its route.
//!
//! A page in a browser can send requests to this machine, also under a name of its own that it points here. So a Host
//! must be an address (which cannot be pointed elsewhere) or a name that was allowed. An Origin, which browsers send and
//! others do not, must be the Host that the request itself names, this machine, or a name that was allowed: a page of
//! another machine has an address, too.

use super::{Options, Shared};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, Uri, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};
use subtle::ConstantTimeEq as _;

/// The only path that needs no token: it says that the server is there, and nothing else.
pub(super) const OPEN_PATH: &str = "/healthz";
/// The environment variable that may hold the token.
pub(super) const TOKEN_VARIABLE: &str = "PICOLAKE_TOKEN";
/// A token that can be guessed is none.
const TOKEN_CHARS_MIN: usize = 16;
/// Bytes of a token, and of the file that holds it.
const TOKEN_BYTES_MAX: usize = 4096;

/// A secret that a client must know. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Why there is no token where one was expected.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the token file {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What was found is no token.
    #[error("the token in {place} {why}; make one with: openssl rand -hex 32")]
    Unfit {
        /// Where it was found.
        place: String,
        /// What is wrong, without the token.
        why: &'static str,
    },
}

impl Token {
    /// The token of the file, else of the environment, else none.
    pub fn find(file: Option<&Path>) -> Result<Option<Self>, TokenError> {
        match (file, std::env::var(TOKEN_VARIABLE)) {
            (Some(path), _) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|source| TokenError::Read { path: path.into(), source })?;
                Self::parse(&path.display().to_string(), &text).map(Some)
            }
            (None, Ok(text)) => Self::parse(TOKEN_VARIABLE, &text).map(Some),
            (None, Err(std::env::VarError::NotPresent)) => Ok(None),
            (None, Err(std::env::VarError::NotUnicode(_))) => {
                Err(TokenError::Unfit { place: TOKEN_VARIABLE.into(), why: "is not text" })
            }
        }
    }

    fn parse(place: &str, text: &str) -> Result<Self, TokenError> {
        let unfit = |why| Err(TokenError::Unfit { place: place.into(), why });
        let text = text.trim();
        if text.len() > TOKEN_BYTES_MAX {
            return unfit("is too long");
        }
        if text.chars().count() < TOKEN_CHARS_MIN {
            return unfit("is shorter than 16 characters");
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return unfit("has spaces or characters that a header cannot carry");
        }
        Ok(Self(text.into()))
    }

    /// Compares in a time that does not tell how much was right.
    fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

/// The address is open to other machines and has no token.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} can be reached from other machines, and there is no token to keep them out; \
     give one with --token-file FILE or in {TOKEN_VARIABLE}, or listen on 127.0.0.1"
)]
pub struct AddressError(SocketAddr);

/// What is checked.
#[derive(Debug)]
pub(super) struct Guard {
    address: IpAddr,
    hosts: Vec<String>,
    token: Option<Token>,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Host,
    Origin,
    Token,
}

impl Guard {
    pub(super) fn new(options: &Options) -> Result<Self, AddressError> {
        let address = options.address.ip();
        if options.token.is_none() && !address.is_loopback() {
            return Err(AddressError(options.address));
        }
        let hosts = options.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        Ok(Self { address, hosts, token: options.token.clone() })
    }

    fn look_at(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()),
            _ => None,
        };
        let is_host_good = host.as_ref().is_some_and(|host| self.is_our_host(host.host()))
            && uri.authority().is_none_or(|authority| self.is_our_host(authority.host()));
        if !is_host_good {
            return Err(Refusal::Host);
        }
        for origin in headers.get_all(header::ORIGIN) {
            let origin = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
            let is_good = origin.is_some_and(|origin| {
                matches!(origin.scheme_str(), Some("http" | "https"))
                    && origin.authority().is_some_and(|origin| {
                        host.as_ref().is_some_and(|host| is_same(host, origin))
                            || self.is_trusted(origin.host())
                    })
            });
            if !is_good {
                return Err(Refusal::Origin);
            }
        }
        match &self.token {
            Some(token)
                if uri.path() != OPEN_PATH && !bearer(headers).is_some_and(|given| token.is(given)) =>
            {
                Err(Refusal::Token)
            }
            _ => Ok(()),
        }
    }

    /// Whether a client that means this server may call it so: an address it listens on, or a name that was allowed.
    fn is_our_host(&self, host: &str) -> bool {
        let is_ours = |address| address == self.address || self.address.is_unspecified();
        self.is_trusted(host) || address_of(host).is_some_and(is_ours)
    }

    /// Whether it is this machine for certain, or a name that was allowed.
    fn is_trusted(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        host == "localhost"
            || self.hosts.contains(&host)
            || address_of(&host).is_some_and(|address| address.is_loopback())
    }
}

/// The address, if a host is one.
fn address_of(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Whether a page comes from the host that it asks: the same name, and the same port.
fn is_same(host: &Authority, origin: &Authority) -> bool {
    host.host().eq_ignore_ascii_case(origin.host()) && host.port_u16() == origin.port_u16()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Lets a request pass, or says why not.
pub(super) async fn check(State(shared): State<Shared>, mut request: Request, next: Next) -> Response {
    let (reason, answer) = match shared.guard.look_at(request.uri(), request.headers()) {
        Ok(()) => {
            request.headers_mut().remove(header::AUTHORIZATION); // nobody behind here can log what is not there
            return next.run(request).await;
        }
        Err(Refusal::Host) => (
            "host",
            (StatusCode::FORBIDDEN, "this Host is not allowed; allow a name with --allow-host NAME\n")
                .into_response(),
        ),
        Err(Refusal::Origin) => (
            "origin",
            (StatusCode::FORBIDDEN, "this Origin is not allowed; allow its host with --allow-host NAME\n")
                .into_response(),
        ),
        Err(Refusal::Token) => (
            "token",
            (
                StatusCode::UNAUTHORIZED,
                [(header::WWW_AUTHENTICATE, "Bearer realm=\"picolake\"")],
                "a token is needed: Authorization: Bearer TOKEN\n",
            )
                .into_response(),
        ),
    };
    shared.server.metrics.refused(reason);
    tracing::info!(reason, method = %request.method(), path = request.uri().path(), "an HTTP request was refused");
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "correct-horse-battery";

    fn guard(address: &str, token: Option<&str>) -> Result<Guard, AddressError> {
        let token = token.map(|token| Token::parse("test", token).unwrap());
        Guard::new(&Options { address: address.parse().unwrap(), token, hosts: vec!["Lake.Example".into()] })
    }

    fn look(guard: &Guard, path: &str, headers: &[(&'static str, &str)]) -> Result<(), Refusal> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        guard.look_at(&path.parse().unwrap(), &map)
    }

    #[test]
    fn an_open_address_needs_a_token() {
        for address in ["0.0.0.0:1", "192.168.1.2:1", "[::]:1"] {
            assert!(guard(address, None).unwrap_err().to_string().contains("--token-file"));
            assert!(guard(address, Some(SECRET)).is_ok());
        }
        for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1"] {
            assert!(guard(address, None).is_ok());
        }
    }

    #[test]
    fn a_host_is_an_address_of_ours_or_an_allowed_name() {
        let guard = guard("127.0.0.1:1", None).unwrap();
        for host in ["localhost", "LOCALHOST:50051", "127.0.0.1:50051", "[::1]:50051", "lake.example:80"] {
            assert_eq!(look(&guard, "/sse", &[("host", host)]), Ok(()), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "192.168.1.2", "", "a b", "127.0.0.1.evil.example"]
        {
            assert_eq!(look(&guard, "/sse", &[("host", host)]), Err(Refusal::Host), "{host}");
        }
        assert_eq!(look(&guard, "/sse", &[]), Err(Refusal::Host));
        assert_eq!(look(&guard, "/", &[("host", "localhost"), ("host", "evil")]), Err(Refusal::Host));
        assert_eq!(look(&guard, "http://evil.example/", &[("host", "localhost")]), Err(Refusal::Host));
    }

    #[test]
    fn an_origin_is_absent_or_one_of_our_hosts() {
        let guard = guard("127.0.0.1:1", None).unwrap();
        let with = |origin| look(&guard, "/mcp", &[("host", "localhost"), ("origin", origin)]);
        for origin in ["http://localhost:6274", "https://127.0.0.1", "https://lake.example"] {
            assert_eq!(with(origin), Ok(()), "{origin}");
        }
        for origin in
            ["null", "http://evil.example", "http://localhost.evil.example", "file://", "localhost", ""]
        {
            assert_eq!(with(origin), Err(Refusal::Origin), "{origin}");
        }
    }

    #[test]
    fn where_every_address_is_ours_a_page_of_another_machine_is_foreign_all_the_same() {
        let guard = guard("0.0.0.0:1", Some(SECRET)).unwrap();
        let bearer = format!("Bearer {SECRET}");
        let with = |host, origin| {
            look(&guard, "/mcp", &[("host", host), ("origin", origin), ("authorization", &bearer)])
        };
        for (host, origin) in [
            ("10.0.0.9:50051", "http://10.0.0.9:50051"),
            ("10.0.0.9", "https://10.0.0.9"),
            ("[fd00::9]:50051", "http://[FD00::9]:50051"),
            ("10.0.0.9:50051", "http://localhost:6274"),
            ("10.0.0.9:50051", "http://127.0.0.1:6274"),
            ("10.0.0.9:50051", "https://lake.example"),
        ] {
            assert_eq!(with(host, origin), Ok(()), "{host} {origin}");
        }
        for (host, origin) in [
            ("10.0.0.9:50051", "http://10.0.0.66"),
            ("10.0.0.9:50051", "http://93.184.216.34:50051"),
            ("10.0.0.9:50051", "http://10.0.0.9:8080"),
            ("10.0.0.9:50051", "http://[fd00::66]"),
            ("10.0.0.9:50051", "http://evil.example"),
        ] {
            assert_eq!(with(host, origin), Err(Refusal::Origin), "{host} {origin}");
        }
    }

    #[test]
    fn a_token_is_needed_everywhere_but_to_see_that_the_server_is_there() {
        let guard = guard("0.0.0.0:1", Some(SECRET)).unwrap();
        let with = |path, value: &str| look(&guard, path, &[("host", "10.0.0.9"), ("authorization", value)]);
        for path in ["/mcp", "/sse", "/messages/", "/query", "/metrics", "/", "/healthz/x"] {
            assert_eq!(with(path, &format!("Bearer {SECRET}")), Ok(()));
            assert_eq!(with(path, &format!("bearer {SECRET}")), Ok(()));
            for wrong in ["", "Bearer", "Bearer x", SECRET, "Bearer correct-horse-batterY", "Basic x"] {
                assert_eq!(with(path, wrong), Err(Refusal::Token), "{path} {wrong}");
            }
            assert_eq!(look(&guard, path, &[("host", "10.0.0.9")]), Err(Refusal::Token));
        }
        assert_eq!(look(&guard, OPEN_PATH, &[("host", "10.0.0.9")]), Ok(()));
    }

    #[test]
    fn a_token_that_is_none_is_refused_and_none_is_ever_printed() {
        for text in ["", "too-few", "has spaces in the middle", "ümlaut-ümlaut-ümlaut"] {
            let error = Token::parse("FILE", text).unwrap_err().to_string();
            assert!(error.contains("FILE") && (text.is_empty() || !error.contains(text)), "{error}");
        }
        let token = Token::parse("FILE", &format!("{SECRET}\n")).unwrap();
        assert!(token.is(SECRET) && !format!("{token:?}").contains("horse"));
    }
}
