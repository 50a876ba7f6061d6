"""Features that are fitted on the labels of all rows, and rows that are split into training and test only then.

NOTE [Labels of held-out rows]
`encoder.fit(category, label)` with both of all rows, in a function that splits the rows by names that say so, `train`
and `test`: a target encoder, a choice of features, a projection that knows the labels. It is read from the source:
the second argument, or a tensor made of it, is cut by the test rows later in the same function; what was fitted is used
after that, in features that are cut by both. A model that is trained by fit(x, y) makes predictions and no features: it
is left alone, and so is what is fitted on training rows or within a fold.
"""

import ast
import re
from collections.abc import Iterator

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.places import Instruction, brief
from backlight.lens.doctor.source import Spot, spelled, spot_of

MAKERS = {"from_numpy", "tensor", "as_tensor"}
FITS = {"fit", "fit_transform"}
LABELS = {"y", "target", "targets", "labels", "label"}
TRAIN = re.compile(r"(?:^|[^a-z])(?:train|tr|trn)(?:ing)?(?:[^a-z]|$)")
HELD = re.compile(r"(?:^|[^a-z])(?:test|val|valid|validation|holdout|held|te|va)(?:[^a-z]|$)")
AGGREGATES = {"mean", "transform", "agg", "sum"}


class FittedLabels(Detector):
    """Finds them (see NOTE [Labels of held-out rows])."""

    calls = frozenset({*MAKERS, "getitem", "__getitem__", "index"})

    def __init__(self, watch):
        super().__init__(watch)
        self.looked: set = set()

    def called(self, call: Call) -> None:
        """Look at a function when it first makes a tensor."""
        if call.code in self.looked:
            return
        self.looked.add(call.code)
        spot = spot_of(Instruction(call.code, call.lasti))
        if spot.tree is None or spot.scope is None:
            return
        for fit, label in _fits(spot):
            held = _held_out(spot, label)
            if held is not None and _is_transformed(spot, fit):
                self._report(spot, fit, label, held)
                return

    def _report(self, spot: Spot, fit: ast.Call, label: ast.AST, held: ast.Subscript) -> None:
        place, split = spot.at(fit).place, spot.at(held).place
        self.report(
            "fitted-on-held-out-labels",
            place,
            f"{brief(place)} fits on {spot.text(label)}, the labels of all rows; {brief(split)} takes the held-out "
            f"rows of them: {spot.text(held)}.",
        )


def _fits(spot: Spot) -> Iterator[tuple[ast.Call, ast.AST]]:
    """Give the calls fit(features, labels) of a function, with the labels, that name no training rows."""
    for node in ast.walk(spot.scope):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in FITS:
            continue
        named = next((word.value for word in node.keywords if word.arg in LABELS), None)
        label = named if named is not None else node.args[1] if len(node.args) > 1 else None
        given = [*node.args, *(word.value for word in node.keywords)]
        if label is None or any(TRAIN.search(spot.text(one).lower()) for one in given):
            continue
        if isinstance(label, (ast.Name, ast.Attribute, ast.Subscript)):
            yield node, label


def _held_out(spot: Spot, label: ast.AST) -> ast.AST | None:
    """Return where the held-out rows of labels are taken, if the training rows are taken of the same, too."""
    text = spot.text(label)
    names = {text} | {
        spelled(one.targets[0])
        for one in ast.walk(spot.scope)
        if isinstance(one, ast.Assign) and spelled(one.targets[0]) and text in spot.text(one.value)
    }
    trained, held = set(), {}
    for node in ast.walk(spot.scope):
        if isinstance(node, ast.Call) and (spelled(node.func) or "").rpartition(".")[2] == "train_test_split":
            if node.lineno >= label.lineno and any(spot.text(one) in names for one in node.args):
                return node
        if not isinstance(node, ast.Subscript) or spot.text(node.value) not in names or node.lineno < label.lineno:
            continue
        owner, index = spot.text(node.value), spot.text(node.slice).lower()
        first = node.slice.lower if isinstance(node.slice, ast.Slice) else None
        if HELD.search(index) or (first is not None and node.slice.upper is None):
            held[owner] = node
        elif TRAIN.search(index):
            trained.add(owner)
    return next((held[owner] for owner in held if owner in trained), None)


def _is_transformed(spot: Spot, fit: ast.Call) -> bool:
    """Return whether what was fitted makes features, and no predictions."""
    if fit.func.attr == "fit_transform":
        return True
    stored = getattr(fit, "parent", None)
    stored = spelled(stored.targets[0]) if isinstance(stored, ast.Assign) and stored.value is fit else None
    owner = stored or spot.text(fit.func.value)
    calls = [one for one in ast.walk(spot.scope) if isinstance(one, ast.Call) and one.lineno >= fit.lineno]
    methods = {
        one.func.attr for one in calls if isinstance(one.func, ast.Attribute) and spot.text(one.func.value) == owner
    }
    if methods & {"predict", "predict_proba", "score"}:
        return False
    passed = any(spot.text(arg) == owner for one in calls if one is not fit for arg in one.args)
    chained = any(isinstance(one.func, ast.Attribute) and one.func.value is fit for one in calls)
    return "transform" in methods or chained or (passed and ".transform(" in "".join(spot.lines))
