"""Inline one-expression functions into generated code, so that a forward or a rule costs no call.

A function whose body is one `return` is found in its file by line, parsed, and its expression rewritten with other
names. Where the source cannot be read, or the body is longer, the caller calls the function instead.
"""

import ast
import linecache
from functools import cache


def expression_of(function, arguments: dict[str, str], prefix: str) -> tuple[str, dict] | None:
    """Return the source of what `function` returns, and the globals that it needs; None if it must be called.

    Args:
        arguments: for each parameter, the name that stands for it in the generated code.
        prefix: put before the names of the function's globals.
    """
    definition = definition_of(function)
    if definition is None:
        return None
    body = [part for part in definition.body if not is_docstring(part)]
    if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
        return None
    renamed = _Renamed(arguments, function.__globals__, prefix)
    expression = renamed.visit(ast.parse(ast.unparse(body[0].value), mode="eval").body)
    return None if renamed.impossible else (ast.unparse(expression), renamed.globals)


def definition_of(function) -> ast.FunctionDef | None:
    """Return the parsed source of a function, or None where it cannot be read."""
    code = function.__code__
    if function.__closure__:
        return None
    linecache.lazycache(code.co_filename, function.__globals__)  # for modules whose loader reads their source
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return _definitions_in(code.co_filename).get((code.co_firstlineno, code.co_name, *names))


@cache
def _definitions_in(file: str) -> dict[tuple, ast.FunctionDef]:
    """Return the functions of a file by first line, name and parameters."""
    tree = ast.parse("".join(linecache.getlines(file)))
    found = [_as_function(node) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    return {_key(node): node for node in found}


def _as_function(node: ast.FunctionDef | ast.Lambda) -> ast.FunctionDef:
    """Return a lambda as the function that it stands for."""
    if isinstance(node, ast.FunctionDef):
        return node
    body = [ast.Return(node.body)]
    return ast.FunctionDef("<lambda>", node.args, body, decorator_list=[], lineno=node.lineno, col_offset=0)


def _key(node: ast.FunctionDef) -> tuple:
    first_line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return (first_line, node.name, *names)


def is_docstring(statement) -> bool:
    """Tell whether a statement of a function is its docstring."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


class _Renamed(ast.NodeTransformer):
    """Replaces parameters by the caller's names and globals by prefixed ones."""

    def __init__(self, arguments, function_globals, prefix):
        self.arguments = arguments
        self.function_globals = function_globals
        self.prefix = prefix
        self.globals = {}
        self.impossible = False

    def visit_Name(self, node):
        if node.id in self.arguments:
            return ast.copy_location(ast.parse(self.arguments[node.id], mode="eval").body, node)
        if node.id in self.function_globals:
            name = f"{self.prefix}_{node.id}"
            self.globals[name] = self.function_globals[node.id]
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        return node  # a builtin

    def _refuse(self, node):
        self.impossible = True
        return node

    visit_Lambda = visit_ListComp = visit_GeneratorExp = visit_SetComp = visit_DictComp = visit_NamedExpr = _refuse
    visit_Yield = visit_Await = visit_YieldFrom = _refuse
