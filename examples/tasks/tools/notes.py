"""A tool that emits an event of its own."""

from toolcrib import Context, tool


@tool
async def take_note(text: str, ctx: Context) -> str:
    """Write something down for whoever reads the events named note.taken.

    Args:
        text: What to remember
    """
    emitted = await ctx.emit("note.taken", {"text": text})
    return f"noted as number {emitted['sequence']}"
