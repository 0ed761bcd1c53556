"""Calls tools that ask the user, with the official client, which answers: asks.py URL

Prints one JSON object: what each tool answered.
"""

import asyncio
import json
import sys
import warnings

from mcp.client import Client
from mcp_types import ElicitResult

warnings.simplefilter("ignore")


async def elicited(context, params):
    return ElicitResult(action="accept", content={"name": "Ada"})


async def main():
    seen = {}
    async with Client(sys.argv[1], mode="legacy", elicitation_callback=elicited) as client:
        for name in ["ask_async", "ask_plain"]:
            result = await client.call_tool(name, {})
            seen[name] = [bool(result.is_error), result.content[0].text]
    print(json.dumps(seen))


asyncio.run(main())
