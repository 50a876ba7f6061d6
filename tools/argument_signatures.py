"""Writes the table of PyTorch's signatures that failed calls are checked against.

    python tools/argument_signatures.py [FILE]

The table is src/backlight/dispatch/arguments/signatures.txt, a public name a line; NOTE [Signatures] says how it is
written. What C++ parses is read from PyTorch's schemas, the rest from the annotations of its Python functions. PyTorch
must be installed; tests/dispatch/test_hostile_calls.py compares the table with what this writes.

NOTE [Signatures]
`name=kind parameter,…` with `|` between several signatures; the kinds are those of PyTorch's schemas, `object` takes
anything. `?` after a kind: it may be None. `=` after a parameter: it has a default. Those after `*` are given by name.
`python:` before them: PyTorch's function is written in Python, and looks at no kinds. Of a method, `.name`, the first
is the tensor itself. It has no line of its own where the function's is the same.
"""

import inspect
import re
import sys
import typing
import warnings
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from hostile.call import their_name  # noqa: E402 - found below the path just added
from hostile.names import public_names, resolve  # noqa: E402

TABLE = ROOT / "src" / "backlight" / "dispatch" / "arguments" / "signatures.txt"
PYTHON = "python:"
SCHEMA_PREFIXES = {"linalg.": "linalg_", "fft.": "fft_", "special.": "special_", "nn.functional.": ""}
STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
# what takes any number of tensors or shapes, which the schemas write as one list, and what takes any data
_ANY_NUMBER = """
cartesian_prod block_diag broadcast_tensors meshgrid einsum atleast_1d atleast_2d atleast_3d chain_matmul
align_tensors broadcast_shapes tensor
"""
ANY_NUMBER = frozenset(_ANY_NUMBER.split())
# overloads of TorchScript, which are no functions of tensors
SCRIPT_KINDS = {"t[]", "str[]", "bool[]", "float[]", "complex[]", "str", "bool", "complex", "float", "number"}
SCRIPT_LISTS, SCRIPT_NAMES = {"int", "int[]", "Tensor[]"}, {"input", "x", "l"}  # numbers are called a and b
KINDS = {
    torch.Tensor: "Tensor",
    int: "int",
    bool: "bool",
    float: "float",
    str: "str",
    list[int]: "int[]",
    list[torch.Tensor]: "Tensor[]",
    torch.dtype: "ScalarType",
}
OPTIONAL = {kind | None: f"{name}?" for kind, name in KINDS.items() if not name.endswith("]")}
# what PyTorch's Python functions call a tensor where they do not annotate it
_TENSORS = """
input tensor other A B target x input1 input2 x1 x2 weight mask log_probs anchor positive negative query key value
indices src index grid theta boundaries
"""
TENSORS = frozenset(_TENSORS.split())


def main() -> None:
    """Write the table."""
    Path(sys.argv[1] if sys.argv[1:] else TABLE).write_text(table())


def table() -> str:
    """Return the table as text."""
    schemas = _schemas()
    found: dict[str, str] = {}
    for name in public_names():
        bare = name.removeprefix("array_api.")
        if bare.removeprefix(".") not in ANY_NUMBER and bare not in found:
            found[bare] = "|".join(_signatures(name, schemas))
    shared = {name for name, text in found.items() if name[0] == "." and text == found.get(name[1:])}
    return "".join(f"{name}={text}\n" for name, text in sorted(found.items()) if text and name not in shared)


def _schemas() -> dict[str, list]:
    found: dict[str, list] = {}
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::"):
            found.setdefault(schema.name.removeprefix("aten::"), []).append(schema)
    return found


def _signatures(name: str, schemas: dict) -> list[str]:
    """Return PyTorch's signatures of one public name."""
    theirs = resolve(torch, f"Tensor{name}" if name[0] == "." else their_name(name))
    if theirs is None or isinstance(theirs, type):
        return []
    key = name.removeprefix(".").removeprefix("array_api.")
    for start, prefix in SCHEMA_PREFIXES.items():
        if key.startswith(start):
            key = prefix + key.removeprefix(start)
    python = inspect.isfunction(theirs)
    found: list[str] = []
    if not python or _takes_any(theirs):
        found = [text for schema in schemas.get(key, []) if (text := _of_schema(schema, name, key))]
    if python and not found and (text := _of_function(theirs)):
        found = [text]
    return [f"{PYTHON if python and place == 0 else ''}{text}" for place, text in enumerate(sorted(set(found)))]


def _takes_any(function) -> bool:
    return any(one.kind in STARRED for one in inspect.signature(function).parameters.values())


# --- PyTorch's schemas ------------------------------------------------------------------------------------------------


def _of_schema(schema, name: str, key: str) -> str | None:
    """Return the signature that a schema describes; None of one that writes to `out` or is no function of tensors."""
    text = re.sub(r"\([a-z](?:! )?[a-z!> |*-]*\)", "", str(schema))  # without what says which tensors share memory
    match = re.match(r"aten::[^(]*\((.*)\) ->", text)
    writes_to_out = "!" in str(schema).partition(" *, ")[2].partition(" ->")[0]
    if match is None or writes_to_out or schema.overload_name.endswith("out"):
        return None
    parts = re.split(r", (?![^\[]*\])", match.group(1)) if match.group(1) else []
    found = [part if part == "*" else _parameter(part) for part in parts]
    kinds = [part.split(" ")[0] for part in found if part != "*"]
    names = [part.split(" ")[1].rstrip("=") for part in found if part != "*"]
    if not found or (name[0] == "." and not kinds[0].startswith("Tensor")):
        return None
    if (
        names[0] == "a"
        or (kinds[0] in SCRIPT_KINDS and key not in ("einsum", "normal"))
        or (kinds[0] in SCRIPT_LISTS and names[0] in SCRIPT_NAMES)
    ):
        return None
    if any(kind.rstrip("?[]") in ("t", "Any") or kind.startswith("Dict") for kind in kinds):
        return None
    return ",".join(found)


def _parameter(part: str) -> str:
    """Return how one parameter of a schema is written: `int dim=0` as `int dim=`."""
    kind, _, rest = part.partition(" ")
    name, default, value = rest.partition("=")
    if value == "[]":
        kind += "?"  # None stands for the empty list
    return f"{kind.replace('SymInt', 'int')} {'input' if name == 'self' else name}{default}"


# --- PyTorch's Python functions ---------------------------------------------------------------------------------------


def _of_function(function) -> str | None:
    """Return the signature of a Python function; None of one that takes any number of arguments."""
    if _takes_any(function):
        return None
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # a name that only type checkers see
        hints = {}
    found: list[str] = []
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.KEYWORD_ONLY and "*" not in found:
            found.append("*")
        default = "" if one.default is one.empty else "="
        unknown = "Tensor" if one.name in TENSORS and not default else "object"
        kind = ({**KINDS, **OPTIONAL}).get(hints.get(one.name), unknown)
        found.append(f"{kind} {'input' if one.name == 'self' else one.name}{default}")
    return ",".join(found)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
