"""Drives a gateway with the official Python client: python.py [--direct] MODE TARGET...

MODE is "auto", "legacy", "modern" (or a version, "2026-07-28"), "sse" or "stdio" (the client's own choice
of era). TARGET is a URL or a command with its arguments. With --direct the target is asker.py itself.
Prints one JSON object: what it saw.
"""

import asyncio
import sys
import warnings

from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent

sys.dont_write_bytecode = True
import steps

warnings.simplefilter("ignore")
logs = []


async def elicited(context, params):
    return ElicitResult(action="accept", content={"name": steps.NAME})


async def sampled(context, params):
    return CreateMessageResult(role="assistant", model="none", content=TextContent(text=steps.WORD))


async def roots(context):
    return ListRootsResult(roots=[Root(uri=steps.ROOT)])


async def logged(params):
    logs.append((params.logger, params.data))


def connect(mode, target):
    if mode == "sse":
        server = sse_client(target[0])
    elif target[0].startswith("http"):
        server = target[0]
    else:
        server = StdioServerParameters(command=target[0], args=target[1:])
    era = {"modern": "2026-07-28", "sse": "auto", "stdio": "auto"}.get(mode, mode)
    return Client(
        server,
        mode=era,
        elicitation_callback=elicited,
        sampling_callback=sampled,
        list_roots_callback=roots,
        logging_callback=logged,
        log_level="info",
    )


class Adapter:
    def __init__(self, client):
        self.client = client

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def prompts(self):
        return [prompt.name for prompt in (await self.client.list_prompts()).prompts]

    async def resources(self):
        return [resource.uri for resource in (await self.client.list_resources()).resources]

    async def templates(self):
        return [one.uri_template for one in (await self.client.list_resource_templates()).resource_templates]

    async def call(self, name, arguments, progress=None):
        async def step(done, total, message):
            progress(done)

        result = await self.client.call_tool(name, arguments, progress_callback=step if progress else None)
        if result.is_error:
            raise Exception(result.content[0].text)
        return result.content[0].text, result.structured_content

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text

    async def read(self, uri):
        content = (await self.client.read_resource(uri)).contents[0]
        return content.uri, getattr(content, "text", None)

    async def set_level(self, level):
        if self.client.protocol_version < "2026" and self.client.server_capabilities.logging:
            await self.client.set_logging_level(level)


async def main():
    direct, mode, target = steps.arguments()
    async with connect(mode, target) as client:
        await steps.drive("python", mode, direct, Adapter(client), logs)


asyncio.run(main())
