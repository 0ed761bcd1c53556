"""A worker process: takes the pipe, loads the workspace, answers calls.

    python -I -X pycache_prefix=DIR -c CODE

with `import sys; sys.path.insert(0, 'FOLDER'); from toolcrib._worker import main; main()` as CODE.
"""

import atexit
import os
import signal
import sys
import threading

from ._channel import Channel, leave, message
from ._output import Output

PROTOCOL = 1


def main() -> None:
    channel = Channel()
    ignore_interrupts()
    call = _Current()
    output = Output(call)
    start = channel.read()
    limit(start.get("memory"))
    if start.get("sandbox"):
        shut_in(start["workspace"], start["sandbox"], start.get("network", True))
    worker = _worker(channel, output, start)
    call.of = worker.current_call
    _load_and_serve(channel, worker, start)
    _end(output)


def _end(output):
    """Clean up, then end. Python itself would wait for every thread that tools left running."""
    try:
        atexit._run_exitfuncs()
    except BaseException as error:
        # Up to 3.9 the last error comes out here, when it has been printed.
        print(f"toolcrib: {error!r} at the end", file=sys.stderr)
    output.finish_all()
    main_thread = threading.main_thread()
    if any(not thread.daemon for thread in threading.enumerate() if thread is not main_thread):
        leave()


def ignore_interrupts():
    """Until there is a call to interrupt. Not SIG_IGN, which the children of a tool would inherit."""
    signal.signal(signal.SIGINT, lambda number, frame: None)


def limit(memory):
    """Limits that hold for tools and their children."""
    import resource

    _lower(resource, resource.RLIMIT_CORE, 0)
    if memory:
        # What is mapped but not used does not count here, as it would for the address space.
        _lower(resource, getattr(resource, "RLIMIT_DATA", resource.RLIMIT_AS), memory)


def shut_in(workspace, temporary, network):
    """Holds tools and their children to what a sandbox allows; without one nothing is run."""
    import shutil
    import tempfile

    from ._sandbox import NoSandbox, restrict

    os.makedirs(temporary, exist_ok=True)
    # What those left who were killed.
    for name in os.listdir(temporary):
        if not os.path.exists(f"/proc/{name}"):
            shutil.rmtree(os.path.join(temporary, name), ignore_errors=True)
    own = os.path.join(temporary, str(os.getpid()))
    os.makedirs(own, exist_ok=True)
    tempfile.tempdir = os.environ["TMPDIR"] = own
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    try:
        restrict(workspace, temporary, network)
    except (NoSandbox, OSError) as error:
        leave(f"toolcrib: there can be no sandbox: {error}", 1)


def _lower(resource, which, value):
    hard = resource.getrlimit(which)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    try:
        resource.setrlimit(which, (value, value))
    except (OSError, ValueError) as error:
        print(f"toolcrib: a limit of {value} could not be set: {error}", file=sys.stderr)


def _worker(channel, output, start):
    """asyncio is loaded only where it is wanted."""
    if start.get("mode") == "async":
        from ._async import AsyncWorker

        return AsyncWorker(channel, output, start)
    from ._sync import SyncWorker

    return SyncWorker(channel, output, start)


def _load_and_serve(channel, worker, start):
    from ._loading import Loader

    loader = Loader(start, lambda op, fields: channel.send(message(op, fields)))
    loader.load()
    python = ".".join(str(part) for part in sys.version_info[:3])
    channel.send(message("ready", {"protocol": PROTOCOL, "python": python, "executable": sys.executable}))
    worker.serve(loader.tools)


class _Current:
    """The running call; none before there is a worker to ask."""

    def __init__(self):
        self.of = lambda: None

    def __call__(self):
        return self.of()
