"""Language models that see the token that they are to predict: attention without a causal mask.

NOTE [Seeing the future]
The targets are the tokens that were embedded, shifted by one, so that the target of each position is the next input.
It is a mistake if attention over these positions, all of it, gives weight to later ones. A recurrent layer that reads
in both directions is left alone: it may be the encoder of a model that copies.
"""

from collections.abc import Iterable

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.records.record import Place

CLASSES = {"cross_entropy", "nll_loss"}
ATTENTION = {"scaled_dot_product_attention", "multi_head_attention_forward"}
TOKENS, STEPS, LOOKS, FAR = 4, 2, 8, -1e4


class Futures(Detector):
    """Finds them (see NOTE [Seeing the future])."""

    calls = frozenset({*CLASSES, *ATTENTION, "softmax", "embedding"})

    def __init__(self, watch):
        super().__init__(watch)
        self.tokens: list[np.ndarray] = []
        self.ahead: dict[Instruction, tuple[int, str]] = {}  # what sees later positions -> of how many, how
        self.causal = False
        self.times: dict[Instruction, int] = {}
        self.steps = 0

    def called(self, call: Call) -> None:
        """Note tokens, attention, and compare with a target."""
        if self.steps >= LOOKS:
            return
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        line = Instruction(call.code, call.lasti)
        if name == "embedding":
            ids = next((one for one in inputs if not one.requires_grad and one.dim() == 2), None)
            if ids is not None and ids.shape[1] >= TOKENS and (values := self.values(ids)) is not None:
                self.tokens.append(values.copy())
        elif name in ATTENTION:
            self._attended(call, line, name)
        elif name == "softmax":
            if self.tokens and out.dim() > 2 and out.shape[-1] == out.shape[-2] and out.requires_grad:
                weights = self.values(out)
                if weights is not None:
                    self._note(line, weights.shape[-1], bool(np.triu(weights, 1).any()))
        elif len(inputs) > 1 and self.ahead and not self.causal:
            self._look(line, inputs[1])

    def _note(self, line: Instruction, length: int, sees: bool) -> None:
        if sees:
            self.ahead[line] = length, f"attention at {brief_at(line)} gives weight to later positions"
        else:
            self.causal = True

    def _attended(self, call: Call, line: Instruction, name: str) -> None:
        query, key = call.args[0], call.args[1]
        dot = name == "scaled_dot_product_attention"
        at = -2 if dot else 0
        if not self.tokens or query.dim() < 3 or query.shape[at] != key.shape[at] or not query.requires_grad:
            return
        mask = call.kwargs.get("attn_mask", call.args[3] if dot and len(call.args) > 3 else None)
        sees = not call.kwargs.get("is_causal", call.args[5] if dot and len(call.args) > 5 else False)
        if self.engine.is_tensor(mask):
            values = self.values(mask)
            if values is None:
                return
            kept = (values if dot else ~values) if values.dtype.kind == "b" else values > FAR
            sees = bool(np.triu(np.atleast_2d(kept), 1).any())
        self._note(line, query.shape[at], sees)

    def _look(self, line: Instruction, target: Tensor) -> None:
        values = self.values(target)
        if values is None or values.dtype.kind != "i":
            return
        lengths = {length for length, _ in self.ahead.values()}
        for tokens in self.tokens:
            if _is_next(values, tokens) and lengths & {tokens.shape[1], tokens.shape[1] - 1}:
                self.times[line] = self.times.get(line, 0) + 1
                if self.times[line] == STEPS:
                    self._report(line, list(self.ahead.items()))
                return

    def _report(self, line: Instruction, ahead: Iterable) -> None:
        where, (_, how) = next(iter(ahead))
        if self.session.has({"BL790"}):
            return  # a mask that is the wrong way round
        self.report(
            "sees-the-future",
            place_of(where),
            f"The target of each position at {brief_at(line)} is the next token of the embedded sequence.",
            f"{how[0].upper()}{how[1:]}: the model sees the tokens that it must predict.",
        )

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """A step is over."""
        self.steps += 1
        self.tokens.clear()
        self.ahead.clear()
        self.causal = False


def _is_next(target: np.ndarray, tokens: np.ndarray) -> bool:
    """Return whether targets are tokens shifted by one: of the whole length, or of one less."""
    rows, length = tokens.shape
    later = tokens[:, 1:]
    if len(np.unique(later)) < TOKENS:
        return False
    if target.size == rows * length:
        return bool((target.reshape(rows, length)[:, :-1] == later).all())
    return target.size == later.size and bool((target.reshape(later.shape) == later).all())
