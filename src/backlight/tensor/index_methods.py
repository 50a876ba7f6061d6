"""Tensor's methods from the index family, a line each."""


class IndexMethods:
    """The part of Tensor that belongs to the index family."""

    __slots__ = ()
