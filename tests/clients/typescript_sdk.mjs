// The official TypeScript SDKs as clients of picolake: the first line (`sdk`) and the second (`client`), over stdio,
// streamable HTTP and SSE.
//
// Usage: typescript_sdk.mjs PROGRAM CONFIG BOARD URL
// PROGRAM is picolake; CONFIG names a board `visitor` at the TCP address BOARD, which this script starts and stops;
// URL is that of a running `picolake serve --demo --config CONFIG`.
// Prints one line `ok WAY REVISION` for each way that works; anything else is a failure.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import * as second from "@modelcontextprotocol/client";
import { StdioClientTransport as SecondStdio } from "@modelcontextprotocol/client/stdio";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport as FirstSse } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport as FirstStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as FirstHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const [program, config, address, url] = process.argv.slice(2);
const environment = { ...process.env };
const VISITOR = "picolake://boards/visitor/status";
const WAIT_MS_MAX = 40_000;
const ROWS = 7;

/** Where the two lines differ: how to make a client, connect it, call with options, subscribe, and ask for the revision. */
const FIRST = {
  client: () => new FirstClient({ name: "first", version: "1" }),
  connect: (client, transport) => {
    const set = transport.setProtocolVersion?.bind(transport); // the only place where this line tells the revision
    transport.setProtocolVersion = (revision) => {
      transport.revision = revision;
      set?.(revision);
    };
    return client.connect(transport);
  },
  call: (client, params, options) => client.callTool(params, undefined, options),
  onUpdate: (client, told) => client.setNotificationHandler(ResourceUpdatedNotificationSchema, told),
  revision: (client) => client.transport.revision,
};
const secondLine = (mode) => ({
  client: () => new second.Client({ name: "second", version: "1" }, { versionNegotiation: { mode } }),
  connect: (client, transport) => client.connect(transport),
  call: (client, params, options) => client.callTool(params, options),
  onUpdate: (client, told) => client.setNotificationHandler("notifications/resources/updated", told),
  revision: (client) => client.getNegotiatedProtocolVersion(),
});

/** The board that comes and goes; `stop` returns when it has ended. */
async function visitor() {
  const board = spawn(program, ["sim", "--tcp", address], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(board.stdout, "data");
  assert.match(String(line), /^simulated board on tcp:/);
  return {
    stop: async () => {
      if (board.exitCode === null && board.signalCode === null) {
        const ended = once(board, "exit");
        board.kill("SIGKILL");
        await ended;
      }
    },
  };
}

function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${WAIT_MS_MAX} ms: ${what}`)), WAIT_MS_MAX);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Asks again until the answer is good. */
async function until(what, ask) {
  const end = Date.now() + WAIT_MS_MAX;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    assert(Date.now() < end, `not within ${WAIT_MS_MAX} ms: ${what}`);
    await new Promise((resume) => setTimeout(resume, 20));
  }
}

async function tools(line, client) {
  const texts = async (name, args) => {
    const result = await line.call(client, { name, arguments: args });
    assert(!result.isError, `${name}: ${JSON.stringify(result)}`);
    assert.equal(result.structuredContent, undefined);
    return result.content.map((item) => JSON.parse(item.text));
  };
  const refused = async (name, args) => {
    const result = await line.call(client, { name, arguments: args });
    assert(result.isError, `${name}: ${JSON.stringify(result)}`);
    return JSON.parse(result.content[0].text).code;
  };
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  for (const name of ["list_databases", "list_tables", "get_schema", "query", "node_status"]) {
    assert(names.includes(name), names.join());
  }
  assert.deepEqual((await texts("list_databases", {}))[0], ["demo"]);
  assert(JSON.stringify(await texts("list_tables", { database: "demo" })).includes("power"));
  const [columns] = await texts("get_schema", { database: "demo", table: "power" });
  assert(columns.some((column) => column.name === "voltage"), JSON.stringify(columns));
  assert.equal((await texts("node_status", { boards: ["pump", "mill"] }))[0].length, 2);
  assert.equal(await refused("no_such_tool", {}), "unknown_tool");
  assert.equal(await refused("list_tables", {}), "missing_argument");
  const row = { voltage: 1.5 };
  assert.equal(
    await refused("insert_row", { database: "demo", table: "power", row, boards: ["pump"] }),
    "write_refused",
  );

  const counted = { database: "demo", sql: "SELECT count(*) AS n FROM vibration", boards: ["pump"] };
  await until("enough rows", async () => (await texts("query", counted))[0][0].n >= ROWS);
  const asked = { database: "demo", table: "vibration", select: ["_row_id"], boards: ["pump"] };
  const joined = [];
  let [page, about] = await texts("query", { ...asked, where: `_row_id < ${ROWS}`, limit: 3 });
  while (joined.push(...page.map((found) => found._row_id)) && about?.next_cursor) {
    [page, about] = await texts("query", { cursor: about.next_cursor, limit: 3 });
  }
  assert.deepEqual(joined, [...Array(ROWS).keys()]);

  // A notification and the answer that arrive in one piece are handled in one turn, and then these clients have
  // forgotten who asked before they hand it on: so ask until they are apart.
  const all = { name: "query", arguments: { database: "demo", sql: "SELECT * FROM vibration", limit: 1000 } };
  const told = await until("progress before the answer", async () => {
    const values = [];
    await line.call(client, all, { onprogress: (progress) => values.push(progress.progress) });
    return values.length > 0 && values;
  });
  assert(told.every((value, at) => at === 0 || value > told[at - 1]), `it does not grow: ${told}`);
}

async function surroundings(client) {
  const uris = (await client.listResources()).resources.map((resource) => resource.uri);
  for (const uri of ["picolake://tables/demo/power", "picolake://boards/pump/status"]) {
    assert(uris.includes(uri), uris.join());
    JSON.parse((await client.readResource({ uri })).contents[0].text);
  }
  await assert.rejects(client.readResource({ uri: "file:///etc/passwd" }));
  assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 3);
  assert((await client.listPrompts()).prompts.length >= 3);
  const prompt = await client.getPrompt({ name: "latest", arguments: { database: "demo", table: "power" } });
  assert(prompt.messages[0].content.text.includes("`power`"));
  const completed = await client.complete({
    ref: { type: "ref/prompt", name: "compare_boards" },
    argument: { name: "column", value: "volt" },
    context: { arguments: { database: "demo", table: "power" } },
  });
  assert.deepEqual(completed.completion.values, ["voltage"]);
}

/** A board goes away while it is watched. */
async function subscription(line, client, board) {
  const status = { name: "node_status", arguments: { boards: ["visitor"] } };
  await until("the visitor is up", async () => !(await line.call(client, status)).isError);
  let tell;
  const update = new Promise((resolve) => (tell = resolve));
  line.onUpdate(client, (notification) => tell(notification.params.uri));
  if (line.revision(client) >= "2026-07-28") {
    const listening = await client.listen({ resourceSubscriptions: [VISITOR] });
    await board.stop();
    assert.equal(await within(update, "the board's end is told"), VISITOR);
    await listening.close();
  } else {
    await client.subscribeResource({ uri: VISITOR });
    await board.stop();
    assert.equal(await within(update, "the board's end is told"), VISITOR);
    await client.unsubscribeResource({ uri: VISITOR });
  }
}

async function session(way, line, transport) {
  const board = await visitor();
  try {
    const client = line.client();
    await line.connect(client, transport);
    await tools(line, client);
    await surroundings(client);
    await subscription(line, client, board);
    console.log("ok", way, line.revision(client));
    await client.close();
  } finally {
    await board.stop();
  }
}

const stdio = { command: program, args: ["serve", "--stdio", "--demo", "--config", config], env: environment };
const mcp = new URL(`${url}/mcp`);
const sse = new URL(`${url}/sse`);
const { StreamableHTTPClientTransport: SecondHttp, SSEClientTransport: SecondSse } = second;
await session("sdk-stdio", FIRST, new FirstStdio(stdio));
await session("sdk-http", FIRST, new FirstHttp(mcp));
await session("sdk-sse", FIRST, new FirstSse(sse));
await session("client-stdio", secondLine("auto"), new SecondStdio(stdio));
await session("client-stdio-legacy", secondLine("legacy"), new SecondStdio(stdio));
await session("client-http", secondLine("auto"), new SecondHttp(mcp));
await session("client-http-legacy", secondLine("legacy"), new SecondHttp(mcp));
await session("client-sse", secondLine("legacy"), new SecondSse(sse));
