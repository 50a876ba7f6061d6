"""Convolutions and pooling beside PyTorch's: values, messages, node names, layers."""

import numpy as np
import pytest
import torch
from case import assert_same

import backlight


def pair(*shape, seed=0, dtype=np.float64):
    """Return the same random tensor of both kinds."""
    array = np.random.default_rng(seed).normal(size=shape).astype(dtype)
    return backlight.from_numpy(array).requires_grad_(), torch.from_numpy(array.copy()).requires_grad_()


def both(call, *pairs):
    """Return the results of a call on both kinds of tensors."""
    ours, theirs = zip(*pairs) if pairs else ((), ())
    return call(backlight, *ours), call(torch, *theirs)


def functional(name, *args, **options):
    return lambda t, *tensors: getattr(t.nn.functional, name)(*tensors, *args, **options)


# --- nodes and messages -----------------------------------------------------------------------------------------------

SHAPES = {1: (1, 2, 6), 2: (1, 2, 6, 6), 3: (1, 2, 6, 6, 6)}


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(
    "call",
    [("max_pool{}d", 2), ("avg_pool{}d", 2), ("adaptive_avg_pool{}d", 2), ("adaptive_avg_pool{}d", 1)]
    + [("adaptive_max_pool{}d", 2), ("lp_pool{}d", 2, 2)],
)
def test_pools_have_pytorchs_nodes(call, dims):
    ours, theirs = both(functional(call[0].format(dims), *call[1:]), pair(*SHAPES[dims]))
    assert names_of(ours.grad_fn) == names_of(theirs.grad_fn)


@pytest.mark.parametrize("name", ["conv2d", "conv_transpose2d"])
def test_convolutions_have_pytorchs_node(name):
    ours, theirs = both(functional(name), pair(1, 2, 4, 4), pair(2, 2, 2, 2))
    assert names_of(ours.grad_fn) == names_of(theirs.grad_fn)


def names_of(node) -> list[str]:
    """Return the names of a chain of nodes, as far as the first of its inputs leads."""
    names = []
    while node is not None:
        names.append(type(node).__name__)
        node = node.next_functions[0][0] if node.next_functions else None
    return names


WRONG = [
    (functional("conv2d"), (1, 2, 8, 8), (4, 3, 3, 3)),
    (functional("conv2d"), (1, 2), (4, 3, 3, 3)),
    (functional("conv2d"), (1, 3, 2, 2), (4, 3, 3, 3)),
    (functional("conv2d", groups=2), (1, 4, 8, 8), (3, 2, 3, 3)),
    (functional("conv2d"), (1, 3, 8, 8), (4, 3, 3, 3), (3,)),
    (functional("conv2d", stride=0), (1, 3, 8, 8), (4, 3, 3, 3)),
    (functional("conv2d", padding=-1), (1, 3, 8, 8), (4, 3, 3, 3)),
    (functional("conv2d", dilation=0), (1, 3, 8, 8), (4, 3, 3, 3)),
    (functional("conv2d", padding="same", stride=2), (1, 3, 8, 8), (4, 3, 3, 3)),
    (functional("conv2d", padding="equal"), (1, 3, 8, 8), (4, 3, 3, 3)),
    (functional("conv2d", stride=(1, 2, 3)), (1, 3, 8, 8), (4, 3, 3, 3)),
    (functional("conv2d", groups=0), (1, 3, 8, 8), (4, 3, 3, 3)),
    (functional("conv_transpose2d"), (1, 2, 8, 8), (4, 3, 3, 3)),
    (functional("conv_transpose2d", output_padding=1), (1, 4, 8, 8), (4, 3, 3, 3)),
    (functional("conv_transpose2d"), (1, 4, 8, 8), (4, 3, 3, 3), (2,)),
    (functional("max_pool2d", 2, padding=2), (1, 3, 8, 8)),
    (functional("max_pool2d", 3), (1, 3, 2, 2)),
    (functional("max_pool2d", 2, stride=0), (1, 3, 8, 8)),
    (functional("max_pool2d", (1, 2, 3)), (1, 3, 8, 8)),
    (functional("max_pool1d", 2, padding=2), (1, 3, 8)),
    (functional("max_pool1d", 2), (1, 3, 1)),
    (functional("max_pool1d", 2), (3,)),
    (functional("avg_pool2d", 3), (1, 3, 2, 2)),
    (functional("avg_pool1d", 2), (1, 3, 1)),
    (functional("avg_pool2d", 2, divisor_override=0), (1, 3, 8, 8)),
    (functional("avg_pool3d", 2), (3, 2)),
    (functional("adaptive_avg_pool1d", 2), (3,)),
    (functional("adaptive_avg_pool2d", 2), (3, 3)),
    (functional("adaptive_avg_pool2d", 2), (1, 2, 0, 3)),
    (functional("adaptive_max_pool2d", 2), (3, 2)),
    (functional("unfold", 3), (1, 1, 2, 2)),
    (functional("fold", (5, 5), 2), (1, 8, 15)),
    (functional("fold", (5, 5), 2), (1, 7, 15)),
    (functional("pixel_shuffle", 2), (1, 3, 2, 2)),
    (functional("pixel_unshuffle", 2), (1, 3, 3, 2)),
    (functional("channel_shuffle", 2), (1, 3, 3, 2)),
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: str(wrong[1:]))
def test_mistakes_give_pytorchs_message(wrong):
    call, *shapes = wrong
    pairs = [pair(*shape) for shape in shapes]
    with pytest.raises(Exception) as theirs:
        call(torch, *[b for _, b in pairs])
    with pytest.raises(type(theirs.value)) as ours:
        call(backlight, *[a for a, _ in pairs])
    wanted = str(theirs.value).split("\n")[0].rstrip(".")
    assert str(ours.value).startswith(wanted), f"{ours.value}\nPyTorch: {wanted}"


def test_two_dtypes_are_refused():
    x, w = pair(1, 3, 8, 8, dtype=np.float32), pair(4, 3, 3, 3)
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        backlight.conv2d(x[0], w[0])


def test_an_index_outside_the_output_is_refused():
    indices = backlight.tensor([[[[0, 1], [2, 99]]]])
    with pytest.raises(RuntimeError, match=r"Found an invalid max index: 99 \(output volumes are of size 4x4\)"):
        backlight.nn.functional.max_unpool2d(pair(1, 1, 2, 2)[0], indices, 2)


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("kernel", [(2, 3), (4, 2)])
def test_same_padding_adds_behind_what_is_odd(kernel):
    assert_same(*both(functional("conv2d", padding="same"), pair(1, 2, 5, 6), pair(3, 2, *kernel)), 1e-10, 1e-12)


def test_a_batch_in_several_parts_gives_the_same_gradients():
    pairs = [pair(24, 8, 20, 20), pair(6, 8, 3, 3, seed=1), pair(6, seed=2)]
    ours, theirs = both(functional("conv2d", padding=1, stride=2), *pairs)
    ours.square().sum().backward()
    theirs.square().sum().backward()
    assert_same(ours, theirs, 1e-9, 1e-9)
    for a, b in pairs:
        assert_same(a.grad, b.grad, 1e-9, 1e-9)


def test_an_empty_batch_gives_zero_gradients():
    x, w = backlight.zeros(0, 2, 5, 5), backlight.ones(3, 2, 3, 3, requires_grad=True)
    out = backlight.conv2d(x, w)
    out.sum().backward()
    assert out.shape == (0, 3, 3, 3)
    assert not w.grad.numpy().any()


def test_integers_are_convolved():
    call = lambda t: t.conv2d(t.arange(16).reshape(1, 1, 4, 4), t.ones(1, 1, 2, 2).long())  # noqa: E731
    assert_same(*both(call), 0, 0)


def test_nan_is_the_largest():
    call = lambda t: t.nn.functional.max_pool2d(  # noqa: E731
        t.tensor([[[1.0, float("nan"), 3.0, 2.0], [4.0, 0.0, 5.0, 6.0]]]), 2, return_indices=True
    )
    assert_same(*both(call), 0, 0)


def test_a_window_of_minus_infinity_points_at_its_first_element():
    call = lambda t: t.nn.functional.max_pool2d(  # noqa: E731
        t.full((1, 4, 4), -float("inf")), 3, 2, padding=1, return_indices=True
    )
    assert_same(*both(call), 0, 0)


def test_integers_have_a_largest():
    call = lambda t: t.max_pool2d(t.arange(-16, 0).reshape(1, 4, 4), 2, padding=1)  # noqa: E731
    assert_same(*both(call), 0, 0)


# --- layers -----------------------------------------------------------------------------------------------------------

LAYERS = [
    (lambda nn: nn.Conv1d(3, 4, 3, padding="same"), (2, 3, 7)),
    (lambda nn: nn.Conv2d(4, 6, (3, 2), stride=2, padding=(1, 0), dilation=(1, 2), groups=2), (2, 4, 7, 8)),
    (lambda nn: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect", bias=False), (2, 2, 5, 5)),
    (lambda nn: nn.Conv2d(2, 3, 3, padding=(2, 1), padding_mode="circular"), (2, 2, 5, 5)),
    (lambda nn: nn.Conv3d(2, 3, 2), (1, 2, 3, 4, 3)),
    (lambda nn: nn.ConvTranspose1d(3, 4, 3, stride=2), (2, 3, 5)),
    (lambda nn: nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1, groups=2), (2, 4, 3, 4)),
    (lambda nn: nn.ConvTranspose3d(2, 3, 2, dilation=2), (1, 2, 3, 2, 3)),
    (lambda nn: nn.MaxPool1d(3, 2, 1, ceil_mode=True), (2, 2, 8)),
    (lambda nn: nn.MaxPool2d(2, return_indices=True), (2, 2, 8, 8)),
    (lambda nn: nn.MaxPool3d((1, 2, 2)), (2, 2, 3, 4, 4)),
    (lambda nn: nn.AvgPool1d(2), (2, 2, 8)),
    (lambda nn: nn.AvgPool2d(3, 2, 1, True, False), (2, 2, 8, 8)),
    (lambda nn: nn.AvgPool3d(2, divisor_override=3), (1, 2, 4, 4, 4)),
    (lambda nn: nn.LPPool1d(2, 2), (1, 2, 6)),
    (lambda nn: nn.LPPool2d(2, 3, stride=(2, 1)), (1, 2, 6, 6)),
    (lambda nn: nn.AdaptiveAvgPool1d(3), (1, 2, 7)),
    (lambda nn: nn.AdaptiveAvgPool2d((3, None)), (1, 2, 7, 5)),
    (lambda nn: nn.AdaptiveAvgPool3d(1), (1, 2, 3, 4, 5)),
    (lambda nn: nn.AdaptiveMaxPool1d(3), (1, 2, 7)),
    (lambda nn: nn.AdaptiveMaxPool2d(2, return_indices=True), (1, 2, 7, 5)),
    (lambda nn: nn.AdaptiveMaxPool3d((1, 2, 2)), (1, 2, 3, 4, 5)),
    (lambda nn: nn.Unfold(2, stride=2), (1, 2, 4, 4)),
    (lambda nn: nn.Fold((4, 4), 2, stride=2), (1, 8, 4)),
    (lambda nn: nn.PixelShuffle(2), (1, 8, 2, 2)),
    (lambda nn: nn.PixelUnshuffle(2), (1, 2, 4, 4)),
    (lambda nn: nn.ChannelShuffle(2), (1, 4, 3, 3)),
]


@pytest.mark.parametrize(("make", "shape"), LAYERS)
def test_layers_print_load_and_compute_as_pytorchs(make, shape):
    backlight.manual_seed(0)
    torch.manual_seed(0)
    ours, theirs = make(backlight.nn), make(torch.nn)
    assert str(ours) == str(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for (name, a), b in zip(ours.named_parameters(), theirs.parameters()):
        assert_same(a, b, 1e-6, 1e-7, f"first values of {name}")
    x, y = pair(*shape, dtype=np.float32)
    assert_same(ours(x), theirs(y), 2e-5, 2e-5)


def test_unpooling_layer_undoes_pooling():
    def undone(t, x):
        values, indices = t.nn.MaxPool2d(2, return_indices=True)(x)
        return t.nn.MaxUnpool2d(2)(values, indices, output_size=x.shape)

    assert_same(*both(undone, pair(1, 2, 5, 5)), 0, 0)


@pytest.mark.parametrize("size", [(7, 8), (1, 3, 8, 8)])
def test_transposed_layer_gives_the_size_wanted(size):
    out = backlight.nn.ConvTranspose2d(2, 3, 3, stride=2)(backlight.ones(1, 2, 3, 3), output_size=size)
    assert tuple(out.shape[2:]) == size[-2:]


BAD_LAYERS = [
    lambda nn: nn.Conv2d(3, 4, 3, groups=2),
    lambda nn: nn.Conv2d(4, 3, 3, groups=2),
    lambda nn: nn.Conv2d(4, 3, 3, groups=0),
    lambda nn: nn.Conv2d(4, 3, 3, padding="equal"),
    lambda nn: nn.Conv2d(4, 3, 3, padding="same", stride=2),
    lambda nn: nn.ConvTranspose2d(4, 3, 3, padding_mode="reflect"),
]


@pytest.mark.parametrize("make", BAD_LAYERS)
def test_layers_refuse_what_pytorch_refuses(make):
    with pytest.raises(ValueError) as theirs:
        make(torch.nn)
    with pytest.raises(ValueError) as ours:
        make(backlight.nn)
    assert str(ours.value)[:30] == str(theirs.value)[:30]
