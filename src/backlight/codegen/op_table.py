"""The op table as two namespaces, so that a derivative can call ops without knowing what it runs on.

`ARRAY_OPS.sum(x, dim)` runs the forward on arrays, `TENSOR_OPS.sum(x, dim)` the public, recorded function on tensors.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from backlight.codegen.declaration import TABLE
from backlight.kernels.memory_order import LAYOUTS, row_major

BY_FORMAT = ("suggested", "convolved")  # layouts that the gradients of such ops have, too


class _ArrayOps:
    """Every op's forward, on arrays, without recording."""

    def __getattr__(self, name: str):
        op = _lookup(name)
        forward = op.forward
        if op.residuals:

            def raw(*args, **kwargs):
                return forward(np, *args, **kwargs)[0]
        else:
            raw = partial(forward, np)
        if op.layout in BY_FORMAT:
            raw = _laid_out(raw, LAYOUTS[op.layout])
        setattr(self, name, raw)
        return raw


def _laid_out(forward: Callable, layout: Callable) -> Callable:
    """Return a forward whose result lies in the memory format of its first arrays."""

    def in_format(*args, **kwargs):
        out = forward(*args, **kwargs)
        return out if row_major(out, *args[:2]) else layout(out, *args)

    return in_format


class _TensorOps:
    """Every op's public function."""

    def __getattr__(self, name: str):
        public = _lookup(name).public
        setattr(self, name, public)
        return public


def _lookup(name: str):
    if name not in TABLE:
        raise AttributeError(f"no op is called {name!r}; a derivative may only call ops that are declared")
    return TABLE[name]


ARRAY_OPS = _ArrayOps()
TENSOR_OPS = _TensorOps()
