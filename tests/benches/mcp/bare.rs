//! The floor: a server of bare rmcp with a tool that does nothing and one that returns a text it was given.

use axum::serve::ListenerExt as _;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities,
        ServerConfig,
    },
    service::RequestContext,
    transport::{
        io::stdio_pipes,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};
use std::{error::Error, sync::Arc};

/// Says that this program is to be such a server, over `stdio` or `http`.
pub(crate) const WAY_VARIABLE: &str = "PICOLAKE_BENCH_BARE";
/// The file with the text.
pub(crate) const TEXT_VARIABLE: &str = "PICOLAKE_BENCH_TEXT";

#[derive(Clone)]
struct Bare {
    text: Arc<str>,
}

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = if request.name == "text" { &*self.text } else { "ok" };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// Serves until the client leaves or the process is ended.
pub(crate) async fn serve(way: &str) -> Result<(), Box<dyn Error>> {
    let text = match std::env::var_os(TEXT_VARIABLE) {
        Some(path) => std::fs::read_to_string(path)?,
        None => String::new(),
    };
    let server = Bare { text: text.into() };
    if way == "stdio" {
        server.serve(stdio_pipes()).await?.waiting().await?;
        return Ok(());
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("MCP on http://{}/mcp", listener.local_addr()?);
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        sessions,
        StreamableHttpServerConfig::default(),
    );
    Ok(axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?)
}
