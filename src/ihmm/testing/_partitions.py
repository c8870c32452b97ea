"""Set partitions of the steps of a series, which do not depend on state labels."""

from collections.abc import Iterator, Sequence

from ihmm._typing import IntArray

Partition = tuple[int, ...]  # states in order of appearance


def set_partitions(n: int) -> Iterator[Partition]:
    """All set partitions of n steps, as states in order of appearance."""

    def extend(prefix: Partition, used: int) -> Iterator[Partition]:
        if len(prefix) == n:
            yield prefix
        else:
            for state in range(used + 1):
                yield from extend((*prefix, state), max(used, state + 1))

    return extend((), 0)


def canonical(states: IntArray) -> Partition:
    """States renumbered in order of appearance."""
    number: dict[int, int] = {}
    return tuple(number.setdefault(state, len(number)) for state in states.tolist())


def blocks_of(partition: Sequence[int]) -> dict[int, list[int]]:
    """State → its steps."""
    blocks: dict[int, list[int]] = {}
    for t, state in enumerate(partition):
        blocks.setdefault(state, []).append(t)
    return blocks
