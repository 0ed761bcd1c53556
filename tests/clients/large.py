"""Has a client call a tool with a large result and read one value out of what was stored: large.py CLIENT MODE TARGET...

CLIENT is "python", the official client, or "inspector", the Inspector's command line. MODE is "legacy", "modern" or
"stdio". TARGET is a URL or a command with its arguments. Prints one JSON object: what the client saw.
"""

import asyncio
import json
import sys
import tempfile
import warnings

sys.dont_write_bytecode = True
warnings.simplefilter("ignore")

PATH = "$.rows[31415].name"


def seen(listed, first, link, value, resource):
    return {
        "listed": sorted(listed),
        "summary": first,
        "size": link["size"],
        "mime": link["mimeType"],
        "value": value,
        "resource": resource,
    }


async def python(mode, target):
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters

    server = target[0] if target[0].startswith("http") else StdioServerParameters(command=target[0], args=target[1:])
    era = {"modern": "2026-07-28", "stdio": "auto"}.get(mode, mode)
    async with Client(server, mode=era) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("search_tools", {"query": "rows of the stock list"})
        name = found.structured_content["tools"][0]["name"]
        result = await client.call_tool("call_tool", {"name": name, "arguments": {}})
        links = [part for part in result.content if part.type == "resource_link"]
        link = links[0].model_dump(by_alias=True, mode="json")
        read = await client.call_tool("read_artifact", {"id": str(links[0].uri), "path": PATH})
        resource = await client.read_resource(f"{links[0].uri}?path={PATH}")
        return seen(listed, result.content[0].text, link, read.content[0].text, resource.contents[0].text)


def inspector(mode, target):
    from zoo_inspector import run

    with tempfile.TemporaryDirectory() as home:

        def call(tool, arguments):
            words = ["tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
            return run(target, home, *words)

        listed = [tool["name"] for tool in run(target, home, "tools/list")["tools"]]
        found = call("search_tools", {"query": "rows of the stock list"})
        name = found["structuredContent"]["tools"][0]["name"]
        result = call("call_tool", {"name": name, "arguments": {}})
        link = next(part for part in result["content"] if part["type"] == "resource_link")
        read = call("read_artifact", {"id": link["uri"], "path": PATH})
        resource = run(target, home, "resources/read", "--uri", f"{link['uri']}?path={PATH}")
        text = resource["contents"][0]["text"]
        return seen(listed, result["content"][0]["text"], link, read["content"][0]["text"], text)


def main():
    client, mode, *target = sys.argv[1:]
    print(json.dumps(asyncio.run(python(mode, target)) if client == "python" else inspector(mode, target)))


main()
