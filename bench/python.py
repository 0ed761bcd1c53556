"""The same function served by toolcrib and by FastMCP, called over HTTP in one run: python.py TOOLCRIB

Both get the same requests from the same client, in turns. Needs PyPI's fastmcp in the Python that runs this.
"""

import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROUNDS, SECONDS = 10, 1.0
TOOL = "from toolcrib import tool\n\n@tool\ndef noop(text: str) -> str:\n    return text\n"
SERVER = """
from fastmcp import FastMCP
server = FastMCP("noop")

@server.tool
def noop(text: str) -> str:
    return text

server.run(transport="http", host="127.0.0.1", port={port}, show_banner=False, log_level="ERROR")
"""


class Caller:
    """One connection with one session, in the era that all of them know; as little work as that can be."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\n"
        )
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        answer = self.send(self.request({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
        session = re.search(rb"(?i)mcp-session-id: *([^\r]+)", answer)[1].decode()
        self.head += f"Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n"
        self.send(self.request({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        params = {"name": "noop", "arguments": {"text": "hello"}}
        self.calling = self.request({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})

    def request(self, message):
        body = json.dumps(message)
        return f"{self.head}Content-Length: {len(body)}\r\n\r\n{body}".encode()

    def send(self, request):
        self.socket.sendall(request)
        answer = b""
        while not whole(answer):
            piece = self.socket.recv(65536)
            if not piece:
                raise OSError("the connection was closed")
            answer += piece
        return answer

    def call(self):
        if b'"hello"' not in self.send(self.calling):
            raise Exception("a wrong answer")


def whole(answer):
    head, found, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    if not found:
        return False
    return len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n")


def calls_a_second(port, callers):
    counts = [0] * callers
    sessions = [Caller(port) for _ in range(callers)]
    sessions[0].call()
    end = time.perf_counter() + SECONDS

    def run(at):
        while time.perf_counter() < end:
            sessions[at].call()
            counts[at] += 1

    threads = [threading.Thread(target=run, args=[at]) for at in range(callers)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return sum(counts) / SECONDS


def wait_for(port):
    for _ in range(300):
        try:
            Caller(port)
            return
        except (OSError, TypeError):
            time.sleep(0.1)
    raise Exception("it does not answer")


def main():
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tools").mkdir()
        (Path(folder) / "tools/t.py").write_text(TOOL)
        ours = subprocess.Popen([sys.argv[1], "serve", folder, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        port = None
        while port is None:
            found = re.search(r"127\.0\.0\.1:(\d+)/mcp", ours.stdout.readline())
            port = found and int(found[1])
        other = port + 1
        theirs = subprocess.Popen([sys.executable, "-c", SERVER.format(port=other)], env=os.environ)
        try:
            wait_for(port)
            wait_for(other)
            for callers in (1, 4):
                pairs = [(calls_a_second(port, callers), calls_a_second(other, callers)) for _ in range(ROUNDS)]
                ratios = sorted(a / b for a, b in pairs)
                a, b = (statistics.median(side) for side in zip(*pairs))
                print(
                    f"{callers} connections: toolcrib {a:.0f}/s, fastmcp {b:.0f}/s; ratio {statistics.median(ratios):.1f} "
                    f"({ratios[0]:.1f} to {ratios[-1]:.1f}; goal: 10)"
                )
        finally:
            for process in (ours, theirs):
                process.terminate()
                process.wait()


main()
