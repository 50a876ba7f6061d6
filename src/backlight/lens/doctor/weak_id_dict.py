"""Tables of tensors and modules that keep neither alive."""

import weakref
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class WeakIdDict(Generic[Value]):
    """A dict with keys compared by identity and not kept alive: an entry goes with its key."""

    def __init__(self):
        self._entries: dict[int, tuple[weakref.ref, Value]] = {}

    def __setitem__(self, key: Any, value: Value) -> None:
        number, entries = id(key), self._entries
        present = entries.get(number)
        if present is not None and present[0]() is key:
            entries[number] = present[0], value
            return

        def forget(reference: weakref.ref) -> None:
            if number in entries and entries[number][0] is reference:
                del entries[number]

        entries[number] = weakref.ref(key, forget), value

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
        pairs = [(reference(), value) for reference, value in list(self._entries.values())]
        return [(key, value) for key, value in pairs if key is not None]

    def alive(self) -> list:
        """Return the keys that live still."""
        return [key for key, _ in self.items()]

    def clear(self) -> None:
        """Forget all."""
        self._entries.clear()


def keep_newest(table: dict, most: int) -> None:
    """Forget the oldest entries of a table that has grown too large."""
    while len(table) > most:
        del table[next(iter(table))]
