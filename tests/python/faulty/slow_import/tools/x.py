"""Takes a minute to import."""

import time

from toolcrib import tool

time.sleep(60)


@tool
def late() -> str:
    """Be late."""
    return "late"
