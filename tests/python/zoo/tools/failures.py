"""What functions raise, and what is said then. The worker is as good as new afterwards."""

import asyncio
import os
import sys
from typing import Optional

from toolcrib import Context, ToolError, tool

from ._show import show


class Silent(Exception):
    """An exception without words."""


class BadText(Exception):
    """An exception that cannot even say what it is."""

    def __str__(self):
        raise RuntimeError("no words")


@tool
def raises_value_error(text: str = "bad value") -> str:
    """Raise what the caller can mend."""
    raise ValueError(text)


@tool
def raises_other() -> str:
    """Raise what he cannot."""
    raise RuntimeError("out of order")


@tool
def raises_silently() -> str:
    """Raise without a message."""
    raise Silent


@tool
def raises_badly() -> str:
    """Raise what cannot be printed."""
    raise BadText


@tool
def raises_key_error() -> str:
    """Look up what is not there."""
    return {}["k"]


@tool
def raises_environment() -> str:
    """Look for a variable that tools do not see."""
    return os.environ["ZOO_NOT_SET"]


@tool
def raises_exit(code: Optional[int] = 1) -> str:
    """Try to end the process."""
    sys.exit(code)


@tool
async def raises_exit_async() -> str:
    """Try to end the process from the event loop."""
    sys.exit(1)


@tool
def raises_interrupt() -> str:
    """Behave as if somebody pressed a key."""
    raise KeyboardInterrupt


@tool
def raises_recursion(depth: int = 0) -> str:
    """Call itself for ever."""
    return raises_recursion(depth + 1)


@tool
def raises_stop() -> str:
    """Raise what means the end of a loop elsewhere."""
    raise StopIteration("over")


@tool
async def raises_cancelled() -> str:
    """Raise as if it had been cancelled, though nobody did."""
    raise asyncio.CancelledError


@tool
async def raises_group() -> str:
    """Raise several at once, or one where Python has no groups."""
    if sys.version_info >= (3, 11):
        raise ExceptionGroup("two things", [ValueError("one"), KeyError("two")])
    raise RuntimeError("two things")


@tool
async def calls_another(ctx: Context, name: str = "takes_str", value: str = "x") -> str:
    """Call another tool and say how that went."""
    try:
        return show(answer=await ctx.call(name, value=value))
    except ToolError as error:
        return show(error=str(error), failed=error.result["isError"])


@tool
def calls_another_plainly(ctx: Context, name: str = "takes_str", value: str = "x") -> str:
    """Call another tool from a plain function."""
    return show(answer=ctx.call(name, {"value": value}))
