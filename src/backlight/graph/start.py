"""How a backward starts: roots and their gradients are checked, the engine walks, results are put where they belong."""

import warnings

import numpy as np

from backlight.errors import ArgumentError, GraphError, ShapeError
from backlight.graph import engine
from backlight.graph.state import TensorState, edge_of, wrap


def backward_from(tensors, gradients, retain_graph, create_graph, inputs) -> None:
    """Add the gradients of `tensors` to the `.grad` of leaves, or of `inputs` where these are given."""
    keep = create_graph if retain_graph is None else retain_graph
    roots, root_grads = starting_points(tensors, gradients, create_graph)
    if create_graph:
        _warn_of_cycle()
    if inputs is None:
        engine.run(roots, root_grads, keep_graph=keep, create_graph=create_graph)
        return
    wanted = [inputs] if isinstance(inputs, TensorState) else list(inputs)
    if not wanted:
        raise GraphError("`inputs` argument to `backward` cannot be empty; leave it out to reach all leaves")
    for number, tensor in enumerate(wanted):
        if tensor._edge is None:
            raise GraphError(f"One of the differentiated Tensors does not require grad (number {number} of inputs)")
    found = engine.run(
        roots, root_grads, keep_graph=keep, create_graph=create_graph, inputs=[edge_of(tensor) for tensor in wanted]
    )
    for tensor, grad in zip(wanted, found):
        if grad is not None:
            engine.add_to_grad(tensor, grad, create_graph)


def gradients_of(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads) -> tuple:
    """Return the gradient of the outputs for each input; see autograd.grad."""
    keep = create_graph if retain_graph is None else retain_graph
    for tensor in inputs:
        if not isinstance(tensor, TensorState):
            raise ArgumentError(f"inputs must be tensors, got {type(tensor).__name__}")
        if tensor._edge is None:
            raise GraphError(
                "One of the differentiated Tensors does not require grad; call requires_grad_() on it before the "
                "computation"
            )
    roots, root_grads = starting_points(outputs, grad_outputs, create_graph)
    edges = [edge_of(tensor) for tensor in inputs]
    found = engine.run(roots, root_grads, keep_graph=keep, create_graph=create_graph, inputs=edges)
    results = []
    for number, (tensor, grad) in enumerate(zip(inputs, found)):
        if grad is None and materialize_grads:
            grad = np.zeros(tensor._data.shape, tensor._data.dtype)
            grad = wrap(grad) if create_graph else grad
        if grad is None and not allow_unused:
            raise GraphError(
                f"The differentiated Tensor at index {number} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
        results.append(grad if grad is None or create_graph else wrap(_unshared(grad)))
    return tuple(results)


def _unshared(grad):
    """Return an array that is nobody else's memory and may be written to."""
    if isinstance(grad, np.ndarray) and not (grad.base is None and grad.flags.writeable):
        return np.array(grad, order="C")
    return grad


def starting_points(tensors, gradients, create_graph) -> tuple[list, list]:
    """Return the edges to start from and their gradients (arrays, or tensors under create_graph).

    Raises:
        RuntimeError: a tensor does not require grad, or its gradient is missing or does not fit.
    """
    if gradients is None:
        gradients = [None] * len(tensors)
    if len(tensors) != len(gradients):
        raise GraphError(f"got {len(tensors)} tensors and {len(gradients)} gradients")
    roots, root_grads = [], []
    for number, (tensor, gradient) in enumerate(zip(tensors, gradients)):
        gradient = _first_gradient(tensor, gradient, number)
        if tensor._edge is None:
            raise GraphError(
                f"element {number} of tensors does not require grad and does not have a grad_fn; it was made without "
                "recording: from tensors with requires_grad=False, under no_grad, or through .detach(), .item() or .data"
            )
        roots.append(edge_of(tensor))
        root_grads.append(gradient if create_graph else gradient._data)
    return roots, root_grads


def _first_gradient(tensor, gradient, number):
    data = tensor._data
    if gradient is None:
        if tensor._edge is not None and data.size != 1:
            raise GraphError(
                f"grad can be implicitly created only for scalar outputs; this one has shape {list(data.shape)}: reduce it "
                "(.sum(), .mean()), or pass gradient= of that shape"
            )
        one = data.dtype.type(1)
        return wrap(np.full(data.shape, one) if isinstance(data, np.ndarray) and data.ndim else one)
    if not isinstance(gradient, TensorState):
        raise ArgumentError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    if tuple(gradient._data.shape) != tuple(data.shape):
        raise ShapeError(
            f"Mismatch in shape: grad_output[{number}] has a shape of {gradient.shape} and output[{number}] has a shape "
            f"of {tensor.shape}."
        )
    return gradient if gradient._data.dtype == data.dtype else gradient.to(tensor.dtype)


def _warn_of_cycle() -> None:
    warnings.warn(
        "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
        "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
        "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break "
        "the cycle and avoid the leak.",
        UserWarning,
        stacklevel=5,
    )
