"""Tensor's methods from the linear family, a line each."""


class LinearMethods:
    """The part of Tensor that belongs to the linear family."""

    __slots__ = ()
