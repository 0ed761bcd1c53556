"""Drives a gateway with the official Python client: python_client.py MODE TARGET...

MODE is a protocol mode of the client ("auto", "legacy", "2026-07-28"), "sse" or "stdio".
Prints one JSON object: what it saw.
"""

import asyncio
import json
import sys

from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client


def connect(mode, target):
    if mode == "sse":
        return Client(sse_client(target[0]))
    if mode == "stdio":
        return Client(stdio_client(StdioServerParameters(command=target[0], args=target[1:])))
    return Client(target[0], mode=mode)


async def main():
    mode, *target = sys.argv[1:]
    seen = []

    async def progress(done, total, message):
        seen.append(done)

    async with connect(mode, target) as client:
        names = []
        # A gateway on standard input answers before its servers are up.
        for _ in range(300):
            names = sorted(tool.name for tool in (await client.list_tools()).tools)
            if {"mcp__everything__echo", "mcp__almanac__moon_phase"} <= set(names):
                break
            await asyncio.sleep(0.2)
        echo = await client.call_tool("mcp__everything__echo", {"message": "hi"})
        moon = await client.call_tool("mcp__almanac__moon_phase", {"date": "2026-11-24"})
        bad = await client.call_tool("mcp__almanac__days_between", {"from": "2026-01-01"})
        work = await client.call_tool(
            "mcp__everything__trigger_long_running_operation",
            {"duration": 1, "steps": 2},
            progress_callback=progress,
        )
        prompts = sorted(prompt.name for prompt in (await client.list_prompts()).prompts)
        prompt = await client.get_prompt("mcp__everything__args_prompt", {"city": "Oslo"})
        resources = (await client.list_resources()).resources
        read = await client.read_resource(resources[0].uri)
        templates = (await client.list_resource_templates()).resource_templates
        dynamic = await client.read_resource("demo://resource/dynamic/text/1")
        unknown = None
        try:
            await client.call_tool("mcp__almanac__nothing", {})
        except Exception as error:
            unknown = str(error)
        print(json.dumps({
            "tools": len(names),
            "echo": echo.content[0].text,
            "moon": moon.structured_content,
            "bad": [bad.is_error, bad.content[0].text],
            "work": work.is_error,
            "progress": seen,
            "unknown": unknown,
            "prompts": prompts,
            "prompt": prompt.messages[0].content.text,
            "resources": len(resources),
            "read": str(read.contents[0].uri) == str(resources[0].uri),
            "templates": len(templates),
            "dynamic": dynamic.contents[0].text,
        }))


asyncio.run(main())
