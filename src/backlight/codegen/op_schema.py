"""What a node of an op saves, derived from the parameters of the op's rules."""

from backlight.codegen.declaration import ARRAYS, OPTION, Op
from backlight.codegen.decompositions import parameter_names
from backlight.codegen.inlining import expression_of
from backlight.codegen.packed_nodes import ARRAY, LIST, OUT, TENSOR
from backlight.errors import BacklightError

SPECIAL = ("grad", "out", "ops", "needs", "xp")
NAMES = {
    "input": "self",
    "out": "result",
}  # PyTorch's names of saved values, except for those in codegen/generate.py


class OpSchema:
    """What a node of this op saves, derived from the parameters of its rules."""

    def __init__(self, op: Op):
        self.op = op
        self.inlined_globals: dict = {}
        self.arrays = op.arrays
        self.kinds = {param.name: param.kind for param in op.params}
        self.differentiable = [p for p in self.arrays if any(p.name in rule.inputs for rule in op.rules)]
        wanted = {name for rule in op.rules for name in rule.parameters}
        if op.decomposed is not None:
            wanted |= {param.name for param in op.params} | set(parameter_names(op.decomposed))
        self.out = "out" in wanted
        self.inputs = [p for p in self.arrays if p.name in wanted]
        self.options = [p.name for p in op.params if p.kind == OPTION and p.name in wanted]
        self.kept = [name for name in op.residuals if name in wanted]
        self.shapes = [p for p in self.arrays if f"{p.name}_shape" in wanted]
        self.dtypes = [p for p in self.arrays if f"{p.name}_dtype" in wanted]
        known = {p.name for p in op.params} | set(op.residuals) | set(SPECIAL)
        known |= {f"{p.name}_{what}" for p in self.arrays for what in ("shape", "dtype")}
        if wanted - known:
            raise BacklightError(
                f"derivatives of {op.name} ask for {sorted(wanted - known)}, which the node cannot keep"
            )
        self.several = op.outputs != 1
        self.output_numbers = None
        if self.several:
            everything = () if op.outputs == "many" else tuple(range(op.outputs))
            self.output_numbers = everything if op.differentiable is None else op.differentiable

    def users_of(self, param) -> list[str] | None:
        """Return the inputs whose gradients need a saved input, or None if every gradient does.

        It is saved only if one of them is wanted: otherwise a later write to it would raise an error for nothing.
        """
        if self.op.decomposed is not None or any(p.kind == ARRAYS for p in self.differentiable):
            return None
        users = {name for rule in self.op.rules if param.name in rule.parameters for name in rule.inputs}
        found = [p.name for p in self.differentiable if p.name in users]
        return None if len(found) == len(self.differentiable) else found

    def places_of_users(self) -> dict[str, tuple[int, ...]]:
        """Return, for each input that is saved only if needed, the indices of the edges that need it."""
        places = {p.name: place for place, p in enumerate(self.differentiable)}
        found = {p.name: self.users_of(p) for p in self.inputs}
        return {name: tuple(places[user] for user in users) for name, users in found.items() if users is not None}

    @property
    def single_grad(self) -> bool:
        """Whether the node has one differentiable output."""
        return not self.several or (self.output_numbers is not None and len(self.output_numbers) == 1)

    def inlined(self, function, arguments: dict[str, str], prefix: str) -> str | None:
        """Return a one-expression function as source, and note the globals that the source needs."""
        found = expression_of(function, arguments, prefix)
        if found is None:
            return None
        self.inlined_globals.update(found[1])
        return found[0]

    def slots(self) -> list[str]:
        """Names of the slots of the node class."""
        names = ["broadcast_restore"] if self.op.promote else []
        for param in self.inputs:
            names += [param.name, param.name + "_version"]
        if self.out:
            names += ["out", "out_storage", "out_version"]
        names += self.options + self.kept
        names += [p.name + "_shape" for p in self.shapes] + [p.name + "_dtype" for p in self.dtypes]
        if self.op.outputs == "many":
            names.append("outputs")
        return names

    def freed_slots(self) -> tuple[str, ...]:
        """Names of the slots that are emptied when the graph is freed."""
        names = [p.name for p in self.inputs] + self.kept
        return tuple(names + (["out", "out_storage"] if self.out else []))

    def saved_slots(self) -> tuple[tuple[str, str], ...]:
        """Names of the slots that hold tensors, with the kind of each: inputs by PyTorch's names, then results.

        This is the order in which PyTorch packs them.
        """
        inputs = [(p.name, LIST if p.kind == ARRAYS else TENSOR) for p in self.inputs]
        given = [(name, ARRAY) for name in self.kept] + ([("out", OUT)] if self.out else [])
        return (*sorted(inputs, key=_by_torch_name), *sorted(given, key=_by_torch_name))


def _by_torch_name(slot: tuple[str, str]) -> str:
    return NAMES.get(slot[0], slot[0])
