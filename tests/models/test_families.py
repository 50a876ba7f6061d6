"""Every family gives what transformers gives: logits, states, attentions, slopes, whatever its config asks for."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
import transformers
from beside_transformers import (
    LENGTHS,
    arrays_of,
    check_same,
    in_ours,
    in_theirs,
    leaf_of,
    logits_of_states,
    ordinary_logits,
    random_batch,
    random_model,
    run_theirs,
    some_left_out,
    without,
)
from tiny_bert import relative_error

from backlight.autograd import grad
from backlight.errors import InputError
from backlight.models.checkpoint import read_settings, read_weights
from backlight.models.encoders.encoder import Trace
from backlight.models.encoders.families import FAMILIES, family_of
from backlight.models.encoders.modernbert import bands_of
from backlight.models.tokens import Batch
from backlight.tensor.creation import from_numpy

VOCABULARY = 40

SIZES = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20}
BERT = SIZES | {"max_position_embeddings": 20}
DISTILBERT = {"dim": 12, "n_layers": 2, "n_heads": 3, "hidden_dim": 20, "max_position_embeddings": 20}
MODERNBERT = SIZES | {"hidden_size": 24, "num_hidden_layers": 3, "pad_token_id": 0}
MODERN = MODERNBERT | {"vocab_size": 9}
BIASES = dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), True)


@dataclass(frozen=True)
class Case:
    """A model to compare: what its config says beside the vocabulary, and what texts it is given."""

    kind: str
    settings: dict
    labels: int = 1
    segments: int = 1
    lengths: tuple[int, ...] = LENGTHS


CASES = {
    "bert": Case("bert", BERT, labels=2, segments=2),
    "bert, other sizes": Case("bert", BERT | {"type_vocab_size": 3, "layer_norm_eps": 1e-3}, segments=3),
    "electra": Case("electra", BERT | {"embedding_size": 12}, segments=2),
    "electra with short embeddings": Case("electra", BERT | {"embedding_size": 8}, labels=3, segments=2),
    "roberta": Case("roberta", BERT | {"type_vocab_size": 1}),
    "roberta, padding 3": Case("roberta", BERT | {"pad_token_id": 3, "type_vocab_size": 2}, segments=2),
    "xlm-roberta": Case("xlm-roberta", BERT | {"type_vocab_size": 1, "hidden_act": "relu"}, labels=2),
    "camembert": Case("camembert", BERT),
    "distilbert": Case("distilbert", DISTILBERT | {"activation": "relu"}, labels=2),
    "distilbert, sinusoidal": Case("distilbert", DISTILBERT | {"sinusoidal_pos_embds": True}),
    "modernbert": Case("modernbert", MODERNBERT, labels=2),
    "modernbert, narrow window": Case(
        "modernbert", MODERNBERT | {"local_attention": 6, "norm_eps": 1e-3}, lengths=(9, 40, 1, 3)
    ),
    "modernbert with biases": Case("modernbert", MODERNBERT | BIASES | {"classifier_pooling": "mean"}, labels=3),
    "modernbert, other layers": Case(
        "modernbert",
        MODERNBERT
        | {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "local_attention": 5}
        | {"rope_parameters": {"full_attention": {"rope_theta": 50.0}, "sliding_attention": {"rope_theta": 7.0}}}
        | {"hidden_activation": "silu", "classifier_activation": "tanh", "classifier_pooling": "mean"},
    ),
}


def write_family(folder, kind: str, **settings) -> torch.nn.Module:
    """Write a classifier with random weights as save_pretrained does; return it."""
    config = transformers.AutoConfig.for_model(kind, vocab_size=VOCABULARY, **settings)
    model = random_model(transformers.AutoModelForSequenceClassification.from_config, config)
    model.save_pretrained(folder)
    return model


def read_family(folder, labels: int):
    """Return encoder and head of the classifier in a folder."""
    settings = read_settings(folder / "config.json")
    family, weights = family_of(folder, settings), read_weights(folder)
    config = family.config.of(settings)
    return family.encoder(config, weights), family.head(config, weights, labels)


@dataclass(frozen=True, eq=False)
class Both:
    """One model, as backlight and as transformers reads it from a folder, and texts."""

    encoder: object
    head: object
    theirs: torch.nn.Module
    batch: Batch
    inputs: dict  # what transformers is given beside embeddings and mask


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def both(request, tmp_path_factory):
    case, folder = request.param, tmp_path_factory.mktemp("model")
    theirs = write_family(folder, case.kind, num_labels=case.labels, **case.settings)
    encoder, head = read_family(folder, case.labels)
    batch = random_batch(VOCABULARY, case.segments, case.lengths)
    return Both(encoder, head, theirs, batch, {"token_type_ids": batch.type_ids} if case.segments > 1 else {})


def test_all_that_is_computed_equals_transformers(both):
    theirs = in_theirs(both.theirs, both.batch, **both.inputs)
    check_same(in_ours(both.encoder, both.head, both.batch), theirs)
    assert relative_error(ordinary_logits(both.encoder, both.head, both.batch).numpy().T, theirs.logits.T) < 1e-5


def test_tokens_left_out_are_as_tokens_that_a_mask_hides(both):
    left_out = some_left_out(both.batch)
    theirs = in_theirs(both.theirs, both.batch, left_out, **both.inputs)
    check_same(in_ours(both.encoder, both.head, without(both.batch, left_out)), theirs)


def test_slopes_and_slopes_of_slopes_equal_transformers(both):
    leaf = leaf_of(both.encoder, both.batch)
    direction = np.random.default_rng(2).normal(size=leaf.shape).astype(np.float32)
    ordinary = ordinary_logits(both.encoder, both.head, both.batch, leaf)
    slopes, bends = slopes_and_bends(ordinary, leaf, direction)
    traced = logits_of_states(both.head, both.batch, both.encoder(both.batch, leaf, trace=Trace()))
    traced_slopes, traced_bends = slopes_and_bends(traced, leaf, direction)
    run = run_theirs(both.theirs, both.batch, **both.inputs)
    (their_slopes,) = torch.autograd.grad(run.output.logits[:, -1].sum(), [run.embeddings], create_graph=True)
    product = (their_slopes[run.mask] * torch.from_numpy(direction)).sum()
    (their_bends,) = torch.autograd.grad(product, [run.embeddings])
    for own in (slopes, traced_slopes):
        assert relative_error(own, their_slopes[run.mask].detach().numpy()) < 1e-5
    for own in (bends, traced_bends):
        assert relative_error(own, their_bends[run.mask].numpy()) < 1e-4


def slopes_and_bends(logits, leaf, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the slopes of the last label's logits, and the slopes of their product with a direction."""
    (slopes,) = grad(logits[:, -1].sum(), [leaf], create_graph=True)
    (bends,) = grad((slopes * from_numpy(direction)).sum(), [leaf])
    return slopes.detach().numpy(), bends.numpy()


def test_slopes_of_states_and_attentions_inside_equal_transformers(both):
    leaf, trace = leaf_of(both.encoder, both.batch), Trace()
    logits = logits_of_states(both.head, both.batch, both.encoder(both.batch, leaf, trace=trace))
    of_states, *of_attentions = grad(logits[:, -1].sum(), [trace.states[1], *trace.attentions[1]])
    run = run_theirs(both.theirs, both.batch, **both.inputs)
    places = [run.output.hidden_states[1], run.output.attentions[1]]
    their_states, their_attentions = torch.autograd.grad(run.output.logits[:, -1].sum(), places)
    check_close(of_states.numpy(), their_states[run.mask].numpy())
    for own, theirs in zip(of_attentions, their_attentions.numpy(), strict=True):
        check_close(own.numpy(), theirs[:, : own.shape[1], : own.shape[2]])


def check_close(ours: np.ndarray, theirs: np.ndarray, name: str = "") -> None:
    """Fail unless arrays, some of whose rows may be 0, are the same as seen from the largest value."""
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-5 * np.abs(theirs).max(), err_msg=name)


def test_a_last_layer_on_wanted_tokens_alone_equals_one_on_all(both):
    places = [sum(both.batch.lengths) - 1, 0, 4]
    alone = both.encoder(both.batch, wanted=places).numpy()
    assert relative_error(alone, both.encoder(both.batch).numpy()[places]) < 1e-5


def test_slopes_of_weights_equal_transformers(both):
    prefix = f"{both.theirs.base_model_prefix}."
    theirs = {name.removeprefix(prefix): weight for name, weight in both.theirs.named_parameters()}
    ours = both.encoder.parameters() | both.head.parameters()
    words = both.theirs.get_input_embeddings().weight  # looked up before
    names = [name for name in ours if name in theirs and theirs[name] is not words]  # query, key, value may be one
    assert len(names) > 10
    asked, expected = [ours[name] for name in names], [theirs[name] for name in names]
    try:
        for weight in (*asked, *expected):
            weight.requires_grad_(True)
        slopes = grad(ordinary_logits(both.encoder, both.head, both.batch).sum(), asked)
        their_slopes = torch.autograd.grad(
            run_theirs(both.theirs, both.batch, **both.inputs).output.logits.sum(), expected
        )
    finally:
        for weight in (*asked, *expected):
            weight.requires_grad_(False)
    for name, own, their in zip(names, slopes, their_slopes, strict=True):
        check_close(own.numpy(), their.numpy(), name)


def test_a_state_dict_has_the_names_and_arrays_of_the_checkpoint(both):
    prefix = f"{both.theirs.base_model_prefix}."
    written = {name.removeprefix(prefix): array for name, array in arrays_of(both.theirs).items()}
    found = both.encoder.state_dict()
    assert set(found) | set(both.head.parameters()) == set(written)
    assert all(np.array_equal(array.numpy(), written[name]) for name, array in found.items())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model_type": "gpt2"}, "unknown architecture, gpt2: backlight runs bert"),
        ({}, "unknown architecture, none named: backlight runs bert"),
        (
            {"model_type": "bert", "architectures": ["BertForTokenClassification"]},
            "unknown architecture, BertForTokenClassification: of bert backlight runs BertForSequence",
        ),
    ],
)
def test_an_unknown_architecture_names_the_known_ones_and_the_extra(settings, said):
    with pytest.raises(InputError, match=said) as caught:
        family_of("folder", settings)
    assert all(hint in str(caught.value) for hint in ('pip install "backlight[torch]"', 'engine="torch"'))
    assert "\n" not in str(caught.value)


def test_a_family_knows_which_models_have_a_head():
    bert = family_of("folder", {"model_type": "bert"})
    assert bert is FAMILIES["bert"]
    assert bert.has_head({"architectures": ["BertForSequenceClassification"]})
    assert not bert.has_head({"architectures": ["BertModel"]}) and not bert.has_head({})


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        ("electra", BERT | {"vocab_size": 9, "embedding_size": 0}, "embedding_size must be a whole number, 1 or more"),
        ("electra", {"vocab_size": 9}, "must say hidden_size, .*: it is not a ELECTRA's"),
        ("roberta", BERT | {"vocab_size": 9, "pad_token_id": 19}, "pad_token_id must be a whole number from 0 to 18"),
        ("roberta", BERT | {"vocab_size": 9, "pad_token_id": None}, "pad_token_id must be .*, got None"),
        ("xlm-roberta", BERT | {"vocab_size": 9, "hidden_act": "xielu"}, "hidden_act must be one of gelu"),
        ("modernbert", {"vocab_size": 9}, "must say hidden_size, .*: it is not a ModernBERT's"),
        ("modernbert", MODERN | {"local_attention": 0}, "local_attention must be a whole number, 1 or more, got 0"),
        ("modernbert", MODERN | {"num_attention_heads": 5}, "must be a multiple of num_attention_heads, got 24 and 5"),
        ("modernbert", MODERN | {"num_attention_heads": 8}, "must be a multiple of 2 · num_attention_heads, got 24 an"),
        (
            "modernbert",
            MODERN | {"hidden_activation": "maxout"},
            "hidden_activation must be one of gelu, .* got maxout",
        ),
        ("modernbert", MODERN | {"classifier_activation": "a"}, "classifier_activation must be one of gelu, .* got a"),
        ("modernbert", MODERN | {"classifier_pooling": "max"}, "classifier_pooling must be cls or mean, got max"),
        ("modernbert", MODERN | {"layer_types": ["full_attention"]}, "must name full_attention or sliding_.* 3 layers"),
        ("modernbert", MODERN | {"layer_types": ["full"] * 3}, "layer_types must name full_attention or sliding_atten"),
        ("modernbert", MODERN | {"rope_scaling": {"rope_type": "yarn"}}, "rope_type must be default, got yarn"),
        ("modernbert", MODERN | {"global_rope_theta": -1}, "rope_theta must be a number above 0, got -1"),
        ("distilbert", DISTILBERT | {"vocab_size": 9, "n_heads": 5}, "hidden_size must be a multiple of num_attention"),
    ],
)
def test_a_config_that_asks_for_more_is_refused(kind, settings, said):
    with pytest.raises(InputError, match=said):
        FAMILIES[kind].config.of(settings)


def test_roberta_has_fewer_tokens_than_rows_of_positions(tmp_path):
    write_family(tmp_path, "roberta", num_labels=1, **BERT)
    encoder, _ = read_family(tmp_path, 1)
    assert encoder.config.max_tokens == 18
    assert encoder(random_batch(VOCABULARY, lengths=(18,))).shape == (18, 12)
    with pytest.raises(InputError, match="at most 18 tokens, got 19"):
        encoder(random_batch(VOCABULARY, lengths=(19,)))


def test_a_segment_that_the_model_does_not_know_is_refused(tmp_path):
    write_family(tmp_path, "roberta", num_labels=1, **BERT, type_vocab_size=1)
    encoder, _ = read_family(tmp_path, 1)
    with pytest.raises(InputError, match="type_ids must be below type_vocab_size = 1, got 1"):
        encoder(random_batch(VOCABULARY, 2))


def test_a_config_of_transformers_4_says_the_same_of_modernbert_as_one_of_5():
    old = MODERN | {"global_attn_every_n_layers": 2, "global_rope_theta": 500.0, "local_rope_theta": 70.0}
    kinds = ["full_attention", "sliding_attention", "full_attention"]
    thetas = {
        "full_attention": {"rope_theta": 500.0, "rope_type": "default"},
        "sliding_attention": {"rope_theta": 70.0, "rope_type": "default"},
    }
    new = MODERN | {"layer_types": kinds, "rope_parameters": thetas}
    config = FAMILIES["modernbert"].config
    read = config.of(new)
    assert read.layer_types == config.of(old).layer_types == tuple(kinds)
    assert read.thetas == config.of(old).thetas == {"full_attention": 500.0, "sliding_attention": 70.0}
    assert read.max_tokens == 8192


def test_attention_to_nearby_tokens_grows_with_the_length_of_a_text():
    batch = random_batch(VOCABULARY, lengths=(1000, 30))
    bands = bands_of(batch, 128)
    assert sum(band.queries.stop - band.queries.start for band in bands) == 1030
    assert max(band.keys.stop - band.keys.start for band in bands) == 256
    assert len(bands) == 9
    assert not bands_of(random_batch(VOCABULARY, lengths=(65, 30)), 128)


def test_bands_go_by_position_where_tokens_are_left_out():
    batch = random_batch(VOCABULARY, lengths=(100,))
    left_out = np.ones(100, bool)
    left_out[[0, 1, 50, 51, 99]] = False
    (band,) = bands_of(without(batch, left_out), 8)
    assert band.near.numpy().sum(1).tolist() == [2, 2, 2, 2, 1]
