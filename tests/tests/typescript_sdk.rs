//! The official TypeScript SDKs of MCP as clients, over stdio, streamable HTTP and SSE, where Node can be had.

use picolake_tests::{
    clients::{self, Node},
    program,
    serving::Serving,
};
use std::{fs, net::TcpListener};

#[test]
fn the_official_typescript_clients_get_answers_on_every_transport() {
    let node = match Node::find() {
        Ok(node) => node,
        Err(why) => return clients::skip("Node with the TypeScript SDKs", &why),
    };
    let folder = tempfile::tempdir().unwrap();
    // Where the script starts and stops a board; it is free again when this line has ended.
    let board = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let config = folder.path().join("picolake.yaml");
    fs::write(
        &config,
        format!("boards:\n- {{name: visitor, link: 'tcp:{board}'}}\narchive: {{enabled: false}}\n"),
    )
    .unwrap();
    let server = Serving::start(&["--demo", "--config", config.to_str().unwrap()]);
    let mut client = node.script("typescript_sdk.mjs");
    client.arg(program()).arg(&config).arg(board).arg(&server.url);
    client.env("PICOLAKE_RUNTIME_DIR", folder.path());
    let text = clients::printed(client).unwrap();
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        [
            "ok sdk-stdio 2025-11-25",
            "ok sdk-http 2025-11-25",
            "ok sdk-sse 2025-11-25",
            "ok client-stdio 2026-07-28",
            "ok client-stdio-legacy 2025-11-25",
            "ok client-http 2026-07-28",
            "ok client-http-legacy 2025-11-25",
            "ok client-sse 2025-11-25",
        ]
    );
}
