"""Models of pydantic, where it is installed; elsewhere this file offers nothing."""

from datetime import date
from typing import Annotated, List, Optional

from toolcrib import tool

from ._show import show

try:
    import pydantic
except ImportError:
    pydantic = None

if pydantic is not None:

    class Author(pydantic.BaseModel):
        name: str = pydantic.Field(min_length=1, description="As on the cover")

    class Book(pydantic.BaseModel):
        title: str
        authors: List[Author] = []
        printed: Optional[date] = None
        sequel: Optional["Book"] = None

    Book.model_rebuild()

    @tool
    def pydantic_model(book: Book) -> str:
        """Take a model, with models in it."""
        return show(title=book.title, authors=[it.name for it in book.authors], printed=book.printed)

    @tool
    def pydantic_inside(books: List[Book], best: Optional[Author] = None) -> str:
        """Take models in a list, and one that may be left out."""
        return show(titles=[book.title for book in books], best=best and best.name)

    @tool
    def pydantic_field(
        count: Annotated[int, pydantic.Field(ge=1, le=5, description="How many")],
        name: Annotated[str, pydantic.Field(pattern="^[a-z]+$", examples=["abc"])] = "abc",
    ) -> str:
        """Take limits from fields."""
        return show(count=count, name=name)

    @tool
    def pydantic_result(title: str) -> Book:
        """Return a model."""
        return Book(title=title, authors=[Author(name="unknown")], printed=date(2001, 2, 3))

    @tool
    def pydantic_refusal(title: str) -> str:
        """Raise what pydantic raises."""
        return Author(name=title[:0]).name
