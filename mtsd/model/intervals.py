"""Sorted lists of disjoint intervals of numbers, whose ends are exclusive."""

from bisect import bisect_right
from typing import Final

MAX_NUMBERS: Final = 1 << 64
"""Greater than any number."""


def is_in(intervals: list[tuple[int, int]], number: int) -> bool:
    """Return whether an interval has the number."""
    at = bisect_right(intervals, (number, MAX_NUMBERS)) - 1
    return at >= 0 and intervals[at][0] <= number < intervals[at][1]


def interval_text(start: int, end: int) -> str:
    """Return an interval as a set of MySQL's GTIDs prints it, after its colon."""
    return f":{start}" if end == start + 1 else f":{start}-{end - 1}"


def union_of(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the union of two lists of intervals."""
    merged: list[tuple[int, int]] = []
    # Sorting two sorted lists behind each other merges them.
    for start, end in sorted(some + others):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def with_all_below(end: int, intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return intervals together with everything below `end`."""
    at = bisect_right(intervals, (end, MAX_NUMBERS))
    if at:
        end = max(end, intervals[at - 1][1])
    return [(0, end), *intervals[at:]]


def without(
    intervals: list[tuple[int, int]], holes: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return what is in the intervals, at least one, and not in the holes, at least one.

    Each interval and each hole is met a constant number of times: sets of 100,000 occur.
    """
    left: list[tuple[int, int]] = []
    # Most of what a checkpoint holds is removed: one hole at the beginning.
    first = bisect_right(intervals, (holes[0][1], 0)) - 1
    if first < 0 or holes[0][0] > intervals[0][0]:
        first = 0
    hole = max(0, bisect_right(holes, (intervals[first][0], MAX_NUMBERS)) - 1)
    for place in range(first, len(intervals)):
        at, end = intervals[place]
        while hole < len(holes) and holes[hole][1] <= at:
            hole += 1
        if hole == len(holes):
            left += intervals[place:]
            break
        while hole < len(holes):
            hole_start, hole_end = holes[hole]
            if hole_start >= end:
                break
            if hole_start > at:
                left.append((at, hole_start))
            at = max(at, hole_end)
            if at >= end:
                # It may go on in the next interval.
                break
            hole += 1
        if at < end:
            left.append((at, end))
    return left
