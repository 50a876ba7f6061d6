"""BL8xx: NaN, infinity, zero."""

from backlight.lens.doctor.rule import Rule
from backlight.lens.finding import WARNING

RULES = (
    Rule(
        id="BL801",
        slug="nan-stopped-backward",
        title="anomaly mode found a NaN in a gradient",
        cause="A derivative was taken where it is not defined, or a NaN of the forward came back.",
        cure="Keep the op's input inside its domain: clamp it, or add a small number.",
        says="Function 'SqrtBackward0' returned nan values in its 0th output.",
        reference="torch.autograd.detect_anomaly",
    ),
    Rule(
        id="BL802",
        slug="nan-gradient",
        title="a gradient is NaN",
        level=WARNING,
        cause="An op's derivative is infinite there and met a zero: log or division in the branch of a where() that is "
        "not taken, sqrt or norm at 0.",
        cure="Make the op's input safe before the op, not its result after it: x.clamp(min=...), where() inside.",
        reference="PyTorch's documentation, Autograd mechanics, Gradients for non-differentiable functions",
    ),
    Rule(
        id="BL803",
        slug="clip-non-finite",
        title="gradients to clip are not finite",
        cause="A NaN or an infinity is in a gradient: clipping cannot mend it.",
        cure="Find where it first appears (this tool's other findings say so), or skip the step.",
        says="The total norm of order 2.0 for gradients from `parameters` is non-finite, so it cannot be clipped.",
        reference="torch.nn.utils.clip_grad_norm_",
    ),
    Rule(
        id="BL804",
        slug="infinite-gradient",
        title="a gradient is infinite",
        level=WARNING,
        cause="A derivative was taken at the edge of an op's domain (sqrt or log at 0, division by 0), or overflowed.",
        cure="Keep the op's input away from the edge: add a small number or clamp.",
    ),
    Rule(
        id="BL805",
        slug="nan-in-forward",
        title="an op made a NaN out of finite numbers",
        level=WARNING,
        cause="Its input lies outside of its domain: log or sqrt of a negative number, 0/0, inf − inf.",
        cure="Keep the op's input inside its domain.",
    ),
)
