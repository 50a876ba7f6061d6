"""Weights that are to be tied, and are copied: `self.out.weight = nn.Parameter(self.embedding.weight.clone())`."""

import ast
import re
from types import FrameType
from typing import Any

from backlight.lens.doctor.corrections.lines import replace
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.graph import Module
from backlight.lens.doctor.source import Spot, spelled, spot_of_frame

TIES = re.compile(r"(?:^|_)(?:tie|ties|tied)(?:_|$)|share_weights|shared_weights")


class SharedCopies(Detector):
    """Finds them in functions whose names say that they tie weights: elsewhere a copy may be meant."""

    def assigned(self, module: Module, name: str, value: Any, old: Any, frame: FrameType) -> None:
        """Look at a parameter that takes another one's place."""
        if old is None or not isinstance(value, self.engine.module.nn.Parameter) or value is old:
            return
        spot = spot_of_frame(frame)
        if spot is None or not TIES.search(spot.function) or "init" in spot.function:
            return
        source = _copied(spot)
        if source is not None:
            text = spot.text(source)
            self.report(
                "tied-by-copy",
                spot.place,
                f"{spot.function}() makes a new parameter from the values of {text}: two parameters, each with its "
                f"own gradient.",
                cure=f"assign the parameter itself: {text}",
                corrected=spot.edited(replace(spot.statement.value, text)),
            )


def _copied(spot: Spot) -> ast.AST | None:
    """Return `other.weight` of `layer.weight = nn.Parameter(other.weight.data.clone())`."""
    statement = spot.statement
    call = statement.value if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(call, ast.Call) or not (spelled(call.func) or "").endswith("Parameter") or len(call.args) != 1:
        return None
    node, steps = call.args[0], 0
    while True:
        method = node.func if isinstance(node, ast.Call) and not node.args and not node.keywords else node
        if not isinstance(method, ast.Attribute) or method.attr not in ("data", "detach", "clone"):
            break
        node, steps = method.value, steps + 1
    whole = steps and isinstance(node, ast.Attribute) and spelled(node) not in (None, spelled(statement.targets[0]))
    return node if whole else None
