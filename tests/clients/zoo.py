"""Lists and calls the zoo of Python tools with the official client: zoo.py MODE TARGET...

MODE and TARGET are those of python.py. Prints one JSON object: how many tools there are, how many calls of
tests/python/zoo_calls.json were made, and which did not come out as written there.
"""

import asyncio
import json
import sys
import warnings
from pathlib import Path

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

warnings.simplefilter("ignore")
CALLS = Path(__file__).resolve().parents[1] / "python/zoo_calls.json"


def fault(result, expect):
    if bool(result.is_error) != expect.get("isError", False):
        return "isError"
    text = "\n".join(part.text for part in result.content if part.type == "text")
    if "text" in expect and text != expect["text"]:
        return text
    if "structured" in expect and result.structured_content != expect["structured"]:
        return result.structured_content
    return None


async def main():
    mode, *target = sys.argv[1:]
    server = target[0] if target[0].startswith("http") else StdioServerParameters(command=target[0], args=target[1:])
    era = {"modern": "2026-07-28", "stdio": "auto"}.get(mode, mode)
    async with Client(server, mode=era) as client:
        known = {tool.name for tool in (await client.list_tools()).tools}
        made, wrong = 0, []
        for call in json.loads(CALLS.read_text()):
            if call["tool"] not in known or "by" in call:
                continue
            made += 1
            found = fault(await client.call_tool(call["tool"], call["arguments"]), call["expect"])
            if found is not None:
                wrong.append([call["tool"], call["arguments"], found])
    print(json.dumps({"tools": len(known), "calls": made, "wrong": wrong}))


asyncio.run(main())
