//! MCP messages as lines of JSON over any reader and writer. A line that is no message is answered as such, and the
//! session goes on. Knows no tool.

use rmcp::{
    RoleServer,
    model::{ClientRequest, GetMeta as _, JsonRpcMessage},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde_json::{Value, json};
use std::{io, sync::Arc};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader},
    sync::{Mutex, Semaphore},
};

/// Bytes of one message; a longer line is thrown away as it comes.
pub(super) const LINE_BYTES_MAX: usize = 16 << 20;
/// Lines that were no messages and whose answers are not written yet: who does not read them is read no further.
const REFUSALS_WAITING_MAX: usize = 16;
/// Some editors put it before the first line of a file; it is no part of JSON.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// JSON-RPC's codes for what is no JSON, and for JSON that is no request.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;

/// One message a line, in both directions.
pub(super) struct Lines<R, W> {
    input: BufReader<R>,
    /// What has come of the present line.
    line: Vec<u8>,
    line_bytes_max: usize,
    /// The rest of the present line is thrown away.
    is_discarding: bool,
    has_ended: bool,
    /// Whether the client has begun as the revisions of MCP say; before, only requests make sense.
    has_begun: bool,
    /// What is to be said of a line that was no message.
    refusal: Option<Value>,
    refusals: Arc<Semaphore>,
    output: Arc<Mutex<Option<W>>>,
}

/// What came.
enum Read {
    Line,
    TooLong,
    End,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(input: R, output: W) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            line_bytes_max: LINE_BYTES_MAX,
            is_discarding: false,
            has_ended: false,
            has_begun: false,
            refusal: None,
            refusals: Arc::new(Semaphore::new(REFUSALS_WAITING_MAX)),
            output: Arc::new(Mutex::new(Some(output))),
        }
    }

    /// Reads on in the present line, which has not more bytes than are allowed. Dropping this loses nothing: what came
    /// is kept in the same step in which it is taken.
    async fn read_line(&mut self) -> io::Result<Read> {
        loop {
            let came = self.input.fill_buf().await?;
            if came.is_empty() {
                // The last line of a file need not end with a newline.
                return Ok(if self.line.is_empty() { Read::End } else { Read::Line });
            }
            let newline = came.iter().position(|byte| *byte == b'\n');
            let taken = newline.map_or(came.len(), |at| at + 1);
            let was_discarding = self.is_discarding;
            if !was_discarding && self.line.len().saturating_add(taken) > self.line_bytes_max {
                self.line = Vec::new(); // not cleared: its memory is not needed again
                self.is_discarding = true;
            }
            if !self.is_discarding {
                self.line.extend_from_slice(&came[..taken]);
            }
            self.input.consume(taken);
            let is_news = self.is_discarding && !was_discarding;
            if newline.is_some() && !std::mem::take(&mut self.is_discarding) {
                return Ok(Read::Line);
            }
            if is_news {
                return Ok(Read::TooLong);
            }
        }
    }

    /// Writes what is to be said of a line that was no message. It is written by a task of its own, because whoever
    /// receives may be dropped at any time, and half a line must not be written.
    async fn refuse(&mut self) {
        let Ok(permit) = Arc::clone(&self.refusals).acquire_owned().await else { return };
        let Some(refusal) = self.refusal.take() else { return };
        let output = Arc::clone(&self.output);
        tokio::spawn(async move {
            if let Err(error) = write_line(&output, refusal.to_string().into_bytes()).await {
                tracing::debug!(%error, "a client does not hear that its line was no message");
            }
            drop(permit);
        });
    }

    /// The message of the line, if it is one for the server.
    fn message(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let line = self.line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.line).trim_ascii();
        let parsed = if line.is_empty() { None } else { Some(parse(line)) };
        self.line.clear();
        match parsed? {
            Ok(message) => self.is_in_time(&message).then_some(message),
            Err(refusal) => {
                self.refusal = refusal;
                None
            }
        }
    }

    /// Before a client has begun, rmcp takes anything but a request for the end of the session.
    fn is_in_time(&mut self, message: &RxJsonRpcMessage<RoleServer>) -> bool {
        if let JsonRpcMessage::Request(request) = message {
            self.has_begun |= matches!(request.request, ClientRequest::InitializeRequest(_))
                || request.request.get_meta().protocol_version().is_some();
            return true;
        }
        if !self.has_begun {
            tracing::debug!("a message that came before the session began is not looked at");
        }
        self.has_begun
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let output = Arc::clone(&self.output);
        async move { write_line(&output, serde_json::to_vec(&message)?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if self.refusal.is_some() {
                self.refuse().await;
            }
            if self.has_ended {
                // Every line that was no message has been told so.
                let all = u32::try_from(REFUSALS_WAITING_MAX).unwrap_or(u32::MAX);
                drop(self.refusals.acquire_many(all).await);
                return None;
            }
            match self.read_line().await {
                Ok(Read::Line) => {
                    if let Some(message) = self.message() {
                        return Some(message);
                    }
                }
                Ok(Read::TooLong) => self.refusal = Some(too_long(self.line_bytes_max)),
                Ok(Read::End) => self.has_ended = true,
                Err(error) => {
                    tracing::warn!(%error, "the input broke");
                    self.has_ended = true;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        drop(self.output.lock().await.take());
        Ok(())
    }
}

async fn write_line<W: AsyncWrite + Unpin>(output: &Mutex<Option<W>>, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut output = output.lock().await;
    let Some(output) = output.as_mut() else { return Err(io::ErrorKind::NotConnected.into()) };
    output.write_all(&line).await?;
    output.flush().await
}

/// A message, or what is to be said of what is none; a notification is never answered.
fn parse(line: &[u8]) -> Result<RxJsonRpcMessage<RoleServer>, Option<Value>> {
    let error = match serde_json::from_slice(line) {
        Ok(message) => return Ok(message),
        Err(error) => error,
    };
    match serde_json::from_slice::<Value>(line) {
        Err(error) => {
            tracing::debug!(%error, "a line is no JSON");
            Err(Some(refusal(PARSE_ERROR, &format!("this line is no JSON: {error}"), Value::Null)))
        }
        Ok(Value::Array(_)) => {
            let why = "a line is one message, not a batch; send each message in a line of its own";
            Err(Some(refusal(INVALID_REQUEST, why, Value::Null)))
        }
        Ok(Value::Object(fields)) if fields.get("method").is_some_and(Value::is_string) => {
            tracing::debug!(%error, "a line is no message");
            let Some(id) = fields.get("id") else { return Err(None) };
            let id = if id.is_string() || id.is_number() { id.clone() } else { Value::Null };
            let why = "this is no request of MCP: jsonrpc is \"2.0\", id a text or a whole number, params an object";
            Err(Some(refusal(INVALID_REQUEST, why, id)))
        }
        Ok(_) => {
            let why = "this is no message of JSON-RPC 2.0: an object with jsonrpc, id, method and params";
            Err(Some(refusal(INVALID_REQUEST, why, Value::Null)))
        }
    }
}

/// What is to be said of a line that has more bytes than a message may have.
pub(crate) fn too_long(bytes_max: usize) -> Value {
    refusal(PARSE_ERROR, &format!("a message has at most {bytes_max} bytes"), Value::Null)
}

/// As JSON-RPC 2.0 has it: where the id is not known, it is null.
fn refusal(code: i32, message: &str, id: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: &str = r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;

    /// Whether a ping is received behind these bytes, and what was answered to them.
    async fn answers(bytes: &[u8], line_bytes_max: usize) -> (bool, Vec<Value>) {
        let mut input = bytes.to_vec();
        input.extend_from_slice(PING.as_bytes());
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let mut lines = Lines::new(&input[..], theirs);
        lines.line_bytes_max = line_bytes_max;
        let mut has_pinged = false;
        while let Some(message) = lines.receive().await {
            has_pinged |= matches!(message, JsonRpcMessage::Request(_));
        }
        lines.close().await.unwrap();
        let mut answered = Vec::new();
        let mut text = BufReader::new(ours).lines();
        while let Some(line) = text.next_line().await.unwrap() {
            answered.push(serde_json::from_str(&line).unwrap());
        }
        (has_pinged, answered)
    }

    #[tokio::test]
    async fn what_is_no_message_is_answered_with_its_code_and_the_next_line_is_read() {
        for (line, code, id) in [
            (&b"hello"[..], PARSE_ERROR, Value::Null),
            (b"{\"jsonrpc\":", PARSE_ERROR, Value::Null),
            (b"\xff\xfe{}", PARSE_ERROR, Value::Null),
            (b"{\"a\":\"\xc3\x28\"}", PARSE_ERROR, Value::Null),
            (b"[]", INVALID_REQUEST, Value::Null),
            (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, INVALID_REQUEST, Value::Null),
            (b"7", INVALID_REQUEST, Value::Null),
            (b"{}", INVALID_REQUEST, Value::Null),
            (br#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, INVALID_REQUEST, json!("a")),
            (br#"{"id":4,"method":"ping"}"#, INVALID_REQUEST, json!(4)),
            (br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, INVALID_REQUEST, Value::Null),
        ] {
            let (has_pinged, answered) = answers(&[line, b"\n"].concat(), LINE_BYTES_MAX).await;
            let shown = String::from_utf8_lossy(line);
            assert!(has_pinged, "{shown}");
            assert_eq!(answered.len(), 1, "{shown}: {answered:?}");
            assert_eq!((&answered[0]["error"]["code"], &answered[0]["id"]), (&json!(code), &id), "{shown}");
            assert!(answered[0].as_object().unwrap().contains_key("id"), "{shown}");
        }
    }

    #[tokio::test]
    async fn what_needs_no_answer_has_none() {
        for line in [
            "",
            "\r",
            " ",
            r#"{"jsonrpc":"2.0","method":"no/such"}"#,
            r#"{"jsonrpc":"2.0","method":"x","params":7}"#,
        ] {
            assert_eq!(
                answers(format!("{line}\n").as_bytes(), LINE_BYTES_MAX).await,
                (true, vec![]),
                "{line}"
            );
        }
        let bom = [BYTE_ORDER_MARK, b"\n"].concat();
        assert_eq!(answers(&bom, LINE_BYTES_MAX).await, (true, vec![]));
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_told_once_and_thrown_away() {
        const MAX: usize = 100;
        for bytes in [MAX, MAX + 1, 20_000] {
            let (has_pinged, answered) = answers(&[&vec![b'x'; bytes][..], b"\n"].concat(), MAX).await;
            assert!(has_pinged && answered.len() == 1, "{bytes}: {answered:?}");
            assert!(answered[0]["error"]["message"].as_str().unwrap().contains("at most 100 bytes"));
        }
        let (has_pinged, answered) = answers(&[&vec![b' '; MAX - 1][..], b"\n"].concat(), MAX).await;
        assert!(has_pinged && answered.is_empty(), "{answered:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_no_answers_is_read_no_further() {
        let (mut client, input) = tokio::io::duplex(64);
        let (_unread, output) = tokio::io::duplex(64);
        let mut lines = Lines::new(input, output);
        let receiving = tokio::spawn(async move { lines.receive().await.is_some() });
        let garbage = b"no message\n".repeat(10_000);
        let written =
            tokio::time::timeout(std::time::Duration::from_secs(60), client.write_all(&garbage)).await;
        assert!(written.is_err(), "ten thousand answers would wait");
        receiving.abort();
    }
}
