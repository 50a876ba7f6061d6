"""Masks the wrong way round: attention that sees only the future, scores of real tokens filled with -inf.

NOTE [Which way round a mask is]
A square mask that leaves each position only itself and later ones (or only later ones) is a causal mask inverted,
unless the targets of the step are the tokens before: then the model reads from right to left. A mask of tokens is known
by how it was made: `tokens != 0` and `positions < lengths` are true for real tokens, `tokens == 0` and `positions >=
lengths` for padding. It counts only if padding ends or begins each row, and not all rows have the same number of it.
What is multiplied by a mask of padding is left alone where something else is multiplied by one of real tokens: the two
are put together, as where padding has an embedding of its own. Attention's bool masks say where to look in
scaled_dot_product_attention, and where not to in nn.MultiheadAttention.
"""

import ast
import re
from typing import Any

import numpy as np

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.data.futures import ATTENTION, CLASSES, Futures
from backlight.lens.doctor.graph import Tensor
from backlight.lens.doctor.places import Instruction, brief_at, place_of
from backlight.lens.doctor.source import spelled, spot_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

FLIPS = {"logical_not", "bitwise_not", "invert", "__invert__", "rsub"}
KEEPS = {"unsqueeze", "squeeze", "view", "reshape", "getitem", "__getitem__", "expand", "to", "float", "bool", "long"}
KEEPS |= {"int", "repeat", "transpose", "type_as", "clone", "contiguous", "half", "double", "type"}
MADE = {"ne": True, "eq": False, "lt": True, "ge": False, "le": True, "gt": False}
FAR = -1e4
LOWER = "Let each position attend to earlier ones and to itself; ~mask alone would hide each from itself."
LEAST = 3
DONE = re.compile(r"^(?:.*_)?(?:done|dones|terminal|terminals|terminated|is_done|is_terminal)$")
NOT_DONE = re.compile(r"(?:not|non|un|in)_?(?:done|term)")
DISCOUNT = re.compile(r"gamma|discount")
FROZEN = re.compile(r"(?:^|_)(?:frozen|freeze|fixed|locked|pruned|dead)(?:_|$)")


class InvertedMasks(Detector):
    """Finds them (see NOTE [Which way round a mask is])."""

    calls = frozenset(
        {*FLIPS, *KEEPS, *ATTENTION, *MADE, *CLASSES, "masked_fill", "where", "mul", "add", "register_hook"}
    )

    def __init__(self, watch):
        super().__init__(watch)
        self.masks: WeakIdDict[tuple[bool, Instruction]] = WeakIdDict()  # of tokens -> true for real ones, line
        self.done: set[Instruction] = set()
        self.looked: dict[Instruction, int] = {}
        self.later: dict[Instruction, bool] = {}  # lines of this step that attend to later positions only, or to itself
        self.products: dict[Instruction, Instruction] = {}  # products of this step with padding -> where it was made
        self.both = False  # whether a product of this step is with real tokens

    def called(self, call: Call) -> None:
        """Follow a mask; look at where it is used."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        line = Instruction(call.code, call.lasti)
        if name in ATTENTION:
            self._look_at_attention(call, line, name)
        elif name == "masked_fill" and len(inputs) >= 2:
            value = call.args[2] if len(call.args) > 2 else call.kwargs.get("value")
            if isinstance(value, (int, float)) and value <= FAR:
                self._look_at_scores(line, inputs[1], masks_out=True)
        elif name == "where" and len(inputs) >= 2 and len(call.args) == 3:
            if isinstance(call.args[2], (int, float)) and call.args[2] <= FAR:
                self._look_at_scores(line, inputs[0], masks_out=False)
        elif name == "mul":
            self._look_at_product(line, inputs, out)
        elif name == "register_hook":
            self._look_at_hook(line)
        elif name in CLASSES:
            if self.later and len(inputs) > 1 and self._comes_before(inputs[1]):
                self.done |= self.later.keys()
                self.later.clear()
        elif name == "add":
            self._look_at_bias(line, inputs)
        elif not self.engine.is_tensor(out) or not inputs or out.requires_grad:
            if name in ("getitem", "__getitem__") and len(inputs) == 2 and inputs[0].requires_grad:
                self._look_at_choice(line, *inputs)
        elif name in MADE:
            self._made(call, line, name, inputs, out)
        elif inputs[0] in self.masks and out is not inputs[0]:
            real, made = self.masks.get(inputs[0])
            if name != "rsub" or call.args[1:2] == (1,) or call.args[0] == 1:
                self.masks[out] = (not real if name in FLIPS else real), made

    def _made(self, call: Call, line: Instruction, name: str, inputs: list, out: Tensor) -> None:
        """Note a mask that was made of tokens or of lengths."""
        if out.dim() != 2 or out.shape[0] < 2 or out.shape[1] < LEAST:
            return
        if name in ("ne", "eq"):
            integers = len(inputs) == 1 and not inputs[0].dtype.is_floating_point
            if not integers or not _is_integer(call.args[-1]):
                return
        elif len(inputs) != 2 or min(one.shape[-1] for one in inputs) != 1:
            return
        values = self.values(out)
        if values is not None and _is_padding(values != MADE[name]):
            self.masks[out] = MADE[name], line

    def _once(self, line: Instruction) -> bool:
        """Return whether a line is still looked at: its first uses."""
        self.looked[line] = self.looked.get(line, 0) + 1
        return line not in self.done and self.looked[line] <= LEAST

    def _look_at_scores(self, line: Instruction, mask: Tensor, masks_out: bool) -> None:
        if line in self.done:
            return
        known = self.masks.get(mask)
        if known is not None:
            if known[0] == masks_out:
                self._report(
                    line,
                    f"The mask, made at {brief_at(known[1])}, is {known[0]} for real tokens and {not known[0]} for "
                    "padding.",
                    f"{brief_at(line)} masks the positions where it is {masks_out}: the real tokens. Attention goes "
                    f"only to the padding.",
                )
        elif self._once(line):
            values = self.values(mask)
            if values is not None:
                self._look_for_future(line, (values == 0) if masks_out else (values != 0))

    def _look_at_bias(self, line: Instruction, inputs: list) -> None:
        if len(inputs) != 2:
            return
        mask = next((one for one in inputs if not one.requires_grad and one.dim() >= 2), None)
        if mask is None or mask.shape[-1] != mask.shape[-2] or mask.shape[-1] < LEAST or not self._once(line):
            return
        values = self.values(mask)
        if values is not None and values.dtype.kind == "f" and _is_square_bias(values):
            self._look_for_future(line, values == 0)

    def _look_at_attention(self, call: Call, line: Instruction, name: str) -> None:
        if line in self.done:
            return
        dot = name == "scaled_dot_product_attention"
        mask = call.kwargs.get("attn_mask", call.args[3] if dot and len(call.args) > 3 else None)
        padding = call.kwargs.get("key_padding_mask")
        if self.engine.is_tensor(padding) and padding in self.masks:
            self._look_at_scores(line, padding, masks_out=True)
        if not self.engine.is_tensor(mask):
            return
        if mask in self.masks:
            self._look_at_scores(line, mask, masks_out=not dot)
        elif self._once(line):
            values = self.values(mask)
            if values is None:
                return
            kept = (values if dot else ~values) if values.dtype.kind == "b" else values > FAR
            self._look_for_future(line, kept)

    def _look_for_future(self, line: Instruction, kept: np.ndarray) -> None:
        """Note where positions attend to later ones only, and whether to themselves as well."""
        if _sees_future(kept):
            self.later[line] = bool(np.diagonal(kept, axis1=-2, axis2=-1).all())

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Report what the step did with masks that are the wrong way round."""
        for line, to_itself in self.later.items():
            self._report(
                line,
                f"The mask at {brief_at(line)} is square. It lets each position attend only to later ones"
                f"{', and to itself' if to_itself else ''}.",
                title="a causal mask is inverted: each position attends only to later ones",
                **({"cure": LOWER} if to_itself else {}),
            )
        for line, made in () if self.both else self.products.items():
            self._report(
                line,
                f"The mask, made at {brief_at(made)}, is 1 for padding and 0 for real tokens.",
                f"{brief_at(line)} multiplies by it: only the padding remains.",
            )
        self.later.clear()
        self.products.clear()
        self.both = False

    def _comes_before(self, target: Tensor) -> bool:
        """Return whether targets are the tokens that were embedded, each the one before its position."""
        values = self.values(target)
        for tokens in self.watch.detectors[Futures].tokens if values is not None else ():
            earlier = tokens[:, :-1]
            if values.size == earlier.size and (values.reshape(earlier.shape) == earlier).all():
                return True
            if values.size == tokens.size and (values.reshape(tokens.shape)[:, 1:] == earlier).all():
                return True
        return False

    def _look_at_product(self, line: Instruction, inputs: list, out: Any) -> None:
        """Look at losses and states times a mask of padding, and at gamma · done."""
        known = next((one for tensor in inputs if (one := self.masks.get(tensor)) is not None), None)
        if known is not None:
            if self.engine.is_tensor(out) and out.requires_grad and any(one.requires_grad for one in inputs):
                self.both = self.both or known[0]
                if not known[0] and line not in self.done:
                    self.products[line] = known[1]
        elif line not in self.looked:
            self.looked[line] = 1
            self._look_at_discount(line)

    def _look_at_choice(self, line: Instruction, values: Tensor, mask: Tensor) -> None:
        known = self.masks.get(mask)
        if known is not None and not known[0] and line not in self.done:
            self._report(
                line,
                f"The mask, made at {brief_at(known[1])}, is true for padding.",
                f"{brief_at(line)} selects by it: only the padding remains.",
            )

    def _look_at_discount(self, line: Instruction) -> None:
        spot = spot_of(line)
        node = spot.expression
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            return
        while isinstance(parent := getattr(node, "parent", None), ast.BinOp) and isinstance(parent.op, ast.Mult):
            node = parent
        factors = _factors(node)
        done = next((one for one in factors if (name := _plain_name(one)) and DONE.match(name)), None)
        if done is None or NOT_DONE.search(_plain_name(done)):
            return
        if not any(DISCOUNT.search((spelled(one) or "").lower()) for one in factors):
            return
        name = spot.text(done)
        self._report(
            line,
            f"{brief_at(line)} multiplies the next value by {name}, which is 1 where an episode has ended.",
            title="values after the end of an episode are kept, and all others dropped",
            cause=f"{name} is used where 1 - {name} is needed.",
            cure=f"Multiply by 1 - {name}.",
        )

    def _look_at_hook(self, line: Instruction) -> None:
        if line in self.done or line in self.looked:
            return
        self.looked[line] = 1
        spot = spot_of(line)
        hook = spot.call.args[0] if spot.call is not None and spot.call.args else None
        if isinstance(hook, ast.Name) and spot.tree is not None:
            made = [one for one in ast.walk(spot.tree) if isinstance(one, ast.FunctionDef) and one.name == hook.id]
            hook = made[0] if len(made) == 1 else None
        if not isinstance(hook, (ast.Lambda, ast.FunctionDef)) or len(hook.args.args) != 1:
            return
        grad = hook.args.args[0].arg
        for node in ast.walk(hook):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                sides = {_plain_name(node.left): node.left, _plain_name(node.right): node.right}
                mask = next((one for one in sides if one not in (None, grad) and FROZEN.search(one)), None)
                if grad in sides and mask is not None:
                    self._report(
                        line,
                        f"The hook multiplies the gradient by {mask}: it keeps the gradient of the elements that "
                        f"{mask} marks, and drops all others.",
                        title="a hook keeps the gradient that it should drop",
                        cause=f"{mask} is 1 for the elements that must not change.",
                        cure=f"Multiply by 1 - {mask}, or by its inverse ~{mask}.",
                    )
                    return

    def _report(self, line: Instruction, *evidence: str, **words: str) -> None:
        self.done.add(line)
        self.report("mask-inverted", place_of(line), *evidence, **words)


def _factors(node: ast.AST) -> list[ast.AST]:
    """Return the factors of a product."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _factors(node.left) + _factors(node.right)
    return [node]


def _plain_name(node: ast.AST) -> str | None:
    """Return the last name of `batch.done`, `done.float()`, `done[i]`."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            key = node.slice
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                return key.value.lower()
            node = node.value
        elif isinstance(node, ast.Attribute):
            return node.attr.lower()
        else:
            return node.id.lower() if isinstance(node, ast.Name) else None


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_padding(padding: np.ndarray) -> bool:
    """Return whether what is marked ends each row, or begins it, and not as much of each."""
    counts = padding.sum(axis=1)
    if counts.min() == counts.max() or (len(counts) > LEAST and (np.abs(np.diff(counts)) == 1).all()):
        return False  # none of it is known to be padding; or a triangle, which is a mask of times
    sorted_rows = np.sort(padding, axis=1)
    return bool((padding == sorted_rows).all() or (padding == sorted_rows[:, ::-1]).all())


def _sees_future(kept: np.ndarray) -> bool:
    """Return whether a square mask keeps all later positions, and of the others at most each one itself."""
    while kept.ndim > 2:
        if kept.shape[0] != 1 and not (kept == kept[:1]).all():
            return False
        kept = kept[0]
    if kept.ndim != 2 or kept.shape[0] != kept.shape[1] or kept.shape[0] < LEAST:
        return False
    later = np.triu(np.ones(kept.shape, dtype=bool), 1)
    return bool(kept[later].all() and not kept[np.tril(np.ones(kept.shape, dtype=bool), -1)].any())


def _is_square_bias(values: np.ndarray) -> bool:
    return bool(values.min() <= FAR and np.isin(values, (0.0, values.min())).all())
