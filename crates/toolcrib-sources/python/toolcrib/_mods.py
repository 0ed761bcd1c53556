"""Mods: a module with a class that has `get_tools()`."""

import importlib
import importlib.machinery
import inspect
import sys

from ._loading import Failure, explain, options_of
from ._served import ServedTool
from ._tool import ToolOptions

_FOUR = ("name", "description", "input_schema", "func")
_MORE = ("output_schema", "annotations", "title", "timeout")


def tools_of_mod(name: str, config: dict) -> list:
    """The tools of one mod; raises `Failure`."""
    modules = _import(name)
    cls = _mod_class(name, modules)
    path = getattr(sys.modules[cls.__module__], "__file__", None)
    try:
        instance = _build(cls, config)
        given = instance.get_tools()
        return [_served(item, cls) for item in given or ()]
    except Failure:
        raise
    except BaseException as error:
        raise explain(error, path, name) from None


def _import(name):
    """The module and, of a package, its `adapter` and `mod`."""
    name = _module_name(name)
    modules = [_import_one(name)]
    for part in ("adapter", "mod"):
        inner = f"{name}.{part}"
        if hasattr(modules[0], "__path__") and importlib.machinery.PathFinder.find_spec(inner, modules[0].__path__):
            modules.append(_import_one(inner))
    return modules


def _module_name(name):
    """`./name` is the folder or file `mods/name` of the workspace."""
    return f"mods.{name[2:].strip('/').replace('/', '.')}" if name.startswith("./") else name


def _import_one(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise Failure(f"there is no module {name!r}", _where_looked_for(name)) from None
        raise explain(error, _path_of(name), name) from None
    except BaseException as error:
        raise explain(error, _path_of(name), name) from None


def _where_looked_for(name):
    place = name.replace(".", "/")
    return (
        f"it was looked for at {place}.py and {place}/__init__.py in the workspace and among what is installed; "
        "put it there, or mend the name"
    )


def _path_of(name):
    parent = sys.modules.get(name.rpartition(".")[0])
    try:
        spec = importlib.machinery.PathFinder.find_spec(name, getattr(parent, "__path__", None))
    except Exception:
        return None
    return spec.origin if spec else None


def _mod_class(name, modules):
    homes = {module.__name__ for module in modules}
    found = []
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, type) and value.__module__ in homes and callable(getattr(value, "get_tools", None)):
                found.append(value)
    found = list(dict.fromkeys(found))
    # A class that others here are made from is their base, not the mod.
    found = [cls for cls in found if not any(other is not cls and issubclass(other, cls) for other in found)]
    if len(found) > 1:
        found = [cls for cls in found if cls.__name__.endswith(("Mod", "Adapter"))] or found
    if len(found) == 1:
        return found[0]
    if not found:
        cure = "write a class with a method get_tools that returns AgentTools"
        raise Failure(f"{name} has no class with get_tools()", cure)
    names = ", ".join(cls.__name__ for cls in found)
    cure = "let the name of one only end in Mod or Adapter"
    raise Failure(f"{name} has several classes with get_tools(): {names}", cure)


def _build(cls, config):
    parameters = [] if cls.__init__ is object.__init__ else list(inspect.signature(cls).parameters.values())
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if any(p.name == "config" and p.kind is not p.POSITIONAL_ONLY for p in named):
        instance = cls(config=config)
    elif any(p.default is p.empty for p in named):
        instance = cls(config)
    else:
        instance = cls()
    if getattr(instance, "config", None) is None:
        try:
            instance.config = config
        except AttributeError:
            # A class with slots has said that it wants none.
            return instance
    return instance


def _served(item, cls):
    """A tool from an AgentTool, from whatever has the same four attributes, or from a function with `@tool`."""
    options = options_of(item)
    if options is not None:
        return ServedTool(item, options)
    look = item.get if isinstance(item, dict) else lambda attribute, default=None: getattr(item, attribute, default)
    missing = [attribute for attribute in _FOUR if look(attribute) is None and attribute != "input_schema"]
    if missing or not callable(look("func")):
        what = f"{cls.__name__}.get_tools() gave {item!r}, which has no {', '.join(missing) or 'func to call'}"
        raise Failure(what, "return AgentTool(name, description, input_schema, func) objects")
    name, description, input_schema, function = (look(attribute) for attribute in _FOUR)
    more = {attribute: look(attribute) for attribute in _MORE}
    return ServedTool(function, ToolOptions(name, description, input_schema, **more))
