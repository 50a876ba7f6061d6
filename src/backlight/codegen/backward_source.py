"""The source of a node's methods: backward on arrays and backward on tensors."""

from backlight.codegen.declaration import ARRAYS, OPTIONAL
from backlight.codegen.op_schema import NAMES, OpSchema
from backlight.errors import BacklightError


def backward_source(schema: OpSchema, graph: bool) -> str:
    """Return the source of a node's backward, on arrays or (graph) on tensors."""
    op = schema.op
    head = "def backward_graph(node, grad, edges):" if graph else "def backward(node, grad, edges, keep):"
    if graph and op.decomposed is not None:
        call = "gradients_of_decomposition(op, node, grad, edges)"
        lines = [f"return {_with_zero_derivative(schema, call)}"]
    else:
        lines = (
            _unpack_lines(schema, graph)
            + _edge_lines(schema)
            + _rule_lines(schema, graph)
            + _finish_lines(schema, graph)
        )
    return "\n".join([head, *("    " + line for line in lines)]) + "\n"


def _unpack_lines(schema: OpSchema, graph: bool) -> list[str]:
    op, lines = schema.op, []
    for p in schema.inputs:
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
            lines += [f"{name} = node.{name}", f"if {name} is None:"]
            lines += [f"    {name} = operands.check_saved(node, {name!r})"]
            lines += [
                f"storage = {name}._storage",
                f"if storage is not None and storage.version != node.{name}_version:",
            ]
            lines += [f"    operands.check_saved(node, {name!r})"]
            if not graph:
                lines += [f"{name} = {name}._data"]
            elif p in schema.differentiable:
                place = schema.differentiable.index(p)
                lines += [f"{name} = operands.still_attached({name}, node.edges[{place}])"]
    if schema.out:
        if schema.several:
            lines += [f"out = operands.check_saved_outputs(node, {graph})"]
        else:
            lines += ["out = node.out", "if out is None or node.out_storage.version != node.out_version:"]
            lines += ["    operands.check_saved(node, 'out')"]
            lines += ["out = operands.output_tensor(node)"] if graph else []
    lines += [f"{name} = node.{name}" for name in schema.options]
    if schema.kept:
        first = schema.kept[0]
        lines += [f"{name} = node.{name}" for name in schema.kept]
        if not schema.inputs and not schema.out:
            lines += [f"if {first} is None:", f"    operands.check_saved(node, {first!r})"]
        lines += [f"{name} = operands.constant({name})" for name in schema.kept if graph]
    lines += [f"{p.name}_shape = node.{p.name}_shape" for p in schema.shapes]
    lines += [f"{p.name}_dtype = node.{p.name}_dtype" for p in schema.dtypes]
    if op.outputs == "many":
        lines += ["if node.outputs == 1:", "    grad = [grad]"]
    return lines


def _edge_lines(schema: OpSchema) -> list[str]:
    if any(p.kind == ARRAYS for p in schema.differentiable):
        return []
    return [f"{''.join(f'e_{p.name}, ' for p in schema.differentiable)}= edges"]


def _rule_lines(schema: OpSchema, graph: bool) -> list[str]:
    lines = []
    ops = "TENSOR_OPS" if graph else "ARRAY_OPS"
    rules = list(enumerate(schema.op.rules))
    if graph:  # in the order of PyTorch's names, which `create_graph` and `__torch_dispatch__` show
        rules.sort(key=lambda item: NAMES.get(item[1].inputs[0], item[1].inputs[0]))
    for number, rule in rules:
        listed = len(rule.inputs) == 1 and schema.kinds[rule.inputs[0]] == ARRAYS
        needs = (
            "tuple(edge is not None for edge in edges)"
            if listed
            else ("(" + "".join(f"e_{name} is not None, " for name in rule.inputs) + ")")
        )
        values = {"ops": ops, "needs": needs}
        arguments = {name: values.get(name, name) for name in rule.parameters}
        call = f"rule_{number}({', '.join(arguments.values())})"
        if not listed:
            call = schema.inlined(rule.function, arguments, f"rule_{number}") or call
        if listed:
            lines += [f"grads = {call}"]
        elif len(rule.inputs) == 1:
            name = rule.inputs[0]
            lines += [f"g_{name} = ({call}) if e_{name} is not None else None"]
        else:
            targets = ", ".join(f"g_{name}" for name in rule.inputs)
            lines += [f"{targets} = {call}"]
    return lines


def _finish_lines(schema: OpSchema, graph: bool) -> list[str]:
    lines = []
    if schema.op.promote:
        restore = "operands.restore_tensor" if graph else "operands.restore"
        lines += ["if node.broadcast_restore is not None:"]
        for number, p in enumerate(schema.differentiable):
            lines += [f"    g_{p.name} = {restore}(g_{p.name}, node.broadcast_restore[{number}])"]
    if not graph and schema.freed_slots():
        lines += ["if not keep:", f"    {' = '.join(f'node.{name}' for name in schema.freed_slots())} = None"]
    if any(p.kind == ARRAYS for p in schema.differentiable):
        rest = [p for p in schema.differentiable if p.kind != ARRAYS]
        if rest:
            raise BacklightError(f"{schema.op.name}: a list of arrays must be the only differentiable input")
        return lines + ["return grads"]
    found = f"({''.join(f'g_{p.name}, ' for p in schema.differentiable)})"
    return [*lines, f"return {_with_zero_derivative(schema, found) if graph else found}"]


def _with_zero_derivative(schema: OpSchema, found: str) -> str:
    """Return an expression for gradients that belong to the graph: NOTE [Zero second derivatives]."""
    if schema.op.zero_derivative == ("out",):
        return f"with_zero_derivative({found}, (operands.own_edge(node),), ((True,),))"
    names, on = [p.name for p in schema.differentiable], schema.op.zero_derivative
    table = tuple(
        [tuple([name in (on.get(own, ()) if isinstance(on, dict) else on) for name in names]) for own in names]
    )
    return f"with_zero_derivative({found}, edges, {table})" if on else found
