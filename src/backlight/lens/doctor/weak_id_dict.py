"""Tables of tensors and modules that keep neither alive.

NOTE [Judged while it lives]
A program's model is most often a local variable: when the block ends, it is gone. A detector that reports at the end
keeps of each object what its verdict needs as plain data (a name, a shape, a line, whether a gradient came), writes it
when the object is there anyway (in an optimizer's step, when `.grad` is read, when a forward ends), and looks once more
at what still lives at the end. No module, tensor or graph is kept alive for it. Of those that are gone the newest
`OUTLIVED` entries of each table are kept, of about 1 KB: less than 10 MB for all tables of both engines.
"""

import weakref
from itertools import count
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
OUTLIVED = 1000
_serial = count().__next__


class WeakIdDict(Generic[Value]):
    """A dict with keys compared by identity and not kept alive: an entry goes with its key.

    Args:
        outlived: how many values are kept whose keys are gone, for `histories` (NOTE [Judged while it lives]).
    """

    def __init__(self, *, outlived: int = 0):
        self._entries: dict[int, tuple[weakref.ref, Value, int]] = {}
        self._outlived: dict[int, Value] = {}
        self._most = outlived

    def __setitem__(self, key: Any, value: Value) -> None:
        number, entries, outlived, most = id(key), self._entries, self._outlived, self._most
        present = entries.get(number)
        if present is not None and present[0]() is key:
            entries[number] = present[0], value, present[2]
            return

        def forget(reference: weakref.ref) -> None:
            if number in entries and entries[number][0] is reference:
                _, last, serial = entries.pop(number)
                if most:
                    outlived[serial] = last
                    keep_newest(outlived, most)

        entries[number] = weakref.ref(key, forget), value, _serial()

    def get(self, key: Any, default: Any = None) -> Value | Any:
        """Return what is known of a key."""
        entry = self._entries.get(id(key))
        return entry[1] if entry is not None and entry[0]() is key else default

    def pop(self, key: Any) -> Value | None:
        """Forget a key, and return what was known of it."""
        entry = self._entries.pop(id(key), None)
        return entry[1] if entry is not None and entry[0]() is key else None

    def __contains__(self, key: Any) -> bool:
        entry = self._entries.get(id(key))
        return entry is not None and entry[0]() is key

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> list[tuple[Any, Value]]:
        """Return the keys that live still, in the order in which they came, with what is known of each."""
        pairs = [(reference(), value) for reference, value, _ in list(self._entries.values())]
        return [(key, value) for key, value in pairs if key is not None]

    def histories(self) -> list[tuple[Any | None, Value]]:
        """Return the keys, None for each that is gone, in the order in which they came, with what is known of each."""
        found = {serial: (reference(), value) for reference, value, serial in list(self._entries.values())}
        found |= {serial: (None, value) for serial, value in self._outlived.items()}
        return [found[serial] for serial in sorted(found)]

    def alive(self) -> list:
        """Return the keys that live still."""
        return [key for key, _ in self.items()]

    def clear(self) -> None:
        """Forget all."""
        self._entries.clear()
        self._outlived.clear()


def keep_newest(table: dict, most: int) -> None:
    """Forget the oldest entries of a table that has grown too large."""
    while len(table) > most:
        del table[next(iter(table))]
