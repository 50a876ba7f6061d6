"""Training of rerankers on your own pairs: what `backlight train-reranker` runs."""

from backlight.training.reranker.progress import TrainingProgress
from backlight.training.reranker.run import RerankerTraining, train_reranker
from backlight.training.reranker.settings import LossWeights, Optimisation, RerankerSettings

__all__ = ["LossWeights", "Optimisation", "RerankerSettings", "RerankerTraining", "TrainingProgress", "train_reranker"]
