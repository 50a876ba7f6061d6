"""A loss, or a tensor on the way to it, that was built anew from numbers or from a detached copy."""

import weakref

from backlight.dispatch.observers import Call
from backlight.lens.doctor.flow import Leaf
from backlight.lens.doctor.part import Part, code_of, is_wanting, name_in, said, said_at, way
from backlight.lens.doctor.places import place_of, place_of_frame
from backlight.lens.doctor.report import counted
from backlight.lens.doctor.rule_index import rule

NUMBERS = {"item", "tolist", "__float__"}
COPIES = {"tensor", "as_tensor", "asarray", "new_tensor"}


class Rebuilt(Part):
    """Finds leaves that stand where a computed tensor should, and values that leave the graph on the way."""

    calls = frozenset({*COPIES, "tolist"})

    def __init__(self, silent):
        super().__init__(silent)
        self.of_number: tuple | None = None  # the last loss, if it is a leaf made of a number, and its backward
        self.reads: dict[int, tuple] = {}  # leaves whose .grad was read and None -> (weak reference, place)

    def called(self, call: Call) -> None:
        """Report torch.tensor([...]) of tensors that require grad, and of tolist()."""
        if call.name in COPIES and call.args and isinstance(call.args[0], (list, tuple)):
            lost = [one for one in self.silent.tensors_in(call.args[0]) if one.requires_grad]
            if lost and self.engine.module.is_grad_enabled():
                self._report_list(call, lost)
        elif call.name == "tolist" and call.args and call.args[0].requires_grad:
            evidence = (f"The tensor, of shape {tuple(call.args[0].shape)}, requires grad; its list has no graph.",)
            place = place_of(call.code, call.lasti)
            self.session.add(rule("tolist-requires-grad").found(place=place, evidence=evidence))

    def _report_list(self, call: Call, lost: list) -> None:
        place = place_of(call.code, call.lasti)
        first = lost[0]
        maker = "a leaf" if first.grad_fn is None else f"computed by {first.grad_fn.name()}"
        evidence = (
            f"{counted(len(lost), 'tensor')} in the list require{'s' if len(lost) == 1 else ''} grad "
            f"(the first is {maker}); "
            f"the result requires grad: {call.out.requires_grad}.",
        )
        text = code_of(place)
        scalars = all(one.dim() == 0 for one in lost) and len(lost) == len(call.args[0])
        corrected = None
        if scalars and text.count("torch.tensor(") == 1 and not call.kwargs and len(call.args) == 1:
            corrected = text.replace("torch.tensor(", "torch.stack(")
        self.session.add(rule("tensor-of-tensors").found(place=place, evidence=evidence, corrected=corrected))

    def going_back(self, tensor, keep, place) -> None:
        """Report a loss that is a leaf, and was made of numbers that came from tensors that require grad."""
        flow = self.silent.flow
        info = flow.of(tensor)
        leaf = info.leaf
        if leaf is not None and not leaf.upstream:
            self.of_number = (leaf, place) if info.name in COPIES and tensor.numel() == 1 else None
            return
        if leaf is None:
            self.of_number = None
            return
        behind = [one for one in flow.leaves_in(leaf.upstream) if not one.reached]
        if not behind:
            return
        self._report_loss(leaf, place, behind, flow.cuts_in(leaf.cuts))

    def _report_loss(self, leaf: Leaf, place, behind: list[Leaf], cuts: list) -> None:
        names = ", ".join(self._name(one) for one in behind[:4])
        evidence = [f"What backward() at {said(place)} starts from is a leaf: no op made it, nothing is behind it."]
        for cut in cuts[:2]:
            evidence.append(f"Its value left the graph by {cut.name}() at {said_at(cut.code, cut.lasti)}.")
        evidence.append(f"No gradient reaches {names}.")
        path = way("loss (a leaf)", *(f"✂ {cut.name}()" for cut in cuts[:1]), names)
        where = place if leaf.code is None else place_of(leaf.code, leaf.lasti)
        self.session.add(rule("loss-rebuilt-as-leaf").found(place=where, evidence=tuple(evidence), path=path))

    def _name(self, leaf: Leaf) -> str:
        tensor = leaf.tensor()
        return leaf.name or "a leaf" if tensor is None else self.silent.flow.name_of(tensor)

    def read_grad(self, tensor, grad, frame) -> None:
        """Note a leaf's None that the user found."""
        if grad is None and is_wanting(tensor) and self.silent.flow.backwards:
            name = name_in(frame, tensor)
            self._expect(tensor, place_of_frame(frame), name)

    def stepping(self, optimizer, params, grads, place) -> None:
        """Note parameters of an optimiser that have no gradient while others have."""
        if all(grad is None for grad in grads):
            self._look_for_number(params)
        else:
            for param, grad in zip(params, grads):
                if grad is None and param.requires_grad:
                    self._expect(param, place, None)

    def _look_for_number(self, params: list) -> None:
        """Report a loss that is a leaf made of a number, where numbers had left the graph of what is optimised.

        What Python computes with numbers is not followed; but nothing else explains such a loss.
        """
        if self.of_number is None:
            return
        flow = self.silent.flow
        cuts = [cut for cut in flow.cuts if cut.name in NUMBERS]
        infos = [flow.known(param) for param in params]
        leaves = [info.leaf for info in infos if info is not None and info.leaf is not None]
        behind = [leaf for leaf in leaves if not leaf.reached and any(cut.leaves & leaf.bit for cut in cuts)]
        if behind:
            self._report_loss(*self.of_number, behind, cuts)

    def _expect(self, tensor, place, name: str | None) -> None:
        known = self.reads.get(id(tensor))
        if known is None or known[0]() is not tensor:
            self.reads[id(tensor)] = weakref.ref(tensor), place, name

    def end(self, problem) -> None:
        """Report new leaves that got the gradient which a leaf before them misses."""
        flow = self.silent.flow
        for reference, place, name in self.reads.values():
            tensor = reference()
            info = None if tensor is None else flow.known(tensor)
            if info is None or info.leaf is None or info.leaf.reached or not tensor.requires_grad:
                continue
            for new in flow.leaves:
                if new.upstream & info.leaf.bit and new.reached:
                    self._report_new_leaf(info.leaf, new, place, name or flow.name_of(tensor))
                    break

    def _report_new_leaf(self, old: Leaf, new: Leaf, place, name: str) -> None:
        flow = self.silent.flow
        cuts = flow.cuts_before(old, new.cuts)
        if any(cut.name in ("item", "tolist") for cut in cuts):
            return  # a loss made of numbers, reported already
        where = place if new.code is None else place_of(new.code, new.lasti)
        made = f"made at {said(where)}" if new.code is not None else "made on the fly"
        evidence = [f"A tensor of shape {new.shape}, {made}, is a leaf; it got the gradient."]
        evidence += [
            f"It was cut off from {name} by {cut.name}() at {said_at(cut.code, cut.lasti)}." for cut in cuts[:1]
        ]
        evidence.append(f"{name}.grad was read at {said(place)}, and is None.")
        path = way("loss", f"a leaf of shape {new.shape}", *(f"✂ {cut.name}()" for cut in cuts[:1]), name)
        self.session.add(rule("detached-leaf").found(place=where, evidence=tuple(evidence), path=path))
