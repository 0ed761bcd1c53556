from toolcrib import tool

__all__ = ["tool"]
