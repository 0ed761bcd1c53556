"""What a tool author imports: `from toolcrib import tool, Context, Image`.

Only the decorator is loaded at once. Everything else comes when it is first asked for, because this import stands
at the top of every tool file and every worker pays for it.
"""

from ._tool import AgentTool, tool

__all__ = [
    "AgentTool",
    "Answer",
    "Artifact",
    "Audio",
    "Context",
    "File",
    "Image",
    "Page",
    "Progress",
    "ToolError",
    "tool",
]

_VALUES = {"Artifact", "Audio", "File", "Image", "Page", "Progress"}
_CONTEXT = {"Answer", "Context", "ToolError"}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._context import Answer, Context, ToolError
    from ._values import Artifact, Audio, File, Image, Page, Progress


def __getattr__(name: str) -> object:
    if name in _VALUES:
        from . import _values as home
    elif name in _CONTEXT:
        from . import _context as home
    else:
        raise AttributeError(f"module 'toolcrib' has no attribute {name!r}")
    value = getattr(home, name)
    globals()[name] = value
    return value
