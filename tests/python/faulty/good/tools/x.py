"""Tools that behave, to lie beside those that do not."""

import asyncio

from toolcrib import tool


@tool
def echo(value: str) -> str:
    """Return what was given."""
    return value


@tool
async def echo_later(value: str) -> str:
    """Return what was given, a little later."""
    await asyncio.sleep(0.01)
    return value
