"""Results that nobody wants to read."""

from toolcrib import tool

MEGABYTE = 1024 * 1024


@tool
def big_text(megabytes: int = 200) -> str:
    """Return a long text."""
    return "x" * (megabytes * MEGABYTE)


@tool
def big_list(megabytes: int = 200) -> list:
    """Return a long list; its size shows only when it is written."""
    return ["x" * 1024] * (megabytes * 1024)


@tool
def deep(levels: int = 100_000) -> list:
    """Return a list in a list in a list."""
    value = []
    for _ in range(levels):
        value = [value]
    return value
