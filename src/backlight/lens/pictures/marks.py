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
# PyTorch writes a capital after each underscore and after each digit: MaxPool2DWithIndices.
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=\d)(?=[A-Z][a-z])|(?<=\d[A-Z])(?=[A-Z][a-z])")
_SO_WRITTEN = (  # what no rule tells
    *(("col2_im", "col2im"), ("im2_col", "im2col"), ("deg2_rad", "deg2rad"), ("rad2_deg", "rad2deg")),
    *(("grid_sampler2d", "grid_sampler_2d"), ("grid_sampler3d", "grid_sampler_3d"), ("xlog1_py", "xlog1py")),
)


@cache
def label_of(node_type: str) -> str:
    """Return the label of a node by its type.

    >>> label_of("MulBackward0"), label_of("MaxPool2DWithIndicesBackward0"), label_of("Log1PBackward0")
    ('×', 'max_pool2d_with_indices', 'log1p')
    """
    name = name_of(node_type)
    return SIGNS.get(name, name)


def name_of(node_type: str) -> str:
    """Return the name of the op that a type of node belongs to, as PyTorch's functions are written."""
    name = node_type.rpartition("::")[2]
    name = re.sub(r"Backwards?\d*$", "", name) or name
    name = _WORD.sub("_", name).lower()
    for wrong, right in _SO_WRITTEN:
        name = name.replace(wrong, right)
    return name
