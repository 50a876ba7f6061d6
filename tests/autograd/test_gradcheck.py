"""gradcheck finds wrong derivatives, says which element is wrong, and agrees with PyTorch's gradcheck."""

import numpy as np
import pytest
import torch

import backlight
from backlight.autograd import GradcheckError, gradcheck, gradgradcheck
from backlight.transforms.numerical_jacobians import analytical_jacobians, numerical_jacobians


def doubles(*shape, seed=0):
    values = np.random.default_rng(seed).normal(size=shape)
    return backlight.tensor(values.tolist(), dtype=backlight.float64).reshape(shape).requires_grad_()


def function(torch, factor=1.0, **attributes):
    """Return the square as a Function whose gradient is `factor` times the right one."""

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x * (2 * factor)

    return type("Square", (Square,), {name: staticmethod(one) for name, one in attributes.items()})


modes = pytest.mark.parametrize("fast_mode", [False, True], ids=["full", "fast"])


@modes
def test_right_derivatives_pass(fast_mode):
    a, b = doubles(2, 3), doubles(3, seed=1)
    assert gradcheck(lambda a, b: (a * b, a.exp().sum(), b.tanh()), (a, b), fast_mode=fast_mode)
    assert gradgradcheck(lambda a, b: (a * b, a.exp().sum(), b.tanh()), (a, b), fast_mode=fast_mode)


@modes
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3)])
def test_empty_and_0d_inputs_pass(fast_mode, shape):
    assert gradcheck(lambda a: a.exp() * 2, doubles(*shape), fast_mode=fast_mode)
    assert gradgradcheck(lambda a: a.exp() * 2, doubles(*shape), fast_mode=fast_mode)


@modes
def test_a_wrong_derivative_fails_with_pytorchs_words(fast_mode):
    wrong = function(backlight, factor=1.25)
    with pytest.raises(GradcheckError, match=r"^Jacobian mismatch for output 0 with respect to input 0,\nnumerical:"):
        gradcheck(wrong.apply, doubles(2, 2), fast_mode=fast_mode)
    theirs = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"^Jacobian mismatch for output 0 with respect to input 0,\nnumerical:"):
        torch.autograd.gradcheck(function(torch, factor=1.25).apply, theirs, fast_mode=fast_mode)


@modes
def test_the_error_names_the_output_the_input_and_the_element(fast_mode):
    class Wrong(backlight.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * 2, a + b

        @staticmethod
        def backward(ctx, first, second):
            wrong = second.clone()
            wrong[1] = wrong[1] * 4
            return first * 2 + second, wrong

    with pytest.raises(GradcheckError) as caught:
        gradcheck(Wrong.apply, (doubles(3), doubles(3, seed=1)), fast_mode=fast_mode)
    text = str(caught.value)
    assert text.startswith("Jacobian mismatch for output 1 with respect to input 1,")
    assert (
        "1 of 9 elements are wrong, the worst is ∂output[1]/∂input[1]: finite differences give 1, backward gives 4"
        in (text.replace("0.99999999", "1").replace("1.0000000", "1"))
    )
    assert "input 1 is argument 1, of shape [3]" in text and "made by WrongBackward at" in text and __file__ in text


def test_a_wrong_second_derivative_fails():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.detach() * 2  # right as a value, constant as a function

    wrong = function(backlight, backward=backward)
    assert gradcheck(wrong.apply, doubles(3))
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradgradcheck(wrong.apply, doubles(3))


def test_it_can_return_false_instead():
    assert gradcheck(function(backlight, factor=2.0).apply, doubles(3), raise_exception=False) is False
    assert gradcheck(function(backlight).apply, doubles(3), raise_exception=False) is True


def test_inputs_are_as_they_were():
    a = doubles(3)
    before, version = a.tolist(), a._version
    gradcheck(lambda a: a.exp(), a)
    assert a.tolist() == before and a._version == version and a.grad is None


def test_a_closed_over_input_is_seen_to_move():
    a = doubles(3)
    assert gradcheck(lambda _: a * a, a)


def test_arguments_that_need_no_gradient_are_passed_as_they_are():
    a, constant = doubles(3), backlight.tensor([1.0, 2.0, 3.0])
    assert gradcheck(lambda a, c, n: a * c * n, (a, constant, 3))
    with pytest.raises(GradcheckError, match="with respect to input 0,") as caught:
        gradcheck(lambda n, a: function(backlight, factor=n).apply(a), (2.0, a))
    assert "input 0 is argument 1" in str(caught.value)


def test_an_output_that_needs_no_gradient_is_left_out():
    assert gradcheck(lambda a: (a > 0, a * 2), doubles(3))
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda a: a.detach() * 2, doubles(3))
    assert gradcheck(lambda a: a > 0, doubles(3))


def test_outputs_may_be_views_of_inputs():
    assert gradcheck(lambda a: (a, a.reshape(-1), a[0]), doubles(2, 2))


def test_a_backward_that_draws_numbers_is_not_repeatable():
    rng = np.random.default_rng(0)

    def backward(ctx, grad):
        return grad * (ctx.saved_tensors[0] * 2 + rng.random() * 1e-7)

    noisy = function(backlight, backward=backward)
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(noisy.apply, doubles(3))
    assert gradcheck(noisy.apply, doubles(3), nondet_tol=1e-6)


def test_a_gradient_that_ignores_grad_output_fails():
    def backward(ctx, grad):
        return ctx.saved_tensors[0] * 2

    constant = function(backlight, backward=backward)
    with pytest.raises(GradcheckError, match=r"mismatch|not multiplied"):
        gradcheck(constant.apply, doubles(2))


def test_missing_gradients_of_outputs_count_as_zeros():
    class Double(backlight.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.set_materialize_grads(False)
            return a * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2  # fails on None

    with pytest.raises(GradcheckError, match="Expected backward function to handle undefined output grads"):
        gradcheck(Double.apply, doubles(3))
    assert gradcheck(Double.apply, doubles(3), check_undefined_grad=False)


def test_a_gradient_made_from_nothing_fails():
    class Double(backlight.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.set_materialize_grads(False)
            return a * 2

        @staticmethod
        def backward(ctx, grad):
            return backlight.ones(3, dtype=backlight.float64) if grad is None else grad * 2

    with pytest.raises(GradcheckError, match="Expected all input grads to be undefined or zero"):
        gradcheck(Double.apply, doubles(3))


def test_float32_inputs_are_warned_of():
    a = backlight.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        gradcheck(lambda a: a * 2, a, eps=1e-2, atol=1e-2)


def test_inputs_without_gradient_and_expanded_inputs_are_refused():
    with pytest.raises(ValueError, match="gradcheck expects at least one input tensor to require gradient"):
        gradcheck(lambda a: a * 2, backlight.ones(2))
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(lambda a: a * 2, backlight.ones(1, dtype=backlight.float64).expand(3).requires_grad_())
    with pytest.raises(ValueError, match="Expected at least one of check_forward_ad or check_backward_ad to be True"):
        gradcheck(lambda a: a * 2, doubles(2), check_backward_ad=False)
    with pytest.raises(ValueError, match="check_batched_forward_grad=True requires check_forward_ad to be True"):
        gradcheck(lambda a: a * 2, doubles(2), check_batched_forward_grad=True)


def smooth(a, b):
    return (a * b).sin(), a.exp().cumsum(0) @ b


@pytest.mark.parametrize("fast", [True, False])
def test_forward_mode_is_checked(fast):
    inputs = (doubles(3), doubles(3))
    assert gradcheck(smooth, inputs, check_forward_ad=True, check_batched_forward_grad=True, fast_mode=fast)
    assert gradcheck(smooth, inputs, check_forward_ad=True, check_backward_ad=False, fast_mode=fast)
    assert gradgradcheck(smooth, inputs, check_fwd_over_rev=True, fast_mode=fast)
    assert gradgradcheck(smooth, inputs, check_fwd_over_rev=True, check_rev_over_rev=False, fast_mode=fast)


class WrongTangent(backlight.autograd.Function):
    """A square whose backward is right and whose jvp is not."""

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * a

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, tangent):
        return 3 * tangent


@pytest.mark.parametrize("fast", [True, False])
def test_a_wrong_tangent_is_found(fast):
    assert gradcheck(WrongTangent.apply, doubles(3), fast_mode=fast)
    with pytest.raises(RuntimeError, match="Jacobian computed with forward mode mismatch for output 0 with respect to"):
        gradcheck(WrongTangent.apply, doubles(3), check_forward_ad=True, fast_mode=fast)


class WithoutZeros(backlight.autograd.Function):
    """A sum whose jvp goes wrong where one input has no tangent."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.set_materialize_grads(False)
        return a + b

    @staticmethod
    def backward(ctx, grad):
        return grad, grad

    @staticmethod
    def jvp(ctx, first, second):
        return 2 * first if second is None else 2 * second if first is None else first + second


def test_a_missing_tangent_that_is_not_zeros_is_found():
    with pytest.raises(RuntimeError, match="Mismatch in tangent values for output with index: 0 when input: "):
        gradcheck(WithoutZeros.apply, (doubles(3), doubles(3)), check_forward_ad=True)
    assert gradcheck(WithoutZeros.apply, (doubles(3), doubles(3)), check_forward_ad=True, check_undefined_grad=False)


def test_the_dtype_of_gradients_can_be_checked():
    assert gradcheck(lambda a: a.float().double() * 2, doubles(2), eps=1e-2, check_grad_dtypes=True)


def test_batched_gradients_are_checked_on_request():
    assert gradcheck(lambda a: a.exp(), doubles(2, 2), check_batched_grad=True)


def test_gradgradcheck_takes_grad_outputs_of_ones_own():
    a = doubles(3)
    assert gradgradcheck(lambda a: a * a, a, doubles(3, seed=4))
    assert gradgradcheck(lambda a: a * a, (a,), (doubles(3, seed=4),), gen_non_contig_grad_outputs=True)
    assert gradgradcheck(lambda a: a * a, a, gen_non_contig_grad_outputs=True)


def test_jacobians_are_those_of_the_formula():
    a = doubles(3)
    (measured,) = numerical_jacobians(lambda a: a * a, (a,), a, 1e-6)
    (recorded,) = analytical_jacobians(a * a, [a])
    np.testing.assert_allclose(recorded, np.diag(2 * a.detach().numpy()))
    np.testing.assert_allclose(measured, recorded, atol=1e-8)


@pytest.mark.parametrize("strided", [False, True])
def test_gradgradcheck_draws_from_the_global_generator_as_pytorch_does(strided):
    found = []
    for module in (backlight, torch):
        module.manual_seed(0)
        x = module.ones(2, dtype=module.float64, requires_grad=True)
        module.autograd.gradgradcheck(lambda x: x**3, (x,), gen_non_contig_grad_outputs=strided)
        found.append(module.rand(1).item())
    assert found[0] == found[1]
