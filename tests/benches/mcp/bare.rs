//! The floor: a server of bare rmcp with a tool that does nothing and one that returns texts it was given.

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

/// Says that this program is to be such a server, over `stdio` or `HTTP`.
pub(crate) const WAY_VARIABLE: &str = "PICOLAKE_BENCH_BARE";
/// The file with the texts: in JSON, a list of answers, each a list of items.
pub(crate) const TEXTS_VARIABLE: &str = "PICOLAKE_BENCH_TEXTS";

#[derive(Clone)]
struct Bare {
    answers: Arc<[Vec<String>]>,
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
        let page = request.arguments.as_ref().and_then(|arguments| arguments.get("page")?.as_u64());
        let answer = page.and_then(|page| self.answers.get(usize::try_from(page).ok()?));
        let content = match answer {
            Some(items) => items.iter().map(ContentBlock::text).collect(),
            None => vec![ContentBlock::text("ok")],
        };
        Ok(CallToolResult::success(content).into())
    }
}

/// Serves until the client leaves or the process is ended.
pub(crate) async fn serve(way: &str) -> Result<(), Box<dyn Error>> {
    let path = std::env::var_os(TEXTS_VARIABLE).ok_or("no file with texts")?;
    let answers: Vec<Vec<String>> = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let server = Bare { answers: answers.into() };
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
