"""The worker for plain functions: one call at a time, on the main thread.

A call is interrupted by a signal, whose handler raises into the tool. The handler may raise only where nothing of
ours can be torn: never twice in a call, not between calls, not while a frame is being read or written.
"""

import select
import signal
import sys
import threading
import time

from ._channel import message, write_frame
from ._context import AsyncContext, SyncContext, read_reply
from ._results import Cancelled, CpuTimeSpent, Results, failure, text_result
from ._served import settle

# What a result can be without anything left to run.
_SETTLED = (dict, list, type(None), bool, int, float)


class SyncWorker:
    def __init__(self, channel, output, start):
        self.running = None
        self._channel = channel
        self._output = output
        self._cpu = start.get("cpu")
        self._cpu_limit = None
        self._results = Results(start.get("max_result"), start.get("memory"), self._cpu)
        self._max = start.get("max_result") or sys.maxsize
        self._tools = {}
        self._asked = 0
        self._ending = False
        # The three the signal handlers go by: may they raise; must they wait; what waits.
        self._interruptible = False
        self._held = False
        self._waiting = None
        self._main_thread = threading.get_ident()
        signal.signal(signal.SIGINT, lambda number, frame: self._interrupt(Cancelled))
        if self._cpu:
            signal.signal(signal.SIGXCPU, lambda number, frame: self._interrupt(CpuTimeSpent))

    def current_call(self):
        """The call that printing belongs to, from whichever thread."""
        return self.running

    def serve(self, tools: dict) -> None:
        """Answer calls until the gateway says `end`."""
        self._tools = tools
        read = self._channel.read
        while not self._ending:
            frame = read()
            op = frame["op"]
            if op == "call":
                self._answer(frame)
            elif op == "end":
                self._ending = True
            # Replies and cancels that come too late have nobody waiting for them.

    def tell(self, call_id, op, fields):
        """Send something about a running call."""
        frame = message(op, {"id": call_id, **fields})
        if threading.get_ident() != self._main_thread:
            self._channel.send(frame)
            return
        self._hold()
        self._channel.send(frame)
        self._release()

    def ask(self, call_id, method, params):
        """Ask the gateway and wait for its reply."""
        if self._channel.forked or threading.get_ident() != self._main_thread:
            raise RuntimeError("a plain tool can ask only from the thread that it was called on; make it async")
        self._asked += 1
        self.tell(call_id, "ask", {"ask": self._asked, "method": method, "params": params})
        while True:
            reply = self._next_while_asking()
            if reply["op"] == "reply" and reply.get("ask") == self._asked:
                return read_reply(reply)

    def _next_while_asking(self):
        """The next frame; a signal may end the waiting, but never tear a frame."""
        self._hold()
        frame = self._channel.incoming.pop()
        while frame is None:
            self._release()
            select.select([self._channel.reading], [], [])
            self._hold()
            frame = self._channel.receive()
        self._ending = self._ending or frame["op"] == "end"
        self._release()
        return frame

    def _answer(self, frame):
        call_id = frame["id"]
        self.running = call_id
        if self._cpu:
            self._grant_cpu_time()
        error = result = None
        try:
            try:
                self._interruptible = True
                result = self._outcome(frame)
                self._interruptible = False
            except BaseException as raised:
                self._interruptible = False
                error = raised
        except BaseException as raised:
            # A signal in the very moment in which the tool's own error was being caught.
            error = raised
        self._waiting = None
        if error is not None:
            result = self._result_of_error(error)
        self._output.finish(call_id)
        self._channel.leave_if_forked(error)
        self.running = None
        if result is None:
            self._channel.send(message("cancelled", {"id": call_id}))
        else:
            self._channel.send(write_frame(f'{{"op":"result","id":{call_id},"result":{result}}}'))

    def _outcome(self, frame):
        """Call the tool and make its value a result."""
        tool = self._tools.get(frame["tool"])
        if tool is None:
            return failure(f"Error: there is no tool {frame['tool']!r} in this worker")
        if "unreadable" in frame:
            raise ValueError(frame["unreadable"])
        plan = tool.plan or tool.ready()
        arguments = frame.get("args") or {}
        names = arguments.keys()
        context = None
        if plan.simple and names <= plan.names and names >= plan.required:
            value = tool.function(**arguments)
        else:
            context = self._context(tool, frame)
            positional, keywords = plan.bind(arguments, context)
            value = tool.function(*positional, **keywords)
        if type(value) is str and len(value) * 6 < self._max:
            return text_result(value)
        if not isinstance(value, _SETTLED):
            value = settle(value, context or self._context(tool, frame))
        return self._results.of_value(value)

    def _result_of_error(self, error):
        """None stands for `cancelled`."""
        if isinstance(error, Cancelled):
            return None
        try:
            return self._results.of_error(error)
        except BaseException as another:
            return failure(f"Error: {type(error).__name__}, and then {type(another).__name__} in reporting it")

    def _context(self, tool, frame):
        kind = AsyncContext if tool.wants_async_context() else SyncContext
        return kind(self, frame["id"], tool.name, frame.get("group"), frame.get("progress", False))

    def _grant_cpu_time(self):
        """The limit counts whole seconds of the whole process, so it moves on with every call."""
        import resource

        limit = int(time.process_time()) + 1 + int(self._cpu)
        if limit != self._cpu_limit:
            self._cpu_limit = limit
            hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
            if hard == resource.RLIM_INFINITY or limit < hard:
                resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))

    def _interrupt(self, error):
        if not self._interruptible:
            return
        if self._held:
            self._waiting = error
            return
        self._interruptible = False
        raise error

    def _hold(self):
        self._held = True

    def _release(self):
        self._held = False
        if self._waiting is not None and self._interruptible:
            self._interruptible = False
            raise self._waiting
