"""Optimisers that change nothing of what matters: replaced parameters, ties that do not hold."""

import sys
import weakref

from backlight.lens.doctor.part import Part, code_of, name_in, said
from backlight.lens.doctor.places import place_of, place_of_frame
from backlight.lens.doctor.rule_index import rule


class Optimisers(Part):
    """Compares what optimisers hold with what has gradients."""

    calls = frozenset({"data", "data="})

    def __init__(self, silent):
        super().__init__(silent)
        self.replaced: dict[
            int, tuple
        ] = {}  # a new parameter -> (weak references: its own, the old ones'; name, place)
        self.gone: dict[int, weakref.ref] = {}  # parameters that were replaced
        self.memories: dict[tuple, dict] = {}  # (address, shape) -> leaves that got a gradient in this run
        self.ties: dict[int, tuple] = {}  # a tensor whose .data was set -> place

    def assigned(self, module, name, new, old, frame) -> None:
        """Remember which parameters took the place of which."""
        if old is None or new is None or new is old:
            return
        kind = self.engine.module.nn.Module
        place = place_of_frame(frame)
        before = dict(old.named_parameters()) if isinstance(old, kind) else {"": old}
        after = dict(new.named_parameters()) if isinstance(new, kind) else {"": new}
        olds = [weakref.ref(one) for one in before.values()]
        self.gone.update((id(one), weakref.ref(one)) for one in before.values())
        held = {id(one) for one in before.values()}
        for inner, parameter in after.items():
            if self.engine.is_tensor(parameter) and id(parameter) not in held:
                named = ".".join(filter(None, (name_in(frame, module), name, inner)))
                self.replaced[id(parameter)] = weakref.ref(parameter), olds, named, place

    def is_gone(self, tensor) -> bool:
        """Return whether a parameter was replaced by another."""
        known = self.gone.get(id(tensor))
        return known is not None and known() is tensor

    def stepped(self, optimizer, params, grads, place) -> None:
        """Report a step that left replaced parameters behind."""
        for members in self.left_behind(optimizer, params):
            self._report_replaced(optimizer, members, place)

    def left_behind(self, optimizer, params: list) -> list[list[tuple]]:
        """Return new parameters that have a gradient and no optimiser, whose predecessors this one holds, by line."""
        if not self.replaced:
            return []
        held = {id(param) for param in params}
        anywhere = self.silent.optimised()
        groups: dict[tuple, list] = {}
        for reference, olds, name, where in list(self.replaced.values()):
            new = reference()
            if new is None or new.grad is None or id(new) in anywhere:
                continue
            left = [old for one in olds if (old := one()) is not None and id(old) in held and old.grad is None]
            if left:
                fits = any(old.shape == new.shape for old in left)
                groups.setdefault((where.file, where.line), []).append((name, where, fits))
        return list(groups.values())

    def _report_replaced(self, optimizer, members: list[tuple], place) -> None:
        held = name_in(sys._getframe(), optimizer) or type(optimizer).__name__
        names, where = ", ".join(name for name, _, _ in members), members[0][1]
        one = len(members) == 1
        evidence = (
            f"{names} {'was' if one else 'were'} replaced at {said(where)}; {held} still holds what was there before.",
            f"At {said(place)} the new {names} {'has a gradient and is' if one else 'have gradients and are'} in no "
            f"optimiser: no step changes {'it' if one else 'them'}.",
        )
        title = f"{held} holds the {names} that {'was' if one else 'were'} replaced at {said(where)}"
        cure = f"make {held} after {said(where)}"
        if all(fits for _, _, fits in members):
            cure += ", or write the new values into the old parameter: under no_grad(), parameter.copy_(...)"
        else:
            cure += f", or give it the new parameters: {held}.add_param_group(...)"
        found = rule("optimizer-holds-replaced").found(place=where, evidence=evidence, title=title, cure=cure)
        self.session.add(found)

    def called(self, call) -> None:
        """Note where `.data` of a tensor was set."""
        if call.name == "data=" or (call.name == "data" and len(call.args) == 2):
            tensor = call.args[0]
            self.ties[id(tensor)] = weakref.ref(tensor), call.code, call.lasti

    def ended(self, run) -> None:
        """Forget the run's leaves; another may be going on around it, over the same memory (checkpoint)."""
        self.memories = {key: leaves for key, leaves in self.memories.items() if key[0] != run.number}

    def accumulated(self, run, tensor, arrived, before) -> None:
        """Report two leaves that share memory and get a gradient each."""
        if not tensor.is_leaf or not tensor.numel() or self.values(tensor) is None:
            return
        memory = self.engine.memory_of(tensor)[0]  # of the tensor itself: its values may be a copy
        key = run.number, memory, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride())
        leaves = self.memories.setdefault(key, {})
        leaves[id(tensor)] = weakref.ref(tensor)
        if len(leaves) == 2:
            tensors = [one() for one in leaves.values()]
            if tensors[0] is not None and tensors[1] is not None and tensors[0] is not tensors[1]:
                self._report_tie(tensors)

    def _report_tie(self, tensors: list) -> None:
        flow = self.silent.flow
        names = [flow.name_of(one) for one in tensors]
        known = next((self.ties[id(one)] for one in tensors if id(one) in self.ties), None)
        place = None
        if known is not None:
            from_code, lasti = known[1:]
            place = place_of(from_code, lasti)
        evidence = (
            f"{names[0]} and {names[1]} are two tensors over the same memory, of shape {tuple(tensors[0].shape)}.",
            "Each got a .grad of its own in one backward(): an optimiser moves the shared values twice, each time "
            "by one half of the gradient.",
        )
        corrected = None
        text = "" if place is None else code_of(place)
        if text.count(".data") == 2 and " = " in text:
            corrected = text.replace(".data", "")
        self.session.add(rule("tied-through-data").found(place=place, evidence=evidence, corrected=corrected))
