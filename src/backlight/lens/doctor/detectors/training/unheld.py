"""Parameters that get gradients and never change: in no optimizer, registered nowhere, made anew each time.

NOTE [What is left out by mistake]
A frozen body or a fixed network that gets gradients is wasteful and may be meant. A leaf is left out by mistake if it
got gradients in several backwards, was never in an optimizer, its values never changed, the program never read its
`.grad`, and one of these holds: a module has it as a plain attribute or in a plain list; it is made anew in each
forward; it was made after the only optimizer; its whole model is in no optimizer, in train mode, and was never loaded;
or its model is a copy of one that learns (a target network, whose gradients add up).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from backlight.dispatch.observers import Run
from backlight.lens.doctor.detector import Detector, checksum_of
from backlight.lens.doctor.detectors.optimizers import Optimizers
from backlight.lens.doctor.detectors.training.constructions import Constructions
from backlight.lens.doctor.detectors.training.states import States
from backlight.lens.doctor.evidence import code_of, counted, listed, name_in, replaced
from backlight.lens.doctor.graph import Module, Optimizer, Tensor
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of, place_of_frame
from backlight.lens.doctor.rule_index import rule
from backlight.lens.doctor.weak_id_dict import OUTLIVED, WeakIdDict
from backlight.lens.finding import Finding
from backlight.lens.records.record import Place

ENOUGH, LOOKS, SHOWN = 3, 60, 4
OWN = {"_modules", "_parameters", "_buffers"}


@dataclass(slots=True)
class Leftover:
    """A leaf outside of all optimizers: how often a gradient came, its values then, whether it is certain."""

    checksum: int
    times: int = 0
    key: tuple | None = None
    finding: Finding | None = None
    name: str = ""


class Unheld(Detector):
    """Finds leaves that no optimizer holds and should (see NOTE [What is left out by mistake])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.came: list[Tensor] = []  # leaves that got a gradient in the backward that runs
        self.left_out: WeakIdDict[Leftover] = WeakIdDict(outlived=OUTLIVED)
        self.excused: WeakIdDict[None] = WeakIdDict()  # held by an optimizer once, read or changed by the program
        self.called_at: WeakIdDict[Place | None] = WeakIdDict()  # outermost modules -> where they ran last, recorded
        self.modes: WeakIdDict[bool] = WeakIdDict()
        self.made_in_forward: dict[Instruction, int] = {}
        self.trains = False  # whether an optimizer steps that holds parameters of modules
        self.runs = 0

    def entered(self, module: Module, path: str) -> None:
        """Note where an outermost module runs."""
        if not path and self.engine.module.is_grad_enabled():
            self.called_at[module] = place_of_frame()
            self.modes[module] = module.training

    def read_grad(self, tensor: Tensor, grad: Tensor | None, frame: FrameType) -> None:
        """Excuse a leaf whose gradient the program itself uses."""
        if grad is not None:
            self._excuse(tensor)

    def _excuse(self, tensor: Tensor) -> None:
        self.excused[tensor] = None
        self.left_out.pop(tensor)

    def stepping(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Excuse what an optimizer holds."""
        kind = self.engine.module.nn.Parameter
        for param in params:
            self.trains = self.trains or isinstance(param, kind)
            if param not in self.excused:
                self._excuse(param)

    def accumulated(self, run: Run, tensor: Tensor, arrived: Tensor, before: Tensor | None) -> None:
        """Note that a gradient came."""
        if self.runs < LOOKS and tensor.is_leaf and tensor not in self.excused:
            self.came.append(tensor)

    def ended(self, run: Run) -> None:
        """Look at the leaves that no optimizer holds."""
        came, self.came = self.came, []
        if not came:
            return
        self.runs += 1
        held = self.watch.optimised()
        for tensor in came:
            if id(tensor) in held:
                self._excuse(tensor)
            else:
                self._count(tensor)

    def _count(self, tensor: Any) -> None:
        values = self.values(tensor)
        if values is None:
            return
        made = self.watch.detectors[Constructions].parameters.get(tensor)
        if made is not None and made[2] and made[0] is not None and tensor not in self.left_out:
            self.made_in_forward[made[0]] = self.made_in_forward.get(made[0], 0) + 1
        checksum = checksum_of(values)
        known = self.left_out.get(tensor)
        if known is None:
            known = self.left_out[tensor] = Leftover(checksum)
        if known.checksum != checksum:
            target = self._copy_of(tensor)
            if target is None:
                self._excuse(tensor)
                return
            known.checksum = checksum
        known.times += 1
        if known.times >= ENOUGH and known.finding is None and self.trains:
            known.name = self.watch.flow.name_of(tensor)
            known.key, known.finding = self._judge(tensor) or (None, None)

    def _judge(self, tensor: Any) -> tuple[tuple, Finding] | None:
        if tensor in self.watch.detectors[Optimizers].replaced or self._is_in_listed_layer(tensor):
            return None  # which BL708 and BL721 report
        attribute = self._attribute_of(tensor)
        if attribute is not None:
            return self._of_attribute(tensor, *attribute)
        if not isinstance(tensor, self.engine.module.nn.Parameter):
            return None
        copied = self._copy_of(tensor)
        if copied is not None:
            return self._of_target(*copied)
        owner = self._owner_of(tensor)
        if owner is None:
            return self._of_loose(tensor)
        return self._of_module(tensor, owner)

    def _models(self) -> Iterator[Any]:
        return iter(self.watch.flow.modules.alive())

    def _owner_of(self, tensor: Any) -> Any | None:
        """Return the outermost module that has a parameter; the largest of several."""
        owners = [one for one in self._models() if any(param is tensor for param in one.parameters())]
        return max(owners, key=lambda one: sum(1 for _ in one.parameters()), default=None)

    def _attribute_of(self, tensor: Any) -> tuple[Any, str, bool] | None:
        """Return the module that has a leaf as a plain attribute or in a plain list: module, name, whether listed."""
        for model in self._models():
            for module in model.modules():
                if any(one is tensor for one in module.parameters(recurse=False)):
                    return None  # a recurrent layer's own list has them, too
                for name, value in list(vars(module).items()):
                    if value is tensor:
                        return module, name, False
                    members = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
                    if name not in OWN and any(one is tensor for one in members):
                        return module, name, True
                if any(one is tensor for one in vars(module).get("_buffers", {}).values()):
                    return module, next(key for key, one in vars(module)["_buffers"].items() if one is tensor), False
        return None

    def _is_in_listed_layer(self, tensor: Any) -> bool:
        """Return whether a parameter belongs to a layer that lies in a plain list of a module."""
        kind = self.engine.module.nn.Module
        modules = [one for model in self._models() for one in model.modules()]
        lists = [value for one in modules for name, value in vars(one).items() if name not in OWN]
        layers = [
            layer
            for value in lists
            if type(value) in (list, tuple, dict)
            for layer in (value.values() if type(value) is dict else value)
            if isinstance(layer, kind)
        ]
        return any(param is tensor for layer in layers for param in layer.parameters())

    def _of_attribute(self, tensor: Any, module: Any, name: str, listed_: bool) -> tuple[tuple, Finding]:
        kind = type(module).__name__
        made = self.watch.detectors[Attributes].set_at.get((id(type(module)), name))
        text = "" if made is None else code_of(made)
        corrected = replaced(text, ", requires_grad=True)", "))") if not listed_ and text.count("=") == 2 else None
        if corrected is not None:
            target, _, value = corrected.partition(" = ")
            corrected = f"{target} = nn.Parameter({value}"
        how = "in a plain list" if listed_ else "a plain tensor"
        wanted = "nn.ParameterList (nn.ParameterDict)" if listed_ else "nn.Parameter(...)"
        return ("attribute", kind, name), rule("parameter-not-registered").found(
            made or self.called_at.get(module),
            f"{kind}.{name} is {how}; {kind}().parameters() does not contain it, and neither does an optimizer.",
            f"It got a gradient in {ENOUGH} or more backwards, but its values never changed.",
            title=f"{kind}.{name} is not a parameter of the module",
            cure=f"make it {wanted}",
            corrected=corrected,
        )

    def _copy_of(self, tensor: Any) -> tuple[Any, Any] | None:
        """Return (the model of a parameter, a model of the same build that an optimizer trains)."""
        owner = self._owner_of(tensor)
        if owner is None or any(param in self.excused for param in owner.parameters()):
            return None
        build = [(name, tuple(param.shape)) for name, param in owner.named_parameters()]
        held = self.watch.optimised()
        for other in self._models():
            if other is not owner and type(other) is type(owner):
                params = list(other.named_parameters())
                if [(name, tuple(one.shape)) for name, one in params] == build:
                    if all(id(one) in held for _, one in params) and self._is_synchronised(owner):
                        return owner, other
        return None

    def _is_synchronised(self, owner: Any) -> bool:
        """Return whether a model was loaded, or has changed without an optimizer."""
        if owner in self.watch.detectors[States].loaded:
            return True
        for one in owner.parameters():
            known = self.left_out.get(one)
            values = self.values(one)
            if known is not None and values is not None:
                if known.checksum != checksum_of(values):
                    return True
        return False

    def _of_target(self, owner: Any, other: Any) -> tuple[tuple, Finding]:
        place = self.called_at.get(owner)
        name, trained = name_in(None, owner), name_in(None, other)
        kind = type(owner).__name__
        return ("target", id(owner)), rule("target-network-gets-gradients").found(
            place,
            f"A {kind} that no optimizer holds ran at {brief(place)} with recording on; its "
            f"{counted(sum(1 for _ in owner.parameters()), 'parameter')} got gradients in {ENOUGH} backwards, "
            "which add up unused.",
            f"It is a copy of a {kind} that an optimizer trains{'' if trained is None else f' ({trained})'}.",
            title=f"{name or f'a copied {kind}'} gets gradients: its output is not detached",
        )

    def _of_loose(self, tensor: Any) -> tuple[tuple, Finding]:
        leaf = self.watch.flow.leaf_of(tensor)
        used = None if leaf is None or leaf.used is None else leaf.used
        name = self.watch.flow.name_of(tensor)
        made = self.watch.detectors[Constructions].parameters.get(tensor)
        if made is not None and made[2]:
            return None
        return ("loose", name), rule("module-in-no-optimizer").found(
            None if used is None else place_of(used),
            f"{name} got a gradient in {ENOUGH} backwards or more, is in no optimizer, and its values never changed.",
            title=f"{name} is in no optimizer",
            cause="the optimizer was given the parameters of a module, and this is not one of them",
            cure=f"give {name} to the optimizer",
        )

    def _of_module(self, tensor: Any, owner: Any) -> tuple[tuple, Finding] | None:
        """Return the finding of a whole model that is left out, or of a part that was made too late."""
        constructions, held = self.watch.detectors[Constructions], self.watch.optimised()
        made = constructions.parameters.get(tensor)
        params = [one for one in owner.parameters() if one.requires_grad]
        outside = [one for one in params if id(one) not in held and one not in self.excused]
        optimizers = constructions.optimizers.items()
        late = made is not None and optimizers and made[1] >= max(number for _, (number, _) in optimizers)
        kind = type(owner).__name__
        line = optimizers[0][1][1] if optimizers else None
        if len(outside) < len(params):
            gap = self._gap(owner, outside)
            if gap is not None and not late:
                return gap
            if not late or made[0] is None or made[2]:
                return None
            return ("late", made[0]), rule("module-in-no-optimizer").found(
                place_of(made[0]),
                f"The optimizer was made at {brief_at(line) if line else 'an earlier line'}; {brief_at(made[0])} "
                f"created further parameters afterwards.",
                f"Gradients are computed for {self.watch.flow.name_of(tensor)}, but no optimizer holds it.",
                title=f"a part of {kind} was created after the optimizer and is not in it",
                cause="the optimizer was created before the model was complete",
                cure="create the optimizer after the whole model, or add the new parameters with add_param_group()",
            )
        if owner in self.watch.detectors[States].loaded or not self.modes.get(owner, False):
            return None
        where = None if line is None else place_of(line)
        names = listed([self.watch.flow.name_of(one) for one in params], SHOWN)
        return ("module", id(owner)), rule("module-in-no-optimizer").found(
            where or self.called_at.get(owner),
            f"All {counted(len(params), 'parameter')} of {kind} ({names}) got gradients in {ENOUGH} or more "
            f"backwards; none is in an optimizer, and none ever changed.",
            f"{kind} runs at {brief(self.called_at.get(owner))}, in train mode.",
            title=f"{kind} is in no optimizer: it never learns",
        )

    def _gap(self, owner: Any, outside: list) -> tuple[tuple, Finding] | None:
        """Return the finding of parameters that several groups leave out in the midst of those that they hold.

        A body that is left out lies before all that is held, in the order of the forward.
        """
        optimizers = [one for one in self.watch.optimizers.alive() if self._holds_of(one, owner)]
        groups = sum(len(one.param_groups) for one in optimizers)
        flow = self.watch.flow
        order = {id(one): leaf.bit for one in owner.parameters() if (leaf := flow.leaf_of(one)) is not None}
        missing = {id(one) for one in outside}
        held = [bit for key, bit in order.items() if key not in missing]
        between = [one for one in outside if held and order.get(id(one), 0) > min(held)]
        if groups < 2 or len(between) < len(outside) or 2 * len(outside) > len(order):
            return None
        line = self.watch.detectors[Constructions].optimizers.get(optimizers[0], (0, None))[1]
        names = listed([flow.name_of(one) for one in outside], SHOWN)
        return ("gap", id(owner)), rule("module-in-no-optimizer").found(
            None if line is None else place_of(line),
            f"{names}: gradients were computed in {ENOUGH} or more backwards, no parameter group contains them, and "
            f"their values "
            "never changed.",
            f"The {groups} groups hold {counted(len(held), 'other parameter')} of the same {type(owner).__name__}.",
            title=f"{names}: in no group of the optimizer",
            cause="the groups were chosen by names or layers, and some parameters match none",
            cure="add a group for the rest, and compare the number of parameters in groups with that of the model",
        )

    def _holds_of(self, optimizer: Optimizer, owner: Any) -> bool:
        own = {id(one) for one in owner.parameters()}
        return any(id(one) in own for group in optimizer.param_groups for one in group["params"])

    def end(self, problem: BaseException | None) -> None:
        """Report what was left out, each module once."""
        shown = set()
        for _, known in self.left_out.histories():
            if known.finding is not None and known.key not in shown:
                shown.add(known.key)
                self.session.add(known.finding)
        for line, times in self.made_in_forward.items():
            if times >= ENOUGH and self.trains:
                self.report(
                    "layer-made-in-forward",
                    place_of(line),
                    f"{brief_at(line)} made a new parameter in each of {times} forwards; each got a gradient, and no "
                    f"optimizer holds any of them.",
                )


class Attributes(Detector):
    """Remembers where tensors and lists were set on modules; it finds nothing itself."""

    def __init__(self, watch):
        super().__init__(watch)
        self.set_at: dict[tuple[int, str], Place | None] = {}  # (class, name) -> line

    def assigned(self, module: Module, name: str, value: Any, old: Any, frame: FrameType) -> None:
        """Note a plain tensor that requires grad, or a list."""
        if isinstance(value, self.engine.module.nn.Parameter):
            return
        if type(value) in (list, dict) or (self.engine.is_tensor(value) and value.requires_grad):
            if not name.startswith("_") and len(self.set_at) < 1000:
                self.set_at.setdefault((id(type(module)), name), place_of_frame(frame))
