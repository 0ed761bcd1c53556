"""Sleeping past the deadline."""

import signal
import time

from toolcrib import tool


@tool(timeout="1s")
def sleep(seconds: float = 60) -> str:
    """Sleep longer than its own time limit."""
    time.sleep(seconds)
    return f"slept {seconds} s"


@tool(timeout="1s")
def sleep_deaf(seconds: float = 60) -> str:
    """Sleep with every signal blocked that can be."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(seconds)
    return f"slept {seconds} s"
