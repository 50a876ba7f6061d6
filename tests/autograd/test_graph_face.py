"""The graph's public face: whether a gradient arrives and why not, what is saved by which line, the nodes."""

from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
import torch

import backlight
from backlight import lens
from backlight.autograd import graph
from backlight.utils.checkpoint import checkpoint

W = backlight.ones(2, requires_grad=True)


def leaf():
    return backlight.tensor([1.0, 2.0], requires_grad=True)


def test_a_path_names_its_nodes_with_their_lines():
    x = leaf()
    h = x * 2
    y = (h.exp() + h).sum()
    found = graph.path(y, x)
    assert found and found.found and found.cut is None
    assert [step.name for step in found.steps] == ["SumBackward0", "AddBackward0", "MulBackward0", "AccumulateGrad"]
    assert found.ways == 2
    assert found.steps[2].place.text == "h = x * 2"
    assert found.steps[2].place.file == __file__
    assert "MulBackward0, test_graph_face.py:" in str(found)
    assert "the shortest of 2 paths" in str(found)
    assert "<li><code>SumBackward0" in found._repr_html_()


def test_a_path_tells_of_gradients_that_are_not_kept_and_of_freed_graphs():
    x = leaf()
    h = x * x
    y = h.sum()
    assert "x.retain_grad()" in graph.path(y, h).notes[0]
    h.retain_grad()
    assert graph.path(y, h).notes == ()
    y.backward()
    assert "freed" in graph.path(y, x).notes[0]


def integer(x):
    return x * 2, backlight.tensor([1, 2])


def not_required(x):
    return x * 2, backlight.ones(2)


def detached_result(x):
    return (x * 2).detach(), x


def rounded_to_integer(x):
    return (x * 2).argmax(), x


def number_made_anew(x):
    return backlight.tensor((x * 2).sum().item(), requires_grad=True), x


def detached(x):
    return x.detach() * W, x


def data(x):
    return x.data * W, x


def numpy(x):
    return backlight.from_numpy(x.detach().numpy()) * W, x


def view_without_recording(x):
    with backlight.no_grad():
        part = x[:]
    return part * W, x


def view_asked_of(x):
    with backlight.no_grad():
        part = x[:1]
    return x * 2, part


def required_too_late(x):
    late = backlight.ones(2)
    y = late * W
    return y, late.requires_grad_()


def overwritten(x):
    h = x * 2
    y = (h * W).sum()
    h.mul_(3)
    return y, h


def unrelated(x):
    return W * 3, x


def unrecorded(x):
    with backlight.no_grad():
        h = x * 2
    return h * W, x


CUTS = {
    integer: "integer dtype",
    not_required: "requires_grad is False",
    detached_result: "no graph",
    rounded_to_integer: "no graph",
    number_made_anew: "is a leaf",
    detached: "detached",
    data: "detached",
    numpy: "detached",
    view_without_recording: "no_grad",
    view_asked_of: "no_grad",
    required_too_late: "required too late",
    overwritten: "overwritten in place",
    unrelated: "unrelated",
    unrecorded: "unrelated",
}


@pytest.mark.parametrize("program", CUTS, ids=lambda program: program.__name__)
def test_a_cut_is_named_and_no_gradient_arrives(program):
    y, x = program(leaf())
    found = graph.path(y, x)
    assert not found
    assert found.cut.kind == CUTS[program]
    assert found.cut.cure in str(found)
    if x.requires_grad and y.requires_grad:
        assert backlight.autograd.grad(y.sum(), x, allow_unused=True) == (None,)


def test_a_cut_has_the_line_where_it_shows():
    _, x = detached(leaf())
    y, x = overwritten(x)
    assert graph.path(y, x).cut.place.text == "h.mul_(3)"
    y, x = detached(leaf())
    assert graph.path(y, x).cut.place.text == "return x.detach() * W, x"
    y, x = unrecorded(leaf())
    assert "return h * W, x) read a tensor without a graph" in graph.path(y, x).notes[0]


def test_a_way_that_hands_on_zeros_only_says_so():
    x = leaf()
    for y in (x.round() * 2, x.sign() + x.floor(), (x * 1).fill_(3.0) * x.detach()):
        way = graph.path(y.sum(), x)
        (slope,) = backlight.autograd.grad(y.sum(), x)
        assert way.found and not slope.any()
        assert way.notes[0].startswith("the gradient that arrives is 0")
    way = graph.path((x.round() + (x * 1).exp() * 1).sum(), x)
    assert way.notes == () and "ExpBackward0" in [step.name for step in way.steps]


def test_a_cut_shows_what_where_and_what_to_do_on_lines_of_their_own():
    x = leaf()
    way = graph.path((x.detach() * leaf()).sum(), x)
    what, where, cure = str(way).splitlines()
    assert what.startswith("no gradient arrives: MulBackward0 read the memory of x")
    assert where.startswith("  at test_graph_face.py:") and cure == f"  Try: {way.cut.cure}"
    assert what.partition(": ")[2] + "<br>" in way._repr_html_()


def checkpointed(function, x):
    return checkpoint(function, x, use_reentrant=True).sum()


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad=True")  # of the checkpoint inside
def test_a_path_leads_through_what_a_reentrant_checkpoint_runs_again():
    x, scale = backlight.ones(3, requires_grad=True), backlight.ones(3, requires_grad=True)
    model, scales = backlight.nn.Linear(3, 3), [backlight.ones(3, requires_grad=True)]
    other = backlight.ones(3, requires_grad=True)
    for function, hidden in (
        (model, model.weight),
        (lambda a: a * scale, scale),
        (partial(backlight.mul, scale), scale),
        (lambda a: model(a), model.bias),
        (lambda a: a * scales[0], scales[0]),
        (lambda a: checkpoint(lambda b: b * scale, a * 2, use_reentrant=True), scale),
    ):
        y = checkpointed(function, x)
        for way in (graph.path(y, hidden), lens.path(y, hidden)):
            assert way and "CheckpointFunctionBackward" in str(way)
        with lens.watch():
            again = checkpointed(function, x)
            assert lens.path(again, hidden) and not lens.path(again, other)
        assert graph.path(y, hidden).steps[-1].name == "AccumulateGrad"
        assert "again in backward" in graph.path(y, hidden).notes[0]
        assert not graph.path(y, other) and graph.path(y, other).cut.kind == "unrelated"
        scale.grad = None
        y.backward()
        assert hidden.grad is not None and other.grad is None
        assert graph.path(y, x).found and not graph.path(y, x).unknown


def test_a_checkpoint_that_writes_to_what_it_captured_is_not_run_to_answer():
    x, scale, calls = backlight.ones(3, requires_grad=True), backlight.ones(3, requires_grad=True), backlight.zeros(1)

    def counted(a):
        calls.add_(1)
        return a * scale

    y = checkpointed(counted, x)
    way = graph.path(y, scale)
    assert way.unknown and not way and way.cut.kind == "not known" and not way.steps
    assert str(way).startswith("it is not known whether a gradient arrives: CheckpointFunctionBackward runs ")
    assert "holds x: a gradient arrives if it is used" in way.cut.what and "use_reentrant=False" in way.cut.cure
    assert way.cut.place.function == "checkpointed" and calls.item() == 1
    with lens.watch():
        assert "not known" in str(graph.path(checkpointed(counted, x), scale))
        assert "again in backward" in str(lens.path(checkpointed(counted, x), scale))
    y.backward()
    assert scale.grad is not None


def test_after_backward_nobody_can_tell_what_a_checkpoint_read():
    x, scale = backlight.ones(3, requires_grad=True), backlight.ones(3, requires_grad=True)
    y = checkpointed(lambda a: a * scale, x)
    y.backward()
    assert graph.path(y, scale).unknown


class Squared(backlight.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0]


@pytest.mark.parametrize("packs", [False, True])
def test_paths_can_be_asked_for_after_a_backward_and_unpack_nothing(packs: bool):
    unpacked = []
    hooks = backlight.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: unpacked.append(t) or t)
    x, other = backlight.ones(3, requires_grad=True), backlight.ones(3, requires_grad=True)
    with hooks if packs else nullcontext():
        y = Squared.apply(x.exp()).sum()
    for runs in range(2):
        assert graph.path(y, x).found and not graph.path(y, other).found
        assert len(list(graph.nodes(y))) == 4 and len(graph.saved(y)) == (0 if runs else 1)
        assert unpacked == [] or runs
        if not runs:
            y.backward()
            count = len(unpacked)
    assert len(unpacked) == count == (2 if packs else 0)


@pytest.mark.parametrize("name", ["grad", "vmap", "jacrev", "jacfwd", "hessian"])
def test_the_graph_can_be_asked_about_inside_transforms(name: str):
    weight, seen = backlight.ones(3, requires_grad=True), []

    def function(a):
        y = (a * weight).exp()
        seen.append((graph.path(y, weight).found, len(list(graph.nodes(y))) > 2, graph.saved(y).bytes > 0))
        return y.sum()

    transform = backlight.vmap if name == "vmap" else getattr(backlight.func, name)
    transform(function)(backlight.ones(2, 3) if name == "vmap" else backlight.ones(3))
    assert seen[0] == (True, True, True)


def test_tensors_kept_as_attributes_of_ctx_are_not_among_what_is_saved():
    class Kept(backlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    assert graph.saved(Kept.apply(backlight.ones(3, requires_grad=True))) == []


def test_a_path_is_asked_of_tensors():
    with pytest.raises(TypeError, match="x must be a tensor, got ndarray"):
        graph.path(leaf(), np.ones(2))
    with pytest.raises(TypeError, match="nodes\\(\\) must be given a tensor or a node, got int"):
        graph.nodes(3)


def test_the_lens_tells_the_same():
    y, x = detached(leaf())
    assert "through a tensor without a graph: .detach() or .data" in lens.path(y, x).reason
    y, x = overwritten(leaf())
    assert "x was written to by mul_ after y had read it" in lens.path(y, x).reason
    y, x = unrelated(leaf())
    assert lens.path(y, x).reason.endswith("nothing in it was computed from this tensor")


def test_saved_memory_has_bytes_and_lines():
    x = backlight.ones(1000, requires_grad=True)
    h = (x * W[0]).exp()
    y = h.tanh()
    found = graph.saved(y)
    line = {one.name + one.node.name(): one for one in found}
    assert line["_saved_resultTanhBackward0"].bytes == 4000
    assert line["_saved_resultTanhBackward0"].place.text == "y = h.tanh()"
    assert found.bytes == sum(one.bytes for one in found) == 12_008
    assert found.by_line()[next(iter(found.by_line()))] == 8008
    assert "12,008 bytes in 4 tensors" in str(found)
    assert "<td>TanhBackward0._saved_result</td>" in found._repr_html_()
    y.sum().backward()
    assert graph.saved(y) == []


def test_saved_memory_counts_what_views_keep_alive_once():
    x = backlight.ones(100, requires_grad=True)
    big = backlight.ones(100, 100)
    y = (x * big[0]).sum() + (x * big[1]).sum()
    assert [(one.name, one.bytes) for one in graph.saved(y)] == [("_saved_other", 40_000)]


def test_saved_memory_of_packed_tensors_is_what_hooks_made_of_them():
    x = backlight.ones(1000, requires_grad=True)
    asked = []
    with graph.saved_tensors_hooks(lambda tensor: tensor.detach().to(backlight.float16), asked.append):
        y = x.exp()
    assert [(one.name, one.bytes) for one in graph.saved(y)] == [("_saved_result", 2000)]
    with graph.saved_tensors_hooks(lambda tensor: "somewhere", asked.append):
        y = x.exp()
    (one,) = graph.saved(y)
    assert (one.value, one.bytes, one.shape) == ("somewhere", 0, None)
    assert asked == []


def test_saved_memory_of_functions_and_lists_is_seen():
    class Square(backlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    x = backlight.ones(10, requires_grad=True)
    assert [(one.name, one.bytes) for one in graph.saved(Square.apply(x))] == [("saved_tensors[0]", 40)]
    found = graph.saved(backlight.einsum("i,i->", x, W[0].detach() * backlight.ones(10)))
    assert found.bytes >= 40


def test_retain_grad_can_be_taken_back():
    x = leaf()
    h = x * 2
    h.retain_grad()
    h.sum().backward(retain_graph=True)
    assert h.grad.tolist() == [1, 1]
    h.retain_grad(False)
    assert not h.retains_grad
    h.sum().backward(retain_graph=True)
    assert h.grad.tolist() == [1, 1]  # what was kept stays; nothing is added
    h.retain_grad()
    h.sum().backward()
    assert h.grad.tolist() == [2, 2]
    x.retain_grad(False)  # a leaf keeps its gradient in any case
    assert x.grad.tolist() == [6, 6]


def test_retain_grad_follows_a_write_in_place_only_while_it_holds():
    x = leaf()
    h = x * 2
    h.retain_grad()
    h.retain_grad(False)
    h.mul_(3)
    h.sum().backward()
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf"):
        assert h.grad is None


def test_a_gradient_edge_has_no_ownership_token():
    leaf = backlight.ones(2, requires_grad=True)
    for tensor in (leaf, leaf * 2):
        edge = backlight.autograd.graph.get_gradient_edge(tensor)
        assert edge.ownership_token is None
        theirs = torch.ones(2, requires_grad=True)
        assert torch.autograd.graph.get_gradient_edge(theirs).ownership_token is None
        (gradient,) = backlight.autograd.grad((leaf * 2 if tensor is leaf else tensor).sum(), edge)
        assert gradient.tolist() == ([2.0, 2.0] if tensor is leaf else [1.0, 1.0])
