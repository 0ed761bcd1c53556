"""Processes that outlive the call that started them."""

import subprocess

from toolcrib import tool


@tool
def leave_behind() -> str:
    """Start a process and forget it; it holds our standard output open."""
    return str(subprocess.Popen(["sleep", "300"]).pid)


@tool
def leave_behind_elsewhere() -> str:
    """Start a process in a session of its own, out of reach of a signal to our group."""
    return str(subprocess.Popen(["sleep", "300"], start_new_session=True).pid)


@tool
def wait_for_child() -> str:
    """Wait for a child that outlives the deadline."""
    subprocess.run(["sleep", "300"], check=True)
    return "never"
