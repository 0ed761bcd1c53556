#!/usr/bin/env python3
"""Disks that fail: syncs that report an error, a disk that is full, bits that turned.

    faults.py PROBE [--only syncs|full-disk|flips] [--seed S] [--flips 1000]

syncs      From its 30th sync on, the disk answers EIO: nothing more may be acknowledged, and a restart finds
           all that was. Then syncs that fail once or a few times: acknowledgements
           come again without a restart, and none is lost, even if the power fails later. That last part is
           strict: what a failed sync covered lies in the page cache, so that a reopened store reads it as
           good, while no later sync ever writes it (replay.py says more).
full-disk  A tmpfs of 24 MB is filled until appends fail; when space returns they must succeed within 5 s.
flips      One bit of a closed store is turned, a thousand times over. `read` may never give out what was not
           written, nor less than was written and call it whole; `verify` must report each flip that matters.
           What matters is decided apart from the probe, by reading every table of the copy with Python's SQLite.

Exit: 0 as it should be, 1 not, 2 the run itself went wrong, 77 strace cannot work here.
"""

import argparse
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, namedtuple
from concurrent.futures import ThreadPoolExecutor

import replay
from strace import NEVER, Unfit, check_strace

FULL = 24 << 20
BALLAST = 14 << 20
HEALS_WITHIN = 5.0
ENDS = (0, 1, 2, 3, 4)  # any other exit is a crash, be it a signal or a panic

# `when` is strace's: which syncs of a thread fail. Each thread has its own count, so after a restart they are good
# for a while. The bursts last into closing and reopening the store; with a large `checkpoint`, what such a
# reopening took for good stays in the log for long.
Plan = namedtuple("Plan", "when callers count checkpoint runs")
PLANS = [Plan("30+", 1, 90, 40, 1), Plan("30+", 6, 200, 40, 1), Plan("30", 6, 200, 40, 1), Plan("31", 6, 200, 40, 1)]
PLANS += [Plan(burst, 6, 600, checkpoint, 1) for burst in ("30..31", "30..34", "36..42") for checkpoint in (40, 1000)]
PLANS += [Plan("30+", 6, 120, 1000, 2)]


def syncs(options, work):
    faults = []
    for number, plan in enumerate(PLANS):
        began = time.monotonic()
        folder = os.path.join(work, f"syncs-{number}")
        name = f"syncs, EIO at {plan.when}, {plan.callers} callers, checkpoint {plan.checkpoint}" + ", restarted" * (plan.runs - 1)
        args = ["--callers", str(plan.callers), "--checkpoint", str(plan.checkpoint)]
        inject = f"fdatasync,fsync:error=EIO:when={plan.when}"
        trace = replay.run_traced(options.probe, folder, plan.count, replay.with_defaults(args), inject, runs=plan.runs)
        failed = [sync for sync in trace.syncs if not sync.good]
        if not failed:
            raise Unfit(f"{name}: no sync failed")
        later = [ack for ack in trace.acks if ack.start > failed[0].end]
        wrong = []
        if len(unfounded(trace, failed[0])) > plan.callers:
            wrong.append(f"{len(unfounded(trace, failed[0]))} acknowledged although no sync succeeded any more")
        if not plan.when.endswith("+") and sum(ack.start > failed[-1].end for ack in later) < 20:
            wrong.append("acknowledgements did not come again")
        if replay.judge(options.probe, trace, folder, NEVER).missing:
            wrong.append("a restart misses acknowledged events")
        with replay.scratch() as images:
            campaign = replay.Campaign(options.probe, images, f"{options.seed}:{number}")
            campaign.run(trace, 40)
            campaign.run_right_after(trace, later[:60])
        wrong += campaign.faults[:2]
        print(f"{name}: {len(failed)} failed, {len(trace.acks)} acked, {len(later)} of them after the first failure")
        print(" ", campaign.summary(time.monotonic() - began))
        faults += [f"{name}: {text}" for text in wrong]
    return faults


def unfounded(trace, failed):
    """Acks given after `failed` with no good sync between. One for each caller may still have been on its way."""
    good = [sync.end for sync in trace.syncs if sync.good and sync.start > failed.end]
    return [ack for ack in trace.acks if failed.end < ack.start < min(good, default=NEVER)]


def full_disk(options, work):
    """Runs `fill` in a mount namespace of its own, so that the small disk is nobody else's."""
    folder = os.path.join(work, "full")
    os.mkdir(folder)
    private = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
    if not shutil.which("unshare") or subprocess.run(private + ["mount", "-t", "tmpfs", "none", folder], capture_output=True).returncode:
        print("NOT RUN: full-disk, this user may not mount a tmpfs")
        return []
    inner = [sys.executable, os.path.abspath(__file__), options.probe, "--fill", folder]
    return [] if subprocess.run(private + inner).returncode == 0 else ["full-disk: see above"]


def fill(probe, folder):
    """Appends until the disk is full, makes room, and waits for acknowledgements."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={FULL}", "none", folder], check=True)
    store, ballast = os.path.join(folder, "store"), os.path.join(folder, "ballast")
    os.mkdir(store)
    with open(ballast, "wb") as file:
        file.write(bytes(BALLAST))
    append = [probe, "append", store, "1000000", "--callers", "4", "--size", "2000"]
    run = subprocess.Popen(append, stdout=subprocess.PIPE, text=True)
    watchdog = threading.Timer(120, run.kill)
    watchdog.start()
    acked, reasons, in_a_row, freed, healed = [], Counter(), 0, None, []
    for line in run.stdout:
        word, _, rest = line.strip().partition(" ")
        in_a_row = in_a_row + 1 if word == "failed" else 0
        if word == "failed":
            reasons[rest] += 1
        elif word == "acked":
            acked.append(tuple(rest.split()))
            if freed:
                healed.append(time.monotonic() - freed)
        if in_a_row == 40 and not freed:
            os.unlink(ballast)
            freed = time.monotonic()
        # A hundred, since a few lines of the time before may still lie in the pipe.
        if len(healed) == 100 or (freed and time.monotonic() - freed > 2 * HEALS_WITHIN):
            break
    run.kill()
    run.wait()
    watchdog.cancel()
    code, events = read_events(probe, store)
    missing = len(set(acked) - {event[:2] for event in events})
    print(f"full-disk: {len(acked)} acked, {sum(reasons.values())} failed ({', '.join(list(reasons)[:2])}), {missing} acked missing")
    if not freed or len(healed) < 100 or healed[-1] > HEALS_WITHIN or missing or code:
        print(f"full-disk: filled {bool(freed)}, acked after there was room again: {len(healed)}, then `read` ended with {code}")
        return 1
    print(f"full-disk: acked again {healed[0]:.2f} s after there was room, 100 events within {healed[-1]:.2f} s")
    return 0


def read_events(probe, folder, *flags):
    run = subprocess.run([probe, "read", folder, *flags], capture_output=True, text=True, errors="replace", timeout=60)
    # Unindented lines with a number: an error may quote the schema, in which there is an `event` too.
    lines = [line.split() for line in run.stdout.splitlines() if re.match(r"event \d", line)]
    return run.returncode, [tuple(words[1:4]) for words in lines]


def contents(path):
    """All that SQLite finds in the file, or the error it meets. `immutable`: nothing beside the file is read or made."""
    try:
        store = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
        store.text_factory = bytes
        try:
            schema = store.execute("SELECT * FROM sqlite_master").fetchall()
            tables = [row[1].decode() for row in schema if row[0] == b"table"]
            rows = [store.execute(f'SELECT * FROM "{table}" NOT INDEXED').fetchall() for table in tables]
            settings = [store.execute(f"PRAGMA {name}").fetchall() for name in ("user_version", "encoding")]
            return repr((schema, rows, settings, store.execute("PRAGMA integrity_check").fetchall()))
        finally:
            store.close()
    except (sqlite3.Error, UnicodeDecodeError, OverflowError, MemoryError) as reason:
        return f"error: {reason}"


class Flips:
    """A closed store and what is known of it, against which each damaged copy is held."""

    def __init__(self, probe, work):
        self.probe, self.work = probe, work
        whole = os.path.join(work, "whole")
        os.mkdir(whole)
        subprocess.run([probe, "append", whole, "120", "--callers", "4", "--size", "300"], check=True, capture_output=True)
        self.files = replay.read_disk(whole)
        if self.files.get("events.db-wal"):
            raise Unfit("`append` left a write-ahead log: the store was not closed")
        self.flags = ["--digest"]
        if read_events(probe, whole, "--digest")[0] == 2:
            print("flips: ids alone are compared, since this probe has no `read --digest`")
            self.flags = []
        code, self.events = read_events(probe, whole, *self.flags)
        sound = subprocess.run([probe, "verify", whole], capture_output=True).returncode
        if code or sound or len(self.events) != 120:
            raise Unfit(f"the undamaged store: read {code}, verify {sound}, {len(self.events)} events")
        self.known, self.contents = set(self.events), self.look(self.files)

    def look(self, files):
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            path = os.path.join(folder, "events.db")
            with open(path, "wb") as file:
                file.write(files["events.db"])
            return contents(path)

    def on_copy(self, files, command):
        """Each command gets a copy of its own, since opening a store may change it."""
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            store = os.path.join(folder, "store")
            replay.write_disk(store, files)
            return command(store)

    def verify(self, store):
        return subprocess.run([self.probe, "verify", store], capture_output=True, timeout=60).returncode

    def turn(self, bit):
        """Turns one bit; returns what is to be counted and what is wrong."""
        data = bytearray(self.files["events.db"])
        data[bit // 8] ^= 1 << bit % 8
        files = dict(self.files, **{"events.db": bytes(data)})
        live = self.look(files) != self.contents
        try:
            found = self.on_copy(files, self.verify)
            code, events = self.on_copy(files, lambda store: read_events(self.probe, store, *self.flags))
        except subprocess.TimeoutExpired:
            return ["hung"], ["no end within 60 s"]
        wrong = []
        if set(events) - self.known:
            wrong.append("`read` gave out an event that was not written")
        if code == 0 and events != self.events:
            wrong.append(f"`read` gave {len(events)} of {len(self.events)} events and called it whole")
        if live and found == 0:
            wrong.append("`verify` saw nothing")
        if code not in ENDS or found not in ENDS:
            wrong.append(f"crashed: read {code}, verify {found}")
        kind = "live" if live else "dead"
        return [kind, f"{kind}, verify {'says so' if found else 'silent'}", f"read exit {code}"], wrong


def flips(options, work):
    began = time.monotonic()
    tally, faults = Counter(), []
    with replay.scratch() as copies:
        store = Flips(options.probe, copies)
        bits = random.Random(options.seed).choices(range(8 * len(store.files["events.db"])), k=options.flips)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for bit, (counts, wrong) in zip(bits, pool.map(store.turn, bits)):
                tally.update(counts)
                faults += [f"flips, byte {bit // 8} bit {bit % 8}: {text}" for text in wrong]
    counts = "; ".join(f"{count} {what}" for what, count in sorted(tally.items()))
    size = len(store.files["events.db"])
    print(f"flips: {options.flips} in {size} bytes: {counts}; {len(faults)} wrong; {time.monotonic() - began:.1f} s")
    return faults


def main():
    parts = {"syncs": syncs, "full-disk": full_disk, "flips": flips}
    options = argparse.ArgumentParser(description="Failing syncs, a full disk, turned bits.")
    options.add_argument("probe")
    options.add_argument("--only", choices=parts)
    options.add_argument("--seed", default=str(random.randrange(1 << 32)))
    options.add_argument("--flips", type=int, default=1000)
    options.add_argument("--fill", help=argparse.SUPPRESS)
    options = options.parse_args()
    options.probe = os.path.abspath(options.probe)
    if options.fill:
        return fill(options.probe, options.fill)
    if options.only in (None, "syncs"):
        check_strace()
    faults = []
    for name, part in parts.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="toolcrib-faults-") as work:
                try:
                    faults += part(options, work)
                except Unfit as reason:
                    faults.append(f"{name} could not be judged: {reason}")
    for fault in faults[:20]:
        print("WRONG:", fault)
    print(f"faults: {len(faults)} wrong, seed {options.seed}")
    return 1 if faults else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (subprocess.SubprocessError, OSError) as reason:
        print(f"the run went wrong: {reason}")
        sys.exit(2)
