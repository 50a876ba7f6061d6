"""`backward` and `grad`: the two ways to start a backward pass."""

from collections.abc import Sequence

from backlight.errors import GraphError, ValueProblem
from backlight.graph.start import backward_from, gradients_of
from backlight.graph.state import TensorState, the_tensor_class
from backlight.tensor.tensor import Tensor


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
        tensors: what to differentiate.
        grad_tensors: for each, the gradient of what follows it; may be None for tensors of one element.
        retain_graph: keep what nodes saved, for another backward; by default as `create_graph`.
        create_graph: record the backward itself, for higher derivatives.
        grad_variables: the old name of `grad_tensors`.
        inputs: tensors to which gradients are added, instead of all leaves.

    Raises:
        RuntimeError: a tensor does not require grad, a gradient is missing or misshapen, or the graph was freed.
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise GraphError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                "Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    tensors = _listed(tensors)
    gradients = None if grad_tensors is None else _listed(grad_tensors)
    backward_from(tensors, gradients, retain_graph, create_graph, inputs)


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
        outputs: what to differentiate.
        inputs: what to differentiate for.
        grad_outputs: the weight of each output, of its shape; may be None for one element.
        retain_graph: keep what nodes saved, for another backward; by default as `create_graph`.
        create_graph: record the backward itself, for higher derivatives.
        allow_unused: give None for an input that the outputs do not depend on, instead of an error.
        is_grads_batched: the first dim of each grad_output counts several weights, run one after another.
        materialize_grads: give zeros for an input that the outputs do not depend on.

    Raises:
        RuntimeError: an input was not used, a weight is missing or misshapen, or the graph was freed.
        ValueError: materialize_grads is combined with allow_unused=False.
    """
    if materialize_grads and allow_unused is False:
        raise ValueProblem(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    unused = materialize_grads if allow_unused is None else allow_unused
    outputs, inputs = _listed(outputs), _listed(inputs)
    weights = None if grad_outputs is None else _listed(grad_outputs)
    if is_grads_batched:
        return _batched(outputs, inputs, weights, retain_graph, create_graph, unused, materialize_grads)
    return gradients_of(outputs, inputs, weights, retain_graph, create_graph, unused, materialize_grads)


def _batched(outputs, inputs, weights, retain_graph, create_graph, unused, materialize):
    """Run one backward for each row of the weights and stack what comes back."""
    rows = len(weights[0])
    runs = []
    for row in range(rows):
        last = row == rows - 1
        keep = True if not last or create_graph else retain_graph
        picked = [None if weight is None else weight[row] for weight in weights]
        runs.append(gradients_of(outputs, inputs, picked, keep, create_graph, unused, materialize))
    from_stack = the_tensor_class().stack_all
    return tuple(None if parts[0] is None else from_stack(parts) for parts in zip(*runs))


def _listed(values) -> list:
    return [values] if isinstance(values, TensorState) else list(values)


def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:  # noqa: N802 - PyTorch's old name
    """Return the tensor, requiring grad if asked: since PyTorch 0.4 a Variable is a Tensor."""
    return data.detach().requires_grad_(requires_grad)
