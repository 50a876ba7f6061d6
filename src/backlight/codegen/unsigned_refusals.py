"""PyTorch's errors for uint16, uint32 and uint64, by op: it makes, converts and stores them, and has few kernels."""

from collections.abc import Sequence

import numpy as np

from backlight.codegen.complex_refusals import by_op
from backlight.dtypes import BAREBONES_UNSIGNED, from_numpy_dtype
from backlight.errors import UnsupportedError

UNSIGNED = frozenset(kind.num for kind in BAREBONES_UNSIGNED)  # NumPy's numbers: the quickest to compare

# op=kernel: "kernel" not implemented for 'UInt16'
KERNELS = by_op("""
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


def refuse_unsigned(name: str, arrays: Sequence[np.ndarray]) -> None:
    """Raise PyTorch's error of an op for arrays of uint16, uint32 or uint64."""
    kind = next(array.dtype for array in arrays if array.dtype.num in UNSIGNED)
    raise unsigned_refusal(KERNELS[name], kind)


def unsigned_refusal(kernel: str, kind: np.dtype) -> UnsupportedError:
    """Return PyTorch's error of a kernel that does not take uint16, uint32 or uint64."""
    name = from_numpy_dtype(kind).old_name
    return UnsupportedError(f"\"{kernel}\" not implemented for '{name}'; convert it with .long() first")
