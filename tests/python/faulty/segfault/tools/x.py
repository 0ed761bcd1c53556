"""A crash below Python."""

import ctypes

from toolcrib import tool


@tool
def crash() -> str:
    """Read address 0."""
    return ctypes.string_at(0).decode()
