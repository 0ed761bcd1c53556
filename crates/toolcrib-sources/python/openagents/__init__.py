"""The names that tool files written for OpenAgents import. A real OpenAgents, where installed, gives the rest."""

from pkgutil import extend_path

from toolcrib import AgentTool, tool

__path__ = extend_path(__path__, __name__)
__all__ = ["AgentTool", "tool"]
