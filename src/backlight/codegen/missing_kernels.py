"""PyTorch's errors for dtypes with few kernels, by op: uint16, uint32, uint64 and complex32.

It makes, converts and stores them. An op that takes no complex numbers at all refuses complex32 among them
(codegen/complex_refusals.py).
"""

from collections.abc import Sequence

import numpy as np

from backlight import dtypes
from backlight.codegen.complex_refusals import by_op
from backlight.dtypes import complex32, from_numpy_dtype
from backlight.errors import UnsupportedError

HALF = complex32.numpy.num
BAREBONES = frozenset(kind.num for kind in dtypes.BAREBONES)  # NumPy's numbers: the quickest to compare

# op=kernel: "kernel" not implemented for 'UInt16'
UNSIGNED_KERNELS = by_op("""
abs=abs_cpu add=add_stub addbmm=addmm_impl_cpu_ addcmul=addcmul_cpu_out addmm=addmm_impl_cpu_ addmv=addmv_impl_cpu
addr=addr_cpu amax=max_values_cpu amin=min_values_cpu aminmax=aminmax_cpu argmax=argmax_cpu argmin=argmin_cpu
baddbmm=baddbmm bincount=bincount_cpu bitwise_left_shift=lshift_cpu bitwise_not=bitwise_not_cpu
bitwise_right_shift=rshift_cpu bmm=bmm channel_shuffle=channel_shuffle clamp_max_number=clamp_max_scalar_cpu
clamp_max_tensor=minimum_cpu clamp_min_number=clamp_min_scalar_cpu clamp_min_tensor=maximum_cpu
clamp_to_numbers=clamp_scalar_cpu clamp_to_tensors=clamp_cpu count_nonzero=nonzero_count_cpu cummax=cummax_cpu
cummin=cummin_cpu dense_to_sparse=nonzero_count_cpu div_rounded=div_floor_cpu dot=dot flip=flip_cpu
floor_divide=div_floor_cpu fmax=maximum_cpu fmin=minimum_cpu fmod=fmod_cpu fmod_number=fmod_cpu
gather=scatter_gather_tensor_cpu gcd=gcd_cpu ge=ge_cpu gt=gt_cpu hardtanh=clamp_scalar_cpu heaviside=heaviside_cpu
index_add=index_add_ index_copy=index_copy_cpu index_fill=index_fill_cpu index_fill_tensor=index_fill_cpu
index_put=index_put index_select=index_select kthvalue=kthvalue_cpu lcm=lcm_cpu le=le_cpu
linalg_cross=cross logical_and=logical_and_cpu logical_not=logical_not_cpu logical_or=logical_or_cpu
logical_xor=logical_xor_cpu lt=lt_cpu masked_fill=masked_fill masked_fill_tensor=masked_fill
masked_scatter=masked_scatter masked_select=masked_select max_all=max_all max_dim=max_cpu
max_pool2d_with_indices=max_pool2d max_pool3d_with_indices=max_pool3d maximum=maximum_cpu median_all=median_cpu
median_dim=median_out min_all=min_all min_dim=min_cpu minimum=minimum_cpu mm=addmm_impl_cpu_ mode=mode_cpu
mv=addmv_impl_cpu nanmedian_all=median_cpu nanmedian_dim=median_out neg=neg_cpu pixel_shuffle=pixel_shuffle
pixel_unshuffle=pixel_unshuffle pow=pow pow_number=pow reflection_pad1d=reflection_pad1d relu=clamp_min_scalar_cpu
remainder=remainder_cpu remainder_number=remainder_cpu replication_pad1d=replication_pad1d
replication_pad2d=replication_pad2d rsub=add_stub rsub_number=add_stub scatter_add=scatter_gather_tensor_cpu
scatter_number=scatter_gather_scalar_cpu scatter_tensor=scatter_gather_tensor_cpu sgn=sign_cpu sign=sign_cpu
sub=add_stub take=take_cpu threshold=threshold_cpu topk=topk_cpu trace=trace tril=tril triu=triu vdot=dot
vm=addmm_impl_cpu_
""")


# op=kernel: "kernel" not implemented for 'ComplexHalf'
HALF_KERNELS = by_op("""
acos=acos_vml_cpu acosh=acosh_cpu addbmm=addmm_impl_cpu_ addcdiv=addcdiv_cpu_out addmm=addmm_impl_cpu_
addmv=addmv_impl_cpu addr=addr_cpu angle=angle_cpu asin=asin_vml_cpu asinh=asinh_cpu atan=atan_vml_cpu atanh=atanh_cpu
baddbmm=baddbmm bmm=bmm channel_shuffle=channel_shuffle cholesky=cholesky_cpu
cholesky_inverse=cholesky_inverse_out_cpu cholesky_solve=cholesky_solve_cpu col2im=col2im_out_cpu cos=cos_vml_cpu
cosh=cosh_cpu cumprod=cumprod_out_cpu cumsum=cumsum_out_cpu dot=dot einsum=bmm exp=exp_vml_cpu exp2=exp2
expm1=expm1_vml_cpu gather=scatter_gather_tensor_cpu im2col=im2col_out_cpu ldexp=pow lerp=lerp_kernel_tensor
lerp_number=lerp_kernel_scalar linalg_cholesky_ex=cholesky_cpu linalg_cross=cross linalg_det=lu_cpu
linalg_eig=linalg_eig_out_cpu linalg_eigh=linalg_eigh_cpu linalg_lu=lu_cpu linalg_lu_factor_ex=lu_cpu
linalg_lu_solve=linalg.lu_solve_cpu linalg_matrix_exp=bmm linalg_qr=geqrf_cpu linalg_solve_ex=lu_cpu
linalg_solve_triangular=triangular_solve_cpu linalg_svd=linalg_svd_cpu linear_with_bias=addmm_impl_cpu_
linear_without_bias=addmm_impl_cpu_ log=log_vml_cpu log10=log10_vml_cpu log1p=log1p_vml_cpu log2=log2_vml_cpu
logaddexp=logaddexp_cpu logical_and=logical_and_cpu logical_not=logical_not_cpu logical_or=logical_or_cpu
logical_xor=logical_xor_cpu logsumexp=exp_vml_cpu lu_unpack=scatter_gather_scalar_cpu masked_scatter=masked_scatter
mean=sum_cpu mean_all=sum_cpu mm=addmm_impl_cpu_ mv=addmv_impl_cpu nan_to_num=nan_to_num pixel_shuffle=pixel_shuffle
pixel_unshuffle=pixel_unshuffle pow=pow pow_number=pow pow_of_number=pow prod=prod_out_cpu prod_all=prod_out_cpu
put=take_put_cpu reciprocal=reciprocal_cpu reflection_pad1d=reflection_pad1d reflection_pad2d=reflection_pad2d
reflection_pad3d=reflection_pad3d replication_pad1d=replication_pad1d replication_pad2d=replication_pad2d
replication_pad3d=replication_pad3d rot90=flip_cpu rsqrt=rsqrt_cpu scatter_add=scatter_gather_tensor_cpu
scatter_number=scatter_gather_scalar_cpu scatter_reduce=scatter_gather_tensor_cpu
scatter_tensor=scatter_gather_tensor_cpu sigmoid=sigmoid_cpu sin=sin_vml_cpu sinc=sinc_cpu sinh=sinh_cpu
sqrt=sqrt_vml_cpu sum=sum_cpu sum_all=sum_cpu take=take_cpu tan=tan_vml_cpu tanh=tanh_vml_cpu trace=trace
triangular_solve=triangular_solve_cpu true_divide=div_cpu vdot=vdot vm=addmm_impl_cpu_
""")
REFUSING = UNSIGNED_KERNELS.keys() | HALF_KERNELS.keys()


def refuse_barebones(name: str, arrays: Sequence[np.ndarray]) -> None:
    """Raise PyTorch's error of an op that has no kernel for one of the arrays: uint16, uint32, uint64, complex32."""
    kind = next(array.dtype for array in arrays if array.dtype.num in BAREBONES)
    kernels = HALF_KERNELS if kind.num == HALF else UNSIGNED_KERNELS
    if name in kernels:
        raise missing_kernel(kernels[name], kind)


def missing_kernel(kernel: str, kind: np.dtype) -> UnsupportedError:
    """Return PyTorch's error of a kernel that does not take uint16, uint32, uint64 or complex32."""
    remedy = ".cfloat()" if kind.num == HALF else ".long()"
    name = from_numpy_dtype(kind).old_name
    return UnsupportedError(f"\"{kernel}\" not implemented for '{name}'; convert it with {remedy} first")
