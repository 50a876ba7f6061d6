"""`binomial`: tensors of binomially distributed counts."""

import numpy as np

from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import wrap
from backlight.errors import ShapeError, ValueProblem
from backlight.kernels.random import distributions
from backlight.ops.type_promotion import is_float
from backlight.tensor.generators import Generator, twister_of
from backlight.tensor.tensor import Tensor


def binomial(count: Tensor, prob: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Draw from binomial distributions with these numbers of trials and probabilities, in count's dtype.

    The numbers are PyTorch's, bit for bit. There is no derivative: gradients are zeros there.

    Raises:
        ValueError: counts or probabilities are no floats.
    """
    for name, one in (("count", count), ("prob", prob)):
        if not is_float(one._data.dtype):
            kind = from_numpy_dtype(one._data.dtype).old_name
            raise ValueProblem(f"binomial only supports floating-point dtypes for {name}, got: {kind}")
    if count._data.shape != prob._data.shape:
        try:
            counts, shares = np.broadcast_arrays(count._data, prob._data)
        except ValueError:
            raise ShapeError(
                f"The size of tensor a {list(count.shape)} must match the size of tensor b {list(prob.shape)}"
            ) from None
    else:
        counts, shares = np.asarray(count._data), np.asarray(prob._data)
    return wrap(distributions.binomial(twister_of(generator), counts, shares).astype(count._data.dtype))
