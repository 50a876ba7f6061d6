"""Further checks of gradcheck: gradients of the outputs that are zero, missing or batched."""

from collections.abc import Sequence

import numpy as np

from backlight.autograd.api import grad as batched_grad
from backlight.engine.node import Node, new_node
from backlight.engine.run_backward import gradients_of
from backlight.engine.tensor_state import edge_of, wrap
from backlight.tensor.tensor import Tensor
from backlight.transforms.numerical_jacobians import GradcheckError, differentiable, vector_jacobian


def _zeros(outputs: Sequence[Tensor]) -> list:
    return [wrap(np.zeros(out._data.shape, out._data.dtype)) for out in outputs]


def check_zero_gradients(check) -> None:
    """Raise if zero gradients of the outputs do not give zero gradients of the inputs."""
    outputs = differentiable(check.func(*check.inputs))
    if not outputs:
        return
    found = gradients_of(outputs, check.wanted, _zeros(outputs), None, False, True, False)
    for i, (grad, tensor) in enumerate(zip(found, check.wanted)):
        if grad is None:
            continue
        if np.any(grad._data):
            raise GradcheckError(f"backward not multiplied by grad_output: input {i} gets a gradient from zeros")
        if grad._data.dtype != tensor._data.dtype:
            raise GradcheckError(
                f"grad is incorrect type: {grad._data.dtype} for input {i}, which is {tensor._data.dtype}"
            )


def check_batches(check) -> None:
    """Raise if a batch of weights gives other gradients than its rows one by one."""
    for number, out in enumerate(differentiable(check.func(*check.inputs))):
        rows = np.random.default_rng(number).uniform(-1, 1, (2, *out._data.shape)).astype(out._data.dtype)
        batch = batched_grad([out], check.wanted, [wrap(rows)], True, allow_unused=True, is_grads_batched=True)
        singly = [vector_jacobian(out, check.wanted, row) for row in rows]
        for i, found in enumerate(batch):
            if found is not None and not np.allclose(found._data, np.stack([one[i] for one in singly])):
                raise GradcheckError(
                    f"the batched gradient of input {i} differs from that of output {number}, row by row"
                )


class UndefinedGrad(Node):
    """The node of a function that passes no gradient to its input."""

    __slots__ = ()

    def backward(self, grad: object, edges: tuple, keep: bool):
        """Return a missing gradient."""
        return (None,)


def _without_gradient(out: Tensor):
    """Return an alias of the tensor that passes no gradient on."""
    return wrap(out._data, new_node(UndefinedGrad, (edge_of(out),)))


def check_missing_gradients(check) -> None:
    """Raise if a backward fails, or gives a nonzero gradient, where all or one of the outputs have none."""
    count = len(differentiable(check.func(*check.inputs)))
    choices = [range(count)] if count < 2 else [range(count), *((one,) for one in range(count))]
    for missing in choices:
        outputs = differentiable(check.func(*check.inputs))
        roots = [_without_gradient(out) if number in missing else out for number, out in enumerate(outputs)]
        try:
            found = gradients_of(roots, check.wanted, _zeros(roots), None, False, True, False) if roots else []
        except (RuntimeError, TypeError, AttributeError) as problem:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads: it failed with "
                f"{type(problem).__name__}: {problem}"
            ) from problem
        for i, grad in enumerate(found):
            if grad is not None and np.any(grad._data):
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero; "
                    f"input {i} gets a gradient"
                )
