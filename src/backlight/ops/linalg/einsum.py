"""Einstein summation: any equation, differentiated by equations of the same kind.

NOTE [Equations in normal form]
The parser gives every dim a label, those of an ellipsis too. Then ordinary ops remove what a product cannot express: a
label twice in one operand becomes a diagonal, a size of 1 that broadcasts is squeezed away, a label that stands nowhere
else is summed over. What remains is a contraction in which each label stands in at least two places, and its gradient
for one operand is the contraction of the incoming gradient with the other operands.
"""

import functools
from collections import Counter
from collections.abc import Sequence

from backlight.codegen.declaration import Array, Arrays, op
from backlight.dispatch.dispatcher import public_function
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError, ValueProblem
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.linalg.contraction import contract
from backlight.ops.linalg.matrix_products import big_name
from backlight.ops.number_operands import require_no_bools

__all__ = ["einsum"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DOTS = "".join(chr(0x3B1 + number) for number in range(25)) + "".join(chr(0x391 + number) for number in range(17))


@public_function
def einsum(*args):
    """Sum products of the operands' elements over named dims.

        einsum("ij,jk->ik", a, b)          matrix product
        einsum("bii->b", a)                traces
        einsum(a, [0, 1], b, [1, 2])       labels as lists of numbers

    A label in several places means equal sizes; labels that are not in the output are summed over. Without `->` the
    output has the labels that stand once, in alphabetical order. `...` stands for any dims, which broadcast.

    Raises:
        RuntimeError: the equation is malformed, or does not fit the operands.
    """
    equation, operands = _arguments(args)
    labels, output = _read(equation, tuple(operand._data.ndim for operand in operands))
    _check_dtypes(operands)
    given = operands
    operands, labels = _normal_form(operands, labels, output)
    if len(operands) == 1:
        same = labels[0] == output and operands[0] is not given[0]
        return operands[0] if same else operands[0].permute([labels[0].index(label) for label in output])
    require_no_bools("bmm", operands[0])
    return contraction(operands, tuple(labels), output)


@op(name="einsum", tangent="multilinear", complex="holomorphic")
def contraction(xp, tensors: Arrays, terms: tuple, output: str):
    """A contraction in normal form."""
    return rounded(contract([widened(tensor) for tensor in tensors], terms, output), tensors[0].dtype)


@contraction.derivative("tensors", formula="the contraction of grad with all other tensors")
def contraction_tensors(grad: Array, tensors: Sequence[Array], terms: tuple, output: str, needs: tuple[bool, ...], ops):
    found = []
    for place, needed in enumerate(needs):
        others = [*tensors[:place], *tensors[place + 1 :]]
        inputs = (output, *terms[:place], *terms[place + 1 :])
        found.append(ops.einsum([grad, *others], inputs, terms[place]) if needed else None)
    return tuple(found)


@functools.lru_cache(maxsize=256)
def _read(equation: str, dims: tuple[int, ...]) -> tuple[list[str], str]:
    """Return the labels of each operand, by their numbers of dims, and those of the output."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) > len(dims):
        raise ShapeError("einsum(): fewer operands were provided than specified in the equation")
    if len(parts) < len(dims):
        raise ShapeError("einsum(): more operands were provided than specified in the equation")
    labels = [_operand_labels(part, place, count) for place, (part, count) in enumerate(zip(parts, dims))]
    return labels, _output_labels(right if arrow else None, labels)


def _arguments(args: Sequence) -> tuple[str, list]:
    """Return the equation and the operands of either calling form."""
    if len(args) < 2:
        raise ValueProblem(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if isinstance(args[0], TensorState):
        parts = ["".join(map(_letter, labels)) for labels in args[1::2]]
        equation = ",".join(parts)
        if len(args) % 2:
            equation += "->" + "".join(map(_letter, args[-1]))
        return equation, list(args[: len(args) - len(args) % 2 : 2])
    equation, *operands = args
    if not isinstance(equation, str):
        raise ArgumentError(f"einsum(): argument 'equation' (position 1) must be str, not {type(equation).__name__}")
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    return equation, operands


def _letter(label: int) -> str:
    if label is Ellipsis:
        return "..."
    if not 0 <= label < len(LETTERS):
        raise ValueProblem(f"einsum(): subscript in subscript list is not within the valid range [0, 52), got {label}")
    return LETTERS[label]


def _split(part: str, where: str, taken: int) -> tuple[str, str | None]:
    """Return the labels before and after the ellipsis; None after it if there is none."""
    before, dots, after = part.partition("...")
    if "..." in after:
        words = (
            "but an ellipsis (...) was already found"
            if where == "output"
            else "for which an ellipsis was already found"
        )
        raise ShapeError(f"einsum(): found '.' for {where} {words} was already found")
    for index, character in enumerate(before + after):
        if character == ".":
            raise ShapeError(f"einsum(): found '.' for {where} that is not part of any ellipsis")
        if character not in LETTERS:
            raise ShapeError(
                f"einsum(): invalid subscript given at index {taken + index} in the equation string, subscripts must "
                f"be in [a-zA-Z]; got {character!r}"
            )
    return before, (after if dots else None)


def _operand_labels(part: str, place: int, dims: int) -> str:
    """Return one label a dim; dims under an ellipsis get labels counted from the last."""
    before, after = _split(part, f"operand {place}", 0)
    given = len(before) + len(after or "")
    if after is None and given != dims:
        raise ShapeError(
            f"einsum(): the number of subscripts in the equation ({given}) does not match the number of dimensions "
            f"({dims}) for operand {place} and no ellipsis was given"
        )
    if given > dims:
        raise ShapeError(
            f"einsum(): the number of subscripts in the equation ({given}) is more than the number of dimensions "
            f"({dims}) for operand {place}"
        )
    return before + _DOTS[: dims - given][::-1] + (after or "")


def _output_labels(right: str | None, labels: list[str]) -> str:
    """Return the output's labels, as written after the arrow or by the rule for equations without one."""
    dots = _DOTS[: max((sum(label in _DOTS for label in term) for term in labels), default=0)][::-1]
    counts = Counter(label for term in labels for label in term if label not in _DOTS)
    if right is None:
        return dots + "".join(sorted(label for label, count in counts.items() if count == 1))
    before, after = _split(right, "output", 0)
    for label in before + (after or ""):
        if label not in counts:
            raise ShapeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input operand"
            )
        if (before + (after or "")).count(label) > 1:
            raise ShapeError(f"einsum(): output subscript {label} appears more than once in the output")
    return before if after is None else before + dots + after


def _check_dtypes(operands: Sequence[TensorState]) -> None:
    first = operands[0]._data.dtype
    for operand in operands[1:]:
        if operand._data.dtype != first:
            raise ShapeError(
                f"expected scalar type {big_name(first)} but found {big_name(operand._data.dtype)}; convert the "
                "operands to one dtype with .to(dtype)"
            )


def _normal_form(operands: Sequence[TensorState], labels: Sequence[str], output: str) -> tuple[list, list[str]]:
    """Return operands and labels as NOTE [Equations in normal form] says."""
    pairs = [_without_repeats(operand, term, place) for place, (operand, term) in enumerate(zip(operands, labels))]
    sizes = _label_sizes(pairs)
    pairs = [_without_ones(operand, term, sizes) for operand, term in pairs]
    counts = Counter(label for _, term in pairs for label in term) + Counter(output)
    pairs = [_without_single_letters(operand, term, counts) for operand, term in pairs]
    return [operand for operand, _ in pairs], [term for _, term in pairs]


def _without_repeats(operand: TensorState, term: str, place: int):
    """Take the diagonal over a label that an operand has twice."""
    if len(set(term)) == len(term):
        return operand, term
    for label in set(term):
        while term.count(label) > 1:
            first = term.index(label)
            second = term.index(label, first + 1)
            shape = operand._data.shape
            if shape[first] != shape[second]:
                raise ShapeError(
                    f"einsum(): subscript {label} is repeated for operand {place} but the sizes don't match, "
                    f"{shape[second]} != {shape[first]}"
                )
            operand = operand.diagonal(0, first, second)
            term = "".join(term[i] for i in range(len(term)) if i not in (first, second)) + label
    return operand, term


def _label_sizes(pairs: Sequence) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for place, (operand, term) in enumerate(pairs):
        for label, size in zip(term, operand._data.shape):
            known = sizes.get(label, 1)
            if size != known and 1 not in (size, known):
                raise ShapeError(
                    f"einsum(): subscript {_shown(label)} has size {size} for operand {place} which does not broadcast "
                    f"with previously seen size {known}"
                )
            sizes[label] = size if known == 1 else known
    return sizes


def _shown(label: str) -> str:
    return "..." if label in _DOTS else label


def _without_ones(operand: TensorState, term: str, sizes: dict):
    """Squeeze dims of size 1 that broadcast."""
    shape = operand._data.shape
    ones = [dim for dim, label in enumerate(term) if shape[dim] == 1 and sizes[label] != 1]
    if not ones:
        return operand, term
    return operand.squeeze(tuple(ones)), "".join(label for dim, label in enumerate(term) if dim not in ones)


def _without_single_letters(operand: TensorState, term: str, counts):
    """Sum over labels that stand nowhere else."""
    lone = [dim for dim, label in enumerate(term) if counts[label] == 1]
    if not lone:
        return operand, term
    return operand.sum(tuple(lone)), "".join(label for dim, label in enumerate(term) if dim not in lone)
