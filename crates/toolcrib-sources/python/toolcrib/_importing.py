"""How tool files are imported: as modules of a package `tools` that exists in memory only.

`import sibling`, `from . import sibling` and `from tools import sibling` all give one module object, whichever is
said first. What is installed wins over a sibling that was named alike.
"""

import importlib
import os
import sys
import time
import types
from importlib.machinery import ModuleSpec, SourceFileLoader

PACKAGE = "tools"
COMPATIBLE_PREFIX = "openagents_workspace_tools_"


def module_name(file):
    """`tools/search.py` -> `tools.search`. A dot in a file's name would mean a package."""
    stem = os.path.basename(file)
    stem = stem[:-3] if stem.endswith(".py") else stem
    return f"{PACKAGE}.{stem.replace('.', '_')}"


class FileLoader(SourceFileLoader):
    """Keeps no bytecode of a file that was just saved.

    Bytecode knows its source by whole seconds and size, so that a second edit in one second could go unseen.
    """

    SETTLED = 2

    def set_data(self, path, data, **options):
        if time.time() - self.path_stats(self.path)["mtime"] > self.SETTLED:
            super().set_data(path, data, **options)


class TextLoader(SourceFileLoader):
    """Runs text in place of the file: the last version that worked."""

    def __init__(self, name, path, text):
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname):
        import linecache

        # So that tracebacks show the lines that ran, not those on disk.
        linecache.cache[self.path] = (len(self._text), None, self._text.splitlines(True), self.path)
        return compile(self._text, self.path, "exec", dont_inherit=True)

    def get_source(self, fullname):
        return self._text


class ServedFiles:
    """Finds the files that are served, and those beside them. It stands first, since it knows where each one is."""

    def __init__(self, folder, files):
        self._folder = folder
        self._files = {module_name(file["file"]): file for file in files}

    def __contains__(self, name):
        return name in self._files

    def find_spec(self, name, path=None, target=None):
        if not name.startswith(f"{PACKAGE}."):
            return None
        file = self._files.get(name)
        if file is None:
            return self._find_helper(name)
        if file.get("source") is None:
            return _spec(FileLoader(name, file["path"]))
        return _spec(TextLoader(name, file["path"], file["source"]))

    def _find_helper(self, name):
        path = os.path.join(self._folder, f"{name.partition('.')[2]}.py")
        return _spec(FileLoader(name, path)) if os.path.isfile(path) else None


def _spec(loader):
    spec = ModuleSpec(loader.name, loader, origin=loader.path)
    spec.has_location = True
    return spec


class Siblings:
    """Makes `import sibling` mean `tools.sibling`. It stands last, so that it is asked only where all else failed."""

    def __init__(self, folder, served):
        self._folder = folder
        self._served = served

    def find_spec(self, name, path=None, target=None):
        if path is not None or "." in name or not self._exists(name):
            return None
        return ModuleSpec(name, _Alias(f"{PACKAGE}.{name}"))

    def _exists(self, name):
        place = os.path.join(self._folder, name)
        return (
            f"{PACKAGE}.{name}" in self._served
            or os.path.isfile(f"{place}.py")
            or os.path.isfile(os.path.join(place, "__init__.py"))
        )


class _Alias:
    """A loader that hands out a module that has another name already."""

    def __init__(self, real_name):
        self._real_name = real_name
        self._real_spec = None

    def create_module(self, spec):
        module = importlib.import_module(self._real_name)
        self._real_spec = module.__spec__
        return module

    def exec_module(self, module):
        # The import system has just put the alias's spec on the module.
        module.__spec__ = self._real_spec


def prepare(workspace, files):
    """Set the import system up for a workspace."""
    folder = os.path.join(workspace, "tools")
    package = types.ModuleType(PACKAGE)
    package.__path__ = [folder]
    package.__spec__ = ModuleSpec(PACKAGE, None, is_package=True)
    package.__spec__.submodule_search_locations = package.__path__
    sys.modules[PACKAGE] = package
    sys.path.insert(1, workspace)
    served = ServedFiles(folder, files)
    sys.meta_path.insert(0, served)
    sys.meta_path.append(Siblings(folder, served))
    return served


def forget(name):
    """A file that failed leaves nothing under any of its names."""
    sys.modules.pop(name, None)
    stem = name.partition(".")[2]
    for alias in (stem, COMPATIBLE_PREFIX + stem):
        if getattr(sys.modules.get(alias), "__name__", None) == name:
            del sys.modules[alias]
