"""Training that goes on and does nothing: gradients that are exactly 0, unused ones.

NOTE [When it is certain]
Gradients of 0 are reported if an op whose derivative is 0 everywhere ran in several backwards in a row, all gradients
of what lies behind it were exactly 0 at the steps after them, and the loss was not 0. If no such op is known, more
steps are waited for, and the next backward is searched for the op that made zeros of a gradient. A softmax over one
element in the middle of a model may be a mixture of one or a memory of one item: it counts if all gradients are 0.
"""

from collections.abc import Sequence
from typing import NamedTuple

from backlight.dispatch.observers import Call, Run
from backlight.lens.doctor.detector import Detector, any_nonzero
from backlight.lens.doctor.evidence import listed, name_of, short
from backlight.lens.doctor.graph import Node, Optimizer, Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of, place_of_node
from backlight.lens.doctor.weak_id_dict import OUTLIVED, WeakIdDict, keep_newest
from backlight.lens.records.record import Place

STEPWISE = {"round", "floor", "ceil", "trunc", "fix", "sign", "sgn", "heaviside", "floor_divide"}
IN_A_ROW, LONG, SHOWN, REMEMBERED = 3, 5, 4, 1000


class Flat(NamedTuple):
    """An op whose derivative is 0 everywhere: its name, its line, the leaves behind it."""

    name: str
    line: Instruction
    leaves: int


def _of_one(call: Call) -> bool:
    """Return whether a softmax goes over a dim of size 1."""
    dim = call.kwargs.get("dim", call.args[1] if len(call.args) > 1 else None)
    shape = tuple(call.out.shape)
    return isinstance(dim, int) and -len(shape) <= dim < len(shape) and shape[dim] == 1


PRODUCTS = ("Mm", "Mul", "Bmm", "Mv", "Linear", "Addmm")


class DeadTraining(Detector):
    """Finds what has no effect (see NOTE [When it is certain])."""

    calls = frozenset({*STEPWISE, "softmax"})

    def __init__(self, watch):
        super().__init__(watch)
        self.stepwise: dict[int, Flat] = {}  # nodes -> what made them
        self.passed: dict[Instruction, Flat] = {}  # those that a backward came through since the last step
        self.loss: tuple[float, Place] | None = None  # its value, and the line of backward()
        self.root: tuple[float, Place | None] | None = None
        self.all_zero: WeakIdDict[int] = WeakIdDict()  # optimizer -> steps in a row with gradients of 0 only
        self.searching = False  # for what makes zeros of gradients
        self.killer: tuple[str, Place | None] | None = None
        self.zero: WeakIdDict[dict[Instruction, int]] = WeakIdDict()  # optimizer -> line -> steps in a row of 0 only
        self.used: WeakIdDict[None] = WeakIdDict()  # parameters that a step has changed
        self.steps: dict[int, tuple] = {}  # optimizer -> (name, place of its step)
        self.idle: WeakIdDict[list[str]] = WeakIdDict(outlived=OUTLIVED)  # outermost models -> unused gradients

    def called(self, call: Call) -> None:
        """Note an op whose derivative is 0 everywhere."""
        if not self.engine.is_tensor(call.out) or not is_computed(call.out):
            return
        if self.watch.name == "softmax" and not _of_one(call):
            return
        known = self.watch.flow.known(call.out)
        flat = Flat(self.watch.name, Instruction(call.code, call.lasti), 0 if known is None else known.leaves)
        self.stepwise[self.engine.key_of(call.out.grad_fn)] = flat
        keep_newest(self.stepwise, REMEMBERED)

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Note the loss."""
        value = self.number(tensor)
        self.root = None if value is None else (value, place)
        self.loss = self.root if self.stepwise else None

    def ran(self, run: Run, node: Node, grad_outputs: Sequence, grad_inputs: Sequence) -> None:
        """Note that a backward comes through such an op."""
        if self.searching and self.killer is None and grad_inputs and any(map(self._has_any, grad_outputs)):
            if not any(map(self._has_any, grad_inputs)):
                self.killer = node.name(), place_of_node(self.engine, node)
        if self.stepwise:
            flat = self.stepwise.get(self.engine.key_of(node))
            if flat is not None:
                self.passed[flat.line] = flat

    def stepping(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Count steps of zeros."""
        with_grads = [(param, grad) for param, grad in zip(params, grads) if grad is not None]
        self._count_zeros(optimizer, with_grads, place)
        self._count_all(optimizer, with_grads, place)
        if with_grads and self.session.notes:
            for param in params:
                self.used[param] = None
            self.steps[id(optimizer)] = name_of(optimizer), place
            self._look_for_idle()

    def _count_zeros(self, optimizer: Optimizer, with_grads: list[tuple[Tensor, Tensor]], place: Place | None) -> None:
        """Count steps in which all is 0 that lies behind an op whose derivative is."""
        passed, loss, self.passed = self.passed, self.loss, {}
        counts = self.zero.get(optimizer, {})
        for flat in passed.values():
            grads = [grad for param, grad in with_grads if self._is_behind(param, flat)]
            partly = flat.name == "softmax" and len(grads) < len(with_grads)
            if partly or not grads or loss is None or not loss[0] or any(map(self._has_values, grads)):
                counts[flat.line] = 0
                continue
            counts[flat.line] = count = counts.get(flat.line, 0) + 1
            if count == IN_A_ROW:
                self._report_zeros(optimizer, flat, loss, place, all_of_them=len(grads) == len(with_grads))
        self.zero[optimizer] = counts

    def _count_all(self, optimizer: Optimizer, with_grads: list[tuple[Tensor, Tensor]], place: Place | None) -> None:
        """Count steps in which all gradients are 0, whatever made them so; have the next backward searched."""
        loss = self.root
        zero = with_grads and loss is not None and loss[0] and not any(self._has_values(grad) for _, grad in with_grads)
        count = self.all_zero.get(optimizer, 0) + 1 if zero else 0
        self.all_zero[optimizer] = count
        self.searching = count >= LONG
        if count > LONG and self.killer is not None and not self.session.has(("BL725",)):
            self._report_killer(optimizer, *self.killer, loss, place)
        self.killer = None

    def _report_killer(
        self, optimizer: Optimizer, op: str, where: Place | None, loss: tuple, place: Place | None
    ) -> None:
        product = op.startswith(PRODUCTS)
        self.report(
            "gradients-all-zero",
            where or place,
            f"All gradients that {name_of(optimizer)}.step() at {brief(place)} found were exactly 0, in "
            f"{LONG + 1} steps in "
            f"a row; the loss at {brief(loss[1])} was {short(loss[0])}.",
            f"{op} at {brief(where)} got a gradient and returned only zeros: "
            + ("the gradient of each factor is the other factor." if product else "it is flat at these values."),
            title=f"every gradient is exactly 0: {op} passes no gradient on",
            cause="both factors are 0, and the gradient of each is the other one"
            if product
            else f"all values that {op.removesuffix('Backward0')} gets are in its flat range",
            cure="initialise one of the factors randomly; only the other one may be zeros"
            if product
            else "remove the op from the output layer, or keep its inputs in the range where its derivative is not 0",
        )

    def _is_behind(self, param: Tensor, flat: Flat) -> bool:
        leaf = self.watch.flow.leaf_of(param)
        return leaf is not None and bool(leaf.bit & flat.leaves)

    def _has_any(self, grad: Tensor | None) -> bool:
        return grad is not None and self._has_values(grad)

    def _has_values(self, grad: Tensor | None) -> bool:
        values = self.values(grad)
        return values is None or any_nonzero(values)

    def _report_zeros(
        self, optimizer: Optimizer, flat: Flat, loss: tuple[float, Place], place: Place | None, *, all_of_them: bool
    ) -> None:
        op, which = flat.name, "All gradients" if all_of_them else f"All gradients behind {flat.name}()"
        cause = f"{op}() returns the same value for all nearby inputs, so the loss does not change with the parameters"
        cure = None
        if op == "softmax":
            cause = "softmax over a single number is always 1, for any input"
            cure = "Use sigmoid for a single output, or give the previous layer one output per class."
        self.report(
            "gradients-all-zero",
            place_of(flat.line),
            f"{which} that {name_of(optimizer)}.step() at {brief(place)} found were exactly 0, in {IN_A_ROW} "
            f"steps in a row; the loss at {brief(loss[1])} was {short(loss[0])}.",
            f"backward() went through {op}() at {brief_at(flat.line)}: its derivative is 0 everywhere.",
            title=f"every gradient{'' if all_of_them else ' behind it'} is exactly 0: {op}() passes no gradient on",
            cause=cause,
            cure=cure,
        )

    def end(self, problem: BaseException | None) -> None:
        """Note parameters of a model in training that get unused gradients."""
        if not self.session.notes or not self.steps or self.session.has(("BL705", "BL708")):
            return
        self._look_for_idle()
        for _, names in self.idle.histories():
            if names:
                self._report_unused(names)

    def _look_for_idle(self) -> None:
        """Note which parameters of each model get gradients and are in no optimizer, while the model lives."""
        flow, held = self.watch.flow, self.watch.optimised()
        for module in flow.modules.alive():
            params = [one for one in module.parameters() if one.requires_grad]
            leaves = [(one, flow.leaf_of(one)) for one in params if id(one) not in held and one not in self.used]
            idle = [one for one, leaf in leaves if leaf is not None and leaf.reached]
            trained = idle and any(one in self.used for one in params)
            self.idle[module] = [flow.name_of(one) for one in idle] if trained else []

    def _report_unused(self, names: list[str]) -> None:
        name, place = next(iter(self.steps.values()))
        self.report(
            "gradients-nobody-uses",
            place,
            f"{listed(names, SHOWN)} got gradients; {name}, which steps at "
            f"{brief(place)}, holds other parameters of the same model, and no optimizer holds these.",
        )
