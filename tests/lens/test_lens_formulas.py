"""Formulas with numbers in them are true: what is written, computed by somebody else, is the gradient."""

import importlib
import re

import numpy as np
import pytest
from by_hand import by_hand
from hypothesis import given, settings
from hypothesis import strategies as st

import backlight
from backlight.adapters import torch_formulas
from backlight.codegen.declaration import TABLE
from backlight.lens.replays.filled import filled
from backlight.lens.replays.formulas import Name, Prose, read
from backlight.lens.replays.wording import Given

UNARY = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "deg2rad",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "neg",
    "rad2deg",
    "reciprocal",
    "relu",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]
BINARY = ["add", "atan2", "copysign", "hypot", "ldexp", "logaddexp", "maximum", "minimum", "mul", "pow", "sub", "xlogy"]
ABOVE_ONE = {"acosh"}


def known(values) -> Given:
    array = np.asarray(values, dtype=float)
    return Given(array.shape, array)


def lines_of(name: str, *inputs: np.ndarray, grad: np.ndarray):
    """Run an op of ours backwards; give for each input the formula, filled in, and the gradient."""
    tensors = [backlight.tensor(one, dtype=backlight.float64, requires_grad=True) for one in inputs]
    op = TABLE[name]
    out = getattr(backlight, name)(*tensors)
    out.backward(backlight.tensor(grad, dtype=backlight.float64))
    values = {param.name: known(one) for param, one in zip(op.arrays, inputs)}
    values |= {kept: known(out.detach().numpy()) for kept in ("out", "result")}
    values |= {"grad": known(grad), "alpha": known(1.0), **{k: values["input"] for k in ("base",) if "input" in values}}
    for param, tensor in zip(op.arrays, tensors):
        if param.name in op.formulas():
            gradient = tensor.grad.numpy()
            yield filled(read(op.formulas()[param.name]), values, known(gradient), "float64"), gradient


numbers = st.floats(0.125, 0.875, width=32)
arrays = st.one_of(numbers, st.lists(numbers, min_size=2, max_size=2)).map(np.asarray)


def assert_true_by_hand(name, inputs, grad):
    for line, gradient in lines_of(name, *inputs, grad=grad):
        assert line is not None, f"{name} is not filled in"
        shown = line.numbers if " where " not in line.numbers else f"({line.numbers})"
        close = 1e-3 if line.relation == "≈" else 1e-8
        most = np.abs(gradient).max() or 1.0
        assert by_hand(shown) == pytest.approx(gradient, rel=0, abs=1.1 * close * most), line
        assert by_hand(line.value) == pytest.approx(gradient, rel=0, abs=1.1 * close * most), line


@pytest.mark.parametrize("name", UNARY)
@given(values=arrays, grad=st.floats(-3, 3, width=16))
@settings(max_examples=25, deadline=None)
def test_a_filled_line_of_one_input_is_true_by_hand(name, values, grad):
    assert_true_by_hand(name, [values + 1 if name in ABOVE_ONE else values], np.full(values.shape, grad))


@pytest.mark.parametrize("name", BINARY)
@given(first=numbers, second=numbers, grad=st.floats(-3, 3, width=16))
@settings(max_examples=25, deadline=None)
def test_a_filled_line_of_two_inputs_is_true_by_hand(name, first, second, grad):
    assert_true_by_hand(name, [np.asarray(first), np.asarray(second)], np.asarray(grad))


def test_a_wrong_value_gives_no_equation():
    line = filled(read("grad · other"), {"grad": known(1), "other": known(5)}, known(4))
    assert line is None


def test_an_unknown_name_gives_no_equation():
    assert (
        filled(read("exponent · grad · input^(exponent − 1)"), {"grad": known(1), "input": known(0)}, known(0)) is None
    )


def test_rounded_numbers_are_called_so():
    line = filled(read("grad / other"), {"grad": known(2), "other": known(3)}, known(2 / 3))
    assert (line.numbers, line.relation, line.value) == ("2 / 3", "≈", "0.6667")


def test_more_digits_are_written_where_four_would_make_the_line_wrong():
    value = 0.99996
    line = filled(read("grad · (1 − out²)"), {"grad": known(1), "out": known(value)}, known(1 - value**2))
    assert line.numbers == "1 · (1 − 0.99996²)"


def test_matrices_are_written_in_rows_with_their_shapes():
    grad, weight = np.array([[1.0, 2.0]]), np.array([[1.0, 0.0], [3.0, 4.0]])
    line = filled(
        read("grad · mat2ᵀ"), {"grad": known(grad), "mat2": known(weight)}, known(grad @ weight.T), matrices=True
    )
    assert line.lines() == [
        "grad (1×2) @ mat2 (2×2)ᵀ → (1×2)",
        "[ 1  2 ] @ [ 1  0 ]ᵀ = [ 1  11 ]",
        "           [ 3  4 ]",
    ]


def test_of_large_matrices_only_shapes_are_written_and_only_if_they_fit():
    formula, result = read("grad · mat2ᵀ"), Given((32, 200))
    fits = filled(formula, {"grad": Given((32, 100)), "mat2": Given((200, 100))}, result, matrices=True)
    assert fits.lines() == ["grad (32×100) @ mat2 (200×100)ᵀ → (32×200)"]
    assert filled(formula, {"grad": Given((32, 100)), "mat2": Given((100, 200))}, result, matrices=True) is None


def test_a_gradient_that_was_repeated_or_summed_says_so():
    mean = filled(read("grad / n, repeated over the shape of input"), {"grad": known(2)}, known([0.5] * 4))
    assert mean.lines() == ["2 / 4 = 0.5, repeated: [0.5, 0.5, 0.5, 0.5]"]
    added = filled(read("grad"), {"grad": known([1, 2])}, known(3))
    assert added.lines() == ["[1, 2], summed over what was broadcast: 3"]


def test_softmax_is_summed_along_the_dim_that_gives_the_gradient():
    out, grad = np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([[1.0, 0.0], [0.0, 2.0]])
    result = out * (grad - (grad * out).sum(0, keepdims=True))
    assert (
        filled(read("out · (grad − Σ grad · out)"), {"grad": known(grad), "out": known(out)}, known(result)) is not None
    )


def formulas_of_all_ops() -> list[str]:
    return sorted({formula for op in TABLE.values() for formula in op.formulas().values()})


def test_formulas_of_the_house_are_read_unless_they_are_prose_or_sums_over_indices():
    unread = []
    for text in formulas_of_all_ops():
        try:
            read(text)
        except Prose:
            unread.append(text)
    beyond = re.compile(
        r"[a-z]{2,}('s)? [a-z]{2,}| of |^with |^\(|grad at|[″′ⁿ{×∂πλ±_]| over j |⁻ᵀ|⁻¹|\b(Re|Im)\b|\[…,"
    )
    assert [text for text in unread if not beyond.search(text)] == []
    assert len(formulas_of_all_ops()) - len(unread) > 120


@pytest.mark.parametrize(
    "text", ["grad at the places", "the windows of grad", "grad · slope of elu", "", "grad ·", "(grad"]
)
def test_prose_is_not_read(text):
    with pytest.raises(Prose):
        read(text)


def test_prose_after_a_comma_is_left():
    formula = read("grad, summed over dims")
    assert formula.expression == Name("grad") and formula.rest == "summed over dims"


def test_named_parts_are_read():
    formula = read("grad · s · (1 − s), s = sigmoid(input)")
    assert formula.parts[0][0] == "s" and not formula.rest


def test_ops_of_sparse_tensors_never_stand_for_the_dense_ones():
    importlib.import_module("backlight.ops.sparse.arithmetic")  # which comes when it is first needed
    assert torch_formulas.formulas_of("DivBackward0") == {"input": "grad / other", "other": "−grad · input / other²"}
