"""Crashes below Python while it is imported."""

import ctypes

from toolcrib import tool


@tool
def never() -> str:
    """Never be seen."""
    return "never"


ctypes.string_at(0)
