"""Objects that answer Python's questions with errors, wrong types or something else each time."""


class HostileError(Exception):
    """Raised by the objects: an error of the caller's own, which must come through as it is."""


def _raising(*names: str):
    def answer(self, *args):
        raise HostileError("asked")

    return type("", (), dict.fromkeys(names, answer))


class RaisingIndex(_raising("__index__", "__int__")):
    """Raises where an int is asked for."""


class WrongIndex:
    """Says that a string is its index."""

    def __index__(self):
        return "2"

    __int__ = __index__


class ChangingIndex:
    """Is another int each time."""

    def __init__(self):
        self.count = -1

    def __index__(self):
        self.count += 1
        return self.count * 2**20 if self.count > 2 else self.count

    __int__ = __index__


class HugeIndex:
    """Is an int of a hundred bits."""

    def __index__(self):
        return 2**100

    __int__ = __index__


class RaisingLen(_raising("__len__")):
    """Raises where its length is asked for."""

    def __getitem__(self, place):
        raise HostileError("asked")


class NegativeLen:
    """Has a negative length."""

    def __len__(self):
        return -1

    def __getitem__(self, place):
        return 1


class HugeLen:
    """Says that it is huge, and is not."""

    def __len__(self):
        return 2**62

    def __getitem__(self, place):
        raise IndexError(place)


class LyingLen(list):
    """Says 5, and yields 2."""

    def __len__(self):
        return 5

    def __iter__(self):
        return iter([1, 2])


class RaisingIter(_raising("__iter__", "__len__")):
    """Raises where its elements are asked for."""


class RaisingEq(_raising("__eq__")):
    """Raises where it is compared."""

    __hash__ = object.__hash__


class RaisingFloat(_raising("__float__")):
    """Raises where a float is asked for."""


class WrongFloat:
    """Says that None is its float."""

    def __float__(self):
        return None


class RaisingBool(_raising("__bool__")):
    """Raises where it is asked whether it is true."""


class RaisingHash(_raising("__hash__")):
    """Raises where its hash is asked for."""


class RaisingGetattr(_raising("__getattr__")):
    """Raises for any attribute that it does not have."""


class RaisingRepr(_raising("__repr__", "__str__")):
    """Raises where it is printed."""


class OddInt(int):
    """An int that is no int exactly."""


class OddFloat(float):
    """A float that is no float exactly."""


class OddStr(str):
    """A string that is no string exactly."""


class OddTuple(tuple):
    """A tuple that is no tuple exactly."""


class OddList(list):
    """A list that is no list exactly."""
