"""Hooks on saved tensors that return something else than was packed, and writes to saved tensors that are allowed."""

import sys
import weakref
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any, NamedTuple

from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import brief, is_users, place_of_frame
from backlight.lens.records.record import Place


class SavedHooks(Detector):
    """Compares what unpack hooks return with what was packed."""

    def begin(self) -> None:
        """Patch `saved_tensors_hooks` and `allow_mutation_on_saved_tensors`, where the engine has them."""
        graph = self.engine.module.autograd.graph
        hooks = getattr(graph, "saved_tensors_hooks", None)
        if hooks is not None:
            self.session.patch(hooks, "__init__", self._watched_hooks)
        if hasattr(graph, "allow_mutation_on_saved_tensors"):
            self.watch.after(graph, "allow_mutation_on_saved_tensors", self._allowed)

    def _watched_hooks(self, original: Callable) -> Callable:
        @wraps(original)
        def construct(hooks, pack_hook, unpack_hook):
            if not is_users(getattr(getattr(unpack_hook, "__code__", None), "co_filename", "<frozen")):
                original(hooks, pack_hook, unpack_hook)
                return
            place = place_of_frame(sys._getframe(1))
            detector = weakref.ref(self)

            def pack(tensor: Tensor):
                return _Packed(pack_hook(tensor), _kind(tensor))

            def unpack(packed: _Packed):
                found = unpack_hook(packed.value)
                here = detector()
                if here is not None and here.engine.is_tensor(found):
                    here.compare(packed.kind, _kind(found), place)
                return found

            original(hooks, pack, unpack)

        return construct

    def _allowed(self, frame: FrameType, out: Any, args: tuple, kwargs: dict) -> None:
        self.report("mutation-allowed", place_of_frame(frame))

    def compare(self, packed: tuple, unpacked: tuple, place: Place | None) -> None:
        """Report a tensor of another shape or dtype than was packed."""
        if packed != unpacked:
            self.report(
                "unpack-changed-tensor",
                place,
                f"Packed: shape {packed[0]}, {packed[1]}; unpacked by the hooks of {brief(place)}: "
                f"shape {unpacked[0]}, {unpacked[1]}.",
            )


class _Packed(NamedTuple):
    """What a pack hook returned, with the shape and dtype of what it was given."""

    value: Any
    kind: tuple


def _kind(tensor: Any) -> tuple:
    return tuple(tensor.shape), str(tensor.dtype)
