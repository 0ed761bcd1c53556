"""50 MB on standard output, by every road that leads there."""

import os
import subprocess
import sys

from toolcrib import tool

LINE = "x" * 99
LINES = 512 * 1024


@tool
def flood_lines() -> str:
    """Write lines by print."""
    for _ in range(LINES):
        print(LINE)
    return "flooded"


@tool
def flood_one_line() -> str:
    """Write one line that never ends."""
    for _ in range(LINES):
        sys.stdout.write(LINE)
    return "flooded"


@tool
def flood_at_once() -> str:
    """Write one line of 50 MB by one call."""
    sys.stdout.write("x" * 50 * 1024 * 1024)
    return "flooded"


@tool
def flood_raw() -> str:
    """Write to descriptor 1, past Python's files."""
    block = (LINE + "\n").encode() * 1024
    for _ in range(LINES // 1024):
        os.write(1, block)
    return "flooded"


@tool
def flood_child() -> str:
    """Let a child process write."""
    command = f"import sys\nfor _ in range({LINES}): sys.stdout.write({LINE!r} + chr(10))"
    subprocess.run([sys.executable, "-I", "-c", command], check=True)
    return "flooded"


@tool
def flood_errors() -> str:
    """Write to standard error, with bytes that are no text."""
    block = (b"\xff\xfe\x00\x1e\x1f" + LINE.encode() + b"\n") * 1024
    for _ in range(LINES // 1024):
        os.write(2, block)
    return "flooded"


@tool
def read_input() -> str:
    """Read standard input, which is nobody's."""
    return f"read {sys.stdin.read()!r}, {os.read(0, 10)!r}"
