"""What a worker costs, as ratios of one run: `python tests/python/measure.py`. No test depends on it.

calls: no-op calls of a plain tool a second, as a part of what a bare loop manages that reads frames and writes
them back. start: CPU time to the first answer, against `import asyncio, json, inspect`. files: CPU time to load
and describe 200 tool files, against plain Python importing them.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import kit

ROUNDS = 7
CALLS = 20_000
FILES = 200
IMPORTS = "import asyncio, json, inspect"
# One read and one write for each frame: nothing written in Python echoes frames faster.
ECHO = """
import os
while True:
    data = os.read(0, 65536)
    if not data: break
    size = int.from_bytes(data[:4], "little")
    while len(data) < size + 4: data += os.read(0, 65536)
    os.write(1, len(data[4:]).to_bytes(4, "little") + data[4:])
"""
FILE = '''"""File number {n}."""
from typing import List, Optional
from toolcrib import tool


@tool
def search_{n}(query: str, limit: int = 10, tags: Optional[List[str]] = None) -> str:
    """Search number {n}.

    Args:
        query: what to look for
        limit: how many at most
        tags: only with these tags
    """
    return f"{{query}} {{limit}} {{tags}}"


@tool(name="count_{n}")
def count(path: str, recursive: bool = False) -> dict:
    """Count number {n}."""
    return {{"path": path, "recursive": recursive}}


def helper(items):
    found = []
    for item in items:
        if item not in found:
            found.append(item)
    return found
'''


def children_cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cpu_of(run):
    before = children_cpu()
    run()
    return children_cpu() - before


def calls_per_second(reading, writing, frame):
    began = time.perf_counter()
    for _ in range(CALLS):
        os.write(writing, frame)
        data = os.read(reading, 65536)
        while len(data) < int.from_bytes(data[:4], "little") + 4:
            data += os.read(reading, 65536)
    return CALLS / (time.perf_counter() - began)


def measure_calls(folder):
    workspace = make_workspace(os.path.join(folder, "one"), 0)
    with open(os.path.join(workspace, "tools", "t.py"), "w") as file:
        file.write("from toolcrib import tool\n@tool\ndef noop(a: str): return a\n")
    frame = kit.as_frame({"op": "call", "id": 7, "tool": "noop", "args": {"a": "x"}, "group": "guest", "progress": False})
    worker = kit.Worker(workspace).ready()
    echo = subprocess.Popen([sys.executable, "-I", "-c", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    ratios, rates = [], []
    for _ in range(ROUNDS):
        bare = calls_per_second(echo.stdout.fileno(), echo.stdin.fileno(), frame)
        ours = calls_per_second(worker.process.stdout.fileno(), worker.process.stdin.fileno(), frame)
        ratios.append(ours / bare)
        rates.append(ours)
    worker.close()
    echo.stdin.close()
    echo.wait()
    echo.stdout.close()
    return ratios, f"{statistics.median(rates):.0f} calls/s"


def make_workspace(workspace, count):
    os.makedirs(os.path.join(workspace, "tools"))
    for number in range(count):
        with open(os.path.join(workspace, "tools", f"t{number:03}.py"), "w") as file:
            file.write(FILE.format(n=number))
    return workspace


def run_worker(workspace, cache, tool, describe):
    names = sorted(os.listdir(os.path.join(workspace, "tools")))
    files = [{"file": f"tools/{name}", "path": os.path.join(workspace, "tools", name), "source": None} for name in names]
    start = {"op": "start", "mode": "sync", "workspace": workspace, "schema": "seed", "files": files, "mods": [],
             "memory": None, "cpu": None, "max_result": 1 << 20, "list": describe}  # fmt: skip
    call = {"op": "call", "id": 1, "tool": tool, "args": {"query": "q", "limit": 3}, "group": "guest", "progress": False}
    frames = kit.as_frame(start) + kit.as_frame(call) + kit.as_frame({"op": "end"})
    command = [sys.executable, "-I", "-X", f"pycache_prefix={cache}", "-c", kit.START]
    done = subprocess.run(command, input=frames, capture_output=True)
    assert b'"op":"result"' in done.stdout, done.stderr


def measure_start(folder):
    workspace = make_workspace(os.path.join(folder, "start"), 1)
    cache = os.path.join(folder, "cache")
    run_worker(workspace, cache, "search_0", False)
    ratios = []
    for _ in range(ROUNDS):
        bare = cpu_of(lambda: subprocess.run([sys.executable, "-c", IMPORTS], check=True))
        ours = cpu_of(lambda: run_worker(workspace, cache, "search_0", False))
        ratios.append(ours / bare)
    return ratios, f"{ours * 1000:.0f} ms against {bare * 1000:.0f} ms in the last round"


def measure_files(folder):
    workspace = make_workspace(os.path.join(folder, "files"), FILES)
    cache = os.path.join(folder, "cache")
    modules = ", ".join(f"tools.t{number:03}" for number in range(FILES))
    code = f"import sys; sys.path[:0] = [{kit.PACKAGE!r}, {workspace!r}]; import {modules}"
    plain = [sys.executable, "-I", "-X", f"pycache_prefix={cache}", "-c", code]
    subprocess.run(plain, check=True)
    run_worker(workspace, cache, "search_0", True)
    ratios = []
    for _ in range(ROUNDS):
        bare = cpu_of(lambda: subprocess.run(plain, check=True))
        ours = cpu_of(lambda: run_worker(workspace, cache, "search_0", True))
        ratios.append(ours / bare)
    return ratios, f"{ours * 1000:.0f} ms against {bare * 1000:.0f} ms in the last round"


def main():
    folder = os.path.realpath(tempfile.mkdtemp(prefix="measure-"))
    try:
        for name, measure in (("calls", measure_calls), ("start", measure_start), ("files", measure_files)):
            ratios, words = measure(folder)
            low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
            print(f"{name}: {middle:.2f} ({low:.2f} to {high:.2f}, {len(ratios)} rounds; {words})")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
