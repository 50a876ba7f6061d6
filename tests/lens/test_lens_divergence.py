"""Two runs are compared op by op: what is equal, what is rounding, and where a planted mistake makes them part."""

import json
import math
import random

import numpy as np
import pytest
import torch

import backlight
from backlight import lens
from backlight.cli.main import main
from backlight.errors import InputError
from backlight.lens.records.fingerprints import fingerprint_of, sketch_of

TARGETS = [0, 1, 2, 3]


def mlp(nn):
    return nn.Sequential(
        nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.Linear(64, 5)
    )


def encoder(nn):
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    layers = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    return nn.Sequential(layers, nn.Flatten(), nn.Linear(32 * 7, 5))


def cnn(nn):
    first = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(16, 5))


MODELS = {"mlp": (mlp, (4, 20)), "encoder": (encoder, (4, 7, 32)), "cnn": (cnn, (4, 3, 16, 16))}


def recorded(name, engine=torch, *, dtype="float32", change=None, optimizer="SGD", lr=1e-2, values="hash"):
    """Return the record of a step; weights and inputs are the same for both engines."""
    make, shape = MODELS[name]
    torch.manual_seed(0)
    model = make(torch.nn)
    inputs = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    if engine is backlight:
        state = {key: backlight.tensor(value.numpy()) for key, value in model.state_dict().items()}
        model = make(backlight.nn)
        model.load_state_dict(state)
    model.to(getattr(engine, dtype))
    if change is not None:
        change(model)
    steps = getattr(engine.optim, optimizer)(model.parameters(), lr=lr)
    x, targets = engine.tensor(inputs.numpy()).to(getattr(engine, dtype)), engine.tensor(TARGETS)
    with lens.watch(values=values, engine="torch" if engine is torch else "backlight") as watch:
        engine.nn.functional.cross_entropy(model(x), targets).backward()
        steps.step()
    return watch.record


@pytest.mark.parametrize("name", MODELS)
def test_one_program_is_the_same_bit_for_bit_on_each_engine(name):
    for engine in (torch, backlight):
        found = lens.diff(recorded(name, engine), recorded(name, engine))
        assert found.values.status == "same"
        assert found.verdict().startswith("the two runs are the same bit for bit: ")
        assert {point.phase for point in found.values.points} == {"forward", "backward", "step"}


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("name", MODELS)
def test_two_engines_and_two_precisions_differ_by_rounding_only(name, optimizer):
    base = recorded(name, optimizer=optimizer)
    for other in (
        recorded(name, backlight, optimizer=optimizer),
        recorded(name, dtype="float64", optimizer=optimizer),
    ):
        values = lens.diff(base, other).values
        assert values.status == "close"
        assert values.jumps == []
        assert values.worst("forward").deviation.units < 20


@pytest.mark.parametrize("name", MODELS)
def test_bfloat16_is_far_off_and_still_only_rounds(name):
    values = lens.diff(recorded(name), recorded(name, dtype="bfloat16")).values
    assert values.jumps == []
    assert 1e-4 < values.worst("forward").deviation.relative < 0.05


# --- planted mistakes: the module that is named, and what is said of it -----------------------------------------------


def other_eps(model):
    model[0].layers[1].norm1.eps = 1e-3


def transposed(model):
    weight = model[0].layers[2].self_attn.out_proj.weight
    weight.data = weight.data.t().contiguous()


def dropout_left_on(model):
    model[0].layers[1].dropout1.p = 0.1


def other_weights(model):
    torch.nn.init.xavier_normal_(model[0].layers[1].linear2.weight)


def scaled(model):
    model[2].register_forward_hook(lambda module, inputs, out: out * 1.01)


def hook_on_a_gradient(model):
    model[0].layers[1].linear1.weight.register_hook(lambda grad: grad * 1.5)


def other_activation(model):
    model[0].layers[0].activation = torch.nn.functional.gelu
    model[0].layers[0].activation_relu_or_gelu = 2


PLANTED = [
    ("encoder", other_eps, "0.layers.1.norm1: native_layer_norm (", "bit for bit"),
    ("encoder", transposed, "parameter 0.layers.2.self_attn.out_proj.weight", "transposed, or permuted"),
    ("encoder", dropout_left_on, "0.layers.1: + (", "dropout (test_lens_divergence.py"),
    ("encoder", other_weights, "parameter 0.layers.1.linear2.weight", "begins with other values"),
    (
        "encoder",
        hook_on_a_gradient,
        "parameter 0.layers.1.linear1.weight, in the backward",
        "its hooks: none → <lambda>",
    ),
    ("cnn", lambda model: setattr(model[5], "eps", 0.1), "5: native_batch_norm", "bit for bit"),
    ("cnn", lambda model: model[4].weight.data.mul_(1.001), "parameter 4.weight", "begins with other values"),
    ("mlp", scaled, "", "× (test_lens_divergence.py"),
]


@pytest.mark.parametrize(("name", "change", "place", "reason"), PLANTED)
def test_the_verdict_names_the_module_of_a_planted_mistake(name, change, place, reason):
    found = lens.diff(recorded(name), recorded(name, change=change))
    assert found.values.status == "differ"
    assert found.verdict(table=False).splitlines()[0].startswith(f"the two runs diverge at {place}")
    assert reason in found.verdict(table=False)
    assert "← parts here" in found.verdict()


def test_a_mistake_is_found_across_engines_too():
    found = lens.diff(recorded("encoder"), recorded("encoder", backlight, change=other_eps))
    assert str(found.verdict()).startswith("the two runs diverge at 0.layers.1.norm1: native_layer_norm")
    assert found.values.first.deviation.relative == pytest.approx(5e-4, rel=0.5)


def test_a_small_jump_within_the_tolerance_is_told_and_is_no_difference():
    found = lens.diff(
        recorded("encoder"), recorded("encoder", change=lambda model: setattr(model[0].layers[1].norm1, "eps", 1e-6))
    )
    assert found.values.status == "close"
    assert "yet this is more than rounding: 0.layers.1.norm1" in found.verdict()
    assert lens.diff(found.before, found.after, tolerance=1e-7).values.status == "differ"


def test_another_learning_rate_parts_in_the_step():
    found = lens.diff(recorded("mlp"), recorded("mlp", lr=2e-2))
    assert found.values.first.phase == "step"
    assert found.verdict().startswith("the two runs diverge at parameter 0.weight, in the optimizer's step")


def test_a_missing_gradient_is_where_the_backward_parts():
    def step(cut):
        torch.manual_seed(0)
        model = mlp(torch.nn)
        hidden = model[1](model[0](torch.ones(3, 20)))
        model[2:](hidden.detach() if cut else hidden).square().mean().backward()

    values = lens.diff(step, lambda _: step(True), args=(False,)).values
    assert values.first.phase == "backward"
    assert math.isinf(values.first.deviation.relative)


# --- a random op of a random program ----------------------------------------------------------------------------------

OPS = {
    "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: x.sigmoid(),
    "sin": lambda x: x.sin(),
    "softmax": lambda x: x.softmax(-1) * 8,
    "add": lambda x: x + x.flip(0),
    "matmul": lambda x: x @ x.mT / 8,
    "exp": lambda x: (x * 0.1).exp(),
    "centre": lambda x: x - x.mean(-1, keepdim=True),
}


@pytest.mark.parametrize("seed", range(24))
def test_a_planted_error_at_a_random_op_of_a_random_program_is_the_first_divergence(seed):
    draw = random.Random(seed)
    names = [draw.choice(list(OPS)) for _ in range(draw.randrange(4, 24))]
    wrong, engine = draw.randrange(len(names)), draw.choice([torch, backlight])
    start = engine.linspace(-2, 2, 64).reshape(8, 8)

    def program(planted, x):
        for number, name in enumerate(names):
            x = OPS[name](x)
            x = x * (1.01 if planted and number == wrong else 1.0)
        x.square().mean().backward()

    runs = []
    for planted in (False, True):
        leaf = start.clone().requires_grad_()
        with lens.watch(values="hash", engine="torch" if engine is torch else "backlight") as watch:
            program(planted, leaf)
        runs.append(watch.record)
    factors = [node.id for node in runs[1].nodes if node.place and "1.01 if planted" in node.place.text]
    values = lens.diff(*runs).values
    assert values.first.phase == "forward"
    assert values.first.after == factors[wrong]
    assert values.first.deviation.relative == pytest.approx(0.0099, rel=0.6)
    assert all(point.deviation.exact for point in values.points[: values.points.index(values.first)])


# --- functions, fingerprints, the command -----------------------------------------------------------------------------


def test_functions_begin_from_the_same_random_state_and_leave_it():
    def step():
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
        model(torch.ones(2, 4)).sum().backward()

    before = torch.get_rng_state()
    found = lens.diff(step, step)
    assert found.values.status == "same"
    assert torch.equal(torch.get_rng_state(), before)


def test_what_is_not_deterministic_is_named():
    own = torch.Generator()

    def step():
        own.seed()
        weight = torch.ones(64, requires_grad=True)
        noise = torch.randn(64, generator=own)
        (weight * noise).sum().backward()

    values = lens.diff(step, step)
    assert values.values.status == "differ"
    assert "its constant: other" in values.verdict()


def test_a_function_that_changes_its_model_is_told():
    model = mlp(torch.nn)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        model(torch.ones(2, 20)).square().mean().backward()
        optimizer.step()

    assert "the first run left it so, by a step of its optimizer" in lens.diff(step, step).verdict()


def test_functions_without_a_graph_are_refused():
    with pytest.raises(InputError, match="must compute something that requires grad"):
        lens.diff(lambda: torch.ones(2), lambda: torch.ones(2))


def test_a_diff_shows_itself():
    found = lens.diff(recorded("mlp"), recorded("mlp", change=lambda model: model[2].bias.data.add_(0.1)))
    assert repr(found).startswith("<Diff before → after: the two runs diverge at parameter 2.bias")
    assert "parameter 2.bias" in found._repr_html_()
    told = json.loads(found.to_json())["values"]
    assert (told["status"], told["first"]["name"], told["first"]["phase"]) == ("differ", "2.bias", "forward")


@pytest.mark.parametrize("size", [1, 100, 5000, 200_000])
def test_a_sketch_estimates_the_norm_of_a_difference(size):
    draw = np.random.default_rng(size)
    x, d = draw.normal(size=size), draw.normal(size=size) * 1e-6
    apart = np.linalg.norm(np.subtract(sketch_of(x + d), sketch_of(x)))
    assert apart == pytest.approx(np.linalg.norm(d), rel=0.5)
    one = x.copy()
    one[size // 2] += 1e-3
    assert np.linalg.norm(np.subtract(sketch_of(one), sketch_of(x))) == pytest.approx(1e-3, rel=1e-6)


def test_a_fingerprint_is_of_values_in_logical_order():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert fingerprint_of(x.T.copy().T) == fingerprint_of(x)
    assert fingerprint_of(x.T) != fingerprint_of(x)
    assert fingerprint_of(np.array([np.nan, 1.0])).sketch == fingerprint_of(np.array([0.0, 1.0])).sketch


def test_the_command_tells_by_its_exit_code(tmp_path, capsys):
    paths = [str(tmp_path / f"{number}.json") for number in range(4)]
    records = [recorded("mlp"), recorded("mlp", backlight), recorded("mlp", lr=2e-2), recorded("mlp", values="none")]
    for record, path in zip(records, paths):
        record.save(path)
    assert lens.read_record(paths[0]) == records[0]
    codes = [main(["diff", "--values", paths[0], path]) for path in paths]
    assert codes == [0, 0, 1, 2]
    said = capsys.readouterr().out
    assert "same bit for bit" in said
    assert "in the optimizer's step" in said
    assert "holds shapes only: record it with values='hash'" in said


SCRIPT = """
import sys
import torch
{seed}
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5))
with torch.no_grad():
    [p.fill_(0.5) for p in model.parameters()]
model(torch.ones(4, 8)).sum().backward()
"""


def test_a_script_is_run_twice(tmp_path, capsys):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(seed=""))
    assert main(["diff", "--rerun", str(script)]) == 1
    said = capsys.readouterr().out
    assert said.startswith("the two runs diverge at ")
    assert "random numbers" in said
    assert main(["diff", "--rerun", str(script), "--seed", "3"]) == 0


TWO_MASKS = """
import pathlib
import torch
ran = pathlib.Path(__file__ + ".ran")
x = torch.full((4,), 0.5, requires_grad=True)
torch.manual_seed({seeds}[ran.exists()])
ran.touch()
torch.nn.functional.dropout(x, 0.5).sum().backward()
"""


def test_random_numbers_are_named_where_only_the_backward_tells(tmp_path, capsys):
    """Two masks that keep as many elements have one sum, so that the forward agrees where it is read."""
    script = tmp_path / "train.py"
    script.write_text(TWO_MASKS.format(seeds=_seeds_of_masks_of_two()))
    assert main(["diff", "--rerun", str(script)]) == 1
    said = capsys.readouterr().out
    assert "in the backward" in said and "random numbers were drawn" in said


def _seeds_of_masks_of_two():
    """Return two seeds whose masks differ, and keep two elements of four each."""
    masks = {}
    for seed in range(40):
        torch.manual_seed(seed)
        mask = tuple(torch.nn.functional.dropout(torch.ones(4), 0.5).tolist())
        if sum(mask) == 4:
            masks.setdefault(mask, seed)
    return list(masks.values())[:2]


def test_a_script_that_is_not_there(tmp_path, capsys):
    assert main(["diff", "--rerun", str(tmp_path / "none.py")]) == 2
