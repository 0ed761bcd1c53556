"""What tools print: whole lines on stderr, each marked with the call it belongs to.

`\\x1e<call id>\\x1f` before a line names its call. What is written around Python (`os.write`, C, child processes)
goes to the same place without a mark.
"""

import io
import os
import sys
import threading

LONGEST_LINE = 8192
_STDERR = 2


class LineWriter(io.TextIOBase):
    """Stands in for `sys.stdout` and `sys.stderr`. An unfinished line is kept, per call and thread, until it ends."""

    encoding = "utf-8"
    errors = "backslashreplace"
    newlines = None
    line_buffering = True
    mode = "w"

    def __init__(self, name, lock, current_call):
        self.name = name
        self.buffer = _ByteWriter(self)
        self.unfinished = {}
        # May be taken again by the thread that has it: a signal handler may print while a line is being written.
        self._lock = lock
        self._current_call = current_call

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        call = self._current_call()
        # `print` writes a text and its line end apart: two threads must not share half a line.
        key = call, threading.get_ident()
        with self._lock:
            lines = (self.unfinished.pop(key, "") + text).split("\n")
            rest = lines.pop()
            if len(rest) > LONGEST_LINE:
                # All but the last piece is out at once; `_write_lines` cuts it.
                whole = (len(rest) - 1) // LONGEST_LINE * LONGEST_LINE
                lines.append(rest[:whole])
                rest = rest[whole:]
            if rest:
                self.unfinished[key] = rest
            if lines:
                _write_lines(call, lines)
        return len(text)

    def finish(self, call):
        """The call is over: what is unfinished is a line now."""
        with self._lock:
            for key in [key for key in self.unfinished if key[0] == call]:
                _write_lines(call, [self.unfinished.pop(key)])

    def flush(self):
        """Finished lines are out already; half a line would be taken for a whole one."""

    def close(self):
        """A tool that closes `sys.stdout` must not take it from the others."""

    def fileno(self):
        return _STDERR

    def isatty(self):
        return False

    def writable(self):
        return True

    def reconfigure(self, **options):
        """Accepted and without effect: always UTF-8, always by lines."""


class _ByteWriter(io.RawIOBase):
    """`sys.stdout.buffer`: bytes that are taken for UTF-8 text."""

    def __init__(self, writer):
        self._writer = writer

    def write(self, data):
        data = bytes(data)
        self._writer.write(data.decode("utf-8", "backslashreplace"))
        return len(data)

    def writable(self):
        return True

    def fileno(self):
        return _STDERR

    def close(self):
        """As for the writer itself."""


class Output:
    """Both streams, put in place of Python's own."""

    def __init__(self, current_call):
        lock = threading.RLock()
        self._streams = [LineWriter("<stdout>", lock, current_call), LineWriter("<stderr>", lock, current_call)]
        sys.stdout, sys.stderr = self._streams
        sys.__stdout__, sys.__stderr__ = self._streams
        sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)

    def finish(self, call):
        """End the lines a call left unfinished."""
        for stream in self._streams:
            if stream.unfinished:
                stream.finish(call)

    def finish_all(self):
        """End every line, also those of threads that outlived their call."""
        for stream in self._streams:
            for call in list(stream.unfinished):
                stream.finish(call)


def _write_lines(call, lines):
    mark = "" if call is None else f"\x1e{call}\x1f"
    pieces = []
    for line in lines:
        if len(line) <= LONGEST_LINE:
            pieces.append(f"{mark}{line}\n")
            continue
        for at in range(0, len(line), LONGEST_LINE):
            pieces.append(f"{mark}{line[at : at + LONGEST_LINE]}\n")
    rest = memoryview("".join(pieces).encode("utf-8", "backslashreplace"))
    try:
        while rest:
            rest = rest[os.write(_STDERR, rest) :]
    except OSError:
        # Nobody reads the log, or the tool closed it: no reason to fail the call.
        return
