"""The source of an op's public function: operands, forward, output, and the node if one is recorded."""

from itertools import pairwise

from backlight.codegen.declaration import ARRAY, ARRAYS, HOLOMORPHIC, OPTION, OPTIONAL, Op
from backlight.codegen.missing_kernels import REFUSING
from backlight.codegen.op_schema import OpSchema
from backlight.kernels.native import core

# NumPy's numbers of complex dtypes: a third cheaper to compare than the kind
IS_COMPLEX = {
    ARRAY: "{0}.dtype.num in COMPLEX",
    OPTIONAL: "{0} is not None and {0}.dtype.num in COMPLEX",
    ARRAYS: "any([array.dtype.num in COMPLEX for array in {0}])",
}
CALLER = 1 if core is not None else 2  # frames between the generated function and the public one's caller


def signature(op: Op) -> str:
    """Return the public signature's parameters as source."""
    parts, starred = [], False
    for number, param in enumerate(op.params):
        if param.keyword_only and not starred:
            parts.append("*")
            starred = True
        parts.append(param.name + (f"=DEFAULTS[{number}]" if param.has_default else ""))
    return ", ".join(parts)


def function_source(schema: OpSchema, called: bool = False, laid_out: bool = False) -> str:
    """Return the source of the public function: operands, forward, output, and the node if one is recorded.

    Args:
        called: call the forward, even one that could be inlined.
        laid_out: lay the results out in memory, see NOTE [Memory order of results].
    """
    op = schema.op
    lines = [f"def generated({signature(op)}):"]
    body = _operand_lines(schema) + _forward_lines(schema, called)
    body += (_layout_lines(schema) if laid_out else []) + _output_lines(schema)
    lines += ["    " + line for line in body]
    return "\n".join(lines) + "\n"


def _operand_lines(schema: OpSchema) -> list[str]:
    """Read the data and the edge of each input; take the slow path where one is no tensor."""
    op = schema.op
    singles = [p for p in schema.arrays if p.kind == ARRAY]
    reads = [f"d_{p.name} = {p.name}._data" for p in singles]
    reads += [f"e_{p.name} = {p.name}._edge" for p in singles if p in schema.differentiable]
    lines = []
    for p in op.params:
        if p.number:
            lines += [
                f"if {p.name}.__class__ is Tensor:",
                f"    {p.name} = operands.number_given(op, {p.name!r}, {p.name})",
            ]
    if singles:
        names = ", ".join(p.name for p in singles)
        unpack = names + ("," if len(singles) == 1 else "")
        lines += _number_lines(op, singles)
        lines += ["try:", *("    " + read for read in reads), "except AttributeError:"]
        lines += [f"    found = operands.coerce(op, variant, ({unpack}))"]
        lines += ["    if found is NotImplemented:", "        return NotImplemented", f"    {unpack} = found"]
        lines += ["    " + read for read in reads]
        if op.dims is not None:
            lines += [f"if not ({' == '.join(f'd_{p.name}.ndim' for p in singles)} == {op.dims}):"]
            lines += [f"    return op.for_other_dims({names})"]
    for p in schema.arrays:
        if p.kind == OPTIONAL:
            lines += [f"d_{p.name} = None if {p.name} is None else operands.optional_data(op, {p.name!r}, {p.name})"]
            if p in schema.differentiable:
                lines += [f"e_{p.name} = None if {p.name} is None else {p.name}._edge"]
        elif p.kind == ARRAYS:
            lines += [f"{p.name} = operands.tensor_list(op, {p.name})"]
            lines += [f"d_{p.name} = [tensor._data for tensor in {p.name}]"]
    if op.complex is None and op.dtype_error is None:
        lines += _refusing_lines(op)
    if op.view:
        first = schema.arrays[0].name
        lines += [f"if d_{first}.__class__ is not ndarray:", f"    d_{first} = writable({first})"]
    if op.dtype_error is not None:
        listed = "".join(f"d_{p.name}, " for p in (singles if op.promote else singles[:1]))
        first = next(p.name for p in singles if p.promoted)
        lines += [f"if d_{first}.dtype not in taken:", f"    operands.check_dtypes(op, ({listed}))"]
    if op.promote:
        lines += _promotion_lines(schema, singles)
    return lines + _barebones_lines(op)


def _barebones_lines(op: Op) -> list[str]:
    """Refuse uint16, uint32, uint64 and complex32 where PyTorch has no kernel for them."""
    arrays = [p for p in op.arrays if p.kind != OPTIONAL and (p.promoted or not op.promote)]
    if op.name not in REFUSING or not arrays:
        return []
    first = f"d_{arrays[0].name}"
    if arrays[0].kind == ARRAYS:
        return [
            f"if any([array.dtype.num in BAREBONES for array in {first}]):",
            f"    refuse_barebones(op.name, {first})",
        ]
    return [f"if {first}.dtype.num in BAREBONES:", f"    refuse_barebones(op.name, ({first},))"]


def _refusing_lines(op: Op) -> list[str]:
    """Refuse complex arrays: NOTE [Complex ops]. `unify` and `check_dtypes` do it too, for ops that call them."""
    arrays = op.arrays
    if op.promote:
        arrays = [p for p in arrays if p.promoted and p.kind == ARRAY][:1] if op.promote == "same" else []
    if not arrays:
        return []
    found = " or ".join(IS_COMPLEX[p.kind].format(f"d_{p.name}") for p in arrays)
    return [f"if {found}:", f"    raise refusal(op.name, ({''.join(f'd_{p.name}, ' for p in arrays)}))"]


def _number_lines(op: Op, singles) -> list[str]:
    """Take a Python number as second operand without the cost of an exception."""
    if not op.promote or len(singles) != 2 or len(op.arrays) != 2:
        return []
    first, second = [param.name for param in singles]
    convert = "float_operand" if op.promote == "float" else "number_operand"
    return [
        f"kind = {second}.__class__",
        "if kind is not Tensor and (kind is float or kind is int):",
        f"    {second} = operands.{convert}({first}, {second})",
    ]


def _promotion_lines(schema: OpSchema, singles) -> list[str]:
    names = [f"d_{p.name}" for p in singles if p.promoted]
    tests = [f"{a}.dtype is not {b}.dtype" for a, b in pairwise(names)]
    if schema.op.promote == "float":
        tests.append(f"{names[0]}.dtype.kind != 'f'")
    if any(p.kind == OPTIONAL for p in schema.arrays):
        names += [f"d_{p.name}" for p in schema.arrays if p.kind == OPTIONAL]
        listed = ", ".join(names)
        return ["mixed = True", f"{listed} = operands.unify(op, ({listed}))"]
    if not tests:
        return ["mixed = False"]
    listed = ", ".join(names) + ("," if len(names) == 1 else "")
    return [
        "mixed = False",
        f"if {' or '.join(tests)}:",
        f"    {listed} = operands.unify(op, ({listed}))",
        "    mixed = True",
    ]


def _forward_lines(schema: OpSchema, called: bool = False) -> list[str]:
    """Call the forward; explain shapes that do not broadcast."""
    op = schema.op
    values = [p.name if p.kind == OPTION else f"d_{p.name}" for p in op.params]
    arguments = ", ".join(f"{p.name}={value}" if p.keyword_only else value for p, value in zip(op.params, values))
    results = "data" + "".join(f", {name}" for name in op.residuals)
    names = dict(zip((param.name for param in op.params), values), xp="xp")
    call = (None if called else schema.inlined(op.forward, names, "forward")) or f"forward(xp, {arguments})"
    lines = ["try:", f"    {results} = {call}", "except RuntimeWarning:"]
    lines += [f"    {results} = operands.quietly(forward, {arguments})"]
    arrays = "".join(f"d_{p.name}, " for p in schema.arrays)
    better = "operands.as_storage_error(problem)"
    if op.promote:
        better = f"operands.broadcast_problem(problem, ({arrays}))"
    elif op.explain is not None:
        better = f"operands.explained(op.explain, ({arrays}), problem)"
    lines += ["except ValueError as problem:", f"    raise {better} from None"]
    lines += ["except MemoryError as problem:", "    raise operands.as_storage_error(problem) from None"]
    if op.dtype_error is not None:
        lines += ["except TypeError as problem:", f"    raise operands.refused(op, problem, ({arrays})) from None"]
    return lines


def _layout_lines(schema: OpSchema) -> list[str]:
    """Lay the results out in memory as PyTorch's would lie: NOTE [Memory order of results]."""
    if schema.op.layout is None:
        return []
    arrays = "".join(f", {'*' * (p.kind == ARRAYS)}d_{p.name}" for p in schema.arrays)
    if schema.several:
        laid_out = f"[layout(one{arrays}) for one in data]"
        return [f"if not row_major(*data{arrays}):", f"    data = {laid_out}"]
    return [f"if not row_major(data{arrays}):", f"    data = layout(data{arrays})"]


def _output_lines(schema: OpSchema) -> list[str]:
    op = schema.op
    if schema.several:
        make = ["outs = [wrap(part) for part in data]"]
        if op.view:
            make = [f"outs = [made_view({schema.arrays[0].name}, part, MULTI) for part in data]"]
        finish = "return returns(*outs)" if op.returns is not None else "return tuple(outs)"
    else:
        make = ["out = new(Tensor)", "out._data = data"]
        if op.view:
            first = schema.arrays[0].name
            make = [f"out = made_view({first}, data, PLAIN)"]
        else:
            make += ["out._storage = None", "out._view = None"]
        finish = "return out"
    lines = list(make)
    record = _record_lines(schema)
    if record:
        traced = f" and {schema.arrays[0].name}._storage.__class__ is not InferenceStorage" if op.view else ""
        lines += [f"if {_any_edge(schema)}{traced} and (recording.everywhere or modes.grad_enabled):"]
        lines += ["    " + line for line in record]
        lines += ["else:"]
    body = "    " if record else ""
    if schema.several:
        lines += [body + "operands.unrecorded_outputs(outs)"]
    else:
        lines += [body + "out._edge = None"]
        if not op.view:
            lines += [body + "if modes.marks:", body + "    out._storage = new_storage()"]
        else:
            lines += [body + "operands.unrecorded_view(out)"]
    return lines + [finish]


def _any_edge(schema: OpSchema) -> str:
    parts = []
    for p in schema.differentiable:
        if p.kind == ARRAYS:
            parts.append(f"operands.any_edge({p.name})")
        else:
            parts.append(f"e_{p.name} is not None")
    return f"({' or '.join(parts)})"


def _record_lines(schema: OpSchema) -> list[str]:
    """Make the node: edges, provenance, saved values."""
    op = schema.op
    if not op.rules:
        return []
    lines, edges = [], []
    for p in schema.differentiable:
        if p.kind == ARRAYS:
            edges.append(f"*[edge_of(tensor) for tensor in {p.name}]")
        else:
            lines += [f"if e_{p.name} is LEAF:", f"    e_{p.name} = {p.name}"]
            edges.append(f"e_{p.name}")
    made = "NodeClass()"
    if op.complex == HOLOMORPHIC:
        result = "data" if not schema.several else f"data[{schema.output_numbers[0]}]"
        made = f"ComplexNodeClass() if {IS_COMPLEX[ARRAY].format(result)} else NodeClass()"
    lines += [f"node = {made}", f"node.edges = ({', '.join(edges)},)", "node.sequence = next_sequence()"]
    lines += [f"frame = getframe({CALLER})", "code = frame.f_code", "if code is not latest.code:"]
    lines += ["    if code.co_filename in USER_FILES:", "        latest.code = code", "    else:"]
    lines += ["        frame = user_frame(frame)", "        code = frame.f_code"]
    lines += ["node.code = code", "node.lasti = frame.f_lasti", "node.extra = None"]
    lines += _keep_lines(schema)
    if not schema.several:
        lines += ["out._edge = node"]
    elif op.outputs == "many":
        lines += ["node.outputs = len(outs)", "operands.link_outputs(node, outs)"]
    elif schema.single_grad:
        lines += [
            "for other_out in outs:",
            "    other_out._edge = None",
            f"outs[{schema.output_numbers[0]}]._edge = node",
        ]
    else:
        lines += [f"operands.link_outputs(node, outs, {schema.output_numbers!r})"]
    return lines


def _stretched(schema: OpSchema) -> str:
    """Return the test whether an input that wants a gradient has another shape than the output; numbers never do."""
    return " or ".join(f"e_{p.name} is not None and d_{p.name}.shape != data.shape" for p in schema.differentiable)


def _keep_lines(schema: OpSchema) -> list[str]:
    op, lines = schema.op, []
    if op.promote:
        tensors = ", ".join(p.name for p in schema.differentiable)
        singles = [p.name for p in schema.arrays]
        if len(singles) == 1:
            lines += [f"node.broadcast_restore = operands.restoration(data, ({tensors},)) if mixed else None"]
        else:
            equal = " == ".join(f"d_{n}.shape" for n in singles if schema.kinds[n] == ARRAY)
            apart = f"mixed or not ({equal}) and ({_stretched(schema)})"
            apart = "True" if any(schema.kinds[n] == OPTIONAL for n in singles) else apart
            lines += [f"node.broadcast_restore = operands.restoration(data, ({tensors},)) if {apart} else None"]
    for p in schema.inputs:
        name, users = p.name, schema.users_of(p)
        wanted = None if users is None else " or ".join(f"e_{user} is not None" for user in users)
        if p.kind == ARRAYS:
            lines += [
                f"node.{name} = {name}",
                f"node.{name}_version = [operands.version_of(tensor) for tensor in {name}]",
            ]
        elif p.kind == OPTIONAL:
            lines += [f"node.{name} = {name}" + (f" if {wanted} else None" if wanted else "")]
            lines += [f"node.{name}_version = 0 if {name} is None else operands.version_of({name})"]
        else:
            lines += [f"node.{name} = {name}" + (f" if {wanted} else operands.NOT_SAVED" if wanted else "")]
            lines += [f"storage = {name}._storage" + (f" if {wanted} else None" if wanted else "")]
            lines += [f"node.{name}_version = 0 if storage is None else storage.version"]
    if schema.out:
        if schema.several:
            lines += ["node.out = data", "node.out_storage = [storage_of(one) for one in outs]"]
            lines += ["node.out_version = [0] * len(outs)"]
        elif op.view:
            lines += ["node.out = data", "node.out_storage = out._storage", "node.out_version = out._storage.version"]
        else:
            lines += ["node.out = data", "node.out_storage = out._storage = Storage()", "node.out_version = 0"]
    lines += [f"node.{name} = {name}" for name in schema.options + schema.kept]
    for p in schema.shapes:
        value = f"d_{p.name}.shape"
        if p.kind == ARRAYS:
            value = f"[array.shape for array in d_{p.name}]"
        elif p.kind == OPTIONAL:
            value = f"None if d_{p.name} is None else d_{p.name}.shape"
        lines += [f"node.{p.name}_shape = {value}"]
    lines += [f"node.{p.name}_dtype = {p.name}._data.dtype" for p in schema.dtypes]
    return lines
