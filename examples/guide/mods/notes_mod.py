"""A mod: an object with settings from network.yaml that offers tools by get_tools()."""

from pathlib import Path

from toolcrib import AgentTool

WORKSPACE = Path(__file__).resolve().parent.parent


class NotesMod:
    """Notes, one file each, in the folder that the settings name."""

    def __init__(self, config):
        self.folder = WORKSPACE / config.get("folder", "tmp/notes")

    def get_tools(self):
        title = {"type": "string", "pattern": "^[a-z0-9-]{1,60}$", "description": "Small letters, digits and -"}
        text = {"type": "string", "description": "What the note says"}
        return [
            AgentTool(
                name="write_note",
                description="Write a note; one of that title is replaced",
                input_schema={
                    "type": "object",
                    "properties": {"title": title, "text": text},
                    "required": ["title", "text"],
                },
                func=self.write_note,
            ),
            AgentTool(
                name="read_note",
                description="Read a note by its title",
                input_schema={"type": "object", "properties": {"title": title}, "required": ["title"]},
                func=self.read_note,
            ),
        ]

    def file(self, title):
        if not title.replace("-", "").isalnum():
            raise ValueError(f"title: {title!r} holds more than letters, digits and -")
        return self.folder / f"{title}.txt"

    def write_note(self, title, text):
        file = self.file(title)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return f"Wrote {title}"

    async def read_note(self, title):
        file = self.file(title)
        if not file.exists():
            raise ValueError(f"title: there is no note '{title}'")
        return file.read_text(encoding="utf-8")
