"""Shapley values of the words of query and document: what each brings, on average over all orders of adding them.

NOTE [The game]
Players are the words of both texts. v(S) is the score of the pair with the words of S alone; tokens that belong to no
text always stay. The value of a word is the mean of v(S with it) − v(S) over all orders in which words can join. All
values together are v(all) − v(none), and that holds exactly for both estimators below, whatever the budget.
Every coalition is drawn before any is scored, and none is scored twice: so a budget is kept, and coalitions of all
pairs share passes.

Source: Shapley, A Value for n-Person Games, 1953; Štrumbelj, Kononenko, Explaining Prediction Models and Individual
Predictions with Feature Contributions, 2014; Lundberg, Lee, A Unified Approach to Interpreting Model Predictions, 2017,
arXiv:1705.07874.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb

import numpy as np

from backlight.errors import InputError
from backlight.explain.attribution import Attribution, Recipe
from backlight.explain.checks import check_values
from backlight.explain.methods.ablation import removal_called, score_groups
from backlight.explain.methods.by_batch import Pairs
from backlight.explain.parts import Part, attribute_parts, word_parts
from backlight.models.scorer import Progress, Scorer, no_progress

LARGEST_BUDGET = 1_000_000
BUDGET = 2000  # coalitions that are scored for a pair


@dataclass(frozen=True, eq=False)
class Estimate:
    """Values of players, and their standard errors, which are zero if all coalitions were scored."""

    values: np.ndarray  # (players,)
    errors: np.ndarray  # (players,)


def shapley(
    ranker: Scorer,
    pairs: Pairs,
    *,
    budget: int = BUDGET,
    seed: int = 0,
    by: str = "mask",
    progress: Progress = no_progress,
) -> list[Attribution]:
    """Return the Shapley value of each word by sampling orders, each together with its reverse; see NOTE [The game].

    Args:
        budget: the largest number of coalitions to score for a pair. If all of them fit, values are exact.
        seed: seed of the orders.
        by: how words are removed, a key of `WAYS` (see NOTE [Ways to leave words out]). Others as in NOTE [A method].

    Returns:
        One explanation per pair, in units of the score; `Word.error` is the standard error of its value.

    Raises:
        InputError: the budget is too small for the words of a pair, or the model does not support `by`.
        RuntimeError: no word changes the score, or a score is not finite.

    Source: Castro, Gómez, Tejada, Polynomial Calculation of the Shapley Value Based on Sampling, 2009; Mitchell,
    Cooper, Frank, Holmes, Sampling Permutations for Shapley Value Estimation, 2021, arXiv:2104.12199.
    """
    return _explained(ranker, pairs, orders_drawn, from_orders, budget, seed, by, progress, "shapley")


def kernel_shap(
    ranker: Scorer,
    pairs: Pairs,
    *,
    budget: int = BUDGET,
    seed: int = 0,
    by: str = "mask",
    progress: Progress = no_progress,
) -> list[Attribution]:
    """Return the Shapley value of each word by regression over coalitions; arguments and errors as `shapley`.

    Coalitions are drawn with the probability of the Shapley kernel, each together with its complement. The values are
    the weights of the linear game that fits the sampled scores best, with its sum fixed at v(all) − v(none). Their
    standard errors are those of a regression with unknown noise, by pairs of coalitions.

    Source: Lundberg, Lee, 2017, arXiv:1705.07874; Covert, Lee, Improving KernelSHAP, 2021, arXiv:2012.01536.
    """
    return _explained(ranker, pairs, coalitions_drawn, from_coalitions, budget, seed, by, progress, "kernel-shap")


def _explained(
    ranker: Scorer,
    pairs: Pairs,
    draw: Callable[[int, int, np.random.Generator, str], np.ndarray],
    estimate: Callable[[np.ndarray, np.ndarray, float, float], Estimate],
    budget: int,
    seed: int,
    by: str,
    progress: Progress,
    method: str,
) -> list[Attribution]:
    """Return explanations whose values an estimator makes of the scores of coalitions that it drew."""
    remove = removal_called(by)
    parts = [word_parts(pair) for pair in pairs]
    if budget > LARGEST_BUDGET:
        raise InputError(f"budget must be {LARGEST_BUDGET:,} or less, got {budget:,}: each is a pass through the model")
    exact = [2 ** len(own) <= budget for own in parts]
    drawn = [
        all_coalitions(len(own)) if is_exact else draw(len(own), budget, np.random.default_rng(seed), pair.name)
        for pair, own, is_exact in zip(pairs, parts, exact)
    ]
    tables = [np.unique(np.concatenate([_ends(len(own)), some]), axis=0) for own, some in zip(parts, drawn)]
    groups = (remove(ranker, pair, _removals(own, table)) for pair, own, table in zip(pairs, parts, tables))
    explained = []
    scored = score_groups(ranker, groups, progress)
    for pair, own, some, is_exact, table, scores in zip(pairs, parts, drawn, exact, tables, scored, strict=True):
        worth = dict(zip(map(bytes, table), scores.tolist()))
        none, everything = (worth[bytes(end)] for end in _ends(len(own)))
        found = (from_all if is_exact else estimate)(
            some, np.array([worth[bytes(row)] for row in some]), none, everything
        )
        check_values(found.values, pair.name, "what a word brings to the score")
        recipe = Recipe(
            method,
            "mean of what the word adds, over all orders of adding words",
            signed=True,
            baseline=f"the pair without its words, by {by}",
            passes=len(table),
            settings={"budget": budget, "seed": seed, "by": by, "coalitions": "all" if is_exact else len(table)},
        )
        gap = float(found.values.sum() - (everything - none))
        explained.append(
            attribute_parts(pair, own, found.values, recipe, ranker.name, everything, errors=found.errors, gap=gap)
        )
    return explained


def _removals(parts: list[Part], table: np.ndarray) -> Iterator[list[Part]]:
    for row in table:
        yield [part for part, stays in zip(parts, row) if not stays]


def _ends(players: int) -> np.ndarray:
    """Return the empty coalition and the full one, (2, players)."""
    return np.stack([np.zeros(players, bool), np.ones(players, bool)])


def all_coalitions(players: int) -> np.ndarray:
    """Return every coalition, the empty one first: coalition k holds the players of the bits of k.

    Shapes: -> (2^players, players)
    """
    return (np.arange(2**players)[:, None] >> np.arange(players) & 1).astype(bool)


def from_all(coalitions: np.ndarray, worth: np.ndarray, none: float, everything: float) -> Estimate:
    """Return the exact values.

        φᵢ = Σ over S without i of |S|! (n − |S| − 1)! / n! · (v(S with i) − v(S))

    Args:
        coalitions, worth: as `all_coalitions` gives them, and v of each, (coalitions,).
    """
    players = coalitions.shape[1]
    share = np.array([1 / (players * comb(players - 1, size)) for size in range(players)])
    values = np.empty(players)
    for player in range(players):
        without = np.flatnonzero(~coalitions[:, player])
        added = worth[without + 2**player] - worth[without]
        values[player] = share[coalitions[without].sum(axis=1)] @ added
    return Estimate(values, np.zeros(players))


def orders_drawn(players: int, budget: int, rng: np.random.Generator, name: str) -> np.ndarray:
    """Return the coalitions that grow along random orders, and along the reverse of each.

    Shapes: -> (orders, 2 · (players − 1), players): first those of the order, then those of its reverse, each by size

    Raises:
        InputError: the budget does not allow two orders and their reverses, which an error needs.
    """
    _check_budget(budget, 2 + 4 * (players - 1), players, name)
    orders = (budget - 2) // (2 * (players - 1))
    ranks = rng.permuted(np.tile(np.arange(players), (orders, 1)), axis=1)  # when each player joins
    sizes = np.arange(1, players)[:, None]
    forth, back = ranks[:, None] < sizes, ranks[:, None] >= players - sizes
    return np.concatenate([forth, back], axis=1).reshape(-1, players)


def from_orders(coalitions: np.ndarray, worth: np.ndarray, none: float, everything: float) -> Estimate:
    """Return the mean of what each player adds along orders and their reverses, and its standard error.

    Args:
        coalitions, worth: as `orders_drawn` gives them, and v of each, (coalitions,).
    """
    players = coalitions.shape[1]
    orders = len(worth) // (2 * (players - 1))
    grown = coalitions.reshape(2 * orders, players - 1, players)
    joins = players - 1 - grown.sum(axis=1)  # after how many others each player joins, (2 · orders, players)
    ends = np.full((2 * orders, 1), none), np.full((2 * orders, 1), everything)
    path = np.concatenate([ends[0], worth.reshape(2 * orders, players - 1), ends[1]], axis=1)
    added = np.take_along_axis(np.diff(path, axis=1), joins, axis=1)  # (2 · orders, players)
    added = added.reshape(orders, 2, players).mean(axis=1)  # an order and its reverse are one sample
    return Estimate(added.mean(axis=0), added.std(axis=0, ddof=1) / np.sqrt(orders))


def coalitions_drawn(players: int, budget: int, rng: np.random.Generator, name: str) -> np.ndarray:
    """Return coalitions drawn with the probability of the Shapley kernel, each followed by its complement.

        p(S) ∝ (n − 1) / (C(n, |S|) · |S| · (n − |S|))

    Shapes: -> (draws, 2, players) as rows

    Raises:
        InputError: the budget does not allow two draws a player, which a regression with errors needs.
    """
    _check_budget(budget, 2 + 4 * players, players, name)
    draws = (budget - 2) // 2
    sizes = np.arange(1, players)
    share = 1 / (sizes * (players - sizes))
    drawn = rng.choice(sizes, draws, p=share / share.sum())
    ranks = rng.permuted(np.tile(np.arange(players), (draws, 1)), axis=1)
    some = ranks < drawn[:, None]
    return np.stack([some, ~some], axis=1).reshape(-1, players)


def from_coalitions(coalitions: np.ndarray, worth: np.ndarray, none: float, everything: float) -> Estimate:
    """Return the linear game nearest to the scores of drawn coalitions, and the standard errors of its values.

        minimise Σ (v(S) − v(none) − Σ of φᵢ over S)²  with Σ φᵢ = v(all) − v(none)

    Solved through the matrix C that projects on Σ φᵢ = 0: the errors are those of C · (the residuals' slopes), summed
    by draw.

    Args:
        coalitions, worth: as `coalitions_drawn` gives them, and v of each, (coalitions,).
    """
    players, total = coalitions.shape[1], everything - none
    members = coalitions.astype(np.float64)
    target = worth - none
    inverse = np.linalg.pinv(members.T @ members)
    ones = inverse.sum(axis=1)
    projected = inverse - np.outer(ones, ones) / ones.sum()  # C
    values = projected @ (members.T @ target) + ones / ones.sum() * total
    gradients = (members * (target - members @ values)[:, None]).reshape(-1, 2, players).sum(axis=1)  # (draws, players)
    draws = len(gradients)
    spread = projected @ gradients.T  # (players, draws)
    return Estimate(values, np.sqrt((spread**2).sum(axis=1) * draws / (draws - players + 1)))


def _check_budget(budget: int, least: int, players: int, name: str) -> None:
    if budget < least:
        raise InputError(f"budget must be {least} or more for the {players} words of {name}, got {budget}")
