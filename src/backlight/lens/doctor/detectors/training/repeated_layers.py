"""One layer in several places of a list: `[nn.Linear(8, 8)] * 4` is one layer, four times."""

import ast
from types import FrameType

from backlight.lens.doctor.corrections.lines import replace
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.training.constructions import maker_of
from backlight.lens.doctor.evidence import counted
from backlight.lens.doctor.places import Instruction, brief
from backlight.lens.doctor.source import Spot, spot_of

LISTS = ("ModuleList", "Sequential")


class RepeatedLayers(Detector):
    """Looks at lists of modules as they are made.

    To share a layer is legal. A layer that is made inside of the list which is multiplied has no other name: it is not
    shared on purpose.
    """

    def begin(self) -> None:
        """Watch the making of lists."""
        for name in LISTS:
            self.watch.after(getattr(self.engine.module.nn, name), "__init__", self._made)

    def _made(self, frame: FrameType, out: None, args: tuple, kwargs: dict) -> None:
        members = [one for one in args[0].children() if next(one.parameters(), None) is not None]
        places = [one for one in args[0]._modules.values() if any(one is member for member in members)]
        line = maker_of(frame)
        if line is None or len(places) == len(members):
            return
        spot = spot_of(Instruction(line.code, line.lasti))
        product = next((one for one in _arguments(spot) if _is_product(one)), None)
        if product is None:
            return
        layer, count = (
            (product.left, product.right) if isinstance(product.left, ast.List) else (product.right, product.left)
        )
        fresh = f"[{spot.text(layer.elts[0])} for _ in range({spot.text(count)})]"
        self.report(
            "layer-repeated",
            spot.place,
            f"The {type(args[0]).__name__} made at {brief(spot.place)} has {counted(len(places), 'place')} and "
            f"{counted(len(members), 'layer')} with parameters: the same {type(members[0]).__name__} is in several.",
            cure=f"create a new layer for each: {fresh}",
            corrected=spot.edited(replace(product, fresh)),
        )


def _arguments(spot: Spot) -> list[ast.AST]:
    arguments = spot.call.args if spot.call is not None else []
    return [one.value if isinstance(one, ast.Starred) else one for one in arguments]


def _is_product(node: ast.AST) -> bool:
    """Return whether syntax is `[Layer(...)] * n`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    several = [one for one in (node.left, node.right) if isinstance(one, ast.List)]
    return len(several) == 1 and len(several[0].elts) == 1 and isinstance(several[0].elts[0], ast.Call)
