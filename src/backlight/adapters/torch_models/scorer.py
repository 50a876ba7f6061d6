"""Scores of models on PyTorch and their gradients (see NOTE [A scorer] in models/scorer.py).

NOTE [The call that is explained]
`score` calls the model with token ids, as its users do. `gradients` makes the same call with a leaf in place of what
its embedding layer gives; padding is not part of the leaf. Some models read padding in spite of the mask, as their last
token or by pooling: one padded pair is compared with the same pair alone, once; if the scores differ, only pairs of one
length run together.

NOTE [Out of memory]
Where a device has no memory left for a group of pairs, the budget of cells is halved, what has not been run is cut
anew, and the work goes on. A single pair that does not fit is an error.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from backlight.adapters.padded_batches import Group, Padding, by_token, padded_group, pair_numbers, rows_of
from backlight.adapters.torch_library import free_memory, is_compile_failure, is_out_of_memory, torch_library
from backlight.adapters.torch_models.running import HALF, Running
from backlight.adapters.torch_models.temporary_changes import (
    attention_step_by_step,
    attentions_of,
    outputs_shown,
    runs_end_to_end,
    states_of,
    weights_in_float32,
)
from backlight.errors import GraphError, InputError
from backlight.models.encoders.encoder import Cut, Trace, chosen_layer
from backlight.models.pairs import Pair, PairBatch, PairReader, SeparateReader
from backlight.models.prompts import PromptReader
from backlight.models.scorer import PYTORCH, Execution, Inside, MaskGradients, StateGradients
from backlight.models.scoring import ACTIVATIONS, Activation, PairScorer, finite_scores
from backlight.models.tokens import Tokenizer
from backlight.system.fork_safety import cached_property
from backlight.tensor.tensor import Tensor

TOKENS_SORTED = 8192  # of pairs that are sorted by length together; fewer run at once (`CELLS` of padded_batches)
ROUNDING = {"float32": 1e-5, "float16": 1e-2, "bfloat16": 6e-2}  # how far scores of one pair differ between batches
SAMPLE, ONE_OF = 4, 4  # pairs whose gradients are compared with float32: at most so many, and one of so many
TOKENS_END_TO_END = 1024  # that run at once on a processor: with MiniLM-L6, 4096 take 1.1 times as long
PADDED, END_TO_END = "padded, in buckets of similar length", "end to end, without padding"
MEASURED = "choose a method that leaves words out: leave-one-out, occlusion or shapley"
Found = TypeVar("Found")


class NoMemoryError(InputError):
    """A device has no memory for a single pair."""


class TorchScorer(PairScorer):
    """Scores pairs by a model that PyTorch runs, in memory or loaded, and explains them.

    Args:
        model: what runs (see NOTE [A model on PyTorch]).
        reader: reads pairs.
        name: what to call it.
        score_name: what a score is.
        activation: how scores are shown, a key of `ACTIVATIONS` or a function.
        highest_score: of a cosine, 1.
        padding: how sequences are padded.
        device: where its inputs go.
        dtype: what it runs in where that is not the dtype of its weights: bfloat16 or float16 under autocast.
        rounding: how far two scores of one pair may differ, in units of the score, or of its size above 1.
        compile: whether `torch.compile` compiles its layers (see NOTE [Compiled layers] in running.py).
    """

    tokens_a_pass = TOKENS_SORTED

    def __init__(
        self,
        model: Any,
        reader: PairReader | SeparateReader | PromptReader,
        *,
        name: str,
        score_name: str = "logit",
        activation: str | Activation = "identity",
        highest_score: float | None = None,
        padding: Padding | None = None,
        device: str = "cpu",
        dtype: str | None = None,
        rounding: float = ROUNDING["float32"],
        compile: bool = False,
    ):
        self.model, self.reader, self.name, self.score_name = model, reader, name, score_name
        self.activation, self.highest_score, self.rounding = activation, highest_score, rounding
        self._running = Running(model, device, dtype, compile)
        self._padding = padding or Padding(model.sides)

    @property
    def device(self) -> str:
        """Where the model runs."""
        return self._running.device

    @property
    def dtype(self) -> str | None:
        """What the model runs in under autocast; None: as its weights are."""
        return self._running.dtype

    @property
    def tokenizer(self) -> Tokenizer:
        """What cuts texts into tokens."""
        return self.reader.tokenizer

    @property
    def vocab_size(self) -> int:
        """How many word embeddings there are."""
        if getattr(self.model.layer, "num_embeddings", None) is None:
            raise InputError(f"the baseline average needs an embedding layer, and {self.model.name} has a function")
        return self.model.layer.num_embeddings

    def activate(self, scores: np.ndarray) -> np.ndarray:
        """Return raw scores after the model's activation, for example as probabilities."""
        shown = self.activation if callable(self.activation) else ACTIVATIONS[self.activation]
        return shown(np.asarray(scores))

    def pair_scores(
        self, batch: PairBatch, inputs_embeds: Tensor | None = None, trace: Trace | Cut | None = None
    ) -> Tensor:
        """Raise: backlight's engine does not run this model, so its graph cannot hold the scores."""
        raise InputError(
            f"this needs a model on backlight's own engine, and PyTorch runs {self.name}: choose a method that leaves "
            "words out, or that takes first derivatives"
        )

    def first_states(self, batch: PairBatch) -> np.ndarray:
        """Raise: models put words at their positions inside their own call."""
        raise InputError(f"the first states of {self.name} cannot be had for other positions: PyTorch runs it")

    def embed_ids(self, ids: np.ndarray) -> np.ndarray:
        """Return the word embeddings of tokens; (tokens,) -> (tokens, hidden)."""
        with torch_library().no_grad(), self._running.calling():
            found = self.model.embed(self._running.tensor(np.asarray(ids))[None])[0]
        return found.float().cpu().numpy()

    def score(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> np.ndarray:
        """Return the raw score of each pair."""
        with torch_library().no_grad():  # what a model keeps from inference mode cannot be differentiated through later
            found = np.empty(len(batch.pairs), np.float32)
            for group, scores in self._each(
                batch, lambda group: as_array(self._run(group, inputs_embeds)[0]), self._fast_padding
            ):
                found[self._pairs(group)] = scores
        return finite_scores(found, batch.names)

    def execution(self, pairs: Sequence[Pair], *, gradients: bool) -> Execution:
        """Return how pairs are run, and in half precision how far gradients of some are from those in float32."""
        found = Execution(
            engine=PYTORCH,
            device=self.device,
            dtype=self._computes_in,
            sequences=END_TO_END if self._end_to_end else PADDED,
            compiled=self._running.compiled,
        )
        if not gradients or found.dtype not in HALF or not pairs:
            return found
        ordered = sorted(pairs, key=len)
        count = min(SAMPLE, -(-len(ordered) // ONE_OF))
        some = [ordered[(2 * number + 1) * len(ordered) // (2 * count)] for number in range(count)]
        deviation = self._deviation(PairBatch.of(some))
        return replace(found, compared=0 if deviation is None else count, deviation=deviation)

    @property
    def _computes_in(self) -> str:
        """The name of the dtype that the model computes in."""
        weights = self.model.module.parameters() if self.model.module is not None else ()
        kept = {str(weight.dtype).removeprefix("torch.") for weight in weights}
        return self.dtype or max(kept & ROUNDING.keys(), key=ROUNDING.get, default="float32")

    def _deviation(self, batch: PairBatch) -> float | None:
        """Return the largest ‖g − g₃₂‖ / ‖g₃₂‖ of some pairs; None where there is no memory for float32."""
        start, reference, module = self.embed(batch), copy(self), self.model.module
        reference._running = Running(self.model, self.device, None, compiled=False)
        half = self.gradients(batch, start)[1]
        try:
            with nullcontext() if module is None else weights_in_float32(module):
                full = reference.gradients(batch, start)[1]
        except (RuntimeError, NoMemoryError) as problem:
            if not isinstance(problem, NoMemoryError) and not is_out_of_memory(problem):
                raise
            free_memory(self.device)
            return None
        found = zip(batch.by_pair(half), batch.by_pair(full))
        return max(float(np.linalg.norm(own - exact) / (np.linalg.norm(exact) or 1.0)) for own, exact in found)

    def gradients(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the raw scores, and the gradient of each pair's score for the word embeddings of its tokens."""
        start = self.embed(batch) if inputs_embeds is None else inputs_embeds

        def run(group: Group) -> tuple:
            scores, leaves = self._run(group, start, requires_grad=True)
            return as_array(scores), self._gradients(scores, leaves, "the word embeddings")

        scores, gradients = np.empty(len(batch.pairs), np.float32), np.empty_like(start)
        for group, (found, own) in self._each(batch, run, self._fast_padding):
            scores[self._pairs(group)] = found
            for part, values in zip(group, own):
                gradients[part.tokens] = values
        return finite_scores(scores, batch.names), gradients

    def state_gradients(self, batch: PairBatch, layer: int | None = None) -> StateGradients:
        """Return the states after one layer, and the gradients of the scores for them."""
        start, sizes = self.embed(batch), []

        def run(group: Group) -> tuple:
            leaves = [leaf.requires_grad_() for leaf in self._running.leaves(group, start)]
            with outputs_shown(self._core, output_hidden_states=True) as outputs:
                scores = self._running.scores(group, leaves)
            shown = states_of(outputs, [part.ids.shape for part in group], self.model.name)
            sizes[:] = chosen_layer(layer, len(shown[0]) - 1), len(shown[0]) - 1
            places = [own[sizes[0]] for own in shown]
            return as_array(scores), places, self._gradients(scores, places, f"the states after layer {sizes[0]}")

        scores, states, gradients = np.empty(len(batch.pairs), np.float32), [], []
        for group, (found, places, own) in self._each(batch, run):
            scores[self._pairs(group)] = found
            states += [(part, [as_array(place)]) for part, place in zip(group, places)]
            gradients += [(part, [values]) for part, values in zip(group, own)]
        (states,), (gradients,) = rows_of(batch, states), rows_of(batch, gradients)
        return StateGradients(*sizes, finite_scores(scores, batch.names), states, gradients)

    def mask_gradients(self, batch: PairBatch) -> MaskGradients:
        """Return how strongly each score reacts to the weight of each token in all attentions."""
        return MaskGradients.of(self.inside(batch, slopes=True))

    def inside(self, batch: PairBatch, *, slopes: bool = False) -> Inside:
        """Return hidden states and attentions of every layer, and with `slopes` the gradients of the scores for them.

        Attentions exist only where they are computed step by step, as the model does during this call.
        """
        start = self.embed(batch)

        def run(group: Group) -> tuple:
            leaves = [leaf.requires_grad_(slopes) for leaf in self._running.leaves(group, start)]
            shapes = [part.ids.shape for part in group]
            shown = outputs_shown(self._core, output_hidden_states=True, output_attentions=True)
            recording = torch_library().set_grad_enabled(slopes)
            with recording, attention_step_by_step(self._core), shown as outputs:
                scores = self._running.scores(group, leaves)
            attentions = attentions_of(outputs, shapes, self.model.name)
            states = states_of(outputs, shapes, self.model.name)
            sizes = [len(own) for own in states]
            places = [one for own in zip(states, attentions) for part in own for one in part]
            found = self._gradients(scores, places, "the hidden states") if slopes else []
            return (
                as_array(scores),
                sizes,
                [len(own) for own in attentions],
                [as_array(place) for place in places],
                found,
            )

        scores, shown, gradients = np.empty(len(batch.pairs), np.float32), [], []
        for group, (found, sizes, layers, places, own) in self._each(batch, run):
            scores[self._pairs(group)] = found
            lengths = [states + attentions for states, attentions in zip(sizes, layers)]
            ends = np.cumsum([0, *lengths]).tolist()
            shown += [(part, places[start:end]) for part, start, end in zip(group, ends, ends[1:])]
            if slopes:
                gradients += [(part, own[start:end]) for part, start, end in zip(group, ends, ends[1:])]
        inside = Inside(finite_scores(scores, batch.names), *by_token(batch, shown, layers[0]))
        if not slopes:
            return inside
        states, attentions = by_token(batch, gradients, layers[0])
        return replace(inside, state_slopes=states, attention_slopes=attentions)

    def read_weights(self, batch: PairBatch) -> list[np.ndarray]:
        """Return how much of each token's last state is read, one row a sequence; each sums to 1.

        Nothing but its gradients shows what a head reads: those for the last states are the same vector, times these.

        Raises:
            InputError: they are not, so the head does more than weigh states.
        """
        found = []
        for gradients in batch.parts(self.inside(batch, slopes=True).state_slopes[-1].astype(np.float64)):
            sizes = np.linalg.norm(gradients, axis=1)  # (tokens,)
            shared = gradients[sizes.argmax()] / sizes.max()
            if not np.allclose(gradients, sizes[:, None] * shared, rtol=1e-3, atol=1e-5 * sizes.max()):
                raise InputError(
                    f"the head of {self.model.name} must weigh the last states for this, and does more than that"
                )
            found.append(sizes / sizes.sum())
        return found

    @property
    def _core(self) -> Any:
        """The transformers model whose layers can be shown. Raises InputError: there is none."""
        if self.model.core is None:
            raise InputError(f"{self.model.name} must be a model of transformers for this, which shows its layers")
        return self.model.core

    def _run(self, group: Group, start: np.ndarray | None, *, requires_grad: bool = False) -> tuple[Any, list]:
        """Return a group's scores, (rows,), by the fastest way, and the leaves in place of word embeddings, if any."""
        leaves = [leaf.requires_grad_(requires_grad) for leaf in self._running.leaves(group, start)]
        return self._running.scores(group, leaves, fast=True, end_to_end=self._end_to_end), leaves

    @property
    def _fast_padding(self) -> Padding:
        """How sequences are padded that `_run` is given."""
        if not self._end_to_end:
            return replace(self._padding, apart=self._padding_counts)
        return replace(self._padding, end_to_end=True, cells=min(self._padding.cells, TOKENS_END_TO_END))

    @cached_property
    def _end_to_end(self) -> bool:
        """Whether sequences run end to end (see NOTE [End to end] in running.py)."""
        running, alone = self._running, self.device == "cpu" and torch_library().get_num_threads() == 1
        if not alone or running.compiled or not runs_end_to_end(self.model.core) or self._padding_counts:
            return False
        group = padded_group(self._probe, self._padding, np.arange(2))
        with torch_library().no_grad():
            padded, found = (as_array(running.scores(group, end_to_end=way)) for way in (False, True))
        return bool(np.allclose(found, padded, rtol=1e-5, atol=self.rounding))

    @cached_property
    def _compiled_agrees(self) -> bool:
        """Whether compiled layers give the score that they give as they are (see NOTE [Compiled layers])."""
        group = padded_group(self._probe, self._padding, np.arange(1))
        with torch_library().no_grad():
            found, plain = (as_array(self._running.scores(group, fast=way)) for way in (True, False))
        return bool(np.allclose(found, plain, rtol=1e-4, atol=self.rounding))

    @cached_property
    def _probe(self) -> PairBatch:
        """Two pairs of unequal lengths."""
        return PairBatch.of(self.read([("a b", "c"), ("a b c d e", "f g h i j k")]))

    def _gradients(self, scores: Any, places: Sequence, what: str) -> list[np.ndarray]:
        """Return the gradients of the summed scores: each place belongs to one pair, so the sum mixes nothing.

        Raises:
            GraphError: the scores depend on none of them.
        """
        found = [None] * len(places)
        if scores.requires_grad:
            found = torch_library().autograd.grad(scores.float().sum(), places, allow_unused=True)
        if all(one is None for one in found):
            raise GraphError(
                f"the score must depend on {what}, and no gradient reached them; nothing was explained: the score of "
                f"{self.model.name} is not differentiable, so {MEASURED}"
            )
        return [
            np.zeros(place.shape, np.float32) if one is None else as_array(one) for place, one in zip(places, found)
        ]

    def _pairs(self, group: Group) -> np.ndarray:
        return group[0].sequences // self.model.sides

    def _each(
        self, batch: PairBatch, run: Callable[[Group], Found], padding: Padding | None = None
    ) -> Iterator[tuple[Group, Found]]:
        """Yield each padded group of a batch with what running it gave (see NOTE [Out of memory])."""
        padding = padding or replace(self._padding, apart=self._padding_counts)
        waiting = pair_numbers(batch, padding)
        while waiting:
            group = padded_group(batch, padding, waiting[0])
            found, problem = self._tried(run, group)
            if problem is None:
                yield group, found
                waiting = waiting[1:]
                continue
            free_memory(self.device)
            if len(waiting[0]) == 1:
                tokens = sum(part.ids.shape[1] for part in group)
                raise NoMemoryError(
                    f"{self.device} must have memory for one pair of {tokens} tokens, and has not ({problem}): let "
                    "the model read fewer tokens (max_length), or run in bfloat16"
                )
            cells = max(sum(part.ids.size for part in group) // 2, 1)
            self._padding = replace(self._padding, cells=cells)
            padding = replace(padding, cells=cells)
            waiting = pair_numbers(batch, padding, np.concatenate(waiting))

    @cached_property
    def _padding_counts(self) -> bool:
        """Whether the score of a pair is another one where it is padded (see NOTE [The call that is explained])."""
        batch, run = self._probe, self._running.scores
        with torch_library().no_grad():
            alone, again = ([as_array(run(group)) for group in groups] for groups in [self._alone(batch)] * 2)
            if not np.allclose(alone, again, rtol=0, atol=self.rounding):
                raise InputError(
                    f"{self.model.name} must give one score to one pair, and gives {alone[0][0]:.6f} and "
                    f"{again[0][0]:.6f}: put its modules into evaluation mode, model.eval()"
                )
            try:
                together = run(padded_group(batch, self._padding, np.arange(2)))
            except (InputError, ValueError):  # a model without a token that pads takes no two texts of unequal length
                return True
        return not np.allclose(np.concatenate(alone), as_array(together), rtol=1e-4, atol=self.rounding)

    def _tried(self, run: Callable[[Group], Found], group: Group) -> tuple[Found | None, str | None]:
        """Return what running a group gave, or what a device said that has no memory for it."""
        try:
            if self._running.compiled and not self._compiled_agrees:
                self._running.uncompiled("the score of a pair is another one with it")
            return run(group), None
        except RuntimeError as problem:
            if is_compile_failure(problem):
                self._running.uncompiled(problem)
                return self._tried(run, group)
            if not is_out_of_memory(problem):
                raise
            return None, str(problem).strip().split("\n")[0][:120]

    def _alone(self, batch: PairBatch) -> list[Group]:
        return [padded_group(batch, self._padding, np.array([number])) for number in range(len(batch.pairs))]


def as_array(tensor: Any) -> np.ndarray:
    return tensor.detach().float().cpu().numpy()
