"""The client of FastMCP. It knows no model: the loop below is the least that an agent on top of it does."""

import asyncio
import json
import urllib.request

from fastmcp import Client
from setting import KEY, MODEL_V1, PROMPT, SERVERS, TURNS, run


def entry(server):
    if "url" in server:
        return {"url": server["url"]}
    return {"command": server["command"], "args": server["args"]}


async def answer_of(client, call):
    function = call["function"]
    done = await client.call_tool(function["name"], json.loads(function["arguments"]), raise_on_error=False)
    return "\n".join(block.text for block in done.content)


def asked(said, tools):
    body = json.dumps({"model": "fake-model", "messages": said, "tools": tools}).encode()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(MODEL_V1 + "/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)["choices"][0]["message"]


async def main():
    said = [{"role": "user", "content": PROMPT}]
    config = {"mcpServers": {server["name"]: entry(server) for server in SERVERS}}
    async with Client(config) as client:
        tools = [
            {"type": "function", "function": {"name": one.name, "description": one.description}}
            for one in await client.list_tools()
        ]
        for _ in range(TURNS):
            message = await asyncio.to_thread(asked, said, tools)
            said.append(message)
            if not message.get("tool_calls"):
                return message["content"]
            for call in message["tool_calls"]:
                try:
                    text = await answer_of(client, call)
                except Exception as failure:
                    text = f"{type(failure).__name__}: {failure}"
                said.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    return "no end"


run(main)
