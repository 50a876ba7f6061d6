"""ReduceLROnPlateau that waits for its metric to go the wrong way.

NOTE [Which way a metric goes]
A scheduler of mode "min" counts a metric that does not fall as no progress. What the program calls an accuracy is to
rise, what it calls a loss is to fall: the name of what step() is given, or of the call that it was assigned from. Names
with words of both kinds, or that tell of a difference or of the other sign (`neg_loss`), and expressions such as
1 - accuracy, are left alone, by whatever name.
"""

import ast
import re
from types import FrameType
from typing import Any

from backlight.lens.doctor.corrections.lines import with_keyword
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.constructions import maker_of
from backlight.lens.doctor.evidence import short
from backlight.lens.doctor.places import Instruction, brief, users_frames
from backlight.lens.doctor.source import Spot, assignments, spelled, spot_of
from backlight.lens.doctor.weak_id_dict import WeakIdDict

RISES = {"acc", "accuracy", "accuracies", "f1", "auc", "auroc", "iou", "miou", "dice", "recall", "r2", "bleu", "psnr"}
RISES |= {"ssim", "ndcg", "mrr"}
FALLS = {"loss", "losses", "err", "error", "errors", "mse", "mae", "rmse", "nll", "ppl", "perplexity", "wer", "cer"}
FALLS |= {"mape", "bce", "brier"}
TURNED = {"neg", "negative", "minus", "inv", "inverse", "drop", "gap", "shortfall", "deficit", "regret", "reduction"}
TURNED |= {"gain", "improvement", "decrease", "increase", "delta", "diff"}
CALLS = 3


class Plateaus(Detector):
    """Finds them (see NOTE [Which way a metric goes])."""

    def __init__(self, watch):
        super().__init__(watch)
        self.made: WeakIdDict[Instruction] = WeakIdDict()
        self.metrics: WeakIdDict[list[float]] = WeakIdDict()  # the first ones

    def begin(self) -> None:
        """Watch the schedulers' making and steps."""
        kind = self.engine.module.optim.lr_scheduler.ReduceLROnPlateau
        self.watch.after(kind, "__init__", self._made)
        self.watch.after(kind, "step", self._stepped)

    def _made(self, frame: FrameType, out: None, args: tuple, kwargs: dict) -> None:
        line = maker_of(frame)
        if line is not None:
            self.made[args[0]] = line

    def _stepped(self, frame: FrameType, out: None, args: tuple, kwargs: dict) -> None:
        scheduler = args[0]
        metric = args[1] if len(args) > 1 else kwargs.get("metrics")
        seen = self.metrics.get(scheduler, [])
        if len(seen) == CALLS:
            return
        try:
            value = self.number(metric) if self.engine.is_tensor(metric) else float(metric)
        except (TypeError, ValueError):
            return
        if value is None:
            return
        self.metrics[scheduler] = seen = [*seen, value]
        user = next(users_frames(frame), None)
        if len(seen) == CALLS and user is not None:
            self._look(scheduler, spot_of(Instruction(user.f_code, user.f_lasti), user), seen)

    def _look(self, scheduler: Any, spot: Spot, seen: list[float]) -> None:
        call = spot.call
        arguments = (
            [] if call is None else [*call.args, *(word.value for word in call.keywords if word.arg == "metrics")]
        )
        if not arguments:
            return
        name, goes = _direction(spot, arguments[0])
        if goes is None or goes == scheduler.mode:
            return
        made = self.made.get(scheduler)
        where = spot if made is None else spot_of(made)
        other = "fall" if scheduler.mode == "min" else "rise"
        self.report(
            "plateau-of-wrong-mode",
            where.place,
            f'The scheduler made at {brief(where.place)} has mode="{scheduler.mode}": it treats a metric that does not '
            f"{other} as a plateau.",
            f"{brief(spot.place)} passes {name}, first {', '.join(map(short, seen))}.",
            cure=f'Create it with mode="{goes}".',
            corrected=with_keyword(where, "mode", f'"{goes}"') if made is not None else None,
        )


def _direction(spot: Spot, node: ast.AST) -> tuple[str, str | None]:
    """Return what a metric is called, and the mode that fits it; None for that if the name does not tell."""
    name = _name(node)
    goes = _tells(name)
    if isinstance(node, ast.Name):
        values = [one.value for one in assignments(spot.scope, node.id)]
        if any(isinstance(one, (ast.UnaryOp, ast.BinOp)) and isinstance(one.op, (ast.USub, ast.Sub)) for one in values):
            return name, None
        if goes is None and len(values) == 1 and isinstance(values[0], ast.Call):
            name = _name(values[0])
            goes = _tells(name)
    return name, goes


def _name(node: ast.AST) -> str:
    """Return the name of a metric: of a variable, of a key, of a call."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return node.slice.value
    if isinstance(node, ast.Call):
        return (spelled(node.func) or "").rpartition(".")[2]
    return (spelled(node) or "").rpartition(".")[2]


def _tells(name: str) -> str | None:
    words = set(re.split(r"[_\W]+", name.lower()))
    if words & TURNED:
        return None
    if words & FALLS:
        return None if words & RISES else "min"
    return "max" if words & RISES else None
