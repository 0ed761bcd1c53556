"""Create, get, update, delete; search with filters; pages; many at once."""

from typing import Annotated, Any, Dict, List, Literal, Optional, TypedDict

from toolcrib import Page, tool

from . import _store


class Item(TypedDict):
    id: str
    title: str
    description: str
    category: str
    status: Literal["active", "archived"]


class Change(TypedDict):
    id: str
    changes: Dict[str, Any]


COLUMNS = ("title", "description", "category", "status")


def read_item(db, id):
    row = db.execute("SELECT * FROM items WHERE id = ?", [id]).fetchone()
    if row is None:
        raise LookupError(f"there is no item '{id}'; search_items finds what there is")
    return dict(row)


def write_changes(db, id, changes):
    item = read_item(db, id)
    for column, value in changes.items():
        if column not in COLUMNS:
            raise ValueError(f"changes.{column}: an item has {', '.join(COLUMNS)}")
        # The column is one of ours by now; the value is the caller's and goes as a parameter.
        db.execute(f"UPDATE items SET {column} = ? WHERE id = ?", [value, id])
    return {**item, **changes}


@tool(annotations={"readOnlyHint": False, "destructiveHint": False})
def create_item(title: str, description: str = "") -> Item:
    """Create a new item; its id is made of the title."""
    item = (_store.id_of(title), title, description, "general", "active")
    with _store.database() as db:
        if db.execute("SELECT 1 FROM items WHERE id = ?", item[:1]).fetchone():
            raise ValueError(f"title: there is an item '{item[0]}' already")
        db.execute("INSERT INTO items VALUES (?, ?, ?, ?, ?)", item)
        return read_item(db, item[0])


@tool(read_only=True)
def get_item(id: str) -> Item:
    """Get one item by its id."""
    with _store.database() as db:
        return read_item(db, id)


@tool(idempotent=True)
def update_item(id: str, title: Optional[str] = None, description: Optional[str] = None) -> Item:
    """Change an item; what is left out stays as it is."""
    given = {"title": title, "description": description}
    with _store.database() as db:
        return write_changes(db, id, {key: value for key, value in given.items() if value is not None})


@tool(destructive=True, idempotent=False)
def delete_item(id: str) -> str:
    """Delete one item by its id."""
    with _store.database() as db:
        read_item(db, id)
        db.execute("DELETE FROM items WHERE id = ?", [id])
    return f"Deleted {id}"


@tool(read_only=True)
def search_items(
    query: str = "",
    category: Optional[str] = None,
    status: Optional[Literal["active", "archived"]] = None,
    limit: Annotated[int, {"minimum": 1, "maximum": 100}] = 20,
) -> dict:
    """Search items by a part of their title, with filters."""
    with _store.database() as db:
        rows = db.execute(
            "SELECT * FROM items WHERE instr(lower(title), lower(?)) > 0"
            " AND category = coalesce(?, category) AND status = coalesce(?, status) ORDER BY id LIMIT ?",
            [query, category, status, limit],
        )
        return {"items": [dict(row) for row in rows]}


@tool(read_only=True)
def list_items(page: Page) -> dict:
    """List items with pagination."""
    with _store.database() as db:
        ids = [row["id"] for row in db.execute("SELECT id FROM items ORDER BY id")]
    return {"items": page.slice(ids), "page": page.page, "limit": page.limit, "total": len(ids)}


@tool
def batch_update(items: List[Change]) -> dict:
    """Update several items: either all of them, or none.

    Args:
        items: Ids, each with the columns to change
    """
    with _store.database() as db:
        return {"updated": [write_changes(db, item["id"], item["changes"])["id"] for item in items]}


@tool(read_only=True)
def batch_get_items(item_ids: List[str]) -> dict:
    """Get several items with one call instead of many."""
    marks = ", ".join("?" for _ in item_ids)
    with _store.database() as db:
        rows = [dict(row) for row in db.execute(f"SELECT * FROM items WHERE id IN ({marks}) ORDER BY id", item_ids)]
    missing = sorted(set(item_ids) - {row["id"] for row in rows})
    return {"items": rows, "missing": missing}
