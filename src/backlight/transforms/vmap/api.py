"""`vmap`: turn a function of single tensors into a function of batches."""

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from backlight.dispatch.dispatcher import interpreting
from backlight.engine.tensor_state import TensorState
from backlight.errors import DimError, GraphError, ValueProblem
from backlight.ops.shape.joining import cat
from backlight.tensor.tensor import Tensor
from backlight.transforms.pytrees import Spec, broadcast_to, tree_flatten, tree_leaves, tree_unflatten
from backlight.transforms.vmap.batched_tensor import BatchedTensor, batched
from backlight.transforms.vmap.interpreter import VmapLevel

Dims = int | tuple | None  # of the batch: one for all, or nested like the inputs or outputs


def vmap(
    func: Callable,
    in_dims: int | tuple = 0,
    out_dims: int | tuple = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable:
    """Return a function that applies `func` to each element of a batch, computing all of them at once.

        vmap(torch.dot)(rows, others)      a dot product for each pair of rows

    What `func` closes over, and what `in_dims` has None for, is the same for all elements. Transforms nest: vmap of
    grad gives the gradient of each example, vmap of vmap all pairs.

    Args:
        func: takes tensors, or nested tuples, lists and dicts of them, and returns the same.
        in_dims: the batch dim of each input; one int for all, or nested like the inputs.
        out_dims: the batch dim of each output.
        randomness: "error" refuses to draw random numbers, "different" draws others for each element, "same" the same.
        chunk_size: how many elements to compute at once; all of them by default.

    Raises:
        ValueError: `in_dims` or `out_dims` does not fit, or the sizes of the batch differ.
        RuntimeError: `func` reads values, which differ from element to element.

    >>> import backlight as torch
    >>> torch.vmap(lambda x, y: x * y, in_dims=(0, None))(torch.arange(3), torch.tensor(2))
    tensor([0, 2, 4])
    """
    if randomness not in ("error", "different", "same"):
        raise GraphError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueProblem(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, assigned=[name for name in functools.WRAPPER_ASSIGNMENTS if hasattr(func, name)])
    def of_batches(*args, **kwargs):
        _check_out_dims(func, out_dims)
        batch = _inputs(func, in_dims, args)

        def run(batch: _Batch) -> object:
            """Call the function once, on batched tensors."""
            level = VmapLevel(batch.size, randomness)
            given = [one if dim is None else batched(_moved(one, dim, 0), level) for one, dim in batch.inputs()]
            with interpreting(level):
                outputs = func(*tree_unflatten(given, batch.spec), **kwargs)
            return _finished(func, outputs, out_dims, level)

        if chunk_size is None or chunk_size >= batch.size > 0:
            return run(batch)
        parts = [run(batch.part(start, chunk_size)) for start in range(0, batch.size, chunk_size)]
        flat = [tree_leaves(part) for part in parts]
        _, out_spec = tree_flatten(parts[0])
        where = _flat_out_dims(func, parts[0], out_dims, out_spec)
        joined = [chunks[0] if dim is None else cat(list(chunks), dim) for chunks, dim in zip(zip(*flat), where)]
        return tree_unflatten(joined, out_spec)

    return of_batches


class _Batch(NamedTuple):
    """The inputs: the size of the batch, the batch dim of each leaf (None: the same for all), leaves and structure."""

    size: int
    dims: list[int | None]
    leaves: list
    spec: Spec

    def inputs(self) -> Iterator[tuple]:
        """Return each leaf with its dim."""
        return zip(self.leaves, self.dims)

    def part(self, start: int, most: int) -> "_Batch":
        """Return a chunk of the batch."""
        count = min(most, self.size - start)
        chunk = [leaf if dim is None else leaf.narrow(dim, start, count) for leaf, dim in self.inputs()]
        return self._replace(size=count, leaves=chunk)


def _moved(tensor: Tensor, source: int, target: int) -> Tensor:
    return tensor if source == target else tensor.movedim(source, target)


# --- inputs ----------------------------------------------------------------------------------------------------------


def _name(func: Callable) -> str:
    if hasattr(func, "__name__"):
        return func.__name__
    if isinstance(func, functools.partial):
        return f"functools.partial({_name(func.func)}, ...)"
    return repr(func)


def _inputs(func: Callable, in_dims: Dims, args: tuple) -> _Batch:
    """Return the inputs as a batch."""
    where = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueProblem(
            f"{where}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueProblem(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap "
            "over a function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = broadcast_to(in_dims, spec)
    if dims is None:
        raise ValueProblem(
            f"{where}in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    dims = [_in_dim(where, leaf, dim) for leaf, dim in zip(leaves, dims)]
    sizes = [leaf._data.shape[dim] for leaf, dim in zip(leaves, dims) if dim is not None]
    if not sizes:
        raise ValueProblem("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueProblem(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return _Batch(sizes[0], dims, leaves, spec)


def _in_dim(where: str, leaf: object, dim: int | None) -> int | None:
    """Return the dim of one input, counted from the front; None for an input that is the same for all."""
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueProblem(
            f"{where}Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
        )
    if not isinstance(leaf, TensorState):
        raise ValueProblem(
            f"{where}Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
            "non-Tensor arguments, please use None as the respective in_dim"
        )
    ndim = leaf._data.ndim
    if not -ndim <= dim < ndim:
        raise ValueProblem(
            f"{where}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {ndim} so expected "
            f"in_dim to satisfy -{ndim} <= in_dim < {ndim}."
        )
    return dim % ndim


# --- outputs ---------------------------------------------------------------------------------------------------------


def _check_out_dims(func: Callable, out_dims: Dims) -> None:
    for dim in tree_leaves(out_dims):
        if not isinstance(dim, int) and dim is not None:
            raise ValueProblem(
                f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python "
                "collection of ints representing where in the outputs the vmapped dimension should appear."
            )


def _flat_out_dims(func: Callable, outputs: object, out_dims: Dims, spec: Spec) -> list:
    """Return the batch dim of each leaf of the outputs."""
    if isinstance(outputs, TensorState) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        return list(out_dims)
    found = broadcast_to(out_dims, spec)
    if found is None:
        raise ValueProblem(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure "
            f"of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return found


def _finished(func: Callable, outputs: object, out_dims: Dims, level: VmapLevel) -> object:
    """Return the outputs with the batch at the requested dims."""
    leaves, spec = tree_flatten(outputs)
    dims = _flat_out_dims(func, outputs, out_dims, spec)
    return tree_unflatten([_without_batch(func, leaf, dim, level) for leaf, dim in zip(leaves, dims)], spec)


def _without_batch(func: Callable, output: object, dim: int | None, level: VmapLevel) -> object:
    """Return one output with the batch as a dim; an output that is the same for all is repeated."""
    own = isinstance(output, BatchedTensor) and output.level is level
    name = _name(func)
    if dim is None:
        if own:
            raise ValueProblem(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return output
    if not isinstance(output, TensorState):
        raise ValueProblem(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    ndim = output._data.ndim + 1
    if not -ndim <= dim < ndim:
        raise DimError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    if own:
        return _moved(output.physical, 0, dim % ndim)
    return output.unsqueeze(0).expand((level.size, *output._data.shape)).movedim(0, dim)
