"""Ending the process in the middle of a call."""

import os
import signal

from toolcrib import tool


@tool
def leave(code: int = 3) -> str:
    """End the process at once."""
    os._exit(code)


@tool
async def leave_async(code: int = 3) -> str:
    """End the process at once, with other calls in flight."""
    os._exit(code)


@tool
def kill() -> str:
    """Send itself the signal that cannot be caught."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"
