"""Where tensors without a graph come from: the op that was given a recorded tensor and returned one that is not.

NOTE [Cuts]
A cut is an op some input of which requires grad and whose output does not. What is computed from a cut's output is
behind the same cut. Nothing is kept alive: an output's cuts are forgotten with it.
"""

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.session import Session
from backlight.lens.doctor.source import Spot, spot_of
from backlight.lens.engines import Engine

MODULES = 100  # outermost modules that are remembered


@dataclass(frozen=True)
class Cut:
    """An op after which there is no graph (NOTE [Cuts]).

    Args:
        name: the op's.
        code, lasti: the user's line.
        recording: whether recording was on.
        of_tensor: whether it was called on a tensor, and not on a list.
    """

    name: str
    code: CodeType
    lasti: int
    recording: bool
    of_tensor: bool

    @property
    def spot(self) -> Spot:
        """Where the user called it."""
        return spot_of(self.code, self.lasti)


class Origins(Detector):
    """Follows cuts from op to op; it finds nothing itself."""

    def __init__(self, session: Session, engine: Engine):
        super().__init__(session, engine)
        self._behind: dict[int, tuple[weakref.ref, tuple[Cut, ...]]] = {}
        self._modules: dict[int, weakref.ref] = {}

    def called(self, call: Call) -> None:
        """Note a cut, or hand earlier ones on."""
        out = call.out
        if self.engine.is_tensor(out):
            outs = [] if out.requires_grad else [out]
        else:
            outs = [one for one in _flat(out) if self.engine.is_tensor(one)] if isinstance(out, (tuple, list)) else []
        if not outs or all(one.requires_grad for one in outs):
            return
        cuts: dict[Cut, None] = {}
        for value in (*_flat(call.args), *_flat(tuple(call.kwargs.values()))):
            if not self.engine.is_tensor(value):
                continue
            if value.requires_grad:
                cuts[self._cut(call)] = None
            cuts.update(dict.fromkeys(self.cuts_before(value)))
        if cuts:
            for one in outs:
                self._put(one, tuple(cuts)[:MANY])

    def _cut(self, call: Call) -> Cut:
        of_tensor = bool(call.args) and self.engine.is_tensor(call.args[0])
        return Cut(call.name, call.code, call.lasti, self.engine.module.is_grad_enabled(), of_tensor)

    def _put(self, tensor, cuts: tuple[Cut, ...]) -> None:
        key, behind = id(tensor), self._behind

        def forget(reference):
            if key in behind and behind[key][0] is reference:
                del behind[key]

        behind[key] = weakref.ref(tensor, forget), cuts

    def cuts_before(self, tensor) -> Iterator[Cut]:
        """Give the cuts that a tensor without a graph is behind, those of its own line first."""
        found = self._behind.get(id(tensor))
        return iter(found[1] if found is not None and found[0]() is tensor else ())

    def entered(self, module, path: str) -> None:
        """Remember an outermost module."""
        if not path and len(self._modules) < MODULES:
            self._modules[id(module)] = weakref.ref(module)

    def all_frozen(self) -> Iterator[str]:
        """Describe which modules ran whose parameters are all frozen."""
        for reference in self._modules.values():
            module = reference()
            parameters = [] if module is None else list(module.parameters())
            if parameters and not any(one.requires_grad for one in parameters):
                yield f"all {len(parameters)} parameters of {type(module).__name__} have requires_grad=False"


MANY = 8  # cuts that one tensor is said to be behind


def _flat(value) -> list:
    """Return what is in a value: itself, or what is in lists and tuples."""
    return [one for inner in value for one in _flat(inner)] if isinstance(value, (list, tuple)) else [value]
