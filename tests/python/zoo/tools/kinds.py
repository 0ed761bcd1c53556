"""Functions that wait, and functions that say how far they are."""

import asyncio

from toolcrib import Context, Progress, tool

from ._show import show


@tool
async def waits(value: str, seconds: float = 0.01) -> str:
    """Wait a little."""
    await asyncio.sleep(seconds)
    return show(value=value)


@tool
def counts(to: int):
    """Yield progress and, last, the result."""
    for number in range(to):
        yield Progress(number + 1, to, f"number {number + 1}")
    yield {"counted": to}


@tool
async def counts_slowly(to: int):
    """Yield texts; the last is the result."""
    for number in range(to):
        await asyncio.sleep(0)
        yield f"step {number}"


@tool
def yields_nothing():
    """Yield progress and no result."""
    yield Progress(1)


@tool
def returns_from_generator():
    """Yield on the way, and return at the end."""
    yield "on the way"
    return "at the end"


@tool
async def fails_half_way(at: int = 1):
    """Yield, and raise afterwards."""
    yield Progress(at)
    raise ValueError(f"stopped at {at}")


@tool
def reports(ctx: Context) -> str:
    """Report by the context, in a plain function."""
    ctx.progress(1, 2, "half")
    ctx.log("notice", {"a": 1}, logger="zoo")
    ctx.debug("d")
    ctx.warning("w")
    ctx.error("e")
    ctx.progress(2, 2)
    return "reported"


@tool
async def side_by_side(count: int) -> int:
    """Do several things at once."""
    return sum(await asyncio.gather(*(asyncio.sleep(0.01, number) for number in range(count))))
