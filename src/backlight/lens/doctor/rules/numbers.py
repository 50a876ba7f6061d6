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
        explanation="Anomaly mode looks at what each node gives and stops at the first NaN. The error names "
        "the node; the warning before it the line of the forward. It sees NaN in gradients only: "
        "no infinity, and no NaN in the forward.",
        wrong="""
            x = torch.tensor([-1.0], requires_grad=True)
            with torch.autograd.set_detect_anomaly(True):
                torch.sqrt(x).sum().backward()
        """,
        right="""
            x = torch.tensor([-1.0], requires_grad=True)
            with torch.autograd.set_detect_anomaly(True):
                torch.sqrt(x.clamp(min=1e-6)).sum().backward()
        """,
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
        explanation="NaN comes of 0 · ∞, ∞ − ∞ and 0 / 0. torch.where(x > 0, log(x), 0) computes both "
        "branches, also in backward: the slope of the branch not taken is ∞, is multiplied by 0, "
        "and is NaN. sqrt and norm have an infinite slope at 0, which a chain rule multiplies by "
        "0. One step with it makes a parameter NaN, and all that depends on it.",
        wrong="""
            x = torch.tensor([0.0, 1.0], requires_grad=True)
            torch.where(x > 0, torch.log(x), x).sum().backward()
            print(x.grad)  # nan
        """,
        right="""
            x = torch.tensor([0.0, 1.0], requires_grad=True)
            safe = torch.where(x > 0, x, torch.ones_like(x))
            torch.where(x > 0, torch.log(safe), x).sum().backward()
            print(x.grad)
        """,
    ),
    Rule(
        id="BL803",
        slug="clip-non-finite",
        title="gradients to clip are not finite",
        cause="A NaN or an infinity is in a gradient: clipping cannot mend it.",
        cure="Find where it first appears (this tool's other findings say so), or skip the step.",
        says="The total norm of order 2.0 for gradients from `parameters` is non-finite, so it cannot be clipped.",
        reference="torch.nn.utils.clip_grad_norm_",
        explanation="Clipping divides by the norm of all gradients. If that is NaN or infinite, so is every "
        "gradient afterwards.",
        wrong="""
            p = nn.Parameter(torch.ones(1))
            p.grad = torch.tensor([float("nan")])
            torch.nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
        """,
        right="""
            p = nn.Parameter(torch.ones(1))
            p.grad = torch.tensor([3.0])
            torch.nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
        """,
    ),
    Rule(
        id="BL804",
        slug="infinite-gradient",
        title="a gradient is infinite",
        level=WARNING,
        cause="A derivative was taken at the edge of an op's domain (sqrt or log at 0, division by 0), or overflowed.",
        cure="Keep the op's input away from the edge: add a small number or clamp.",
        explanation="The slope of sqrt and log at 0 is infinite. One step with it makes the parameter "
        "infinite. Anomaly mode does not look for infinity.",
        wrong="""
            x = torch.tensor([0.0], requires_grad=True)
            torch.sqrt(x).sum().backward()
            print(x.grad)  # inf
        """,
        right="""
            x = torch.tensor([0.0], requires_grad=True)
            torch.sqrt(x + 1e-12).sum().backward()
            print(x.grad)
        """,
    ),
    Rule(
        id="BL805",
        slug="nan-in-forward",
        title="an op made a NaN out of finite numbers",
        level=WARNING,
        cause="Its input lies outside of its domain: log or sqrt of a negative number, 0/0, inf − inf.",
        cure="Keep the op's input inside its domain.",
        explanation="A NaN in the forward makes the loss NaN, and every gradient. Anomaly mode does not look "
        "at the forward; this finding names the first op that made one.",
        wrong="""
            x = torch.tensor([-1.0], requires_grad=True)
            y = torch.log(x)
        """,
        right="""
            x = torch.tensor([-1.0], requires_grad=True)
            y = torch.log(x.clamp(min=1e-6))
        """,
    ),
)
