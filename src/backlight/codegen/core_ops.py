"""The ops that the compiled core runs, and what it must know of each (csrc/core/op.c).

An op whose forward and derivatives are programs (codegen/bytecode.py) is called through an OpFunction, which computes
and records plain small tensors in C, exactly as the generated Python code would, and calls that code otherwise.
"""

from backlight.codegen.bytecode import Program, Untranslatable, program_of
from backlight.codegen.declaration import ARRAY, OPTION, Op
from backlight.codegen.generate import node_class_of
from backlight.codegen.op_schema import OpSchema
from backlight.codegen.runtime_support import NOT_SAVED
from backlight.dispatch.anomaly_checks import nonfinite_node
from backlight.dispatch.forward_traceback import say_where
from backlight.engine.accumulate_grad import add_to_grad
from backlight.engine.grad_mode import modes, recording
from backlight.engine.node import Node, Output
from backlight.engine.provenance import USER_FILES, latest, user_frame
from backlight.engine.storage import Storage
from backlight.engine.tensor_state import LEAF, TensorState
from backlight.kernels.native import core

MOST_INPUTS = 4
GRAD, OUT = -1, -2  # sources of a derivative that are no inputs


def start(tensor_class: type) -> None:
    """Give the core the classes and functions that it works with."""
    if core is not None:
        core.core_setup(
            {
                "Tensor": tensor_class,
                "TensorState": TensorState,
                "Node": Node,
                "Output": Output,
                "Storage": Storage,
                "LEAF": LEAF,
                "NOT_SAVED": NOT_SAVED,
                "latest": latest,
                "recording": recording,
                "modes": modes,
                "USER_FILES": USER_FILES,
                "user_frame": user_frame,
                "add_to_grad": add_to_grad,
                "say_where": say_where,
                "prepare": prepare,
                "nonfinite_node": nonfinite_node,
            }
        )


def prepare(op: Op) -> tuple | None:
    """Return what the core must know of an op, or None if it cannot run it."""
    if op.view or op.outputs != 1 or op.residuals or any(param.kind not in (ARRAY, OPTION) for param in op.params):
        return None
    schema = OpSchema(op)
    if len(schema.arrays) > MOST_INPUTS or schema.kept or schema.shapes or schema.dtypes or op.decomposed is not None:
        return None
    if (op.promote is None and len(schema.arrays) > 1) or op.dims is not None:
        return None
    defaults = {p.name: p.default for p in op.params if p.kind == OPTION}
    if any(isinstance(d, str) for d in defaults.values()) or not all(
        p.has_default for p in op.params if p.name in defaults
    ):
        return None
    names = [p.name for p in schema.arrays]
    try:
        arguments = {**{name: name for name in names}, **defaults}
        forward = _in_order(program_of(op.forward, arguments, core.INSTRUCTIONS), names)
        edges = tuple((names.index(p.name), _derivative(op, p.name, names, defaults)) for p in schema.differentiable)
    except Untranslatable:
        return None
    saved = tuple(
        (names.index(p.name), _bits(schema.users_of(p), schema), p.name, p.name + "_version") for p in schema.inputs
    )
    constants = tuple((name, defaults[name]) for name in schema.options)
    node_class = node_class_of(schema) if op.rules else None
    return len(names), forward, node_class, edges, saved, schema.out, op.promote is not None, constants


def _in_order(program: Program, names: list[str]) -> tuple:
    """Return a forward's program with its sources in the order of the op's inputs."""
    missing = [name for name in names if name not in program.sources]
    if missing:
        raise Untranslatable(f"{missing} are not read")
    place = {number: names.index(name) for number, name in enumerate(program.sources)}
    steps = bytearray(program.steps)
    for at in range(0, len(steps), 5):
        for word in range(at + 2, at + 5):
            steps[word] = place.get(steps[word], steps[word])
    return len(names), bytes(steps), program.constants


def _derivative(op: Op, name: str, names: list[str], defaults: dict):
    """Return the derivative for one input: (numbers of its sources, program), or None if it is the identity."""
    rule = next(rule for rule in op.rules if name in rule.inputs)
    if len(rule.inputs) > 1 or "xp" in rule.parameters:
        raise Untranslatable("a rule for several inputs")
    arguments = {name: defaults.get(name, name) for name in rule.parameters}
    program = program_of(rule.function, arguments, core.INSTRUCTIONS)
    if program.instructions == ("COPY",) and program.sources == ("grad",):
        return None
    numbers = {"grad": GRAD, "out": OUT, **{one: number for number, one in enumerate(names)}}
    return tuple(numbers[source] for source in program.sources), program.encoded()


def _bits(users: list[str] | None, schema: OpSchema) -> int:
    """Return which edges need a saved input, as bits; 0 stands for all of them."""
    if users is None:
        return 0
    return sum(1 << number for number, p in enumerate(schema.differentiable) if p.name in users)
