"""All explanation methods by name."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from backlight.errors import unknown
from backlight.explain.methods.attention import attention_rollout, attention_x_gradient
from backlight.explain.methods.controls import embedding_magnitude, random_values
from backlight.explain.methods.decompx import decompx
from backlight.explain.methods.gradients import gradient_x_input, saliency, saliency_l2
from backlight.explain.methods.integrated_gradients import integrated_gradients
from backlight.explain.methods.layers import layer_gradient_x_activation
from backlight.explain.methods.leave_one_out import leave_one_out
from backlight.explain.methods.mask_gradient import deletion_gradient, mask_gradient
from backlight.explain.methods.occlusion import occlusion, occlusion_by_sentence
from backlight.explain.methods.shapley import kernel_shap, shapley
from backlight.explain.methods.smoothgrad import smoothgrad, smoothgrad_mean


@dataclass(frozen=True)
class Method:
    """An explanation method."""

    name: str  # its name in `--method` and `method=`
    explain: Callable  # `explain(ranker, pairs, *, progress=…, **options)` returns one `Attribution` per pair
    title: str  # its name in a sentence
    summary: str  # what its values mean, in one line
    signed: bool = False  # whether values have a sign
    native: bool = False  # whether it needs a model on backlight's own engine

    @property
    def takes_scores(self) -> bool:
        """Whether `explain` can be given scores that an ordinary call has made (see NOTE [A method])."""
        return "scores" in inspect.signature(self.explain).parameters

    @property
    def takes_gradients(self) -> bool:
        """Whether its values are computed from gradients."""
        return self.name not in MEASURED


_ALL = (
    Method(
        "leave-one-out",
        leave_one_out,
        "leave one out",
        "how much the score falls when the word is deleted: measured for the strongest words, within the time budget, "
        "and estimated for the others",
        True,
    ),
    Method(
        "deletion-gradient",
        deletion_gradient,
        "deletion gradient",
        "how much the score falls, to first order, when the word is deleted",
        True,
    ),
    Method(
        "mask-gradient",
        mask_gradient,
        "mask gradient",
        "how much the score falls, to first order, when the word is masked from attention",
        True,
    ),
    Method("saliency", saliency, "saliency (L1)", "how strongly the score reacts to a small change of the word"),
    Method("saliency-l2", saliency_l2, "saliency (L2)", "the same, by the L2 norm of the gradient"),
    Method(
        "gradient-x-input",
        gradient_x_input,
        "gradient × input",
        "the word's contribution if the model were linear",
        True,
    ),
    Method("decompx", decompx, "DecompX", "the word's part of the score, propagated layer by layer", True, True),
    Method("occlusion", occlusion, "occlusion", "how much the score falls without the word", True),
    Method("occlusion-sentence", occlusion_by_sentence, "occlusion by sentence", "the same for whole sentences", True),
    Method("shapley", shapley, "Shapley values", "the word's contribution, averaged over orders of adding words", True),
    Method("kernel-shap", kernel_shap, "kernel SHAP", "the same, estimated by regression over sets of words", True),
    Method(
        "integrated-gradients",
        integrated_gradients,
        "integrated gradients",
        "the word's share of the difference between the score and the baseline's score",
        True,
    ),
    Method("smoothgrad", smoothgrad, "SmoothGrad", "saliency (L1), averaged over noisy embeddings"),
    Method("smoothgrad-mean", smoothgrad_mean, "SmoothGrad of the mean", "the size of the mean gradient under noise"),
    Method(
        "layer-gradient-x-activation",
        layer_gradient_x_activation,
        "layer gradient × activation",
        "the contribution of the hidden state at the word's position, half-way through the layers",
        True,
    ),
    Method("attention-rollout", attention_rollout, "attention rollout", "how much attention reaches the word"),
    Method(
        "attention-x-gradient",
        attention_x_gradient,
        "attention × gradient",
        "how much attention that raises the score reaches the word",
    ),
    Method(
        "embedding-magnitude",
        embedding_magnitude,
        "embedding magnitude (control)",
        "the norm of the word's embedding: a control that depends on neither the query nor the score",
    ),
    Method("random", random_values, "random (control)", "a random number for each word: a control"),
)
METHODS: dict[str, Method] = {method.name: method for method in _ALL}
MEASURED = {  # methods without gradients
    "leave-one-out", "occlusion", "occlusion-sentence", "shapley", "kernel-shap", "attention-rollout",
    "embedding-magnitude", "random",
}  # fmt: skip
DEFAULT = "leave-one-out"  # what is shown is what was measured: see docs/faithfulness.md


def method_called(name: str) -> Method:
    """Return the method of a name. Raises InputError: there is none."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]
