//! The MCP inspector's command line as a client, over stdio, streamable HTTP and SSE, where Node can be had.

use picolake_tests::{
    clients::{self, Node},
    program,
    serving::Serving,
};
use serde_json::{Value, json};
use std::path::Path;

const INSPECTOR: &str = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";

/// One server as the inspector reaches it.
struct Inspected<'a> {
    node: &'a Node,
    /// A home of its own: the inspector keeps a catalogue of servers there.
    home: tempfile::TempDir,
    /// The command line or the address of the server.
    target: Vec<String>,
}

impl Inspected<'_> {
    /// What the inspector prints; or why it failed, and what it printed then.
    fn asks(&self, arguments: &[&str]) -> Result<Value, String> {
        let mut inspector = self.node.package(INSPECTOR);
        inspector.arg("--cli").args(&self.target).args(arguments);
        inspector.env("HOME", self.home.path()).env("PICOLAKE_RUNTIME_DIR", self.home.path());
        let text = clients::printed(inspector)?;
        serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))
    }

    fn lists(&self, what: &str) -> Vec<String> {
        let listed = self.asks(&["--method", &format!("{what}/list")]).unwrap();
        let key = if what == "resources" { "uri" } else { "name" };
        let items = listed[what].as_array().unwrap_or_else(|| panic!("no {what}: {listed}"));
        items.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn the_inspector_lists_and_calls_on_every_transport() {
    let node = match Node::find() {
        Ok(node) => node,
        Err(why) => return clients::skip("Node with the MCP inspector", &why),
    };
    let server = Serving::start(&["--demo"]);
    let stdio = [program().to_str().unwrap(), "serve", "--stdio", "--demo"].map(String::from);
    for target in [stdio.to_vec(), vec![server.at("/mcp")], vec![server.at("/sse")]] {
        let inspected = Inspected { node: &node, home: tempfile::tempdir().unwrap(), target };
        lists(&inspected);
        calls(&inspected);
    }
}

fn lists(inspected: &Inspected<'_>) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join("tools_list.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
    // `--strict` fails where a schema of a tool is not understood by every model's vendor.
    let tools = inspected.asks(&["--method", "tools/list", "--strict"]).unwrap();
    assert_eq!(tools["tools"], golden["tools"], "{:?}", inspected.target);
    assert_eq!(
        inspected.lists("resources"),
        [
            "picolake://tables/demo/environment",
            "picolake://tables/demo/power",
            "picolake://tables/demo/vibration",
            "picolake://boards/greenhouse/status",
            "picolake://boards/pump/status",
            "picolake://boards/mill/status"
        ]
    );
    assert_eq!(
        inspected.lists("prompts"),
        ["explore", "field_health", "latest", "compare_boards", "find_unusual"]
    );
}

fn calls(inspected: &Inspected<'_>) {
    let call = |tool: &str, arguments: &[&str]| {
        let method = ["--method", "tools/call", "--tool-name", tool, "--tool-arg"];
        inspected.asks(&[&method, arguments].concat())
    };
    let tables = call("list_tables", &["database=demo"]).unwrap();
    let text = "[\"environment\",\"power\",\"vibration\"]";
    assert_eq!(tables, json!({"content": [{"type": "text", "text": text}], "isError": false}));
    let counted =
        call("query", &["database=demo", "sql=SELECT count(*) AS n FROM power", "boards=[\"pump\"]"]);
    let counted = counted.unwrap()["content"][0]["text"].as_str().unwrap().to_owned();
    let rows: Value = serde_json::from_str(&counted).unwrap();
    assert!(rows[0]["n"].is_u64() && rows.as_array().unwrap().len() == 1, "{rows}");
    let failed = call("get_schema", &["database=demo", "table=powr"]).unwrap_err();
    assert!(failed.contains("unknown_table") && failed.contains("tool_is_error"), "{failed}");
}
