"""Training steps that resume bit for bit where they were stopped.

NOTE [What a step sees]
All queries are shuffled once an epoch, and a step takes the next ones, beyond the end of an epoch if need be. Their
documents are drawn for each query and epoch. All of it depends on the seed, the epoch and the query alone: the number
of the step says where training stands, and nothing else about the data is kept in a checkpoint.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backlight.models.pairs import Pair, PairBatch
from backlight.nn.utils import clip_grad_norm_
from backlight.optim import AdamW
from backlight.training.reranker.candidates import Candidates
from backlight.training.reranker.loss import Group, LossWeights, ranking_loss
from backlight.training.reranker.model import HEAD, TrainedModel
from backlight.training.reranker.settings import Optimisation

NEW_HEAD_RATE = 1e-3


@dataclass(frozen=True)
class Schedule:
    """Which queries each step sees (see NOTE [What a step sees]).

    Args:
        candidates: all queries.
        texts: of all documents.
        queries: how many a step sees.
        negatives: how many wrong documents each has.
        seed: of the order and the documents.
    """

    candidates: Sequence[Candidates]
    texts: Sequence[str]
    queries: int
    negatives: int
    seed: int

    def steps(self, epochs: float) -> int:
        """Return how many steps see each query so often."""
        return max(1, math.ceil(epochs * len(self.candidates) / self.queries))

    def groups(self, step: int) -> list[Group]:
        """Return what a step sees, counted from 0."""
        found, orders = [], {}
        for place in range(step * self.queries, (step + 1) * self.queries):
            epoch, place = divmod(place, len(self.candidates))
            if epoch not in orders:
                orders[epoch] = np.random.default_rng([self.seed, 2, epoch]).permutation(len(self.candidates))
            number = int(orders[epoch][place])
            seed = (self.seed, 3, epoch, number)
            found.append(self.candidates[number].draw(self.texts, self.negatives, seed))
        return found


class Stepper:
    """Makes the steps: scores, loss, gradients, AdamW.

    Args:
        model: whose weights are trained.
        steps: how many there are in all, by which the rates fall.
        optimisation: rates, clipping, decay.
        loss: the weights of the parts of the loss.
    """

    def __init__(self, model: TrainedModel, steps: int, optimisation: Optimisation, loss: LossWeights):
        self.model, self.steps, self.optimisation, self.loss = model, steps, optimisation, loss
        self.optimizer, self.step = optimizer_of(model, optimisation), 0

    def advance(self, groups: Sequence[Group]) -> dict[str, float]:
        """Make a step; return its loss, the gradient's norm, and how many pairs and tokens were read.

        Raises:
            RuntimeError: the gradient is not finite.
        """
        share = self.optimisation.share(self.step, self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = share * group["highest"]
        found = self.gradients(groups)
        weights = list(self.model.trained().values())
        norm = clip_grad_norm_(weights, self.optimisation.max_grad_norm, error_if_nonfinite=True)
        self.optimizer.step()
        self.step += 1
        return {**found, "norm": norm.item(), "lr": share * self.optimisation.learning_rate}

    def gradients(self, groups: Sequence[Group]) -> dict[str, float]:
        """Put the gradients of a step in the place of the last ones; return the loss, the pairs and the tokens."""
        self.optimizer.zero_grad()
        total = sum(group.weight for group in groups)
        loss, tokens = 0.0, 0
        for some, read in self._parts(groups):
            scores = self.model.scorer.pair_scores(PairBatch.of(read))
            own = ranking_loss(scores, some, self.loss, total)
            own.backward()
            loss += own.item()
            tokens += sum(map(len, read))
        return {"loss": loss, "pairs": sum(len(group.documents) for group in groups), "tokens": tokens}

    def _parts(self, groups: Sequence[Group]) -> "list[tuple[list[Group], list[Pair]]]":
        """Return groups in parts of about so many tokens as run at once, with their pairs; a group is never cut."""
        read = self.model.scorer.read([(group.query, text) for group in groups for text in group.documents])
        parts, start, size = [([], [])], 0, 0
        for group in groups:
            own = read[start : start + len(group.documents)]
            width = sum(map(len, own))
            if parts[-1][0] and size + width > self.optimisation.tokens_per_pass:
                parts.append(([], []))
                size = 0
            parts[-1][0].append(group)
            parts[-1][1].extend(own)
            start, size = start + len(own), size + width
        return parts

    def state(self) -> dict:
        """Return all that is needed to go on from here."""
        return {"step": self.step, "weights": self.model.parameters(), "optimizer": self.optimizer.state_dict()}

    def load(self, state: dict) -> None:
        """Go on from a state."""
        self.step = state["step"]
        self.model.load(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])


def optimizer_of(model: TrainedModel, optimisation: Optimisation) -> AdamW:
    """Return AdamW over all weights: matrices decay, vectors do not; the head may have a rate of its own."""
    head_rate = optimisation.head_learning_rate or (NEW_HEAD_RATE if model.new_head else optimisation.learning_rate)
    groups = []
    for head, rate in ((False, optimisation.learning_rate), (True, head_rate)):
        for matrix, decay in ((True, optimisation.weight_decay), (False, 0.0)):
            chosen = [
                weight
                for name, weight in model.trained().items()
                if name.startswith(HEAD) == head and (weight.dim() > 1) == matrix
            ]
            groups.append({"params": chosen, "lr": rate, "highest": rate, "weight_decay": decay})
    return AdamW(groups)
