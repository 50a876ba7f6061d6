"""The op table as two namespaces, so that a derivative can call ops without knowing what it runs on.

`ARRAY_OPS.sum(x, dim)` runs the forward on arrays, `TENSOR_OPS.sum(x, dim)` the public, recorded function on tensors.
"""

from functools import partial

import numpy as np

from backlight.codegen.declaration import TABLE


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

        setattr(self, name, raw)
        return raw


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
