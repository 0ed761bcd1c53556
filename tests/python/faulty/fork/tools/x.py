"""One process becomes two in the middle of a call."""

import os

from toolcrib import tool


@tool
def fork_and_return() -> str:
    """Let both return: only one answer may arrive."""
    child = os.fork()
    return f"child of {os.getppid()}" if child == 0 else "parent"


@tool
async def fork_async() -> str:
    """Let both return, from the event loop."""
    return "child" if os.fork() == 0 else "parent"


@tool
def fork_and_leave() -> str:
    """Let the child end as it should."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "parent"
