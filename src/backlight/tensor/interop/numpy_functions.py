"""NumPy's other functions on tensors: `np.sum(x, axis=1)`, `np.concatenate([x, y])`, `np.where(mask, x, 0.0)`.

See NOTE [NumPy's functions on tensors] in numpy_ufuncs.py.
"""

from collections.abc import Callable

import numpy as np

from backlight.engine.tensor_state import TensorState
from backlight.tensor.interop.numpy_counterparts import FUNCTIONS
from backlight.tensor.interop.numpy_ufuncs import detached_array, no_counterpart, tensor_from

# PyTorch's tensors have methods of these names that do not take NumPy's arguments, and raise TypeError.
_REFUSED_BY_PYTORCH = "sum mean std var prod max min amax amin all any flip moveaxis"
# Indices and bools: they have no gradient.
_WITHOUT_GRADIENT = """
argmax argmin argsort argwhere flatnonzero count_nonzero searchsorted digitize all any isclose allclose isin histogram
bincount lexsort array_equiv ones_like zeros_like full_like empty_like iscomplexobj isrealobj
"""
REFUSED_BY_PYTORCH, WITHOUT_GRADIENT = [
    frozenset(getattr(np, name) for name in names.split()) for names in (_REFUSED_BY_PYTORCH, _WITHOUT_GRADIENT)
]


def call_function(function: Callable, args: tuple, kwargs: dict):
    """Run `function(*args, **kwargs)`, where at least one argument holds a tensor."""
    recorded = any(value.requires_grad for value in _tensors_in((args, kwargs)))
    if recorded and function in FUNCTIONS:
        return _recorded(function, args, dict(kwargs))
    if function in REFUSED_BY_PYTORCH:
        return tensor_from(
            np.ascontiguousarray(function(*_each(args, detached_array), **_each(kwargs, detached_array)))
        )
    if recorded and function in WITHOUT_GRADIENT:
        args, kwargs = _each(args, _detached), _each(kwargs, _detached)
    return np.ndarray.__array_function__(np.empty(0), function, (), args, kwargs)


def _detached(value: object):
    return value.detach() if isinstance(value, TensorState) else value


def _tensors_in(value: object):
    """Return the tensors in nested lists, tuples and dicts."""
    if isinstance(value, TensorState):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for each in inner for tensor in _tensors_in(each)]


def _each(value: object, change: Callable):
    """Apply a function to each value in nested lists, tuples and dicts."""
    if isinstance(value, dict):
        return {name: _each(each, change) for name, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_each(each, change) for each in value)
    return change(value)


def _recorded(function: Callable, args: tuple, kwargs: dict):
    if kwargs.pop("out", None) is not None:
        raise no_counterpart(function, "an array given as out= cannot remember how it was computed")
    where = kwargs.pop("where", True)
    if where is not True and where is not np._NoValue:
        raise no_counterpart(function, "where= is not taken: choose with np.where(condition, x, other) first")
    kwargs = {name: value for name, value in kwargs.items() if value is not np._NoValue}
    return FUNCTIONS[function](*args, **kwargs)
