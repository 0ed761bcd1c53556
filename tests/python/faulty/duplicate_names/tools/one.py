"""Offers a tool of the same name as its neighbour."""

from toolcrib import tool


@tool
def search(query: str) -> str:
    """Search in the file one."""
    return "one: " + query
