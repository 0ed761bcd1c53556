"""Docstrings of the three styles, and odd ones."""

from toolcrib import tool

from ._show import show


@tool
def google_style(query: str, limit: int = 10, deep: bool = False) -> str:
    """Look for something.

    It looks everywhere, and says where it was.

    Args:
        query: Words to look for
        limit (int, optional): Most results. The description goes on
            in a second line: with a colon in it,
            and in a third.
        deep:
            Whether to look twice

    Note:
        This is no parameter: it only looks like one.

    Returns:
        str: What was found

    Raises:
        ValueError: If there is nothing to look for
    """
    return show(query=query, limit=limit, deep=deep)


@tool
def numpy_style(query: str, limit: int = 10) -> str:
    """
    Look for something.

    Parameters
    ----------
    query : str
        Words to look for,
        in any order
    limit : int, optional
        Most results

    Returns
    -------
    str
        What was found
    """
    return show(query=query, limit=limit)


@tool
def sphinx_style(query: str, limit: int = 10) -> str:
    """Look for something.

    :param query: Words to look for,
        in any order
    :param int limit: Most results
    :type query: str
    :returns: What was found
    :rtype: str
    :raises ValueError: never
    """
    return show(query=query, limit=limit)


@tool
def unknown_parameters(query: str) -> str:
    """Describe what is not there.

    Args:
        query: Words to look for
        ghost: Not in the signature
        *more: Not there either
    """
    return show(query=query)


@tool
def one_line(query: str) -> str:
    """Args: this is a sentence, not a section"""
    return show(query=query)


@tool
def only_sections(query: str) -> str:
    """
    Args:
        query: Words to look for
    """
    return show(query=query)


@tool
def blank(query: str) -> str:
    """   """
    return show(query=query)


@tool
def no_docstring(query: str) -> str:
    return show(query=query)


@tool
def tabs_and_quotes(query: str) -> str:
    """Say "quoted" and 'quoted' and \\backslash — and a dash, ein ß, 日本.

	Args:
		query: Indented with a tab; holds `code` and {braces}
    """
    return show(query=query)


@tool
def star_names(query: str, *args: str, **kwargs: str) -> str:
    r"""Describe what takes the rest.

    Args:
        query: Words \to look for
        *args: Further words
        **kwargs: Named words
    """
    return show(query=query, kwargs=dict(sorted(kwargs.items())))
