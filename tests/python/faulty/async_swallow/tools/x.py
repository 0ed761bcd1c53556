"""An async tool that will not be cancelled."""

import asyncio

from toolcrib import tool


@tool
async def swallow() -> str:
    """Go on waiting after it was cancelled."""
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


@tool
async def swallow_once() -> str:
    """Answer a cancel with a result."""
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        return "cancelled, and answered all the same"
    return "slept"
