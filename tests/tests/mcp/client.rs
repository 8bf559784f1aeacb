//! Tools called through the official client.

use rmcp::{RoleClient, model::CallToolRequestParams, service::RunningService};
use serde_json::Value;

pub(crate) type Client = RunningService<RoleClient, ()>;

/// What a tool answers: its texts, and whether they are an error.
pub(crate) async fn call(client: &Client, tool: &str, arguments: Value) -> (Vec<String>, bool) {
    let mut request = CallToolRequestParams::new(tool.to_owned());
    request.arguments = arguments.as_object().cloned();
    let result = client.call_tool(request).await.unwrap();
    assert!(result.structured_content.is_none(), "some clients show a model nothing else");
    let texts = result.content.iter().map(|item| item.as_text().expect("only texts").text.clone()).collect();
    (texts, result.is_error.unwrap_or(false))
}

/// The items of an answer that must be good.
pub(crate) async fn items(client: &Client, tool: &str, arguments: Value) -> Vec<Value> {
    let (texts, is_error) = call(client, tool, arguments.clone()).await;
    assert!(!is_error && !texts.is_empty(), "{tool} {arguments}: {texts:?}");
    let parse = |text: &String| {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{tool} {arguments}: {error}: {text}"))
    };
    texts.iter().map(parse).collect()
}

/// The data of an answer that must be good.
pub(crate) async fn data(client: &Client, tool: &str, arguments: Value) -> Value {
    items(client, tool, arguments).await.swap_remove(0)
}

/// The code of an answer that must be an error.
pub(crate) async fn code(client: &Client, tool: &str, arguments: Value) -> String {
    let (texts, is_error) = call(client, tool, arguments.clone()).await;
    assert!(is_error && texts.len() == 1, "{tool} {arguments}: {texts:?}");
    let error: Value = serde_json::from_str(&texts[0]).unwrap();
    assert!(error["error"].is_string() && error["suggested_action"].is_string(), "{error}");
    error["code"].as_str().unwrap().to_owned()
}
