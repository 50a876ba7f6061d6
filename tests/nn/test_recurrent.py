"""Recurrent layers, cells and packed sequences start, print, compute and differentiate as PyTorch's do."""

import numpy as np
import pytest
import torch

import backlight
from backlight.autograd import gradcheck, gradgradcheck
from backlight.ops.nn import recurrent

KINDS = {"float32": 1e-5, "float64": 1e-10}
LENGTHS = [2, 4, 1]

LAYERS = {
    "rnn": lambda t: t.nn.RNN(3, 4),
    "rnn with relu": lambda t: t.nn.RNN(3, 4, 2, "relu", bias=False),
    "rnn by keywords": lambda t: t.nn.RNN(3, 4, nonlinearity="relu", bidirectional=True),
    "lstm": lambda t: t.nn.LSTM(3, 4),
    "deep lstm": lambda t: t.nn.LSTM(3, 4, 3, batch_first=True, bias=False),
    "lstm both ways": lambda t: t.nn.LSTM(3, 4, 2, bidirectional=True),
    "projected lstm": lambda t: t.nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2),
    "projected lstm without bias": lambda t: t.nn.LSTM(3, 4, proj_size=2, bias=False, batch_first=True),
    "gru": lambda t: t.nn.GRU(3, 4),
    "deep gru": lambda t: t.nn.GRU(3, 4, 2, bidirectional=True, batch_first=True),
    "gru without bias": lambda t: t.nn.GRU(3, 4, bias=False),
    "lstm with dropout": lambda t: t.nn.LSTM(3, 4, 2, dropout=0.4, bidirectional=True),
}


def arrays_of(module) -> dict:
    """Return the state of a module of either side as arrays."""
    return {name: tensor.detach().numpy().copy() for name, tensor in module.state_dict().items()}


def assert_close(ours, theirs, tolerance: float) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, strict=True)


def both(make, kind: str):
    """Return a layer of each side with equal parameters, after comparing how they start and print."""
    layers = {}
    for t in (torch, backlight):
        t.manual_seed(5)
        layers[t] = make(t).to(getattr(t, kind))
    theirs, ours = layers[torch], layers[backlight]
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for name, array in arrays_of(ours).items():
        np.testing.assert_array_equal(array, theirs.state_dict()[name].numpy())
    rng = np.random.default_rng(2)
    state = {name: rng.normal(size=array.shape).astype(kind) * 0.5 for name, array in arrays_of(theirs).items()}
    assert str(ours.load_state_dict(state)) == "<All keys matched successfully>"
    theirs.load_state_dict({name: torch.from_numpy(array) for name, array in arrays_of(ours).items()})
    return ours, theirs


def states_for(layer, batch: tuple, kind: str) -> list[np.ndarray]:
    """Return random first states."""
    places = layer.num_layers * (2 if layer.bidirectional else 1)
    sizes = [layer.proj_size or layer.hidden_size] + [layer.hidden_size] * (layer.mode == "LSTM")
    rng = np.random.default_rng(4)
    return [rng.normal(size=(places, *batch, size)).astype(kind) for size in sizes]


def flat(found) -> list:
    """Return the tensors of nested tuples, the rows of packed sequences included."""
    return [tensor for one in found for tensor in flat(one)] if isinstance(found, tuple) else [found]


def run(t, layer, values: np.ndarray, states: list, packed: bool):
    """Return outputs, last states and gradients as arrays."""
    t.manual_seed(6)
    x = t.tensor(values, requires_grad=True)
    first = [t.tensor(state, requires_grad=True) for state in states]
    given = x
    if packed:
        given = t.nn.utils.rnn.pack_padded_sequence(x, LENGTHS, layer.batch_first, enforce_sorted=False)
    hx = None if not first else tuple(first) if len(first) > 1 else first[0]
    out, last = layer(given, hx)
    if packed:
        out, lengths = t.nn.utils.rnn.pad_packed_sequence(out, layer.batch_first)
        assert lengths.tolist() == LENGTHS
    outs = flat((out, last))
    sum((one * one).sum() * number for number, one in enumerate(outs, 1)).backward()
    grads = [leaf.grad.numpy() for leaf in [x, *first, *layer.parameters()]]
    return [one.detach().numpy() for one in outs], grads


def assert_same_run(ours, theirs, tolerance: float) -> None:
    for mine, other in zip(ours[0], theirs[0], strict=True):
        assert_close(mine, other, tolerance)
    for mine, other in zip(ours[1], theirs[1], strict=True):
        assert_close(mine, other, tolerance * 10)


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize("given", [True, False], ids=["states", "no states"])
@pytest.mark.parametrize("form", ["batched", "unbatched", "packed"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_pytorchs(name, kind, form, given):
    ours, theirs = both(LAYERS[name], kind)
    shape = {"batched": (3, 4, 3), "unbatched": (4, 3), "packed": (3, 4, 3) if ours.batch_first else (4, 3, 3)}[form]
    values = np.random.default_rng(3).normal(size=shape).astype(kind)
    batch = () if form == "unbatched" else (3,) if form == "packed" or ours.batch_first else (4,)
    states = states_for(ours, batch, kind) if given else []
    for training in (True, False):
        if training and ours.dropout:
            continue  # PyTorch draws its dropout elsewhere on some processors
        ours.train(training).zero_grad()
        theirs.train(training).zero_grad()
        packed = form == "packed"
        found = [run(t, layer, values, states, packed) for t, layer in ((backlight, ours), (torch, theirs))]
        assert_same_run(*found, KINDS[kind])


def test_dropout_between_layers_drops_only_while_training():
    layer = LAYERS["lstm with dropout"](backlight)
    x = backlight.ones(5, 2, 3)
    assert layer(x)[0].tolist() != layer(x)[0].tolist()
    layer.eval()
    assert layer(x)[0].tolist() == layer(x)[0].tolist()


CELLS = {
    "rnn cell": lambda t: t.nn.RNNCell(3, 4),
    "rnn cell with relu": lambda t: t.nn.RNNCell(3, 4, nonlinearity="relu", bias=False),
    "lstm cell": lambda t: t.nn.LSTMCell(3, 4),
    "lstm cell without bias": lambda t: t.nn.LSTMCell(3, 4, bias=False),
    "gru cell": lambda t: t.nn.GRUCell(3, 4),
    "gru cell without bias": lambda t: t.nn.GRUCell(3, 4, bias=False),
}


@pytest.mark.parametrize("given", [True, False], ids=["states", "no states"])
@pytest.mark.parametrize("batch", [(5,), ()], ids=["batched", "unbatched"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CELLS)
def test_cell_is_pytorchs(name, kind, batch, given):
    ours, theirs = both(CELLS[name], kind)
    rng = np.random.default_rng(3)
    values = rng.normal(size=(*batch, 3)).astype(kind)
    count = (2 if "lstm" in name else 1) if given else 0
    states = [rng.normal(size=(*batch, 4)).astype(kind) for _ in range(count)]
    found = []
    for t, cell in ((backlight, ours), (torch, theirs)):
        x, first = t.tensor(values, requires_grad=True), [t.tensor(state, requires_grad=True) for state in states]
        outs = flat((cell(x, *([tuple(first)] if count == 2 else first)),))
        sum((one * one).sum() for one in outs).backward()
        leaves = [x, *first, *cell.parameters()]
        found.append(([one.detach().numpy() for one in outs], [leaf.grad.numpy() for leaf in leaves]))
    assert_same_run(*found, KINDS[kind])


# --- the ops ----------------------------------------------------------------------------------------------------------

OPS = {
    "tanh": (lambda *given: recurrent.rnn_steps(*given, False), [2], [], 2, None),
    "relu": (lambda *given: recurrent.rnn_steps(*given, True), [2], [], 2, None),
    "lstm": (recurrent.lstm_steps, [2, 2], [], 8, None),
    "projected lstm": (recurrent.lstm_steps, [1, 2], [(1, 2)], 8, 1),
    "gru": (recurrent.gru_steps, [2], [(6,)], 6, None),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sizes", [(2, 2), (3, 2, 1)])
@pytest.mark.parametrize("name", OPS)
def test_gradients_and_their_gradients_are_right(name, sizes, reverse):
    run_steps, states, more, columns, width = OPS[name]
    rng = np.random.default_rng(7)

    def leaf(*shape):
        return backlight.tensor(rng.normal(size=shape) * 0.5, requires_grad=True)

    leaves = [leaf(sum(sizes), columns), *[leaf(sizes[0], size) for size in states], leaf(columns, width or 2)]
    leaves += [leaf(*shape) for shape in more]

    def function(*given):
        missing = [None] * (name == "lstm")
        return run_steps(*given, *missing, sizes, reverse)

    assert gradcheck(function, leaves)
    assert gradgradcheck(function, leaves)


def test_only_the_last_state_may_have_a_gradient():
    found = []
    for t in (backlight, torch):
        t.manual_seed(1)
        layer = t.nn.LSTM(2, 3)
        x = t.ones(4, 2, 2, requires_grad=True)
        layer(x)[1][1].sum().backward()
        found.append(x.grad.numpy())
    assert_close(*found, 1e-6)


# --- mistakes ---------------------------------------------------------------------------------------------------------

MISTAKES = {
    "four dims": lambda t: t.nn.LSTM(2, 3)(t.ones(1, 2, 3, 2)),
    "four dims for rnn": lambda t: t.nn.RNN(2, 3)(t.ones(1, 2, 3, 2)),
    "no steps": lambda t: t.nn.LSTM(2, 3)(t.ones(0, 2, 2)),
    "other size": lambda t: t.nn.GRU(2, 3)(t.ones(2, 2, 3)),
    "other dtype": lambda t: t.nn.GRU(2, 3)(t.ones(2, 2, 2, dtype=t.float64)),
    "state of another batch": lambda t: t.nn.GRU(2, 3)(t.ones(2, 2, 2), t.zeros(1, 1, 3)),
    "states of another batch": lambda t: t.nn.LSTM(2, 3)(t.ones(2, 2, 2), (t.zeros(1, 2, 3), t.zeros(1, 1, 3))),
    "state without batch": lambda t: t.nn.GRU(2, 3)(t.ones(2, 2, 2), t.zeros(1, 3)),
    "states without batch": lambda t: t.nn.LSTM(2, 3)(t.ones(2, 2, 2), (t.zeros(1, 3), t.zeros(1, 3))),
    "state with batch": lambda t: t.nn.RNN(2, 3)(t.ones(2, 2), t.zeros(1, 1, 3)),
    "dropout no number": lambda t: t.nn.LSTM(2, 3, dropout=2),
    "bias no bool": lambda t: t.nn.LSTM(2, 3, bias=1),
    "size no int": lambda t: t.nn.LSTM(2.0, 3),
    "hidden size 0": lambda t: t.nn.LSTM(2, 0),
    "no layers": lambda t: t.nn.GRU(2, 3, 0),
    "large projection": lambda t: t.nn.LSTM(2, 3, proj_size=3),
    "unknown nonlinearity": lambda t: t.nn.RNN(2, 3, nonlinearity="sine"),
    "cell of three dims": lambda t: t.nn.LSTMCell(2, 3)(t.ones(1, 1, 2)),
    "cell with another input": lambda t: t.nn.LSTMCell(2, 3)(t.ones(2, 3)),
    "cell with another state": lambda t: t.nn.GRUCell(2, 3)(t.ones(2, 2), t.ones(2, 4)),
    "cell with another batch": lambda t: t.nn.GRUCell(2, 3)(t.ones(2, 2), t.ones(1, 3)),
    "unsorted lengths": lambda t: t.nn.utils.rnn.pack_padded_sequence(t.ones(3, 2, 1), [1, 2]),
    "length 0": lambda t: t.nn.utils.rnn.pack_padded_sequence(t.ones(3, 2, 1), [1, 0]),
    "too many lengths": lambda t: t.nn.utils.rnn.pack_padded_sequence(t.ones(3, 2, 1), [1, 1, 1]),
    "short total": lambda t: t.nn.utils.rnn.pad_packed_sequence(
        t.nn.utils.rnn.pack_padded_sequence(t.ones(3, 2, 1), [3, 1]), total_length=2
    ),
    "unknown side": lambda t: t.nn.utils.rnn.pad_sequence([t.ones(2)], padding_side="up"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_have_pytorchs_words(mistake):
    with pytest.raises(Exception) as theirs:
        MISTAKES[mistake](torch)
    with pytest.raises(Exception) as ours:
        MISTAKES[mistake](backlight)
    assert isinstance(ours.value, type(theirs.value))
    assert str(ours.value).startswith(str(theirs.value))


# --- packing ----------------------------------------------------------------------------------------------------------


def sequences(t) -> list:
    """Return every way between lists, padded and packed batches, printed."""
    rnn = t.nn.utils.rnn
    parts = [t.tensor([[1.0, 2.0]]), t.tensor([[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]), t.tensor([[9.0, 10.0]] * 2)]
    packed = rnn.pack_sequence(parts, enforce_sorted=False)
    return [
        packed,
        packed.double(),
        rnn.pad_sequence(parts),
        rnn.pad_sequence(parts, batch_first=True, padding_value=-1.0, padding_side="left"),
        rnn.pad_packed_sequence(packed),
        rnn.pad_packed_sequence(packed, batch_first=True, padding_value=0.5, total_length=5),
        rnn.unpack_sequence(packed),
        rnn.unpad_sequence(rnn.pad_sequence(parts, True), t.tensor([1, 3, 2]), batch_first=True),
        rnn.pack_padded_sequence(t.arange(12.0).reshape(2, 3, 2), t.tensor([3, 2]), batch_first=True),
        rnn.invert_permutation(t.tensor([2, 0, 1])),
    ]


def test_packing_gives_what_pytorch_gives():
    for ours, theirs in zip(sequences(backlight), sequences(torch), strict=True):
        assert repr(ours) == repr(theirs)
