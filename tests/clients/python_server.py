"""The official Python SDK as a server of the same rows, from SQLite: what picolake is measured beside.

Usage: python_server.py stdio|http DATABASE
DATABASE has a table vibration(row_id, timestamp, x, y, z). Over HTTP the first line says where it listens.
"""

import json
import socket
import sqlite3
import sys

import uvicorn
from mcp.server import MCPServer
from mcp.types import TextContent

way, path = sys.argv[1:]
database = sqlite3.connect(path, check_same_thread=False)
database.row_factory = sqlite3.Row
server = MCPServer("python", log_level="ERROR")
compact = {"separators": (",", ":"), "ensure_ascii": False}


@server.tool(structured_output=False)
def list_databases() -> str:
    return '["demo"]'


@server.tool(structured_output=False)
def query(limit: int = 100, after: int = -1) -> list[TextContent]:
    """So many rows behind this one, and where to go on."""
    sql = "SELECT row_id, timestamp, x, y, z FROM vibration WHERE row_id > ? ORDER BY row_id LIMIT ?"
    rows = [dict(row) for row in database.execute(sql, (after, limit))]
    last = rows[-1]["row_id"] if rows else None
    for row in rows:
        del row["row_id"]
    notes = {"row_count": len(rows), "next": last}
    return [TextContent(type="text", text=json.dumps(item, **compact)) for item in (rows, notes)]


if way == "stdio":
    server.run("stdio")
else:
    listener = socket.socket()
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # before it says so: who connects now waits until it is served
    print(f"MCP on http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])
