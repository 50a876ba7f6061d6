"""Optimizers that change nothing of what matters: replaced parameters, ties that do not hold."""

import weakref
from types import FrameType
from typing import Any

from backlight.dispatch.observers import Call, Run
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import code_of, name_in, name_of
from backlight.lens.doctor.graph import Module, Optimizer, Tensor
from backlight.lens.doctor.places import Instruction, brief, place_of, place_of_frame
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place


class Optimizers(Detector):
    """Compares what optimizers hold with what has gradients."""

    calls = frozenset({"data", "data="})

    def __init__(self, watch):
        super().__init__(watch)
        self.replaced: WeakIdDict[tuple] = WeakIdDict()  # a new parameter -> (weak references of the old, name, place)
        self.gone: WeakIdDict[None] = WeakIdDict()  # parameters that were replaced
        self.memories: dict[tuple, dict[int, weakref.ref]] = {}  # (run, address, shape) -> leaves that got a gradient
        self.ties: WeakIdDict[Instruction] = WeakIdDict()  # a tensor whose .data was set -> line

    def assigned(self, module: Module, name: str, new: Any, old: Any, frame: FrameType) -> None:
        """Remember which parameters took the place of which."""
        if old is None or new is None or new is old:
            return
        kind = self.engine.module.nn.Module
        place = place_of_frame(frame)
        before = dict(old.named_parameters()) if isinstance(old, kind) else {"": old}
        after = dict(new.named_parameters()) if isinstance(new, kind) else {"": new}
        olds = [weakref.ref(one) for one in before.values()]
        for one in before.values():
            self.gone[one] = None
        held = {id(one) for one in before.values()}
        for inner, parameter in after.items():
            if self.engine.is_tensor(parameter) and id(parameter) not in held:
                named = ".".join(filter(None, (name_in(frame, module), name, inner)))
                self.replaced[parameter] = olds, named, place

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Report a step that left replaced parameters behind."""
        for members in self.left_behind(params):
            self._report_replaced(name_of(optimizer), members, place)

    def left_behind(self, params: list) -> list[list[tuple[str, Place, bool]]]:
        """Return new parameters that have a gradient and no optimizer, whose predecessors are in `params`, by line."""
        if not self.replaced:
            return []
        held = {id(param) for param in params}
        anywhere = self.watch.optimised()
        groups: dict[tuple, list] = {}
        for new, (olds, name, where) in self.replaced.items():
            if new.grad is None or id(new) in anywhere:
                continue
            left = [old for one in olds if (old := one()) is not None and id(old) in held and old.grad is None]
            if left:
                fits = any(old.shape == new.shape for old in left)
                groups.setdefault((where.file, where.line), []).append((name, where, fits))
        return list(groups.values())

    def _report_replaced(self, held: str, members: list[tuple[str, Place, bool]], place: Place | None) -> None:
        names, where = ", ".join(name for name, _, _ in members), members[0][1]
        was, has, it = ("was", "has a gradient and is", "it")
        if len(members) > 1:
            was, has, it = ("were", "have gradients and are", "them")
        cure = f", or give it the new parameters: {held}.add_param_group(...)"
        if all(fits for _, _, fits in members):
            cure = ", or write the new values into the old parameter: under no_grad(), parameter.copy_(...)"
        self.report(
            "optimizer-holds-replaced",
            where,
            f"{names} {was} replaced at {brief(where)}; {held} still holds the old {names}.",
            f"At {brief(place)} the new {names} {has} in no optimizer: no step changes {it}.",
            title=f"{held} holds the {names} that {was} replaced at {brief(where)}",
            cure=f"make {held} after {brief(where)}{cure}",
        )

    def called(self, call: Call) -> None:
        """Note where `.data` of a tensor was set."""
        if call.name == "data=" or (call.name == "data" and len(call.args) == 2):
            self.ties[call.args[0]] = Instruction(call.code, call.lasti)

    def ended(self, run: Run) -> None:
        """Forget the run's leaves; another may be going on around it, over the same memory (checkpoint)."""
        self.memories = {key: leaves for key, leaves in self.memories.items() if key[0] != run.number}

    def accumulated(self, run: Run, tensor: Tensor, arrived: Tensor, before: Tensor | None) -> None:
        """Report two leaves that share memory and get a gradient each."""
        if not tensor.is_leaf or not tensor.numel() or self.values(tensor) is None:
            return
        memory = self.engine.memory_of(tensor)[0]  # of the tensor itself: its values may be a copy
        key = run.number, memory, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride())
        leaves = self.memories.setdefault(key, {})
        leaves[id(tensor)] = weakref.ref(tensor)
        tensors = [leaf() for leaf in leaves.values()] if len(leaves) == 2 else [None]
        if all(one is not None for one in tensors):
            self._report_tie(tensors)

    def _report_tie(self, tensors: list) -> None:
        first, second = (self.watch.flow.name_of(one) for one in tensors)
        line = next((line for one in tensors if (line := self.ties.get(one)) is not None), None)
        place = None if line is None else place_of(line)
        text = "" if place is None else code_of(place)
        self.report(
            "tied-through-data",
            place,
            f"{first} and {second} are two tensors over the same memory, of shape {tuple(tensors[0].shape)}.",
            "Each got its own .grad in one backward(): an optimizer updates the shared values twice, each time with a "
            "part of the gradient.",
            corrected=text.replace(".data", "") if text.count(".data") == 2 and " = " in text else None,
        )
