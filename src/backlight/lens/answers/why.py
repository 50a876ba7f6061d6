"""`lens.why(tensor)`: why its gradient is None, 0, NaN or huge, or what it is made of; `lens.path(loss, tensor)`."""

import sys
from dataclasses import dataclass

from backlight.errors import InputError
from backlight.lens.answers.absent import unreachable
from backlight.lens.answers.answer import Answer
from backlight.lens.answers.answering import answer_to
from backlight.lens.answers.case import case_in
from backlight.lens.answers.live_case import case_of
from backlight.lens.answers.ways import described
from backlight.lens.engines import engine_of
from backlight.lens.records.record import Record


def why(tensor, loss=None, *, record=None) -> Answer:
    """Explain why the gradient of a tensor is None, 0, NaN or huge; if nothing is wrong with it, what it is made of.

        with lens.watch():
            loss = criterion(model(images), labels)
            loss.backward()
            print(lens.why(model.encoder.weight))

    Inside `lens.watch()` the record is used: which op made the tensor, where the graph was cut, which gradients
    arrived where. Outside, the live tensors are read: what they require, their graph if `loss` is given, their values.

    Args:
        tensor: a tensor of backlight or of PyTorch.
        loss: what backward is, or was, called of.
        record: a `Watch` or a `Record` to read instead of the watch that is open; a record knows tensors by name only.
    """
    if record is not None and isinstance(tensor, (str, int)):
        return answer_to(case_in(record if isinstance(record, Record) else record.record, tensor))
    return answer_to(case_of(tensor, loss, record, sys._getframe(1)))


@dataclass(frozen=True)
class Path:
    """The path from a loss to a tensor; false if there is none.

    Args:
        found: whether the graph of the loss reaches the tensor.
        steps: its nodes, a line each, from the loss.
        reason: why there is no path; "" if there is one.
    """

    found: bool
    steps: tuple[str, ...]
    reason: str = ""

    def __bool__(self) -> bool:
        return self.found

    def __str__(self) -> str:
        lines = [f"{'  ' * min(depth, 20)}{step}" for depth, step in enumerate(self.steps)]
        return "\n".join([*lines, self.reason] if self.reason else lines)


def path(loss, tensor) -> Path:
    """Return the chain of nodes from a loss to a tensor, or where it ends and why.

    Args:
        loss, tensor: of one engine, backlight's or PyTorch's.
    """
    if engine_of(loss) is not engine_of(tensor):
        raise InputError("loss and tensor must be of one engine, got one of each: pass two tensors of the same library")
    case = case_of(tensor, loss, None, sys._getframe(1))
    if case.paths is not None and case.paths.path():
        return Path(True, tuple(described(node) for node in case.paths.path()))
    if case.again:
        return Path(True, case.again)
    return Path(False, (), unreachable(case))
