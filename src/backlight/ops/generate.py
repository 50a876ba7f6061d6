"""Turns a declared op into straight-line code: a public function, and a node class with two backward methods.

A loop that interprets the declaration would cost two microseconds an op; what is written here costs a fraction, and
reads like code by hand. `source_of(op)` shows it.
"""

import linecache
import sys

import numpy as np

from backlight.errors import BacklightError
from backlight.graph.modes import modes, recording
from backlight.graph.node import Node, Output, next_sequence
from backlight.graph.provenance import USER_FILES, user_frame
from backlight.graph.state import LEAF, edge_of, new, storage_of, the_tensor_class, wrap, writable
from backlight.graph.storage import InferenceStorage, Storage
from backlight.ops import operands
from backlight.ops.composites import asks, gradients_of_composite
from backlight.ops.inline import expression_of
from backlight.ops.declare import ARRAY, ARRAYS, OPTION, OPTIONAL, Op, generator
from backlight.ops.tables import ARRAY_OPS, TENSOR_OPS
from backlight.ops.views import MULTI, PLAIN, made_view

SPECIAL = ("grad", "out", "ops", "needs", "xp")


class Plan:
    """What a node of this op keeps, worked out from what its rules ask for."""

    def __init__(self, op: Op):
        self.op = op
        self.inlined_globals: dict = {}
        self.arrays = op.arrays
        self.kinds = {param.name: param.kind for param in op.params}
        self.differentiable = [p for p in self.arrays if any(p.name in rule.inputs for rule in op.rules)]
        wanted = {name for rule in op.rules for name in rule.wants}
        if op.composite is not None:
            wanted |= {param.name for param in op.params} | set(asks(op.composite))
        self.out = "out" in wanted
        self.inputs = [p for p in self.arrays if p.name in wanted]
        self.options = [p.name for p in op.params if p.kind == OPTION and p.name in wanted]
        self.kept = [name for name in op.keeps if name in wanted]
        self.shapes = [p for p in self.arrays if f"{p.name}_shape" in wanted]
        self.dtypes = [p for p in self.arrays if f"{p.name}_dtype" in wanted]
        known = {p.name for p in op.params} | set(op.keeps) | set(SPECIAL)
        known |= {f"{p.name}_{what}" for p in self.arrays for what in ("shape", "dtype")}
        if wanted - known:
            raise BacklightError(f"derivatives of {op.name} ask for {sorted(wanted - known)}, which the node cannot keep")
        self.several = op.outputs != 1
        self.output_numbers = None
        if self.several:
            everything = () if op.outputs == "many" else tuple(range(op.outputs))
            self.output_numbers = everything if op.differentiable is None else op.differentiable

    @property
    def single_grad(self) -> bool:
        """Whether the node has one differentiable output."""
        return not self.several or (self.output_numbers is not None and len(self.output_numbers) == 1)

    def inlined(self, function, arguments: dict[str, str], prefix: str) -> str | None:
        """Return a one-expression function as source, and note the globals that the source needs."""
        found = expression_of(function, arguments, prefix)
        if found is None:
            return None
        self.inlined_globals.update(found[1])
        return found[0]

    def slots(self) -> list[str]:
        """Names of the slots of the node class."""
        names = ["fix"] if self.op.promote else []
        for param in self.inputs:
            names += [param.name, param.name + "_version"]
        if self.out:
            names += ["out", "out_storage", "out_version"]
        names += self.options + self.kept
        names += [p.name + "_shape" for p in self.shapes] + [p.name + "_dtype" for p in self.dtypes]
        if self.op.outputs == "many":
            names.append("outputs")
        return names


@generator
def generate(op: Op, flavour: str, namespace: dict):
    """Compile an op's public function in `namespace`, and give the op its node class."""
    plan = Plan(op)
    node_class = getattr(op, "node_class", None)
    if node_class is None and op.rules:
        node_class = op.node_class = make_node_class(plan)
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
        LEAF=LEAF,
        storage_of=storage_of,
        edge_of=edge_of,
        NodeClass=node_class,
        Output=Output,
        next_sequence=next_sequence,
        getframe=sys._getframe,
        USER_FILES=USER_FILES,
        user_frame=user_frame,
        operands=operands,
        ndarray=np.ndarray,
        writable=writable,
        made_view=made_view,
        PLAIN=PLAIN,
        MULTI=MULTI,
        wrap=wrap,
        returns=op.returns,
        DEFAULTS=tuple(param.default for param in op.params),
    )
    source = function_source(plan)
    namespace.update(plan.inlined_globals)
    return compile_source(source, f"{op.name} {flavour}", namespace)["generated"]


def source_of(public) -> str:
    """Return the code that is generated for an op's public function and for its node's backward."""
    plan = Plan(public.op)
    return function_source(plan) + ("\n\n" + backward_source(plan, False) if public.op.rules else "")


def compile_source(source: str, title: str, namespace: dict) -> dict:
    """Execute generated source so that tracebacks can show its lines."""
    filename = f"<backlight {title}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), namespace)
    return namespace


# --- the public function -------------------------------------------------------------------------------------------


def signature(op: Op) -> str:
    """Return the public signature's parameters as source."""
    parts, starred = [], False
    for number, param in enumerate(op.params):
        if param.keyword_only and not starred:
            parts.append("*")
            starred = True
        parts.append(param.name + (f"=DEFAULTS[{number}]" if param.has_default else ""))
    return ", ".join(parts)


def function_source(plan: Plan) -> str:
    """Return the source of the public function: operands, forward, output, and the node if one is recorded."""
    op = plan.op
    lines = [f"def generated({signature(op)}):"]
    lines += ["    " + line for line in _operand_lines(plan) + _forward_lines(plan) + _output_lines(plan)]
    return "\n".join(lines) + "\n"


def _operand_lines(plan: Plan) -> list[str]:
    """Read the data and the edge of each input; take the slow path where one is no tensor."""
    op = plan.op
    singles = [p for p in plan.arrays if p.kind == ARRAY]
    reads = [f"d_{p.name} = {p.name}._data" for p in singles]
    reads += [f"e_{p.name} = {p.name}._edge" for p in singles if p in plan.differentiable]
    lines = []
    if singles:
        names = ", ".join(p.name for p in singles)
        unpack = names + ("," if len(singles) == 1 else "")
        lines += ["try:", *("    " + read for read in reads), "except AttributeError:"]
        lines += [f"    found = operands.coerce(op, flavour, ({unpack}))"]
        lines += ["    if found is NotImplemented:", "        return NotImplemented", f"    {unpack} = found"]
        lines += ["    " + read for read in reads]
    for p in plan.arrays:
        if p.kind == OPTIONAL:
            lines += [f"d_{p.name} = None if {p.name} is None else operands.optional_data(op, {p.name!r}, {p.name})"]
            if p in plan.differentiable:
                lines += [f"e_{p.name} = None if {p.name} is None else {p.name}._edge"]
        elif p.kind == ARRAYS:
            lines += [f"{p.name} = operands.tensor_list(op, {p.name})"]
            lines += [f"d_{p.name} = [tensor._data for tensor in {p.name}]"]
    if op.view:
        first = plan.arrays[0].name
        lines += [f"if d_{first}.__class__ is not ndarray:", f"    d_{first} = writable({first})"]
    if op.promote:
        lines += _promotion_lines(plan, singles)
    return lines


def _promotion_lines(plan: Plan, singles) -> list[str]:
    names = [f"d_{p.name}" for p in singles]
    tests = [f"{a}.dtype is not {b}.dtype" for a, b in zip(names, names[1:])]
    if plan.op.promote == "float":
        tests.append(f"{names[0]}.dtype.kind != 'f'")
    if any(p.kind == OPTIONAL for p in plan.arrays):
        names += [f"d_{p.name}" for p in plan.arrays if p.kind == OPTIONAL]
        listed = ", ".join(names)
        return ["mixed = True", f"{listed} = operands.unify_present(op, ({listed}))"]
    if not tests:
        return ["mixed = False"]
    listed = ", ".join(names) + ("," if len(names) == 1 else "")
    return ["mixed = False", f"if {' or '.join(tests)}:", f"    {listed} = operands.unify(op, ({listed}))", "    mixed = True"]


def _forward_lines(plan: Plan) -> list[str]:
    """Call the forward; explain shapes that do not broadcast."""
    op = plan.op
    values = [p.name if p.kind == OPTION else f"d_{p.name}" for p in op.params]
    arguments = ", ".join(
        f"{p.name}={value}" if p.keyword_only else value for p, value in zip(op.params, values)
    )
    results = "data" + "".join(f", {name}" for name in op.keeps)
    names = dict(zip((param.name for param in op.params), values), xp="xp")
    call = plan.inlined(op.forward, names, "forward") or f"forward(xp, {arguments})"
    lines = ["try:", f"    {results} = {call}", "except RuntimeWarning:"]
    lines += [f"    {results} = operands.quietly(forward, {arguments})"]
    if op.promote:
        listed = "".join(f"d_{p.name}, " for p in plan.arrays)
        lines += ["except ValueError as problem:", f"    raise operands.broadcast_problem(problem, ({listed})) from None"]
    return lines


def _output_lines(plan: Plan) -> list[str]:
    op = plan.op
    if plan.several:
        make = ["outs = [wrap(part) for part in data]"]
        if op.view:
            make = [f"outs = [made_view({plan.arrays[0].name}, part, MULTI) for part in data]"]
        finish = "return returns(*outs)" if op.returns is not None else "return tuple(outs)"
    else:
        make = ["out = new(Tensor)", "out._data = data"]
        if op.view:
            first = plan.arrays[0].name
            make = [f"out = made_view({first}, data, PLAIN)"]
        else:
            make += ["out._storage = None", "out._view = None"]
        finish = "return out"
    lines = list(make)
    record = _record_lines(plan)
    if record:
        lines += [f"if {_any_edge(plan)} and (recording.everywhere or modes.grad_enabled):"]
        lines += ["    " + line for line in record]
        lines += ["else:"]
    body = "    " if record else ""
    if plan.several:
        lines += [body + "operands.unrecorded_outputs(outs)"]
    else:
        lines += [body + "out._edge = None"]
        if not op.view:
            lines += [body + "if modes.inference:", body + "    out._storage = InferenceStorage()"]
        else:
            lines += [body + "operands.unrecorded_view(out)"]
    return lines + [finish]


def _any_edge(plan: Plan) -> str:
    parts = []
    for p in plan.differentiable:
        if p.kind == ARRAYS:
            parts.append(f"operands.any_edge({p.name})")
        else:
            parts.append(f"e_{p.name} is not None")
    return f"({' or '.join(parts)})"


def _record_lines(plan: Plan) -> list[str]:
    """Make the node: edges, provenance, what it keeps."""
    op = plan.op
    if not op.rules:
        return []
    lines, edges = [], []
    for p in plan.differentiable:
        if p.kind == ARRAYS:
            edges.append(f"*[edge_of(tensor) for tensor in {p.name}]")
        else:
            lines += [f"if e_{p.name} is LEAF:", f"    e_{p.name} = {p.name}"]
            edges.append(f"e_{p.name}")
    lines += ["node = NodeClass()", f"node.edges = ({', '.join(edges)},)", "node.sequence = next_sequence()"]
    lines += ["frame = getframe(1)", "code = frame.f_code", "if code.co_filename not in USER_FILES:"]
    lines += ["    frame = user_frame(frame)", "    code = frame.f_code"]
    lines += ["node.code = code", "node.lasti = frame.f_lasti", "node.extra = None"]
    lines += _keep_lines(plan)
    if not plan.several:
        lines += ["out._edge = node"]
    elif op.outputs == "many":
        lines += ["node.outputs = len(outs)", "operands.link_outputs(node, outs)"]
    elif plan.single_grad:
        lines += ["for other_out in outs:", "    other_out._edge = None", f"outs[{plan.output_numbers[0]}]._edge = node"]
    else:
        lines += [f"operands.link_outputs(node, outs, {plan.output_numbers!r})"]
    return lines


def _keep_lines(plan: Plan) -> list[str]:
    op, lines = plan.op, []
    if op.promote:
        tensors = ", ".join(p.name for p in plan.differentiable)
        singles = [p.name for p in plan.arrays]
        if len(singles) == 1:
            lines += [f"node.fix = operands.restoration(data, ({tensors},)) if mixed else None"]
        else:
            equal = " == ".join(f"d_{n}.shape" for n in singles if plan.kinds[n] == ARRAY)
            apart = "True" if any(plan.kinds[n] == OPTIONAL for n in singles) else f"mixed or not ({equal})"
            lines += [f"node.fix = operands.restoration(data, ({tensors},)) if {apart} else None"]
    for p in plan.inputs:
        name = p.name
        if p.kind == ARRAYS:
            lines += [f"node.{name} = {name}", f"node.{name}_version = [operands.version_of(tensor) for tensor in {name}]"]
        elif p.kind == OPTIONAL:
            lines += [f"node.{name} = {name}"]
            lines += [f"node.{name}_version = 0 if {name} is None else operands.version_of({name})"]
        else:
            lines += [f"node.{name} = {name}", f"storage = {name}._storage"]
            lines += [f"node.{name}_version = 0 if storage is None else storage.version"]
    if plan.out:
        if plan.several:
            lines += ["node.out = data", "node.out_storage = [storage_of(one) for one in outs]"]
            lines += ["node.out_version = [0] * len(outs)"]
        elif op.view:
            lines += ["node.out = data", "node.out_storage = out._storage", "node.out_version = out._storage.version"]
        else:
            lines += ["node.out = data", "node.out_storage = out._storage = Storage()", "node.out_version = 0"]
    lines += [f"node.{name} = {name}" for name in plan.options + plan.kept]
    for p in plan.shapes:
        value = f"d_{p.name}.shape"
        if p.kind == ARRAYS:
            value = f"[array.shape for array in d_{p.name}]"
        elif p.kind == OPTIONAL:
            value = f"None if d_{p.name} is None else d_{p.name}.shape"
        lines += [f"node.{p.name}_shape = {value}"]
    lines += [f"node.{p.name}_dtype = {p.name}._data.dtype" for p in plan.dtypes]
    return lines


# --- the node class --------------------------------------------------------------------------------------------------


def make_node_class(plan: Plan) -> type:
    """Return the class of this op's nodes."""
    op = plan.op
    body = {"__slots__": tuple(plan.slots()), "__module__": "backlight.graph.node", "op": op}
    if plan.several and op.outputs != "many":
        body["outputs"] = len(plan.output_numbers)
    saved = {_torch_name(name): name for name in [p.name for p in plan.inputs] + plan.options + plan.kept}
    if plan.out:
        saved["_saved_result"] = "out"
    body["saved_names"] = saved
    body["saved_value"] = operands.saved_value
    namespace = {
        "operands": operands,
        "ARRAY_OPS": ARRAY_OPS,
        "TENSOR_OPS": TENSOR_OPS,
        "xp": np,
        "op": op,
        "gradients_of_composite": gradients_of_composite,
        "Output": Output,
        "ndarray": np.ndarray,
        "add": np.add,
        **{f"rule_{number}": rule.function for number, rule in enumerate(op.rules)},
    }
    for source in (backward_source(plan, False), backward_source(plan, True), walk_source(plan)):
        namespace.update(plan.inlined_globals)
        compile_source(source, f"{op.name} {source[4 : source.index('(')]}", namespace)
    for method in ("backward", "backward_graph", "walk"):
        if method in namespace:
            body[method] = namespace[method]
    body["free"] = operands.free_saved
    body["freed_slots"] = _droppable(plan)
    return type(op.node_name, (Node,), body)


def _torch_name(name: str) -> str:
    return "_saved_" + {"input": "self", "out": "result"}.get(name, name)


def _droppable(plan: Plan) -> tuple[str, ...]:
    names = [p.name for p in plan.inputs] + plan.kept
    return tuple(names + (["out", "out_storage"] if plan.out else []))


def backward_source(plan: Plan, graph: bool) -> str:
    """Return the source of a node's backward, on arrays or (graph) on tensors."""
    op = plan.op
    head = "def backward_graph(node, grad, edges):" if graph else "def backward(node, grad, edges, keep):"
    if graph and op.composite is not None:
        lines = ["return gradients_of_composite(op, node, grad, edges)"]
    else:
        lines = _unpack_lines(plan, graph) + _edge_lines(plan) + _rule_lines(plan, graph) + _finish_lines(plan, graph)
    return "\n".join([head, *("    " + line for line in lines)]) + "\n"


def walk_source(plan: Plan) -> str:
    """Return the source of `walk`: backward on arrays that adds its gradients to the walk's buffers itself.

    This is the path of an ordinary backward; it saves a tuple and a loop a node (see Node.walk).
    """
    if any(p.kind == ARRAYS for p in plan.differentiable):
        return "def nothing():\n    pass\n"
    head = "def walk(node, grad, keep, buffers, owned, add_to_output):"
    lines = ["edges = node.edges", *_unpack_lines(plan, False), *_edge_lines(plan), *_rule_lines(plan, False)]
    lines += _finish_lines(plan, False)[:-1]
    for p in plan.differentiable:
        end, grad = f"e_{p.name}", f"g_{p.name}"
        lines += [f"if {grad} is not None:", f"    if {end}.__class__ is Output:"]
        lines += [f"        add_to_output({end}.node, {end}.number, {grad})", "    else:"]
        lines += [f"        present = buffers[{end}]", "        if present is None:", f"            buffers[{end}] = {grad}"]
        lines += [f"        elif {end} in owned:", f"            add(present, {grad}, present)", "        else:"]
        lines += [f"            total = buffers[{end}] = present + {grad}"]
        lines += ["            if total.__class__ is ndarray:", f"                owned.add({end})"]
    return "\n".join([head, *("    " + line for line in lines)]) + "\n"


def _unpack_lines(plan: Plan, graph: bool) -> list[str]:
    op, lines = plan.op, []
    for p in plan.inputs:
        name = p.name
        if p.kind == ARRAYS:
            lines += [f"{name} = operands.check_saved_list(node, {name!r})"]
            if not graph:
                lines += [f"{name} = [tensor._data for tensor in {name}]"]
        elif p.kind == OPTIONAL:
            lines += [f"{name} = node.{name}", f"if {name} is not None:"]
            lines += [f"    operands.check_saved(node, {name!r})"]
            lines += [] if graph else [f"    {name} = {name}._data"]
        else:
            lines += [f"{name} = node.{name}", f"if {name} is None:", f"    operands.check_saved(node, {name!r})"]
            lines += [f"storage = {name}._storage", f"if storage is not None and storage.version != node.{name}_version:"]
            lines += [f"    operands.check_saved(node, {name!r})"]
            lines += [] if graph else [f"{name} = {name}._data"]
    if plan.out:
        if plan.several:
            lines += [f"out = operands.check_saved_outputs(node, {graph})"]
        else:
            lines += ["out = node.out", "if out is None or node.out_storage.version != node.out_version:"]
            lines += ["    operands.check_saved(node, 'out')"]
            lines += ["out = operands.output_tensor(node)"] if graph else []
    lines += [f"{name} = node.{name}" for name in plan.options]
    if plan.kept:
        first = plan.kept[0]
        lines += [f"{name} = node.{name}" for name in plan.kept]
        if not plan.inputs and not plan.out:
            lines += [f"if {first} is None:", f"    operands.check_saved(node, {first!r})"]
        lines += [f"{name} = operands.constant({name})" for name in plan.kept if graph]
    lines += [f"{p.name}_shape = node.{p.name}_shape" for p in plan.shapes]
    lines += [f"{p.name}_dtype = node.{p.name}_dtype" for p in plan.dtypes]
    if op.outputs == "many":
        lines += ["if node.outputs == 1:", "    grad = [grad]"]
    return lines


def _edge_lines(plan: Plan) -> list[str]:
    if any(p.kind == ARRAYS for p in plan.differentiable):
        return []
    return [f"{''.join(f'e_{p.name}, ' for p in plan.differentiable)}= edges"]


def _rule_lines(plan: Plan, graph: bool) -> list[str]:
    lines = []
    ops = "TENSOR_OPS" if graph else "ARRAY_OPS"
    for number, rule in enumerate(plan.op.rules):
        listed = len(rule.inputs) == 1 and plan.kinds[rule.inputs[0]] == ARRAYS
        needs = "tuple(edge is not None for edge in edges)" if listed else (
            "(" + "".join(f"e_{name} is not None, " for name in rule.inputs) + ")"
        )
        values = {"ops": ops, "needs": needs}
        arguments = {name: values.get(name, name) for name in rule.wants}
        call = f"rule_{number}({', '.join(arguments.values())})"
        if not listed:
            call = plan.inlined(rule.function, arguments, f"rule_{number}") or call
        if listed:
            lines += [f"grads = {call}"]
        elif len(rule.inputs) == 1:
            name = rule.inputs[0]
            lines += [f"g_{name} = {call} if e_{name} is not None else None"]
        else:
            targets = ", ".join(f"g_{name}" for name in rule.inputs)
            lines += [f"{targets} = {call}"]
    return lines


def _finish_lines(plan: Plan, graph: bool) -> list[str]:
    lines = []
    if plan.op.promote:
        restore = "operands.restore_tensor" if graph else "operands.restore"
        lines += ["if node.fix is not None:"]
        for number, p in enumerate(plan.differentiable):
            lines += [f"    g_{p.name} = {restore}(g_{p.name}, node.fix[{number}])"]
    if not graph and _droppable(plan):
        lines += ["if not keep:", f"    {' = '.join(f'node.{name}' for name in _droppable(plan))} = None"]
    if any(p.kind == ARRAYS for p in plan.differentiable):
        rest = [p for p in plan.differentiable if p.kind != ARRAYS]
        if rest:
            raise BacklightError(f"{plan.op.name}: a list of arrays must be the only differentiable input")
        return lines + ["return grads"]
    return lines + [f"return ({''.join(f'g_{p.name}, ' for p in plan.differentiable)})"]
