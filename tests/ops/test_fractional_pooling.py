"""Fractional max pooling: values, places, gradients, draws and messages are PyTorch's."""

import pytest
from case import assert_same
from filled import BOTH, filled
from parity import assert_same as assert_expression


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-8), ("float32", 1e-5)])
@pytest.mark.parametrize("batch", [(), (3,)], ids=["unbatched", "batched"])
@pytest.mark.parametrize(("dims", "output"), [(2, (5, 3)), (2, 1), (3, (4, 2, 3)), (3, 2)])
def test_values_places_and_gradients_equal_pytorch(dims, output, batch, dtype, tolerance):
    results = []
    for t in BOTH:
        t.manual_seed(3)
        x = filled(t, *batch, 2, *(9, 7, 6)[:dims], dtype=dtype).requires_grad_()
        pool = getattr(t.nn.functional, f"fractional_max_pool{dims}d")
        values, places = pool(x, 2, output_size=output, return_indices=True)
        (values * filled(t, *values.shape, dtype=dtype)).sum().backward()
        results.append((values.detach(), places, x.grad))
    assert_same(*results, tolerance, tolerance)


@pytest.mark.parametrize(
    "layer",
    ["FractionalMaxPool2d(2, 3)", "FractionalMaxPool2d((2, 1), output_ratio=0.5)", "FractionalMaxPool3d(2, (2, 3, 1))"],
)
def test_layers_print_and_compute_as_pytorchs(layer):
    results = []
    for t in BOTH:
        t.manual_seed(0)
        pool = eval(f"t.nn.{layer}")
        assert not pool.state_dict()
        results.append((repr(pool), pool(filled(t, 1, 2, 6, 7, 5) if "3d" in layer else filled(t, 1, 2, 6, 7))))
    assert results[0][0] == results[1][0]
    assert_same(results[0][1], results[1][1], 1e-6, 1e-6)


X = "torch.arange(98.).reshape(1, 2, 7, 7)"
SAMPLES = "torch.tensor([[[0.25, 0.5], [0.75, 0.125]]])"


@pytest.mark.parametrize(
    "expression",
    [
        f"torch.nn.functional.fractional_max_pool2d({X}, 2)",
        f"torch.nn.functional.fractional_max_pool2d({X}, 2, output_size=7)",
        f"torch.nn.functional.fractional_max_pool2d({X}, (2, 2, 2), output_size=3)",
        f"torch.nn.functional.fractional_max_pool2d({X}[0, 0], 2, output_size=3)",
        f"torch.nn.functional.fractional_max_pool2d({X}, 2, 3, _random_samples={SAMPLES}[:, :1])",
        f"torch.nn.functional.fractional_max_pool2d({X}, 2, 3, _random_samples={SAMPLES}.double())",
        f"torch.nn.functional.fractional_max_pool2d({X}, 2, 3, _random_samples={SAMPLES})",
        f"torch.nn.functional.fractional_max_pool2d_with_indices({X}, 2, 3, _random_samples={SAMPLES})",
        f"torch.nn.functional.fractional_max_pool2d({X}[:, :0], 2, output_size=3)",
        "torch.nn.functional.fractional_max_pool3d(torch.ones(1, 1, 5, 5, 5), 2)",
        "torch.nn.functional.fractional_max_pool3d(torch.ones(1, 1, 5, 5, 5), 2, 5)",
        "torch.nn.FractionalMaxPool2d(3)",
        "torch.nn.FractionalMaxPool3d(3)",
        "torch.nn.FractionalMaxPool2d(3, 2, 0.5)",
        "torch.nn.FractionalMaxPool2d(3, output_ratio=1.5)",
        "torch.nn.FractionalMaxPool3d(0, output_ratio=0.5)",
        "torch.nn.functional.adaptive_max_pool1d_with_indices(torch.arange(6.).reshape(1, 6), 3)",
        "torch.nn.functional.adaptive_max_pool2d_with_indices(torch.arange(6.).reshape(1, 2, 3), 2)",
        "torch.nn.functional.adaptive_max_pool3d_with_indices(torch.arange(6.).reshape(1, 1, 2, 3), 2)",
    ],
)
def test_values_and_messages_are_pytorchs(expression):
    assert_expression(expression)
