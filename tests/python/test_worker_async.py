"""The worker for `async` functions, as a real process."""

import signal
import sys
import time
import unittest

import kit

TOOLS = """
    import asyncio, os, sys, threading, time
    from toolcrib import tool, Context, Progress, Page

    lock = asyncio.Lock()

    @tool
    async def echo(text: str, wait: float = 0):
        await asyncio.sleep(wait)
        return text

    @tool
    async def prints(n: int):
        for at in range(3):
            print(f"{n} line {at}")
            print(f"{n} half", end="")
            await asyncio.sleep(0.01)
            print(" done")
        print(f"{n} tail", end="")

    @tool
    async def waits():
        async with lock:
            await asyncio.sleep(60)

    @tool
    async def swallows():
        try: await asyncio.sleep(60)
        except asyncio.CancelledError: return "finished anyway"

    @tool
    async def cancels_itself(): raise asyncio.CancelledError

    @tool
    async def leaves(): sys.exit(2)

    @tool
    async def leaves_on_the_side():
        async def side(): sys.exit(3)
        task = asyncio.create_task(side())
        await asyncio.sleep(0.01)
        return "still here"

    @tool
    async def steps():
        yield Progress(1, 2)
        yield "one"
        yield "two"

    @tool
    async def says(ctx: Context):
        await ctx.info("awaited"); ctx.info("not awaited"); await ctx.progress(1)
        await asyncio.to_thread(ctx.progress, 2) if hasattr(asyncio, "to_thread") else ctx.progress(2)
        await asyncio.sleep(0)
        return "ok"

    @tool
    async def calls(name: str, ctx: Context):
        return await ctx.call(name)

    @tool
    async def asks(ctx: Context):
        answer = await ctx.ask("Sure?")
        return answer.action

    @tool
    async def forks():
        pid = os.fork()
        if pid == 0: return "child"
        return str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    @tool
    async def leaves_work():
        async def stubborn():
            while True:
                try: await asyncio.sleep(60)
                except asyncio.CancelledError: pass
        global task
        task = asyncio.create_task(stubborn())
        asyncio.get_running_loop().run_in_executor(None, time.sleep, 60)
        await asyncio.sleep(0)
        return "left"

    @tool
    async def big(n: int): return "x" * n

    @tool
    async def floods(ctx: Context):
        for at in range(20000): ctx.progress(at, message="m" * 1000)
        return "flooded"

    @tool
    async def nan(): return [float("inf")]

    @tool
    async def bad(x: int): raise RuntimeError("boom")

    @tool
    def plain(): return "plain"

    @tool
    async def blocks(how: str, ctx: Context):
        print("blocking", how)
        if how == "sleep": time.sleep(60)
        if how == "cleans":
            try: time.sleep(60)
            finally: print("cleaned", how)
        if how == "caught":
            try: time.sleep(60)
            except BaseException: return "finished anyway"
        if how == "library":
            threading.Event().wait(60)
        while how == "spin": pass
        while how == "progress": ctx.progress(1)
        while how == "print": print("x")
        loop = asyncio.get_running_loop()
        while how == "asyncio": loop.call_soon(print).cancel()
        if how == "child": await asyncio.create_task(inner())
        if how == "gather": await asyncio.gather(inner(), asyncio.sleep(60))
        if how == "group":
            async with asyncio.TaskGroup() as group: group.create_task(inner())
        if how == "wait_for": await asyncio.wait_for(inner(), 60)
        if how == "generator":
            async for _ in steps_that_block(): pass

    async def inner():
        await asyncio.sleep(0)
        time.sleep(60)

    async def steps_that_block():
        yield 1
        time.sleep(60)

    @tool
    async def leaves_a_blocking_task():
        global task
        task = asyncio.create_task(inner())
        return "left"

    @tool
    async def hands_over(ctx: Context):
        for at in range(5):
            await asyncio.sleep(0)
            ctx.progress(at)
        return "ok"
    """


class AsyncWorker(kit.WorkspaceCase):
    def setUp(self):
        super().setUp()
        self.at = self.serve(TOOLS, mode="async", max_result=64 << 20)

    def finish(self, call_id):
        result = self.at.until("result", id=call_id)["result"]
        return "\n".join(part["text"] for part in result["content"])

    def test_many_at_once_and_out_of_order(self):
        self.at.start_call("echo", call_id=1, text="slow", wait=0.5)
        self.at.start_call("echo", call_id=2, text="quick")
        self.assertEqual((self.at.next()["id"], self.at.next()["id"]), (2, 1))

    def test_errors(self):
        self.assertEqual(self.at.text("bad", x=1), "!Error: boom")
        self.assertIn(b"RuntimeError: boom", self.at.printed(b"RuntimeError"))
        self.assertNotIn(b"_async.py", self.at.stderr)
        self.assertEqual(self.at.text("bad"), "!Invalid input: Missing required parameter: x")
        self.assertEqual(self.at.text("bad", y=1, x=2), "!Invalid input: Unknown parameter: y; parameters are x")
        self.assertIn("Infinity at [0]", self.at.text("nan"))
        self.assertEqual(self.at.text("nothing"), "!Error: there is no tool 'nothing' in this worker")
        self.assertEqual(self.at.text("leaves"), "!Error: the tool called sys.exit(2)")
        self.assertEqual(self.at.text("cancels_itself"), "!Error: the tool raised CancelledError")
        self.assertEqual(self.at.text("leaves_on_the_side"), "still here")
        self.assertEqual(self.at.text("plain"), "plain")

    def test_cancel(self):
        self.at.start_call("waits", call_id=1)
        self.at.start_call("waits", call_id=2)
        self.at.text("echo", text="both have begun")
        for call_id in (2, 1):
            self.at.send(op="cancel", id=call_id)
            self.assertEqual(self.at.next(), {"op": "cancelled", "id": call_id})
        self.at.send(op="cancel", id=1)
        self.assertEqual(self.at.text("echo", text="late cancels are nothing"), "late cancels are nothing")

    def test_cancel_before_the_first_step(self):
        call = {"op": "call", "id": 5, "tool": "waits", "args": {}}
        self.at.write(kit.as_frame(call) + kit.as_frame({"op": "cancel", "id": 5}))
        self.assertEqual(self.at.next(), {"op": "cancelled", "id": 5})

    def test_cancel_that_is_swallowed(self):
        self.at.start_call("swallows", call_id=3)
        self.at.text("echo", text="begun")
        self.at.send(op="cancel", id=3)
        self.assertEqual(self.finish(3), "finished anyway")

    def test_sigint_means_nothing_while_the_loop_goes_round(self):
        self.at.start_call("echo", text="x", wait=0.2)
        self.at.process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(7), "x")

    def interrupt(self, call_id):
        """As the gateway does, but for the pause between the two."""
        self.at.send(op="cancel", id=call_id)
        time.sleep(0.05)
        self.at.process.send_signal(signal.SIGINT)

    def ways_to_block(self):
        ways = ["sleep", "spin", "cleans", "library", "progress", "print", "asyncio", "child", "gather", "wait_for", "generator"]
        return ways + ["group"] * (sys.version_info >= (3, 11))

    def test_a_call_that_holds_up_the_loop_is_interrupted(self):
        for call_id, how in enumerate(self.ways_to_block(), 20):
            with self.subTest(how=how):
                self.at.start_call("echo", call_id=1, text="in flight", wait=0.3)
                self.at.start_call("asks", call_id=2)
                ask = self.at.until("ask")
                self.at.start_call("blocks", call_id=call_id, how=how)
                self.at.printed(f"blocking {how}".encode())
                time.sleep(0.05)
                self.interrupt(call_id)
                self.assertEqual(self.at.until("cancelled"), {"op": "cancelled", "id": call_id})
                self.assertEqual(self.finish(1), "in flight")
                self.at.send(op="reply", id=2, ask=ask["ask"], result={"action": "accept"})
                self.assertEqual(self.finish(2), "accept")
        self.at.printed(b"cleaned cleans")
        self.assertNotIn(b"Traceback", self.at.stderr)

    def test_an_interrupt_that_is_swallowed(self):
        self.at.start_call("blocks", call_id=20, how="caught")
        self.at.printed(b"blocking caught")
        self.interrupt(20)
        self.assertEqual(self.finish(20), "finished anyway")

    def test_the_call_that_holds_up_another_is_interrupted(self):
        self.at.start_call("blocks", call_id=20, how="spin")
        self.at.printed(b"blocking spin")
        self.at.start_call("echo", call_id=21, text="waits its turn", wait=60)
        self.at.start_call("echo", call_id=22, text="waits too")
        self.interrupt(21)
        ends = [self.at.next() for _ in range(3)]
        self.assertEqual(ends[0], {"op": "cancelled", "id": 20})
        self.assertIn({"op": "cancelled", "id": 21}, ends)
        self.assertEqual({end["id"]: end["op"] for end in ends}[22], "result")

    def test_what_a_call_left_running_is_interrupted_too(self):
        self.assertEqual(self.at.text("leaves_a_blocking_task"), "left")
        time.sleep(0.1)
        self.at.start_call("echo", call_id=8, text="x", wait=60)
        self.interrupt(8)
        self.assertEqual(self.at.next(), {"op": "cancelled", "id": 8})

    def test_at_any_moment_each_call_has_one_answer(self):
        for call_id in range(300):
            self.at.start_call("hands_over", call_id=call_id)
            time.sleep((call_id % 30) * 0.00002)
            self.at.send(op="cancel", id=call_id)
            self.at.process.send_signal(signal.SIGINT)
            while True:
                frame = self.at.next()
                self.assertEqual(frame["id"], call_id)
                if frame["op"] != "progress":
                    break
        self.assertTrue(self.at.silent(0.1))
        self.assertEqual(self.at.text("echo", text="alive"), "alive")

    def test_prints_belong_to_their_calls(self):
        for call_id in (1, 2):
            self.at.start_call("prints", call_id=call_id, n=call_id)
        for _ in range(2):
            self.at.until("result")
        self.at.printed(b"2 tail\n"), self.at.printed(b"1 tail\n")
        lines = self.at.stderr.decode().split("\n")[:-1]
        self.assertEqual(len(lines), 14)
        for line in lines:
            self.assertRegex(line, "\x1e(\\d+)\x1f\\1 (line \\d|half done|tail)$")

    def test_generators_and_context(self):
        self.assertEqual(self.at.text("steps"), "two")
        self.assertEqual([f["message"] for f in self.at.frames if f["op"] == "progress"], [None, "one"])
        self.at.frames.clear()
        self.assertEqual(self.at.text("says"), "ok")
        self.assertEqual([f["op"] for f in self.at.frames], ["log", "log", "progress", "progress", "result"])

    def test_asks_are_answered_in_any_order(self):
        self.at.start_call("calls", call_id=1, name="a")
        self.at.start_call("calls", call_id=2, name="b")
        self.at.start_call("asks", call_id=3)
        asks = [self.at.until("ask") for _ in range(3)]
        self.assertEqual([ask["params"].get("name") for ask in asks], ["a", "b", None])
        self.at.send(op="reply", id=3, ask=asks[2]["ask"], result={"action": "accept", "content": {}})
        self.assertEqual(self.finish(3), "accept")
        self.at.send(op="reply", id=2, ask=asks[1]["ask"], error={"message": "no"})
        self.assertEqual(self.finish(2), "Error: no")
        self.at.send(op="cancel", id=1)
        self.assertEqual(self.at.next(), {"op": "cancelled", "id": 1})
        self.at.send(op="reply", id=1, ask=asks[0]["ask"], result={})
        self.assertEqual(self.at.text("echo", text="a late reply is nothing"), "a late reply is nothing")

    def test_a_tool_that_forks(self):
        self.assertEqual(self.at.text("forks"), "0")
        self.assertTrue(self.at.silent(0.2))

    def test_large_results_side_by_side_do_not_stop_the_loop(self):
        for call_id in range(4):
            self.at.start_call("big", call_id=call_id, n=8_000_000)
        self.at.start_call("echo", call_id=9, text="small")
        time.sleep(0.3)
        self.at.send(op="cancel", id=123)
        self.assertEqual({len(self.finish(call_id)) for call_id in range(4)}, {8_000_000})
        self.assertEqual(self.finish(9), "small")

    def test_a_flood_of_progress_is_bounded_and_the_result_comes(self):
        self.at.start_call("floods")
        time.sleep(0.5)
        self.assertEqual(self.finish(7), "flooded")
        told = sum(frame["op"] == "progress" for frame in self.at.frames)
        self.assertTrue(5000 < told < 20000, told)

    def test_end_waits_for_what_runs(self):
        self.at.start_call("echo", text="last", wait=0.2)
        self.at.send(op="end")
        self.assertEqual(self.finish(7), "last")
        self.assertEqual(self.at.wait(), 0)

    def test_end_does_not_wait_for_what_is_left_running(self):
        self.assertEqual(self.at.text("leaves_work"), "left")
        self.at.send(op="end")
        self.assertEqual(self.at.process.wait(10), 0)

    def test_the_end_of_the_pipe_ends_it_at_once(self):
        self.at.start_call("waits")
        self.at.process.stdin.close()
        self.assertEqual(self.at.wait(), 0)


if __name__ == "__main__":
    unittest.main()
