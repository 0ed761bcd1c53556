"""Cannot be parsed: the bracket of line 7 is never closed."""

from toolcrib import tool


@tool
def broken(value: str -> str:
    return value
