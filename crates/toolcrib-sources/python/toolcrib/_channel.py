"""The pipe to the gateway: frames of a 4-byte little-endian length and a JSON object, both ways.

The pipe came as stdin and stdout. It is moved out of the way before any code of the user runs, so that a tool can
print, read and start children without touching it.
"""

import fcntl
import json
import os
import threading

from ._plain import encode_compact, to_bytes

LARGEST = 256 * 1024 * 1024
CHUNK = 64 * 1024
_LONGEST_NUMBER = 4300


def _too_long(digits):
    return int(digits) if len(digits) <= _LONGEST_NUMBER else float("nan")


_decode = json.JSONDecoder().raw_decode
_decode_long_numbers = json.JSONDecoder(parse_int=_too_long).raw_decode


class Incoming:
    """Bytes as they come, frames as they are complete."""

    def __init__(self):
        self._bytes = bytearray()

    def feed(self, data):
        self._bytes += data

    def take(self, data):
        """`feed` and `pop` in one; nearly always the bytes are one whole frame."""
        if not self._bytes and int.from_bytes(data[:4], "little") == len(data) - 4:
            return read_frame(str(data[4:], "utf-8"))
        self.feed(data)
        return self.pop()

    def pop(self):
        """The next whole frame, or None."""
        have = len(self._bytes)
        if have < 4:
            return None
        size = int.from_bytes(self._bytes[:4], "little")
        if size > LARGEST:
            leave(f"toolcrib: a frame of {size} bytes came from the gateway, more than {LARGEST}", 70)
        if have < size + 4:
            return None
        body = str(self._bytes[4 : size + 4], "utf-8")
        del self._bytes[: size + 4]
        return read_frame(body)


def read_frame(body: str) -> dict:
    """The object in a frame. Python refuses very long numbers; then the frame says so in `unreadable`."""
    try:
        return _decode(body)[0]
    except ValueError:
        frame = _decode_long_numbers(body)[0]
        frame["unreadable"] = f"a number has more than {_LONGEST_NUMBER} digits"
        return frame


def write_frame(text: str) -> bytes:
    """The bytes of a frame."""
    body = to_bytes(text)
    return len(body).to_bytes(4, "little") + body


def message(op: str, fields: dict) -> bytes:
    """The bytes of a frame for a small message."""
    return write_frame(encode_compact({"op": op, **fields}))


def leave(words=None, code=0):
    """End the process at once: no clean-up of the user's can be waited for."""
    if words:
        os.write(2, f"{words}\n".encode())
    os._exit(code)


class Channel:
    """The two ends that are ours, used blocking. A forked child has neither."""

    def __init__(self):
        self.forked = False
        self.reading = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
        self.writing = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        self.incoming = Incoming()
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._leave_to_parent)

    def read(self) -> dict:
        """Wait for the next frame. The gateway's end of the pipe being closed is the end of the process."""
        frame = self.incoming.pop()
        while frame is None:
            frame = self.receive()
        return frame

    def receive(self):
        """Read once; a frame if that made one whole."""
        data = os.read(self.reading, CHUNK)
        if not data:
            leave()
        return self.incoming.take(data)

    def send(self, frame: bytes) -> None:
        """Write a whole frame, from whichever thread."""
        if self.forked:
            return
        try:
            with self._lock:
                sent = os.write(self.writing, frame)
                if sent < len(frame):
                    rest = memoryview(frame)[sent:]
                    while rest:
                        rest = rest[os.write(self.writing, rest) :]
        except OSError as error:
            leave(f"toolcrib: the gateway cannot be written to: {error}", 74)

    def _leave_to_parent(self):
        self.forked = True
        os.close(self.reading)
        os.close(self.writing)

    def leave_if_forked(self, error=None):
        """A child that a tool forked and that came back out of the tool ends here, without a word."""
        if not self.forked:
            return
        if isinstance(error, SystemExit):
            os._exit(error.code if isinstance(error.code, int) else int(error.code is not None))
        os._exit(0 if error is None else 1)
