"""What happened before a mistake showed: earlier backwards, which nodes they freed, who wrote to which tensor."""

from collections import deque
from dataclasses import dataclass
from types import CodeType

from backlight.dispatch.observers import Run
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Node, Tensor
from backlight.lens.doctor.weak_id_dict import keep_newest

RUNS, WRITES, NODES = 1000, 5000, 200_000  # how many of each are remembered


@dataclass(slots=True)
class PastRun:
    """A backward that ran.

    Args:
        roots: keys of the nodes that it started from.
        code, lasti: the user's line.
        after: the sequence number of the next node when it began: what was made before has a smaller one.
    """

    roots: frozenset[int]
    code: CodeType
    lasti: int
    after: int = 0


@dataclass(slots=True)
class PastWrite:
    """An in-place write.

    Args:
        memory: a key of the memory that was written to.
        version: its count after the write.
        shape: the tensor's.
        view: whether the tensor was a view of another.
        name: the op.
        code, lasti: the user's line.
    """

    memory: int
    version: int
    shape: tuple[int, ...]
    view: bool
    name: str
    code: CodeType
    lasti: int


@dataclass(slots=True)
class Failure:
    """A backward that ended in an exception: the run itself, and what is remembered of it."""

    run: Run
    past: PastRun


class History(Detector):
    """Remembers as much of the past as errors of the graph need to be understood; it finds nothing itself."""

    def __init__(self, watch):
        super().__init__(watch)
        self.runs: deque[PastRun] = deque(maxlen=RUNS)
        self.writes: deque[PastWrite] = deque(maxlen=WRITES)
        self.freed_by: dict[int, PastRun] = {}
        self.failure: Failure | None = None
        self._running: dict[int, PastRun] = {}

    def started(self, run: Run) -> None:
        """Remember a backward."""
        keys = frozenset(self.engine.key_of(node) for node, _ in run.roots)
        self._running[run.number] = PastRun(keys, run.code, run.lasti, self.engine.next_number())

    def freed(self, run: Run, node: Node) -> None:
        """Remember which backward freed a node."""
        self.freed_by.setdefault(self.engine.key_of(node), self._running[run.number])
        if len(self.freed_by) > NODES:
            keep_newest(self.freed_by, NODES)

    def ended(self, run: Run) -> None:
        """Remember a backward as one of the past, or as the one that failed."""
        past = self._running.pop(run.number)
        if run.problem is not None and self.failure is None:
            self.failure = Failure(run, past)
        self.runs.append(past)

    def wrote(self, tensor: Tensor, name: str, code: CodeType, lasti: int) -> None:
        """Remember who wrote."""
        memory, version = self.engine.memory_of(tensor)[0], self.engine.version_of(tensor)
        view = tensor._is_view()
        self.writes.append(PastWrite(memory, version, tuple(tensor.shape), view, name, code, lasti))

    def failed_with(self, problem: BaseException) -> Failure | None:
        """Return the backward that an exception came out of."""
        failure = self.failure
        return failure if failure is not None and failure.run.problem is problem else None
