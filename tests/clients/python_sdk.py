"""The official Python SDK as a client of picolake: stdio, streamable HTTP and SSE.

Usage: python_sdk.py PROGRAM URL
PROGRAM is the picolake to start over stdio; URL is that of a running `picolake serve --demo`.
Prints one line `ok TRANSPORT REVISION` for each way that works; anything else is a failure.
"""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


async def data(client, tool, arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, (tool, result)
    assert result.structured_content is None, result
    return json.loads(result.content[0].text)


async def session(name, transport, **options):
    async with Client(transport, **options) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"list_databases", "list_tables", "get_schema", "query", "node_status"} <= tools, tools
        assert await data(client, "list_databases", {}) == ["demo"]
        assert "power" in json.dumps(await data(client, "list_tables", {"database": "demo"}))
        columns = await data(client, "get_schema", {"database": "demo", "table": "power"})
        assert "voltage" in [column["name"] for column in columns], columns
        sql = "SELECT count(*) AS n FROM power"
        rows = await data(client, "query", {"database": "demo", "sql": sql, "boards": ["pump"]})
        assert len(rows) == 1 and rows[0]["n"] >= 0, rows
        assert len(await data(client, "node_status", {})) == 3
        failed = await client.call_tool("no_such_tool", {})
        assert failed.is_error and json.loads(failed.content[0].text)["code"] == "unknown_tool", failed
        uris = [str(resource.uri) for resource in (await client.list_resources()).resources]
        assert "picolake://boards/pump/status" in uris, uris
        await client.read_resource("picolake://tables/demo/power")
        assert (await client.list_prompts()).prompts
        await client.get_prompt("latest", {"database": "demo", "table": "power"})
        print("ok", name, client.protocol_version, flush=True)


async def main(program, url):
    stdio = lambda: stdio_client(StdioServerParameters(command=program, args=["serve", "--stdio", "--demo"]))
    await session("stdio", stdio())
    await session("stdio-legacy", stdio(), mode="legacy")
    await session("http", streamable_http_client(url + "/mcp"))
    await session("http-legacy", streamable_http_client(url + "/mcp"), mode="legacy")
    await session("sse", sse_client(url + "/sse"), mode="legacy")


asyncio.run(main(*sys.argv[1:]))
