"""Tensor's methods for autograd: requires_grad, grad_fn, grad, hooks, backward."""

import warnings
from collections.abc import Callable

import numpy as np

from backlight.dispatch.interpreters import interpreted
from backlight.dtypes import from_numpy_dtype
from backlight.engine.grad_mode import modes
from backlight.engine.hook_calls import keep_gradient, register_tensor_hook
from backlight.engine.hooks import HookDict, RemovableHandle
from backlight.engine.mutation_checks import mark_as_alias, refuse_inside
from backlight.engine.node import node_and_number, origin
from backlight.engine.run_backward import backward_from
from backlight.engine.storage import InferenceStorage, Storage, stored_in
from backlight.engine.tensor_state import (
    LEAF,
    TensorState,
    noted_memory,
    replace_memory,
    storage_for_alias,
    storage_of,
    transforms,
    wrap,
    writable,
)
from backlight.errors import ArgumentError, GraphError, ShapeError
from backlight.ops.conjugate_views import address, source_base
from backlight.ops.elementwise.complex_numbers import is_conj, is_neg
from backlight.ops.type_promotion import has_gradient

NON_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
    "use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the "
    "leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information."
)


class GraphMethods:
    """Tensor's autograd attributes and methods."""

    __slots__ = ()

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded for gradients."""
        return self._edge is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise GraphError(f"requires_grad must be a bool, got {type(value).__name__}")
        if not self.is_leaf:
            advice = (
                ""
                if value
                else " If you want to use a computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
            raise GraphError(f"you can only change requires_grad flags of leaf variables.{advice}{origin(self)}")
        if bool(value) == (self._edge is not None):
            return
        if value:
            if not has_gradient(self._data.dtype):
                raise GraphError(
                    "only Tensors of floating point and complex dtype can require gradients; this one is "
                    f"{from_numpy_dtype(self._data.dtype)}: convert it with .float() first"
                )
            if self._storage.__class__ is InferenceStorage and not modes.inference:
                raise GraphError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed. "
                    "Make the tensor outside inference_mode(), or take a clone()"
                )
        self._edge = LEAF if value else None

    def requires_grad_(self, requires_grad: bool = True):
        """Set `requires_grad` and return the tensor itself."""
        if interpreted.blocks or transforms.open:
            refuse_inside("requires_grad_", "(or perhaps using torch.autograd.functional.* APIs) ")
        if requires_grad and self._edge is None and not has_gradient(self._data.dtype):
            raise GraphError(
                "only Tensors of floating point dtype can require gradients; this one is "
                f"{from_numpy_dtype(self._data.dtype)}: convert it with .float() first"
            )
        if self.is_leaf or not requires_grad:
            self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded op made this tensor."""
        edge = self._edge
        return edge is None or edge.is_leaf_edge

    @property
    def grad_fn(self):
        """The node that made this tensor, or None for a leaf."""
        edge = self._edge
        return None if edge is None or edge.is_leaf_edge else node_and_number(edge)[0]

    @property
    def output_nr(self) -> int:
        """Which output of its node this tensor is."""
        return 0 if self.is_leaf else node_and_number(self._edge)[1]

    @property
    def grad(self):
        """The gradient accumulated by backward, or None. Only leaves get one, and tensors after `retain_grad()`."""
        if self._grad is None and not self.is_leaf and not self._retains_grad:
            warnings.warn(NON_LEAF_GRAD, UserWarning, stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, value) -> None:
        if value is not None:
            self._check_grad(value)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def _check_grad(self, value) -> None:
        if not isinstance(value, TensorState):
            raise ArgumentError(
                f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
                ": wrap it with torch.tensor(…)"
            )
        if value is self:
            raise GraphError("can't assign Variable as its own grad")
        if value._data.dtype != self._data.dtype:
            own, other = from_numpy_dtype(self._data.dtype).old_name, from_numpy_dtype(value._data.dtype).c_name
            raise ShapeError(
                f"attempting to assign a gradient with dtype '{other}' to a tensor with "
                f"grad_dtype '{own}'. "
                "The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the "
                "tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with "
                "caution. Diverging the dtypes of a tensor and its gradient may break downstream systems that assume "
                "they match."
            )
        if value._data.shape != self._data.shape:
            raise ShapeError(
                f"attempting to assign a gradient of size '{list(value._data.shape)}' to a tensor of size "
                f"'{list(self._data.shape)}'. Please ensure that the gradient and the tensor are the same size"
            )

    @property
    def retains_grad(self) -> bool:
        """Whether this non-leaf keeps its gradient."""
        return self._retains_grad

    def retain_grad(self, retain: bool = True) -> None:
        """Keep this non-leaf tensor's gradient in `.grad`; `retain_grad(False)` undoes that.

        Raises:
            RuntimeError: the tensor does not require grad.
        """
        if interpreted.blocks or transforms.open:
            refuse_inside("retain_grad")
        if self._edge is None:
            raise GraphError(
                "can't retain_grad on Tensor that has requires_grad=False; call requires_grad_() before the computation"
            )
        if self.is_leaf:
            return
        keep_gradient(self, retain)

    def register_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(grad)` whenever this tensor's gradient is computed.

        The hook may return a gradient of the same shape to use instead.

        Raises:
            RuntimeError: the tensor does not require grad, so no gradient ever reaches it.
        """
        if self._edge is None:
            raise GraphError(
                "cannot register a hook on a tensor that doesn't require gradient; "
                f"this one, of shape {tuple(self._data.shape)}, does not: call requires_grad_() on it first"
            )
        return register_tensor_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(tensor)` after a gradient was added to this leaf's `.grad`.

        Raises:
            RuntimeError: the tensor does not require grad, or is no leaf.
        """
        if self._edge is None:
            raise GraphError("cannot register a hook on a tensor that doesn't require gradient")
        if not self.is_leaf:
            raise GraphError(
                f"post accumulate grad hooks cannot be registered on non-leaf tensors{origin(self)}\n  "
                "Use register_hook(), or register this one on the leaves"
            )
        if self._post_accumulate_hooks is None:
            self._post_accumulate_hooks = HookDict()
        return RemovableHandle(self._post_accumulate_hooks, hook)

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None) -> None:
        """Compute gradients of this tensor for all leaves of its graph and add them to their `.grad`.

        Args:
            gradient: the gradient of what follows with respect to this tensor; may be left out for one element.
            retain_graph: keep what nodes saved, for another backward; by default as `create_graph`.
            create_graph: record the backward itself, for higher derivatives.
            inputs: tensors to which gradients are added, instead of all leaves.

        Raises:
            RuntimeError: no gradient is given for several elements, shapes differ, or the graph was freed.
        """
        backward_from([self], None if gradient is None else [gradient], retain_graph, create_graph, inputs)

    def detach(self):
        """Return a tensor that shares this one's memory and has no history."""
        return wrap(writable(self), None, storage_of(self) if self._view is None else storage_for_alias(self))

    def detach_(self):
        """Detach this tensor from its history, in place.

        Raises:
            RuntimeError: the tensor is a view, whose base would keep its history.
        """
        if self._view is not None:
            raise GraphError(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
                "detach_() cannot be called on these gradients. To fix this error, please refer to the "
                f"Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution.{origin(self)}"
            )
        if self._edge is not None and self._edge is not LEAF:
            storage_of(self).note_detached()
            self._was_detached = True
        self._edge = self._tangents = None
        return self

    @property
    def data(self):
        """The tensor's memory without its history; writes through it are not counted as versions."""
        storage, memory = storage_of(self), noted_memory(self)  # both have one, so that overlaps are found
        if storage.__class__ is not InferenceStorage:
            storage = Storage() if memory is None else stored_in(memory)
        alias = wrap(writable(self), None, storage)
        if transforms.open:
            mark_as_alias(alias, self)
        return alias

    @data.setter
    def data(self, value) -> None:
        if not isinstance(value, TensorState):
            raise ArgumentError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self._edge is not None and not has_gradient(value._data.dtype):
            raise GraphError(
                "data set to a tensor that requires gradients must be floating point or complex dtype; "
                f"this is {from_numpy_dtype(value._data.dtype)}"
            )
        replace_memory(self, writable(value), noted_memory(value))

    @data.deleter
    def data(self) -> None:
        raise GraphError("Deleting tensor data is not allowed. Delete tensor instead!")

    @property
    def _version(self) -> int:
        """How many in-place writes this memory has seen."""
        storage = self._storage
        if storage.__class__ is InferenceStorage:
            raise GraphError("Inference tensors do not track version counter.")
        return 0 if storage is None else storage.version - storage.detaches

    def is_inference(self) -> bool:
        """Whether the tensor was made in inference mode."""
        return self._storage.__class__ is InferenceStorage

    @property
    def _base(self):
        """The tensor whose memory this one is a view of, or None."""
        return source_base(self)

    def _is_view(self) -> bool:
        return source_base(self) is not None

    def data_ptr(self) -> int:
        """The address of the first element."""
        return address(self)

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return the memory as a NumPy array, not copied; NumPy cannot resize it.

        Raises:
            RuntimeError: the tensor requires grad and recording is on; NumPy could not follow the graph. Or it was
                made by `conj()`.
        """
        if self._edge is not None and not force and modes.grad_enabled:
            raise GraphError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead." + origin(self)
            )
        if is_conj(self) and not force:
            raise GraphError(
                "Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy() instead."
            )
        if is_neg(self) and not force:
            raise GraphError(
                "Can't call numpy() on Tensor that has negative bit set. Use tensor.resolve_neg().numpy() instead."
            )
        storage_of(self)
        if self._data.dtype.kind == "W":
            raise ArgumentError(
                "Got unsupported ScalarType ComplexHalf; convert it with .cfloat(), or view_as_real() it"
            )
        return writable(self).view()

    __hash__ = object.__hash__
