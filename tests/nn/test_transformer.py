"""Attention and transformers start, print, save, compute and differentiate as PyTorch's do."""

import numpy as np
import pytest
import torch

import backlight

KINDS = {"float32": 1e-5, "float64": 1e-10}
PADDED = [[False, False, False, True], [False] * 4, [False, False, True, True]]

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")


def arrays_of(module) -> dict:
    """Return the state of a module of either side as arrays."""
    return {name: tensor.detach().numpy().copy() for name, tensor in module.state_dict().items()}


def assert_close(ours, theirs, tolerance: float) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, strict=True)


def both(make, kind: str):
    """Return a module of each side with equal parameters, after comparing how they start and print."""
    modules = {}
    for t in (torch, backlight):
        t.manual_seed(5)
        modules[t] = make(t).to(getattr(t, kind))
    theirs, ours = modules[torch], modules[backlight]
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for name, array in arrays_of(ours).items():
        np.testing.assert_allclose(array, theirs.state_dict()[name].numpy(), rtol=1e-6)
    rng = np.random.default_rng(2)
    state = {name: array + rng.normal(size=array.shape).astype(kind) * 0.1 for name, array in arrays_of(theirs).items()}
    assert str(ours.load_state_dict(state)) == "<All keys matched successfully>"
    theirs.load_state_dict({name: torch.from_numpy(array) for name, array in arrays_of(ours).items()})
    return ours, theirs


def tensors_in(found) -> list:
    return [one for one in found if one is not None] if isinstance(found, tuple) else [found]


def compare(ours, theirs, call, shapes: list, kind: str) -> None:
    """Assert that a call gives equal outputs and gradients of inputs and parameters."""
    rng = np.random.default_rng(3)
    arrays = [rng.normal(size=shape).astype(kind) for shape in shapes]
    found = []
    for t, module in ((backlight, ours), (torch, theirs)):
        module.zero_grad()
        inputs = [t.tensor(array, requires_grad=True) for array in arrays]
        outs = tensors_in(call(t, module, *inputs))
        sum((one * one).sum() for one in outs).backward()
        leaves = [*inputs, *module.parameters()]
        found.append(
            ([one.detach().numpy() for one in outs], [None if x.grad is None else x.grad.numpy() for x in leaves])
        )
    for mine, other in zip(found[0][0], found[1][0], strict=True):
        assert_close(mine, other, KINDS[kind])
    scale = max(1.0, *[np.abs(grad).max() for grad in found[1][1] if grad is not None])
    for mine, other in zip(found[0][1], found[1][1], strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert_close(mine / scale, other / scale, KINDS[kind])


# --- attention --------------------------------------------------------------------------------------------------------


def causal(t, size: int):
    return t.nn.Transformer.generate_square_subsequent_mask(size)


def three_masks(t):
    """Return a mask for each of 3 batch elements and 2 heads, which leaves each query something to look at."""
    mask = np.random.default_rng(1).random((6, 5, 4)) < 0.4
    mask[..., 0] = False
    return t.tensor(mask)


ATTENTIONS = {
    "to oneself": ({}, lambda t, m, x: m(x, x, x), [(5, 3, 8)]),
    "without weights": ({}, lambda t, m, x: m(x, x, x, need_weights=False), [(5, 3, 8)]),
    "weights of each head": ({}, lambda t, m, x: m(x, x, x, average_attn_weights=False), [(5, 3, 8)]),
    "without batch": ({"batch_first": True}, lambda t, m, x: m(x, x, x), [(5, 8)]),
    "without batch and weights": ({}, lambda t, m, x: m(x, x, x, need_weights=False), [(5, 8)]),
    "to a memory": ({"batch_first": True}, lambda t, m, x, y: m(x, y, y), [(3, 5, 8), (3, 4, 8)]),
    "to keys and values": ({"bias": False}, lambda t, m, x, y, z: m(x, y, z), [(5, 3, 8), (4, 3, 8), (4, 3, 8)]),
    "sizes of their own": (
        {"kdim": 6, "vdim": 7},
        lambda t, m, x, y, z: m(x, y, z),
        [(5, 3, 8), (4, 3, 6), (4, 3, 7)],
    ),
    "sizes of their own, no bias": (
        {"kdim": 6, "bias": False},
        lambda t, m, x, y, z: m(x, y, z, need_weights=False),
        [(5, 3, 8), (4, 3, 6), (4, 3, 8)],
    ),
    "padded": (
        {},
        lambda t, m, x, y: m(x, y, y, key_padding_mask=t.tensor(PADDED)),
        [(5, 3, 8), (4, 3, 8)],
    ),
    "padded, without weights": (
        {"batch_first": True},
        lambda t, m, x, y: m(x, y, y, key_padding_mask=t.tensor(PADDED), need_weights=False),
        [(3, 5, 8), (3, 4, 8)],
    ),
    "causal": ({}, lambda t, m, x: m(x, x, x, attn_mask=causal(t, 5).to(x.dtype)), [(5, 3, 8)]),
    "hinted": (
        {},
        lambda t, m, x: m(x, x, x, attn_mask=causal(t, 5).to(x.dtype), is_causal=True, need_weights=False),
        [(5, 3, 8)],
    ),
    "a mask for each head": ({}, lambda t, m, x, y: m(x, y, y, attn_mask=three_masks(t)), [(5, 3, 8), (4, 3, 8)]),
    "both masks, fused": (
        {},
        lambda t, m, x, y: m(x, y, y, attn_mask=three_masks(t), key_padding_mask=t.tensor(PADDED), need_weights=False),
        [(5, 3, 8), (4, 3, 8)],
    ),
    "one more key": (
        {"add_bias_kv": True},
        lambda t, m, x, y: m(x, y, y, attn_mask=three_masks(t), key_padding_mask=t.tensor(PADDED)),
        [(5, 3, 8), (4, 3, 8)],
    ),
    "zeros too": (
        {"add_bias_kv": True, "add_zero_attn": True},
        lambda t, m, x, y: m(x, y, y, key_padding_mask=t.tensor(PADDED), need_weights=False),
        [(5, 3, 8), (4, 3, 8)],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_is_pytorchs(name, kind):
    options, call, shapes = ATTENTIONS[name]
    ours, theirs = both(lambda t: t.nn.MultiheadAttention(8, 2, **options), kind)
    for training in (True, False):
        compare(ours.train(training), theirs.train(training), call, shapes, kind)


def test_attention_drops_weights_only_while_training():
    layer = backlight.nn.MultiheadAttention(8, 2, dropout=0.5)
    x = backlight.ones(5, 3, 8)
    assert layer(x, x, x)[1].tolist() != layer(x, x, x)[1].tolist()
    layer.eval()
    assert layer(x, x, x)[1].tolist() == layer(x, x, x)[1].tolist()


# --- transformers -----------------------------------------------------------------------------------------------------

SMALL = {"d_model": 8, "nhead": 2, "dim_feedforward": 12, "dropout": 0.0}


def encoder(t, **options):
    layer = t.nn.TransformerEncoderLayer(**SMALL, **options)
    return t.nn.TransformerEncoder(layer, 2, t.nn.LayerNorm(8))


def decoder(t, **options):
    return t.nn.TransformerDecoder(t.nn.TransformerDecoderLayer(**SMALL, **options), 2)


TRANSFORMERS = {
    "encoder layer": (
        lambda t: t.nn.TransformerEncoderLayer(**SMALL, batch_first=True),
        lambda t, m, x: m(x),
        [(3, 4, 8)],
    ),
    "encoder layer, norm first": (
        lambda t: t.nn.TransformerEncoderLayer(**SMALL, norm_first=True, activation="gelu", bias=False),
        lambda t, m, x: m(x, src_key_padding_mask=t.tensor(PADDED)),
        [(4, 3, 8)],
    ),
    "encoder layer with a function": (
        lambda t: t.nn.TransformerEncoderLayer(**SMALL, activation=t.tanh, layer_norm_eps=0.1),
        lambda t, m, x: m(x),
        [(4, 8)],
    ),
    "encoder": (encoder, lambda t, m, x: m(x), [(4, 3, 8)]),
    "encoder, padded": (
        lambda t: encoder(t, batch_first=True),
        lambda t, m, x: m(x, src_key_padding_mask=t.tensor(PADDED)),
        [(3, 4, 8)],
    ),
    "encoder, causal": (
        lambda t: encoder(t, norm_first=True),
        lambda t, m, x: m(x, mask=causal(t, 4).to(x.dtype)),
        [(4, 3, 8)],
    ),
    "decoder layer": (
        lambda t: t.nn.TransformerDecoderLayer(**SMALL),
        lambda t, m, x, y: m(x, y, tgt_mask=causal(t, 5).to(x.dtype)),
        [(5, 3, 8), (4, 3, 8)],
    ),
    "decoder layer, norm first": (
        lambda t: t.nn.TransformerDecoderLayer(**SMALL, norm_first=True, activation="gelu", batch_first=True),
        lambda t, m, x, y: m(x, y, memory_key_padding_mask=t.tensor(PADDED)),
        [(3, 5, 8), (3, 4, 8)],
    ),
    "decoder": (
        decoder,
        lambda t, m, x, y: m(x, y, tgt_mask=causal(t, 5).to(x.dtype)),
        [(5, 3, 8), (4, 3, 8)],
    ),
    "transformer": (
        lambda t: t.nn.Transformer(**SMALL, num_encoder_layers=1, num_decoder_layers=2),
        lambda t, m, x, y: m(x, y, tgt_mask=causal(t, 5).to(x.dtype), tgt_is_causal=True),
        [(4, 3, 8), (5, 3, 8)],
    ),
    "transformer with masks": (
        lambda t: t.nn.Transformer(**SMALL, num_encoder_layers=1, num_decoder_layers=1, batch_first=True, bias=False),
        lambda t, m, x, y: m(x, y, src_key_padding_mask=t.tensor(PADDED), memory_key_padding_mask=t.tensor(PADDED)),
        [(3, 4, 8), (3, 5, 8)],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformer_is_pytorchs(name, kind):
    make, call, shapes = TRANSFORMERS[name]
    ours, theirs = both(make, kind)
    for training in (True, False):
        compare(ours.train(training), theirs.train(training), call, shapes, kind)


def test_custom_parts_take_the_place_of_encoder_and_decoder():
    model = backlight.nn.Transformer(8, 2, custom_encoder=encoder(backlight), custom_decoder=decoder(backlight))
    assert model(backlight.ones(4, 3, 8), backlight.ones(5, 3, 8)).shape == (5, 3, 8)


def test_the_causal_mask_is_pytorchs():
    for options in ({}, {"dtype": "float64"}):
        masks = []
        for t in (backlight, torch):
            given = {name: getattr(t, value) for name, value in options.items()}
            masks.append(repr(t.nn.Transformer.generate_square_subsequent_mask(4, **given)))
        assert masks[0] == masks[1]


MISTAKES = {
    "no heads": lambda t: t.nn.MultiheadAttention(8, 0),
    "heads that do not fit": lambda t: t.nn.MultiheadAttention(8, 3),
    "another size": lambda t: attend(t, (5, 3, 6)),
    "one dim": lambda t: attend(t, (8,)),
    "no mask for the hint": lambda t: attend(t, (5, 3, 8), is_causal=True),
    "mask of another shape": lambda t: attend(t, (5, 3, 8), attn_mask=t.zeros(4, 5)),
    "mask of another cube": lambda t: attend(t, (5, 3, 8), attn_mask=t.zeros(2, 5, 5)),
    "mask of integers": lambda t: attend(t, (5, 3, 8), attn_mask=t.zeros(5, 5, dtype=t.int64)),
    "padding without batch": lambda t: attend(t, (5, 3, 8), key_padding_mask=t.zeros(5) > 0),
    "unknown activation": lambda t: t.nn.TransformerEncoderLayer(8, 2, activation="sine"),
    "another batch": lambda t: t.nn.Transformer(8, 2, 1, 1)(t.ones(4, 3, 8), t.ones(4, 2, 8)),
    "another feature number": lambda t: t.nn.Transformer(8, 2, 1, 1)(t.ones(4, 3, 8), t.ones(4, 3, 6)),
}


def attend(t, shape, **options):
    x = t.ones(*shape)
    return t.nn.MultiheadAttention(8, 2)(x, x, x, **options)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_have_pytorchs_words(mistake):
    with pytest.raises(Exception) as theirs:
        MISTAKES[mistake](torch)
    with pytest.raises(Exception) as ours:
        MISTAKES[mistake](backlight)
    assert isinstance(ours.value, type(theirs.value))
    assert str(ours.value).startswith(str(theirs.value))
