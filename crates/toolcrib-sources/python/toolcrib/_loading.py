"""Files and mods -> tools and problems.

One broken file never hides the others: each is loaded by itself and gives either its tools or the reason why not.
"""

import importlib
import os
import re
import sys

from ._importing import COMPATIBLE_PREFIX, forget, module_name, prepare
from ._served import ServedTool
from ._tool import MARK, ToolOptions

# Where the name to install is not the name to import.
_DISTRIBUTIONS = {
    "PIL": "pillow", "bs4": "beautifulsoup4", "cv2": "opencv-python", "dateutil": "python-dateutil",
    "dotenv": "python-dotenv", "git": "GitPython", "sklearn": "scikit-learn", "yaml": "pyyaml",
}  # fmt: skip


class Failure(Exception):
    """A file or mod that gives no tools, and why."""

    def __init__(self, what, cure, line=None):
        super().__init__(what)
        self.what = what
        self.cure = cure
        self.line = line


class Loader:
    """Loads all that `start` names. `send(op, fields)` tells the gateway how it goes."""

    def __init__(self, start, send):
        self.tools = {}
        self._send = send
        self._mode = start.get("schema") or "seed"
        self._list = start.get("list", True)
        self._files = start.get("files") or []
        self._mods = start.get("mods") or []
        self._workspace = start["workspace"]
        self._served = prepare(self._workspace, self._files)
        self._taken = set()

    def load(self):
        """Every file in the order given, then every mod."""
        for file in self._files:
            self._load(file["file"], "workspace", lambda file=file: self._tools_of_file(file))
        for mod in self._mods:
            label = mod["name"].replace("/", ".").rpartition(".")[2]
            self._load(mod["name"], f"mod:{label}", lambda mod=mod: self._tools_of_mod(mod))

    def _load(self, file, source, find):
        self._send("loading", {"file": file})
        try:
            found = find()
        except Failure as failure:
            failed = {"line": failure.line, "what": failure.what, "cure": failure.cure}
            self._send("failed", {"file": file, **self._from_the_workspace(failed)})
            return
        entries, problems = [], []
        for tool in found:
            entry = self._admit(tool, problems)
            if entry is not None:
                entries.append(entry)
        problems = [self._from_the_workspace(problem.as_dict()) for problem in problems]
        self._send("loaded", {"file": file, "source": source, "tools": entries, "problems": problems})

    def _from_the_workspace(self, problem):
        """The problem with the paths in it told from the workspace on: where that lies is nobody's business."""
        for folder in {self._workspace, os.path.realpath(self._workspace)} - {os.sep}:
            # With a path after it, or by itself; not as a part of a longer name.
            place = re.compile(rf"(?<![\w.-]){re.escape(folder.rstrip(os.sep))}(?:(/)(?=[\w.-])|/?(?![\w./-]))")
            for key in ("what", "cure"):
                problem[key] = place.sub(lambda found: "" if found[1] else ".", problem[key])
        return problem

    def _admit(self, tool, problems):
        """The entry of a tool that can be served. Of two with one name the gateway hears; the first is called."""
        problem = tool.name_problem()
        if problem:
            problems.append(problem)
            return None
        entry = {"name": tool.name, "async": tool.is_async}
        if self._list:
            entry, found = _describe(tool, self._mode)
            problems.extend(found)
        if entry is not None:
            self.tools.setdefault(tool.name, tool)
        return entry

    def _tools_of_file(self, file):
        name = module_name(file["file"])
        try:
            module = importlib.import_module(name)
        except BaseException as error:
            forget(name)
            raise explain(error, file["path"], file["file"]) from None
        sys.modules[COMPATIBLE_PREFIX + name.partition(".")[2]] = module
        return self._collect(module)

    def _tools_of_mod(self, mod):
        from ._mods import tools_of_mod

        return tools_of_mod(mod["name"], mod.get("config") or {})

    def _collect(self, module):
        """The marked names of a module, each tool once and at the file that defines it."""
        found = []
        for name, value in list(vars(module).items()):
            options = None if name.startswith("_") else options_of(value)
            if options is None or id(options) in self._taken:
                continue
            home = getattr(value, "__module__", None)
            if home != module.__name__ and home in self._served:
                continue
            self._taken.add(id(options))
            found.append(ServedTool(value, options))
        return found


def options_of(value):
    """What `@tool` left on an object; some objects answer to any name, so the answer is looked at."""
    try:
        options = getattr(value, MARK, None)
    except Exception:
        return None
    return options if isinstance(options, ToolOptions) else None


def explain(error: BaseException, path, file: str) -> Failure:
    """Why a file could not be loaded, where, and what to do."""
    what = f"{type(error).__name__}: {_words(error)}".rstrip(": ")
    line = line_in(error, path)
    if isinstance(error, SyntaxError) and error.filename != path and error.filename:
        what += f" ({os.path.basename(error.filename)}, line {error.lineno})"
    return Failure(what, _cure(error, file), line)


def line_in(error, path):
    """The innermost line of that very file on the way to the error."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno
    line, place = None, error.__traceback__
    while place is not None:
        if place.tb_frame.f_code.co_filename == path:
            line = place.tb_lineno
        place = place.tb_next
    return line


def _describe(tool, mode):
    """As `ServedTool.describe`, where nothing in the tool can stop the loading."""
    from ._plain import encode, plain
    from ._served import Problem

    try:
        entry, problems = tool.describe(mode)
        entry = plain(entry)
        encode(entry)
        return entry, problems
    except Exception as error:
        what = str(error).replace("the result", "the description")
        problem = Problem(tool.line(), f"{tool.name}: cannot be described: {what}", "mend its options or annotations")
        return None, [problem]


def _words(error):
    if isinstance(error, SyntaxError):
        return error.msg
    try:
        return str(error)
    except Exception:
        return ""


def _cure(error, file):
    if isinstance(error, ModuleNotFoundError) and error.name:
        top = error.name.partition(".")[0]
        if top in ("tools", "mods", "toolcrib", "openagents"):
            return f"there is no module {error.name!r}; mend the import"
        return f"add '{_DISTRIBUTIONS.get(top, top)}' to tools/requirements.txt"
    if isinstance(error, ImportError):
        return "check the name, the installed version, and whether two files import each other"
    if isinstance(error, SyntaxError):
        return "mend the line"
    if isinstance(error, SystemExit):
        return "put what ends the program under `if __name__ == '__main__':`"
    if isinstance(error, KeyError):
        from ._results import from_environ

        if from_environ(error):
            return f"name {error} under python.env in network.yaml"
    return f"mend {file}; everything else is served meanwhile"
