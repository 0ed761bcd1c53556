"""Settings shown without their secrets, a tool that destroys, and one that network.yaml hides."""

import json

from toolcrib import Context, tool

from . import _store

SECRET_WORDS = ("key", "token", "secret", "password")


def mask(value, name=""):
    """The same structure, with every value that has a secret's name replaced."""
    if any(word in name.lower() for word in SECRET_WORDS):
        return "****"
    if isinstance(value, dict):
        return {key: mask(inner, key) for key, inner in value.items()}
    return value


@tool(annotations={"readOnlyHint": True, "destructiveHint": False})
def get_config(ctx: Context) -> dict:
    """The settings of this workspace, secrets masked."""
    settings = mask(json.loads((_store.WORKSPACE / "settings.json").read_text(encoding="utf-8")))
    ctx.info(f"settings read: {settings}")
    return settings


@tool(annotations={"readOnlyHint": False, "destructiveHint": True})
def delete_database(name: str) -> str:
    """Throw away every item, task and user, and begin again with the samples.

    Args:
        name: The database's name, `guide`; asked for so that nobody does this by accident
    """
    if name != _store.DATABASE.stem:
        raise ValueError(f"name: there is no database '{name}'")
    with _store.database() as db:
        _store.fill(db)
    return f"Database '{name}' holds the samples again"


@tool
def debug_dump() -> dict:
    """How many rows each table has. Hidden from callers by excluded_tools."""
    with _store.database() as db:
        return {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in _store.TABLES}
