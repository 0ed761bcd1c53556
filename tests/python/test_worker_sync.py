"""The worker for plain functions, as a real process."""

import signal
import sys
import time
import unittest

import kit


class Calls(kit.WorkspaceCase):
    def test_the_frame_of_a_result_begins_as_promised(self):
        worker = self.serve("from toolcrib import tool\n@tool\ndef f(): return 'é'\n")
        worker.call("f", call_id=12)
        self.assertEqual(worker.raw, '{"op":"result","id":12,"result":{"content":[{"type":"text","text":"é"}],"isError":false}}')

    def test_arguments_and_errors(self):
        worker = self.serve(
            """
            import datetime, sys
            from typing import Optional
            from toolcrib import tool
            @tool
            def day(d: datetime.date, n: float = 1): return f"{d:%d.%m.%Y} {n!r}"
            @tool
            def bad(): raise ValueError("bad value")
            @tool
            def leave(code: int): sys.exit(code)
            @tool
            def deep(n: int = 0): return deep(n + 1)
            @tool
            def environ():
                import os
                return os.environ["NO_SUCH"]
            @tool
            def plain(a: str, b: str = "x"): return a + b
            """
        )
        self.assertEqual(worker.text("day", d="2024-05-06", n=2), "06.05.2024 2.0")
        self.assertEqual(worker.text("day", d="x"), "!Invalid input: d: expected a date, got 'x'")
        self.assertEqual(worker.text("day"), "!Invalid input: Missing required parameter: d")
        self.assertEqual(worker.text("bad"), "!Invalid input: bad value")
        self.assertEqual(worker.text("leave", code=3), "!Error: the tool called sys.exit(3)")
        self.assertIn("recursion", worker.text("deep"))
        self.assertIn("python.env", worker.text("environ"))
        self.assertEqual(worker.text("plain", a="1"), "1x")
        self.assertEqual(worker.text("plain"), "!Invalid input: Missing required parameter: a")
        self.assertEqual(worker.text("plain", a="1", c="2"), "!Invalid input: Unknown parameter: c; parameters are a, b")
        self.assertEqual(worker.text("nothing"), "!Error: there is no tool 'nothing' in this worker")

    def test_null_for_an_optional_parameter(self):
        worker = self.serve(
            """
            import datetime
            from typing import List, Optional
            from toolcrib import tool
            @tool
            def shows(a: Optional[int], b: Optional[List[datetime.date]] = None, c: Optional[str] = "c", d: int = None):
                return repr([a, b, c, d])
            """
        )
        self.assertEqual(worker.text("shows", a=None, b=None, c=None, d=None), "[None, None, None, None]")
        self.assertEqual(worker.text("shows"), "[None, None, 'c', None]")

    def test_tracebacks_hold_the_tools_lines_only(self):
        worker = self.serve("from toolcrib import tool\n@tool\ndef f():\n    raise RuntimeError('boom')\n")
        worker.call("f", call_id=9)
        log = worker.printed(b"RuntimeError: boom").decode()
        self.assertIn("\x1e9\x1fTraceback (most recent call last):", log)
        self.assertIn("t.py", log)
        self.assertNotIn("_sync.py", log)

    def test_odd_results(self):
        worker = self.serve(
            """
            import json
            from toolcrib import tool
            @tool
            def nan(): return {"a": [1, 2, float("nan")]}
            @tool
            def half(): return "a\\udc80"
            @tool
            def nested():
                value = []
                for _ in range(100000): value = [value]
                return value
            @tool
            def digits(): return 10 ** 5000
            @tool
            def patched():
                def broken(*args, **kwargs): raise RuntimeError("patched")
                json.dumps = json.loads = broken
                json.JSONEncoder.default = json.JSONEncoder.encode = json.JSONDecoder.decode = broken
                return {"a": 1}
            """,
        )
        self.assertEqual(worker.text("nan"), "!Error: the result holds NaN at .a[2], which JSON cannot carry")
        self.assertEqual(worker.text("half"), "a\ufffd")
        self.assertIn("nested too deeply", worker.text("nested"))
        self.assertIn("4300 digits", worker.text("digits"))
        self.assertEqual(worker.text("patched"), '{"a": 1}')
        self.assertEqual(worker.text("patched"), '{"a": 1}')

    def test_huge_results_and_the_limit(self):
        worker = self.serve("from toolcrib import tool\n@tool\ndef f(n: int): return 'x' * n\n", max_result=20_000_000)
        self.assertEqual(len(worker.text("f", n=15_000_000)), 15_000_000)
        said = worker.text("f", n=30_000_000)
        self.assertEqual(said, "!Error: the result is too large: 30000000 bytes, the limit is 20000000 bytes")

    def test_huge_arguments_and_numbers(self):
        worker = self.serve("from toolcrib import tool\n@tool\ndef f(a): return str(len(a))\n")
        self.assertEqual(worker.text("f", a="x" * 5_000_000), "5000000")
        body = b'{"op":"call","id":7,"tool":"f","args":{"a":' + b"9" * 5000 + b"}}"
        worker.write(len(body).to_bytes(4, "little") + body)
        said = worker.until("result")["result"]["content"][0]["text"]
        self.assertEqual(said, "Invalid input: a number has more than 4300 digits")

    def test_generators(self):
        worker = self.serve(
            """
            from toolcrib import tool, Progress
            @tool
            def steps():
                yield Progress(1, 3, "one")
                yield "first"
                yield "second"
                yield {"last": True}
            @tool
            def nothing():
                return
                yield
            @tool
            def returns():
                yield 1
                return "returned"
            class Silent:
                def __str__(self): raise RuntimeError("no words")
            @tool
            def interrupted():
                try: yield Silent(); yield 2
                finally: print("closed")
            """
        )
        self.assertEqual(worker.text("interrupted"), "!Error: no words")
        worker.printed(b"\x1e7\x1fclosed\n")
        self.assertEqual(worker.call("steps")["structuredContent"], {"last": True})
        progress = [frame for frame in worker.frames if frame["op"] == "progress"]
        self.assertEqual(progress, [
            {"op": "progress", "id": 7, "progress": 1, "total": 3, "message": "one"},
            {"op": "progress", "id": 7, "progress": 1, "total": None, "message": "first"},
            {"op": "progress", "id": 7, "progress": 2, "total": None, "message": "second"},
        ])  # fmt: skip
        self.assertEqual(worker.call("nothing")["content"], [])
        self.assertEqual(worker.text("returns"), "returned")
        worker.frames.clear()
        worker.call("steps", progress=False)
        self.assertEqual([frame["op"] for frame in worker.frames], ["result"])

    def test_coroutines_that_end_up_here_are_run(self):
        worker = self.serve(
            """
            import asyncio
            from toolcrib import tool, Context
            @tool
            async def one(ctx: Context):
                await asyncio.sleep(0)
                return (await ctx.call("other"))["a"]
            """
        )
        worker.start_call("one")
        ask = worker.until("ask")
        worker.send(op="reply", id=7, ask=ask["ask"], result={"content": [], "structuredContent": {"a": "b"}})
        self.assertEqual(worker.until("result")["result"]["content"][0]["text"], "b")

    def test_frames_in_pieces_and_in_heaps(self):
        worker = self.serve("from toolcrib import tool\n@tool\ndef f(n): return n\n")
        data = b"".join(
            kit.as_frame({"op": "call", "id": number, "tool": "f", "args": {"n": str(number)}}) for number in range(50)
        )
        for at in range(0, 200, 3):
            worker.write(data[at : at + 3])
            time.sleep(0.0005)
        worker.write(data[201:])
        got = [worker.until("result")["id"] for _ in range(50)]
        self.assertEqual(got, list(range(50)))

    def test_threads_and_children(self):
        worker = self.serve(
            """
            import subprocess, sys, threading
            from toolcrib import tool, Context
            @tool
            def threads(ctx: Context):
                def work(n):
                    print("from a thread")
                    ctx.progress(n)
                each = [threading.Thread(target=work, args=(n,)) for n in range(4)]
                for thread in each: thread.start()
                for thread in each: thread.join()
                return "done"
            @tool
            def child():
                code = "import os; print('child', flush=True); print(sorted(int(n) for n in os.listdir('/proc/self/fd')) if os.path.isdir('/proc/self/fd') else [0, 1, 2, 3])"
                return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, close_fds=False).stdout
            @tool
            def loud_child():
                subprocess.run([sys.executable, "-c", "print('to stdout')"])
                return "ok"
            @tool
            def asks_in_a_thread(ctx: Context):
                said = []
                def work():
                    try: ctx.call("x")
                    except RuntimeError as error: said.append(str(error))
                thread = threading.Thread(target=work); thread.start(); thread.join()
                return said[0]
            """
        )
        self.assertEqual(worker.text("threads"), "done")
        self.assertEqual(sorted(frame["progress"] for frame in worker.frames if frame["op"] == "progress"), [0, 1, 2, 3])
        self.assertEqual(worker.printed(b"\x1e7\x1ffrom a thread\n" * 4).count(b"from a thread"), 4)
        # The fourth is the listing's own.
        self.assertEqual(worker.text("child"), "child\n[0, 1, 2, 3]\n")
        self.assertEqual(worker.text("loud_child"), "ok")
        worker.printed(b"to stdout\n")
        self.assertIn("make it async", worker.text("asks_in_a_thread"))

    def test_a_tool_that_forks_answers_once(self):
        worker = self.serve(
            """
            import os, sys
            from toolcrib import tool, Context
            @tool
            def fork(how: str, ctx: Context):
                pid = os.fork()
                if pid == 0:
                    ctx.progress(99)
                    print("in the child", end="")
                    if how == "raise": raise RuntimeError("in the child")
                    if how == "exit": sys.exit(5)
                    return "from the child"
                return str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            @tool
            def ok(): return "ok"
            """
        )
        self.assertEqual([worker.text("fork", how=how) for how in ("return", "raise", "exit")], ["0", "1", "5"])
        self.assertEqual(worker.text("ok"), "ok")
        self.assertTrue(worker.silent(0.2))
        self.assertEqual([frame for frame in worker.frames if frame["op"] == "progress"], [])
        self.assertEqual(worker.printed(b"RuntimeError: in the child").count(b"\x1e7\x1fin the child"), 3)


class Printing(kit.WorkspaceCase):
    def test_lines_are_marked_and_raw_writing_is_not(self):
        worker = self.serve(
            """
            import os, sys
            from toolcrib import tool
            print("while loading")
            @tool
            def f():
                print("one"); print("two\\nthree")
                sys.stderr.write("err\\n")
                sys.stdout.buffer.write(b"bytes\\n")
                os.write(1, b"raw\\n")
                print("tail", end="")
            """
        )
        worker.call("f", call_id=3)
        worker.send(op="end")
        worker.wait()
        marked = b"".join(b"\x1e3\x1f" + line + b"\n" for line in (b"one", b"two", b"three", b"err", b"bytes"))
        self.assertEqual(worker.stderr, b"while loading\n" + marked + b"raw\n\x1e3\x1ftail\n")

    def test_long_lines_are_cut(self):
        worker = self.serve("import os\nfrom toolcrib import tool\n@tool\ndef f():\n  print('x' * 20000)\n  print('y' * 8193, end='')\n  os.write(1, b'raw\\n')\n  print('\\udc80')\n")
        worker.call("f")
        lines = worker.printed(b"\\udc80").split(b"\n")
        self.assertEqual([len(line.replace(b"\x1e7\x1f", b"")) for line in lines[:6]], [8192, 8192, 3616, 8192, 3, 7])
        self.assertEqual([line.startswith(b"\x1e7\x1f") for line in lines[:6]], [True, True, True, True, False, True])

    def test_stdout_replaced_or_closed(self):
        worker = self.serve(
            """
            import io, os, sys
            from toolcrib import tool
            @tool
            def replaces():
                sys.stdout = io.StringIO()
                print("lost")
                return "ok"
            @tool
            def closes():
                sys.__stdout__.close(); sys.stderr.close(); os.close(1); os.close(0)
                sys.stderr.write("still there\\n")
                return "ok"
            @tool
            def reads(): return input()
            """
        )
        self.assertEqual([worker.text("replaces"), worker.text("closes"), worker.text("closes")[:6]], ["ok", "ok", "!Error"])
        worker.printed(b"still there\n")

    def test_stdin_is_empty(self):
        worker = self.serve("from toolcrib import tool\n@tool\ndef reads(): return input()\n")
        self.assertIn("EOF", worker.text("reads"))


class Asking(kit.WorkspaceCase):
    TOOLS = """
        import datetime
        from dataclasses import dataclass
        from toolcrib import tool, Context, ToolError
        @dataclass
        class Form:
            day: datetime.date
        @tool
        def says(ctx: Context):
            ctx.info("hello"); ctx.log("error", {"a": {1}}, "mine"); ctx.progress(1, 2, "half")
            return f"{ctx.group} {ctx.tool} {ctx.call_id}"
        @tool
        def asks(ctx: Context):
            answer = ctx.ask("When?", Form)
            return f"{answer.action} {answer.content!r}"
        @tool
        def calls(ctx: Context):
            try:
                return ctx.call("other", {"a": 1}, name="b")
            except ToolError as error:
                return f"refused: {error} {error.result is None}"
        @tool
        def emits(ctx: Context): ctx.emit("task.done", {"n": 1})
        """

    def reply(self, worker, **reply):
        ask = worker.until("ask")
        worker.send(op="reply", id=7, ask=ask["ask"], **reply)
        result = worker.until("result")["result"]
        return ask, "\n".join(part["text"] for part in result["content"])

    def test_saying(self):
        worker = self.serve(self.TOOLS)
        self.assertEqual(worker.text("says"), "guest says 7")
        self.assertEqual(worker.frames[-4:-1], [
            {"op": "log", "id": 7, "level": "info", "data": "hello", "logger": None},
            {"op": "log", "id": 7, "level": "error", "data": {"a": [1]}, "logger": "mine"},
            {"op": "progress", "id": 7, "progress": 1, "total": 2, "message": "half"},
        ])  # fmt: skip

    def test_asking_a_person(self):
        worker = self.serve(self.TOOLS)
        worker.start_call("asks")
        ask, text = self.reply(worker, result={"action": "accept", "content": {"day": "2024-05-06"}})
        schema = {"type": "object", "properties": {"day": {"type": "string", "format": "date"}}, "required": ["day"]}
        self.assertEqual(ask, {"op": "ask", "id": 7, "ask": 1, "method": "elicitation/create", "params": {"message": "When?", "requestedSchema": schema}})
        self.assertEqual(text, "accept Form(day=datetime.date(2024, 5, 6))")
        worker.start_call("asks")
        self.assertEqual(self.reply(worker, result={"action": "decline"})[1], "decline None")

    def test_calling_another_tool(self):
        worker = self.serve(self.TOOLS)
        for reply, expected in [
            ({"result": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}, "a\nb"),
            ({"result": {"content": [], "structuredContent": {"x": 1}}}, '{"x": 1}'),
            ({"result": {"content": [{"type": "text", "text": "no"}], "isError": True}}, "refused: no False"),
            ({"error": {"message": "unknown tool"}}, "refused: unknown tool True"),
        ]:
            worker.start_call("calls")
            ask, text = self.reply(worker, **reply)
            self.assertEqual(ask["params"], {"name": "other", "arguments": {"a": 1, "name": "b"}})
            self.assertEqual(text, expected)

    def test_an_event_that_is_refused(self):
        worker = self.serve(self.TOOLS)
        worker.start_call("emits")
        ask, text = self.reply(worker, error={"message": "not available yet"})
        self.assertEqual((ask["method"], ask["params"]), ("events/emit", {"name": "task.done", "data": {"n": 1}}))
        self.assertEqual(text, "Error: not available yet")

    def test_cancelled_while_waiting_and_a_late_reply(self):
        worker = self.serve(self.TOOLS)
        worker.start_call("asks")
        ask = worker.until("ask")
        time.sleep(0.05)
        worker.process.send_signal(signal.SIGINT)
        self.assertEqual(worker.next(), {"op": "cancelled", "id": 7})
        worker.send(op="reply", id=7, ask=ask["ask"], result={"action": "accept"})
        self.assertEqual(worker.text("says"), "guest says 7")

    def test_end_while_waiting(self):
        worker = self.serve(self.TOOLS)
        worker.start_call("asks")
        ask = worker.until("ask")
        worker.send(op="end")
        worker.send(op="reply", id=7, ask=ask["ask"], result={"action": "cancel"})
        self.assertEqual(worker.until("result")["result"]["content"][0]["text"], "cancel None")
        self.assertEqual(worker.wait(), 0)


class Interrupting(kit.WorkspaceCase):
    def test_a_call_is_cancelled_and_the_worker_lives(self):
        worker = self.serve(
            """
            import time
            from toolcrib import tool
            @tool
            def sleeps():
                print("sleeping")
                try: time.sleep(60)
                except Exception: return "caught"
            @tool
            def spins():
                print("spinning")
                while True: pass
            @tool
            def swallows():
                try:
                    print("swallowing")
                    time.sleep(60)
                except BaseException: return "finished anyway"
            @tool
            def ok(): return "ok"
            """
        )
        for call_id, (tool, word) in enumerate([("sleeps", b"sleeping"), ("spins", b"spinning")], 20):
            worker.start_call(tool, call_id=call_id)
            worker.printed(word)
            worker.process.send_signal(signal.SIGINT)
            self.assertEqual(worker.next(), {"op": "cancelled", "id": call_id})
            self.assertEqual(worker.text("ok"), "ok")
        worker.start_call("swallows")
        worker.printed(b"swallowing")
        worker.process.send_signal(signal.SIGINT)
        self.assertEqual(worker.until("result")["result"]["content"][0]["text"], "finished anyway")

    def test_a_second_one_lets_the_tool_clean_up(self):
        worker = self.serve(
            """
            import time
            from toolcrib import tool
            @tool
            def f():
                print("begun")
                try: time.sleep(60)
                finally:
                    print("cleaning")
                    time.sleep(0.3)
                    print("clean")
            """
        )
        worker.start_call("f")
        worker.printed(b"begun")
        time.sleep(0.1)
        worker.process.send_signal(signal.SIGINT)
        worker.printed(b"cleaning")
        worker.process.send_signal(signal.SIGINT)
        self.assertEqual(worker.next(), {"op": "cancelled", "id": 7})
        worker.printed(b"clean\n")

    def test_a_frame_that_is_half_written_is_finished_first(self):
        worker = self.serve("from toolcrib import tool, Context\n@tool\ndef f(ctx: Context):\n    ctx.progress(1, message='x' * 1_000_000)\n    return 'ok'\n")
        worker.start_call("f")
        time.sleep(0.3)
        worker.process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        self.assertEqual(len(worker.next()["message"]), 1_000_000)
        self.assertEqual(worker.next(), {"op": "cancelled", "id": 7})

    def test_a_result_that_is_half_written_is_finished_too(self):
        worker = self.serve("from toolcrib import tool\n@tool\ndef f(): return 'x' * 1_000_000\n", max_result=1 << 30)
        worker.start_call("f")
        time.sleep(0.3)
        worker.process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        self.assertEqual(len(worker.next()["result"]["content"][0]["text"]), 1_000_000)
        self.assertTrue(worker.silent(0.1))

    def test_between_calls_it_means_nothing(self):
        worker = self.serve("from toolcrib import tool\n@tool\ndef ok(): return 'ok'\n")
        for _ in range(20):
            worker.process.send_signal(signal.SIGINT)
            self.assertEqual(worker.text("ok"), "ok")

    def test_at_any_moment_each_call_has_one_answer(self):
        worker = self.serve("from toolcrib import tool, Context\n@tool\ndef f(ctx: Context):\n    for n in range(20): ctx.progress(n)\n    return 'ok'\n")
        answers = set()
        for call_id in range(400):
            worker.start_call("f", call_id=call_id)
            time.sleep((call_id % 40) * 0.00001)
            worker.process.send_signal(signal.SIGINT)
            while True:
                frame = worker.next()
                self.assertEqual(frame["id"], call_id)
                if frame["op"] != "progress":
                    break
            answers.add(frame["op"])
        self.assertTrue(worker.silent(0.1))
        self.assertIn("cancelled", answers)

    def test_cpu_time(self):
        worker = self.serve(
            """
            import time
            from toolcrib import tool
            @tool
            def spins(seconds: float):
                end = time.process_time() + seconds
                while time.process_time() < end: pass
                return "ok"
            """,
            cpu=1,
        )
        self.assertEqual(worker.text("spins", seconds=60), "!Error: used more than 1 s of CPU time")
        self.assertEqual([worker.text("spins", seconds=0.7) for _ in range(2)], ["ok", "ok"])
        self.assertEqual(worker.text("spins", seconds=60), "!Error: used more than 1 s of CPU time")

    def test_memory(self):
        if not sys.platform.startswith("linux"):
            self.skipTest("only Linux counts memory here")
        worker = self.serve("from toolcrib import tool\n@tool\ndef f(): return str(len(bytearray(10**10)))\n@tool\ndef ok(): return 'ok'\n", memory=256 << 20)
        self.assertEqual(worker.text("f"), "!Error: out of memory (limit 256 MB)")
        self.assertEqual(worker.text("ok"), "ok")


class Ending(kit.WorkspaceCase):
    TOOLS = "import atexit, time\nfrom toolcrib import tool\natexit.register(print, 'bye')\n@tool\ndef slow():\n    print('slow')\n    time.sleep(60)\n"

    def test_end_lets_the_process_clean_up(self):
        worker = self.serve(self.TOOLS)
        worker.send(op="end")
        self.assertEqual(worker.wait(), 0)
        self.assertEqual(worker.stderr, b"bye\n")

    def test_end_does_not_wait_for_threads(self):
        worker = self.serve(
            """
            import atexit, threading, time
            from toolcrib import tool
            atexit.register(print, "bye")
            def work():
                print("half a line", end="")
                time.sleep(60)
            @tool
            def leaves_a_thread():
                threading.Thread(target=work).start()
                time.sleep(0.2)
            """
        )
        worker.call("leaves_a_thread")
        worker.send(op="end")
        self.assertEqual(worker.process.wait(5), 0)
        worker.printed(b"half a line\n")
        worker.printed(b"bye\n")

    def test_the_end_of_the_pipe_ends_it_at_once(self):
        worker = self.serve(self.TOOLS)
        worker.process.stdin.close()
        self.assertEqual(worker.wait(), 0)
        self.assertEqual(worker.stderr, b"")

    def test_a_frame_that_is_too_large_is_fatal(self):
        worker = self.serve(self.TOOLS)
        worker.write((257 << 20).to_bytes(4, "little"))
        self.assertEqual(worker.wait(), 70)
        self.assertIn(b"269484032 bytes", worker.stderr)

    def test_nobody_reads_any_more(self):
        worker = self.serve("from toolcrib import tool\n@tool\ndef f(): return 'x'\n")
        worker.process.stdout.close()
        worker.start_call("f")
        self.assertEqual(worker.wait(), 74)


if __name__ == "__main__":
    unittest.main()
