"""Docstrings in the Google, NumPy and Sphinx manners: what they say about each parameter, and the rest.

`parse` takes text that `inspect.cleandoc` has been over. A section that is about parameters, returned or yielded
values or exceptions leaves the description; any other (Note, Example) stays where it is.
"""

import re

_PARAMETERS = {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"}
_DROPPED = {"returns", "return", "yields", "yield", "raises", "raise", "receives", "warns"}
_KEPT = {
    "attributes", "example", "examples", "note", "notes", "warning", "warnings", "see also", "references", "todo",
    "methods", "hint", "important", "tip", "caution", "danger", "error", "attention",
}  # fmt: skip
_HEADINGS = _PARAMETERS | _DROPPED | _KEPT

_GOOGLE_ENTRY = re.compile(r"(\*{0,2}\w+)\s*(?:\([^)]*(?:\([^)]*\)[^)]*)*\))?\s*:(?:\s+(.*)|$)")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_FIELD = re.compile(r":(\w+)(?:\s+([^:]*))?:(?:\s+(.*)|$)")
_FIELD_PARAMETERS = {"param", "parameter", "arg", "argument", "key", "keyword"}
_FIELD_DROPPED = {
    "type", "return", "returns", "rtype", "raise", "raises", "except", "exception", "yield", "yields", "ytype",
}  # fmt: skip


def parse(text: str) -> "tuple[str, dict[str, str]]":
    """`(description without those sections, {parameter: description})`."""
    lines = text.split("\n")
    kept, parameters, at = [], {}, 0
    while at < len(lines):
        at = _take_section(lines, at, kept, parameters)
    description = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return description, {name: words for name, words in parameters.items() if words}


def _take_section(lines, at, kept, parameters):
    """Consume what begins at line `at` and return where the next begins."""
    heading, body = _heading(lines, at)
    if heading is not None:
        end = _section_end(lines, body, numpy=body == at + 2)
        if heading in _PARAMETERS:
            entries = _numpy_entries if body == at + 2 else _google_entries
            parameters.update(entries(lines[body:end]))
        elif heading in _KEPT:
            kept.extend(lines[at:end])
        return end
    field = _FIELD.match(lines[at])
    if field and field[1] in _FIELD_PARAMETERS | _FIELD_DROPPED:
        return _take_field(lines, at, field, parameters)
    kept.append(lines[at])
    return at + 1


def _heading(lines, at):
    """The section name at line `at` and where its body begins, or `(None, at)`."""
    line = lines[at]
    if not line or line[0].isspace():
        return None, at
    underline = lines[at + 1].strip() if at + 1 < len(lines) else ""
    if line.strip().lower() in _HEADINGS and len(underline) >= 3 and set(underline) <= {"-", "="}:
        return line.strip().lower(), at + 2
    if line.rstrip().endswith(":") and line.rstrip()[:-1].lower() in _HEADINGS:
        return line.rstrip()[:-1].lower(), at + 1
    return None, at


def _section_end(lines, at, numpy):
    """A Google section ends where the text is no longer indented, a NumPy one at the next heading."""
    while at < len(lines):
        heading, _ = _heading(lines, at)
        unindented = bool(lines[at]) and not lines[at][0].isspace()
        if heading is not None or (unindented and (not numpy or _FIELD.match(lines[at]))):
            break
        at += 1
    return at


def _google_entries(lines):
    entries, name, margin = {}, None, None
    for line in lines:
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        margin = indent if margin is None else margin
        entry = _GOOGLE_ENTRY.match(line.strip()) if indent <= margin else None
        if entry:
            name = entry[1].lstrip("*")
            entries[name] = (entry[2] or "").strip()
        elif name is not None:
            entries[name] = f"{entries[name]} {line.strip()}".strip()
    return entries


def _numpy_entries(lines):
    entries, names = {}, []
    for line in lines:
        if not line.strip():
            continue
        if not line[0].isspace():
            entry = _NUMPY_ENTRY.match(line.rstrip())
            names = [name.strip().lstrip("*") for name in entry[1].split(",")] if entry else []
            entries.update((name, "") for name in names)
            continue
        for name in names:
            entries[name] = f"{entries[name]} {line.strip()}".strip()
    return entries


def _take_field(lines, at, field, parameters):
    """One Sphinx field with the indented lines that go on with it."""
    words = [field[3] or ""]
    at += 1
    while at < len(lines) and lines[at][:1].isspace() and lines[at].strip():
        words.append(lines[at])
        at += 1
    if field[1] in _FIELD_PARAMETERS and field[2]:
        # `:param int count:` has the type before the name.
        parameters[field[2].split()[-1].lstrip("*")] = " ".join(word.strip() for word in words).strip()
    return at
