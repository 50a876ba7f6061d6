"""Hooks on saved tensors that return something else than was packed, and writes to saved tensors that are allowed."""

import sys
import weakref
from functools import wraps

from backlight.lens.doctor.part import Part, said
from backlight.lens.doctor.places import is_users, place_of_frame
from backlight.lens.doctor.rule_index import rule


class SavedHooks(Part):
    """Compares what unpack hooks return with what was packed."""

    def begin(self) -> None:
        """Patch `saved_tensors_hooks` and `allow_mutation_on_saved_tensors`, where the engine has them."""
        graph = self.engine.module.autograd.graph
        hooks = getattr(graph, "saved_tensors_hooks", None)
        if hooks is not None:
            self.session.patch(hooks, "__init__", self._watched_hooks)
        if hasattr(graph, "allow_mutation_on_saved_tensors"):
            self.session.patch(graph, "allow_mutation_on_saved_tensors", self._watched_allowing)

    def _watched_hooks(self, engines_own):
        part = self

        @wraps(engines_own)
        def construct(hooks, pack_hook, unpack_hook):
            if not is_users(getattr(getattr(unpack_hook, "__code__", None), "co_filename", "<frozen")):
                engines_own(hooks, pack_hook, unpack_hook)
                return
            place = place_of_frame(sys._getframe(1))
            engines_own(hooks, _Packing(pack_hook), _Unpacking(part, unpack_hook, place))

        return construct

    def _watched_allowing(self, engines_own):
        part = self

        @wraps(engines_own)
        def allow_mutation_on_saved_tensors(*args, **kwargs):
            if not part.silent.busy:
                place = place_of_frame(sys._getframe(1))
                part.session.add(rule("mutation-allowed").found(place=place))
            return engines_own(*args, **kwargs)

        return allow_mutation_on_saved_tensors

    def compare(self, packed: tuple, unpacked: tuple, place) -> None:
        """Report a tensor of another shape or dtype than was packed."""
        if packed == unpacked:
            return
        evidence = (
            f"Packed: shape {packed[0]}, {packed[1]}; unpacked by the hooks of {said(place)}: shape {unpacked[0]}, "
            f"{unpacked[1]}.",
        )
        self.session.add(rule("unpack-changed-tensor").found(place=place, evidence=evidence))


class _Packed:
    """What a pack hook returned, with the shape and dtype of what it was given."""

    __slots__ = ("kind", "value")

    def __init__(self, value, kind: tuple):
        self.value, self.kind = value, kind


class _Packing:
    """A pack hook whose result remembers what was packed."""

    def __init__(self, hook):
        self.hook = hook

    def __call__(self, tensor):
        return _Packed(self.hook(tensor), _kind(tensor))


class _Unpacking:
    """An unpack hook whose result is compared with what was packed."""

    def __init__(self, part: SavedHooks, hook, place):
        self.part, self.hook, self.place = weakref.ref(part), hook, place

    def __call__(self, packed: _Packed):
        found = self.hook(packed.value)
        part = self.part()
        if part is not None and part.engine.is_tensor(found):
            part.compare(packed.kind, _kind(found), self.place)
        return found


def _kind(tensor) -> tuple:
    return tuple(tensor.shape), str(tensor.dtype)
