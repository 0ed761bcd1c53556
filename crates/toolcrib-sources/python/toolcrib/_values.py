"""What a tool may take or give beside plain Python values: pages, progress, pictures, sounds, files."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Sequence, TypeVar, Union

    Number = Union[int, float]
    Item = TypeVar("Item")
    Data = Union[bytes, bytearray, memoryview, str, "os.PathLike[str]"]


class Page:
    """Which part of a long list the caller wants. A parameter of this type becomes `page` and `limit`."""

    MAXIMUM = 100

    def __init__(self, page: int = 1, limit: int = 20):
        self.page = _whole("page", page)
        self.limit = _whole("limit", limit)
        if self.page < 1:
            raise ValueError(f"page: expected 1 or more, got {page!r}")
        if not 1 <= self.limit <= self.MAXIMUM:
            raise ValueError(f"limit: expected 1 to {self.MAXIMUM}, got {limit!r}")

    @property
    def offset(self) -> int:
        """How many items come before this page."""
        return (self.page - 1) * self.limit

    def slice(self, items: Sequence[Item]) -> Sequence[Item]:
        """The items of this page."""
        return items[self.offset : self.offset + self.limit]

    def __repr__(self):
        return f"Page(page={self.page}, limit={self.limit})"


class Progress:
    """Yielded by a generator tool to say how far it is."""

    def __init__(self, done: Number, total: Optional[Number] = None, message: Optional[str] = None):
        self.done = done
        self.total = total
        self.message = message

    def __repr__(self):
        return f"Progress({self.done!r}, total={self.total!r}, message={self.message!r})"


class _Media:
    """Bytes, or the path of a file with them. Text given as `data` is a path."""

    def __init__(self, data: Optional[Data] = None, mime: Optional[str] = None, *, path: Optional[Data] = None):
        if (data is None) == (path is None):
            raise TypeError(f"{type(self).__name__} expects bytes or a path, and one of them only")
        given = path if data is None else data
        if isinstance(given, (bytes, bytearray, memoryview)):
            self.data, self.path = bytes(given), None
        elif isinstance(given, (str, os.PathLike)):
            self.data, self.path = None, os.fspath(given)
        else:
            raise TypeError(f"{type(self).__name__} expects bytes or a path, got {given!r}")
        self.mime = mime

    def read(self) -> bytes:
        """The bytes; a file is opened only now."""
        if self.path is None:
            return self.data
        with open(self.path, "rb") as file:
            return file.read()


class Image(_Media):
    """A picture. `mime` may be a MIME type or a format (`"png"`); without it the bytes tell."""

    family = "image"


class Audio(_Media):
    """A sound. `mime` may be a MIME type or a format (`"wav"`); without it the bytes tell."""

    family = "audio"


class File(_Media):
    """A file for the caller: embedded as text where it is text, else as a blob."""

    def __init__(
        self,
        data: Optional[Data] = None,
        name: Optional[str] = None,
        mime: Optional[str] = None,
        *,
        path: Optional[Data] = None,
    ):
        super().__init__(data, mime, path=path)
        self.name = name or (os.path.basename(self.path) if self.path else None)


def _whole(name, value):
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name}: expected a whole number, got {value!r}")
    return value


class Artifact:
    """Something that was stored: what `ctx.store` gives. A tool that returns it answers with a link to it."""

    def __init__(self, id: str, uri: str, size: int, media_type: str, label: str = ""):
        self.id = id
        self.uri = uri
        self.size = size
        self.media_type = media_type
        self.label = label

    def __repr__(self):
        return f"Artifact(id={self.id!r}, size={self.size}, media_type={self.media_type!r})"
