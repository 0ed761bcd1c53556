"""The decorator and AgentTool."""

import asyncio
import functools
import subprocess
import sys
import unittest

import kit
import toolcrib
from toolcrib import AgentTool, tool
from toolcrib._tool import MARK


def options(**given):
    @tool(**given)
    def f(): ...

    return getattr(f, MARK)


class Decorator(unittest.TestCase):
    def test_the_same_function_comes_back(self):
        def f(): ...

        self.assertIs(tool(f), f)
        self.assertIs(tool()(f), f)
        self.assertIs(tool(name="x")(f), f)
        self.assertEqual(getattr(f, MARK).name, "x")

    def test_wraps_carries_the_mark(self):
        @functools.wraps(tool(lambda: 1))
        def outer(): ...

        self.assertTrue(hasattr(outer, MARK))

    def test_hints_are_merged_over_annotations(self):
        given = options(annotations={"title": "T", "readOnlyHint": False}, read_only=True, destructive=False)
        self.assertEqual(given.annotations, {"title": "T", "readOnlyHint": True, "destructiveHint": False})
        self.assertEqual(options(idempotent=True, open_world=True).annotations, {"idempotentHint": True, "openWorldHint": True})
        self.assertIsNone(options().annotations)

    def test_timeouts(self):
        for given, expected in [(30, 30_000), (0.5, 500), ("30s", 30_000), ("2m", 120_000), ("500ms", 500), ("1 h", 3_600_000), ("5", 5000)]:
            self.assertEqual(options(timeout=given).timeout_ms, expected)

    def test_wrong_options_say_what_was_expected(self):
        for given, error, words in [
            ({"name": 5}, TypeError, r"@tool\(name=...\) expects text, got 5"),
            ({"description": b""}, TypeError, "expects text"),
            ({"input_schema": "x"}, TypeError, "expects a dict with a JSON schema"),
            ({"annotations": []}, TypeError, "expects a dict of MCP annotations"),
            ({"annotations": {"readOnlyHint": "yes"}}, TypeError, "expects True or False"),
            ({"read_only": "yes"}, TypeError, r"@tool\(read_only=...\) expects True or False"),
            ({"timeout": []}, TypeError, "expects seconds or text"),
            ({"timeout": True}, TypeError, "expects seconds or text"),
            ({"timeout": "soon"}, ValueError, "expects seconds or text"),
            ({"timeout": 0}, ValueError, "above zero"),
        ]:
            with self.subTest(given=given), self.assertRaisesRegex(error, words):
                options(**given)

    def test_what_is_no_function(self):
        with self.assertRaisesRegex(TypeError, "options by keyword, got 'name'"):
            tool("name")
        with self.assertRaisesRegex(TypeError, "write a function that calls it"):
            tool(len)
        with self.assertRaisesRegex(TypeError, "with a name"):
            tool(functools.partial(print))


class Package(unittest.TestCase):
    def test_all_public_names_are_there(self):
        for name in toolcrib.__all__:
            self.assertIsNotNone(getattr(toolcrib, name))
        with self.assertRaises(AttributeError):
            toolcrib.nothing

    def test_importing_it_is_light(self):
        code = f"import sys; sys.path.insert(0, {kit.PACKAGE!r}); import toolcrib; print(*sys.modules)"
        loaded = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True).stdout.split()
        self.assertIn("toolcrib", loaded)
        self.assertEqual(set(loaded) & {"asyncio", "inspect", "typing", "json", "dataclasses", "re"}, set())


class Agent(unittest.TestCase):
    def test_execute(self):
        async def later(a):
            return a + 1

        schema = {"type": "object", "required": ["a"]}
        self.assertEqual(asyncio.run(AgentTool("t", "d", schema, later).execute(a=1)), 2)
        self.assertEqual(asyncio.run(AgentTool("t", "d", schema, lambda a: a).execute(a=1)), 1)
        with self.assertRaisesRegex(ValueError, "Missing required parameter: a"):
            asyncio.run(AgentTool("t", "d", schema, later).execute())


if __name__ == "__main__":
    unittest.main()
