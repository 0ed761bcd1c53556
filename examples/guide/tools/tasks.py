"""Types to schema, and the two kinds of function."""

import asyncio
import hashlib
import json
from typing import List, Optional

from toolcrib import tool

from . import _store


@tool
async def create_task(title: str, priority: int = 1, tags: Optional[List[str]] = None) -> dict:
    """Create a new task."""
    task = {"id": _store.id_of(title), "title": title, "priority": priority, "tags": tags or []}
    with _store.database() as db:
        row = {**task, "tags": json.dumps(task["tags"])}
        db.execute("INSERT OR REPLACE INTO tasks VALUES (:id, :title, :priority, :tags)", row)
    return task


@tool
async def async_tool(query: str) -> str:
    """Wait for something slow. Many calls wait side by side in one process."""
    await asyncio.sleep(0.01)
    return f"Answer to: {query}"


@tool
def sync_tool(data: dict) -> str:
    """Work something out. One call at a time in a process of its own, so it holds nobody up."""
    text = json.dumps(data, sort_keys=True)
    return f"{len(data)} keys, sha256 {hashlib.sha256(text.encode()).hexdigest()[:12]}"
