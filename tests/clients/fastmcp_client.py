"""Drives a gateway with the FastMCP client: fastmcp_client.py [--direct] MODE TARGET...

MODE is "auto", "legacy", "modern", "sse" or "stdio" (the client's own choice of era). TARGET is a URL or
a command with its arguments. With --direct the target is asker.py itself.
Prints one JSON object: what it saw. (Named fastmcp.py, it would be imported in place of the package.)
"""

import asyncio
import sys
import warnings

from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport

sys.dont_write_bytecode = True
import steps

warnings.simplefilter("ignore")
logs = []


async def elicited(message, kind, params, context):
    return kind(name=steps.NAME)


async def sampled(messages, params, context):
    return steps.WORD


async def logged(message):
    logs.append((message.logger, message.data))


def connect(mode, target):
    if mode == "sse":
        transport = SSETransport(target[0])
    elif target[0].startswith("http"):
        transport = StreamableHttpTransport(target[0])
    else:
        transport = StdioTransport(target[0], target[1:], keep_alive=False)
    return Client(
        transport,
        mode={"modern": "2026-07-28", "sse": "auto", "stdio": "auto"}.get(mode, mode),
        elicitation_handler=elicited,
        sampling_handler=sampled,
        roots=[steps.ROOT],
        log_handler=logged,
    )


class Adapter:
    def __init__(self, client):
        self.client = client

    async def tools(self):
        return [tool.name for tool in await self.client.list_tools()]

    async def prompts(self):
        return [prompt.name for prompt in await self.client.list_prompts()]

    async def resources(self):
        return [str(resource.uri) for resource in await self.client.list_resources()]

    async def templates(self):
        return [template.uri_template for template in await self.client.list_resource_templates()]

    async def call(self, name, arguments, progress=None):
        async def step(done, total, message):
            progress(done)

        result = await self.client.call_tool(name, arguments, progress_handler=step if progress else None)
        return result.content[0].text, result.structured_content

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text

    async def read(self, uri):
        content = (await self.client.read_resource(uri))[0]
        return str(content.uri), getattr(content, "text", None)

    async def set_level(self, level):
        opened = self.client.initialize_result
        if opened and opened.protocol_version < "2026" and opened.capabilities.logging:
            await self.client.set_logging_level(level)


async def main():
    direct, mode, target = steps.arguments()
    async with connect(mode, target) as client:
        await steps.drive("fastmcp", mode, direct, Adapter(client), logs)


asyncio.run(main())
