"""Turn a declared op into straight-line code: a public function, and a node class with its backward methods.

A loop that interprets the declaration would cost two microseconds an op; generated code costs a fraction, and reads
like code by hand. `source_of(op)` shows it.
"""

import linecache
import sys
from types import FunctionType

import numpy as np

from backlight import sizes
from backlight.codegen import runtime_support
from backlight.codegen.backward_source import backward_source
from backlight.codegen.declaration import Op, generator
from backlight.codegen.decompositions import gradients_of_decomposition
from backlight.codegen.forward_source import function_source
from backlight.codegen.op_schema import OpSchema
from backlight.codegen.op_table import ARRAY_OPS, TENSOR_OPS
from backlight.codegen.saved_attributes import saved_properties
from backlight.codegen.zero_second_derivative import with_zero_derivative
from backlight.engine.grad_mode import modes, recording
from backlight.engine.node import Node, Output, next_sequence
from backlight.engine.provenance import USER_FILES, latest, user_frame
from backlight.engine.storage import InferenceStorage, Storage, new_storage
from backlight.engine.tensor_state import LEAF, edge_of, new, storage_of, the_tensor_class, wrap, writable
from backlight.engine.views import MULTI, PLAIN, made_view


@generator
def generate(op: Op, flavour: str, namespace: dict) -> FunctionType:
    """Compile what an op's public function stands for in `namespace`, and give the op its node class."""
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
        taken=op.taken,
        DEFAULTS=tuple(param.default for param in op.params),
    )
    source = function_source(schema)
    namespace.update(schema.inlined_globals)
    return compile_source(source, f"{op.name} {flavour}", namespace)["generated"]


def generate_noting(op: Op, forward):
    """Return a function like an op's public one that is never intercepted, and calls `forward` in place of the op's."""
    namespace = {"__name__": "backlight.ops.generated", "op": op, "flavour": "function"}
    generate(op, "noting", namespace)
    namespace["forward"] = forward
    return compile_source(function_source(OpSchema(op), called=True), f"{op.name} noting", namespace)["generated"]


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
