"""`backward` and `grad`: the two ways to start a backward pass."""

import warnings
from collections.abc import Sequence

from backlight.dispatch.dispatcher import public_function
from backlight.dispatch.interpreters import interpreted
from backlight.engine.node import GradientEdge
from backlight.engine.run_backward import backward_from, gradients_of
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, ShapeError, ValueProblem
from backlight.system.lazy_import import function_later
from backlight.tensor.tensor import Tensor

gradients_inside_vmap = function_later("backlight.transforms.vmap.batched_gradients", "gradients_inside_vmap")
gradients_of_batch = function_later("backlight.transforms.vmap.batched_gradients", "gradients_of_batch")
is_batched = function_later("backlight.transforms.vmap.batched_gradients", "is_batched")


@public_function
def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables=None,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of the leaves of their graph.

    Args:
        tensors: the tensors to differentiate.
        grad_tensors: for each, the gradient of what follows it; may be None for tensors of one element.
        retain_graph: keep what nodes saved, for another backward; by default as `create_graph`.
        create_graph: record the backward itself, for higher derivatives.
        grad_variables: the old name of `grad_tensors`.
        inputs: tensors to which gradients are added, instead of all leaves.

    Raises:
        RuntimeError: a tensor does not require grad, a gradient is missing or misshapen, or the graph was freed.
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise GraphError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                "Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    tensors = _listed(tensors)
    gradients = None if grad_tensors is None else _listed(grad_tensors)
    backward_from(tensors, gradients, retain_graph, create_graph, inputs)


@public_function
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradient of the (weighted) sum of `outputs` for each of `inputs`; no `.grad` is touched.

    Args:
        outputs: the tensors to differentiate.
        inputs: the tensors to differentiate with respect to.
        grad_outputs: the weight of each output, of its shape; may be None for one element.
        retain_graph: keep what nodes saved, for another backward; by default as `create_graph`.
        create_graph: record the backward itself, for higher derivatives.
        only_inputs: PyTorch's old argument, ignored.
        allow_unused: give None for an input that the outputs do not depend on, instead of an error.
        is_grads_batched: the first dim of each grad_output is a batch of weights, for one vectorized backward pass.
        materialize_grads: give zeros for an input that the outputs do not depend on.

    Raises:
        RuntimeError: an input was not used, a weight is missing or misshapen, or the graph was freed.
        ValueError: materialize_grads is combined with allow_unused=False.
    """
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if materialize_grads and allow_unused is False:
        raise ValueProblem(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    unused = materialize_grads if allow_unused is None else allow_unused
    outputs, inputs = _listed(outputs), _listed(inputs)
    weights = None if grad_outputs is None else _listed(grad_outputs)
    if is_grads_batched:
        _check_rows(outputs, weights)
        return gradients_of_batch(outputs, inputs, weights, retain_graph, create_graph, unused, materialize_grads)
    if interpreted.blocks and is_batched([*outputs, *inputs, *(weights or ())]):
        return gradients_inside_vmap(outputs, inputs, weights, retain_graph, create_graph, unused, materialize_grads)
    return gradients_of(outputs, inputs, weights, retain_graph, create_graph, unused, materialize_grads)


def _check_rows(outputs: Sequence, weights: Sequence | None) -> None:
    """Raise unless all weights have the same size in the first dim.

    Raises:
        RuntimeError: a weight has not its output's shape behind that dim, or there is no weight.
    """
    for number, (out, weight) in enumerate(zip(outputs, weights or ())):
        if weight is not None and tuple(weight._data.shape[1:]) != tuple(out._data.shape):
            raise ShapeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{number}] has a shape of {weight.shape} and "
                f"output[{number}] has a shape of {out.shape}."
            )
    sizes = {len(weight._data) for weight in weights or () if weight is not None}
    if len(sizes) != 1:
        raise ShapeError(
            f"is_grads_batched=True needs grad_outputs with one and the same first dim, got {sorted(sizes)}: give each "
            "output a batch of weights"
        )


def _listed(values: TensorState | GradientEdge | Sequence) -> list:
    return [values] if isinstance(values, (TensorState, GradientEdge)) else list(values)
