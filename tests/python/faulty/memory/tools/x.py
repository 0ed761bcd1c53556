"""More memory than there is to be had."""

from toolcrib import tool


@tool
def fill(megabytes: int = 1536) -> str:
    """Take it all at once."""
    return f"{len(bytearray(megabytes * 1024 * 1024))} bytes"


@tool
def fill_slowly(megabytes: int = 1536) -> str:
    """Take it piece by piece."""
    pieces = [bytearray(1024 * 1024) for _ in range(megabytes)]
    return f"{len(pieces)} MB"
