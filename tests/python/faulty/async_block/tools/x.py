"""An async tool that blocks the event loop, and one that suffers from it."""

import time

from toolcrib import tool


@tool
async def block(seconds: float = 60) -> str:
    """Sleep without awaiting, so that nothing else runs in this process."""
    time.sleep(seconds)
    return f"blocked for {seconds} s"


@tool
async def wait() -> str:
    """Return at once, if it is let."""
    return "not blocked"
