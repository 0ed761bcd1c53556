"""Ends the process while it is imported."""

import os

from toolcrib import tool


@tool
def never() -> str:
    """Never be seen."""
    return "never"


os._exit(3)
