//! `POST /query` for programs that are not MCP clients: a SELECT in, lines of JSON out as the rows come.

use super::Shared;
use crate::{
    mcp::Metrics,
    tools::{Context, RowStream, ToolError},
};
use axum::{
    Json,
    body::Body,
    extract::{State, rejection::JsonRejection},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How long a stream may take as a whole. It is longer than a call's: its client sees that rows come.
const STREAM_TIMEOUT: Duration = Duration::from_secs(600);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    database: String,
    sql: String,
    /// None asks every board that has the table.
    boards: Option<Vec<String>>,
}

/// A stream that is being read. Dropping it, as happens when the client goes away, cancels the query.
struct Streaming {
    rows: RowStream,
    rows_total: u64,
    metrics: Arc<Metrics>,
    _cancel: DropGuard,
}

/// Answers `{"type":"data",…}` lines, then one of type `complete` or `error`.
pub(super) async fn stream(
    State(shared): State<Shared>,
    question: Result<Json<Question>, JsonRejection>,
) -> Response {
    let Question { database, sql, boards } = match question {
        Ok(Json(question)) => question,
        Err(rejection) => {
            let error = json!({
                "type": "error", "code": "bad_request", "error": rejection.body_text(),
                "suggested_action": "send {\"database\": \"…\", \"sql\": \"SELECT …\"} as application/json, \"boards\": [\"…\"] too to ask only these",
            });
            return lines(rejection.status(), Body::from(line(&error)));
        }
    };
    let cancelled = shared.stop.child_token();
    let cancel = CancellationToken::clone(&cancelled).drop_guard();
    let context = Context {
        deadline: Instant::now() + STREAM_TIMEOUT,
        cancelled,
        progress: None,
        client: "query".into(),
    };
    let tools = &shared.server.tools;
    let rows = match tools.stream(Some(&database), &sql, boards.as_deref(), context).await {
        Ok(rows) => rows,
        Err(error) => {
            let is_busy = error.code == "busy";
            let status = if is_busy { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::BAD_REQUEST };
            return lines(status, Body::from(error_line(&error)));
        }
    };
    let metrics = Arc::clone(&shared.server.metrics);
    let streaming = Streaming { rows, rows_total: 0, metrics, _cancel: cancel };
    lines(StatusCode::OK, Body::from_stream(stream::unfold(Some(streaming), next)))
}

async fn next(streaming: Option<Streaming>) -> Option<(Result<String, Infallible>, Option<Streaming>)> {
    let mut streaming = streaming?;
    Some(match streaming.rows.next().await {
        Ok(Some(batch)) => {
            streaming.rows_total += batch.row_count;
            streaming.metrics.query_rows(batch.row_count);
            // The rows are JSON already: put together as text, not parsed again.
            let data =
                format!("{{\"type\":\"data\",\"rows\":{},\"row_count\":{}}}\n", batch.rows, batch.row_count);
            (Ok(data), Some(streaming))
        }
        Ok(None) => {
            let mut end = json!({"type": "complete", "total_rows": streaming.rows_total});
            if streaming.rows.rows_lost() > 0 {
                end["rows_lost"] = streaming.rows.rows_lost().into(); // overwritten on boards before they could be sent
            }
            (Ok(line(&end)), None)
        }
        Err(error) => (Ok(error_line(&error)), None),
    })
}

fn lines(status: StatusCode, body: Body) -> Response {
    (status, [(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response()
}

/// The error's own fields, after its type.
fn error_line(error: &ToolError) -> String {
    let mut fields = Map::new();
    fields.insert("type".into(), "error".into());
    if let Value::Object(more) = error.to_json() {
        fields.extend(more);
    }
    line(&Value::Object(fields))
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}
