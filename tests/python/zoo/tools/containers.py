"""Lists in objects in lists, tuples, sets, and the abstract kinds."""

import collections.abc
from datetime import date
from typing import Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from toolcrib import tool

from ._show import show


@tool
def nested_lists(grid: List[List[int]]) -> str:
    """Take rows of integers."""
    return show(grid=grid)


@tool
def nested_dicts(table: Dict[str, Dict[str, List[float]]]) -> str:
    """Take a table of tables of numbers; a whole number in it becomes a float."""
    return show(table=table)


@tool
def list_of_optional(values: List[Optional[int]]) -> str:
    """Take integers with holes."""
    return show(values=values)


@tool
def dates_deep_down(calendar: Dict[str, List[Tuple[date, str]]]) -> str:
    """Convert what lies three levels down."""
    return show(calendar=calendar)


@tool
def int_keys(table: Dict[int, str]) -> str:
    """Take an object whose keys are meant as integers; JSON's keys are texts."""
    return show(table=sorted(str(key) for key in table))


@tool
def built_in_generics(names: list[str], table: dict[str, list[int]], pair: tuple[int, str], many: set[int]) -> str:
    """Use the generics that need no import."""
    return show(names=names, table=table, pair=pair, many=many)


@tool
def tuples(any_tuple: tuple, pair: Tuple[int, str], numbers: Tuple[int, ...], empty: Tuple[()] = ()) -> str:
    """Take tuples of every form."""
    return show(any_tuple=any_tuple, pair=pair, numbers=numbers, empty=empty)


@tool
def sets(any_set: set, numbers: Set[int], frozen: FrozenSet[str], bare_frozen: frozenset = frozenset()) -> str:
    """Take sets."""
    return show(any_set=any_set, numbers=numbers, frozen=frozen, bare_frozen=bare_frozen)


@tool
def abstract_kinds(
    sequence: Sequence[int],
    mapping: Mapping[str, int],
    iterable: Iterable[str] = (),
    collection: collections.abc.Sequence = (),
) -> str:
    """Take anything that can be walked through or looked up in."""
    return show(
        sequence=list(sequence), mapping=dict(mapping),
        iterable=list(iterable), collection=list(collection),
    )
