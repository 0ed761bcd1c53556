"""A worker as a real process over real pipes, and a workspace on disk to run it in."""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.normpath(os.path.join(HERE, "..", "..", "crates", "toolcrib-sources", "python"))
if PACKAGE not in sys.path:
    sys.path.insert(0, PACKAGE)

PATIENCE = 30
START = f"import sys; sys.path.insert(0, {PACKAGE!r}); from toolcrib._worker import main; main()"


class Worker:
    """The gateway's end of the pipes. Every frame that came is kept, in order, in `frames`."""

    def __init__(self, workspace, cache=None, **start):
        self.workspace = workspace
        self.cache = cache or tempfile.mkdtemp(prefix="pycache-")
        command = [sys.executable, "-I", "-X", f"pycache_prefix={self.cache}", "-c", START]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
        self.stderr = b""
        self.frames = []
        self._bytes = b""
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.send(op="start", **self._start(start))

    def _start(self, start):
        tools = os.path.join(self.workspace, "tools")
        names = sorted(os.listdir(tools)) if os.path.isdir(tools) else []
        files = [
            {"file": f"tools/{name}", "path": os.path.join(tools, name), "source": None}
            for name in names
            if name.endswith(".py") and not name.startswith("_")
        ]
        plain = {"mode": "sync", "workspace": self.workspace, "schema": "seed", "files": files, "mods": [], "memory": None}
        return {**plain, "cpu": None, "max_result": 1 << 20, "list": True, **start}

    def _listen(self):
        while True:
            data = os.read(self.process.stderr.fileno(), 65536)
            if not data:
                return
            self.stderr += data

    def send(self, **frame):
        self.write(as_frame(frame))

    def write(self, data):
        view = memoryview(data)
        while view:
            view = view[os.write(self.process.stdin.fileno(), view) :]

    def next(self, patience=PATIENCE):
        """The next frame; its text is kept in `raw`."""
        deadline = time.monotonic() + patience
        while len(self._bytes) < 4 or len(self._bytes) < 4 + int.from_bytes(self._bytes[:4], "little"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise AssertionError(f"no frame in {patience} s; stderr: {self.stderr.decode()}")
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            if not data:
                raise AssertionError(f"the worker went away; stderr: {self.stderr.decode()}")
            self._bytes += data
        size = int.from_bytes(self._bytes[:4], "little")
        self.raw = self._bytes[4 : 4 + size].decode()
        self._bytes = self._bytes[4 + size :]
        frame = json.loads(self.raw)
        self.frames.append(frame)
        return frame

    def silent(self, seconds):
        return not self._bytes and not select.select([self.process.stdout], [], [], seconds)[0]

    def until(self, op, **fields):
        """Read on to a frame of this kind and return it."""
        while True:
            frame = self.next()
            if frame["op"] == op and all(frame.get(key) == value for key, value in fields.items()):
                return frame

    def ready(self):
        self.until("ready")
        return self

    def call(self, tool, call_id=7, progress=True, **args):
        self.start_call(tool, call_id, progress, **args)
        return self.until("result", id=call_id)["result"]

    def start_call(self, tool, call_id=7, progress=True, **args):
        self.send(op="call", id=call_id, tool=tool, args=args, group="guest", progress=progress)

    def text(self, tool, **args):
        """The text of a call that went well, or its error in front of an exclamation mark."""
        result = self.call(tool, **args)
        text = "\n".join(part.get("text", part["type"]) for part in result["content"])
        return f"!{text}" if result.get("isError") else text

    def printed(self, wanted):
        """Wait until stderr holds these bytes, and return all of it."""
        deadline = time.monotonic() + PATIENCE
        while wanted not in self.stderr:
            if time.monotonic() > deadline:
                raise AssertionError(f"{wanted!r} is not in {self.stderr!r}")
            time.sleep(0.005)
        return self.stderr

    def wait(self):
        code = self.process.wait(PATIENCE)
        self._listener.join(PATIENCE)
        return code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        shutil.rmtree(self.cache, ignore_errors=True)


class WorkspaceCase(unittest.TestCase):
    """Tests that write a workspace and start workers in it."""

    def setUp(self):
        self.workspace = os.path.realpath(tempfile.mkdtemp(prefix="workspace-"))
        self.addCleanup(shutil.rmtree, self.workspace, ignore_errors=True)

    def write(self, path, text):
        path = os.path.join(self.workspace, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return path

    def worker(self, **start):
        worker = Worker(self.workspace, **start)
        self.addCleanup(worker.close)
        return worker

    def serve(self, text, **start):
        """A worker that has loaded one file, `tools/t.py`."""
        self.write("tools/t.py", text)
        return self.worker(**start).ready()


def as_frame(frame):
    body = json.dumps(frame).encode()
    return len(body).to_bytes(4, "little") + body
