"""What to write on a node: `×` for MulBackward0, `log_softmax` for LogSoftmaxBackward0."""

import re
from functools import cache

SIGNS = {
    "add": "+",
    "sub": "−",
    "rsub": "−",
    "mul": "×",
    "div": "÷",
    "neg": "−x",
    "pow": "xⁿ",
    "mm": "@",
    "bmm": "@",
    "mv": "@",
    "matmul": "@",
}
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@cache
def label_of(node_type: str) -> str:
    """Return the label of a node by its type."""
    name = node_type.rpartition("::")[2]
    name = re.sub(r"Backward\d*$", "", name) or name
    name = _WORD.sub("_", name).lower()
    return SIGNS.get(name, name)
