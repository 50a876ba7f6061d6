"""Functions whose backward is written by the user: `Function`, and the `ctx` that its two methods share.

NOTE [Two objects behind one ctx]
PyTorch's ctx and the node in the graph are one object. Here the user's `ctx` is an object of its own, on which any
attribute may be set without meeting the node's slots; each shows the other's attributes, so that
`y.grad_fn.saved_tensors` and `ctx.next_functions` work.
"""

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable, Sequence

from backlight.autograd.function_node import DelayedError, FunctionNode, raw_saved, saved_for
from backlight.autograd.function_outputs import record_outputs
from backlight.dispatch.dispatcher import composite_function
from backlight.dispatch.interpreters import interpreted
from backlight.engine.grad_mode import is_grad_enabled, modes, no_grad, set_recording
from backlight.engine.mutation_checks import inside_reverse_transform
from backlight.engine.node import Output, freed, new_node
from backlight.engine.tensor_state import LEAF, TensorState, edge_of, wrap
from backlight.errors import ArgumentError, GraphError, MissingMethodError
from backlight.system.lazy_import import function_later

push_tangents = function_later("backlight.autograd.function_tangents", "push_tangents")

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]

MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
NO_SETUP = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
    f"the setup_context staticmethod. {MORE}"
)


class FunctionCtx:
    """The context that a Function's forward passes to its backward. Any attribute may be set on it."""

    needs_input_grad: tuple[bool, ...] = ()
    saved_for_forward: tuple | None = None
    to_save: tuple | None = None
    dirty_tensors: tuple | None = None
    non_differentiable: tuple | None = None
    _materialize = True
    _pushes_forward = False  # whether jvp runs
    _node = None  # weak reference to the node in the graph
    _saved: tuple | None = ()  # the arguments of save_for_backward; None after they were freed

    def save_for_backward(self, *tensors) -> None:
        """Save inputs, outputs or other tensors (or None) for `backward`, which reads them as `ctx.saved_tensors`."""
        self.to_save = tensors

    def save_for_forward(self, *tensors) -> None:
        """Save inputs, outputs or other tensors for `jvp`, which reads them as `ctx.saved_tensors`."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, TensorState):
                raise ArgumentError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes "
                    "on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args) -> None:
        """Say which inputs forward changed in place; they must be returned too."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args) -> None:
        """Say which outputs have no gradient; backward still takes one for each, all zeros."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether a missing gradient reaches backward as zeros (the default) or as None."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple:
        """The tensors given to `save_for_backward`.

        Raises:
            RuntimeError: the graph was freed, or a saved tensor was modified in place.
        """
        if self._pushes_forward and self.saved_for_forward is not None:
            return self.saved_for_forward
        if self._saved is None:
            raise freed(self._node())
        return tuple(None if one is None else one.unpack() for one in self._saved)

    @property
    def _raw_saved_tensors(self) -> tuple:
        """The same as SavedTensor objects, which take hooks."""
        if self._saved is None:
            raise freed(self._node())
        return raw_saved(self)

    def _raw_saved(self) -> tuple:
        """The same; () if they were freed."""
        return raw_saved(self)

    def __getattr__(self, name: str):
        node = None if self._node is None else self._node()
        if node is None or name.startswith("__") or not hasattr(type(node), name):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(node, name)


class BackwardCFunction(FunctionCtx):
    """The ctx of one Function class, which is its `_forward_cls`."""


class FunctionMeta(type):
    """Creates the ctx class and the node class, `<Name>Backward`, of each Function class."""

    def __init__(cls, name: str, bases: tuple, attrs: dict):
        super().__init__(name, bases, attrs)
        cls._backward_cls = type(f"{name}Backward", (BackwardCFunction,), {"_forward_cls": cls})
        cls._node_class = type(f"{name}Backward", (FunctionNode,), {"function": cls})


class Function(FunctionCtx, metaclass=FunctionMeta):
    """A differentiable function with a backward of its own.

    Write `forward` and `backward` as static methods of a subclass and call the subclass's `apply`:

        class Exp(Function):
            @staticmethod
            def forward(ctx, x):
                out = x.exp()
                ctx.save_for_backward(out)
                return out

            @staticmethod
            def backward(ctx, grad):
                (out,) = ctx.saved_tensors
                return grad * out

        y = Exp.apply(x)
    """

    def __init__(self, *args, **kwargs):
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        """Refuse: call `apply` on the class."""
        raise GraphError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args, **kwargs):
        """Compute the outputs: `forward(ctx, *inputs)`, or `forward(*inputs)` with a `setup_context`."""
        raise MissingMethodError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs: tuple, output) -> None:
        """Save on `ctx` what backward needs, where forward takes no ctx."""
        raise MissingMethodError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Return one gradient, or None, for each input of forward."""
        raise MissingMethodError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, *args):
        """Compute on batches: return the outputs and the batch dim of each.

        Args:
            info: has `batch_size` and `randomness`.
            in_dims: the batch dim of each argument, None where there is no batch.
        """
        raise MissingMethodError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """Return the tangents of the outputs from those of the inputs, for forward mode."""
        raise MissingMethodError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @classmethod
    def _run_backward(cls, ctx: FunctionCtx, *grads):
        """Call the user's backward, under either of its two names."""
        backward, vjp = cls.backward, cls.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise GraphError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return (backward if vjp is Function.vjp else vjp)(ctx, *grads)

    @classmethod
    @composite_function
    def apply(cls, *args, **kwargs):
        """Run forward without recording, and record the call as one node."""
        sets_up = cls.setup_context is not Function.setup_context
        if not sets_up and inside_reverse_transform():
            raise GraphError(NO_SETUP)
        if sets_up or kwargs:
            args = _positional(cls.forward, args, kwargs, sets_up)
        ctx = cls._backward_cls()
        tensors = [value for value in args if isinstance(value, TensorState)]
        ctx.needs_input_grad = tuple(isinstance(value, TensorState) and value._edge is not None for value in args)
        node = _new_node(cls, ctx, args) if modes.grad_enabled and any(ctx.needs_input_grad) else None
        recording, forward = modes.requested, modes.forward
        try:
            modes.forward = False
            set_recording(False)
            output = cls.forward(*args) if sets_up else cls.forward(ctx, *args)
            if sets_up:
                cls.setup_context(ctx, args, output)
        finally:
            modes.forward = forward
            set_recording(recording)
        outputs = record_outputs(ctx, node, tensors, output if isinstance(output, tuple) else (output,))
        if node is not None:
            ctx._saved = saved_for(node, ctx.to_save or (), output, outputs)
        if interpreted.blocks:
            push_tangents(cls, ctx, args, output if isinstance(output, tuple) else (output,), outputs)
        ctx.to_save = ctx.dirty_tensors = ctx.non_differentiable = None
        return outputs if isinstance(output, tuple) else outputs[0]


def _positional(forward: Callable, args: tuple, kwargs: dict, sets_up: bool) -> tuple:
    """Return all arguments as positional ones."""
    leading = () if sets_up else (None,)
    try:
        bound = inspect.signature(forward).bind(*leading, *args, **kwargs)
    except TypeError as problem:
        raise ArgumentError(f"forward() got {problem}" if not sets_up else str(problem)) from None
    if sets_up:
        bound.apply_defaults()
    return bound.args[len(leading) :]


def _new_node(cls, ctx: FunctionCtx, args: Sequence) -> FunctionNode:
    places = [place for place, value in enumerate(args) if isinstance(value, TensorState)]
    node = new_node(
        cls._node_class,
        tuple(edge_of(args[place]) for place in places),
        ctx=ctx,
        tensor_places=places,
        input_metas=[(tuple(args[place]._data.shape), args[place]._data.dtype) for place in places],
    )
    ctx._node = weakref.ref(node)
    return node


def once_differentiable(backward: Callable):
    """Decorate a backward that is not written in differentiable operations: differentiating it again is an error."""

    @functools.wraps(backward)
    def run_once(ctx: FunctionCtx, *grads):
        with no_grad():
            found = backward(ctx, *grads)
        if not is_grad_enabled() or not any(isinstance(g, TensorState) and g._edge is not None for g in grads):
            return found
        several = found if isinstance(found, tuple) else (found,)
        blocked = _not_again(several, backward.__qualname__)
        return blocked if isinstance(found, tuple) else blocked[0]

    return run_once


def _not_again(tensors: tuple, name: str) -> tuple:
    edges = tuple(None if tensor is None else wrap(tensor._data, LEAF) for tensor in tensors)
    node = new_node(DelayedError, edges, function_name=name, outputs=max(len(tensors), 1))
    return tuple(
        None if tensor is None else wrap(tensor._data, node if node.outputs == 1 else Output(node, number))
        for number, tensor in enumerate(tensors)
    )


class InplaceFunction(Function):
    """The same as Function: the old class for in-place functions, which now use `ctx.mark_dirty`."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """The same as Function: in PyTorch, too, nothing is left of what this once did with nested inputs."""


applied = Function.__dict__["apply"].__func__
