"""Any sequence classifier that PyTorch and transformers run, as a scorer (see NOTE [A scorer] in models/scorer.py).

NOTE [The call that is explained]
`score` calls the model with token ids, as its users do. `gradients` calls it with word embeddings, with the same mask
and segments; the embeddings of the pair's tokens are a leaf, padding is not part of it. Segments are given where a
model has weights for them. Some models read padding in spite of the mask, as their last token or by pooling: one padded
pair is compared with the same pair alone, once; if the scores differ, only pairs of one length run together.

This is the one file that imports PyTorch, and it does so when a model is loaded.
"""

import inspect
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np

from backlight.adapters.padded_batches import PaddedBatch, padded_batches
from backlight.errors import InputError
from backlight.models.encoders.encoder import Cut, Trace, chosen_layer
from backlight.models.encoders.families import FAMILIES
from backlight.models.pairs import PairBatch
from backlight.models.ranker import activation_of, chosen_label, labels_of, model_settings, reader_of, tokenizer_of
from backlight.models.scorer import Inside, MaskGradients, StateGradients
from backlight.models.scoring import PairScorer, finite_scores, gradients_of
from backlight.models.tokens import Tokenizer, tokenizer_settings
from backlight.system.fork_safety import cached_property
from backlight.tensor.tensor import Tensor

TOKENS_SORTED = 8192  # of pairs that are sorted by length together; fewer run at once (`CELLS` of padded_batches)
LONGEST = 8192  # tokens that are read where neither the model nor its tokeniser has a limit


def _libraries() -> tuple[ModuleType, ModuleType]:
    try:
        import torch
        import transformers
    except ImportError as problem:
        raise InputError(
            f'engine="torch" needs PyTorch and transformers, and {problem.name} is missing: '
            'pip install "backlight[torch]"'
        ) from problem
    return torch, transformers


class TorchRanker(PairScorer):
    """A cross-encoder that PyTorch and transformers run, frozen, on the processor.

    Args:
        folder: as `save_pretrained` writes it, with the `tokenizer.json` of a fast tokeniser.
        name: what to call the model; by default as the folder.
        label: which logit of a classifier with several is the score.
        instruction: what makes a document relevant, for a model whose prompt says it.

    Raises:
        InputError: a library or a file is missing, or the folder holds no sequence classifier.
    """

    tokens_a_pass = TOKENS_SORTED

    def __init__(
        self, folder: Path, name: str | None = None, *, label: int | None = None, instruction: str | None = None
    ):
        self._torch, self._transformers = _libraries()
        self._folder = Path(folder)
        settings = model_settings(self._folder)
        self._model = self._loaded()
        labels = labels_of(settings)
        self._label = chosen_label(label, labels, self._folder)
        self.activation = activation_of(settings)
        self._takes = set(inspect.signature(self._model.forward).parameters)
        self._pad = settings.get("pad_token_id") or 0
        says = tokenizer_settings(self._folder)
        self._left = says.padding_side == "left"
        self._segments = "token_type_ids" in (says.model_input_names or ["token_type_ids"]) and any(
            "token_type_embed" in weight or "seg_embed" in weight for weight, _ in self._model.named_parameters()
        )
        family = FAMILIES.get(settings.get("model_type"))
        tokenizer = tokenizer_of(self._folder, self._longest())
        self.reader = reader_of(self._folder, family and family.prompt, tokenizer, instruction)
        self.name = name or self._folder.resolve().name
        self.score_name = "logit" if len(labels) == 1 else f"logit of {labels[self._label]}"

    @property
    def tokenizer(self) -> Tokenizer:
        """What cuts texts into tokens."""
        return self.reader.tokenizer

    def pair_scores(
        self, batch: PairBatch, inputs_embeds: Tensor | None = None, trace: Trace | Cut | None = None
    ) -> Tensor:
        """Raise: backlight's engine does not run this model, so its graph cannot hold the scores."""
        raise InputError(
            f"this needs a model on backlight's own engine, and PyTorch runs {self.name}: choose a method that leaves "
            "words out, or that takes first derivatives"
        )

    @property
    def vocab_size(self) -> int:
        """How many word embeddings there are."""
        return self._model.get_input_embeddings().num_embeddings

    def embed_ids(self, ids: np.ndarray) -> np.ndarray:
        """Return the word embeddings of tokens; (tokens,) -> (tokens, hidden)."""
        return self._embedded(self._torch.from_numpy(ids)).numpy()

    def first_states(self, batch: PairBatch) -> np.ndarray:
        """Raise: transformers' models put words at their positions inside their own call."""
        raise InputError(f"the first states of {self.name} cannot be had for other positions: PyTorch runs it")

    def score(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> np.ndarray:
        """Return the raw score of each pair."""
        found = np.empty(len(batch.pairs), np.float32)
        for part in self._parts(batch):
            words = None if inputs_embeds is None else self._torch.from_numpy(inputs_embeds[part.tokens])
            with self._torch.no_grad():  # what a model keeps from inference mode cannot be differentiated through later
                found[part.pairs] = self._run(part, words)[0].numpy()
        return finite_scores(found, batch.names)

    def gradients(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the raw scores, and the gradient of each pair's score for the word embeddings of its tokens."""
        start = self.embed(batch) if inputs_embeds is None else inputs_embeds
        scores, gradients = np.empty(len(batch.pairs), np.float32), np.empty_like(start)
        for part in self._parts(batch):
            leaf = self._torch.from_numpy(start[part.tokens]).requires_grad_()
            found, _ = self._run(part, leaf)
            (gradients[part.tokens],) = gradients_of(self._torch.autograd.grad, found, [leaf], "the word embeddings")
            scores[part.pairs] = found.detach().numpy()
        return finite_scores(scores, batch.names), gradients

    def state_gradients(self, batch: PairBatch, layer: int | None = None) -> StateGradients:
        """Return the states after one layer, and the gradients of the scores for them."""
        grad, start = self._torch.autograd.grad, self.embed(batch)
        scores, found = np.empty(len(batch.pairs), np.float32), []
        for part in self._parts(batch):
            leaf = self._torch.from_numpy(start[part.tokens]).requires_grad_()
            own, output = self._run(part, leaf, output_hidden_states=True)
            shown = self._states(output, part)
            chosen, layers = chosen_layer(layer, len(shown) - 1), len(shown) - 1
            (gradients,) = gradients_of(grad, own, [shown[chosen]], f"the states after layer {chosen}")
            found.append((part, [shown[chosen].detach().numpy(), gradients]))
            scores[part.pairs] = own.detach().numpy()
        states, gradients = _rows(batch, found)
        return StateGradients(chosen, layers, finite_scores(scores, batch.names), states, gradients)

    def mask_gradients(self, batch: PairBatch) -> MaskGradients:
        """Return how strongly each score reacts to the weight of each token in all attentions."""
        return MaskGradients.of(self.inside(batch, slopes=True))

    def inside(self, batch: PairBatch, *, slopes: bool = False) -> Inside:
        """Return hidden states and attentions of every layer, and with `slopes` the gradients of the scores for them.

        Attentions exist only where they are computed step by step: this runs a second copy of the model, which does.
        """
        grad, start = self._torch.autograd.grad, self.embed(batch)
        scores, shown, gradients = np.empty(len(batch.pairs), np.float32), [], []
        for part in self._parts(batch):
            leaf = self._torch.from_numpy(start[part.tokens]).requires_grad_(slopes)
            found, output = self._run(part, leaf, self._eager, output_hidden_states=True, output_attentions=True)
            places = self._shown(output, part)
            shown.append((part, [place.detach().numpy() for place in places]))
            if slopes:
                gradients.append((part, gradients_of(grad, found, places, "the hidden states")))
            scores[part.pairs] = found.detach().numpy()
        layers = len(output.attentions)
        inside = Inside(finite_scores(scores, batch.names), *_by_token(batch, shown, layers))
        if not slopes:
            return inside
        states, attentions = _by_token(batch, gradients, layers)
        return replace(inside, state_slopes=states, attention_slopes=attentions)

    def read_weights(self, batch: PairBatch) -> list[np.ndarray]:
        """Return how much of each token's last state the head reads, one row a pair; each sums to 1.

        Nothing but its gradients shows what a head reads: those for the last states are the same vector, times these.

        Raises:
            InputError: they are not, so the head does more than weigh states.
        """
        found = []
        for gradients in batch.by_pair(self.inside(batch, slopes=True).state_slopes[-1].astype(np.float64)):
            sizes = np.linalg.norm(gradients, axis=1)  # (tokens,)
            shared = gradients[sizes.argmax()] / sizes.max()
            if not np.allclose(gradients, sizes[:, None] * shared, rtol=1e-3, atol=1e-5 * sizes.max()):
                kind = type(self._model).__name__
                raise InputError(f"the head of {kind} must weigh the last states for this, and does more than that")
            found.append(sizes / sizes.sum())
        return found

    def _run(self, part: PaddedBatch, words=None, model=None, **options: bool) -> tuple:
        """Return the scores of a rectangle, (rows,), and all that the model gave.

        Args:
            words: the word embeddings of the tokens, (tokens, hidden), to use in place of their ids.
            model: what runs; by default the ordinary model.
            options: what the model gives besides scores: hidden states, attentions.
        """
        torch = self._torch
        inputs = {"attention_mask": torch.from_numpy(part.mask)}
        if self._segments:
            inputs["token_type_ids"] = torch.from_numpy(part.type_ids)
        ids = torch.from_numpy(part.ids)
        if words is None:
            inputs["input_ids"] = ids
        else:
            self._check_takes_words("inputs_embeds" in self._takes)
            places = torch.from_numpy(part.rows), torch.from_numpy(part.columns)
            inputs["inputs_embeds"] = self._embedded(ids).index_put(places, words)
        try:
            output = (model or self._model)(**inputs, **options)
        except NotImplementedError:
            self._check_takes_words(words is None)
            raise
        return output.logits[:, self._label], output

    def _check_takes_words(self, takes: bool) -> None:
        if not takes:
            raise InputError(
                f"{type(self._model).__name__} must take word embeddings for this, and does not: choose a method that "
                "leaves words out"
            )

    def _embedded(self, ids):
        with self._torch.no_grad():
            return self._model.get_input_embeddings()(ids)

    def _parts(self, batch: PairBatch) -> Iterator[PaddedBatch]:
        """Return padded batches that the model reads as it reads each pair alone."""
        return padded_batches(batch, apart=self._padding_counts, pad=self._pad, left=self._left)

    @cached_property
    def _padding_counts(self) -> bool:
        """Whether the score of a pair is another one where it is padded (see NOTE [The call that is explained])."""
        batch = PairBatch.of(self.read([("a b", "c"), ("a b c d e", "f g h i j k")]))
        both = PaddedBatch.of(batch, np.arange(2), pad=self._pad, left=self._left)
        words = self._torch.from_numpy(self.embed(batch)) if "inputs_embeds" in self._takes else None
        with self._torch.no_grad():
            alone = np.concatenate([self._run(part)[0].numpy() for part in padded_batches(batch, apart=True)])
            try:
                together = [self._run(both, given)[0].numpy() for given in (None, words)]
            except (InputError, ValueError):  # no embeddings are taken, or no batch is
                return True
        return not all(np.allclose(found, alone, rtol=1e-4, atol=1e-5) for found in together)

    def _shown(self, output, part: PaddedBatch) -> list:
        """Return the hidden states and then the attentions of each layer."""
        attentions = getattr(output, "attentions", None) or ()
        if not attentions or any(layer is None for layer in attentions):
            raise InputError(f"{type(self._model).__name__} must show its attentions for this, and does not")
        rows, columns = part.ids.shape
        self._check_complete(all((a.shape[0], *a.shape[2:]) == (rows, columns, columns) for a in attentions))
        return [*self._states(output, part), *attentions]

    def _states(self, output, part: PaddedBatch) -> list:
        """Return the hidden states that the first layer was given, and those after each layer."""
        states = getattr(output, "hidden_states", None) or ()
        self._check_complete(bool(states) and all(state.shape[:2] == part.ids.shape for state in states))
        return [*states]

    def _check_complete(self, complete: bool) -> None:
        if not complete:
            raise InputError(
                f"the layers of {type(self._model).__name__} must work on the tokens that are read, and do not: it "
                "cuts or joins"
            )

    def _loaded(self, **options):
        logs = self._transformers.utils.logging
        bars, level = logs.is_progress_bar_enabled(), logs.get_verbosity()
        logs.disable_progress_bar()
        logs.set_verbosity_error()  # what it warns of, missing weights, is an error below
        try:
            model, loading_info = self._transformers.AutoModelForSequenceClassification.from_pretrained(
                self._folder, local_files_only=True, dtype=self._torch.float32, output_loading_info=True, **options
            )
        except (OSError, ValueError, KeyError) as problem:
            said = str(problem).strip().split("\n")[0]
            raise InputError(f"transformers cannot load a sequence classifier from {self._folder}: {said}") from problem
        finally:
            logs.set_verbosity(level)
            if bars:
                logs.enable_progress_bar()
        if loading_info["missing_keys"]:
            raise InputError(
                f"the weights in {self._folder} must hold those of a sequence classifier, and lack "
                f"{', '.join(sorted(loading_info['missing_keys']))}: transformers would draw them at random"
            )
        return model.eval().requires_grad_(False)

    @cached_property
    def _eager(self):
        """A second copy of the model, which computes attention step by step and so can show it."""
        return self._loaded(attn_implementation="eager")

    def _longest(self) -> int:
        """Return how many tokens the model has positions for."""
        for name, module in self._model.named_modules():
            if name.endswith("position_embeddings") and isinstance(module, self._torch.nn.Embedding):
                reserved = 0 if module.padding_idx is None else module.padding_idx + 1  # RoBERTa counts from there
                return module.num_embeddings - reserved
        limit = getattr(self._model.config, "max_position_embeddings", None) or LONGEST
        return min(limit, LONGEST) if limit > 0 else LONGEST  # -1 says that there is none


def _by_token(batch: PairBatch, pieces: list[tuple[PaddedBatch, list[np.ndarray]]], layers: int) -> tuple[list, list]:
    """Return states as rows of the batch's tokens, and attentions by layer and pair.

    Args:
        pieces: for each rectangle its states, (rows, columns, hidden), and its attentions, (rows, heads, columns,
            columns), which are the last `layers` ones.
    """
    states = _rows(batch, [(part, places[:-layers]) for part, places in pieces])
    attentions = [[None] * len(batch.pairs) for _ in range(layers)]
    for part, places in pieces:
        for layer, place in zip(attentions, places[-layers:]):
            for row, number in enumerate(part.pairs):
                columns = part.columns[part.rows == row]
                layer[number] = place[row][:, columns][:, :, columns]
    return states, [tuple(layer) for layer in attentions]


def _rows(batch: PairBatch, pieces: list[tuple[PaddedBatch, list[np.ndarray]]]) -> list[np.ndarray]:
    """Return arrays of rectangles, each (rows, columns, hidden), as rows of the batch's tokens, (tokens, hidden)."""
    found = [np.empty((len(batch.ids), place.shape[-1]), place.dtype) for place in pieces[0][1]]
    for part, places in pieces:
        for rows, place in zip(found, places):
            rows[part.tokens] = place[part.rows, part.columns]
    return found
