"""Integrated Hessians: second derivatives of a score along a path from a baseline to the words of a pair.

NOTE [Integrated Hessians]
Integrated gradients, applied to each of their own values, share a token's value out among all tokens. With d the change
of the embeddings from a baseline to the words, h the second derivatives and g the gradient of the score on the way,

    value(i, j) = dᵢ · ∫∫ αβ h(αβ) dα dβ · dⱼ,  and for i = j also  dᵢ · ∫∫ g(αβ) dα dβ      (α, β from 0 to 1)

All values of all tokens add up to score − baseline's score. Nothing depends on α and β but their product γ = αβ, whose
density is −ln γ: so one integral does for two. With γ = t² its weights, −4 t³ ln t for h and −4 t ln t for g, are
smooth enough for the Gauss–Legendre rule. Only the products of h with one direction a query word are ever made.
Second derivatives do not see the kinks of relu: with relu inside a model a gap stays, and it is reported.

Source: Janizek, Sturmfels, Lee, Explaining Explanations: Axiomatic Feature Interactions for Deep Networks, 2020,
arXiv:2002.04138.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from backlight.models.pairs import Pair, PairBatch
from backlight.models.scorer import Scorer
from backlight.models.scoring import passes

CURVED = 4  # how many times the memory of an ordinary pass a graph of second derivatives takes, about


@dataclass(frozen=True, eq=False)
class CurvedPath:
    """A pair's way from a baseline to its words."""

    ranker: Scorer
    pair: Pair
    start: np.ndarray  # (tokens, hidden)
    change: np.ndarray  # (tokens, hidden)

    def integrated(self, steps: int, sources: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
        """Return what sources share with each token on the way, and what each token has alone.

        Args:
            steps: how many points of the way are visited.
            sources: the places of tokens that belong together.

        Shapes: -> (sources, tokens), (tokens,)
        """
        points, weights = np.polynomial.legendre.leggauss(steps)
        roots = (points + 1) / 2  # t of NOTE [Integrated Hessians]
        rule = zip(roots**2, -2 * weights * roots**3 * np.log(roots), -2 * weights * roots * np.log(roots))
        shared, alone = np.zeros((len(sources), len(self.pair))), np.zeros(len(self.pair))
        for some in passes(rule, lambda point: CURVED * len(self.pair)):
            for number, products in enumerate(self._products(some, sources)):
                for (_, curved, sloped), own in zip(some, products):
                    if number == 0:
                        alone += sloped * own
                    else:
                        shared[number - 1] += curved * own
        return shared, alone

    def _products(self, points: list[tuple], sources: Sequence[Sequence[int]]) -> Iterator[np.ndarray]:
        """Give d · g of each token at each point, then for each source d · h · (d of the source).

        Shapes: each (points, tokens)
        """
        batch = PairBatch.of([self.pair] * len(points))
        places = np.concatenate([self.start + np.float32(gamma) * self.change for gamma, *_ in points])
        changes = np.tile(self.change, (len(points), 1))
        directions = (np.tile(direction(self.change, source), (len(points), 1)) for source in sources)
        _, gradients, products = self.ranker.curvatures(batch, directions, places)
        yield (gradients * changes).sum(axis=1).reshape(len(points), -1)
        for product in products:
            yield (product * changes).sum(axis=1).reshape(len(points), -1)


def direction(change: np.ndarray, places: Sequence[int]) -> np.ndarray:
    """Return a change of some tokens alone, (tokens, hidden)."""
    places, found = list(places), np.zeros_like(change)
    found[places] = change[places]
    return found
