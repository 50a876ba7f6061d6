"""The CUDA kernels, run by g++ on the processor, give what PyTorch and the kernels on the processor give.

NVRTC compiles the same file for two GPUs, where its package is installed. None of this has run on a GPU.
"""

import ctypes
import importlib.util
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch
from cuda_on_host import COMPILER, host, host_device

from backlight.kernels.cuda.device import ACTIVATIONS, ROWS, SOURCE, attention_blocks
from backlight.kernels.nn.varlen_attention import ragged_attention, ragged_attention_gradient

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no g++ is there")
KERNELS = re.findall(r"^KERNEL (\w+)", SOURCE.read_text(), re.MULTILINE)
ROWS_OF_NORMS, WIDTH = 5, 200  # more numbers than a block has threads
LENGTHS = (1, 7, ROWS, 0, ROWS + 6, 33, 130)


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return host(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def empty(*shape: int) -> np.ndarray:
    return host(np.full(shape, np.nan, np.float32))


def launch(name: str, grid: tuple[int, int], *arguments, dim: int = 8) -> None:
    host_device().compiled(dim)(name, grid, *arguments)


def graded(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(array)).requires_grad_()


@needs_compiler
@pytest.mark.parametrize("dim", [8, 32, 64])
def test_attention_and_its_gradient_are_those_of_the_processor(dim):
    tokens, heads, scale = sum(LENGTHS), 2, dim**-0.5
    qkv, bias, grad = drawn(tokens, 6 * dim), drawn(6 * dim, seed=1), drawn(tokens, 2 * dim, seed=2)
    blocks = host(attention_blocks(LENGTHS))
    assert len(blocks) == sum(-(-length // ROWS) for length in LENGTHS)
    out, logs, deltas, found = empty(tokens, 2 * dim), empty(tokens, 2), empty(tokens, 2), empty(*qkv.shape)
    grid = (len(blocks), heads)
    launch("attention", grid, qkv, bias, blocks, out, logs, heads, scale, dim=dim)
    whole = np.array(qkv + bias)
    expected, expected_logs = ragged_attention(whole, None, LENGTHS, heads, scale)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(logs, expected_logs, rtol=1e-5, atol=1e-6)
    given = grad, qkv, bias, blocks
    launch("attention_gradient_queries", grid, *given, out, logs, found, deltas, heads, scale, dim=dim)
    launch("attention_gradient_keys", grid, *given, logs, deltas, found, heads, scale, dim=dim)
    slopes, _ = ragged_attention_gradient(np.array(grad), whole, None, expected_logs, LENGTHS, heads, scale)
    np.testing.assert_allclose(found, slopes, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(deltas, (grad * out).reshape(tokens, heads, dim).sum(2), rtol=1e-4, atol=1e-5)


@needs_compiler
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("summed", [True, False])
def test_layer_norm_adds_bias_and_residual(biased, summed):
    x, weight, shift = drawn(ROWS_OF_NORMS, WIDTH), drawn(WIDTH, seed=1), drawn(WIDTH, seed=2)
    bias, residual = drawn(WIDTH, seed=3) if biased else None, drawn(*x.shape, seed=4) if summed else None
    grad, out, inverse, slopes = drawn(*x.shape, seed=5), empty(*x.shape), empty(ROWS_OF_NORMS), empty(*x.shape)
    total = graded(sum(one for one in (x, bias, residual) if one is not None))
    expected = torch.nn.functional.layer_norm(total, (WIDTH,), graded(weight), graded(shift), 1e-12)
    launch("add_layer_norm", (ROWS_OF_NORMS, 1), x, bias, residual, weight, shift, out, inverse, WIDTH, 1e-12)
    np.testing.assert_allclose(out, expected.detach(), rtol=1e-5, atol=1e-5)
    launch("layer_norm_gradient", (ROWS_OF_NORMS, 1), grad, x, weight, inverse, slopes, WIDTH)
    (theirs,) = torch.autograd.grad(expected, [total], torch.from_numpy(np.array(grad)))
    np.testing.assert_allclose(slopes, theirs, rtol=1e-4, atol=1e-5)


@needs_compiler
@pytest.mark.parametrize("name", ["gelu", "gelu_new", "relu"])
def test_activations_and_their_gradients_are_pytorchs(name):
    functional = torch.nn.functional
    theirs = {"gelu": functional.gelu, "gelu_new": lambda x: functional.gelu(x, approximate="tanh")}
    x, bias, grad, out = 3 * drawn(4, WIDTH), drawn(WIDTH, seed=1), drawn(4, WIDTH, seed=2), empty(4, WIDTH)
    total = graded(x + bias)
    expected = theirs.get(name, functional.relu)(total)
    (slopes,) = torch.autograd.grad(expected, [total], torch.from_numpy(np.array(grad)))
    launch("add_activation", (4, 1), x, bias, out, WIDTH, ACTIVATIONS[name])
    np.testing.assert_allclose(out, expected.detach(), rtol=1e-5, atol=1e-5)
    launch("activation_gradient", (4, 1), grad, x, WIDTH, ACTIVATIONS[name])
    np.testing.assert_allclose(grad, slopes, rtol=1e-4, atol=1e-5)


@needs_compiler
@pytest.mark.parametrize("given", [True, False])
def test_embeddings_are_looked_up_or_given_and_added(given):
    words, places, kinds, out = drawn(9, WIDTH), drawn(6, WIDTH, seed=1), drawn(2, WIDTH, seed=2), empty(4, WIDTH)
    ids, positions, types = (host(np.array(one, np.int32)) for one in ([8, 0, 8, 3], [0, 1, 2, 5], [0, 0, 1, 1]))
    own = drawn(4, WIDTH, seed=3) if given else words
    launch("embed", (4, 1), own, None if given else ids, places, positions, kinds, types, out, WIDTH)
    expected = (own if given else words[ids]) + kinds[types] + places[positions]
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    launch("embed", (4, 1), own, None if given else ids, places, positions, None, types, out, WIDTH)
    np.testing.assert_allclose(out, expected - kinds[types], rtol=1e-4, atol=1e-6)


@needs_compiler
def test_pooling_is_a_weighted_sum_a_text_and_its_gradient_the_weights():
    lengths = (3, 1, 5)
    states, weights, grad = drawn(9, WIDTH), drawn(9, seed=1), drawn(3, WIDTH, seed=2)
    starts, out, slopes = host(np.cumsum([0, *lengths]).astype(np.int32)), empty(3, WIDTH), empty(9, WIDTH)
    launch("pool", (3, 1), states, starts, weights, out, WIDTH)
    np.testing.assert_allclose(out, np.add.reduceat(states * weights[:, None], starts[:-1]), rtol=1e-4, atol=1e-5)
    launch("pool_gradient", (3, 1), grad, starts, weights, slopes, WIDTH)
    np.testing.assert_allclose(slopes, weights[:, None] * np.repeat(grad, lengths, 0), rtol=1e-6)


@needs_compiler
def test_bfloat16_is_rounded_to_the_nearest_ties_to_even():
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 3.4e38, 1e-45]
    numbers = np.concatenate([np.array(ends, np.float32), np.random.default_rng(0).normal(size=190).astype(np.float32)])
    out = host(np.zeros((2, 100), np.uint16))
    launch("round_to_bfloat16", (2, 1), host(numbers.reshape(2, 100)), out, 100)
    np.testing.assert_array_equal(out.ravel(), numbers.astype(ml_dtypes.bfloat16).view(np.uint16))


def nvrtc() -> Path | None:
    """Return NVRTC's library, which compiles without a GPU, where its package is installed."""
    found = importlib.util.find_spec("nvidia")
    folders = [Path(place) for place in found.submodule_search_locations] if found else []
    return next((file for folder in folders for file in sorted(folder.glob("cuda_nvrtc/lib/libnvrtc.so*"))), None)


@pytest.mark.skipif(nvrtc() is None, reason="nvidia-cuda-nvrtc-cu12 is not installed")
@pytest.mark.parametrize("gpu", ["80", "90"])
@pytest.mark.parametrize("dim", [8, 32, 64, 128])
def test_nvrtc_compiles_every_kernel(gpu, dim):
    library, program, size = ctypes.CDLL(str(nvrtc())), ctypes.c_void_p(), ctypes.c_size_t()
    assert library.nvrtcCreateProgram(ctypes.byref(program), SOURCE.read_bytes(), b"encoder.cu", 0, None, None) == 0
    for kind, read in (("compute", "PTX"), ("sm", "CUBIN")):  # PTX, and what ptxas makes of it
        options = [f"--gpu-architecture={kind}_{gpu}".encode(), f"-DDIM={dim}".encode()]
        result = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        assert (result, log.value.strip()) == (0, b"")
        assert getattr(library, f"nvrtcGet{read}Size")(program, ctypes.byref(size)) == 0
        code = ctypes.create_string_buffer(size.value)
        assert getattr(library, f"nvrtcGet{read}")(program, code) == 0
        assert len(KERNELS) == 11
        assert all(name.encode() in code.raw for name in KERNELS)
