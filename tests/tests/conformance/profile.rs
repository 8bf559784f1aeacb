//! The server of a session with the suite's fixtures on top: what has one of their names is answered here, everything
//! else by the bridge's own server.
#![expect(deprecated, reason = "the suite tests older revisions of MCP, too")]

use crate::fixtures;
use picolake::mcp::Server;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, CompleteRequestParams,
        CompleteResult, ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
        InputRequiredResult, InputResponses, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, ReadResourceResult, ServerConfig, SetLevelRequestParams,
        SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The pause between two notifications of one call: the suite asks for it.
const NOTIFICATION_INTERVAL: Duration = Duration::from_millis(50);
/// What the addresses of fixtures begin with.
const ADDRESSES: &str = "test://";

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    server: Server,
}

/// What a call that needs the client's input comes to.
enum Round {
    /// Everything is known; these are the last answers.
    Known(InputResponses),
    /// Something is to be asked.
    Ask(InputRequiredResult),
}

impl Profile {
    /// The fixtures on top of this server.
    pub(crate) fn new(server: Server) -> Self {
        Self { server }
    }

    async fn fixture(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool: &str = &request.name;
        if let Some(result) = fixtures::answer(tool) {
            return Ok(typed::<CallToolResult>(result).into());
        }
        let token = context.meta.get_progress_token().map(|token| json!(token));
        if let Some(notes) = fixtures::notifications(tool, token.as_ref()) {
            for note in notes {
                context.peer.send_notification(typed(note)).await.map_err(broken)?;
                tokio::time::sleep(NOTIFICATION_INTERVAL).await;
            }
            return Ok(text("done"));
        }
        if let Some((question, prefix)) = fixtures::question(tool, &json!(request.arguments)) {
            let answer = context.peer.send_request(typed(question)).await.map_err(broken)?;
            let answer = json!(answer);
            // What a model says is wanted as such, what a person chose with all around it.
            let said = answer["content"]["text"].as_str().map_or_else(|| described(&answer), str::to_owned);
            return Ok(text(&format!("{prefix}{said}")));
        }
        if tool == "test_missing_capability" {
            let has_sampling = capabilities(context).sampling.is_some();
            let wanted = ClientCapabilities::builder().enable_sampling().build();
            return if has_sampling {
                Ok(text("done"))
            } else {
                Err(ErrorData::missing_required_client_capability(wanted))
            };
        }
        match round(tool, request.input_responses, request.request_state, &capabilities(context))? {
            Round::Ask(question) => Ok(CallToolResponse::InputRequired(question)),
            Round::Known(answers) => Ok(text(&greeting(&answers))),
        }
    }
}

/// Which round a call of `name` is in. Its state is `NAME/ROUND`: anything else has been tampered with.
fn round(
    name: &str,
    answers: Option<InputResponses>,
    state: Option<String>,
    capabilities: &ClientCapabilities,
) -> Result<Round, ErrorData> {
    let unfit = |why: &str| ErrorData::invalid_params(why.to_owned(), None);
    let rounds = fixtures::rounds(name).ok_or_else(|| unfit("there is no such fixture"))?;
    let mut at = match state {
        None => 0,
        Some(state) => (0..rounds.len())
            .find(|at| state == format!("{name}/{at}"))
            .ok_or_else(|| unfit("requestState is not what this server gave"))?,
    };
    let questions = |at: usize| -> Map<String, Value> { asked(&rounds[at], capabilities) };
    if let Some(answers) = answers
        && questions(at).iter().all(|(key, question)| answers.get(key).is_some_and(|it| fits(question, it)))
    {
        at += 1;
        if at == rounds.len() {
            return Ok(Round::Known(answers));
        }
    }
    let mut ask = json!({"resultType": "input_required", "inputRequests": questions(at)});
    // One fixture of a single question is wanted without a state.
    if !name.ends_with("_elicitation") && !name.ends_with("_prompt") {
        ask["requestState"] = format!("{name}/{at}").into();
    }
    Ok(Round::Ask(typed(ask)))
}

/// The questions that a client can answer.
fn asked(round: &Value, capabilities: &ClientCapabilities) -> Map<String, Value> {
    let can_answer = |question: &Value| match question["method"].as_str() {
        Some("elicitation/create") => capabilities.elicitation.is_some(),
        Some("sampling/createMessage") => capabilities.sampling.is_some(),
        _ => capabilities.roots.is_some(),
    };
    let questions = round.as_object().into_iter().flatten().filter(|(_, question)| can_answer(question));
    questions.map(|(key, question)| (key.clone(), question.clone())).collect()
}

/// Whether an answer has the shape of one to this question.
fn fits(question: &Value, answer: &Value) -> bool {
    match question["method"].as_str() {
        Some("elicitation/create") => {
            let required = question["params"]["requestedSchema"]["required"].as_array();
            let has = |name: &Value| name.as_str().is_some_and(|name| !answer["content"][name].is_null());
            answer["action"] == "accept" && required.is_none_or(|names| names.iter().all(has))
        }
        Some("sampling/createMessage") => answer["content"].is_object(),
        _ => answer["roots"].is_array(),
    }
}

/// Everything that was answered, and the name of who did.
fn greeting(answers: &InputResponses) -> String {
    let name = answers.values().find_map(|answer| answer["content"]["name"].as_str()).unwrap_or("you");
    format!("Hello, {name}! state-ok; answers: {}", json!(answers))
}

fn described(answer: &Value) -> String {
    format!("action={}, content={}", answer["action"].as_str().unwrap_or_default(), answer["content"])
}

fn text(text: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn capabilities(context: &RequestContext<RoleServer>) -> ClientCapabilities {
    context.client_capabilities().unwrap_or_default()
}

fn broken(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// A fixture as rmcp has it.
fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

fn all_typed<T: DeserializeOwned>(values: Vec<Value>) -> impl Iterator<Item = T> {
    values.into_iter().map(typed)
}

impl ServerHandler for Profile {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.server.get_info();
        info.capabilities.logging = Some(Map::new());
        info
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut list = self.server.list_tools(page, context).await?;
        list.tools.extend(all_typed(fixtures::tools()));
        Ok(list)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let fixture = fixtures::tools().into_iter().find(|tool| tool["name"] == name);
        fixture.map(typed).or_else(|| self.server.get_tool(name))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if fixtures::tools().iter().any(|tool| tool["name"] == *request.name) {
            return self.fixture(request, &context).await;
        }
        self.server.call_tool(request, context).await
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut list = self.server.list_resources(page, context).await?;
        list.resources.extend(all_typed(fixtures::resources()));
        Ok(list)
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut list = self.server.list_resource_templates(page, context).await?;
        list.resource_templates.push(typed(fixtures::template()));
        Ok(list)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match fixtures::resource(&request.uri) {
            Some(contents) => Ok(typed::<ReadResourceResult>(contents).into()),
            None => self.server.read_resource(request, context).await,
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if request.uri.starts_with(ADDRESSES) {
            Ok(())
        } else {
            self.server.subscribe(request, context).await
        }
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.server.unsubscribe(request, context).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.server.accepted_subscription_filter(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.server.listen(context).await
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut list = self.server.list_prompts(page, context).await?;
        list.prompts.extend(all_typed(fixtures::prompts()));
        Ok(list)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let Some(messages) = fixtures::prompt(&request.name, &json!(request.arguments)) else {
            return self.server.get_prompt(request, context).await;
        };
        if fixtures::rounds(&request.name).is_some()
            && let Round::Ask(question) =
                round(&request.name, request.input_responses, request.request_state, &capabilities(&context))?
        {
            return Ok(GetPromptResponse::InputRequired(question));
        }
        Ok(typed::<GetPromptResult>(messages).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.server.complete(request, context).await
    }
}
