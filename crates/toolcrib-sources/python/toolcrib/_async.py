"""The worker for `async` functions: many calls at once on one loop.

A call's last frame is sent when its task is done, not by the task itself: a task that is cancelled before its
first step never runs a line.

`cancel` cannot reach a coroutine that holds up the loop. A signal can: its handler raises into the tool, if a tool
is what runs just then.
"""

import asyncio
import collections
import contextvars
import os
import select
import signal
import sys
import threading

from ._channel import CHUNK, leave, message, write_frame
from ._context import AsyncContext, read_reply
from ._results import Cancelled, Results, failure
from ._served import settle_async

# Beyond this much unsent, progress and log messages are dropped; results never are.
_BACKLOG = 8 * 1024 * 1024

# How long tasks on the side may take to end, in seconds.
_LAST_WAIT = 1

# When to try again to interrupt a call, in seconds of CPU time.
_SOON = 0.002

_OUR_FOLDERS = tuple(os.path.join(os.path.dirname(file), "") for file in (__file__, asyncio.__file__))
# Code without a file ("<string>") is whoever's that calls it, as the standard library is.
_NOBODYS = ("<", os.path.join(os.path.dirname(os.__file__), ""))

_current = contextvars.ContextVar("toolcrib_call", default=None)


class AsyncWorker:
    def __init__(self, channel, output, start):
        self._channel = channel
        self._output = output
        self._results = Results(start.get("max_result"), start.get("memory"))
        self._tools = {}
        self._tasks = {}
        self._cancelled = set()
        self._interrupted = set()
        self._to_interrupt = None
        self._replies = {}
        self._asked = 0
        self._ending = False
        self._unsent = collections.deque()
        self._unsent_size = 0
        self._waits_to_write = False
        self._thread = threading.get_ident()
        # Made before the user's files are loaded: up to 3.9 a lock at module level takes the loop it finds.
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)

    @staticmethod
    def current_call():
        """The call that printing belongs to."""
        return _current.get()

    def serve(self, tools: dict) -> None:
        """Answer calls until the gateway says `end` and those that run are done."""
        self._tools = tools
        signal.signal(signal.SIGINT, self._interrupt)
        signal.signal(signal.SIGVTALRM, self._interrupt)
        os.set_blocking(self._channel.reading, False)
        os.set_blocking(self._channel.writing, False)
        self._loop.add_reader(self._channel.reading, self._receive)
        self._take_frames()
        while not self._finished():
            try:
                self._loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as error:
                # asyncio lets these two out of any task, also one that a tool started on the side.
                print(f"toolcrib: a task raised {error!r}", file=sys.stderr)
        self._close()

    def tell(self, call_id, op, fields):
        """Send something about a running call, from whichever thread."""
        frame = message(op, {"id": call_id, **fields})
        if threading.get_ident() == self._thread:
            self._send_if_room(frame)
        else:
            self._loop.call_soon_threadsafe(self._send_if_room, frame)

    async def ask(self, call_id, method, params):
        """Ask the gateway and wait for its reply."""
        self._asked += 1
        number = self._asked
        self._replies[number] = self._loop.create_future()
        self._send(message("ask", {"id": call_id, "ask": number, "method": method, "params": params}))
        try:
            return read_reply(await self._replies[number])
        finally:
            del self._replies[number]

    def _receive(self):
        try:
            data = os.read(self._channel.reading, CHUNK)
        except BlockingIOError:
            return
        if not data:
            leave()
        self._channel.incoming.feed(data)
        self._take_frames()

    def _take_frames(self):
        while True:
            frame = self._channel.incoming.pop()
            if frame is None:
                return
            self._take(frame)

    def _take(self, frame):
        op = frame["op"]
        if op == "call":
            task = self._loop.create_task(self._outcome(frame))
            self._tasks[frame["id"]] = task
            task.add_done_callback(lambda done: self._finish(frame["id"], done))
        elif op == "cancel" and frame["id"] in self._tasks:
            self._cancelled.add(frame["id"])
            self._tasks[frame["id"]].cancel()
        elif op == "reply":
            waiting = self._replies.get(frame["ask"])
            if waiting is not None and not waiting.done():
                waiting.set_result(frame)
        elif op == "end":
            self._ending = True
            self._stop_if_finished()

    async def _outcome(self, frame):
        """Call the tool and make its value a result."""
        _current.set(frame["id"])
        tool = self._tools.get(frame["tool"])
        if tool is None:
            return failure(f"Error: there is no tool {frame['tool']!r} in this worker")
        error = None
        try:
            if "unreadable" in frame:
                raise ValueError(frame["unreadable"])
            context = self._context(tool, frame)
            positional, keywords = tool.ready().bind(frame.get("args") or {}, context)
            value = await settle_async(tool.function(*positional, **keywords), context)
            return self._results.of_value(value)
        except BaseException as raised:
            error = raised
        finally:
            self._leave_if_forked(frame["id"], error)
        if isinstance(error, asyncio.CancelledError) and frame["id"] in self._cancelled:
            raise error
        if frame["id"] in self._interrupted and not isinstance(error, Exception):
            # From within a TaskGroup it comes wrapped up.
            raise Cancelled
        return self._results.of_error(error)

    def _interrupt(self, number, frame):
        """End the call that holds up the loop; on SIGINT, and on the timer that this sets to try again.

        The call need not be the one that the gateway wants to cancel, which may only be waiting its turn.
        """
        call = _current.get()
        if call is None or call in self._interrupted or asyncio.current_task(self._loop) is None:
            return
        if number == signal.SIGINT:
            self._to_interrupt = call if call in self._cancelled or self._has_unread() else None
        if call != self._to_interrupt:
            return
        if not _is_in_a_tool(frame):
            signal.setitimer(signal.ITIMER_VIRTUAL, _SOON)
            return
        self._to_interrupt = None
        self._interrupted.add(call)
        raise Cancelled

    def _has_unread(self):
        """Whether the loop has not come to reading: `cancel` is sent well before the signal."""
        return bool(select.select([self._channel.reading], [], [], 0)[0])

    def _leave_if_forked(self, call_id, error):
        if self._channel.forked:
            self._output.finish(call_id)
            self._channel.leave_if_forked(error)

    def _context(self, tool, frame):
        return AsyncContext(self, frame["id"], tool.name, frame.get("group"), frame.get("progress", False))

    def _finish(self, call_id, task):
        del self._tasks[call_id]
        self._cancelled.discard(call_id)
        self._interrupted.discard(call_id)
        self._output.finish(call_id)
        if task.cancelled() or isinstance(task.exception(), Cancelled):
            self._send(message("cancelled", {"id": call_id}))
        else:
            error = task.exception()
            result = task.result() if error is None else failure(f"Error: {type(error).__name__} in the worker")
            self._send(write_frame(f'{{"op":"result","id":{call_id},"result":{result}}}'))
        self._stop_if_finished()

    def _send_if_room(self, frame):
        if self._unsent_size < _BACKLOG:
            self._send(frame)

    def _send(self, frame):
        """Write what the pipe takes now and leave the rest to the loop."""
        if self._channel.forked:
            return
        self._unsent.append(memoryview(frame))
        self._unsent_size += len(frame)
        if len(self._unsent) == 1:
            self._write()

    def _write(self):
        try:
            while self._unsent:
                sent = os.write(self._channel.writing, self._unsent[0])
                self._unsent_size -= sent
                self._unsent[0] = self._unsent[0][sent:]
                if not self._unsent[0]:
                    self._unsent.popleft()
        except BlockingIOError:
            self._waits_to_write = True
            self._loop.add_writer(self._channel.writing, self._write)
            return
        except OSError as error:
            leave(f"toolcrib: the gateway cannot be written to: {error}", 74)
        if self._waits_to_write:
            self._waits_to_write = False
            self._loop.remove_writer(self._channel.writing)
        self._stop_if_finished()

    def _finished(self):
        return self._ending and not self._tasks and not self._unsent

    def _stop_if_finished(self):
        if self._finished():
            self._loop.stop()

    def _close(self):
        """Let what tools left running on the side end as it would under `asyncio.run`."""
        self._loop.remove_reader(self._channel.reading)
        self._loop.run_until_complete(_end_all_tasks())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


def _is_in_a_tool(frame):
    """Whether raising here can tear nothing that other calls need: neither ours nor asyncio's."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_OUR_FOLDERS):
            return False
        if not file.startswith(_NOBODYS):
            return True
        frame = frame.f_back
    return False


async def _end_all_tasks():
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        # One that refuses to be cancelled is left behind.
        await asyncio.wait(left, timeout=_LAST_WAIT)
