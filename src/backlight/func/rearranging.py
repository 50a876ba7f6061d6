"""`rearrange`: reshape, transpose and flatten by a pattern of names, as einops does.

Source: Alex Rogozhnikov: Einops: Clear and Reliable Tensor Manipulations with Einstein-like Notation, 2022
"""

from collections.abc import Sequence
from math import prod

from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError, ValueProblem
from backlight.ops.shape.joining import stack
from backlight.tensor.tensor import Tensor

REST = "\u2026"  # stands for "..." in a parsed pattern


def rearrange(tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int) -> Tensor:
    """Rearrange a tensor's elements by a pattern of dim names.

        rearrange(images, "b h w c -> b (h w) c")

    Names in parentheses share a dim, `...` stands for any dims, and 1 for a dim of size 1.

    Args:
        tensor: the tensor, or several, which are stacked first.
        pattern: the dims before and after, both with the same names.
        axes_lengths: sizes of names that cannot be inferred from a dim of several names.

    Raises:
        ValueError: the pattern is malformed, or does not fit the tensor.
        TypeError: a length is no int.

    >>> import backlight as torch
    >>> rearrange(torch.arange(6).view(2, 3), "a b -> (b a)")
    tensor([0, 3, 1, 4, 2, 5])
    """
    if not isinstance(tensor, TensorState):
        if not isinstance(tensor, (tuple, list)):
            kind = type(tensor).__name__
            raise ArgumentError(f"stack(): argument 'tensors' (position 1) must be tuple of Tensors, not {kind}")
        tensor = stack(list(tensor))
    left, right = _sides(pattern, axes_lengths)
    shape = tuple(tensor._data.shape)
    count = len(shape) - len(left) + 1 if [REST] in left else 0
    if count < 0 or ([REST] not in left and len(left) != len(shape)):
        raise ValueProblem(
            f"Number of dimensions in pattern ({len(left) - ([REST] in left)}) must be "
            f"{'less than or equal' if [REST] in left else 'equal'} to the number of dimensions in the tensor "
            f"({len(shape)})"
        )
    rest = [f"{REST}{number}" for number in range(count)]
    left, right = _spelled_out(left, rest, apart=True), _spelled_out(right, rest, apart=False)
    sizes = _sizes(left, shape, axes_lengths)
    names, wanted = [name for group in left for name in group], [name for group in right for name in group]
    parts = tensor.reshape([sizes[name] for name in names]).permute([names.index(name) for name in wanted])
    return parts.reshape([prod(sizes[name] for name in group) for group in right])


def _spelled_out(groups: list, rest: list, *, apart: bool) -> list:
    """Replace the ellipsis in groups by as many names as there are dims."""
    found = []
    for group in groups:
        if group == [REST]:
            found += [[name] for name in rest]
        else:
            found.append([name for one in group for name in (rest if one == REST and not apart else [one])])
    return found


def _sizes(left: list, shape: tuple, lengths: dict) -> dict:
    """Return the size of each name."""
    sizes = dict(lengths)
    for group, size in zip(left, shape):
        unknown = [name for name in group if name not in sizes]
        known = prod(sizes[name] for name in group if name in sizes)
        if len(unknown) > 1:
            raise ShapeError(
                f"cannot infer the sizes of two dimensions at once {unknown[0]} and {unknown[1]}; give one of them, "
                f"{unknown[0]}=…"
            )
        if unknown and (known == 0 or size % known):
            raise ShapeError(
                f"inferred dimension does not evenly fit into larger dimension: {size} vs {tuple(group)}, of which "
                f"the sizes given make {known}"
            )
        if not unknown and known != size:
            raise ShapeError(
                f"Dimension sizes to do not match ({size} != {known}) when matching dimension pack {tuple(group)}"
            )
        sizes.update(dict.fromkeys(unknown, size // known))
    return sizes


def _sides(pattern: str, lengths: dict) -> tuple[list, list]:
    """Return the groups of names of both sides of a pattern."""
    if not isinstance(pattern, str):
        raise ArgumentError(f"rearrange(): argument 'pattern' (position 2) must be str, not {type(pattern).__name__}")
    if pattern.count("->") != 1:
        raise ValueProblem("Pattern must contain a single '->' separator")
    left, right = [_groups(side) for side in pattern.split("->")]
    names, others = [{name for group in side for name in group} for side in (left, right)]
    if REST in others and REST not in names:
        raise ValueProblem(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if REST in names and [REST] not in left:
        raise ValueProblem(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    for length in lengths.values():
        if type(length) is not int:
            raise ArgumentError(f"rearrange axis lengths must be integers, got: {type(length)}")
    if any(name.isdecimal() for name in names | others):
        raise ValueProblem("rearrange only supports unnamed axes of size 1")
    if names != others:
        alone = "{" + ", ".join(repr(name) for name in sorted(names ^ others)) + "}"
        raise ValueProblem(f"Identifiers only on one side of rearrange expression (should be on both): {alone}")
    if set(lengths) - names:
        raise ValueProblem(f"Identifiers not found in rearrange expression: {set(lengths) - names}")
    return left, right


def _groups(side: str) -> list[list[str]]:
    """Return the names that share each dim; a dim of size 1 has none."""
    if "." in side and "..." not in side:
        raise ValueProblem("Expression may contain dots only inside ellipsis (...)")
    if side.count(".") not in (0, 3):
        raise ValueProblem("Expression may contain dots only inside ellipsis (...); only one ellipsis for tensor ")
    groups, inside, seen = [], None, set()
    for word in _words(side.replace("...", f" {REST} ")):
        if word == "(":
            if inside is not None:
                raise ValueProblem("Axis composition is one-level (brackets inside brackets not allowed)")
            groups.append([])
            inside = groups[-1]
        elif word == ")":
            if inside is None:
                raise ValueProblem("Brackets are not balanced")
            inside = None
        else:
            names = [] if word == "1" else [_checked(word, seen)]
            if inside is None:
                groups.append(names)
            else:
                inside += names
    if inside is not None:
        raise ValueProblem(f"Imbalanced parentheses in expression: '{side}'")
    return groups


def _words(side: str) -> list[str]:
    for character in side:
        if not (character.isalnum() or character in f"()_ {REST}"):
            raise ValueProblem(f"Unknown character '{character}'")
    return side.replace("(", " ( ").replace(")", " ) ").split()


def _checked(name: str, seen: set) -> str:
    """Return a name."""
    if name in seen:
        raise ValueProblem(f"Indexing expression contains duplicate dimension '{name}'")
    if name != REST and not name.isdecimal():
        if not name.isidentifier():
            raise ValueProblem(f"Invalid axis identifier: {name}\nnot a valid python identifier")
        if name[0] == "_" or name[-1] == "_":
            raise ValueProblem(
                f"Invalid axis identifier: {name}\naxis name should should not start or end with underscore"
            )
    seen.add(name)
    return name
