"""Scores of models that read query and document apart: each text is encoded once (see NOTE [Distinct sequences])."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from backlight.adapters.padded_batches import Group, padded_group
from backlight.adapters.torch_library import torch_library
from backlight.adapters.torch_models.encoders import LateInteraction, SparseTerms
from backlight.adapters.torch_models.scorer import TorchScorer, as_array
from backlight.errors import InputError
from backlight.models.bi_encoder import TOKENS_COMPARED, distinct_sequences
from backlight.models.pairs import Pair, PairBatch
from backlight.models.scorer import Progress, TokenMatch, no_progress
from backlight.models.scoring import finite_scores, passes
from backlight.models.tokens import Batch


class SeparateScorer(TorchScorer):
    """Scores pairs by a model of two sides, and shows what it matched or which terms it gave weights."""

    def score(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> np.ndarray:
        """Return the raw score of each pair."""
        return self._separate_scores(batch.pairs) if inputs_embeds is None else super().score(batch, inputs_embeds)

    def scores_of(self, pairs: Iterable[Pair], progress: Progress = no_progress) -> np.ndarray:
        """Return the raw score of each pair; each distinct text runs once."""
        found = []
        for some in passes(pairs, tokens=TOKENS_COMPARED):
            found.append(self._separate_scores(some))
            progress(len(some))
        return np.concatenate(found) if found else np.empty(0, np.float32)

    def token_matches(self, pair: Pair) -> tuple[float, list[TokenMatch]]:
        """Return a pair's score, and which document token each query token was matched with.

        Raises:
            InputError: the model does not match tokens.
        """
        if not isinstance(self.model, LateInteraction):
            raise InputError(f"maxsim needs a model of late interaction, and {self.name} is none: use joint-occlusion")
        (query, document), group = self._encoded_pair(pair)
        places = [dict(zip(part.columns.tolist(), part.tokens.tolist())) for part in group]
        matches = [
            TokenMatch(places[0].get(column), places[1][other], value)
            for column, other, value in self.model.matches(query, document)
        ]
        return float(as_array(self.model.compare([query], [document]))[0]), matches

    def term_weights(self, pair: Pair) -> tuple[float, np.ndarray]:
        """Return a pair's score, and the weight of each term of the vocabulary in query and document.

        Shapes: -> (), (2, vocabulary)

        Raises:
            InputError: the model gives terms no weights, or its score is no sum over terms.
        """
        if not isinstance(self.model, SparseTerms):
            raise InputError(f"terms needs a SparseEncoder, whose score is a sum over terms, and {self.name} is none")
        if self.model.similarity not in ("dot", "cosine"):
            raise InputError(f"terms needs the similarity dot or cosine, got {self.model.similarity}")
        encoded, _ = self._encoded_pair(pair)
        weights = np.stack([as_array(one) for one in encoded])
        score = float(as_array(self.model.compare(*([one] for one in encoded)))[0])
        if self.model.similarity == "cosine":
            weights = weights / np.linalg.norm(weights, axis=1, keepdims=True)
        return score, weights

    def _encoded_pair(self, pair: Pair) -> tuple[list, Group]:
        """Return what the model makes of the query and the document of a pair, and their rectangles."""
        group = padded_group(PairBatch.of([pair]), self._padding, np.arange(1))
        with torch_library().no_grad():
            return [self._running.encode(side, part)[0] for side, part in enumerate(group)], group

    def _separate_scores(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the score of each pair, each distinct text encoded once, without recording."""
        encoded: list[list] = []
        numbers = np.empty((len(pairs), 2), np.int64)
        for side in (0, 1):
            sequences, own = distinct_sequences(pairs, [side])
            numbers[:, side] = own[:, 0]
            ids, types, positions = np.concatenate([one.tokens for one in sequences], axis=1)
            encoded.append(self._encoded(side, Batch(ids, types, positions, tuple(map(len, sequences)))))
        with torch_library().no_grad():
            chosen = ([rows[n] for n in numbers[:, side]] for side, rows in enumerate(encoded))
            scores = as_array(self.model.compare(*chosen))
        return finite_scores(scores, [pair.name for pair in pairs])

    def _encoded(self, side: int, batch: Batch) -> list:
        """Return what the model makes of each text of one side."""
        found: list = [None] * len(batch.lengths)
        whole = PairBatch(batch.ids, batch.type_ids, batch.positions, batch.lengths)
        padding = replace(self._fast_padding, sides=1)

        def run(group: Group) -> list:
            return self._running.encode(side, group[0], fast=True, end_to_end=self._end_to_end)

        with torch_library().no_grad():
            for (part,), rows in self._each(whole, run, padding):
                for number, row in zip(part.sequences.tolist(), rows):
                    found[number] = row
        return found
