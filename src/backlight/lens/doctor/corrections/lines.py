"""Corrected lines, written down from the wrong ones (NOTE [A corrected line]); None wherever it is not certain."""

import ast

from backlight.lens.doctor.source import Edit, Spot, assignments, spelled

ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
OUT_OF_PLACE = frozenset(
    {
        *("abs_", "add_", "addcdiv_", "addcmul_", "ceil_", "clamp_", "clip_", "cos_", "div_", "exp_", "floor_", "log_"),
        *("masked_fill_", "mul_", "neg_", "pow_", "reciprocal_", "relu_", "round_", "rsqrt_", "sigmoid_", "sin_"),
        *("sqrt_", "square_", "sub_", "tanh_", "tril_", "triu_"),
    }
)
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}


def insert(line: int, column: int, text: str) -> Edit:
    """Return the edit that puts a text in."""
    return line, column, column, text


def after(node: ast.AST, text: str) -> Edit:
    """Return the edit that puts a text behind a piece of syntax."""
    return insert(node.end_lineno, node.end_col_offset, text)


def replace(node: ast.AST, text: str) -> Edit | None:
    """Return the edit that replaces a piece of syntax, if it is on one line."""
    return (node.lineno, node.col_offset, node.end_col_offset, text) if node.lineno == node.end_lineno else None


def method_of(spot: Spot, *names: str) -> ast.Attribute | None:
    """Return `x.name` of the call `x.name(...)` that a spot makes, if it is one of these."""
    call = spot.call
    if call is None or not isinstance(call.func, ast.Attribute) or call.func.attr not in names:
        return None
    return call.func


def before_method(spot: Spot, added: str, *names: str) -> str | None:
    """`x.numpy()` → `x.detach().numpy()`."""
    func = method_of(spot, *names)
    if func is None:
        return None
    column = func.end_col_offset - len(func.attr.encode()) - 1
    if spot.lines[func.end_lineno - 1].encode()[column : column + 1] != b".":
        return None
    return spot.edited(insert(func.end_lineno, column, added))


def after_argument(spot: Spot, number: int, added: str) -> str | None:
    """`np.sin(x)` → `np.sin(x.detach())`."""
    call = spot.call
    if call is None or len(call.args) <= number or isinstance(call.args[number], ast.Starred):
        return None
    return spot.edited(on(spot, call.args[number], added))


def on(spot: Spot, value: ast.AST, added: str) -> Edit | None:
    """`x` → `x.detach()`, `a + b` → `(a + b).detach()`."""
    return after(value, added) if isinstance(value, ATOMS) else replace(value, f"({spot.text(value)}){added}")


def with_keyword(spot: Spot, name: str, value: str) -> str | None:
    """`y.backward()` → `y.backward(retain_graph=True)`; a keyword that is there already gets the value."""
    call = spot.call
    if call is None:
        return None
    present = next((word for word in call.keywords if word.arg == name), None)
    if present is not None:
        return spot.edited(replace(present.value, value))
    line = spot.lines[call.end_lineno - 1].encode()[: call.end_col_offset - 1].rstrip()
    comma = "" if line.endswith((b"(", b",")) or not line else ", "
    return spot.edited(insert(call.end_lineno, call.end_col_offset - 1, f"{comma}{name}={value}"))


def without_call(spot: Spot, added: str = "") -> str | None:
    """`torch.tensor(x)` → `x` + what is added: for a call of one argument."""
    call = spot.call
    if call is None or len(call.args) != 1 or isinstance(call.args[0], ast.Starred):
        return None
    argument = call.args[0]
    text = spot.text(argument)
    return spot.edited(replace(call, (text if isinstance(argument, ATOMS) else f"({text})") + added))


def under_no_grad(spot: Spot, text: str | None = None) -> str | None:
    """`a += 1` → `with torch.no_grad(): a += 1`, for a statement that stands on a line of its own."""
    statement = spot.statement
    if not isinstance(statement, (ast.AugAssign, ast.Assign, ast.Expr)) or spot.torch is None:
        return None
    alone_on_line = statement.lineno == statement.end_lineno and alone(spot, statement)
    return f"with {spot.torch}.no_grad(): {text or spot.text(statement)}" if alone_on_line else None


def alone(spot: Spot, statement: ast.stmt) -> bool:
    """Return whether a statement is all that stands on its line, comments apart."""
    return spot.lines[statement.lineno - 1].split("#")[0].strip().rstrip(";") == spot.text(statement)


def as_in_place(spot: Spot) -> str | None:
    """`w = w - 0.1 * g` → `w -= 0.1 * g`."""
    statement = spot.statement
    if not rebinds(statement):
        return None
    target, value = statement.targets[0], statement.value
    if statement.lineno != statement.end_lineno:
        return None
    return f"{spot.text(target)} {OPERATORS[type(value.op)]}= {spot.text(value.right)}"


def rebinds(statement: ast.AST | None) -> bool:
    """Return whether a statement is `w = w ⊕ something`."""
    return (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and spelled(statement.targets[0]) is not None
        and isinstance(statement.value, ast.BinOp)
        and type(statement.value.op) in OPERATORS
        and spelled(statement.value.left) == spelled(statement.targets[0])
    )


def out_of_place(spot: Spot) -> str | None:
    """`b.add_(1)` → `b = b.add(1)`, `b += 1` → `b = b + 1`, for a plain name."""
    statement = spot.statement
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        name, sign, value = statement.target.id, OPERATORS.get(type(statement.op)), spot.text(statement.value)
        if not isinstance(statement.value, (*ATOMS, ast.Constant)):
            value = f"({value})"
        return spot.edited(replace(statement, f"{name} = {name} {sign} {value}")) if sign else None
    func = method_of(spot, *OUT_OF_PLACE)
    if func is None or not isinstance(func.value, ast.Name) or not isinstance(statement, ast.Expr):
        return None
    if statement.value is not spot.call:
        return None
    underscore = (func.end_lineno, func.end_col_offset - 1, func.end_col_offset, "")
    return spot.edited(underscore, insert(statement.lineno, statement.col_offset, f"{func.value.id} = "))


def masked(spot: Spot) -> str | None:
    """`weights[mask] = 0` → `weights = weights.masked_fill(mask, 0)`, for a plain name, a mask and a number."""
    statement = spot.statement
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return None
    index = target.slice
    is_mask = isinstance(index, (ast.Compare, ast.Invert)) or "mask" in (spelled(index) or "")
    number = value.operand if isinstance(value, ast.UnaryOp) else value
    if not is_mask or not isinstance(number, (ast.Constant, ast.Call)):
        return None
    name = target.value.id
    return spot.edited(replace(statement, f"{name} = {name}.masked_fill({spot.text(index)}, {spot.text(value)})"))


def requires_grad_last(spot: Spot) -> str | None:
    """`w = torch.randn(3, requires_grad=True) * 0.1` → `w = (torch.randn(3) * 0.1).requires_grad_()`."""
    statement = spot.statement
    if not isinstance(statement, ast.Assign) or isinstance(statement.value, ast.Call):
        return None
    makers = [node for node in ast.walk(statement.value) if makes_leaf(node)]
    if len(makers) != 1 or statement.lineno != statement.end_lineno:
        return None
    removal = _without_keyword(spot, makers[0])
    value = statement.value
    if removal is None or parenthesised(spot, value):
        return None
    end = after(value, ").requires_grad_()")
    return spot.edited(removal, insert(value.lineno, value.col_offset, "("), end)


def parenthesised(spot: Spot, value: ast.AST) -> bool:
    """Return whether parentheses stand around an expression, which are not part of its position."""
    before = spot.lines[value.lineno - 1].encode()[: value.col_offset].rstrip()
    return before.endswith(b"(")


def makes_leaf(node: ast.AST) -> bool:
    """Return whether syntax is a call with requires_grad=True."""
    return isinstance(node, ast.Call) and any(
        word.arg == "requires_grad" and isinstance(word.value, ast.Constant) and word.value.value is True
        for word in node.keywords
    )


def _without_keyword(spot: Spot, call: ast.Call) -> Edit | None:
    """Return the edit that drops requires_grad=True where it is the last argument, after others."""
    word = call.keywords[-1]
    before = [*call.args, *[other.value for other in call.keywords[:-1]]]
    if word.arg != "requires_grad" or not before or before[-1].end_lineno != word.end_lineno:
        return None
    start = max(value.end_col_offset for value in before)
    between = spot.lines[word.lineno - 1].encode()[start : word.col_offset]
    return (word.lineno, start, word.end_col_offset, "") if between.strip() == b"," else None


def parameter_last(spot: Spot) -> str | None:
    """`self.w = nn.Parameter(torch.randn(3)) * 0.1` → `self.w = nn.Parameter(torch.randn(3) * 0.1)`."""
    statement = spot.statement
    value = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(value, ast.BinOp) or not isinstance(value.left, ast.Call) or value.lineno != value.end_lineno:
        return requires_grad_last(spot)
    maker, sign = value.left, OPERATORS.get(type(value.op))
    if not (spelled(maker.func) or "").endswith("Parameter") or len(maker.args) != 1 or maker.keywords or not sign:
        return requires_grad_last(spot)
    inner = spot.text(maker.args[0])
    inner = inner if isinstance(maker.args[0], ATOMS) else f"({inner})"
    right = spot.text(value.right)
    right = right if isinstance(value.right, (*ATOMS, ast.Constant)) else f"({right})"
    return spot.edited(replace(value, f"{spot.text(maker.func)}({inner} {sign} {right})"))


def leaf_again(spot: Spot, name: str) -> tuple[Spot, str] | None:
    """`x = x + step * x.grad` → `x = (x + step * x.grad).detach().requires_grad_()`, at a loop's last assignment to x.

    Only where the loop that reads `.grad` of a name also computes what the name holds next of it.
    """
    loop = next((node for kind in (ast.For, ast.While) for node in spot.around(kind)), None)
    if loop is None or not name.isidentifier():
        return None
    inside = [
        node
        for node in assignments(loop, name)
        if len(node.targets) == 1 and any(spelled(one) == name for one in ast.walk(node.value))
    ]
    reads = [one for one in ast.walk(loop) if spelled(one) == f"{name}.grad"]
    if not inside or not reads:
        return None
    last = max(inside, key=lambda node: node.lineno)
    made = spot.at(last)
    value = last.value
    text = spot.text(value) if isinstance(value, ATOMS) else f"({spot.text(value)})"
    if value.lineno != value.end_lineno or parenthesised(spot, value):
        return None
    edited = made.edited(replace(value, f"{text}.detach().requires_grad_()"))
    return None if edited is None else (made, edited)
