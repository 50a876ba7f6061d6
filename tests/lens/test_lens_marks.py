"""What is written on nodes: names of ops, options, sizes in bytes."""

import re

import pytest
import torch

import backlight
from backlight import lens
from backlight.codegen.declaration import TABLE, camel
from backlight.lens.pictures.labels import label_of, name_of
from backlight.report.numbers import size_text

ENGINES = pytest.mark.parametrize("t", [backlight, torch], ids=["backlight", "torch"])
# Ops that PyTorch has no node for.
WITHOUT = r"(cast|q|dim[IV]|m[TH]|matrix_H|numpy_T|t_copy|atleast|dyn_quant|convert)(_|$)|.*int[48]pack"


def differentiable_names():
    """Return the names of PyTorch's ops, as a user writes them."""
    names = {
        one[6:].split(".")[0].strip("_") for one in torch._C._dispatch_get_all_op_names() if one.startswith("aten::")
    }
    return sorted(one for one in names if not re.match(WITHOUT, one))


def test_a_node_is_called_as_the_function_of_pytorch_that_made_it():
    names = differentiable_names()
    wrong = {name: name_of(f"{''.join(name.title().split('_'))}Backward0") for name in names if "__" not in name}
    assert len(wrong) > 1000
    assert {name: told for name, told in wrong.items() if name != told} == {}


def test_a_node_of_our_own_table_is_called_as_its_op():
    named = [op for op in TABLE.values() if op.node_name == f"{camel(op.name)}Backward0"]
    assert len(named) > 200
    assert [op.name for op in named if name_of(op.node_name) != op.name.strip("_")] == []


@pytest.mark.parametrize(
    ("node", "label"),
    [
        ("MaxPool2DWithIndicesBackward0", "max_pool2d_with_indices"),
        ("AdaptiveMaxPool2DBackward0", "adaptive_max_pool2d"),
        ("UpsampleNearest2DBackward0", "upsample_nearest2d"),
        ("UpsampleBilinear2DAaBackward0", "upsample_bilinear2d_aa"),
        ("GridSampler3DBackward0", "grid_sampler_3d"),
        ("SmoothL1LossBackward0", "smooth_l1_loss"),
        ("FftR2CBackward0", "fft_r2c"),
        ("Log1PBackward0", "log1p"),
        ("Deg2RadBackward0", "deg2rad"),
        ("AvgPool2DBackwardBackward0", "avg_pool2d_backward"),
        ("torch::autograd::CopyBackwards", "copy"),
        ("MulBackward0", "×"),
    ],
)
def test_labels(node, label):
    assert label_of(node) == label


@ENGINES
def test_the_label_is_in_tree_picture_and_json(t):
    image = t.ones(1, 1, 4, 4, requires_grad=True)
    record = lens.capture(t.nn.functional.max_pool2d(image, 2).sum())
    for face in (record.tree(color=False), record.svg(), record.dot(), record.to_json()):
        assert "max_pool2d_with_indices" in face


@ENGINES
def test_negative_options_are_negative(t):
    x = t.ones(2, 3, requires_grad=True)
    log_p = t.log_softmax(x, -1).transpose(-1, -2)
    picked = t.nn.functional.nll_loss(log_p.transpose(-1, -2), t.tensor([0, 1]))
    loss = picked + x.cumsum(-1).select(-1, -1).sum() + x.diagonal(-1).sum()
    options = {node.type: node.options for node in lens.capture(loss).nodes if node.options}
    assert options["NllLossBackward0"]["ignore_index"] == -100
    assert options["TransposeBackward0"] == {"dim0": -1, "dim1": -2}
    assert options["CumsumBackward0"]["dim"] == -1
    assert (options["SelectBackward0"]["dim"], options["SelectBackward0"]["index"]) == (-1, -1)
    assert options["DiagonalBackward0"]["offset"] == -1


@pytest.mark.parametrize("exponent", [2**62, -(2**63), 2**63 - 1])
def test_large_numbers_stay_what_they_are(exponent):
    made = torch.ones(2, requires_grad=True).pow(exponent)
    options = {node.type: node.options for node in lens.capture(made.sum()).nodes}
    assert options["PowBackward0"] == {"exponent": exponent}


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (4_300_000, "4.1 MiB"), (2**30, "1 GiB"), (2**49, "512 TiB")],
)
def test_sizes_are_binary(size, text):
    assert size_text(size) == text


def test_tree_picture_and_replay_write_the_same_size():
    x = torch.ones(1000, 500, requires_grad=True)
    model = torch.nn.Sequential(torch.nn.Linear(500, 300), torch.nn.ReLU(), torch.nn.Linear(300, 300), torch.nn.ReLU())
    with lens.watch() as watch:
        model(x).exp().sum().backward()
    record = watch.record
    for shown in (record.tree(most=3), record.svg(most=3), record.replay().text()):
        assert " MiB" in shown
        assert " MB" not in shown and " kB" not in shown


@ENGINES
def test_a_module_of_one_op_is_named_on_it_and_dropout_is_called_so(t):
    t.manual_seed(0)
    nn = t.nn
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 2))
    with lens.watch(engine=t.__name__) as watch:
        (nn.functional.dropout(model(t.ones(2, 4)), 0.5) * 2).sum().backward()
    record = watch.record
    labels = [node.label for node in record.nodes if node.type == "MulBackward0"]
    called = "dropout" if t is torch else "×"  # ours reports the ops that its function is made of
    assert labels == ["dropout", called, "×"]
    for face in (record.tree(color=False), record.svg(), record.dot()):
        assert "in ReLU 1" in face and "in Dropout 2" in face
    relu = next(line for line in record.tree(color=False).splitlines() if "relu" in line)
    assert relu.count("  in ") == 1
