"""Runs a small random model of transformers and ours on the same texts, and holds together all that they compute."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from tiny_bert import relative_error

from backlight.autograd import grad
from backlight.models.encoders.encoder import Trace
from backlight.models.pooling import pooled
from backlight.models.tokens import Batch
from backlight.ops.indexing.index_selection import index_select
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor

LENGTHS = (9, 4, 1, 13)
CLOSE = 1e-5


@dataclass(frozen=True, eq=False)
class Inside:
    """What a model computed for texts: a row a token, and of attentions an array a text, (heads, queries, keys)."""

    logits: np.ndarray  # (texts, labels)
    states: list[np.ndarray]  # by layer, (tokens, hidden)
    attentions: list[list[np.ndarray]]  # by layer and text
    slopes: np.ndarray  # of the sum of all logits, for the embeddings


def random_model(model_class: type, config, seed: int = 0) -> torch.nn.Module:
    """Return a frozen model all of whose weights are drawn, norms and biases too."""
    torch.manual_seed(seed)
    config._attn_implementation = "eager"
    model = model_class(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.2)
    return model.requires_grad_(False)


def arrays_of(model: torch.nn.Module) -> dict[str, np.ndarray]:
    """Return the weights as a checkpoint holds them."""
    return {name: weight.numpy() for name, weight in model.state_dict().items()}


def random_batch(vocabulary: int, types: int = 1, lengths: tuple[int, ...] = LENGTHS, seed: int = 0) -> Batch:
    """Return texts of drawn tokens."""
    rng = np.random.default_rng(seed)
    total = sum(lengths)
    positions = np.concatenate([np.arange(length) for length in lengths])
    return Batch(rng.integers(1, vocabulary, total), rng.integers(0, types, total), positions, tuple(lengths))


def without(batch: Batch, left_out: np.ndarray) -> Batch:
    """Return the texts without some tokens; the others keep their positions."""
    keep = ~left_out
    lengths = tuple(int(part.sum()) for part in batch.parts(keep))
    return Batch(batch.ids[keep], batch.type_ids[keep], batch.positions[keep], lengths)


def some_left_out(batch: Batch, seed: int = 0) -> np.ndarray:
    """Return which tokens to leave out: about a third, never a text's first or last."""
    found = np.random.default_rng(seed).random(len(batch.ids)) < 0.35
    found[[*batch.starts, *(np.cumsum(batch.lengths) - 1)]] = False
    return found


def in_ours(encoder, head, batch: Batch) -> Inside:
    """Run our model with each step in sight."""
    leaf = leaf_of(encoder, batch)
    trace = Trace()
    logits = logits_of_states(head, batch, encoder(batch, leaf, trace=trace))
    (slopes,) = grad(logits.sum(), [leaf])
    attentions = [[part.detach().numpy() for part in layer] for layer in trace.attentions]
    return Inside(logits.detach().numpy(), [one.detach().numpy() for one in trace.states], attentions, slopes.numpy())


def leaf_of(encoder, batch: Batch) -> Tensor:
    """Return the word embeddings of the texts, ready to be given back to the encoder."""
    return encoder.embed_words(batch.ids).detach().requires_grad_()


def logits_of_states(head, batch: Batch, states: Tensor) -> Tensor:
    """Return the logits from the states of all tokens; (texts, labels)."""
    if head.reads == "mean":
        return head(pooled(states, batch, "mean"))
    return head(index_select(states, 0, from_numpy(places_read(head, batch))))


def ordinary_logits(encoder, head, batch: Batch, inputs_embeds: Tensor | None = None) -> Tensor:
    """Return the logits of our ordinary call, whose last layer works on the tokens alone that the head reads."""
    if head.reads == "mean":
        return logits_of_states(head, batch, encoder(batch, inputs_embeds))
    return head(encoder(batch, inputs_embeds, places_read(head, batch)))


def places_read(head, batch: Batch) -> np.ndarray:
    """Return the places of the tokens that a head reads."""
    return np.cumsum(batch.lengths) - 1 if head.reads == "lasttoken" else np.array(batch.starts)


@dataclass(frozen=True, eq=False)
class Run:
    """What transformers gave for texts padded into a rectangle, with its graph."""

    embeddings: torch.Tensor  # (texts, longest, size), the leaf
    mask: torch.Tensor  # (texts, longest), what may be looked at
    output: object


def run_theirs(model: torch.nn.Module, batch: Batch, left_out: np.ndarray | None = None, **inputs: np.ndarray) -> Run:
    """Run transformers on the texts; its arguments are those of `in_theirs`."""
    longest = max(batch.lengths)

    def rectangle(values: np.ndarray) -> torch.Tensor:
        rows = [np.pad(part, (0, longest - len(part))) for part in batch.parts(values)]
        return torch.tensor(np.stack(rows))

    keep = np.ones(len(batch.ids), bool) if left_out is None else ~left_out
    mask = rectangle(keep)
    embeddings = model.get_input_embeddings()(rectangle(batch.ids)).detach().requires_grad_()
    output = model(
        inputs_embeds=embeddings,
        attention_mask=mask.long(),
        output_hidden_states=True,
        output_attentions=True,
        **{name: rectangle(values) for name, values in inputs.items()},
    )
    return Run(embeddings, mask, output)


def in_theirs(
    model: torch.nn.Module,
    batch: Batch,
    left_out: np.ndarray | None = None,
    logits_of: Callable = lambda output, lasts: output.logits,
    **inputs: np.ndarray,
) -> Inside:
    """Run transformers on the texts padded into a rectangle.

    Args:
        left_out: which tokens the attention mask hides; nothing is returned for them.
        logits_of: returns the logits (texts, labels) from the output and the column of each text's last token.
        inputs: further inputs, a value a token.
    """
    run = run_theirs(model, batch, left_out, **inputs)
    embeddings, mask, output = run.embeddings, run.mask, run.output
    logits = logits_of(output, torch.tensor(batch.lengths) - 1)
    (slopes,) = torch.autograd.grad(logits.sum(), [embeddings])
    assert not slopes[~mask].any(), "a token that the mask hides has no slope"
    attentions = [
        [one[:, row][:, :, row].detach().numpy() for one, row in zip(layer, mask)] for layer in output.attentions
    ]
    states = [one[mask].detach().numpy() for one in output.hidden_states]
    return Inside(logits.detach().numpy(), states, attentions, slopes[mask].numpy())


def check_same(ours: Inside, theirs: Inside) -> None:
    """Fail unless all that two models computed is the same within 1e-5, relative."""
    assert ours.logits.shape == theirs.logits.shape
    assert relative_error(ours.logits.reshape(1, -1), theirs.logits.reshape(1, -1)) < CLOSE
    assert len(ours.states) == len(theirs.states)
    for mine, expected in zip(ours.states, theirs.states):
        assert relative_error(mine, expected) < CLOSE
    assert len(ours.attentions) == len(theirs.attentions)
    for mine, expected in zip(ours.attentions, theirs.attentions):
        for one, other in zip(mine, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert relative_error(ours.slopes, theirs.slopes) < CLOSE
    assert np.linalg.norm(theirs.slopes, axis=1).min() > 0, "every token counts"
