"""Threads that go on when the call is over."""

import threading
import time

from toolcrib import Context, tool


def talk():
    for number in range(600):
        print("still here", number)
        time.sleep(0.1)


@tool
def leave_thread() -> str:
    """Return while a thread goes on, which must not keep the process alive."""
    threading.Thread(target=talk).start()
    return "returned"


@tool
def report_late(ctx: Context) -> str:
    """Report progress after the call has ended."""
    timer = threading.Timer(0.2, lambda: ctx.progress(1, 1, "too late"))
    timer.start()
    return "returned"


@tool
def raise_in_thread() -> str:
    """Raise in a thread, where nobody catches it."""
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    return "returned"


@tool
def many_threads(count: int = 50) -> int:
    """Print from many threads at once."""
    threads = [threading.Thread(target=print, args=("thread", number)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count
