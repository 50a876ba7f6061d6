"""Coverage: what the doctor examined and what it did not see, without which "no findings" would say little."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields

from backlight.dispatch.observers import Run
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.evidence import counted, listed
from backlight.lens.doctor.graph import Module, Optimizer, Tensor
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

SHOWN = 3


@dataclass
class Coverage:
    """What the doctor examined in a program, and what it knows it did not see.

    Args:
        steps: of all optimizers.
        backwards: how many ran, `autograd.grad` included.
        losses: at how many lines `backward()` was called.
        optimizers, parameters, modules: their numbers; only parameters in optimizers and outermost modules count.
        elsewhere: backwards in other threads, which are not recorded.
        caught: backwards whose error the program caught.
        compiled: names of compiled modules and functions, whose inside is not recorded.
    """

    steps: int = 0
    backwards: int = 0
    losses: int = 0
    optimizers: int = 0
    parameters: int = 0
    modules: int = 0
    elsewhere: int = 0
    caught: int = 0
    compiled: tuple[str, ...] = ()

    def __str__(self) -> str:
        """`12 steps: 12 backwards, 1 optimizer with 6 parameters, 1 module; not seen: the inside of Net (compiled)`."""
        seen = [counted(self.backwards, "backward")]
        if self.optimizers:
            held = counted(self.parameters, "parameter")
            seen.append(f"{counted(self.optimizers, 'optimizer')} with {held}")
        if self.modules:
            seen.append(counted(self.modules, "module"))
        unseen = list(self._unseen())
        missed = f"; not seen: {', '.join(unseen)}" if unseen else ""
        steps = f"{counted(self.steps, 'step')}: " if self.steps else ""
        return f"{steps}{', '.join(seen)}{missed}"

    def _unseen(self) -> Iterable[str]:
        if self.elsewhere:
            yield f"{counted(self.elsewhere, 'backward')} in another thread"
        if self.caught:
            yield f"why {counted(self.caught, 'backward')} failed, since the program caught the error"
        if self.compiled:
            yield f"the inside of {listed(self.compiled, SHOWN)} (compiled)"

    def to_dict(self) -> dict:
        """Return the numbers by their names."""
        return asdict(self)

    @classmethod
    def of(cls, parts: Iterable["Coverage"]) -> "Coverage":
        """Return the sums of what several engines' detectors saw."""
        parts = list(parts)
        numbers = {one.name: sum(getattr(part, one.name) for part in parts) for one in fields(cls)[:-1]}
        return cls(**numbers, compiled=tuple(dict.fromkeys(name for part in parts for name in part.compiled)))


class CoverageCounter(Detector):
    """Counts what is recorded; it makes no findings."""

    def __init__(self, watch):
        super().__init__(watch)
        self.seen = Coverage()
        self.before = self.engine.backwards_elsewhere
        self._problems: set[int] = set()  # of backwards that failed
        self._optimizers: WeakIdDict[None] = WeakIdDict()
        self._params: WeakIdDict[None] = WeakIdDict()
        self._modules: WeakIdDict[None] = WeakIdDict()
        self._lines: set[tuple | None] = set()

    def coverage(self) -> Coverage:
        """Return what was seen so far."""
        self.seen.elsewhere = self.engine.backwards_elsewhere - self.before
        return self.seen

    def entered(self, module: Module, path: str) -> None:
        """Count an outermost module."""
        if not path and module not in self._modules:
            self._modules[module] = None
            self.seen.modules += 1

    def stepped(self, optimizer: Optimizer, params: list, grads: list, place: Place | None) -> None:
        """Count a step."""
        self.seen.steps += 1
        if optimizer not in self._optimizers:
            self._optimizers[optimizer] = None
            self.seen.optimizers += 1
        for param in params:
            if param not in self._params:
                self._params[param] = None
                self.seen.parameters += 1

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Count the lines of losses."""
        self._lines.add(place and (place.file, place.line))
        self.seen.losses = len(self._lines)

    def started(self, run: Run) -> None:
        """Count a backward."""
        self.seen.backwards += 1

    def ended(self, run: Run) -> None:
        """Count a backward that failed, until its error is seen to end the block."""
        if run.problem is not None:
            self.seen.caught += 1
            self._problems.add(id(run.problem))

    def compiled(self, name: str, out: object) -> None:
        """Note what ran compiled."""
        if name not in self.seen.compiled:
            self.seen.compiled = (*self.seen.compiled, name)

    def end(self, problem: BaseException | None) -> None:
        """Leave out the error that ended the block."""
        while problem is not None:
            if id(problem) in self._problems:
                self._problems.remove(id(problem))
                self.seen.caught -= 1
            problem = problem.__context__
