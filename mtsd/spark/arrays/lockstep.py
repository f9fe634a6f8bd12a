"""Locates the values of row images, for the k-th row of many events at once.

One step takes the next image of every event that has one, with one numpy operation per column of
variable size; columns of fixed size between two of these cost nothing. So a batch of thousands of
events takes as many steps as the event with the most rows has rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.model.errors import BinlogError

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

PADDING: Final = 64
"""Zeros after the bytes of a buffer, so that the widest value of fixed size can be read there."""


class Buffer:
    """The bytes that contain the values, with access to numbers at any offset."""

    __slots__ = ("_views", "data", "raw")

    def __init__(self, raw: bytes) -> None:
        """`raw` ends with PADDING bytes that are not data."""
        self.raw = raw
        self.data: Bytes = np.frombuffer(raw, np.uint8)
        self._views: dict[str, npt.NDArray[np.unsignedinteger]] = {}

    @property
    def size(self) -> int:
        """Return the number of bytes before the padding."""
        return len(self.raw) - PADDING

    def numbers(self, kind: str, places: Places) -> npt.NDArray[np.unsignedinteger]:
        """Return the numbers of a numpy type such as "<u4" that begin at these places."""
        if kind == "u1":
            return self.data[places]
        view = self._views.get(kind)
        if view is None:
            # A view of overlapping, unaligned numbers: the one at index n begins with byte n.
            dtype: np.dtype[np.unsignedinteger] = np.dtype(kind)
            count = len(self.raw) - dtype.itemsize + 1
            view = np.ndarray((count,), dtype, self.raw, 0, (1,))
            self._views[kind] = view
        return view[places]

    def heads(self, size: int, places: Places) -> Bytes:
        """Return the `size` bytes at each of these places, one row per place."""
        view = np.ndarray((len(self.raw) - size + 1,), f"V{size}", self.raw, 0, (1,))
        return view[places].view(np.uint8).reshape(len(places), size)

    def lengths(self, prefix: int, places: Places) -> Places:
        """Return little-endian lengths of `prefix` bytes."""
        if prefix == 1:
            return self.data[places].astype(np.int64)
        if prefix == 2:
            return self.numbers("<u2", places).astype(np.int64)
        found = self.numbers("<u4", places).astype(np.int64)
        return found & 0xFFFFFF if prefix == 3 else found


@dataclass(frozen=True, slots=True)
class Slots:
    """The values of one column: where each begins, its size, and whether it is not NULL.

    `size` is the size of every value, or 0 if sizes vary; only then does `sizes` contain them.
    `valid` is None if no value is NULL. A NULL has a place too, between its neighbours, and no
    bytes if sizes vary.
    """

    starts: Places
    size: int
    sizes: Places
    valid: Flags | None

    def __len__(self) -> int:
        return len(self.starts)


_NO_PLACES: Final = np.zeros(0, np.int64)


@dataclass(slots=True)
class _Run:
    """Adjacent columns of fixed size, and the column of variable size after them, if any."""

    fixed: list[int]
    """The columns of fixed size, by their index among the columns present."""
    size: int = 0
    variable: int | None = None


class ImageLayout:
    """The layout of the images that one table map and one column bitmap describe."""

    def __init__(self, formats: Sequence[ColumnFormat], present: Sequence[int]) -> None:
        self._formats = [formats[index] for index in present]
        self.present = tuple(present)
        self._sizes = [(column.prefix, column.size) for column in self._formats]
        self._null_bytes = (len(present) + 7) >> 3
        self._runs = [_Run([])]
        for number, column in enumerate(self._formats):
            if column.prefix:
                self._runs[-1].variable = number
                self._runs.append(_Run([]))
            else:
                self._runs[-1].fixed.append(number)
                self._runs[-1].size += column.size

    def walk(self, buffer: Buffer, at: Places, ends: Places) -> "Step":
        """Locate the values of the images that begin at `at`, in events that end at `ends`.

        Raises BinlogError if one is truncated.
        """
        nulls = _NullBits.read(buffer, at, self._null_bytes)
        begin = at
        at = at + self._null_bytes
        if (at > ends).any():
            raise BinlogError(f"row event: an image is cut off at byte {_first(at, ends)}")
        origins: list[Places] = []
        variable: list[tuple[Places, Places]] = []
        for run in self._runs:
            origins.append(at)
            if run.size:
                at = at + self._run_size(run, nulls)
                self._check(at, ends, run.fixed)
            if run.variable is None:
                continue
            column = self._formats[run.variable]
            sizes = buffer.lengths(column.prefix, at)
            missing = nulls.of(run.variable)
            starts = at + column.prefix
            if missing is not None:
                sizes = np.where(missing, 0, sizes)
                starts = np.where(missing, at, starts)
            at = starts + sizes
            self._check(at, ends, [run.variable])
            variable.append((starts, sizes))
        return Step(begin, at, nulls, origins, variable)

    def skip(self, raw: bytes, at: int) -> int:
        """Return the end of the image that begins at `at`; it may be past the event's end."""
        start = at
        at += self._null_bytes
        nulls = int.from_bytes(raw[start:at], "little")
        for prefix, size in self._sizes:
            if not nulls & 1:
                if prefix:
                    at += prefix + int.from_bytes(raw[at : at + prefix], "little")
                else:
                    at += size
            nulls >>= 1
        return at

    def values(self, buffer: Buffer, images: "Step", wanted: int) -> tuple[Buffer, Slots]:
        """Return a column's values, by its index among those present, and the buffer they are in.

        Adjacent columns of fixed size are copied out of the buffer together if none is NULL.
        """
        for number, run in enumerate(self._runs):
            if wanted in run.fixed and len(run.fixed) > 1:
                if any(images.nulls.of(index) is not None for index in run.fixed):
                    break
                compact = images.compact.get(number)
                if compact is None:
                    taken = buffer.heads(run.size, images.origins[number])
                    places = np.arange(0, len(images.begin) * run.size, run.size)
                    compact = Buffer(taken.tobytes() + bytes(PADDING)), places
                    images.compact[number] = compact
                before = run.fixed[: run.fixed.index(wanted)]
                offset = sum(self._formats[index].size for index in before)
                size = self._formats[wanted].size
                return compact[0], Slots(compact[1] + offset, size, _NO_PLACES, None)
        return buffer, self._slots(images, wanted)

    def _slots(self, images: "Step", wanted: int) -> Slots:
        missing = images.nulls.of(wanted)
        valid = None if missing is None else ~missing
        passed = 0
        for number, run in enumerate(self._runs):
            if run.variable == wanted:
                return Slots(images.variable[passed][0], 0, images.variable[passed][1], valid)
            if wanted in run.fixed:
                before = _Run(run.fixed[: run.fixed.index(wanted)])
                before.size = sum(self._formats[index].size for index in before.fixed)
                starts = images.origins[number]
                if before.size:
                    starts = starts + self._run_size(before, images.nulls)
                return Slots(starts, self._formats[wanted].size, _NO_PLACES, valid)
            passed += run.variable is not None
        raise IndexError(wanted)

    def _run_size(self, run: _Run, nulls: "_NullBits") -> Places | int:
        size: Places | int = run.size
        for index in run.fixed:
            missing = nulls.of(index)
            if missing is not None:
                size = size - missing * self._formats[index].size
        return size

    def _check(self, at: Places, ends: Places, columns: Sequence[int]) -> None:
        if (at > ends).any():
            where = self._formats[columns[0]].where
            raise BinlogError(f"{where}: a value passes its event's end {_first(at, ends)}")


@dataclass(frozen=True, slots=True)
class Step:
    """One image per event: where it begins and ends, and what `ImageLayout.values` needs."""

    begin: Places
    end: Places
    nulls: "_NullBits"
    origins: list[Places]
    variable: list[tuple[Places, Places]]
    compact: dict[int, tuple[Buffer, Places]] = field(default_factory=dict)

    @classmethod
    def joined(cls, steps: Sequence["Step"], order: Places | None) -> "Step":
        """Return several steps as one; `order` has each image's place, None if already in order."""
        if len(steps) == 1 and order is None:
            return steps[0]

        def join(parts: Sequence[Places]) -> Places:
            return _joined(parts, order)

        first = steps[0]
        return cls(
            join([step.begin for step in steps]),
            join([step.end for step in steps]),
            _NullBits.joined([step.nulls for step in steps], order),
            [join([step.origins[n] for step in steps]) for n in range(len(first.origins))],
            [
                (
                    join([step.variable[n][0] for step in steps]),
                    join([step.variable[n][1] for step in steps]),
                )
                for n in range(len(first.variable))
            ],
        )


class _NullBits:
    """The null bits of images, and which columns contain no NULL in any of them."""

    __slots__ = ("_some", "words")

    def __init__(self, words: list[npt.NDArray[np.unsignedinteger]]) -> None:
        self.words = words
        self._some = [int(np.bitwise_or.reduce(word)) if len(word) else 0 for word in words]

    @classmethod
    def read(cls, buffer: Buffer, at: Places, size: int) -> "_NullBits":
        """Read the bits in the `size` bytes at these places."""
        words: list[npt.NDArray[np.unsignedinteger]] = []
        for byte in range(0, size, 8):
            width = min(8, size - byte)
            # After the very last image, this reads from the padding.
            places = np.minimum(at + byte, buffer.size)
            word = (
                buffer.data[places]
                if width == 1
                else buffer.numbers("<u2" if width == 2 else "<u4" if width <= 4 else "<u8", places)
            )
            words.append(word)
        return cls(words)

    @classmethod
    def joined(cls, parts: Sequence["_NullBits"], order: Places | None) -> "_NullBits":
        """Return the null bits of several steps as those of one."""
        count = len(parts[0].words)
        return cls([_joined([part.words[n] for part in parts], order) for n in range(count)])

    def of(self, number: int) -> Flags | None:
        """Return where a column, by its index in the image, is NULL; None if nowhere."""
        word, bit = number >> 6, number & 63
        if not self._some[word] >> bit & 1:
            return None
        values = self.words[word]
        mask = values.dtype.type(1 << bit)
        missing: Flags = values & mask != 0
        return missing


_Number = TypeVar("_Number", bound=np.integer)


def _joined(parts: Sequence[npt.NDArray[_Number]], order: Places | None) -> npt.NDArray[_Number]:
    joined = np.concatenate(parts) if len(parts) > 1 else parts[0]
    if order is None:
        return joined
    result = np.empty_like(joined)
    result[order] = joined
    return result


def _first(at: Places, ends: Places) -> int:
    """Return the end, in the batch, of the first event that was overrun."""
    return int(ends[np.argmax(at > ends)])


@dataclass(frozen=True, slots=True)
class Walk:
    """The images of many events and the rows they belong to, in the order of the events.

    `events` and `rows` are indexes from 0.
    """

    before: Step | None
    after: Step | None
    events: Places
    rows: Places


def walk(
    buffer: Buffer,
    starts: Places,
    ends: Places,
    before: ImageLayout | None,
    after: ImageLayout | None,
) -> Walk:
    """Locate the rows of events of one kind; `starts` and `ends` delimit each event's rows.

    Each row has an image of `before`, of `after`, or both, in this order. Raises BinlogError.
    """
    layouts = [layout for layout in (before, after) if layout is not None]
    steps: list[list[Step]] = [[] for _ in layouts]
    # An insert of which nothing is logged is a row without bytes.
    nothing = before is None and after is not None and not after.present
    index = np.flatnonzero(starts <= ends if nothing else starts < ends)
    at, limit = starts[index], ends[index]
    members: list[Places] = []
    numbers: list[Places] = []
    while len(index):
        number = np.full(len(index), len(members))
        is_last = len(members) >= _MANY_ROWS and len(index) < _FEW_EVENTS
        if is_last:
            index, at, limit, more = _one_by_one(buffer, layouts, index, at, limit)
            number = more + len(members)
        members.append(index)
        numbers.append(number)
        begin = at
        for layout, found in zip(layouts, steps, strict=True):
            step = layout.walk(buffer, at, limit)
            found.append(step)
            at = step.end
        if ((at == begin) & (at < limit)).any():
            raise BinlogError("row event: rows without a column")
        if is_last:
            break
        going_on = at < limit
        if not going_on.all():
            index, at, limit = index[going_on], at[going_on], limit[going_on]
    found_events = np.concatenate([*members, _NO_PLACES])
    counts = np.bincount(found_events, minlength=len(starts))
    first = np.cumsum(counts) - counts
    events = np.repeat(np.arange(len(starts)), counts)
    rows = np.arange(len(events)) - first[events]
    order = None if len(members) < 2 else first[found_events] + np.concatenate(numbers)
    images = [Step.joined(found, order) if found else None for found in steps]
    return Walk(
        None if before is None else images[0], None if after is None else images[-1], events, rows
    )


_MANY_ROWS: Final = 64
_FEW_EVENTS: Final = 16
"""Fewer events are not worth a step per row: their remaining rows are located one by one."""


def _one_by_one(
    buffer: Buffer, layouts: Sequence[ImageLayout], index: Places, at: Places, ends: Places
) -> tuple[Places, Places, Places, Places]:
    """Return all remaining rows: their events, where they begin, their limits, their indexes."""
    members: list[int] = []
    begins: list[int] = []
    limits: list[int] = []
    numbers: list[int] = []
    for event, place, end in zip(index.tolist(), at.tolist(), ends.tolist(), strict=True):
        number = 0
        begin = -1
        # A row that overruns the end is detected when it is read.
        while begin < place < end:
            begin = place
            members.append(event)
            begins.append(begin)
            limits.append(end)
            numbers.append(number)
            number += 1
            for layout in layouts:
                place = layout.skip(buffer.raw, place)  # noqa: PLW2901
    return np.array(members), np.array(begins), np.array(limits), np.array(numbers)
