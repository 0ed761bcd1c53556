#!/usr/bin/env python3
"""Power loss, replayed: does an acknowledged event survive it?

    replay.py PROBE [--images 400] [--seed S] [--count 300] [--inject SPEC] [--keep FOLDER] [--expect-loss] [-- probe args]

Killing a process proves nothing about the disk, since the page cache outlives it. So `PROBE append` is
run under strace, every write and every sync of its store is noted in order, and then the power is cut at
random moments of that trace. What was synced before the cut is on the disk. Of the rest, anything may be:
`drop` loses all of it, `subset` keeps some writes and not others (which is what reordering comes to),
`torn` keeps some 512-byte sectors of a write. Each such disk is opened by `PROBE read`, which must find
every event whose `acked` line was begun before the cut, and then looked through by `PROBE verify`.

The second half of the images comes from a second run, begun on a disk that has lost power already:
recovery writes too.

The model: created and renamed names are durable at once, a removal when its folder was synced. A sync
counts from its return and covers the writes that had returned when it began. A write that a *failed* sync
covered is never made good by a later sync: Linux reports the error once and then takes the pages for clean.
The `-shm` file is shared memory and never part of a disk. As a check of the trace itself, all of it
replayed without a cut must give the very bytes that lie in the folder at the end.

Exit: 0 as it should be, 1 not, 2 the run itself went wrong, 77 strace cannot work here.
With --expect-loss, for a probe broken on purpose, 0 means that the loss was seen.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, namedtuple
from concurrent.futures import ThreadPoolExecutor

from strace import NEVER, Unfit, check_strace, record

SECTOR = 512
MODES = ("drop", "subset", "torn")
Trace = namedtuple("Trace", "folder base ops acks lines syncs events injected")
Verdict = namedtuple("Verdict", "state missing events millis says")


def run_traced(probe, folder, count, args, inject=None, base=(), acks=(), runs=1):
    """Runs `PROBE append`, `runs` times over, on the disk `base` with `acks` given before. Returns the Trace."""
    folder = os.path.realpath(folder)
    base = dict(base)
    write_disk(folder, base)
    command = ["sh", "-c", '"$@"; ' * (runs - 1) + '"$@"', "sh", probe, "append", folder, str(count)]
    reader, said = record(command + args, folder, base, inject)
    if not inject and any(line.startswith("failed") for line in said):
        raise Unfit("appends failed although no fault was injected")
    earlier = [ack._replace(start=0) for ack in acks]
    trace = Trace(folder, base, reader.finished(), earlier + reader.acks, reader.lines + 1, reader.syncs, [], bool(inject))
    if disk_at(trace, NEVER, "all", random.Random()) != read_disk(folder):
        raise Unfit("the trace replayed whole does not give the files that are there: a kind of write was missed")
    verdict = judge(probe, trace, folder, NEVER)
    if verdict.state != "sound":
        raise Unfit(f"without any power cut the store is {verdict.state}: {verdict.says}")
    return trace._replace(events=verdict.events)


def disk_at(trace, cut, mode, chance):
    """The files as a power cut before line `cut` may have left them."""
    files = dict(enumerate(bytearray(data) for data in trace.base.values()))
    names = {name: number for number, name in enumerate(trace.base)}
    share = chance.random()  # one image keeps nearly all, another nearly nothing
    for op in trace.ops:
        if op.start >= cut:
            break
        if op.kind == "create":
            names[op.data], files[op.file] = op.file, bytearray()
        elif op.kind == "rename":
            names[op.data[1]] = names.pop(op.data[0])
        elif mode == "all" or op.safe < cut or (mode != "drop" and chance.random() < share):
            torn = mode == "torn" and op.safe >= cut
            apply(op, files, names, chance if torn else None)
    return {name: bytes(files[number]) for name, number in names.items()}


def apply(op, files, names, tear):
    if op.kind == "remove":
        names.pop(op.data, None)
        return
    file = files[op.file]
    end = op.at if op.kind == "size" else op.at + len(op.data)
    if op.kind == "size":
        del file[end:]
    if len(file) < end and not (tear and tear.random() < 0.5):
        file.extend(bytes(end - len(file)))  # a file may have grown before its bytes came
    if op.kind != "write":
        return
    for low, high in sectors(op.at, end, tear):
        if len(file) < high:
            file.extend(bytes(high - len(file)))
        file[low:high] = op.data[low - op.at : high - op.at]


def sectors(start, end, tear):
    """The parts of a write that reach the disk: all of it, or by `tear` a prefix or any of its sectors."""
    if not tear:
        return [(start, end)]
    edges = [start, *range(start - start % SECTOR + SECTOR, end, SECTOR), end]
    parts = list(zip(edges, edges[1:]))
    if tear.random() < 0.5:
        return parts[: tear.randint(0, len(parts))]
    return [part for part in parts if tear.random() < 0.5]


def write_disk(folder, disk):
    os.makedirs(folder)
    for name, data in disk.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)


def read_disk(folder):
    disk = {}
    for entry in os.scandir(folder):
        if entry.is_file() and not entry.name.endswith("-shm"):
            with open(entry.path, "rb") as file:
                disk[entry.name] = file.read()
    return disk


def judge(probe, trace, folder, cut):
    """Opens the disk in `folder` as a restart would and holds it against what was acknowledged before `cut`."""
    try:
        run = subprocess.run([probe, "read", folder], capture_output=True, text=True, errors="replace", timeout=60)
    except subprocess.TimeoutExpired:
        return Verdict("unopenable", [], [], 0, "no end within 60 s")
    lines = run.stdout.splitlines()
    events = [tuple(line.split()[1:3]) for line in lines if line.startswith("event ")]
    opened = re.search(r"^opened in (\d+) ms", run.stdout, re.M)
    says = " / ".join(lines[-1:] + run.stderr.splitlines()[-1:])
    if run.returncode == 3 or any(line.startswith("damaged") for line in lines):
        return Verdict("damaged", [], events, 0, says)
    if run.returncode or not opened:
        return Verdict("unopenable", [], events, 0, f"exit {run.returncode}: {says}")
    state = "sound"
    if [int(seq) for seq, _ in events] != list(range(1, len(events) + 1)):
        state, says = "damaged", "the sequence has a gap"
    elif trace.events and not trace.injected and events != trace.events[: len(events)]:
        state, says = "damaged", "an event that was never appended here"
    elif subprocess.run([probe, "verify", folder], capture_output=True, timeout=60).returncode:
        state, says = "damaged", "`verify` finds fault with what `read` took for good"
    there, ids = set(events), {id for _, id in events}
    missing = [a for a in trace.acks if a.start < cut and not ((a.seq, a.id) in there or a.seq == "?" and a.id in ids)]
    return Verdict(state, missing, events, int(opened[1]), says)


class Campaign:
    """Many power cuts, judged in parallel, and their tally."""

    def __init__(self, probe, work, seed, keep=None):
        self.probe, self.work, self.seed, self.keep = probe, work, seed, keep
        self.tally, self.slowest, self.faults = Counter(), 0, []

    def cut_once(self, trace, number, mode=None, cut=None):
        chance = random.Random(f"{self.seed}:{number}")
        mode = mode or MODES[number % len(MODES)]
        cut = cut or chance.randint(trace.ops[0].start, trace.lines)
        disk = disk_at(trace, cut, mode, chance)
        folder = os.path.join(self.work, f"image-{number}")
        write_disk(folder, disk)
        verdict = judge(self.probe, trace, folder, cut)
        at_risk = any(op.start < cut <= op.safe for op in trace.ops if op.kind in ("write", "size", "remove"))
        shutil.rmtree(folder)
        return number, mode, cut, disk, at_risk, verdict

    def count(self, number, mode, cut, disk, at_risk, verdict):
        self.tally.update(["images", mode, verdict.state] + ["at risk"] * at_risk)
        self.slowest = max(self.slowest, verdict.millis)
        if verdict.missing and verdict.state == "sound":
            self.tally["lost"] += 1
        if verdict.missing or verdict.state != "sound":
            gone = f", {len(verdict.missing)} acked events gone, first {verdict.missing[0].seq}" if verdict.missing else ""
            self.faults.append(f"image {number} ({mode}, line {cut}): {verdict.state}{gone} ({verdict.says})")
            if self.keep and len(self.faults) <= 3:
                write_disk(os.path.join(self.keep, f"image-{number}"), disk)

    def run(self, trace, images):
        self.run_all(trace, [(None, None)] * images)

    def run_right_after(self, trace, acks):
        """Cuts the power at the very moment each of `acks` was given, and loses all that was unsynced then."""
        self.run_all(trace, [("drop", ack.start + 1) for ack in acks])

    def run_all(self, trace, cuts):
        numbers = range(self.tally["images"], self.tally["images"] + len(cuts))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for result in pool.map(lambda number, cut: self.cut_once(trace, number, *cut), numbers, cuts):
                self.count(*result)

    def second_disk(self, trace):
        """A disk that lost power late in `trace`, and which acknowledgements it still honours."""
        chance = random.Random(f"{self.seed}:second")
        cut = chance.randint(trace.lines * 3 // 4, trace.lines * 19 // 20)
        result = self.cut_once(trace, self.tally["images"], "subset", cut)
        self.count(*result)
        gone = set(result[5].missing)
        return result[3], [ack for ack in trace.acks if ack.start < cut and ack not in gone]

    def summary(self, seconds):
        tally = self.tally
        modes = ", ".join(f"{tally[mode]} {mode}" for mode in MODES)
        return (
            f"power loss: {tally['images']} images ({modes}; {tally['at risk']} with unsynced writes): {tally['lost']} lost, "
            f"{tally['unopenable']} unopenable, {tally['damaged']} damaged; slowest open {self.slowest} ms, {seconds:.1f} s, seed {self.seed}"
        )


def describe(trace):
    kinds = Counter(op.kind for op in trace.ops)
    never = sum(op.safe == NEVER for op in trace.ops)
    return f"traced {len(trace.acks)} acks, {kinds['write']} writes, {kinds['size']} truncations, {kinds['remove']} removals; {never} never synced"


def with_defaults(given):
    """Small checkpoints, so that the trace holds many, and several callers, so that commits hold several events."""
    defaults = {"--callers": "6", "--size": "400", "--checkpoint": "40"}
    return given + [word for flag, value in defaults.items() if flag not in given for word in (flag, value)]


def scratch():
    """A folder for images. They are opened once and thrown away, so memory is the place for them."""
    room = "/dev/shm" if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 1 << 28 else None
    return tempfile.TemporaryDirectory(prefix="toolcrib-images-", dir=room)


def main():
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    options = argparse.ArgumentParser(description="Power loss, replayed from a trace of writes.")
    options.add_argument("probe")
    options.add_argument("--images", type=int, default=400)
    options.add_argument("--seed", default=str(random.randrange(1 << 32)))
    options.add_argument("--count", type=int, default=300, help="events to append in each of the two runs")
    options.add_argument("--inject", help="a fault for strace, such as fdatasync:error=EIO:when=30")
    options.add_argument("--keep", help="a folder for the first images that fail")
    options.add_argument("--expect-loss", action="store_true")
    options = options.parse_args(words[:split])
    check_strace()
    began = time.monotonic()
    args = with_defaults(words[split + 1 :])
    with tempfile.TemporaryDirectory(prefix="toolcrib-crash-") as traces, scratch() as work:
        campaign = Campaign(os.path.abspath(options.probe), work, options.seed, options.keep)
        first = run_traced(campaign.probe, os.path.join(traces, "first"), options.count, args, options.inject)
        print("first run:", describe(first))
        campaign.run(first, options.images // 2)
        disk, acks = campaign.second_disk(first)
        second = run_traced(campaign.probe, os.path.join(traces, "second"), options.count, args, options.inject, disk, acks)
        print("second run, on a disk that lost power:", describe(second))
        campaign.run(second, options.images - campaign.tally["images"])
    for fault in campaign.faults[:5]:
        print(fault)
    print(campaign.summary(time.monotonic() - began))
    harmed = campaign.tally["unopenable"] + campaign.tally["damaged"]
    as_meant = (campaign.tally["lost"] > 0) == options.expect_loss and not harmed
    sys.exit(0 if as_meant else 1)


if __name__ == "__main__":
    try:
        main()
    except (Unfit, subprocess.TimeoutExpired, OSError) as reason:
        print(f"the run went wrong: {reason}")
        sys.exit(2)
