"""A program's tensors, hooks and modes while it runs on one engine, and all that it lets a user see.

NOTE [Programs]
A program is a header and a list of steps; a step is a name and three numbers, with which it picks its operands from the
tensors made so far. What it may pick depends on shapes and dtypes only, so that most steps are possible, and so that
both engines pick the same as long as they agree. Both engines write a trace: what was made, refused, warned of, which
hooks saw what. The first place where two traces differ is a bug.
"""

import warnings
from collections import Counter
from contextlib import ExitStack

import numpy as np

RECENT = 8  # operands are taken from the tensors made last
SHAPES = [(3, 4), (3, 4), (3, 4), (4,), (3, 1), (1, 4), (), (2, 3, 4), (0, 4), (4, 4)]
STEPS = {}  # name -> what it does with a machine and its numbers
WEIGHTS = {}  # name -> how often it is drawn


# What a backward says of a graph whose tensors were written to, or which was freed. Where a backward was recorded, its
# nodes are other ones than PyTorch's, which save other tensors: then only one engine may say so, or each at its time.
STALE = (
    "one of the variables needed for gradient",
    "Trying to backward through the graph a second time",
    "Output ",
    "A view was created in no_grad mode",
)


GIVEN_ONCE = (  # a process
    "grad and param do not obey the gradient layout contract",
    "Sparse invariant checks are implicitly disabled",
    "Casting complex values to real discards the imaginary part",
    "create_graph=True will create a reference cycle",
    "was resized since it had shape",
    "`torch.jit.script` is deprecated",
)


class Impossible(Exception):
    """A step found no operand to work on."""


class HookFailure(Exception):
    """What hooks and Functions raise that are to fail."""


def step(name: str, weight: int = 2):
    """Declare a step: `act(machine, a, b, k)`, which may return a tensor, or several, to be operands from then on."""

    def declare(act):
        STEPS[name] = act
        WEIGHTS[name] = weight
        return act

    return declare


class Machine:
    """One engine's side of one program."""

    def __init__(self, t, seed: int, watchful: bool):
        self.t = t
        self.rng = np.random.default_rng(seed)
        self.watchful = watchful  # whether every tensor is looked at after each step
        self.pool = []
        self.handles = []
        self.nodes_kept = []
        self.trace = []
        self.open_modes = []  # [steps that are left, stack of contexts]
        self.counts = Counter(programs=1)
        self.number_of_hooks = 0
        self.born = {}  # of a tensor made while inference tensors were around: its version then, by its id
        self.looks = {}  # of a view: its version, its base's grad_fn and its own when it was last looked at
        self.fragile = []  # views that PyTorch refuses to use after a write to their base
        self.taken_out = []  # kept alive, since `looks` knows tensors by their ids
        self.exact = True  # whether all floating tensors are float64
        self.anchor = t.zeros((), dtype=t.float64, requires_grad=True)
        self.twice = False  # whether a backward was recorded

    # --- operands -----------------------------------------------------------------------------------------------------

    def pick(self, number: int, fits=lambda one: True):
        """Return one of the recent tensors that fit."""
        found = [one for one in self.pool if fits(one)][-RECENT:]
        if not found:
            raise Impossible
        return found[-1 - number % len(found)]

    def floating(self, number: int, least: int = 0):
        """Return a floating tensor with at least so many dimensions."""
        return self.pick(number, lambda one: one.is_floating_point() and one.dim() >= least)

    def filled(self, number: int, least: int = 0):
        """Return a floating tensor that has elements."""
        return self.pick(number, lambda one: one.is_floating_point() and one.dim() >= least and one.numel())

    def broadcasting(self, x, number: int):
        """Return a tensor that broadcasts with `x`."""
        return self.pick(number, lambda one: broadcast(one.shape, x.shape) is not None)

    def fitting_into(self, x, number: int):
        """Return a tensor that may be written into `x`."""
        return self.pick(
            number,
            lambda one: (
                broadcast(one.shape, x.shape) == tuple(x.shape)
                and may_meet(self.array(one), self.array(x))
                and (x.is_floating_point() or not one.is_floating_point())
            ),
        )

    def alike(self, x, number: int):
        """Return a tensor of the shape and dtype of `x`."""
        return self.pick(number, lambda one: one.shape == x.shape and one.dtype == x.dtype)

    def leaf(self, number: int):
        """Return a leaf that requires grad."""
        return self.pick(number, lambda one: one.requires_grad and one.is_leaf)

    def differentiable(self, number: int):
        """Return a tensor that requires grad."""
        return self.pick(number, lambda one: one.requires_grad)

    def computed(self, number: int):
        """Return a tensor that has a grad_fn."""
        return self.pick(number, lambda one: one.requires_grad and not one.is_leaf)

    def numbers(self, shape, dtype=None):
        """Return fixed random numbers as a tensor."""
        values = self.rng.normal(size=tuple(shape))
        return self.t.tensor(values.tolist(), dtype=dtype or self.t.float64).reshape(tuple(shape)).clone()

    def apart(self, x):
        """Return `x` moved by irregular numbers, so that no two elements are equal but for rounding.

        They lie in memory as `x` does: of two layouts PyTorch's sum has the first, ours rows.
        """
        with self.t.no_grad():
            moved = self.t.zeros_like(x).copy_(self.numbers(x.shape, x.dtype))
        return x + moved

    # --- running ------------------------------------------------------------------------------------------------------

    def note(self, kind: str, *what) -> None:
        """Write something into the trace."""
        self.trace.append((kind, *what))

    def refused_when_written(self, views):
        """Note views that PyTorch refuses to use after a write to their base; return them."""
        self.fragile += views
        return views

    def hook_number(self) -> int:
        """Return a number by which a new hook is known in the trace."""
        self.number_of_hooks += 1
        return self.number_of_hooks

    def run(self, steps) -> list:
        """Run the steps, then a backward from everything; return the trace."""
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            self.warned = warned
            try:
                for name, *numbers in steps:
                    self.run_step(name, numbers)
                    self.count_modes_down()
            finally:
                while self.open_modes:
                    self.open_modes.pop()[1].close()
                self.forget_inference_leaves()
                self.t.set_grad_enabled(True)
            self.attempt("the end", self.backward_from_everything)
            self.settle()
            self.note("finally", *[self.state(one) for one in self.pool])
        return self.trace

    def run_step(self, name: str, numbers) -> None:
        """Run one step, and note what came of it."""
        self.counts["run"] += 1
        self.counts[name] += 1
        made = self.attempt(name, lambda: STEPS[name](self, *numbers))
        made = made if isinstance(made, tuple | list) else () if made is None else (made,)
        for one in made:
            if not any(one is other for other in self.pool):
                if not one.is_inference() and any(other.is_inference() for other in self.pool):
                    self.born[id(one)] = one._version
                self.pool.append(one)
                self.exact &= one.dtype != self.t.float32
        self.settle()
        if self.watchful:
            self.note("state", name, *[self.state(one) for one in self.pool])
        else:
            self.note(
                "made", name, *[(self.values(one), self.strides(one), str(one.dtype).split(".")[-1]) for one in made]
            )

    def settle(self) -> None:
        """Look at all tensors, which brings views of written tensors up to date in PyTorch; take three kinds out.

        They behave otherwise in PyTorch:
        * A view that was made without recording, of a base that requires grad: PyTorch says that it requires grad too,
          though no gradient can pass.
        * A view whose memory was written to unrecorded (under no_grad, through `detach()`): PyTorch replaces the node
          that made it by an AsStridedBackward0 of the same derivative; hooks of that node are lost. Ours stays.
        * One of several views of one op, or a custom Function's view, after a write to its base: PyTorch refuses to use
          it; backlight refuses in backward, and only where the gradient would be wrong.
        """
        kept, seen = [], {}
        for one in self.pool:
            base = one._base
            if base is None or one.is_inference():
                kept.append(one)
                continue
            self.taken_out.append(one)
            try:
                now = (one._version, base.grad_fn, one.grad_fn)
            except RuntimeError:
                continue
            version, grad_fn, _ = self.looks.get(id(one), now)
            unrecorded = base.grad_fn is grad_fn
            if base.requires_grad and now[2] is None:
                continue
            if now[0] != version and (
                unrecorded or any((other._base if other._base is not None else other) is base for other in self.fragile)
            ):
                continue
            seen[id(one)] = now
            kept.append(self.taken_out.pop())
        self.pool, self.looks = kept, seen
        grads = [one.grad for one in kept if one.is_leaf and one.grad is not None]
        arrays = [self.array(one) for one in grads]
        if any(np.shares_memory(one, other) for place, one in enumerate(arrays) for other in arrays[:place]):
            self.note("lost", "PyTorch let two leaves share one memory as their .grad, so that one gets the other's")

    def attempt(self, name: str, act):
        """Do something that may be refused; note refusals and warnings."""
        before = len(self.warned)
        try:
            return act()
        except Impossible:
            self.counts["impossible"] += 1
            self.note("impossible", name)
        except Exception as problem:
            if isinstance(problem, AttributeError | AssertionError | NameError):
                raise
            self.counts["refused"] += 1
            self.note("refused", name, kind_of(problem), text_of(problem))
        finally:
            for one in self.warned[before:]:
                if any(text in str(one.message) for text in GIVEN_ONCE):
                    continue
                self.note("warned", name, one.category.__name__, str(one.message).split("\n")[0])

    def enter_modes(self, steps: int, *contexts) -> None:
        """Let the next steps run inside some contexts."""
        stack = ExitStack()
        for context in contexts:
            stack.enter_context(context)
        self.open_modes.append([steps + 1, stack])

    def count_modes_down(self) -> None:
        """Leave the modes whose steps are over, innermost first."""
        for one in self.open_modes:
            one[0] -= 1
        while self.open_modes and self.open_modes[-1][0] <= 0:
            self.open_modes.pop()[1].close()
        self.forget_inference_leaves()

    def forget_inference_leaves(self) -> None:
        """Outside of inference mode take out its tensors that require grad: PyTorch records only some ops of these."""
        if not self.t.is_inference_mode_enabled():
            self.pool = [one for one in self.pool if not (one.requires_grad and one.is_inference())]

    def backward_from_everything(self) -> None:
        """Run backward from a sum of all that requires grad."""
        total = 0.0
        for number, one in enumerate(self.pool):
            if one.requires_grad:
                total = total + (one * (0.5 + number)).sum()
        if not isinstance(total, float):
            total.backward()

    # --- what a user can see ------------------------------------------------------------------------------------------

    def array(self, tensor):
        """Return a tensor's memory, in a way that leaves the tensor as it is."""
        if not hasattr(tensor, "_is_zerotensor"):  # of backlight
            return np.asarray(tensor._data)
        return tensor.detach().resolve_conj().resolve_neg().numpy(force=tensor._is_zerotensor())

    def values(self, tensor):
        """Return a copy of a tensor's values."""
        return self.array(tensor).copy()

    def strides(self, tensor):
        """Return a tensor's strides, or None where it has no elements."""
        return tuple(tensor.stride()) if tensor.numel() else None

    def gradient(self, grad):
        """Return the values of a gradient; after a recorded backward None for zeros.

        Which derivatives of derivatives are known to be zero, and need not arrive, is the engine's affair.
        """
        if grad is None or (self.twice and np.allclose(self.array(grad), 0, atol=1e-12)):
            return None
        return self.values(grad)

    def place(self, tensor) -> int:
        """Return a tensor's number among the operands, or -1."""
        return next((number for number, one in enumerate(self.pool) if one is tensor), -1)

    def state(self, tensor) -> tuple:
        """Return all that a tensor shows of itself."""
        try:
            grad_fn = tensor.grad_fn  # first: PyTorch brings a view of a written tensor up to date here
        except RuntimeError as problem:  # a custom Function's view whose base was written to
            return kind_of(problem), text_of(problem)
        version = self.version(tensor)
        grad = tensor.grad if tensor.is_leaf or tensor.retains_grad else None
        base = tensor._base
        return (
            self.values(tensor),
            self.strides(tensor),
            str(tensor.dtype).split(".")[-1],
            None if grad_fn is None else grad_fn.name(),
            tensor.requires_grad,
            tensor.is_leaf,
            tensor.output_nr,
            version,
            None if version == "inference" else tensor._is_view(),
            None if base is None or version == "inference" else self.place(base),
            tensor.retains_grad,
            None if self.gradient(grad) is None else self.state_of_grad(grad),
        )

    def version(self, tensor):
        """Return how often a tensor's memory was written to, but for the writes while it was made.

        PyTorch counts those too where an operand was an inference tensor: 1 for a sum, 2 for one with keepdim.
        """
        return "inference" if tensor.is_inference() else tensor._version - self.born.get(id(tensor), 0)

    def state_of_grad(self, grad) -> tuple:
        """Return what a gradient shows of itself.

        Not its version: PyTorch counts the sums that its pass made in place before the gradient came.
        """
        recorded = None if self.twice else (grad.grad_fn is None, grad.requires_grad)
        return self.values(grad), recorded, self.place(grad)


def broadcast(first, second):
    """Return the shape that two shapes broadcast to, or None."""
    try:
        return np.broadcast_shapes(tuple(first), tuple(second))
    except ValueError:
        return None


def may_meet(read, written) -> bool:
    """Tell whether PyTorch's result of writing with an operand is defined: without gaps in memory it refuses others."""
    return not np.shares_memory(read, written) or (is_dense(read) and is_dense(written))


def is_dense(array) -> bool:
    """Tell whether an array's elements lie side by side."""
    order = np.argsort([-stride for stride in array.strides], kind="stable")
    return array.squeeze().ndim == 0 or array.transpose(order).flags.c_contiguous


def is_stale(problem) -> bool:
    """Tell whether an exception, or its text, is one of STALE."""
    return str(problem).startswith(STALE)


def kind_of(problem: Exception) -> str:
    """Return the name of the first class of an exception that is Python's own, or this folder's."""
    return next(c.__name__ for c in type(problem).__mro__ if c.__module__ in ("builtins", "fuzzing.machine"))


def text_of(problem: Exception) -> str:
    """Return the first line of what an exception says."""
    return str(problem).split("\n")[0]
