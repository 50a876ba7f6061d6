"""Names that few scripts use, and those that do cannot do without: each gives what PyTorch gives."""

import copy
import itertools
import warnings

import numpy as np
import pytest
import torch

import backlight

RNG = np.random.default_rng(0)


def both(program):
    """Return what a program of one module gives on PyTorch and on backlight."""
    return [program(module) for module in (torch, backlight)]


def plain(value):
    """Return a result with arrays in the place of tensors."""
    if isinstance(value, (torch.Tensor, backlight.Tensor)):
        return value.detach().numpy(force=True) if isinstance(value, torch.Tensor) else value.detach().numpy()
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    return value


def same(program, rtol=1e-7, atol=1e-9):
    """Assert that a program gives the same tensors on both, in value, dtype and structure."""
    theirs, ours = (plain(one) for one in both(program))
    assert_same(ours, theirs, rtol, atol)


def assert_same(ours, theirs, rtol, atol):
    assert isinstance(ours, list) == isinstance(theirs, list)
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            assert_same(one, other, rtol, atol)
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol, atol)
    else:
        assert ours == theirs


def message_of(program, module) -> tuple[str, str]:
    with pytest.raises((RuntimeError, ValueError, TypeError, AssertionError)) as problem:
        program(module)
    return next(one.__name__ for one in problem.type.__mro__ if one.__module__ == "builtins"), str(problem.value)


def same_error(program):
    """Assert that both raise the same kind of error, ours with a message that begins with PyTorch's."""
    (kind, theirs), (our_kind, ours) = (message_of(program, module) for module in (torch, backlight))
    assert our_kind == kind or kind == "NotImplementedError"
    assert ours.startswith(theirs)


# --- lists of tensors -------------------------------------------------------------------------------------------------

A, B = [np.array([[1.5, 2.0], [0.5, 0.25]]), np.array([0.5, 0.75])], [np.full((2, 2), 3.0), np.array([0.5, 4.0])]
SCALARS = [2.0, 3.0]


def foreach_calls(name):
    """Return the arguments beside the list itself that a function is called with."""
    lists = lambda m: [m.from_numpy(one.copy()) for one in B]  # noqa: E731
    op = name.removeprefix("_foreach_").removesuffix("_")
    if op in ("addcmul", "addcdiv"):
        return [
            lambda m: (lists(m), lists(m)),
            lambda m: (lists(m), lists(m), SCALARS),
            lambda m: (lists(m), lists(m), 0.5),
        ]
    if op == "lerp":
        return [lambda m: (lists(m), 0.25), lambda m: (lists(m), lists(m)), lambda m: (lists(m), SCALARS)]
    if op in ("norm", "powsum"):
        return [lambda m: (2,), lambda m: (1,)]
    if op == "copy":
        return [lambda m: (lists(m),)]
    if op in ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_min", "clamp_max"):
        return [lambda m: (2.0,), lambda m: (lists(m),), lambda m: (SCALARS,)]
    return [lambda m: ()]


NAMES = [name for name in dir(torch) if name.startswith("_foreach_") and name != "_foreach_mm"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_an_op_runs_on_each_tensor_of_a_list(name):
    for arguments in foreach_calls(name):

        def program(m, arguments=arguments):
            tensors = [m.from_numpy(one.copy()) / 4 for one in A]
            found = getattr(m, name)(tensors, *arguments(m))
            return [found is None or isinstance(found, tuple), *tensors, *([] if name.endswith("_") else found)]

        same(program)


def test_lists_of_tensors_have_gradients_and_one_length():
    def program(m):
        leaves = [m.from_numpy(one.copy()).requires_grad_() for one in A]
        total = sum(one.sum() for one in m._foreach_mul(leaves, m._foreach_sqrt(leaves)))
        return list(m.autograd.grad(total, leaves))

    same(program)
    same(lambda m: m._foreach_pow(2.0, [m.tensor([1.0, 3.0])]))
    same(lambda m: m._foreach_mm([m.ones(2, 3)], [m.ones(3, 2)]))
    same_error(lambda m: m._foreach_add([m.ones(2)], [m.ones(2), m.ones(2)]))
    same_error(lambda m: m._foreach_add([m.ones(2)], [1.0, 2.0]))
    same_error(lambda m: m._foreach_sqrt([]))
    with pytest.raises(AttributeError):
        backlight._foreach_nothing  # noqa: B018 - asked for


# --- windows and polynomials ------------------------------------------------------------------------------------------

WINDOWS = {
    "exponential": {"tau": 2.0},
    "gaussian": {"std": 1.5},
    "kaiser": {"beta": 5.0},
    "general_cosine": {"a": [0.4, 0.5]},
}


@pytest.mark.parametrize("name", torch.signal.windows.__all__)
@pytest.mark.parametrize("sym", [True, False])
def test_windows_are_pytorch_s(name, sym):
    options = WINDOWS.get(name, {})
    same(
        lambda m: [
            getattr(m.signal.windows, name)(length, sym=sym, dtype=m.float64, **options) for length in (0, 1, 2, 7)
        ],
        atol=1e-12,
    )
    same(lambda m: getattr(m.signal.windows, name)(6, sym=sym, **options), 1e-6, 1e-6)


def test_windows_refuse_what_pytorch_refuses():
    windows = lambda m: m.signal.windows  # noqa: E731
    same_error(lambda m: windows(m).gaussian(3, std=0.0))
    same_error(lambda m: windows(m).exponential(3, tau=-1.0))
    same_error(lambda m: windows(m).kaiser(3, beta=-1.0))
    same_error(lambda m: windows(m).hann(-1))
    same_error(lambda m: windows(m).general_cosine(3, a=[]))
    assert backlight.signal.windows.hann(3, requires_grad=True).requires_grad


@pytest.mark.parametrize("name", [name for name in dir(torch.special) if "_polynomial_" in name])
def test_orthogonal_polynomials_are_pytorch_s(name):
    points = np.concatenate([np.linspace(-2.5, 2.5, 21), [1.0, -1.0, 0.0, 0.5]])
    degrees = (-1, 0, 1, 2, 5, 9)
    same(lambda m: [getattr(m.special, name)(m.from_numpy(points), degree) for degree in degrees], 1e-8, 1e-8)
    same(lambda m: getattr(m.special, name)(0.3, m.tensor([0.0, 2.0, 3.0])), 1e-6, 1e-6)
    same(lambda m: getattr(m.special, name)(m.tensor([1, 2]), m.tensor([[3], [4]])), 1e-6)
    assert not getattr(backlight.special, name)(backlight.ones(2, requires_grad=True), 2).requires_grad
    same_error(lambda m: getattr(m.special, name)(m.ones(2, dtype=m.bfloat16), 2))


# --- counting ---------------------------------------------------------------------------------------------------------

POINTS = RNG.normal(size=(40, 2))


@pytest.mark.parametrize(
    "program",
    [
        lambda m, x: m.histogram(x, 5),
        lambda m, x: m.histogram(x, 3, range=(-1.0, 1.0), weight=x * 2, density=True),
        lambda m, x: x.histogram(m.tensor([-1.0, 0.0, 0.25, 2.0], dtype=m.float64)),
        lambda m, x: m.histogram(m.ones(4), 2),
        lambda m, x: m.histogramdd(x, [2, 3]),
        lambda m, x: m.histogramdd(x, 3, range=[-1.0, 1.0, -2.0, 2.0], weight=x[:, 0], density=True),
        lambda m, x: m.histogramdd(x, [m.tensor([-1.0, 0.0, 1.0]).double(), m.tensor([-1.0, 0.5]).double()]),
    ],
)
def test_histograms_are_pytorch_s(program):
    same(lambda m: list(program(m, m.from_numpy(POINTS))), 1e-12)


def test_histograms_refuse_what_pytorch_refuses():
    same_error(lambda m: m.histogram(m.ones(3), 0))
    same_error(lambda m: m.histogram(m.ones(3), 3, range=(2.0, 1.0)))
    same_error(lambda m: m.histogram(m.tensor([1, 2]), 3))
    same_error(lambda m: m.histogramdd(m.ones(3, 2), 3, weight=m.ones(2)))


def test_nonzero_static_fills_up():
    same(lambda m: m.nonzero_static(m.tensor([[1, 0], [2, 3]]), size=5))
    same(lambda m: m.tensor([1, 0, 2]).nonzero_static(size=1, fill_value=7))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_binomial_numbers_are_pytorch_s_bit_for_bit(dtype):
    counts, shares = np.array([0, 1, 5, 30, 200, 1000] * 6), np.linspace(0, 1, 36)

    def program(m):
        m.manual_seed(3)
        kind = getattr(m, dtype)
        drawn = m.binomial(m.from_numpy(counts).to(kind), m.from_numpy(shares).to(kind))
        own = m.Generator().manual_seed(1)
        return [drawn.float(), m.binomial(m.full((4,), 50.0), m.full((4,), 0.3), generator=own), m.rand(3)]

    same(program, 0, 0)
    same_error(lambda m: m.binomial(m.tensor([1]), m.tensor([0.5])))


def test_a_python_function_of_each_element():
    same(lambda m: m.tensor([[1.0, 2.0], [3.0, 4.0]]).t().apply_(lambda x: x * x + 1))
    same(lambda m: m.tensor([1, 2]).map_(m.tensor([5]), lambda x, y: x + y))
    same(lambda m: m.ones(2).map2_(m.tensor([1.0, 2.0]), m.tensor([3.0]), lambda x, y, z: x + y * z))
    for program in (
        lambda m: m.ones(2, requires_grad=True).apply_(abs),
        lambda m: m.ones(2, requires_grad=True).map_(m.ones(2), max),
        lambda m: m.ones(2, requires_grad=True).map2_(m.ones(2), m.ones(2), max),
        lambda m: m.ones(2).map_(m.ones(3), max),
    ):
        same_error(program)


def test_lobpcg_finds_the_outermost_eigenvalues():
    half = RNG.normal(size=(12, 12))
    matrix, other = half @ half.T + np.eye(12), np.diag(np.linspace(1, 2, 12))
    for largest, b in itertools.product((True, False), (None, other)):

        def program(m, b=b, largest=largest):
            m.manual_seed(0)
            second = None if b is None else m.from_numpy(b)
            values, vectors = m.lobpcg(m.from_numpy(matrix), 3, second, largest=largest, niter=500, tol=1e-12)
            return [values, vectors.abs()]

        same(program, 1e-5, 1e-5)
    same_error(lambda m: m.lobpcg(m.eye(4), 2))


# --- layers, optimizers, data -----------------------------------------------------------------------------------------


def copied(m, layer):
    """Return a layer of a module with the weights of PyTorch's."""
    if m is torch:
        return copy.deepcopy(layer)
    made = getattr(m.nn, type(layer).__name__)(*LAYERS[type(layer).__name__]).double()
    made.load_state_dict({name: m.from_numpy(value.detach().numpy()) for name, value in layer.state_dict().items()})
    return made


LAYERS = {"Linear": (4, 3), "Conv2d": (2, 3, 2), "ConvTranspose2d": (2, 3, 2)}
INPUTS = {name: RNG.normal(size=(2, 4) if name == "Linear" else (2, 2, 4, 4)) for name in LAYERS}


def trained(m, name, normalise, remove):
    """Return what a layer with a normalised weight computes, its state's names and gradients, and what is left."""
    torch.manual_seed(0)
    layer = getattr(torch.nn, name)(*LAYERS[name]).double()
    layer = copied(m, layer)
    m.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        normalise(m, layer)
    out = layer(m.from_numpy(INPUTS[name]))
    (out * out).sum().backward()
    found = [out, sorted(layer.state_dict()), *[one.grad for _, one in sorted(layer.named_parameters())]]
    layer.eval()
    after = layer(m.from_numpy(INPUTS[name]))
    remove(m, layer)
    return [*found, after, layer.weight, sorted(layer.state_dict()), layer(m.from_numpy(INPUTS[name]))]


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("dim", [0, 1, None])
def test_the_old_weight_norm(name, dim):
    same(
        lambda m: trained(
            m,
            name,
            lambda m, layer: m.nn.utils.weight_norm(layer, dim=dim),
            lambda m, layer: m.nn.utils.remove_weight_norm(layer),
        )
    )


@pytest.mark.parametrize("name", LAYERS)
def test_the_old_spectral_norm(name):
    same(
        lambda m: trained(
            m,
            name,
            lambda m, layer: m.nn.utils.spectral_norm(layer, n_power_iterations=2),
            lambda m, layer: m.nn.utils.remove_spectral_norm(layer),
        )
    )


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_old_norms_refuse_what_pytorch_refuses():
    def twice(m, norm):
        layer = m.nn.Linear(2, 2)
        norm(norm(layer))

    same_error(lambda m: twice(m, m.nn.utils.weight_norm))
    same_error(lambda m: twice(m, m.nn.utils.spectral_norm))
    same_error(lambda m: m.nn.utils.remove_weight_norm(m.nn.Linear(2, 2)))
    same_error(lambda m: m.nn.utils.remove_spectral_norm(m.nn.Linear(2, 2)))


def test_weight_norm_warns_that_it_is_old():
    with pytest.warns(FutureWarning, match="is deprecated in favor of"):
        backlight.nn.utils.weight_norm(backlight.nn.Linear(2, 2))


@pytest.mark.parametrize("size", [3, 4, 5])
def test_cross_map_lrn_is_pytorch_s(size):
    def program(m):
        x = m.from_numpy(RNG_IMAGE.copy()).requires_grad_()
        layer = m.nn.CrossMapLRN2d(size, 0.3, 0.6, 1.5)
        out = layer(x)
        (out * out).sum().backward()
        return [out, x.grad, repr(layer)]

    same(program)
    same_error(lambda m: m.nn.CrossMapLRN2d(size)(m.ones(2, 3)))


RNG_IMAGE = RNG.normal(size=(2, 7, 2, 3))


def steps(m, optimizer, shape, count=5):
    weight = m.from_numpy(np.random.default_rng(3).normal(size=shape)).requires_grad_()
    goal = m.from_numpy(np.random.default_rng(4).normal(size=shape))
    made = optimizer(m)([weight])
    for _ in range(count):
        made.zero_grad()
        ((weight - goal) ** 4).sum().backward()
        made.step()
    return [weight, sorted(made.state[weight])]


@pytest.mark.parametrize("shape", [(3, 4), (5, 2)])
@pytest.mark.parametrize("options", [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw", "lr": 0.1}], ids=str)
def test_muon_steps_as_pytorch_s(shape, options):
    same(lambda m: steps(m, lambda m: lambda p: m.optim.Muon(p, **options), shape), 1e-2, 2e-3)  # bfloat16 inside


@pytest.mark.parametrize("shape", [(3, 4), (5,), (2, 3, 2)])
@pytest.mark.parametrize(
    "options", [{}, {"weight_decay": 0.1, "maximize": True, "eps": (1e-6, 1e-2), "d": 2.0}], ids=str
)
def test_adafactor_steps_as_pytorch_s(shape, options):
    same(lambda m: steps(m, lambda m: lambda p: m.optim.Adafactor(p, **options), shape))


def test_optimizers_refuse_what_pytorch_refuses():
    for wrong in ({"lr": -1.0}, {"momentum": -1.0}, {"weight_decay": -1.0}, {"adjust_lr_fn": "x"}):
        same_error(lambda m, wrong=wrong: m.optim.Muon([m.ones(2, 2, requires_grad=True)], **wrong))
    same_error(lambda m: m.optim.Muon([m.ones(2, requires_grad=True)]))
    for wrong in ({"lr": -1.0}, {"beta2_decay": 1.0}, {"eps": (-1.0, 1.0)}, {"d": 0.5}, {"weight_decay": -1.0}):
        same_error(lambda m, wrong=wrong: m.optim.Adafactor([m.ones(2, requires_grad=True)], **wrong))


@pytest.mark.parametrize("transpose", [False, True])
def test_a_batch_norm_is_fused_into_the_layer_before_it(transpose):
    def program(m):
        name = "ConvTranspose2d" if transpose else "Conv2d"
        torch.manual_seed(0)
        layer = copied(m, getattr(torch.nn, name)(*LAYERS[name]).double()).eval()
        norm = m.nn.BatchNorm2d(3).double().eval()
        norm.running_mean.copy_(m.tensor([0.5, -1.0, 2.0]))
        norm.running_var.copy_(m.tensor([0.5, 1.0, 2.0]))
        x = m.from_numpy(INPUTS[name])
        fused = (
            m.nn.utils.fusion.fuse_conv_bn_eval(layer, norm, transpose)
            if m is torch
            else (m.nn.utils.fuse_conv_bn_eval(layer, norm, transpose))
        )
        return [norm(layer(x)), fused(x), fused.weight.requires_grad]

    same(program)


def test_a_batch_norm_is_fused_into_a_linear_layer():
    def program(m):
        torch.manual_seed(0)
        layer, norm = copied(m, torch.nn.Linear(4, 3).double()).eval(), m.nn.BatchNorm1d(3).double().eval()
        norm.running_var.copy_(m.tensor([0.5, 1.0, 2.0]))
        return m.nn.utils.fuse_linear_bn_eval(layer, norm)(m.from_numpy(INPUTS["Linear"]))

    same(program)
    same_error(lambda m: m.nn.utils.fuse_linear_bn_eval(m.nn.Linear(2, 2), m.nn.BatchNorm1d(2)))
    same_error(lambda m: m.nn.utils.skip_init(int))
    assert backlight.nn.utils.skip_init(backlight.nn.Linear, 2, 3).weight.shape == (3, 2)


def test_datasets_side_by_side():
    def program(m):
        data = m.utils.data if m is torch else m.data
        first, second = data.TensorDataset(m.arange(4)), [10, 20, 30, 40]
        pairs, named = data.StackDataset(first, second), data.StackDataset(a=first, b=second)
        batches = list(data.DataLoader(pairs, batch_size=3))
        return [len(pairs), list(pairs[1]), named[2]["b"], [list(map(list, zip(*[batch]))) for batch in batches]]

    same(lambda m: program(m)[:3])
    assert plain(program(backlight)[3]) is not None
    for args, named in (((), {}), (([1],), {"a": [1]}), (([1], [1, 2]), {})):
        same_error(lambda m, a=args, n=named: (m.utils.data if m is torch else m.data).StackDataset(*a, **n))


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", ["uniform", "normal", "xavier_uniform", "kaiming_normal", "orthogonal", "eye"])
def test_old_names_of_initialisers(name):
    def program(m):
        m.manual_seed(0)
        return getattr(m.nn.init, name)(m.empty(3, 4))

    same(program, 1e-6, 1e-6)


def test_a_parametrized_module_remembers_its_class():
    layer = backlight.nn.utils.parametrizations.weight_norm(backlight.nn.Linear(2, 2))
    assert backlight.nn.utils.parametrize.type_before_parametrizations(layer) is backlight.nn.Linear
    assert backlight.nn.utils.parametrize.type_before_parametrizations(backlight.nn.ReLU()) is backlight.nn.ReLU


# --- what a program is tried with -------------------------------------------------------------------------------------

CLOSE = [
    lambda m: (m.tensor([1.0, 2.0, 3.0]), m.tensor([1.0, 2.5, 3.0])),
    lambda m: (m.tensor([[1.0, float("nan")]]), m.tensor([[1.0, 2.0]])),
    lambda m: (m.tensor([1, 2]), m.tensor([1, 3])),
    lambda m: (m.ones(2), m.ones(3)),
    lambda m: (m.ones(2), m.ones(2, dtype=m.float64)),
    lambda m: (m.tensor(1.0), m.tensor(2.0)),
    lambda m: (1.0, 1.5),
    lambda m: (3, 4),
    lambda m: ([m.ones(2), m.zeros(2)], [m.ones(2), m.ones(2)]),
    lambda m: ({"a": m.ones(2)}, {"a": m.zeros(2)}),
    lambda m: ([1.0], [1.0, 2.0]),
    lambda m: (True, False),
    lambda m: (1, 1.5),
    lambda m: (None, 1),
    lambda m: ("a", "b"),
]


@pytest.mark.parametrize("pair", CLOSE)
def test_assert_close_says_what_pytorch_says(pair):
    same_error(lambda m: m.testing.assert_close(*pair(m)))


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("power", range(-9, 0))
def test_assert_close_takes_pytorch_s_tolerances(kind, power):
    def passes(m):
        one = m.tensor([1.0], dtype=m.float64)
        try:
            m.testing.assert_close(one.to(getattr(m, kind)), (one + 10.0**power).to(getattr(m, kind)))
        except AssertionError:
            return False
        return True

    same(passes)


def test_assert_close_takes_options():
    testing = backlight.testing
    testing.assert_close(backlight.tensor([1.0, float("nan")]), backlight.tensor([1.0, float("nan")]), equal_nan=True)
    testing.assert_close(backlight.ones(2), backlight.ones(2).double(), check_dtype=False)
    testing.assert_close({"a": [1.0, None]}, {"a": [1.0, None]})
    same_error(lambda m: m.testing.assert_close(1.0, 1.0, rtol=1.0))
    same_error(lambda m: m.testing.assert_close(m.ones(2), m.zeros(2), rtol=0, atol=0))
    same_error(lambda m: m.testing.assert_close(m.ones(2), m.zeros(2), msg="mine"))
    same_error(lambda m: m.testing.assert_close(m.ones(2), m.zeros(2), msg=lambda said: f"mine: {said}"))
    same_error(lambda m: m.testing.assert_close(m.ones(2, 2).t()[:1], m.ones(1, 2), check_stride=True))


@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16", "int64", "uint8", "bool"])
def test_make_tensor_draws_pytorch_s_numbers(kind):
    def program(m):
        m.manual_seed(0)
        make = lambda *shape, **options: m.testing.make_tensor(*shape, dtype=getattr(m, kind), device="cpu", **options)  # noqa: E731
        found = [make(3, 4), make((2, 3), low=0, high=2, exclude_zero=True), make(4, noncontiguous=True)]
        return [one.double() for one in found] + [found[2].is_contiguous()]

    same(program, 0, 0)
    if kind.startswith(("int", "bool")):
        same_error(lambda m: m.testing.make_tensor(2, dtype=getattr(m, kind), device="cpu", requires_grad=True))
    same_error(lambda m: m.testing.make_tensor(2, dtype=getattr(m, kind), device="cpu", low=3, high=2))


# --- compile and switches ---------------------------------------------------------------------------------------------


def test_compile_returns_what_it_is_given():
    module, function = backlight.nn.Linear(2, 2), lambda x: x * 2
    assert backlight.compile(module) is module and module.compile(mode="default") is None
    assert backlight.compile(function, fullgraph=True, mode="reduce-overhead") is function
    assert backlight.compile(dynamic=True)(function) is function
    with pytest.raises(RuntimeError, match="Either mode or options can be specified"):
        backlight.compile(function, mode="default", options={})
    with pytest.raises(TypeError):
        backlight.compile(3)


def test_set_anomaly_enabled_is_a_switch():
    backlight.set_anomaly_enabled(True, False)
    try:
        assert backlight.is_anomaly_enabled() and not backlight.is_anomaly_check_nan_enabled()
    finally:
        backlight.set_anomaly_enabled(False)
    assert not backlight.is_anomaly_enabled()


def test_calls_with_out_have_a_type_of_their_own_name():
    assert isinstance(backlight.max(backlight.ones(2, 2), 0), backlight.return_types.max_out)
    assert isinstance(backlight.histogram(backlight.ones(2), 2), backlight.return_types.histogram)
