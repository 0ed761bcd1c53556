"""Says what a function received: `count=int 3; name=str 'a'`."""


def show(**values):
    return "; ".join(f"{name}={type(value).__name__} {text(value)}" for name, value in values.items())


def text(value):
    # A set has no order of its own, and a test needs one.
    return f"{sorted(value, key=repr)}" if isinstance(value, (set, frozenset)) else repr(value)
