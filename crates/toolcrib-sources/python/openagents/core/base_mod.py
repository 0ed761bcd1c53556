"""An optional base for mods. What makes a class a mod is its `get_tools`."""


class BaseMod:
    def __init__(self, config=None):
        self.config = config or {}

    def get_tools(self):
        """The tools of this mod."""
        return []
