"""Each node knows the user's line that made it; graph errors say it, and in-place errors say who wrote too."""

import linecache
import sys
import time

import pytest

import backlight
from backlight.engine.provenance import describe_place, line_number
from backlight.nn import functional


def here() -> int:
    """Return the line of the caller."""
    return sys._getframe(1).f_lineno


def test_a_node_knows_its_line():
    w = backlight.ones(2, requires_grad=True)
    y, line = w * 2, here()
    assert y.grad_fn.line == (__file__, line)
    assert y.grad_fn.where == f"{__file__}:{line}: y, line = w * 2, here()"


def test_each_line_of_an_expression_is_its_own():
    w = backlight.ones(2, requires_grad=True)
    start = here()
    y = (
        (w * 2)
        .exp()
        .sum()
    )  # fmt: skip
    lines = [node.line[1] - start for node in backlight.autograd.graph.nodes(y) if node.edges]
    assert lines == [4, 3, 2]


def test_a_call_through_our_own_python_is_the_users_line():
    w, b = backlight.ones(3, 2, requires_grad=True), backlight.ones(3, requires_grad=True)
    y, line = functional.linear(backlight.ones(1, 2), w, b), here()
    loss, second = functional.mse_loss(y, backlight.zeros(1, 3)), here()
    third, last = sum([loss, loss.mean(0, keepdim=True)], start=loss.std(unbiased=False)), here()
    for node in backlight.autograd.graph.nodes(third):
        if node.edges:
            assert node.line[0] == __file__ and node.line[1] in (line, second, last)
    assert y.grad_fn.line[1] == line and loss.grad_fn.line[1] == second and third.grad_fn.line[1] == last


def test_a_module_is_the_users_line_of_the_call():
    model = backlight.nn.Sequential(backlight.nn.Linear(2, 3), backlight.nn.ReLU(), backlight.nn.Linear(3, 1))
    y, line = model(backlight.ones(1, 2)), here()
    assert {node.line for node in backlight.autograd.graph.nodes(y) if node.edges} == {(__file__, line)}


def test_a_lambda_and_a_comprehension_know_their_lines():
    w = backlight.ones(2, requires_grad=True)
    line = here() + 1
    double = lambda x: x * 2  # noqa: E731
    assert double(w).grad_fn.line == (__file__, line)
    parts, line = [w * number for number in range(3)], here()
    assert {part.grad_fn.line[1] for part in parts} == {line}


def test_code_from_a_string_knows_its_name_and_line():
    namespace = {"torch": backlight}
    exec(compile("w = torch.ones(2, requires_grad=True)\n\ny = w * 2", "<pasted>", "exec"), namespace)
    assert namespace["y"].grad_fn.line == ("<pasted>", 3)
    assert namespace["y"].grad_fn.where == "<pasted>:3"


def test_code_from_a_notebook_cell_shows_its_source():
    source = "w = torch.ones(2, requires_grad=True)\ny = w * 2  # in the cell"
    linecache.cache["<cell 3>"] = (len(source), None, source.splitlines(True), "<cell 3>")
    namespace = {"torch": backlight}
    exec(compile(source, "<cell 3>", "exec"), namespace)
    assert namespace["y"].grad_fn.where == "<cell 3>:2: y = w * 2  # in the cell"


def test_a_generator_and_a_callback_know_their_lines():
    w = backlight.ones(2, requires_grad=True)

    def numbers():
        yield w * 3

    (y,) = numbers()
    assert y.grad_fn.line == (__file__, numbers.__code__.co_firstlineno + 1)
    (z,), line = list(map(w.mul, [5])), here()
    assert z.grad_fn.line == (__file__, line)


def test_nodes_of_a_recorded_backward_know_the_line_of_the_backward():
    w = backlight.ones(2, requires_grad=True)
    y = (w * w * w).sum()
    (slope,), line = backlight.autograd.grad(y, w, create_graph=True), here()
    assert slope.grad_fn.line == (__file__, line)


def test_in_place_ops_know_their_lines():
    w = backlight.ones(4, requires_grad=True)
    h = w * 2
    line = here() + 1
    h.mul_(3)
    assert h.grad_fn.line == (__file__, line)
    line = here() + 1
    h[1:3].add_(3)
    assert h.grad_fn.line == (__file__, line)
    line = here() + 1
    h[0] = 7.0
    assert h.grad_fn.line == (__file__, line)
    line = here() + 1
    h += w
    assert h.grad_fn.line == (__file__, line)


def test_the_error_of_a_freed_graph_names_the_forward_line():
    w = backlight.ones(2, requires_grad=True)
    y = w.exp()  # made here
    y.sum().backward()
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    assert "ExpBackward0 was made at" in str(caught.value) and "# made here" in str(caught.value)


WRITES = {
    "mul_": lambda h: h.mul_(2),  # the writer
    "fill_": lambda h: h.fill_(2),  # the writer
    "copy_": lambda h: h.copy_(backlight.zeros(3)),  # the writer
    "zero_": lambda h: h.zero_(),  # the writer
    "a slice": lambda h: h[:2].mul_(2),  # the writer
    "an item": lambda h: h.__setitem__(0, 5.0),  # the writer
    "a mask": lambda h: h.__setitem__(backlight.tensor([True, False, True]), 5.0),  # the writer
    "a detached twin": lambda h: h.detach().add_(1),  # the writer
    "iadd": lambda h: h.__iadd__(1),  # the writer
    "masked_fill_": lambda h: h.masked_fill_(h > 0, 3.0),  # the writer
    "clamp_": lambda h: h.clamp_(0, 0.5),  # the writer
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_an_in_place_error_names_the_forward_line_and_the_writing_line(write):
    w = backlight.ones(3, requires_grad=True)
    h = w * 2
    y = h * h  # the saver
    write(h)
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    text = str(caught.value)
    assert "MulBackward0, which saved it, was made at" in text and "# the saver" in text
    assert f"{__file__}:{write.__code__.co_firstlineno}:" in text and "# the writer" in text
    assert text.endswith("Write to a copy (.clone()), or use the out-of-place form of that operation")


def test_an_optimizers_step_is_named_as_the_writer():
    w = backlight.ones(3, requires_grad=True)
    optimizer = backlight.optim.SGD([w], lr=0.1)
    y = (w * w).sum()
    y.backward(retain_graph=True)
    optimizer.step()  # the step
    with pytest.raises(RuntimeError) as caught:
        y.backward()
    assert "# the step" in str(caught.value)


def test_an_exception_in_a_hook_keeps_its_own_words():
    w = backlight.ones(2, requires_grad=True)

    def fail(grad):
        raise LookupError("mine")

    h = w * 2
    h.register_hook(fail)
    with pytest.raises(LookupError, match="mine"):
        h.sum().backward()


def test_the_line_of_an_instruction_is_that_of_the_code_object():
    def several():
        first = 1
        second = 2
        return first + second

    code = several.__code__
    lines = {line_number(code, lasti) - code.co_firstlineno for lasti in range(0, len(code.co_code), 2)}
    assert lines == {0, 1, 2, 3}
    assert describe_place(None, 0) == "an unknown line"


def test_knowing_the_line_costs_little():
    """An op that is recorded stays far below ten times one that is not."""
    w, k = backlight.ones(2, requires_grad=True), backlight.ones(2)

    def seconds(x):
        best = float("inf")
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(500):
                x * k
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds(w) < 10 * seconds(k)
