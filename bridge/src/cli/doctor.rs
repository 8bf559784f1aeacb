//! `picolake doctor`: looks at configuration, boards, clocks, archive and clients, and says of each fault what to do. Mends
//! nothing.

use super::{
    boards,
    clients::{Client, entry_in, read},
    gateway::{Gateway, tools_file},
};
use crate::{
    archive::Readers,
    config::{Config, ConfigError, FILE_NAME},
    field::{Field, Report},
    mcp::http,
    tools::{Options, Tools},
};
use shared::format::Printable;
use std::{
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// 2025-01-01: a clock before it was never set.
const CLOCK_SECONDS_MIN: u64 = 1_735_689_600;
/// How far a board's clock may be from this machine's.
const CLOCK_DRIFT_MAX: Duration = Duration::from_secs(5);
/// How long whoever has the port may take to say who it is.
const PORT_TIMEOUT: Duration = Duration::from_secs(2);

/// What a check found.
#[derive(Debug, PartialEq, Eq)]
enum Finding {
    Good(String),
    /// Works, but somebody should know.
    Note(String, String),
    /// Does not work; and what to do.
    Fault(String, String),
}

use Finding::{Fault, Good, Note};

/// What is said when not even the configuration can be read.
pub(crate) fn broken_config(error: &ConfigError) -> anyhow::Result<()> {
    report(&[Fault(
        error.to_string(),
        format!(
            "mend it, or name another file with --config; {FILE_NAME} lists boards as `- {{name: pump, link: 'tcp:HOST:PORT'}}`"
        ),
    )])
}

pub(crate) async fn run(config: &Config, named: Option<&Path>) -> anyhow::Result<()> {
    let mut findings = vec![configuration(config, named), clock()];
    findings.extend(tools(named));
    findings.extend(owner(config, named).await);
    findings.extend(archive(config));
    findings.push(port().await);
    findings.extend(Client::ALL.map(client));
    report(&findings)
}

/// Prints all, and fails if there is a fault.
fn report(findings: &[Finding]) -> anyhow::Result<()> {
    for finding in findings {
        match finding {
            Good(what) => println!("ok     {what}"),
            Note(what, advice) => println!("note   {what}\n       → {advice}"),
            Fault(what, advice) => println!("FAULT  {what}\n       → {advice}"),
        }
    }
    let faults = findings.iter().filter(|finding| matches!(finding, Fault(..))).count();
    anyhow::ensure!(faults == 0, "{faults} of {} checks found a fault", findings.len());
    Ok(())
}

fn configuration(config: &Config, named: Option<&Path>) -> Finding {
    let path = named.unwrap_or(Path::new(FILE_NAME));
    match config.boards.len() {
        0 if path.exists() => Note(
            format!("{} lists no boards", path.display()),
            "add some: - {name: pump, link: 'tcp:HOST:PORT'}".into(),
        ),
        0 => Note(
            format!("there is no {FILE_NAME} in this folder"),
            "list boards in one, name one with --config FILE, or try picolake serve --demo".into(),
        ),
        boards => Good(format!("configuration: {} lists {boards} boards", path.display())),
    }
}

/// The archive as it would be read, whoever writes it.
fn archive(config: &Config) -> Option<Finding> {
    let Some(options) = config.archive.options() else {
        return Some(Note(
            "archive: rows are not archived".into(),
            "to keep them on this machine: archive: {enabled: true}".into(),
        ));
    };
    let readers = Readers::new(options.path);
    let path = readers.path().display().to_string();
    if !readers.path().exists() {
        let what = format!("archive: {path} is begun when picolake serve has boards");
        return (!config.boards.is_empty()).then_some(Good(what));
    }
    Some(match readers.contents() {
        Ok(contents) => {
            let rows: u64 = contents.series.iter().map(|(_, stored)| stored.rows).sum();
            Good(format!("archive: {path} has {rows} rows in {} bytes", contents.file_bytes))
        }
        Err(error) => Fault(
            format!("archive: {error}"),
            "until then picolake serve goes on without it, and rows that boards overwrite are lost".into(),
        ),
    })
}

/// The user's own tools, if there are some.
fn tools(config: Option<&Path>) -> Option<Finding> {
    let file = tools_file(config)?;
    let options = Options { user_file: Some(file.clone()), ..Options::default() };
    Some(match Tools::new(Field::new([]), options) {
        Ok(tools) => {
            Good(format!("tools: {} and the standard ones, {} in all", file.display(), tools.list().len()))
        }
        Err(error) => Fault(error.to_string(), "mend it: picolake serve refuses it as it is".into()),
    })
}

fn clock() -> Finding {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(now) if now.as_secs() >= CLOCK_SECONDS_MIN => Good("clock: this machine's is set".into()),
        _ => Fault(
            "this machine's clock is not set, so boards get a wrong time from it".into(),
            "set it, or let NTP set it: timedatectl set-ntp true".into(),
        ),
    }
}

/// Who owns the boards, and how they stand: their owner is asked, so that no link is opened twice.
async fn owner(config: &Config, named: Option<&Path>) -> Vec<Finding> {
    let fault =
        |error: &dyn std::fmt::Display| Fault(format!("boards: {error}"), "then: picolake doctor".into());
    let gateway = match Gateway::to(config, named, false) {
        Ok(gateway) => gateway,
        Err(error) => return vec![fault(&error)],
    };
    let mut findings = vec![match gateway.owner().await {
        Ok(Some(pid)) => {
            Good(format!("owner: another picolake (process {pid}) has the boards, and shares them"))
        }
        Ok(None) => Good("owner: no other picolake has the boards".into()),
        Err(error) => return vec![fault(&error)],
    }];
    match boards::owned(&gateway, None).await {
        Ok(reports) => findings.extend(reports.iter().flat_map(board)),
        Err(error) => findings.push(fault(&error)),
    }
    gateway.end().await;
    findings
}

fn board(report: &Report) -> Vec<Finding> {
    let Report { name, link, seen } = report;
    match seen {
        Err(why) => vec![Fault(
            format!("board {name} at {link}: {}", Printable(why)),
            format!("check power, cable and address; then: picolake run {name} \"get status\""),
        )],
        Ok(seen) => {
            let build = Printable(&seen.build);
            vec![Good(format!("board {name}: {build} answers at {link}")), board_clock(name, seen.utc_us)]
        }
    }
}

fn board_clock(name: &str, utc_us: Option<i64>) -> Finding {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let Some(utc_us) = utc_us else {
        return Note(
            format!("board {name}: its clock is not set; timestamps count from its start"),
            format!(
                "write `writable: true` at it, then: picolake run {name} \"set time = 2026-01-31T12:00:00Z\" (with the time that it is)"
            ),
        );
    };
    let drift = now.abs_diff(Duration::from_micros(u64::try_from(utc_us).unwrap_or(0)));
    if drift > CLOCK_DRIFT_MAX {
        return Note(
            format!("board {name}: its clock is {} s from this machine's", drift.as_secs()),
            "see which of the two is right, and set the other".into(),
        );
    }
    Good(format!("board {name}: its clock is right"))
}

/// Whether `picolake serve` could listen, or does.
async fn port() -> Finding {
    let address = http::ADDRESS_DEFAULT;
    if TcpListener::bind(address).await.is_ok() {
        return Good(format!("HTTP: {address} is free for picolake serve"));
    }
    match tokio::time::timeout(PORT_TIMEOUT, is_picolake(address)).await {
        Ok(Ok(true)) => Good(format!("HTTP: picolake serves on {address}")),
        _ => Note(
            format!("HTTP: another program has {address}"),
            "choose another: picolake serve --http 127.0.0.1:PORT".into(),
        ),
    }
}

async fn is_picolake(address: &str) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = [0; 512];
    let mut length = 0;
    while length < answer.len() {
        match stream.read(&mut answer[length..]).await? {
            0 => break,
            count => length += count,
        }
    }
    Ok(answer.starts_with(b"HTTP/1.1 200") && answer[..length].ends_with(b"ok\n"))
}

fn client(client: Client) -> Finding {
    let title = client.title();
    let install = format!("picolake install {}", client.argument());
    let file = match client.file().and_then(|path| read(&path)) {
        Ok(Some(file)) => file,
        Ok(None) => {
            return Note(
                format!("{title}: not set up for this user"),
                format!("if it is used here: {install}"),
            );
        }
        Err(error) => return Fault(format!("{title}: {error:#}"), format!("then: {install}")),
    };
    let Some(entry) = entry_in(&file) else {
        return Note(format!("{title}: does not start picolake"), install);
    };
    let Some(command) = entry.get("command").and_then(|command| command.as_str()) else {
        return Fault(format!("{title}: its entry has no command"), install);
    };
    let is_ours = std::env::current_exe().is_ok_and(|program| program == Path::new(command));
    match Path::new(command).is_file() {
        false => Fault(format!("{title}: starts {command}, which is not there"), install),
        true if !is_ours => Note(format!("{title}: starts another picolake, {command}"), install),
        true => Good(format!("{title}: starts this picolake")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boards_clock_is_right_wrong_or_not_set() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now_us = i64::try_from(now.as_micros()).unwrap();
        assert!(matches!(board_clock("pump", Some(now_us)), Good(_)));
        for wrong in [None, Some(now_us - 60_000_000), Some(now_us + 60_000_000), Some(-1)] {
            assert!(matches!(board_clock("pump", wrong), Note(..)), "{wrong:?}");
        }
    }

    #[test]
    fn only_a_fault_makes_the_doctor_fail() {
        let note = || Note("a".into(), "b".into());
        assert!(report(&[Good("a".into()), note()]).is_ok());
        let error = report(&[note(), Fault("a".into(), "b".into())]).unwrap_err();
        assert_eq!(error.to_string(), "1 of 2 checks found a fault");
    }
}
