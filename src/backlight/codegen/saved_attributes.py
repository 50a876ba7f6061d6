"""Under which `_saved_…` names nodes show what they keep: PyTorch's, where the declaration has others."""

from backlight.codegen import runtime_support
from backlight.codegen.op_schema import NAMES, OpSchema
from backlight.codegen.packed_nodes import raw_item_property, raw_saved_property

_NORM = {"input": "input", "mean": "result1", "inverse": "result2"}

# By node. Of several outputs each has a name; None for one that PyTorch does not keep.
NAMES_OF = {
    "ConvolutionBackward0": {"input": "input"},
    "GridSampler2DBackward0": {"input": "input"},
    "GridSampler3DBackward0": {"input": "input"},
    "NativeBatchNormBackward0": _NORM,
    "NativeGroupNormBackward0": _NORM | {"num_groups": "group"},
    "NativeLayerNormBackward0": _NORM,
    "LinalgHouseholderProductBackward0": {"input": "input"},
    "AminmaxBackward0": {"out": ("min", "max")},
    "StdMeanBackward0": {"out": ("result0", None)},
    "LinalgCholeskyExBackward0": {"out": ("L", None)},
    "LinalgEighBackward0": {"out": ("eigenvalues", "eigenvectors")},
    "LinalgInvExBackward0": {"out": ("inverse", None)},
    "LinalgLstsqBackward0": {"out": ("solution", None, None, None)},
    "LinalgLuFactorExBackward0": {"out": ("LU", "pivots", None)},
    "LinalgLuBackward0": {"out": ("P", "L", "U")},
    "LinalgQrBackward0": {"out": ("Q", "R")},
    "LinalgSolveExBackward0": {"out": ("result", None)},
    "LinalgSvdBackward0": {"out": ("U", "S", "Vh")},
    "TriangularSolveBackward0": {"out": ("solution", None)},
}

# Where PyTorch shows the input's shape, as `_saved_self_sym_sizes`.
SHOW_SIZES = {
    *("DiagonalBackward0", "DiagonalBackward0_copy", "ExpandBackward0", "IndexBackward0", "IndexSelectBackward0"),
    *("KthvalueBackward0", "MaxBackward0", "MeanBackward0", "MinBackward0", "ModeBackward0", "NanmedianBackward1"),
    *("NarrowCopyBackward0", "RepeatBackward0", "SelectBackward0", "SliceBackward0", "SortBackward0", "SplitBackward0"),
    *("SplitWithSizesBackward0", "SqueezeBackward0", "SqueezeBackward1", "SqueezeBackward2", "SumBackward0"),
    *("SumBackward1", "TopkBackward0", "TraceBackward0", "UnfoldBackward0", "UnfoldBackward0_copy"),
    *("UnsafeSplitBackward0", "ViewBackward0", "MedianBackward1", "UnsafeViewBackward0"),
}


def saved_properties(schema: OpSchema, node_name: str) -> dict[str, property]:
    """Return the properties that show what an op's nodes keep, by PyTorch's names."""
    names, kinds, shown = NAMES | NAMES_OF.get(node_name, {}), dict(schema.saved_slots()), {}
    for slot in [param.name for param in schema.inputs] + schema.options + schema.kept + ["out"] * bool(schema.out):
        name = names.get(slot, slot)
        if isinstance(name, tuple):
            for number, one in enumerate(name):
                if one is not None:
                    shown.update(_one_of_several(slot, number, "_saved_" + one))
            continue
        shown["_saved_" + name] = runtime_support.saved_property(slot)
        if slot in kinds:
            shown["_raw_saved_" + name] = raw_saved_property(slot, kinds[slot], "_saved_" + name)
    if node_name in SHOW_SIZES and any(param.name == "input" for param in schema.shapes):
        shown["_saved_self_sym_sizes"] = runtime_support.saved_property("input_shape")
    return shown


def _one_of_several(slot: str, number: int, name: str) -> dict[str, property]:
    """Return the properties that show one of several outputs that a node keeps."""
    saved = runtime_support.saved_property(slot).fget
    return {name: property(lambda node: saved(node)[number]), "_raw" + name: raw_item_property(slot, number, saved)}
