"""A tool as the worker serves it: described for the catalogue, called for a caller."""

import re
import types

from ._tool import ToolOptions

_NAME = re.compile(r"[A-Za-z0-9_.\-/]{1,128}")
_CO_COROUTINE, _CO_ASYNC_GENERATOR = 0x80, 0x200


class Problem:
    """Something an author should mend; what works is served all the same."""

    __slots__ = ("line", "what", "cure")

    def __init__(self, line, what, cure):
        self.line = line
        self.what = what
        self.cure = cure

    def as_dict(self):
        return {"line": self.line, "what": self.what, "cure": self.cure}


class ServedTool:
    """A function with what was said about it. The plan for calling it is made at the first call."""

    def __init__(self, function, options: ToolOptions):
        self.name = options.name if options.name is not None else function.__name__
        self.function = function
        self.options = options
        self.is_async = is_async(function)
        self.plan = None

    def ready(self):
        """The plan; `inspect` and all it takes along is loaded only now."""
        if self.plan is None:
            from ._signature import Plan

            self.plan = Plan(self.function, self.options.input_schema is not None)
        return self.plan

    def wants_async_context(self):
        """Whether the author's own function is `async`, whatever was put around it."""
        return is_async(innermost(self.function))

    def line(self):
        code = getattr(innermost(self.function), "__code__", None)
        return code.co_firstlineno if code else None

    def name_problem(self):
        if _NAME.fullmatch(self.name):
            return None
        return Problem(
            self.line(),
            f"the tool name {self.name!r} cannot be used",
            "give it @tool(name=...) of 1 to 128 letters, digits and the characters _ . - /",
        )

    def describe(self, mode: str):
        """`(what the catalogue needs, problems)`; the description is None if the tool cannot be served."""
        import inspect

        from ._docstring import parse

        options = self.options
        # The text on a `partial` is about `partial`.
        documented = innermost(self.function) if type(self.function).__name__ == "partial" else self.function
        doc = inspect.cleandoc(documented.__doc__) if isinstance(documented.__doc__, str) else ""
        without_sections, parameters = parse(doc) if doc else ("", {})
        if options.description is not None:
            description = options.description
        else:
            description = (without_sections if mode == "full" else doc) or f"Tool: {self.name}"
        entry = {"name": self.name, "title": options.title, "description": description}
        problems = self._add_schemas(entry, mode, parameters)
        entry["annotations"] = options.annotations
        entry["timeout_ms"] = options.timeout_ms
        entry["async"] = self.is_async
        if entry.get("inputSchema") is None:
            return None, problems
        return {key: value for key, value in entry.items() if value is not None}, problems

    def _add_schemas(self, entry, mode, parameters):
        from ._signature import input_schema, output_schema, read_signature

        options = self.options
        try:
            signature = read_signature(self.function)
        except (TypeError, ValueError) as error:
            signature = None
            if options.input_schema is None:
                return [self._problem(f"the signature cannot be read: {error}", "give it @tool(input_schema=...)")]
        problems = [self._unreadable(*one) for one in signature.unreadable] if signature else []
        clash = signature and signature.page and {p.name for p in signature.parameters} & {"page", "limit"}
        if clash:
            name = sorted(clash)[0]
            cure = f"rename the parameter `{name}`, or take `page` and `limit` as plain parameters"
            return [*problems, self._problem(f"`{name}` is a parameter and also part of `Page`", cure)]
        entry["inputSchema"] = options.input_schema
        if options.input_schema is None:
            entry["inputSchema"] = input_schema(signature, mode, parameters)
            entry["checks"] = input_schema(signature, "check", {})
        entry["outputSchema"] = options.output_schema
        if options.output_schema is None and mode == "full" and signature:
            entry["outputSchema"] = output_schema(signature)
        return problems

    def _unreadable(self, name, annotation, error):
        place = "the return annotation" if name == "return" else f"the annotation of `{name}`"
        shown = annotation if isinstance(annotation, str) else repr(annotation)
        return self._problem(
            f"{place}, `{shown}`, cannot be evaluated: {error}",
            "import the name at the top of the file, not only for type checkers",
        )

    def _problem(self, what, cure):
        return Problem(self.line(), f"{self.name}: {what}", cure)


def innermost(function):
    """The function the author wrote, beneath decorators, `partial` and methods."""
    seen = 0
    while seen < 100:
        seen += 1
        inner = getattr(function, "__wrapped__", None) or getattr(function, "__func__", None)
        if inner is None and type(function).__name__ == "partial":
            inner = function.func
        if inner is None:
            break
        function = inner
    return function


def is_async(function) -> bool:
    """Whether calling it gives something to await, as far as the outermost layer tells."""
    if hasattr(function, "_is_coroutine_mark"):
        return True
    while type(function).__name__ == "partial":
        function = function.func
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None) or getattr(getattr(type(function), "__call__", None), "__code__", None)
    return bool(code) and bool(code.co_flags & (_CO_COROUTINE | _CO_ASYNC_GENERATOR))


def settle(value, context):
    """The result of a plain function: generators are run to their end, awaitables on a loop of their own."""
    if isinstance(value, types.GeneratorType):
        return _drain(value, context)
    if hasattr(value, "__await__") or isinstance(value, types.AsyncGeneratorType):
        import asyncio

        return asyncio.run(settle_async(value, context))
    return value


async def settle_async(value, context):
    """As `settle`, on the loop that runs already."""
    if hasattr(value, "__await__"):
        value = await value
    if isinstance(value, types.AsyncGeneratorType):
        return await _drain_async(value, context)
    if isinstance(value, types.GeneratorType):
        return _drain(value, context)
    return value


class _Yielded:
    """What a generator yields: all is progress but the last, which is the result."""

    def __init__(self, context):
        self._context = context
        self._count = 0
        self._last = None

    def take(self, value):
        from ._values import Progress

        if isinstance(value, Progress):
            self._context.progress(value.done, value.total, value.message)
            return
        self._say_last()
        self._count += 1
        self._last = value

    def result(self, returned=None):
        """The last value, unless the generator also returned one."""
        if returned is None:
            return self._last
        self._say_last()
        return returned

    def _say_last(self):
        if self._count:
            self._context.progress(self._count, None, str(self._last))


def _drain(generator, context):
    yielded = _Yielded(context)
    try:
        while True:
            try:
                value = next(generator)
            except StopIteration as stop:
                return yielded.result(stop.value)
            yielded.take(value)
    finally:
        generator.close()


async def _drain_async(generator, context):
    yielded = _Yielded(context)
    try:
        async for value in generator:
            yielded.take(value)
    finally:
        await generator.aclose()
    return yielded.result()
