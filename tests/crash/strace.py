"""What a program wrote to one folder, and when it was safe: read from strace's own lines.

Every line of the trace is a moment. A call that strace reports in two lines, because another thread came
between, begins at the first and ends at the second. `-xx` prints all strings as hex, so that bytes are
exact and no quote or bracket inside a string can mislead the patterns below.

What cannot be followed (a mapping for writing, a shortened string, an odd call) is an error, never a guess.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import namedtuple

NEVER = float("inf")
FOLDER = -1  # the folder itself, among the numbers that stand for files
# A question mark before a call: not every processor has it.
CALLS = (
    "openat,?open,?creat,write,pwrite64,writev,pwritev,?pwritev2,lseek,ftruncate,?truncate,fallocate,fsync,fdatasync,"
    "?unlink,unlinkat,?rename,?renameat,renameat2,mmap,?copy_file_range,?sendfile"
)
# `start` and `end` are lines of the trace; `safe` is the line after which a power cut no longer undoes it.
Op = namedtuple("Op", "start end kind file at data safe", defaults=(0, b"", NEVER))
Sync = namedtuple("Sync", "start end file good")
Ack = namedtuple("Ack", "start seq id")

LINE = re.compile(r"^(\d+)\s+(.*)$")
CALL = re.compile(r"^(\w+)\((.*)\)\s+= (-?\d+|\?)(.*)$")
HANDLE = re.compile(r"^(\d+)<([^>]*)>(\(deleted\))?")
STRING = re.compile(r'"([^"]*)"(\.\.\.)?')


class Unfit(Exception):
    """The run or its trace cannot be judged."""


def unhex(text):
    return bytes.fromhex(text.replace("\\x", ""))


class Reader:
    """Turns strace's lines into operations on the files of one folder."""

    def __init__(self, folder, base):
        self.folder, self.ops, self.acks, self.syncs = folder, [], [], []
        self.names = {name: number for number, name in enumerate(base)}
        self.sizes = {number: len(data) for number, data in enumerate(base.values())}
        self.positions = {}  # by descriptor, for plain `write`; None means append
        self.begun = {}  # by thread: a call that strace reports in two lines
        self.lines = 0

    def inside(self, path):
        """The name of a file of the store, or None for any other path."""
        folder, name = os.path.split(os.path.normpath(path))
        return None if folder != self.folder or name.endswith("-shm") else name

    def feed(self, line):
        self.lines += 1
        match = LINE.match(line)
        if not match:
            return
        thread, text = match.groups()
        start = self.lines
        if text.endswith("<unfinished ...>"):
            self.begun[thread] = (start, text[: -len("<unfinished ...>")])
            return
        if text.startswith("<... "):
            start, head = self.begun.pop(thread, (start, ""))
            text = head + text.split(" resumed>", 1)[1]
        match = CALL.match(text)
        if match:
            call, args, result, tail = match.groups()
            self.take(start, call, args, -1 if result == "?" else int(result), tail)

    def add(self, start, kind, file, at=0, data=b""):
        self.ops.append(Op(start, self.lines, kind, file, at, data))

    def take(self, start, call, args, result, tail):
        if call in ("openat", "open", "creat"):
            return self.opened(args, result, tail)
        if call in ("unlink", "unlinkat", "rename", "renameat", "renameat2", "truncate"):
            return self.named(start, call, [unhex(text).decode() for text, _ in STRING.findall(args)], args, result)
        handle = HANDLE.match(args)
        if call == "mmap":
            shared = re.search(r"PROT_WRITE.*MAP_SHARED\w*, \d+<([^>]*)>", args)
            if shared and self.inside(unhex(shared[1]).decode()):
                raise Unfit("the store is mapped for writing: strace cannot see what is written")
            return None
        if not handle:
            return None
        descriptor, path = int(handle[1]), unhex(handle[2]).decode()
        if "write" in call and descriptor == 1:
            return self.said(start, args)
        if call in ("fsync", "fdatasync") and path == self.folder:
            return self.syncs.append(Sync(start, self.lines, FOLDER, result == 0))
        name = self.inside(path)
        if name is None or handle[3]:
            return None
        if call in ("copy_file_range", "sendfile") or name not in self.names:
            raise Unfit(f"cannot follow {call} on `{name}`")
        return self.on_file(start, call, self.names[name], descriptor, args, result)

    def on_file(self, start, call, file, descriptor, args, result):
        if call in ("fsync", "fdatasync"):
            self.syncs.append(Sync(start, self.lines, file, result == 0))
        elif result < 0:
            pass
        elif call == "lseek":
            self.positions[descriptor] = result
        elif call == "ftruncate":
            self.cut(start, file, int(args.rsplit(", ", 1)[1]))
        elif call == "fallocate":
            _, mode, offset, length = args.rsplit(", ", 3)
            if mode != "0":
                raise Unfit(f"fallocate with mode {mode} on the store is not modelled")
            self.cut(start, file, max(self.sizes[file], int(offset) + int(length)))
        else:
            self.wrote(start, call, file, descriptor, args, result)

    def wrote(self, start, call, file, descriptor, args, result):
        strings = STRING.findall(args)
        if any(more for _, more in strings):
            raise Unfit("strace shortened a write")
        data = b"".join(unhex(text) for text, _ in strings)[:result]
        if call.startswith("p"):
            at = int(args.split(", ")[-2 if call == "pwritev2" else -1])
        else:
            at = self.positions.get(descriptor, 0)
            at = self.sizes[file] if at is None else at
            if self.positions.get(descriptor, 0) is not None:
                self.positions[descriptor] = at + result
        self.sizes[file] = max(self.sizes[file], at + result)
        self.add(start, "write", file, at, data)

    def cut(self, start, file, size):
        self.sizes[file] = size
        self.add(start, "size", file, size)

    def opened(self, args, result, tail):
        path = re.match(r"^<([^>]*)>", tail)
        name = path and self.inside(unhex(path[1]).decode())
        if result < 0 or not name:
            return
        if name not in self.names:
            if "O_CREAT" not in args:
                return
            self.names[name] = len(self.sizes)
            self.sizes[self.names[name]] = 0
            self.add(self.lines, "create", self.names[name], data=name)
        elif "O_TRUNC" in args:
            self.cut(self.lines, self.names[name], 0)
        self.positions[result] = None if "O_APPEND" in args else 0

    def named(self, start, call, paths, args, result):
        names = [self.inside(path) for path in paths]
        if result < 0 or names[0] not in self.names:
            return
        if call == "truncate":
            self.cut(start, self.names[names[0]], int(args.rsplit(", ", 1)[1]))
        elif call.startswith("unlink"):
            self.names.pop(names[0])
            self.add(start, "remove", FOLDER, data=names[0])
        else:
            self.names[names[1]] = self.names.pop(names[0])
            self.add(start, "rename", FOLDER, data=tuple(names))

    def said(self, start, args):
        for line in b"".join(unhex(text) for text, _ in STRING.findall(args)).decode().splitlines():
            if line.startswith("acked "):
                # Counted from its beginning: who reads it may act on it before the call returns.
                self.acks.append(Ack(start, *line.split()[1:3]))

    def finished(self):
        """The operations in order, each with the line from which it is safe."""
        ordered = sorted(self.ops, key=lambda op: op.start)
        return [op._replace(safe=self.safe_from(op)) for op in ordered]

    def safe_from(self, op):
        """When the first sync that covers `op` returned. If that one failed, no later sync makes it good."""
        covering = [sync for sync in self.syncs if sync.file == op.file and sync.start > op.end]
        first = min(covering, key=lambda sync: sync.end, default=None)
        return first.end if first and first.good else NEVER


def record(command, folder, base, inject=None):
    """Runs `command`; returns what it did to `folder`, which holds the files `base`, and what it said."""
    log = folder + ".strace"
    strace = ["strace", "-f", "-y", "-xx", "-s", str(1 << 24), "-o", log, "-e", "trace=" + CALLS, "-e", "signal=none"]
    strace += ["-e", "inject=" + inject] if inject else []
    run = subprocess.Popen(strace + command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, errors = run.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)  # killing strace alone would set the program free
        run.communicate()
        raise Unfit("`append` did not end within 120 s") from None
    said = out.splitlines()
    if run.returncode or "done" not in said:
        raise Unfit(f"`append` ended with {run.returncode}: {said[-1:]} {errors[-500:]}")
    reader = Reader(folder, base)
    with open(log, encoding="ascii", errors="replace") as lines:
        for line in lines:
            reader.feed(line)
    os.unlink(log)
    if sorted(f"acked {ack.seq} {ack.id}" for ack in reader.acks) != sorted(line for line in said if line.startswith("acked ")):
        raise Unfit("the trace and the output disagree about what was acknowledged")
    return reader, said


def check_strace():
    works = shutil.which("strace") and subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode == 0
    if not works:
        print("NOT RUN: strace is not here or may not trace")
        sys.exit(77)
