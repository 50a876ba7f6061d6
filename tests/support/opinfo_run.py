"""Runs backlight on PyTorch's own test samples (OpInfo) and compares forward, gradient and second gradient.

python tests/support/opinfo_run.py [--bfloat16] [name …]     prints a line an entry, with the first difference

In float64, the default, and complex128 forward, gradient and second gradient are compared; in another dtype the
forward. Entries that take complex numbers only are run in complex128.
"""

import functools
import sys
import types
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from opinfo_database import op_database
from torch.testing._comparison import default_tolerances
from torch.testing._internal.common_device_type import toleranceOverride

import backlight
from backlight.ops.indexing.slicing import sliced
from backlight.ops.nn.interpolation import upsample_to
from backlight.ops.nn.native_norms import batch_norm_with_update
from backlight.ops.random.dropout import native_dropout_backward
from backlight.torch_api.stand_ins.accelerators import JittedFunction

RTOL, ATOL = 1e-7, 1e-9
SINGLE_RTOL, SINGLE_ATOL = 1e-4, 1e-5  # where a sample mixes float32 in
RANDOM_SEED = 42  # the seed that PyTorch's own wrappers set in samples that draw

# The signs of singular vectors and eigenvectors are LAPACK's choice, and NumPy and PyTorch have different ones: here
# what PyTorch's own tests look at is compared (sizes, products in which the signs cancel).
SIGNS_LEFT_OPEN = {"svd", "linalg.svd", "linalg.eig", "linalg.eigh", "svd_lowrank", "pca_lowrank"}

# Where PyTorch's own gradcheck is expected to fail, ours must pass instead of giving PyTorch's gradient.
WRONG_IN_PYTORCH = {"as_strided_scatter", "istft", "native_group_norm"}

# Norms at zero, where they have a corner: PyTorch's own test of the second derivative is expected to fail.
NO_SECOND_DERIVATIVE = {"linalg.norm.subgradients_at_zero"}


class Missing(Exception):
    """backlight has no op of that name."""


@dataclass(frozen=True)
class Outcome:
    """What became of one entry of PyTorch's list."""

    name: str
    status: str  # "pass", "fail", "missing"
    samples: int
    reason: str = ""


def entries():
    """Return PyTorch's entries that have a gradient: 547 of 702 in PyTorch 2.13; 540 take float64 on the CPU."""
    return [entry for entry in op_database() if entry.supports_autograd]


def full_name(entry) -> str:
    return entry.name + (f".{entry.variant_test_name}" if entry.variant_test_name else "")


def _upsample_bilinear2d_aa(input, output_size, align_corners, scale_factors=None, *, scales_h=None, scales_w=None):
    scales = scale_factors or ((scales_h, scales_w) if scales_h and scales_w else None)
    return upsample_to(input, "linear", output_size, scales, align_corners, True)


def _max_pool2d_with_indices_backward(input, return_indices=True, **options):
    """Return the gradient of max_pool2d for gradients of 1, which depends on the input with a derivative of 0."""
    with backlight.enable_grad():
        source = input.detach().requires_grad_()
        out, _ = backlight.nn.functional.max_pool2d_with_indices(source, **options)
        (grad,) = backlight.autograd.grad(out, source, backlight.ones_like(out))
    return grad + 0 * input


# Entries that test an operator under a name that torch.* does not have.
OTHERWISE_NAMED = {
    "_segment_reduce": backlight.segment_reduce,
    "_batch_norm_with_update": batch_norm_with_update,
    "_upsample_bilinear2d_aa": _upsample_bilinear2d_aa,
    "max_pool2d_with_indices_backward": _max_pool2d_with_indices_backward,
    "native_dropout_backward": native_dropout_backward,
    "slice": sliced,
    "torch.ops.aten._safe_softmax.default": backlight._safe_softmax,
}


def our_function(entry):
    """Return backlight's function for an entry: by its name, or PyTorch's test wrapper run on backlight's names."""
    function = entry.op
    if entry.name in OTHERWISE_NAMED:
        return OTHERWISE_NAMED[entry.name]
    if type(function).__name__ == "_JittedFunction":
        return JittedFunction(function.code_string, function.return_by_ref, function.num_outputs)
    if isinstance(function, types.FunctionType) and function.__module__.startswith("torch.testing"):
        names = {**function.__globals__, "torch": backlight}
        return types.FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )
    found = backlight
    for part in entry.name.split("."):
        found = getattr(found, part, None)
        if found is None:
            method = getattr(backlight.Tensor, entry.name, None)
            if method is None:
                raise Missing(entry.name)
            return method
    return getattr(backlight.Tensor, entry.name) if isinstance(found, backlight.dtype) else found


def same_tensor(source):
    """Return a copy of a tensor with equal strides; of one that shows part of its memory, a view of a copy of all."""
    if 0 in source.shape or not source.untyped_storage().nbytes():
        return backlight.from_numpy(array_of(source).copy())
    size = source.untyped_storage().nbytes() // source.itemsize
    if source.storage_offset() and size > source.numel():
        whole = array_of(source.as_strided((size,), (1,), 0)).copy()
        return backlight.from_numpy(whole).as_strided(source.shape, source.stride(), source.storage_offset())
    elements = array_of(source)
    whole = np.zeros(1 + sum((n - 1) * step for n, step in zip(source.shape, source.stride())), elements.dtype)
    copy = np.ndarray(elements.shape, elements.dtype, whole.view(np.uint8), 0, elements.strides)
    copy[...] = elements
    return backlight.from_numpy(copy)


def array_of(tensor) -> np.ndarray:
    """Return a tensor's memory as an array, bfloat16 too."""
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(backlight.bfloat16.numpy)
    return tensor.numpy()


def converted(value, made: dict):
    """Return a sample's value with tensors, dtypes … replaced by backlight's; the same tensor twice stays one."""
    if isinstance(value, torch.Tensor):
        if id(value) not in made:
            if value.layout is not torch.strided:
                raise Missing(f"tensors of {value.dtype}, {value.layout}")
            if value.ndim > 64:
                return backlight.empty(value.shape)  # raises
            if value.is_meta:
                made[id(value)] = backlight.empty(value.shape, dtype=converted(value.dtype, made), device="meta")
                return made[id(value)]
            tensor = same_tensor(value.detach().resolve_conj())
            made[id(value)] = tensor.requires_grad_() if value.requires_grad else tensor
        return made[id(value)]
    if isinstance(value, torch.dtype):
        found = getattr(backlight, str(value).split(".")[1], None)
        if found is None:
            raise Missing(f"the dtype {value}")
        return found
    if isinstance(value, torch.layout):
        return backlight.strided if value is torch.strided else backlight.layout(str(value)[6:])
    if isinstance(value, torch.memory_format):
        return getattr(backlight, str(value).split(".")[1])
    if isinstance(value, torch.device):
        return backlight.device(str(value))
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)) and value.__module__.startswith("torch.nn"):
        return getattr(backlight.nn.functional, value.__name__)
    if isinstance(value, torch.nn.PairwiseDistance):
        return backlight.nn.PairwiseDistance(value.norm, value.eps, value.keepdim)
    if isinstance(value, torch.Size):
        return backlight.Size(value)
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(converted(part, made) for part in value)
    if isinstance(value, dict):
        return {key: converted(part, made) for key, part in value.items()}
    return value


def floats_of(result, kind) -> list:
    """Return the differentiable tensors in a nested result."""
    if isinstance(result, kind):
        return [result] if result.requires_grad else []
    if isinstance(result, (tuple, list)):
        return [tensor for part in result for tensor in floats_of(part, kind)]
    return []


def leaves_of(values, kind, found=None) -> list:
    """Return the tensors in a nested structure that require grad, each once, in order."""
    found = [] if found is None else found
    if isinstance(values, kind):
        if values.requires_grad and all(values is not other for other in found):
            found.append(values)
    elif isinstance(values, (tuple, list)):
        for part in values:
            leaves_of(part, kind, found)
    elif isinstance(values, dict):
        leaves_of(list(values.values()), kind, found)
    return found


def values(tensor) -> np.ndarray:
    """Return a tensor's values; those of complex32, which NumPy does not have, as complex64."""
    detached = tensor.detach()
    return (detached.cfloat() if str(detached.dtype).endswith("complex32") else detached).numpy(force=True)


def compare(ours, theirs, what: str, tolerance: tuple[float, float] | None = None) -> None:
    """Raise AssertionError at the first difference in structure, dtype, shape or value.

    Args:
        tolerance: (relative, absolute); by default that of float64, and of float32 where a sample mixes it in.
    """
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, backlight.Tensor), f"{what}: {type(ours).__name__} instead of a tensor"
        assert str(ours.dtype) == str(theirs.dtype), f"{what}: dtype {ours.dtype} instead of {theirs.dtype}"
        assert tuple(ours.shape) == tuple(theirs.shape), f"{what}: shape {ours.shape} instead of {theirs.shape}"
        wide = np.complex128 if theirs.is_complex() else np.float64
        single = theirs.dtype in (torch.float32, torch.complex64)
        np.testing.assert_allclose(
            values(ours).astype(wide),
            theirs.detach().to(torch.complex128 if theirs.is_complex() else torch.float64).numpy(force=True),
            *(tolerance or ((SINGLE_RTOL, SINGLE_ATOL) if single else (RTOL, ATOL))),
            err_msg=what,
        )
    elif isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs), f"{what}: {len(ours)} results instead of {len(theirs)}"
        for number, (a, b) in enumerate(zip(ours, theirs)):
            compare(a, b, f"{what}[{number}]", tolerance)
    else:
        assert ours == theirs, f"{what}: {ours!r} instead of {theirs!r}"


def random_numbers(rng: np.random.Generator, like) -> np.ndarray:
    """Return normal numbers in the shape of a tensor, complex ones for a complex tensor."""
    numbers = np.asarray(rng.normal(size=tuple(like.shape)))
    return np.asarray(numbers + 1j * rng.normal(size=tuple(like.shape))) if like.is_complex() else numbers


def weights_for(outputs, module, seed) -> list:
    rng = np.random.default_rng(seed)
    arrays = [random_numbers(rng, one) for one in outputs]
    return [module.from_numpy(array).to(getattr(module, str(one.dtype)[6:])) for array, one in zip(arrays, outputs)]


def gradients(module, outputs, leaves, seed, create_graph):
    return module.autograd.grad(
        outputs, leaves, weights_for(outputs, module, seed), create_graph=create_graph, allow_unused=True
    )


def compare_gradients(ours, theirs, what):
    for number, (a, b) in enumerate(zip(ours, theirs)):
        if a is None or b is None:
            present = a if b is None else b
            zero = present is None or not np.any(values(present))
            assert zero, f"{what} {number}: only {'backlight' if b is None else 'PyTorch'} has one"
        else:
            compare(a, b, f"{what} {number}")


@functools.cache
def draws_alike() -> bool:
    """Tell whether PyTorch draws dropout from its own generator here, as backlight does."""
    torch.default_generator.manual_seed(RANDOM_SEED)
    backlight.manual_seed(RANDOM_SEED)
    theirs = torch.nn.functional.dropout(torch.ones(100), 0.5)
    return np.array_equal(backlight.nn.functional.dropout(backlight.ones(100), 0.5).numpy(), theirs.numpy())


def both_results(entry, function, arguments, mine):
    """Call backlight's and PyTorch's function with equal seeds; return None where they draw from different sources."""
    input, args, kwargs = arguments
    torch.default_generator.manual_seed(RANDOM_SEED)
    before = torch.get_rng_state()
    theirs = entry.op(input, *args, **kwargs)
    if not torch.equal(before, torch.get_rng_state()) and not draws_alike():
        return None  # on some processors PyTorch draws from a vendor's library: other numbers, nothing to compare
    backlight.manual_seed(RANDOM_SEED)
    input, args, kwargs = mine
    return function(input, *args, **kwargs), theirs


def run_sample(entry, function, sample) -> None:
    """Compare one sample in all three ways."""
    arguments = (sample.input, sample.args, sample.kwargs)
    mine = converted(arguments, {})
    results = both_results(entry, function, arguments, mine)
    if results is None:
        return
    ours, theirs = results
    if entry.name not in SIGNS_LEFT_OPEN:
        compare(ours, theirs, "forward")
    theirs, ours = sample.output_process_fn_grad(theirs), sample.output_process_fn_grad(ours)
    if entry.name in SIGNS_LEFT_OPEN:
        compare(ours, theirs, "forward")
    if entry.name in WRONG_IN_PYTORCH:
        return check_numerically(function, mine, sample)
    their_outputs, our_outputs = floats_of(theirs, torch.Tensor), floats_of(ours, backlight.Tensor)
    assert len(our_outputs) == len(their_outputs), f"{len(our_outputs)} outputs require grad, not {len(their_outputs)}"
    their_leaves, our_leaves = (
        leaves_of(arguments, torch.Tensor),
        leaves_of(mine, backlight.Tensor),
    )
    if not their_outputs or not their_leaves:
        return
    second = entry.supports_gradgrad
    their_grads = gradients(torch, their_outputs, their_leaves, 1, second)
    our_grads = gradients(backlight, our_outputs, our_leaves, 1, True)
    compare_gradients(our_grads, their_grads, "gradient")
    if full_name(entry) in NO_SECOND_DERIVATIVE:
        return
    pairs = [(a, b) for a, b in zip(our_grads, their_grads) if b is not None and b.requires_grad]
    if second and not pairs:
        return
    try:
        their_second = gradients(torch, [b for _, b in pairs], their_leaves, 2, False) if second else None
    except RuntimeError:  # PyTorch has no second derivative here, or fails at it
        their_second = None
    if their_second is None:
        check_second_numerically(function, mine, our_leaves, sample)
    else:
        compare_second(pairs, their_second, our_leaves)


def check_numerically(function, arguments, sample) -> None:
    """Check our gradients of a small sample against finite differences."""
    leaves = leaves_of(arguments, backlight.Tensor)
    first, args, kwargs = arguments
    if 0 < sum(leaf.numel() for leaf in leaves) <= 300:
        backlight.autograd.gradcheck(
            lambda *_: tuple(
                floats_of(sample.output_process_fn_grad(function(first, *args, **kwargs)), backlight.Tensor)
            ),
            leaves,
        )


def compare_second(pairs, theirs, our_leaves) -> None:
    """Compare the gradients of a weighted sum of the first gradients, which are given in pairs (ours, PyTorch's).

    A first gradient that does not depend on the leaves is part of PyTorch's graph and may be missing from ours: its
    share is zero.
    """
    weights = weights_for([b for _, b in pairs], backlight, 2)
    kept = [(a, weight) for (a, _), weight in zip(pairs, weights) if a is not None and a.requires_grad]
    ours = [None] * len(our_leaves)
    if kept:
        outputs, weights = zip(*kept)
        ours = backlight.autograd.grad(outputs, our_leaves, weights, allow_unused=True)
    compare_gradients(ours, theirs, "second gradient")


def check_second_numerically(function, arguments, leaves, sample):
    """Where PyTorch has no second derivative, ours must agree with a finite difference of the first.

        w · ∂g/∂x · d  =  w · (g(x + ε·d) − g(x − ε·d)) / 2ε      for one random w and one random direction d

    One direction suffices for a wrong derivative to show, and costs two gradients instead of two for each element.
    """
    first, args, kwargs = arguments
    step, directions = 1e-5, [one.detach() for one in weights_for(leaves, backlight, 3)]

    def slopes(create_graph):
        backlight.manual_seed(RANDOM_SEED)
        outputs = floats_of(sample.output_process_fn_grad(function(first, *args, **kwargs)), backlight.Tensor)
        return gradients(backlight, outputs, leaves, 1, create_graph)

    found = slopes(True)
    present = [number for number, one in enumerate(found) if one is not None and one.requires_grad]
    weights = weights_for([found[number] for number in present], backlight, 2)
    moved = 0.0
    if present:
        seconds = backlight.autograd.grad([found[number] for number in present], leaves, weights, allow_unused=True)
        moved = sum(float((one * way).sum()) for one, way in zip(seconds, directions) if one is not None)
    ends = []
    for sign in (1, -2):
        with backlight.no_grad():
            for leaf, way in zip(leaves, directions):
                leaf.add_(way * (sign * step))
        shifted = slopes(False)
        ends.append(sum(float((shifted[number] * w).sum()) for number, w in zip(present, weights)))
    expected = (ends[0] - ends[1]) / (2 * step)
    assert np.isclose(moved, expected, rtol=1e-4, atol=1e-4), f"second gradient {moved} against {expected} numerically"


def run_forward(entry, function, sample, dtype) -> None:
    """Compare the forward of one sample in a dtype, as closely as PyTorch's own tests do.

    Where sums run in another order, large terms that cancel leave more: ours may then be off the float64 result by as
    much as twice what PyTorch's is.
    """
    arguments = (sample.input, sample.args, sample.kwargs)
    results = both_results(entry, function, arguments, converted(arguments, {}))
    if results is None:
        return
    if entry.name in SIGNS_LEFT_OPEN:
        results = [sample.output_process_fn_grad(result) for result in results]
    try:
        compare(*results, "forward", tolerance_of(entry, dtype))
    except AssertionError:
        input, args, kwargs = widened(arguments, dtype)
        exact = entry.op(input, *args, **kwargs)
        exact = sample.output_process_fn_grad(exact) if entry.name in SIGNS_LEFT_OPEN else exact
        if not as_exact(*results, exact):
            raise


def widened(value, dtype):
    """Return a sample's value with float64 in the place of a dtype."""
    if isinstance(value, torch.Tensor):
        return value.double() if value.dtype is dtype else value
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(widened(part, dtype) for part in value)
    if isinstance(value, dict):
        return {key: widened(part, dtype) for key, part in value.items()}
    return torch.float64 if value is dtype else value


def as_exact(ours, theirs, exact) -> bool:
    """Tell whether ours is, by its largest error, at most twice as far from the exact result as PyTorch's is."""
    if isinstance(exact, (tuple, list)):
        return all(as_exact(*parts) for parts in zip(ours, theirs, exact))
    if not isinstance(ours, backlight.Tensor) or str(ours.dtype) != str(theirs.dtype) or ours.shape != theirs.shape:
        return False
    wide = [one.double().numpy() for one in (ours, theirs, exact)]
    with np.errstate(all="ignore"):
        own, other = (np.where(one == wide[2], 0, np.abs(one - wide[2])) for one in wide[:2])
    same = np.isnan(wide[0]) & np.isnan(wide[1])
    return bool(np.all(own[~same] <= 2 * np.max(other[~same], initial=0)))


def tolerance_of(entry, dtype) -> tuple[float, float]:
    """Return (relative, absolute): PyTorch's default for the dtype, or the largest that the entry asks for."""
    rtol, atol = default_tolerances(dtype)
    for info in entry.decorators:
        for decorator in getattr(info, "decorators", [info]):
            found = getattr(decorator, "d", {}).get(dtype)
            if found is not None and getattr(info, "device_type", None) in (None, "cpu"):
                wider = (found.rtol, found.atol) if isinstance(decorator, toleranceOverride) else (0, found)
                rtol, atol = max(rtol, wider[0]), max(atol, wider[1])
    return rtol, atol


def elements_of(sample) -> int:
    """Return how many elements the largest tensor of a sample has."""
    tensors = [sample.input, *sample.args, *sample.kwargs.values()]
    return max((one.numel() for one in tensors if isinstance(one, torch.Tensor)), default=0)


def dtype_of(entry):
    """Return what an entry takes: float64 or complex128, where gradients are compared, else int64, where none are."""
    return next(
        (kind for kind in (torch.float64, torch.complex128, torch.int64) if kind in entry.dtypes), torch.float64
    )


def run_entry(
    entry, most_elements: float = np.inf, dtype=torch.float64, most_samples: float = np.inf, compared=run_sample
) -> Outcome:
    """Run the samples of an entry (the first so many of those with at most so many elements) and say how it went.

    Args:
        dtype: float64 or complex128 for forward, gradient and second gradient; another one for forward only.
        compared: what compares a sample whose gradients are compared.
    """
    dtype = dtype_of(entry) if dtype is torch.float64 else dtype
    name, count, differentiated = full_name(entry), 0, dtype in (torch.float64, torch.complex128)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if dtype not in entry.dtypes:
                raise Missing(f"PyTorch does not take {dtype} here")
            function = our_function(entry)
            for sample in entry.sample_inputs("cpu", dtype, requires_grad=differentiated and entry.supports_autograd):
                if elements_of(sample) > most_elements:
                    continue
                if count >= most_samples:
                    break
                count += 1
                if differentiated:
                    compared(entry, function, sample)
                else:
                    run_forward(entry, function, sample, dtype)
        except Missing as problem:
            return Outcome(name, "missing", count, str(problem))
        except AttributeError as problem:
            if "backlight" in str(problem) and "has no attribute" in str(problem):
                return Outcome(name, "missing", count, str(problem))
            return Outcome(name, "fail", count, f"sample {count}: {problem!r}")
        except Exception as problem:
            text = " ".join(str(problem).split())[:300]
            return Outcome(name, "fail", count, f"sample {count}: {type(problem).__name__}: {text}")
    return Outcome(name, "pass", count)


def main(names) -> None:
    dtype = getattr(torch, names.pop(0)[2:]) if names and names[0].startswith("--") else torch.float64
    report(entries(), names, dtype=dtype)


def report(listed, names, **options) -> None:
    """Run the entries of a list that are named, or all, and print a line for each."""
    outcomes = []
    for entry in listed:
        if names and full_name(entry) not in names and entry.name not in names:
            continue
        outcome = run_entry(entry, **options)
        outcomes.append(outcome)
        print(f"{outcome.status:8} {outcome.name:45} {outcome.samples:4}  {outcome.reason}", flush=True)
    for status in ("pass", "fail", "missing"):
        print(status, sum(outcome.status == status for outcome in outcomes))


if __name__ == "__main__":
    main(sys.argv[1:])
