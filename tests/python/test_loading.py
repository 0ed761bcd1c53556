"""Files and mods: what is found, what fails, what is told."""

import os
import sys
import time
import unittest

import kit


class Loading(kit.WorkspaceCase):
    def load(self, **start):
        """`{file: its loaded or failed frame}`, and the worker in `self.at`."""
        self.at = self.worker(**start).ready()
        return {frame["file"]: frame for frame in self.at.frames if frame["op"] in ("loaded", "failed")}

    def names(self, frame):
        self.assertEqual(frame["op"], "loaded", frame)
        return [tool["name"] for tool in frame["tools"]]


class Files(Loading):
    def test_every_frame_of_a_load(self):
        self.write("tools/a.py", "from toolcrib import tool\n@tool(title='T', timeout=2, read_only=True)\ndef one(q: str): 'Doc.'\n")
        self.load()
        schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
        tool = {
            "name": "one", "title": "T", "description": "Doc.", "inputSchema": schema,
            "checks": {**schema, "additionalProperties": False},
            "annotations": {"readOnlyHint": True}, "timeout_ms": 2000, "async": False,
        }  # fmt: skip
        python = ".".join(map(str, sys.version_info[:3]))
        expected = [
            {"op": "loading", "file": "tools/a.py"},
            {"op": "loaded", "file": "tools/a.py", "source": "workspace", "tools": [tool], "problems": []},
            {"op": "ready", "protocol": 1, "python": python, "executable": sys.executable},
        ]
        self.assertEqual(self.at.frames, expected)

    def test_descriptions(self):
        self.write(
            "tools/a.py",
            '''
            from openagents import tool
            @tool
            def doc(a: int):
                """Do it.

                Args:
                    a: alpha
                """
            @tool
            def none(): ...
            @tool(description="")
            def empty(): "ignored"
            @tool(input_schema={})
            def free(x: int): ...
            ''',
        )
        seed = {tool["name"]: tool for tool in self.load()["tools/a.py"]["tools"]}
        self.assertEqual(seed["doc"]["description"], "Do it.\n\nArgs:\n    a: alpha")
        self.assertEqual(seed["doc"]["inputSchema"]["properties"]["a"], {"type": "integer", "description": "alpha"})
        self.assertEqual(seed["none"]["description"], "Tool: none")
        self.assertEqual(seed["empty"]["description"], "")
        self.assertEqual(seed["free"]["inputSchema"], {})
        full = {tool["name"]: tool for tool in self.load(schema="full")["tools/a.py"]["tools"]}
        self.assertEqual(full["doc"]["description"], "Do it.")
        self.assertIs(full["doc"]["inputSchema"]["additionalProperties"], False)

    def test_without_a_list_there_are_names_only(self):
        self.write("tools/a.py", "from toolcrib import tool\n@tool\ndef one(q: 'Nowhere'): ...\n@tool\nasync def two(): ...\n")
        frame = self.load(list=False)["tools/a.py"]
        self.assertEqual(frame["tools"], [{"name": "one", "async": False}, {"name": "two", "async": True}])
        self.assertEqual(frame["problems"], [])

    def test_only_public_names_in_order_and_each_once(self):
        self.write(
            "tools/ok.py",
            """
            from toolcrib import tool
            @tool
            def zebra(): ...
            @tool
            def ape(): ...
            @tool
            def _private(): ...
            def plain(): ...
            alias = ape
            class Holder:
                @tool
                def method(self): ...
            """,
        )
        self.assertEqual(self.names(self.load()["tools/ok.py"]), ["zebra", "ape"])

    def test_a_tool_belongs_to_the_file_that_defines_it(self):
        self.write("tools/a.py", "from b import shared\nfrom ._helper import helped\n")
        self.write("tools/b.py", "from toolcrib import tool\nfrom tools._helper import helped\n@tool\ndef shared(): ...\n")
        self.write("tools/_helper.py", "from toolcrib import tool\n@tool\ndef helped(): ...\n")
        frames = self.load()
        self.assertEqual(self.names(frames["tools/a.py"]), ["helped"])
        self.assertEqual(self.names(frames["tools/b.py"]), ["shared"])

    def test_siblings_are_one_module_by_any_name(self):
        self.write("tools/_state.py", "count = []\n")
        self.write("tools/a.py", "import _state\nfrom . import _state as again\nfrom tools import _state as third\nimport b\n"
                   "from toolcrib import tool\n@tool\ndef same(): return str([_state is again is third, b.__name__, b.__spec__.name])\n")
        self.write("tools/b.py", "import _state\n_state.count.append(1)\nfrom toolcrib import tool\n@tool\ndef runs(): return str(_state.count)\n")
        self.load()
        self.assertEqual(self.at.text("same"), "[True, 'tools.b', 'tools.b']")
        self.assertEqual(self.at.text("runs"), "[1]")

    def test_what_is_installed_wins(self):
        for name in ("json", "colorsys"):
            self.write(f"tools/{name}.py", f"from toolcrib import tool\nimport {name}\n@tool\ndef from_{name}(): return {name}.__name__\n")
        self.load()
        self.assertEqual((self.at.text("from_json"), self.at.text("from_colorsys")), ("json", "colorsys"))

    def test_circular_imports(self):
        self.write("tools/a.py", "import b\nfrom toolcrib import tool\n@tool\ndef from_a(): return b.word\n")
        self.write("tools/b.py", "import a\nword = 'b'\nfrom toolcrib import tool\n@tool\ndef from_b(): return a.from_a()\n")
        frames = self.load()
        self.assertEqual([self.names(frames[f"tools/{name}.py"]) for name in "ab"], [["from_a"], ["from_b"]])
        self.assertEqual(self.at.text("from_b"), "b")

    def test_a_circle_that_python_refuses(self):
        self.write("tools/a.py", "from b import word\nname = 1\n")
        self.write("tools/b.py", "from a import name\nword = 1\n")
        frames = self.load()
        self.assertEqual(frames["tools/a.py"]["op"], "failed")
        self.assertIn("circular import", frames["tools/a.py"]["what"])

    def test_problems_do_not_tell_where_the_workspace_lies(self):
        real = self.workspace
        link = self.workspace = f"{real}-link"
        os.symlink(real, link)
        self.addCleanup(os.remove, link)
        said = """f"{a}/tools/x.csv {a} {a}/ {a}-other/x /mnt{a}/x '{a}/b c'" """
        self.write("tools/a.py", "from b import word\nname = 1\n")
        self.write("tools/b.py", "from a import name\nword = 1\n")
        self.write("tools/c.py", f"a = {link!r}\nraise OSError({said})\n")
        self.write("tools/d.py", f"a = {real!r}\nraise OSError({said})\n")
        self.write("tools/e.py", f"from toolcrib import tool\n@tool\ndef f(a: \"Nowhere('{link}/x')\"): ...\n")
        self.write("mods/m.py", "open(__file__ + '.csv')\n")
        frames = self.load(mods=[{"name": "mods.m", "config": {}}])
        self.assertTrue(frames["tools/a.py"]["what"].endswith(" (tools/a.py)"), frames["tools/a.py"])
        self.assertEqual(frames["tools/c.py"]["what"], f"OSError: tools/x.csv . . {link}-other/x /mnt{link}/x 'b c'")
        self.assertEqual(frames["tools/d.py"]["what"], f"OSError: tools/x.csv . . {real}-other/x /mnt{real}/x 'b c'")
        self.assertIn("`Nowhere('x')`", frames["tools/e.py"]["problems"][0]["what"])
        self.assertIn("directory: 'mods/m.py.csv'", frames["mods.m"]["what"])
        self.assertEqual(frames["mods.m"]["line"], 1)

    def test_the_compatible_alias(self):
        self.write("tools/a.py", "from toolcrib import tool\n@tool\ndef shared(): ...\n")
        self.write("tools/b.py", "import sys\nshared = sys.modules['openagents_workspace_tools_a'].shared\n")
        frames = self.load()
        self.assertEqual((self.names(frames["tools/a.py"]), self.names(frames["tools/b.py"])), (["shared"], []))

    def test_odd_file_names(self):
        for name in ("with-dash", "two.dots", "class"):
            self.write(f"tools/{name}.py", f"from toolcrib import tool\n@tool(name={name!r})\ndef f(): return {name!r}\n")
        frames = self.load()
        self.assertEqual([self.names(frame) for frame in frames.values()], [["class"], ["two.dots"], ["with-dash"]])
        self.assertEqual(self.at.text("two.dots"), "two.dots")

    def test_other_decorators_are_called(self):
        self.write(
            "tools/a.py",
            '''
            import functools
            from toolcrib import tool
            def loud(fn):
                @functools.wraps(fn)
                def outer(*args, **kwargs):
                    return fn(*args, **kwargs) + "!"
                return outer
            @tool
            @loud
            def below(x: str): "B"; return x
            @loud
            @tool
            def above(x: str):
                "A"
                return x
            ''',
        )
        frame = self.load()["tools/a.py"]
        self.assertEqual([tool["inputSchema"]["required"] for tool in frame["tools"]], [["x"], ["x"]])
        self.assertEqual(frame["tools"][1]["description"], "A")
        self.assertEqual((self.at.text("below", x="1"), self.at.text("above", x="1")), ("1!", "1!"))

    def test_a_given_source_runs_in_place_of_the_file(self):
        path = self.write("tools/a.py", "this is no python\n")
        self.write("tools/b.py", "from toolcrib import tool\nimport a\n@tool\ndef through(): return a.word\n")
        source = "from toolcrib import tool\nword = 'old'\n@tool\ndef one():\n    raise OSError('from the old text')\n"
        files = [
            {"file": "tools/b.py", "path": os.path.join(self.workspace, "tools/b.py"), "source": None},
            {"file": "tools/a.py", "path": path, "source": source},
        ]
        frames = self.load(files=files)
        self.assertEqual(self.names(frames["tools/a.py"]), ["one"])
        self.assertEqual(self.at.text("through"), "old")
        self.at.call("one")
        self.at.printed(b"    raise OSError('from the old text')")

    def test_files_that_fail(self):
        for name, text, line, what, cure in [
            ("syntax", "x = 1\nfoo(\n", None, "SyntaxError: ", "mend the line"),
            ("raises", "def f():\n    raise RuntimeError('boom')\n\nf()\n", 2, "RuntimeError: boom", "mend tools/raises.py; everything else is served meanwhile"),
            ("absent", "\nimport not_there_xyz.sub\n", 2, "ModuleNotFoundError: No module named 'not_there_xyz'", "add 'not_there_xyz' to tools/requirements.txt"),
            ("alias", "import yaml_not_there\n", 1, "ModuleNotFoundError: No module named 'yaml_not_there'", "add 'yaml_not_there' to tools/requirements.txt"),
            ("name", "from json import nothing_xyz\n", 1, "ImportError: cannot import name 'nothing_xyz'", "check the name"),
            ("leaves", "import sys\nsys.exit(3)\n", 2, "SystemExit: 3", "put what ends the program under `if __name__ == '__main__':`"),
            ("environ", "import os\nos.environ['NO_SUCH']\n", 2, "KeyError: 'NO_SUCH'", "name 'NO_SUCH' under python.env in network.yaml"),
            ("option", "from toolcrib import tool\n@tool(name=5)\ndef f(): ...\n", 2, "TypeError: @tool(name=...) expects text, got 5", "mend tools/option.py"),
            ("inner", "x = 1\nimport syntax\n", 2, "SyntaxError: ", "mend the line"),
        ]:
            self.write(f"tools/{name}.py", text)
            with self.subTest(name):
                frame = self.load()[f"tools/{name}.py"]
                self.assertEqual(frame["op"], "failed")
                self.assertEqual(frame["line"], 2 if name == "syntax" else line)
                self.assertTrue(frame["what"].startswith(what), frame["what"])
                self.assertTrue(frame["cure"].startswith(cure), frame["cure"])
                self.at.close()
        self.assertIn("(syntax.py, line 2)", frame["what"])

    def test_a_file_that_fails_hides_no_other(self):
        self.write("tools/a.py", "import b\nraise RuntimeError\n")
        self.write("tools/b.py", "import a\nfrom toolcrib import tool\n@tool\ndef fine(): return 'x'\n")
        self.write("tools/c.py", "import a\n")
        frames = self.load()
        self.assertEqual(frames["tools/a.py"]["what"], "RuntimeError")
        self.assertEqual(self.names(frames["tools/b.py"]), ["fine"])
        self.assertEqual((frames["tools/c.py"]["op"], frames["tools/c.py"]["line"]), ("failed", 1))

    def test_problems_of_tools(self):
        self.write(
            "tools/a.py",
            """
            from toolcrib import tool, Page
            @tool(name="has space")
            def named(): ...
            @tool
            def fine(a: "Nowhere", b: int): ...
            @tool
            def clash(limit: int, page: Page): ...
            @tool(input_schema={"a": {1, 2}.__iter__})
            def odd(): ...
            """,
        )
        frame = self.load()["tools/a.py"]
        self.assertEqual(self.names(frame), ["fine"])
        self.assertEqual([problem["line"] for problem in frame["problems"]], [3, 5, 7, 9])
        self.assertEqual(frame["problems"][0]["what"], "the tool name 'has space' cannot be used")
        self.assertTrue(frame["problems"][1]["what"].startswith("fine: the annotation of `a`, `Nowhere`, cannot be evaluated: "))
        self.assertEqual(frame["problems"][2]["what"], "clash: `limit` is a parameter and also part of `Page`")
        self.assertIn("cannot be described", frame["problems"][3]["what"])
        self.assertTrue(all(problem["cure"] for problem in frame["problems"]))
        self.assertIn("no tool 'odd'", self.at.text("odd"))

    def test_two_tools_of_one_name_are_both_told(self):
        self.write("tools/a.py", "from toolcrib import tool\n@tool(name='dup')\ndef f(): return '1'\n@tool(name='dup')\ndef g(): return '2'\n")
        self.assertEqual(self.names(self.load()["tools/a.py"]), ["dup", "dup"])
        self.assertEqual(self.at.text("dup"), "1")

    def test_nothing_is_left_in_the_tools_folder(self):
        self.write("tools/a.py", "import _b\n")
        self.write("tools/_b.py", "")
        self.load()
        self.assertEqual(sorted(os.listdir(os.path.join(self.workspace, "tools"))), ["_b.py", "a.py"])

    def test_two_edits_in_one_second(self):
        cache = None
        for text in ("one", "two"):
            path = self.write("tools/a.py", f"from toolcrib import tool\nimport _b\n@tool\ndef f(): return {text!r} + _b.x\n")
            helper = self.write("tools/_b.py", f"x = {text!r}\n")
            now = int(time.time())
            for file in (path, helper):
                os.utime(file, (now, now))
            worker = self.worker(cache=cache).ready()
            cache = worker.cache
            self.assertEqual(worker.text("f"), text + text)

    def test_bytecode_is_kept_of_files_at_rest(self):
        path = self.write("tools/a.py", "")
        os.utime(path, (1e9, 1e9))
        worker = self.worker().ready()
        kept = [name for _, _, names in os.walk(worker.cache) for name in names]
        self.assertTrue(any(name.startswith("a.cpython") for name in kept), kept)

    def test_all_paths_of_openagents(self):
        for number, line in enumerate([
            "from openagents import tool",
            "from openagents.workspace.tool_decorator import tool",
            "from openagents.core.tool_decorator import tool",
            "from openagents.models.tool import AgentTool\nfrom toolcrib import tool",
            "from openagents.core.base_mod import BaseMod\nfrom toolcrib import tool",
        ]):  # fmt: skip
            self.write(f"tools/t{number}.py", f"{line}\n@tool\ndef f{number}(): ...\n")
        self.assertEqual([self.names(frame) for frame in self.load().values()], [[f"f{number}"] for number in range(5)])


class Mods(Loading):
    def test_a_mod_with_everything(self):
        self.write(
            "mods/search_mod.py",
            """
            from openagents.core.base_mod import BaseMod
            from openagents.models.tool import AgentTool
            from toolcrib import tool

            @tool
            def marked(x: int): return x

            class Plain:
                name, description, input_schema = "plain", "P", {"type": "object"}
                def func(self, **kwargs): return kwargs

            class SearchMod(BaseMod):
                def search(self, query): return f"{self.config['where']}: {query}"
                async def later(self): return "later"
                def get_tools(self):
                    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
                    return [
                        AgentTool("search", "Search.", schema, self.search, title="S", timeout=1, annotations={"readOnlyHint": True}),
                        AgentTool("later", "Later.", {"type": "object"}, func=self.later),
                        {"name": "as_dict", "description": "D", "input_schema": {}, "func": lambda: "dict"},
                        Plain(),
                        marked,
                    ]
            """,
        )
        frame = self.load(mods=[{"name": "mods.search_mod", "config": {"where": "here"}}])["mods.search_mod"]
        self.assertEqual(frame["source"], "mod:search_mod")
        self.assertEqual(self.names(frame), ["search", "later", "as_dict", "plain", "marked"])
        self.assertEqual(frame["tools"][0]["timeout_ms"], 1000)
        self.assertEqual([tool["async"] for tool in frame["tools"]], [False, True, False, False, False])
        self.assertEqual(self.at.text("search", query="q"), "here: q")
        self.assertEqual(self.at.text("as_dict"), "dict")
        self.assertEqual(self.at.text("plain", a=1), '{"a": 1}')
        self.assertEqual(self.at.text("marked", x=1.0), "1")

    def test_packages_relative_names_and_constructors(self):
        self.write("mods/one/__init__.py", "")
        self.write("mods/one/adapter.py", "class OneAdapter:\n  def __init__(self, settings): self.settings = settings\n  def get_tools(self): return [dict(name='a', description='', input_schema={}, func=lambda: self.settings)]\n")
        self.write("mods/two.py", "class Two:\n  def get_tools(self): return [dict(name='b', description='', input_schema={}, func=lambda: self.config)]\n")
        frames = self.load(mods=[{"name": "./one", "config": {"k": 1}}, {"name": "./two", "config": {"k": 2}}])
        self.assertEqual([frame["source"] for frame in frames.values()], ["mod:one", "mod:two"])
        self.assertEqual((self.at.text("a"), self.at.text("b")), ('{"k": 1}', '{"k": 2}'))

    def test_which_class(self):
        many = "class A:\n  def get_tools(self): return []\nclass B:\n  def get_tools(self): return []\n"
        self.write("mods/base.py", many + "class C(A, B): pass\n")
        self.write("mods/named.py", many + "class RealMod:\n  def get_tools(self): return []\n")
        self.write("mods/several.py", many)
        self.write("mods/none.py", "from openagents.core.base_mod import BaseMod\n")
        frames = self.load(mods=[{"name": f"mods.{name}", "config": {}} for name in ("base", "named", "several", "none")])
        self.assertEqual(self.names(frames["mods.base"]), [])
        self.assertEqual(self.names(frames["mods.named"]), [])
        self.assertEqual(frames["mods.several"]["what"], "mods.several has several classes with get_tools(): A, B")
        self.assertEqual(frames["mods.none"]["what"], "mods.none has no class with get_tools()")

    def test_a_mod_that_is_not_there(self):
        for name, module, place in [
            ("mods.absent", "mods.absent", "mods/absent"),
            ("./absent", "mods.absent", "mods/absent"),
            ("openagents.mods.search.absent", "openagents.mods.search.absent", "openagents/mods/search/absent"),
        ]:
            with self.subTest(name):
                frame = self.load(mods=[{"name": name, "config": {}}])[name]
                cure = (
                    f"it was looked for at {place}.py and {place}/__init__.py in the workspace and among what is "
                    "installed; put it there, or mend the name"
                )
                what = f"there is no module {module!r}"
                self.assertEqual(frame, {"op": "failed", "file": name, "line": None, "what": what, "cure": cure})

    def test_mods_that_fail(self):
        self.write("mods/raises.py", "class RMod:\n  def get_tools(self):\n    raise RuntimeError('boom')\n")
        self.write("mods/broken.py", "x = 1\nimport not_there_xyz\n")
        self.write("mods/odd.py", "class OMod:\n  def get_tools(self): return [5]\n")
        frames = self.load(mods=[{"name": name, "config": {}} for name in ("mods.raises", "mods.broken", "mods.odd", "mods.absent")])
        self.assertEqual((frames["mods.raises"]["what"], frames["mods.raises"]["line"]), ("RuntimeError: boom", 3))
        self.assertEqual((frames["mods.broken"]["cure"], frames["mods.broken"]["line"]), ("add 'not_there_xyz' to tools/requirements.txt", 2))
        self.assertEqual(frames["mods.odd"]["what"], "OMod.get_tools() gave 5, which has no name, description, func")
        self.assertEqual(frames["mods.absent"]["what"], "there is no module 'mods.absent'")


if __name__ == "__main__":
    unittest.main()
