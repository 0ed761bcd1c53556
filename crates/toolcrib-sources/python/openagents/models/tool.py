from toolcrib import AgentTool

__all__ = ["AgentTool"]
