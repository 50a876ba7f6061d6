"""view() and reshape() where axes should be swapped: the memory is relabelled, and rows of different samples mix.

NOTE [When rows mix]
Recurrent layers and attention without batch_first return (time, batch, features). A view whose first dim is the batch
cuts that memory, which goes through all samples at one time first, into pieces of the wrong samples. A view that only
puts the sizes in another order, such as (32, 28, 28, 3) → (32, 3, 28, 28), mixes, too, where neither of the first two
sizes that differ divides the other: then no merging and splitting of dims explains it.

The same layers' output is confused, too, where the last element or the mean is taken over the batch: `out[:, -1]` of
(time, batch, features) is one sample at all times, `out[-1]` of (batch, time, features) all times of one sample.
"""

from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Any

from backlight.dispatch.observers import Call
from backlight.lens.doctor.corrections.lines import before_method, method_of
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Module, Tensor, is_computed
from backlight.lens.doctor.places import Instruction, brief, brief_at, place_of_frame
from backlight.lens.doctor.source import Spot, spot_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

VIEWS = {"view", "reshape"}
CHOOSES = {"getitem", "__getitem__", "select"}
POOLS = {"mean", "amax"}
KEEPS = {"dropout", "relu", "tanh", "sigmoid", "gelu", "contiguous", "clone", "layer_norm", "to", "float"}
MAPS = {"conv2d", "conv_transpose2d", "max_pool2d", "interpolate", "batch_norm", "conv1d", "conv_transpose1d"}
SWAPPED = ".transpose(0, 1)"
DIMS = 3
FIRST = "(time, batch, features): batch_first is False", "(batch, time, features): batch_first is True"


@dataclass(frozen=True, slots=True)
class Mixed:
    """A view that mixes: its line, what was reshaped to what, which layer's output it was."""

    line: Instruction
    before: tuple[int, ...]
    after: tuple[int, ...]
    layer: str | None


class MixedRows(Detector):
    """Finds them (see NOTE [When rows mix])."""

    calls = frozenset({*VIEWS, *KEEPS, *CHOOSES, *POOLS, *MAPS})

    def __init__(self, watch):
        super().__init__(watch)
        self.batch_second: WeakIdDict[str] = WeakIdDict()  # outputs whose batch is dim 1 -> where they come from
        self.batch_first: WeakIdDict[str] = WeakIdDict()  # of recurrent layers with batch_first
        self.maps: WeakIdDict[None] = WeakIdDict()  # outputs of convolutions: (batch, channels, …)
        self.done: set[Instruction] = set()
        self.suspects: WeakIdDict[Mixed] = WeakIdDict()  # views of data, which is reported if a training uses them

    def left(self, module: Module, path: str, out: Any) -> None:
        """Note a layer's output whose batch is dim 1."""
        batch_first = getattr(module, "batch_first", None)
        if batch_first is None:  # of a layer of a transformer
            batch_first = getattr(getattr(module, "self_attn", None), "batch_first", None)
        if batch_first is None:
            return
        place = brief(place_of_frame())
        seen = f"{type(module).__name__} at {place} returned it as (time, batch, features): batch_first is False"
        outs = out if isinstance(out, tuple) else (out,)
        for number, one in enumerate(outs):
            for tensor in self.watch.tensors_in(one):
                if tensor.dim() != 3:
                    continue
                if number and hasattr(module, "hidden_size"):  # of recurrent layers the state, in either case
                    self.batch_second[tensor] = f"{type(module).__name__} at {place} returned it as (layers, batch, …)"
                elif not number and not batch_first:
                    self.batch_second[tensor] = seen
                elif not number and hasattr(module, "hidden_size"):
                    self.batch_first[tensor] = seen.replace(*FIRST)

    def called(self, call: Call) -> None:
        """Look at a view."""
        inputs, outs = self.watch.inputs, self.watch.outs
        if self.watch.name in MAPS:
            if len(outs) == 1 and is_computed(outs[0]) and outs[0].dim() > 2:
                self.maps[outs[0]] = None
            return
        if len(inputs) != 1 or len(outs) != 1 or outs[0] is inputs[0]:
            return
        tensor, out = inputs[0], outs[0]
        layer = self.batch_second.get(tensor)
        before, after = tuple(tensor.shape), tuple(out.shape)
        if self.watch.name in KEEPS:
            if layer is not None and before == after:
                self.batch_second[out] = layer
            if tensor in self.maps and before == after:
                self.maps[out] = None
            return
        if self.watch.name not in VIEWS:
            self._look_at_choice(call, tensor, layer)
            return
        if tensor in self.maps and len(after) == 2 and after[1] == before[1] != before[-1] and after[0] != before[0]:
            self._report_channels(Instruction(call.code, call.lasti), before, after)
            return
        mixes = layer is not None and _takes_second_for_first(before, after)
        if not mixes and not _permutes(before, after):
            return
        found = Mixed(Instruction(call.code, call.lasti), before, after, layer if mixes else None)
        if mixes or is_computed(out):
            self._report(found)
        else:
            self.suspects[out] = found

    def _report_channels(self, line: Instruction, before: tuple, after: tuple) -> None:
        if line in self.done:
            return
        self.done.add(line)
        order = ", ".join(map(str, (0, *range(2, len(before)), 1)))
        self.report(
            "rows-mixed-by-view",
            spot_of(line).place,
            f"A map of shape {list(before)}, (batch, channels, …), became {list(after)} at {brief_at(line)}: each row "
            f"has {before[1]} neighbours of one channel instead of the channels of one position.",
            cure=f"Move the channels last: .permute({order}).reshape(-1, {before[1]}).",
        )

    def _look_at_choice(self, call: Call, tensor: Tensor, layer: str | None) -> None:
        """Look at `out[:, -1]`, `out[-1]` and `out.mean(1)`."""
        line = Instruction(call.code, call.lasti)
        first = self.batch_first.get(tensor)
        if (layer is None and first is None) or line in self.done or not call.out.requires_grad:
            return
        index = call.args[1] if len(call.args) > 1 else call.kwargs.get("dim")
        index = index if isinstance(index, tuple) else (index,)
        if self.watch.name == "select" and len(call.args) > 2:  # what indexing comes to on backlight
            index = (*[slice(None)] * call.args[1], call.args[2])
        if self.watch.name in POOLS:
            one_of_batch = layer is not None and index == (1,)
            what = f"{self.watch.name}(1)"
        elif layer is not None:
            one_of_batch = len(index) > 1 and index[0] == slice(None) and index[1] == -1
            what = "[:, -1]"
        else:
            one_of_batch, what = index[0] == -1, "[-1]"
        if one_of_batch and tensor.shape[0] > 1 and tensor.shape[1] > 1:
            self.done.add(line)
            self.report(
                "batch-taken-for-time",
                spot_of(line).place,
                f"{what} at {brief_at(line)} runs over the batch dim of a tensor of shape {list(tensor.shape)}.",
                layer or first or "",
                cure=None if layer is not None else "Take the last time step: out[:, -1].",
            )

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Report data that is trained on."""
        constants = self.watch.flow.constants
        for one, found in self.suspects.items():
            if one in constants:
                self.suspects.pop(one)
                self._report(found)

    def _report(self, found: Mixed) -> None:
        spot = spot_of(found.line)
        if method_of(spot, *VIEWS) is None and not (spot.call and spot.text(spot.call.func).endswith("reshape")):
            return  # a library's own view
        kinds = f"shape {list(found.before)} became {list(found.after)} at {brief_at(found.line)}"
        if found.layer is not None:
            self.report("rows-mixed-by-view", spot.place, kinds, found.layer, corrected=_swapped(spot))
            return
        order = _order(found.before, found.after)
        cure = None if order is None else f"Use permute({', '.join(map(str, order))}), which moves the dims."
        self.report("rows-mixed-by-view", spot.place, kinds, "The sizes are the same, but in another order.", cure=cure)


def _takes_second_for_first(before: tuple, after: tuple) -> bool:
    """Return whether a view of (time, batch, ...) begins with the batch, and splits no first dim."""
    if not after or len(before) < 2 or before[0] in (1, before[1]) or before[1] == 1:
        return False
    return after[0] == before[1] and before[0] not in accumulate(after, mul)


def _permutes(before: tuple, after: tuple) -> bool:
    """Return whether a view puts three sizes or more in another order, and no merging and splitting explains it."""
    old, new = [one for one in before if one != 1], [one for one in after if one != 1]
    if len(old) < DIMS or old == new or sorted(old) != sorted(new):
        return False
    one, other = next(pair for pair in zip(old, new) if pair[0] != pair[1])
    return one % other != 0 and other % one != 0


def _order(before: tuple, after: tuple) -> tuple[int, ...] | None:
    """Return the permutation from one shape to another, if only the last dim or one other moved, in order."""
    if len(before) != len(after):
        return None
    for start in range(len(before)):
        for end in range(len(before)):
            order = [*range(len(before))]
            order.insert(end, order.pop(start))
            if tuple(before[one] for one in order) == after:
                return tuple(order)
    return None


def _swapped(spot: Spot) -> str | None:
    """`out.view(b, -1)` → `out.transpose(0, 1).reshape(b, -1)`."""
    func = method_of(spot, *VIEWS)
    if func is None or func.attr == "reshape":
        return before_method(spot, SWAPPED, "reshape")
    start = func.end_col_offset - len("view")
    return spot.edited((func.end_lineno, start - 1, func.end_col_offset, f"{SWAPPED}.reshape"))
