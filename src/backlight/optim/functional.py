"""The steps of optimizers as functions on lists of tensors: PyTorch's `torch.optim.adam.adam(…)` and its kin.

Each updates `params` and the tensors of the state in place. A list of the state has one tensor for each parameter;
lists that the options do not use may be empty.
"""

from collections import defaultdict
from collections.abc import Callable
from inspect import Parameter, Signature

from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError
from backlight.optim.adadelta import Adadelta
from backlight.optim.adagrad import Adagrad
from backlight.optim.adam import Adam, AdamW
from backlight.optim.adamax import Adamax
from backlight.optim.asgd import ASGD
from backlight.optim.nadam import NAdam
from backlight.optim.optimizer import Optimizer
from backlight.optim.radam import RAdam
from backlight.optim.rmsprop import RMSprop
from backlight.optim.rprop import Rprop
from backlight.optim.sgd import SGD
from backlight.optim.sparse_adam import SparseAdam

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
    "sparse_adam",
]

# Pairs of arguments that are one option of a group
PAIRS = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
}
NO_SWITCH = {"foreach", "fused", "grad_scale", "found_inf"}  # None by default; other switches are False


def functional_form(name: str, kind: type[Optimizer], lists: str, switches: str, options: str) -> Callable[..., None]:
    """Return the step of an optimizer as a function.

    Args:
        lists: the names of its lists after `params`, those of the state as `list:entry`.
        switches: its arguments with a default, in PyTorch's order.
        options: its keyword arguments.
    """
    entries = dict(each.split(":") for each in lists.split()[1:])
    gradients = lists.split()[0]
    signature = Signature(
        [Parameter(each, Parameter.POSITIONAL_OR_KEYWORD) for each in ("params", gradients, *entries)]
        + [
            Parameter(each, Parameter.POSITIONAL_OR_KEYWORD, default=None if each in NO_SWITCH else False)
            for each in switches.split()
        ]
        + [Parameter(each, Parameter.KEYWORD_ONLY) for each in options.split()],
        return_annotation=None,
    )

    def step(*args, **kwargs) -> None:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        group = dict(given.arguments)
        params, grads = group.pop("params"), group.pop(gradients)
        states = {entry: group.pop(each) for each, entry in entries.items()}
        _check(kind, group, states.get("step", []))
        for option, both in PAIRS.items():
            if both[0] in group:
                group[option] = tuple(group.pop(each) for each in both)
        _step(kind, group, params, grads, states)

    step.__name__ = step.__qualname__ = name
    step.__signature__ = signature
    step.__doc__ = f"Update parameters in place as one step of `{kind.__name__}` does."
    return step


def _check(kind: type[Optimizer], group: dict, steps: list) -> None:
    if kind is not SparseAdam and not all(isinstance(count, TensorState) for count in steps):
        raise GraphError("API has changed, `state_steps` argument must contain a list of singleton tensors")
    if group.pop("grad_scale", None) is not None or group.pop("found_inf", None) is not None:
        raise AssertionError("Expected grad_scale and found_inf to be None: scaled gradients are for GradScaler.step")


def _step(kind: type[Optimizer], group: dict, params: list, grads: list, states: dict[str, list]) -> None:
    """Take the step by an optimizer without defaults, whose state is that of the lists."""
    optimizer = object.__new__(kind)
    optimizer.state = defaultdict(dict)
    for number, param in enumerate(params):
        found = {entry: values[number] for entry, values in states.items() if len(values) > number}
        found = {entry: value for entry, value in found.items() if value is not None}
        if kind is SparseAdam:
            found["step"] -= 1  # here the count of this step, in the optimizer's state that of the last one
        optimizer.state[param] = found
    if kind is AdamW:
        group["decoupled_weight_decay"] = True
    given = list(zip(params, grads))
    if group.get("capturable") and given:
        optimizer.refuse_capturable()
    if group.get("differentiable"):
        optimizer.update_recorded(group, given)
    else:
        optimizer.update_group(group, given)
    for entry, values in states.items():
        for number, param in enumerate(params[: len(values)]):
            if isinstance(optimizer.state[param].get(entry), TensorState):
                values[number] = optimizer.state[param][entry]


_AVERAGES = "exp_avgs:exp_avg exp_avg_sqs:exp_avg_sq"
_STEPS = "state_steps:step"
_ADAM_LISTS = f"grads {_AVERAGES} max_exp_avg_sqs:max_exp_avg_sq {_STEPS}"
_ADAM_SWITCHES = "foreach capturable differentiable fused grad_scale found_inf has_complex"
_ADAM_OPTIONS = "amsgrad beta1 beta2 lr weight_decay eps maximize"
_SWITCHES = "foreach maximize differentiable capturable has_complex"

adadelta = functional_form(
    "adadelta",
    Adadelta,
    f"grads square_avgs:square_avg acc_deltas:acc_delta {_STEPS}",
    "capturable foreach differentiable has_complex",
    "lr rho eps weight_decay maximize",
)
adagrad = functional_form(
    "adagrad",
    Adagrad,
    f"grads state_sums:sum {_STEPS}",
    "fused grad_scale found_inf has_sparse_grad foreach differentiable has_complex",
    "lr weight_decay lr_decay eps maximize",
)
adam = functional_form("adam", Adam, _ADAM_LISTS, f"{_ADAM_SWITCHES} decoupled_weight_decay", _ADAM_OPTIONS)
adamw = functional_form("adamw", AdamW, _ADAM_LISTS, _ADAM_SWITCHES, _ADAM_OPTIONS)
adamax = functional_form(
    "adamax", Adamax, f"grads exp_avgs:exp_avg exp_infs:exp_inf {_STEPS}", _SWITCHES, "eps beta1 beta2 lr weight_decay"
)
asgd = functional_form(
    "asgd", ASGD, f"grads axs:ax mus:mu etas:eta {_STEPS}", _SWITCHES, "lambd lr t0 alpha weight_decay"
)
nadam = functional_form(
    "nadam",
    NAdam,
    f"grads {_AVERAGES} mu_products:mu_product {_STEPS}",
    "decoupled_weight_decay foreach capturable differentiable has_complex maximize",
    "beta1 beta2 lr weight_decay momentum_decay eps",
)
radam = functional_form(
    "radam",
    RAdam,
    f"grads {_AVERAGES} {_STEPS}",
    "decoupled_weight_decay foreach differentiable capturable has_complex maximize",
    "beta1 beta2 lr weight_decay eps",
)
rmsprop = functional_form(
    "rmsprop",
    RMSprop,
    f"grads square_avgs:square_avg grad_avgs:grad_avg momentum_buffer_list:momentum_buffer {_STEPS}",
    _SWITCHES,
    "lr alpha eps weight_decay momentum centered",
)
rprop = functional_form(
    "rprop",
    Rprop,
    f"grads prevs:prev step_sizes:step_size {_STEPS}",
    "foreach capturable maximize differentiable has_complex",
    "step_size_min step_size_max etaminus etaplus",
)
sgd = functional_form(
    "sgd",
    SGD,
    "d_p_list momentum_buffer_list:momentum_buffer",
    "has_sparse_grad foreach fused grad_scale found_inf",
    "weight_decay momentum lr dampening nesterov maximize",
)
sparse_adam = functional_form(
    "sparse_adam", SparseAdam, f"grads {_AVERAGES} {_STEPS}", "", "eps beta1 beta2 lr maximize"
)
