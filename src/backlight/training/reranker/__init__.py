"""Rerankers trained on pairs of one's own: what `backlight train-reranker` runs."""

from backlight.training.reranker.progress import Stand
from backlight.training.reranker.run import RerankerTraining, train_reranker
from backlight.training.reranker.settings import LossWeights, Optimisation, RerankerSettings

__all__ = ["LossWeights", "Optimisation", "RerankerSettings", "RerankerTraining", "Stand", "train_reranker"]
