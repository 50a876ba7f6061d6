"""PyTorch's errors for complex tensors, by op."""

from collections.abc import Sequence

from backlight.dtypes import from_numpy_dtype
from backlight.errors import ShapeError, UnsupportedError


def by_op(text: str) -> dict[str, str]:
    """Return `op=kernel` pairs, divided by spaces, as a dict."""
    return dict(pair.split("=") for pair in text.split())


# op=kernel: "kernel" not implemented for 'ComplexFloat'
KERNELS = by_op("""
cummax=cummax_cpu cummin=cummin_cpu
_safe_softmax=softmax_kernel_impl _softmax_backward_data=softmax_backward_lastdim_kernel_impl
_upsample_nearest_exact1d=compute_indices_weights_nearest adaptive_avg_pool2d=adaptive_avg_pool2d
adaptive_avg_pool3d=adaptive_avg_pool3d_cpu adaptive_max_pool2d=adaptive_max_pool2d
adaptive_max_pool3d=adaptive_max_pool3d_cpu amax=max_values_cpu amin=min_values_cpu aminmax=aminmax_cpu
atan2=atan2_cpu avg_pool2d=avg_pool2d avg_pool3d=avg_pool3d_out_frame binary_cross_entropy=binary_cross_entropy
bincount=bincount_cpu bitwise_and=bitwise_and_cpu bitwise_left_shift=lshift_cpu bitwise_not=bitwise_not_cpu
bitwise_or=bitwise_or_cpu bitwise_right_shift=rshift_cpu bitwise_xor=bitwise_xor_cpu celu=elu_cpu
clamp_max_tensor=minimum_cpu clamp_min_tensor=maximum_cpu copysign=copysign_cpu copysign_number=copysign_cpu
cross_entropy_2d=log_softmax_kernel_impl digamma=digamma div_rounded=div_floor_cpu elu=elu_cpu erf=erf_vml_cpu
erfc=erfc_vml_cpu erfinv=erfinv_vml_cpu floor_divide=div_floor_cpu fmod=fmod_cpu fmod_number=fmod_cpu frac=frac_cpu
fractional_max_pool2d=fractional_max_pool2d_out_frame fractional_max_pool3d=fractional_max_pool3d_out_frame
gcd=gcd_cpu ge=ge_cpu gelu=GeluKernelImpl glu=glu_cpu grid_sampler_2d=grid_sampler_2d_cpu_kernel_impl
grid_sampler_3d=grid_sampler3d_cpu group_norm=GroupNormKernelImpl gt=gt_cpu hardshrink=hardshrink_cpu
hardsigmoid=hardsigmoid_cpu hardswish=hardswish_cpu histc=histogram_cpu huber_loss=huber_cpu hypot=hypot_cpu
i0=i0_vml_cpu igamma=igamma_cpu igammac=igammac_cpu kthvalue=kthvalue_cpu layer_norm=LayerNormKernelImpl lcm=lcm_cpu
le=le_cpu leaky_relu=leaky_relu_cpu lgamma=lgamma_vml_cpu log_softmax=log_softmax_lastdim_kernel_impl
logaddexp2=logaddexp2_cpu logit=logit_cpu logsigmoid=log_sigmoid_cpu lt=lt_cpu max_all=max_all
max_pool2d_with_indices=max_pool2d max_pool3d_with_indices=max_pool3d max_unpool2d=max_unpool2d
max_unpool3d=max_unpool3d median_all=median_cpu median_dim=median_out
nanmedian_all=median_cpu min_all=min_all mish=mish_cpu mode=mode_cpu mse_loss=mse_cpu
mvlgamma=arange_cpu nanmedian_dim=median_out native_batch_norm=batch_norm nextafter=nextafter_cpu
nll_loss=nll_loss_out_frame polygamma=polygamma prelu=prelu_cpu remainder=remainder_cpu
remainder_number=remainder_cpu round=round_vml_cpu round_decimals=round_cpu searchsorted=searchsorted_out_cpu
smooth_l1_loss=smooth_l1_cpu softmax=softmax_lastdim_kernel_impl softplus=softplus_cpu softshrink=softshrink_check
special_airy_ai=airy_ai_cpu special_bessel_j0=bessel_j0_cpu special_bessel_j1=bessel_j1_cpu
special_bessel_y0=bessel_y0_cpu special_bessel_y1=bessel_y1_cpu
special_chebyshev_polynomial_t=chebyshev_polynomial_t_cpu special_chebyshev_polynomial_u=chebyshev_polynomial_u_cpu
special_chebyshev_polynomial_v=chebyshev_polynomial_v_cpu special_chebyshev_polynomial_w=chebyshev_polynomial_w_cpu
special_entr=entr_cpu special_erfcx=erfcx_cpu special_hermite_polynomial_h=hermite_polynomial_h_cpu
special_hermite_polynomial_he=hermite_polynomial_he_cpu special_i0e=i0e_cpu special_i1=i1_cpu special_i1e=i1e_cpu
special_laguerre_polynomial_l=laguerre_polynomial_l_cpu special_legendre_polynomial_p=legendre_polynomial_p_cpu
special_log_ndtr=log_ndtr_cpu special_modified_bessel_k0=modified_bessel_k0_cpu
special_modified_bessel_i0=modified_bessel_i0_cpu special_modified_bessel_i1=modified_bessel_i1_cpu
special_modified_bessel_k1=modified_bessel_k1_cpu special_ndtr=erf_vml_cpu special_ndtri=ndtri_cpu
special_scaled_modified_bessel_k0=scaled_modified_bessel_k0_cpu
special_scaled_modified_bessel_k1=scaled_modified_bessel_k1_cpu
special_shifted_chebyshev_polynomial_t=shifted_chebyshev_polynomial_t_cpu
special_shifted_chebyshev_polynomial_u=shifted_chebyshev_polynomial_u_cpu
special_shifted_chebyshev_polynomial_v=shifted_chebyshev_polynomial_v_cpu
special_shifted_chebyshev_polynomial_w=shifted_chebyshev_polynomial_w_cpu
special_spherical_bessel_j0=spherical_bessel_j0_cpu special_xlog1py=xlog1py_cpu special_zeta=zeta_cpu
threshold=threshold_cpu unique=unique unique_consecutive=unique upsample_bicubic2d=compute_indices_weights_cubic
upsample_bilinear2d=upsample_bilinear2d_channels_last upsample_linear1d=compute_indices_weights_linear
upsample_nearest1d=compute_indices_weights_nearest upsample_trilinear3d=compute_indices_weights_linear
xlogy=xlogy_cpu
""")
MESSAGES = {
    "argmax": "argmax(): does not support complex input",
    "argmin": "argmin(): does not support complex input",
    "ceil": "ceil is not supported for complex inputs",
    "clamp_max_number": "clamp is not supported for complex types",
    "clamp_min_number": "clamp is not supported for complex types",
    "clamp_to_numbers": "clamp is not supported for complex types",
    "clamp_to_tensors": "clamp is not supported for complex types",
    "deg2rad": "deg2rad is not supported for complex tensors.",
    "drawn_normal": "normal expects standard deviation to be non-complex",
    "floor": "floor is not supported for complex inputs",
    "fmax": "fmax not implemented for complex tensors.",
    "fmin": "fmin not implemented for complex tensors.",
    "frexp": "torch.frexp() only supports floating-point dtypes",
    "hardtanh": "clamp is not supported for complex types",
    "heaviside": "heaviside is not yet implemented for complex tensors.",
    "isin": "Unsupported input type encountered for isin(): {}",
    "isneginf": "isneginf does not support complex inputs.",
    "isposinf": "isposinf does not support complex inputs.",
    "max_dim": "max(): does not support complex input",
    "maximum": "maximum not implemented for complex tensors.",
    "min_dim": "min(): does not support complex input",
    "minimum": "minimum not implemented for complex tensors.",
    "nansum": "nansum on CPU does not support complex inputs",
    "rad2deg": "rad2deg is not supported for complex tensors.",
    "relu": "clamp is not supported for complex types",
    "sign": "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
    "signbit": "signbit is not implemented for complex tensors.",
    "sort": " Sort does not support complex dtypes on CPU",
    "topk": " topk does not support complex dtypes on CPU",
    "trunc": "trunc is not supported for complex inputs",
}

ENDINGS = ("for complex types", "for complex inputs")
NOT_IMPLEMENTED = ("sign", "signbit")  # NotImplementedError, whatever the words


def refusal(name: str, values: Sequence):
    """Return the error of an op that takes no complex arrays: PyTorch's, if it has one.

    Args:
        values: the arrays, or lists of arrays, of the call.
    """
    arrays = [one for value in values for one in (value if isinstance(value, (list, tuple)) else (value,))]
    kinds = [array.dtype for array in arrays if array is not None and array.dtype.kind in "cW"]
    kind = from_numpy_dtype(kinds[0]).old_name if kinds else "ComplexFloat"
    if name in KERNELS:
        return UnsupportedError(f"\"{KERNELS[name]}\" not implemented for '{kind}'")
    if name in MESSAGES:
        message = MESSAGES[name].format(kind)
        error = UnsupportedError if name in NOT_IMPLEMENTED or message.endswith(ENDINGS) else ShapeError
        return error(message)
    return UnsupportedError(f"{name} does not take complex tensors in backlight: pass real and imaginary parts")
