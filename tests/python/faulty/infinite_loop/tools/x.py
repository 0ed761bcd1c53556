"""Loops that end when somebody interrupts them, or not even then."""

from toolcrib import tool


@tool
def loop() -> str:
    """Never return."""
    while True:
        pass


@tool
def loop_on() -> str:
    """Never return, and swallow whatever is thrown at it."""
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue
