//! The bridge as MCP clients see it: the official Rust client over stdio and HTTP, raw pipes, and plain HTTP.

#[path = "mcp/at_once.rs"]
mod at_once;
#[path = "mcp/client.rs"]
mod client;
#[path = "mcp/http.rs"]
mod http;
#[path = "mcp/pipes.rs"]
mod pipes;

use client::{Client, code, data};
use picolake_tests::{picolake, serving::Serving};
use rmcp::{
    model::{
        ArgumentInfo, CompleteRequestParams, CompletionContext, GetPromptRequestParams, ProtocolVersion,
        ReadResourceRequestParams, Reference,
    },
    service::{ClientLifecycleMode, ClientServiceExt as _},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};
use tokio::process::Command;

/// What every client may do, whatever lies between.
async fn session(client: &Client) {
    let tools = client.list_all_tools().await.unwrap();
    for name in ["list_databases", "list_tables", "get_schema", "query", "node_status", "server_info"] {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap_or_else(|| panic!("no tool {name}"));
        assert!(tool.title.is_some() && tool.description.is_some(), "{tool:?}");
        assert_eq!(tool.annotations.as_ref().unwrap().read_only_hint, Some(true), "{name}");
    }
    assert_eq!(data(client, "list_databases", json!({})).await, json!(["demo"]));
    let tables = data(client, "list_tables", json!({"database": "demo"})).await;
    assert!(tables.to_string().contains("power"), "{tables}");
    let columns = data(client, "get_schema", json!({"database": "demo", "table": "power"})).await;
    assert!(columns.as_array().unwrap().iter().any(|column| column["name"] == "voltage"), "{columns}");
    let rows = data(
        client,
        "query",
        json!({"database": "demo", "table": "power", "select": ["voltage"], "limit": 3}),
    )
    .await;
    assert!(rows.as_array().unwrap().len() <= 3, "{rows}");
    let status = data(client, "node_status", json!({})).await;
    assert_eq!(status.as_array().map(Vec::len), Some(3), "{status}");
    let boards = data(client, "list_boards", json!({})).await.to_string();
    assert!(["greenhouse", "pump", "mill"].iter().all(|board| boards.contains(board)), "{boards}");
    assert_eq!(code(client, "no_such_tool", json!({})).await, "unknown_tool");
    assert!(!code(client, "list_tables", json!({})).await.is_empty());
    assert!(
        code(client, "get_schema", json!({"database": "demo", "table": "powr"})).await.contains("unknown")
    );
}

/// Resources, prompts and completions.
async fn surroundings(client: &Client) {
    let resources = client.list_all_resources().await.unwrap();
    for uri in ["picolake://tables/demo/power", "picolake://boards/pump/status"] {
        assert!(resources.iter().any(|resource| resource.uri == uri), "{resources:?}");
        let read = client.read_resource(ReadResourceRequestParams::new(uri)).await.unwrap();
        let text = serde_json::to_value(&read.contents[0]).unwrap()["text"].as_str().unwrap().to_owned();
        serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{uri}: {error}: {text}"));
        assert!(text.contains(if uri.contains("power") { "voltage" } else { "uptime_us" }), "{uri}: {text}");
    }
    for uri in ["picolake://tables/demo/nothing", "picolake://boards/nobody/status", "file:///etc/passwd"] {
        assert!(client.read_resource(ReadResourceRequestParams::new(uri)).await.is_err(), "{uri}");
    }
    assert_eq!(client.list_all_resource_templates().await.unwrap().len(), 3);
    assert!(client.list_all_prompts().await.unwrap().len() >= 3);
    let mut latest = GetPromptRequestParams::new("latest");
    latest.arguments = json!({"database": "demo", "table": "power"}).as_object().cloned();
    let prompt = client.get_prompt(latest).await.unwrap();
    assert!(serde_json::to_string(&prompt.messages).unwrap().contains("`power`"));
    let before =
        [("database", "demo"), ("table", "power")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    for (argument, typed, expected) in [
        ("database", "d", "demo"),
        ("table", "pow", "power"),
        ("column", "volt", "voltage"),
        ("board", "gr", "greenhouse"),
    ] {
        let request = CompleteRequestParams::new(
            Reference::for_prompt("compare_boards"),
            ArgumentInfo::new(argument, typed),
        )
        .with_context(CompletionContext::with_arguments(before.clone().into()));
        let found = client.complete(request).await.unwrap().completion.values;
        assert_eq!(found, [expected], "{argument}");
    }
}

async fn over_stdio(lifecycle: ClientLifecycleMode) -> Client {
    let mut command = Command::from(picolake());
    command.args(["serve", "--stdio", "--demo"]);
    ().serve_with_lifecycle(TokioChildProcess::new(command).unwrap(), lifecycle).await.unwrap()
}

fn newest() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] }
}

#[tokio::test]
async fn a_client_over_stdio_gets_answers() {
    let client = over_stdio(ClientLifecycleMode::Initialize).await;
    let about = client.peer_info().unwrap();
    let about = serde_json::to_value(&*about).unwrap().to_string();
    assert!(about.contains("picolake") && about.contains("2025-11-25"), "{about}");
    session(&client).await;
    surroundings(&client).await;
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn a_client_of_the_newest_revision_over_stdio_gets_answers() {
    let client = over_stdio(newest()).await;
    session(&client).await;
    surroundings(&client).await;
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn a_client_over_http_gets_answers() {
    let server = Serving::start(&["--demo"]);
    let transport = || StreamableHttpClientTransport::from_uri(server.at("/mcp"));
    for lifecycle in [ClientLifecycleMode::Initialize, newest()] {
        let client = ().serve_with_lifecycle(transport(), lifecycle).await.unwrap();
        session(&client).await;
        surroundings(&client).await;
        client.cancel().await.unwrap();
    }
}
