"""Views: tensors that share memory and a version counter with their base."""

import weakref

from backlight.errors import GraphError
from backlight.graph.modes import modes
from backlight.graph.state import new, storage_of, the_tensor_class

PLAIN = "plain"
NO_GRAD = "made while recording was off"
MULTI = "one of several views made by one op"
CUSTOM = "made by a custom Function"


def made_view(source, data, kind):
    """Return a tensor over `data`, which shares memory with `source`; its edge is set by the caller."""
    out = new(the_tensor_class())
    out._data = data
    out._storage = storage_of(source)
    view = source._view
    if view is None:
        base = source
    else:
        base, inherited = view
        if kind is PLAIN:
            kind = inherited
    out._view = (base, kind)
    if modes.grad_enabled:
        remember_view(base, out)
    return out


def remember_view(base, view) -> None:
    """Let the base know its view, so that writing to either can refresh the history of both.

    Dead references are swept out whenever the list has doubled.
    """
    views = base._views
    if views is None:
        base._views = [weakref.ref(view)]
        return
    count = len(views)
    if count >= 16 and count & (count - 1) == 0:
        views[:] = [reference for reference in views if reference() is not None]
    views.append(weakref.ref(view))


def live_views(base) -> list:
    """Return the views of a base that still exist."""
    found = (reference() for reference in base._views or ())
    return [view for view in found if view is not None]


def check_may_write(tensor) -> None:
    """Raise unless a recorded in-place op may write to this tensor.

    Raises:
        RuntimeError: it is a leaf that requires grad, a view of one, or a view whose history would be ambiguous.
    """
    if tensor._view is not None:
        _check_view(tensor)
    if tensor.requires_grad and tensor.is_leaf:
        raise GraphError(
            "a leaf Variable that requires grad is being used in an in-place operation.\n  Change a leaf inside "
            "`with torch.no_grad():`, or compute a new tensor instead (x = x + 1, not x += 1)"
        )


def _check_view(tensor) -> None:
    base, kind = tensor._view
    if not (tensor.requires_grad or base.requires_grad):
        return
    grad_fn = tensor.grad_fn
    number = getattr(tensor._edge, "number", 0)
    name = type(grad_fn).__name__.split("Backward")[0] if grad_fn is not None else "a view op"
    if kind is NO_GRAD:
        raise GraphError(
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this "
            "use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view "
            "and the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or "
            "both outside (if you want the inplace to be tracked)."
        )
    if kind is MULTI:
        raise GraphError(
            f"Output {number} of {name} is a view and is being modified inplace. This view is the output of a function "
            "that returns multiple views. Such functions do not allow the output views to be modified inplace. You "
            "should replace the inplace operation by an out-of-place one."
        )
    if kind is CUSTOM:
        raise GraphError(
            f"Output {number} of {name} is a view and is being modified inplace. This view was created inside a custom "
            "Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would "
            "override the custom backward associated with the custom Function, leading to incorrect gradients. This "
            "behavior is forbidden. You can fix this by cloning the output of the custom Function."
        )
    if base.requires_grad and base.is_leaf:
        raise GraphError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation.\n  Write to a clone "
            "of the leaf, or inside `with torch.no_grad():`"
        )
