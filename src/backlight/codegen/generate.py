"""Turn a declared op into straight-line code: a public function, and a node class with its backward methods.

A loop that interprets the declaration would cost two microseconds an op; generated code costs a fraction, and reads
like code by hand. `source_of(op)` shows it.

NOTE [Zero second derivatives]
relu's gradient depends on its input, with a derivative of 0 wherever it has one. Under create_graph such a gradient is
part of the graph, as in PyTorch, so that a second backward gives zeros instead of an error. Ops declare it
(`zero_derivative=("input",)`, or ("out",) if its node saves that and it is elementwise). It is used only under
create_graph, and only where a gradient would have no history.
"""

import linecache
import sys
from collections.abc import Sequence
from types import FunctionType

import numpy as np

from backlight import sizes
from backlight.codegen import runtime_support
from backlight.codegen.backward_source import backward_source
from backlight.codegen.complex_ops import complex_node_class
from backlight.codegen.complex_refusals import refusal
from backlight.codegen.declaration import Op
from backlight.codegen.decompositions import gradients_of_decomposition
from backlight.codegen.forward_source import function_source
from backlight.codegen.missing_kernels import BAREBONES, refuse_barebones
from backlight.codegen.op_schema import NAMES, OpSchema
from backlight.codegen.op_table import ARRAY_OPS, TENSOR_OPS
from backlight.codegen.packed_nodes import raw_item_property, raw_saved_property
from backlight.codegen.saved_values import SavedProperty
from backlight.dtypes import COMPLEX_NUMBERS
from backlight.engine.grad_mode import modes, recording
from backlight.engine.node import Edges, Gradients, Node, Output, new_node, next_sequence
from backlight.engine.provenance import USER_FILES, latest, user_frame
from backlight.engine.storage import InferenceStorage, Storage, new_storage
from backlight.engine.tensor_state import LEAF, TensorState, edge_of, new, storage_of, the_tensor_class, wrap, writable
from backlight.engine.views import MULTI, PLAIN, made_view
from backlight.kernels.memory_order import LAYOUTS, row_major


def generate(op: Op, variant: str, namespace: dict, laid_out: bool) -> FunctionType:
    """Compile what an op's public function stands for in `namespace`, and give the op its node class.

    Args:
        laid_out: give results the strides that `layout` declares: for arrays that do not all lie row by row.
    """
    schema = OpSchema(op)
    node_class = node_class_of(schema) if op.rules else None
    namespace.update(
        forward=op.forward,
        xp=np,
        np=np,
        modes=modes,
        recording=recording,
        new=new,
        Tensor=the_tensor_class(),
        Storage=Storage,
        InferenceStorage=InferenceStorage,
        new_storage=new_storage,
        LEAF=LEAF,
        storage_of=storage_of,
        edge_of=edge_of,
        NodeClass=node_class,
        ComplexNodeClass=complex_node_class(op) if node_class is not None else None,
        refusal=refusal,
        BAREBONES=BAREBONES,
        COMPLEX=COMPLEX_NUMBERS,
        refuse_barebones=refuse_barebones,
        Output=Output,
        next_sequence=next_sequence,
        getframe=sys._getframe,
        USER_FILES=USER_FILES,
        latest=latest,
        user_frame=user_frame,
        operands=runtime_support,
        sizes=sizes,
        ndarray=np.ndarray,
        writable=writable,
        made_view=made_view,
        PLAIN=PLAIN,
        MULTI=MULTI,
        wrap=wrap,
        returns=op.returns,
        taken=op.accepted_dtypes,
        row_major=row_major,
        layout=op.layout and LAYOUTS[op.layout],
        DEFAULTS=tuple(param.default for param in op.params),
    )
    source = function_source(schema, laid_out=laid_out)
    namespace.update(schema.inlined_globals)
    return compile_source(source, f"{op.name} {variant}{' laid out' if laid_out else ''}", namespace)["generated"]


Op.generate = generate


def generate_noting(op: Op, forward):
    """Return a function like an op's public one that is never intercepted, and calls `forward` in place of the op's."""
    namespace = {"__name__": "backlight.ops.generated", "op": op, "variant": "function"}
    generate(op, "noting", namespace, True)
    namespace["forward"] = forward
    return compile_source(function_source(OpSchema(op), called=True, laid_out=True), f"{op.name} noting", namespace)[
        "generated"
    ]


def node_class_of(schema: OpSchema) -> type:
    """Return the class of this op's nodes, made at the first call."""
    op = schema.op
    if getattr(op, "node_class", None) is None:
        op.node_class = make_node_class(schema)
    return op.node_class


def source_of(public) -> str:
    """Return the code that is generated for an op's public function and for its node's backward."""
    schema = OpSchema(public.op)
    return function_source(schema) + ("\n\n" + backward_source(schema, False) if public.op.rules else "")


def compile_source(source: str, title: str, namespace: dict) -> dict:
    """Execute generated source so that tracebacks can show its lines."""
    filename = f"<backlight {title}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), namespace)
    return namespace


def make_node_class(schema: OpSchema) -> type:
    """Return the class of this op's nodes."""
    op = schema.op
    body = {"__slots__": tuple(schema.slots()), "__module__": "backlight.engine.node", "op": op}
    if schema.several and op.outputs != "many":
        body["outputs"] = len(schema.output_numbers)
    body["saved_slots"] = schema.saved_slots()
    body.update(saved_properties(schema, op.node_name))
    namespace = {
        "operands": runtime_support,
        "with_zero_derivative": with_zero_derivative,
        "ARRAY_OPS": ARRAY_OPS,
        "TENSOR_OPS": TENSOR_OPS,
        "xp": np,
        "op": op,
        "gradients_of_decomposition": gradients_of_decomposition,
        **{f"rule_{number}": rule.function for number, rule in enumerate(op.rules)},
    }
    for source in (backward_source(schema, False), backward_source(schema, True)):
        namespace.update(schema.inlined_globals)
        compile_source(source, f"{op.name} {source[4 : source.index('(')]}", namespace)
    body["backward"], body["backward_graph"] = namespace["backward"], namespace["backward_graph"]
    body["free"] = runtime_support.free_saved
    body["freed_slots"] = schema.freed_slots()
    body["users"] = schema.places_of_users()
    return type(op.node_name, (Node,), body)


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
        shown["_saved_" + name] = SavedProperty(slot)
        if slot in kinds:
            shown["_raw_saved_" + name] = raw_saved_property(slot, kinds[slot], "_saved_" + name)
    if node_name in SHOW_SIZES and any(param.name == "input" for param in schema.shapes):
        shown["_saved_self_sym_sizes"] = SavedProperty("input_shape")
    return shown


def _one_of_several(slot: str, number: int, name: str) -> dict[str, property]:
    """Return the properties that show one of several outputs that a node keeps."""
    saved = SavedProperty(slot).fget
    return {name: property(lambda node: saved(node)[number]), "_raw" + name: raw_item_property(slot, number, saved)}


class ZeroDerivativeBackward0(Node):
    """Gives zeros to the inputs that a gradient was computed from."""

    __slots__ = ("metas",)

    def backward(self, grad: Gradients, edges: Edges, keep: bool):
        """Return zeros for each edge that wants a gradient."""
        return tuple([None if edge is None else np.zeros(*meta) for edge, meta in zip(edges, self.metas)])

    def backward_graph(self, grad: Gradients, edges: Edges):
        """Return zeros as tensors."""
        return tuple([None if zeros is None else wrap(zeros) for zeros in self.backward(grad, edges, True)])


def with_zero_derivative(found: Sequence, edges: Edges, table: Sequence[Sequence[bool]]):
    """Return gradients that belong to the graph: those without history depend on some inputs, with a derivative of 0.

    Args:
        table: for each gradient and each input, whether the gradient depends on it.
    """
    if not modes.grad_enabled or not any(_has_none(one) for one in found):
        return found
    return tuple([_depending(one, found, edges, named) if _has_none(one) else one for one, named in zip(found, table)])


def _has_none(grad: TensorState | None) -> bool:
    """Tell whether a gradient has no history; one of a batch (vmap) is left as it is."""
    return isinstance(grad, TensorState) and grad._edge is None and not hasattr(grad._data, "of_a_batch")


def _depending(grad: TensorState, found: Sequence, edges: Edges, named: Sequence[bool]):
    inputs = [
        (edge, (one._data.shape, one._data.dtype))
        for one, edge, wanted in zip(found, edges, named)
        if wanted and one is not None and edge is not None
    ]
    if not inputs:
        return grad
    edges, metas = zip(*inputs)
    made = wrap(writable(grad), new_node(ZeroDerivativeBackward0, edges, metas=metas), storage_of(grad))
    made._tangents = grad._tangents
    return made
