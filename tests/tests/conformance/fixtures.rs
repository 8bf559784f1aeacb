//! What the conformance suite wants a server to have: tools, prompts and resources by fixed names, as JSON. Asks nobody.

use serde_json::{Value, json};

/// A picture of one pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// A sound of one sample.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==";

/// The tools, as `tools/list` gives them.
pub(crate) fn tools() -> Vec<Value> {
    let plain = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_error_handling",
        "test_tool_with_logging",
        "test_logging_tool",
        "test_tool_with_progress",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_missing_capability",
        "test_streaming_elicitation",
        "test_input_required_result_elicitation",
        "test_input_required_result_sampling",
        "test_input_required_result_list_roots",
        "test_input_required_result_request_state",
        "test_input_required_result_multiple_inputs",
        "test_input_required_result_multi_round",
        "test_input_required_result_tampered_state",
        "test_input_required_result_capabilities",
    ];
    let tool = |name: &str, schema: Value| json!({"name": name, "description": "For the conformance suite", "inputSchema": schema});
    let text =
        |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let mut tools: Vec<Value> = plain.map(|name| tool(name, json!({"type": "object"}))).into();
    tools.push(tool("test_sampling", text("prompt")));
    tools.push(tool("test_elicitation", text("message")));
    tools.push(tool("json_schema_2020_12_tool", wide_schema()));
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    tools.push(tool("test_header", json!({"type": "object", "properties": {"region": region}})));
    tools
}

/// A schema with the words of JSON Schema that are easily dropped on the way.
fn wide_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {
            "street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"}
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false
    })
}

/// What a tool answers that answers at once: the result of `tools/call`.
pub(crate) fn answer(tool: &str) -> Option<Value> {
    let text = |text: &str| json!({"type": "text", "text": text});
    let picture = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let resource = |uri: &str, mime: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}});
    let content = match tool {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([picture]),
        "test_audio_content" => json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]),
        "test_embedded_resource" => {
            json!([resource(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content."
            )])
        }
        "test_multiple_content_types" => {
            let data = "{\"test\":\"data\",\"value\":123}";
            let data = resource("test://mixed-content-resource", "application/json", data);
            json!([text("Multiple content types test:"), picture, data])
        }
        "test_error_handling" => {
            let why = "This tool intentionally returns an error for testing";
            return Some(json!({"resultType": "complete", "content": [text(why)], "isError": true}));
        }
        "test_logging_tool" | "test_header" | "json_schema_2020_12_tool" => json!([text("done")]),
        _ => return None,
    };
    Some(json!({"resultType": "complete", "content": content, "isError": false}))
}

/// What a tool tells while it works, before it is done: the notifications, a little apart.
pub(crate) fn notifications(tool: &str, progress_token: Option<&Value>) -> Option<Vec<Value>> {
    let log =
        |text: &str| json!({"method": "notifications/message", "params": {"level": "info", "data": text}});
    match tool {
        "test_tool_with_logging" => Some(
            ["Tool execution started", "Tool processing data", "Tool execution completed"].map(log).into(),
        ),
        "test_tool_with_progress" => {
            let progress = |token: &Value, progress: u32| {
                let params = json!({"progressToken": token, "progress": progress, "total": 100});
                json!({"method": "notifications/progress", "params": params})
            };
            Some(
                progress_token.map_or_else(Vec::new, |token| [0, 50, 100].map(|n| progress(token, n)).into()),
            )
        }
        _ => None,
    }
}

/// What a tool asks of the client while it works (revisions before 2026-07-28), and how its answer begins.
pub(crate) fn question(tool: &str, arguments: &Value) -> Option<(Value, &'static str)> {
    let argument = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    match tool {
        "test_sampling" => Some((sampling(&argument("prompt"), 100), "LLM response: ")),
        "test_elicitation" => {
            let properties = json!({"username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"}});
            Some((elicitation(&argument("message"), &properties, &["username", "email"]), "User response: "))
        }
        "test_elicitation_sep1034_defaults" => {
            let properties = json!({
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true}
            });
            Some((elicitation("Take the defaults", &properties, &[]), "Elicitation completed: "))
        }
        "test_elicitation_sep1330_enums" => {
            let options = ["option1", "option2", "option3"];
            let titled = json!([{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"},
                {"const": "value3", "title": "Third"}]);
            let properties = json!({
                "untitledSingle": {"type": "string", "enum": options},
                "titledSingle": {"type": "string", "oneOf": titled},
                "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"]},
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
                "titledMulti": {"type": "array", "items": {"anyOf": titled}}
            });
            Some((elicitation("Choose", &properties, &[]), "Elicitation completed: "))
        }
        _ => None,
    }
}

/// What a tool or prompt wants to know before it answers (revision 2026-07-28): rounds of questions by key.
pub(crate) fn rounds(name: &str) -> Option<Vec<Value>> {
    let ask = |message: &str, field: &str, kind: &str| {
        elicitation(message, &json!({field: {"type": kind}}), &[field])
    };
    let roots = json!({"method": "roots/list", "params": {}});
    let user_name = json!({"user_name": ask("What is your name?", "name", "string")});
    let rounds = match name {
        "test_streaming_elicitation" | "test_input_required_result_elicitation" => vec![user_name],
        "test_input_required_result_sampling" => {
            vec![json!({"capital_question": sampling("What is the capital of France?", 100)})]
        }
        "test_input_required_result_list_roots" => vec![json!({"client_roots": roots})],
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            vec![json!({"confirm": ask("Please confirm", "ok", "boolean")})]
        }
        "test_input_required_result_multiple_inputs" => vec![json!({
            "user_name": user_name["user_name"],
            "greeting": sampling("Generate a greeting", 50),
            "client_roots": roots
        })],
        "test_input_required_result_multi_round" => vec![
            json!({"step1": ask("Step 1: What is your name?", "name", "string")}),
            json!({"step2": ask("Step 2: What is your favorite color?", "color", "string")}),
        ],
        "test_input_required_result_capabilities" => vec![json!({
            "user_name": user_name["user_name"],
            "greeting": sampling("Generate a greeting", 50)
        })],
        "test_input_required_result_prompt" => {
            vec![json!({"user_context": ask("What context should the prompt use?", "context", "string")})]
        }
        _ => return None,
    };
    Some(rounds)
}

fn elicitation(message: &str, properties: &Value, required: &[&str]) -> Value {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

fn sampling(prompt: &str, tokens_max: u32) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": tokens_max}})
}

/// The prompts, as `prompts/list` gives them.
pub(crate) fn prompts() -> Vec<Value> {
    let prompt = |name: &str, arguments: &[&str]| {
        let arguments: Vec<_> = arguments
            .iter()
            .map(|name| json!({"name": name, "description": "Any text", "required": true}))
            .collect();
        json!({"name": name, "description": "For the conformance suite", "arguments": arguments})
    };
    vec![
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ]
}

/// The messages of a prompt: the result of `prompts/get`.
pub(crate) fn prompt(name: &str, arguments: &Value) -> Option<Value> {
    let argument = |name: &str| arguments[name].as_str().unwrap_or_default();
    let text = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
    let messages = match name {
        "test_simple_prompt" => json!([text("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1"), argument("arg2"));
            json!([text(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))])
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({"uri": argument("resourceUri"), "mimeType": "text/plain",
                "text": "Embedded resource content for testing."});
            let resource = json!({"role": "user", "content": {"type": "resource", "resource": resource}});
            json!([resource, text("Please process the embedded resource above.")])
        }
        "test_prompt_with_image" => {
            let picture = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
            json!([{"role": "user", "content": picture}, text("Please analyze the image above.")])
        }
        "test_input_required_result_prompt" => json!([text("The context is known.")]),
        _ => return None,
    };
    Some(json!({"resultType": "complete", "messages": messages}))
}

/// The resources, as `resources/list` gives them.
pub(crate) fn resources() -> Vec<Value> {
    ["test://static-text", "test://static-binary"]
        .map(|uri| json!({"uri": uri, "name": uri, "description": "For the conformance suite"}))
        .into()
}

/// The template of resources.
pub(crate) fn template() -> Value {
    json!({"uriTemplate": "test://template/{id}/data", "name": "data", "description": "For the conformance suite"})
}

/// What is at an address: the result of `resources/read`.
pub(crate) fn resource(uri: &str) -> Option<Value> {
    let contents = match uri {
        "test://static-text" => json!({"uri": uri, "mimeType": "text/plain",
            "text": "This is the content of the static text resource."}),
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let text = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": text.to_string()})
        }
    };
    Some(json!({"resultType": "complete", "contents": [contents]}))
}
