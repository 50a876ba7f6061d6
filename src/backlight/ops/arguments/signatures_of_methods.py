"""PyTorch's signatures of its methods, and of the functions of its namespaces, read from PyTorch 2.13.

`name=kind parameter,…`, several signatures with `|` between.
A parameter ends with `=` where it has a default; after `*` they are given by name.
"""

METHODS = """
.absolute_=Tensor input;.acos=Tensor input;.acosh=Tensor input;.add=Tensor input,Scalar other,Scalar alpha=|Tensor
input,Tensor other,*,Scalar alpha=;.add_=Tensor input,Scalar other,Scalar alpha=|Tensor input,Tensor other,*,Scalar
alpha=;.addbmm_=Tensor input,Tensor batch1,Tensor batch2,*,Scalar beta=,Scalar alpha=;.addcdiv_=Tensor input,Tensor
tensor1,Tensor tensor2,*,Scalar value=;.addcmul_=Tensor input,Tensor tensor1,Tensor tensor2,*,Scalar
value=;.addmm_=Tensor input,Tensor mat1,Tensor mat2,*,Scalar beta=,Scalar alpha=;.addr_=Tensor input,Tensor vec1,Tensor
vec2,*,Scalar beta=,Scalar alpha=;.angle=Tensor input;.arctan2_=Tensor input,Tensor other;.asin=Tensor
input;.asinh=Tensor input;.atan=Tensor input;.atan2=Tensor input,Tensor other;.atan2_=Tensor input,Tensor
other;.atanh=Tensor input;.backward=object input,object gradient=,object retain_graph=,object create_graph=,object
inputs=;.baddbmm_=Tensor input,Tensor batch1,Tensor batch2,*,Scalar beta=,Scalar alpha=;.bernoulli_=Tensor input,Tensor
p,*,Generator? generator=|Tensor input,float p=,*,Generator? generator=;.bitwise_and=Tensor input,Scalar other|Tensor
input,Tensor other;.bitwise_and_=Tensor input,Scalar other|Tensor input,Tensor other;.bitwise_left_shift=Tensor
input,Scalar other|Tensor input,Tensor other;.bitwise_left_shift_=Tensor input,Scalar other|Tensor input,Tensor
other;.bitwise_not_=Tensor input;.bitwise_or=Tensor input,Scalar other|Tensor input,Tensor other;.bitwise_or_=Tensor
input,Scalar other|Tensor input,Tensor other;.bitwise_right_shift=Tensor input,Scalar other|Tensor input,Tensor
other;.bitwise_right_shift_=Tensor input,Scalar other|Tensor input,Tensor other;.bitwise_xor=Tensor input,Scalar
other|Tensor input,Tensor other;.bitwise_xor_=Tensor input,Scalar other|Tensor input,Tensor other;.cauchy_=Tensor
input,float median=,float sigma=,*,Generator? generator=;.ceil=Tensor input;.chalf=Tensor input,*,MemoryFormat?
memory_format=;.contiguous=Tensor input,*,MemoryFormat memory_format=;.copy_=Tensor input,Tensor other|Tensor
input,Tensor src,bool non_blocking=|Tensor input,float other|Tensor input,int other;.copysign=Tensor input,Scalar
other|Tensor input,Tensor other;.copysign_=Tensor input,Scalar other|Tensor input,Tensor other;.cos=Tensor
input;.cosh=Tensor input;.cpu=Tensor input;.cuda=Tensor input;.cumprod_=Tensor input,int dim,*,ScalarType?
dtype=;.cumsum_=Tensor input,int dim,*,ScalarType? dtype=;.digamma_=Tensor input;.dim=Tensor input;.div=Tensor
input,Scalar other|Tensor input,Scalar other,*,str? rounding_mode|Tensor input,Tensor other|Tensor input,Tensor
other,*,str? rounding_mode;.div_=Tensor input,Scalar other|Tensor input,Scalar other,*,str? rounding_mode|Tensor
input,Tensor other|Tensor input,Tensor other,*,str? rounding_mode;.divide_=Tensor input,Scalar other|Tensor input,Scalar
other,*,str? rounding_mode|Tensor input,Tensor other|Tensor input,Tensor other,*,str? rounding_mode;.eig=object
input,object eigenvectors=;.element_size=Tensor input;.eq=Tensor input,Scalar other|Tensor input,Tensor other|Tensor[]
a,Tensor[] b;.eq_=Tensor input,Scalar other|Tensor input,Tensor other;.erf=Tensor input;.erfc=Tensor
input;.erfinv_=Tensor input;.exp=Tensor input;.expand=Tensor input,int[] size,*,bool implicit=;.expand_as=Tensor
input,Tensor other;.expm1=Tensor input;.exponential_=Tensor input,float lambd=,*,Generator?
generator=;.fill_diagonal_=Tensor input,Scalar fill_value,bool wrap=;.float_power=Tensor input,Scalar exponent|Tensor
input,Tensor exponent;.float_power_=Tensor input,Scalar exponent|Tensor input,Tensor exponent;.floor=Tensor
input;.floor_divide_=Tensor input,Scalar other|Tensor input,Tensor other;.fmod=Tensor input,Scalar other|Tensor
input,Tensor other;.fmod_=Tensor input,Scalar other|Tensor input,Tensor other;.ge=Tensor input,Scalar other|Tensor
input,Tensor other;.ge_=Tensor input,Scalar other|Tensor input,Tensor other;.geometric_=Tensor input,float
p,*,Generator? generator=;.greater_=Tensor input,Scalar other|Tensor input,Tensor other;.greater_equal_=Tensor
input,Scalar other|Tensor input,Tensor other;.gt=Tensor input,Scalar other|Tensor input,Tensor other;.gt_=Tensor
input,Scalar other|Tensor input,Tensor other;.heaviside_=Tensor input,Tensor values;.hypot_=Tensor input,Tensor
other;.igamma_=Tensor input,Tensor other;.igammac_=Tensor input,Tensor other;.index_add_=Tensor input,int dim,Tensor
index,Tensor source,*,Scalar alpha=;.index_copy_=Tensor input,int dim,Tensor index,Tensor source;.index_fill_=Tensor
input,int dim,Tensor index,Scalar value|Tensor input,int dim,Tensor index,Tensor value;.index_reduce_=Tensor input,int
dim,Tensor index,Tensor source,str reduce,*,bool include_self=;.is_contiguous=Tensor input|Tensor input,MemoryFormat
memory_format;.is_distributed=Tensor input;.is_pinned=Tensor input,Device? device=;.is_shared=object input;.istft=object
input,int n_fft,int? hop_length=,int? win_length=,Tensor? window=,bool center=,bool normalized=,bool? onesided=,int?
length=,bool return_complex=;.item=Tensor input;.le=Tensor input,Scalar other|Tensor input,Tensor other;.le_=Tensor
input,Scalar other|Tensor input,Tensor other;.lerp_=Tensor input,Tensor end,Scalar weight|Tensor input,Tensor end,Tensor
weight;.less_=Tensor input,Scalar other|Tensor input,Tensor other;.less_equal_=Tensor input,Scalar other|Tensor
input,Tensor other;.lgamma=Tensor input;.lgamma_=Tensor input;.log=Tensor input;.log10=Tensor input;.log1p=Tensor
input;.log_normal_=Tensor input,float mean=,float std=,*,Generator? generator=;.logical_and_=Tensor input,Tensor
other;.logical_not_=Tensor input;.logical_or_=Tensor input,Tensor other;.logical_xor_=Tensor input,Tensor
other;.lstsq=object input,Tensor other;.lt=Tensor input,Scalar other|Tensor input,Tensor other;.lt_=Tensor input,Scalar
other|Tensor input,Tensor other;.lu=object input,object pivot=,object get_infos=;.masked_fill_=Tensor input,Tensor
mask,Scalar value|Tensor input,Tensor mask,Tensor value;.masked_scatter_=Tensor input,Tensor mask,Tensor
source;.mul=Tensor input,Scalar other|Tensor input,Tensor other;.mul_=Tensor input,Scalar other|Tensor input,Tensor
other;.multiply_=Tensor input,Scalar other|Tensor input,Tensor other;.mvlgamma_=Tensor input,int p;.ne=Tensor
input,Scalar other|Tensor input,Tensor other|Tensor[] a,Tensor[] b;.ne_=Tensor input,Scalar other|Tensor input,Tensor
other;.neg=Tensor input;.new_empty=Tensor input,int[] size,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=;.new_empty_strided=Tensor input,int[] size,int[] stride,*,ScalarType? dtype=,Layout? layout=,Device?
device=,bool? pin_memory=;.new_full=Tensor input,int[] size,Scalar fill_value,*,ScalarType? dtype=,Layout?
layout=,Device? device=,bool? pin_memory=;.new_ones=Tensor input,int[] size,*,ScalarType? dtype=,Layout? layout=,Device?
device=,bool? pin_memory=;.new_zeros=Tensor input,int[] size,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=;.nextafter_=Tensor input,Tensor other;.norm=object input,object p=,object dim=,object keepdim=,object
dtype=;.normal_=Tensor input,float mean=,float std=,*,Generator? generator=;.not_equal_=Tensor input,Scalar other|Tensor
input,Tensor other;.pin_memory=Tensor input,Device? device=;.polygamma_=Tensor input,int n;.pow=Tensor input,Scalar
exponent|Tensor input,Tensor exponent;.pow_=Tensor input,Scalar exponent|Tensor input,Tensor exponent;.put_=Tensor
input,Tensor index,Tensor source,bool accumulate=;.random_=Tensor input,*,Generator? generator=|Tensor input,int
from,int? to,*,Generator? generator=|Tensor input,int to,*,Generator? generator=;.register_hook=object input,object
hook;.register_post_accumulate_grad_hook=object input,object hook;.remainder=Tensor input,Scalar other|Tensor
input,Tensor other;.remainder_=Tensor input,Scalar other|Tensor input,Tensor other;.renorm_=Tensor input,Scalar p,int
dim,Scalar maxnorm;.repeat=Tensor input,int[] repeats;.requires_grad_=Tensor input,bool
requires_grad=;.reshape_as=Tensor input,Tensor other;.resize_=Tensor input,int[] size,*,MemoryFormat?
memory_format=;.retain_grad=Tensor input;.round=Tensor input|Tensor input,*,int decimals;.scatter_=Tensor input,int
dim,Tensor index,Scalar value|Tensor input,int dim,Tensor index,Scalar value,*,str reduce|Tensor input,int dim,Tensor
index,Tensor src|Tensor input,int dim,Tensor index,Tensor src,*,str reduce;.scatter_add_=Tensor input,int dim,Tensor
index,Tensor src;.scatter_reduce_=Tensor input,int dim,Tensor index,Tensor src,str reduce,*,bool
include_self=;.set_=Tensor input|Tensor input,Storage source|Tensor input,Storage source,int storage_offset,int[]
size,int[] stride=|Tensor input,Tensor source|Tensor input,Tensor source,int storage_offset,int[] size,int[]
stride=;.sgn_=Tensor input;.share_memory_=object input;.sign_=Tensor input;.sin=Tensor input;.sinh=Tensor
input;.size=Tensor input|Tensor input,int dim;.solve=object input,Tensor other;.split=object input,object
split_size,object dim=;.sqrt=Tensor input;.squeeze_=Tensor input|Tensor input,int dim|Tensor input,int[]
dim;.stft=object input,int n_fft,int? hop_length=,int? win_length=,Tensor? window=,bool center=,str pad_mode=,bool
normalized=,bool? onesided=,bool? return_complex=,bool? align_to_window=;.storage=object input;.storage_offset=Tensor
input;.stride=Tensor input|Tensor input,int dim;.sub=Tensor input,Scalar other,Scalar alpha=|Tensor input,Tensor
other,*,Scalar alpha=;.sub_=Tensor input,Scalar other,Scalar alpha=|Tensor input,Tensor other,*,Scalar
alpha=;.subtract_=Tensor input,Scalar other,Scalar alpha=|Tensor input,Tensor other,*,Scalar alpha=;.sum_to_size=Tensor
input,int[] size;.swapaxes_=Tensor input,int axis0,int axis1;.swapdims_=Tensor input,int dim0,int dim1;.symeig=object
input,object eigenvectors=;.t_=Tensor input;.tan=Tensor input;.tanh=Tensor input;.to=Tensor input,Device
device,ScalarType dtype,bool non_blocking=,bool copy=,MemoryFormat? memory_format=|Tensor input,Device? device,int?
dtype=,bool non_blocking=,bool copy=|Tensor input,ScalarType dtype,bool non_blocking=,bool copy=,MemoryFormat?
memory_format=|Tensor input,Tensor other,bool non_blocking=,bool copy=,MemoryFormat? memory_format=|Tensor input,bool
non_blocking=,bool copy=|Tensor input,int? dtype=,bool non_blocking=,bool copy=;.to_dense=Tensor input,ScalarType?
dtype=,*,bool? masked_grad=;.to_sparse=Tensor input,*,Layout? layout=,int[2]? blocksize=,int? dense_dim=|Tensor
input,int sparse_dim;.to_sparse_bsc=Tensor input,int[2] blocksize,int? dense_dim=;.to_sparse_bsr=Tensor input,int[2]
blocksize,int? dense_dim=;.to_sparse_coo=object input;.to_sparse_csc=Tensor input,int? dense_dim=;.to_sparse_csr=Tensor
input,int? dense_dim=;.transpose_=Tensor input,int dim0,int dim1;.tril_=Tensor input,int diagonal=;.triu_=Tensor
input,int diagonal=;.true_divide_=Tensor input,Scalar other|Tensor input,Tensor other;.type_as=Tensor input,Tensor
other;.unflatten=object input,object dim,object sizes;.unfold=Tensor input,int dimension,int size,int
step;.uniform_=Tensor input,float from=,float to=,*,Generator? generator=;.unique=object input,object sorted=,object
return_inverse=,object return_counts=,object dim=;.unique_consecutive=object input,object return_inverse=,object
return_counts=,object dim=;.unsqueeze_=Tensor input,int dim;.view=Tensor input,ScalarType dtype|Tensor input,int[]
size;.view_as=Tensor input,Tensor other;.xlogy=Tensor input,Scalar other|Tensor input,Tensor other;amp.custom_bwd=object
bwd=,*,str device_type;amp.custom_fwd=object fwd=,*,str device_type,ScalarType?
cast_inputs=;amp.is_autocast_available=str device_type;autograd.backward=object tensors,object grad_tensors=,object
retain_graph=,object create_graph=,object grad_variables=,object inputs=;autograd.forward_ad.exit_dual_level=*,object
level=;autograd.forward_ad.make_dual=Tensor tensor,object tangent,*,object level=;autograd.forward_ad.unpack_dual=Tensor
tensor,*,object level=;autograd.functional.hessian=object func,object inputs,object create_graph=,object strict=,object
vectorize=,object outer_jacobian_strategy=;autograd.functional.hvp=object func,object inputs,object v=,object
create_graph=,object strict=;autograd.functional.jacobian=object func,object inputs,object create_graph=,object
strict=,object vectorize=,object strategy=;autograd.functional.jvp=object func,object inputs,object v=,object
create_graph=,object strict=;autograd.functional.vhp=object func,object inputs,object v=,object create_graph=,object
strict=;autograd.functional.vjp=object func,object inputs,object v=,object create_graph=,object
strict=;autograd.grad=object outputs,object inputs,object grad_outputs=,object retain_graph=,object create_graph=,object
only_inputs=,object allow_unused=,object is_grads_batched=,object materialize_grads=;autograd.gradcheck=object
func,object inputs,*,float eps=,float atol=,float rtol=,bool raise_exception=,float nondet_tol=,bool
check_undefined_grad=,bool check_grad_dtypes=,bool check_batched_grad=,bool check_batched_forward_grad=,bool
check_forward_ad=,bool check_backward_ad=,bool fast_mode=,bool? masked=;autograd.gradgradcheck=object func,object
inputs,object grad_outputs=,*,float eps=,float atol=,float rtol=,bool gen_non_contig_grad_outputs=,bool
raise_exception=,float nondet_tol=,bool check_undefined_grad=,bool check_grad_dtypes=,bool check_batched_grad=,bool
check_fwd_over_rev=,bool check_rev_over_rev=,bool fast_mode=,bool masked=;data.default_collate=object
batch;data.default_convert=object data;data.random_split=object dataset,object lengths,object generator=;fft.fft=Tensor
input,int? n=,int dim=,str? norm=;fft.fft2=Tensor input,int[1]? s=,int[1] dim=,str? norm=;fft.fftfreq=int n,float
d=,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=;fft.fftn=Tensor input,int[1]? s=,int[1]?
dim=,str? norm=;fft.fftshift=Tensor input,int[1]? dim=;fft.hfft=Tensor input,int? n=,int dim=,str?
norm=;fft.hfft2=Tensor input,int[1]? s=,int[1] dim=,str? norm=;fft.hfftn=Tensor input,int[1]? s=,int[1]? dim=,str?
norm=;fft.ifft=Tensor input,int? n=,int dim=,str? norm=;fft.ifft2=Tensor input,int[1]? s=,int[1] dim=,str?
norm=;fft.ifftn=Tensor input,int[1]? s=,int[1]? dim=,str? norm=;fft.ifftshift=Tensor input,int[1]? dim=;fft.ihfft=Tensor
input,int? n=,int dim=,str? norm=;fft.ihfft2=Tensor input,int[1]? s=,int[1] dim=,str? norm=;fft.ihfftn=Tensor
input,int[1]? s=,int[1]? dim=,str? norm=;fft.irfft=Tensor input,int? n=,int dim=,str? norm=;fft.irfft2=Tensor
input,int[1]? s=,int[1] dim=,str? norm=;fft.irfftn=Tensor input,int[1]? s=,int[1]? dim=,str? norm=;fft.rfft=Tensor
input,int? n=,int dim=,str? norm=;fft.rfft2=Tensor input,int[1]? s=,int[1] dim=,str? norm=;fft.rfftfreq=int n,float
d=,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=;fft.rfftn=Tensor input,int[1]? s=,int[1]?
dim=,str? norm=;func.debug_unwrap=Tensor tensor,*,bool recurse=;func.functional_call=object module,object
parameter_and_buffer_dicts,object args=,object kwargs=,*,bool tie_weights=,bool strict=;func.functionalize=object
func,*,object remove=;func.grad=object func,object argnums=,bool has_aux=;func.grad_and_value=object func,object
argnums=,bool has_aux=;func.hessian=object func,object argnums=;func.jacfwd=object func,object argnums=,object
has_aux=,*,object randomness=;func.jacrev=object func,object argnums=,*,object has_aux=,object chunk_size=,object
_preallocate_and_copy=;func.jvp=object func,object primals,object tangents,*,object strict=,object
has_aux=;func.replace_all_batch_norm_modules_=object root;func.stack_module_state=object models;func.vmap=object
func,object in_dims=,object out_dims=,str randomness=,*,int? chunk_size=;linalg.cholesky=Tensor input,*,bool
upper=;linalg.cholesky_ex=Tensor input,*,bool upper=,bool check_errors=|Tensor input,*,bool upper=,bool
check_errors=,Tensor L,Tensor info;linalg.cond=Tensor input,Scalar? p=|Tensor input,str p;linalg.cross=Tensor
input,Tensor other,*,int dim=;linalg.det=Tensor A;linalg.diagonal=Tensor A,*,int offset=,int dim1=,int
dim2=;linalg.eig=Tensor input;linalg.eigh=Tensor input,str UPLO=|Tensor input,str UPLO=,*,Tensor eigvals,Tensor
eigvecs;linalg.eigvals=Tensor input;linalg.eigvalsh=Tensor input,str UPLO=;linalg.householder_product=Tensor
input,Tensor tau;linalg.inv=Tensor A;linalg.inv_ex=Tensor A,*,bool check_errors=|Tensor A,*,bool check_errors=,Tensor
inverse,Tensor info;linalg.ldl_factor=Tensor input,*,bool hermitian=;linalg.ldl_factor_ex=Tensor input,*,bool
hermitian=,bool check_errors=;linalg.ldl_solve=Tensor LD,Tensor pivots,Tensor B,*,bool hermitian=;linalg.lstsq=Tensor
input,Tensor b,float? rcond=,*,str? driver=;linalg.lu=Tensor A,*,bool pivot=;linalg.lu_factor=Tensor A,*,bool
pivot=;linalg.lu_factor_ex=Tensor A,*,bool pivot=,bool check_errors=;linalg.lu_solve=Tensor LU,Tensor pivots,Tensor
B,*,bool left=,bool adjoint=;linalg.matmul=Tensor input,Tensor other;linalg.matrix_exp=Tensor
input;linalg.matrix_norm=Tensor input,Scalar ord,int[] dim=,bool keepdim=,*,ScalarType? dtype=|Tensor input,str
ord=,int[] dim=,bool keepdim=,*,ScalarType? dtype=;linalg.matrix_power=Tensor input,int n;linalg.matrix_rank=Tensor
input,*,Tensor? atol=,Tensor? rtol=,bool hermitian=|Tensor input,*,float? atol=,float? rtol=,bool hermitian=|Tensor
input,Tensor tol,bool hermitian=|Tensor input,float tol,bool hermitian=;linalg.multi_dot=Tensor[]
tensors;linalg.norm=Tensor input,Scalar? ord=,int[1]? dim=,bool keepdim=,*,ScalarType? dtype=|Tensor input,str
ord,int[1]? dim=,bool keepdim=,*,ScalarType? dtype=;linalg.pinv=Tensor input,*,Tensor? atol=,Tensor? rtol=,bool
hermitian=|Tensor input,*,float? atol=,float? rtol=,bool hermitian=|Tensor input,Tensor rcond,bool hermitian=|Tensor
input,float rcond,bool hermitian=;linalg.qr=Tensor A,str mode=;linalg.slogdet=Tensor A;linalg.solve=Tensor A,Tensor
B,*,bool left=;linalg.solve_ex=Tensor A,Tensor B,*,bool left=,bool check_errors=;linalg.solve_triangular=Tensor
input,Tensor B,*,bool upper,bool left=,bool unitriangular=;linalg.svd=Tensor A,bool full_matrices=,*,str? driver=|Tensor
A,bool full_matrices=,*,str? driver=,Tensor U,Tensor S,Tensor Vh;linalg.svdvals=Tensor A,*,str?
driver=;linalg.tensorinv=Tensor input,int ind=;linalg.tensorsolve=Tensor input,Tensor other,int[]?
dims=;linalg.vander=Tensor x,*,int? N=;linalg.vecdot=Tensor x,Tensor y,*,int dim=;linalg.vector_norm=Tensor input,Scalar
ord=,int[1]? dim=,bool keepdim=,*,ScalarType? dtype=;masked.amax=Tensor input,object dim=,*,bool? keepdim=,int?
dtype=,Tensor? mask=;masked.amin=Tensor input,object dim=,*,bool? keepdim=,int? dtype=,Tensor?
mask=;masked.argmax=Tensor input,int? dim=,*,bool? keepdim=,int? dtype=,Tensor? mask=;masked.argmin=Tensor input,int?
dim=,*,bool? keepdim=,int? dtype=,Tensor? mask=;masked.cumprod=Tensor input,int dim,*,int? dtype=,Tensor?
mask=;masked.cumsum=Tensor input,int dim,*,int? dtype=,Tensor? mask=;masked.log_softmax=Tensor input,int dim,*,int?
dtype=,Tensor? mask=;masked.logaddexp=Tensor input,Tensor other,*,int? dtype=,Tensor? input_mask=,Tensor?
other_mask=;masked.logsumexp=Tensor input,object dim=,*,bool keepdim=,int? dtype=,Tensor? mask=;masked.mean=Tensor
input,object dim=,*,bool? keepdim=,int? dtype=,Tensor? mask=;masked.median=Tensor input,int dim=,*,bool keepdim=,int?
dtype=,Tensor? mask=;masked.norm=Tensor input,float? ord=,object dim=,*,bool? keepdim=,int? dtype=,Tensor?
mask=;masked.normalize=Tensor input,float ord,int dim,*,float eps=,int? dtype=,Tensor? mask=;masked.prod=Tensor
input,object dim=,*,bool? keepdim=,int? dtype=,Tensor? mask=;masked.softmax=Tensor input,int dim,*,int? dtype=,Tensor?
mask=;masked.softmin=Tensor input,int dim,*,int? dtype=,Tensor? mask=;masked.std=Tensor input,object dim=,bool?
unbiased=,*,int? correction=,bool? keepdim=,int? dtype=,Tensor? mask=;masked.sum=Tensor input,object dim=,*,bool?
keepdim=,int? dtype=,Tensor? mask=;masked.var=Tensor input,object dim=,bool? unbiased=,*,object correction=,bool?
keepdim=,int? dtype=,Tensor? mask=;nn.functional.adaptive_avg_pool1d=Tensor input,int[1]
output_size;nn.functional.adaptive_avg_pool2d=Tensor input,object output_size;nn.functional.adaptive_avg_pool3d=Tensor
input,object output_size;nn.functional.adaptive_max_pool1d=Tensor input,int[1]
output_size;nn.functional.adaptive_max_pool1d_with_indices=Tensor input,object output_size,bool
return_indices=;nn.functional.adaptive_max_pool2d=Tensor input,int[2]
output_size;nn.functional.adaptive_max_pool2d_with_indices=Tensor input,object output_size,bool
return_indices=;nn.functional.adaptive_max_pool3d=Tensor input,int[3]
output_size;nn.functional.adaptive_max_pool3d_with_indices=Tensor input,object output_size,bool
return_indices=;nn.functional.affine_grid=Tensor theta,int[] size,bool?
align_corners=;nn.functional.alpha_dropout=Tensor input,float p=,bool training=,bool
inplace=;nn.functional.avg_pool1d=Tensor input,int[1] kernel_size,int[1] stride=,int[1] padding=,bool ceil_mode=,bool
count_include_pad=;nn.functional.avg_pool2d=Tensor input,int[2] kernel_size,int[2] stride=,int[2] padding=,bool
ceil_mode=,bool count_include_pad=,int? divisor_override=;nn.functional.avg_pool3d=Tensor input,int[3]
kernel_size,int[3] stride=,int[3] padding=,bool ceil_mode=,bool count_include_pad=,int?
divisor_override=;nn.functional.batch_norm=Tensor input,Tensor? running_mean,Tensor? running_var,Tensor? weight=,Tensor?
bias=,bool training=,float momentum=,float eps=;nn.functional.bilinear=Tensor input1,Tensor input2,Tensor weight,Tensor?
bias=;nn.functional.binary_cross_entropy=Tensor input,Tensor target,Tensor? weight=,bool? size_average=,bool?
reduce=,str reduction=;nn.functional.binary_cross_entropy_with_logits=Tensor input,Tensor target,Tensor? weight=,bool?
size_average=,bool? reduce=,str reduction=,Tensor? pos_weight=;nn.functional.celu=Tensor input,float alpha=,bool
inplace=;nn.functional.celu_=Tensor input,Scalar alpha=;nn.functional.channel_shuffle=Tensor input,int
groups;nn.functional.conv1d=Tensor input,Tensor weight,Tensor? bias=,int[1] stride=,int[1] padding=,int[1] dilation=,int
groups=|Tensor input,Tensor weight,Tensor? bias=,int[1] stride=,str padding=,int[1] dilation=,int
groups=;nn.functional.conv2d=Tensor input,Tensor weight,Tensor? bias=,int[2] stride=,int[2] padding=,int[2]
dilation=,int groups=|Tensor input,Tensor weight,Tensor? bias=,int[2] stride=,str padding=,int[2] dilation=,int
groups=;nn.functional.conv3d=Tensor input,Tensor weight,Tensor? bias=,int[3] stride=,int[3] padding=,int[3]
dilation=,int groups=|Tensor input,Tensor weight,Tensor? bias=,int[3] stride=,str padding=,int[3] dilation=,int
groups=;nn.functional.conv_tbc=Tensor input,Tensor weight,Tensor bias,int pad=;nn.functional.conv_transpose1d=Tensor
input,Tensor weight,Tensor? bias=,int[1] stride=,int[1] padding=,int[1] output_padding=,int groups=,int[1]
dilation=;nn.functional.conv_transpose2d=Tensor input,Tensor weight,Tensor? bias=,int[2] stride=,int[2] padding=,int[2]
output_padding=,int groups=,int[2] dilation=;nn.functional.conv_transpose3d=Tensor input,Tensor weight,Tensor?
bias=,int[3] stride=,int[3] padding=,int[3] output_padding=,int groups=,int[3]
dilation=;nn.functional.cosine_embedding_loss=Tensor input1,Tensor input2,Tensor target,float margin=,bool?
size_average=,bool? reduce=,str reduction=;nn.functional.cosine_similarity=Tensor x1,Tensor x2,int dim=,float
eps=;nn.functional.cross_entropy=Tensor input,Tensor target,Tensor? weight=,bool? size_average=,int ignore_index=,bool?
reduce=,str reduction=,float label_smoothing=;nn.functional.ctc_loss=Tensor log_probs,Tensor targets,Tensor
input_lengths,Tensor target_lengths,int blank=,str reduction=,bool zero_infinity=;nn.functional.dropout=Tensor
input,float p=,bool training=,bool inplace=;nn.functional.dropout1d=Tensor input,float p=,bool training=,bool
inplace=;nn.functional.dropout2d=Tensor input,float p=,bool training=,bool inplace=;nn.functional.dropout3d=Tensor
input,float p=,bool training=,bool inplace=;nn.functional.elu=Tensor input,float alpha=,bool
inplace=;nn.functional.elu_=Tensor input,Scalar alpha=,Scalar scale=,Scalar input_scale=;nn.functional.embedding=Tensor
input,Tensor weight,int? padding_idx=,float? max_norm=,float norm_type=,bool scale_grad_by_freq=,bool
sparse=;nn.functional.embedding_bag=Tensor input,Tensor weight,Tensor? offsets=,float? max_norm=,float norm_type=,bool
scale_grad_by_freq=,str mode=,bool sparse=,Tensor? per_sample_weights=,bool include_last_offset=,int?
padding_idx=;nn.functional.feature_alpha_dropout=Tensor input,float p=,bool training=,bool
inplace=;nn.functional.fold=Tensor input,object output_size,object kernel_size,object dilation=,object padding=,object
stride=;nn.functional.fractional_max_pool2d=Tensor input,int[2] kernel_size,int[2] output_size,Tensor
random_samples|Tensor input,int[2] kernel_size,int[2] output_size,Tensor random_samples,*,Tensor output,Tensor
indices;nn.functional.fractional_max_pool2d_with_indices=Tensor input,object kernel_size,object output_size=,object
output_ratio=,bool return_indices=,Tensor? _random_samples=;nn.functional.fractional_max_pool3d=Tensor input,int[3]
kernel_size,int[3] output_size,Tensor random_samples|Tensor input,int[3] kernel_size,int[3] output_size,Tensor
random_samples,*,Tensor output,Tensor indices;nn.functional.fractional_max_pool3d_with_indices=Tensor input,object
kernel_size,object output_size=,object output_ratio=,bool return_indices=,Tensor?
_random_samples=;nn.functional.gaussian_nll_loss=Tensor input,Tensor target,object var,bool full=,float eps=,str
reduction=;nn.functional.gelu=Tensor input,*,str approximate=;nn.functional.glu=Tensor input,int
dim=;nn.functional.grid_sample=Tensor input,Tensor grid,str mode=,str padding_mode=,bool?
align_corners=;nn.functional.group_norm=Tensor input,int num_groups,Tensor? weight=,Tensor? bias=,float
eps=;nn.functional.gumbel_softmax=Tensor logits,float tau=,bool hard=,float eps=,int
dim=;nn.functional.hardshrink=Tensor input,Scalar lambd=;nn.functional.hardsigmoid=Tensor input,bool
inplace=;nn.functional.hardswish=Tensor input,bool inplace=;nn.functional.hardtanh=Tensor input,float min_val=,float
max_val=,bool inplace=;nn.functional.hardtanh_=Tensor input,Scalar min_val=,Scalar
max_val=;nn.functional.hinge_embedding_loss=Tensor input,Tensor target,float margin=,bool? size_average=,bool?
reduce=,str reduction=;nn.functional.huber_loss=Tensor input,Tensor target,str reduction=,float delta=,Tensor?
weight=;nn.functional.instance_norm=Tensor input,Tensor? running_mean=,Tensor? running_var=,Tensor? weight=,Tensor?
bias=,bool use_input_stats=,float momentum=,float eps=;nn.functional.interpolate=Tensor input,int? size=,object
scale_factor=,str mode=,bool? align_corners=,bool? recompute_scale_factor=,bool antialias=;nn.functional.kl_div=Tensor
input,Tensor target,bool? size_average=,bool? reduce=,str reduction=,bool log_target=;nn.functional.l1_loss=Tensor
input,Tensor target,bool? size_average=,bool? reduce=,str reduction=,Tensor? weight=;nn.functional.layer_norm=Tensor
input,int[] normalized_shape,Tensor? weight=,Tensor? bias=,float eps=;nn.functional.leaky_relu=Tensor input,float
negative_slope=,bool inplace=;nn.functional.leaky_relu_=Tensor input,Scalar negative_slope=;nn.functional.linear=Tensor
input,Tensor weight,Tensor? bias=;nn.functional.linear_cross_entropy=Tensor input,object linear_weight,Tensor
target,*,object linear_bias=,object weight=,object reduction=,object ignore_index=,object label_smoothing=,object
options=;nn.functional.local_response_norm=Tensor input,int size,float alpha=,float beta=,float
k=;nn.functional.log_softmax=Tensor input,int? dim=,int _stacklevel=,int? dtype=;nn.functional.lp_pool1d=Tensor
input,object norm_type,int kernel_size,object stride=,bool ceil_mode=;nn.functional.lp_pool2d=Tensor input,object
norm_type,object kernel_size,object stride=,bool ceil_mode=;nn.functional.lp_pool3d=Tensor input,object norm_type,object
kernel_size,object stride=,bool ceil_mode=;nn.functional.margin_ranking_loss=Tensor input1,Tensor input2,Tensor
target,float margin=,bool? size_average=,bool? reduce=,str reduction=;nn.functional.max_pool1d=Tensor input,int[1]
kernel_size,int[1] stride=,int[1] padding=,int[1] dilation=,bool ceil_mode=;nn.functional.max_pool1d_with_indices=Tensor
input,object kernel_size,object stride=,object padding=,object dilation=,bool ceil_mode=,bool
return_indices=;nn.functional.max_pool2d=Tensor input,int[2] kernel_size,int[2] stride=,int[2] padding=,int[2]
dilation=,bool ceil_mode=;nn.functional.max_pool2d_with_indices=Tensor input,object kernel_size,object stride=,object
padding=,object dilation=,bool ceil_mode=,bool return_indices=;nn.functional.max_pool3d=Tensor input,int[3]
kernel_size,int[3] stride=,int[3] padding=,int[3] dilation=,bool ceil_mode=;nn.functional.max_pool3d_with_indices=Tensor
input,object kernel_size,object stride=,object padding=,object dilation=,bool ceil_mode=,bool
return_indices=;nn.functional.max_unpool1d=Tensor input,Tensor indices,object kernel_size,object stride=,object
padding=,object output_size=;nn.functional.max_unpool2d=Tensor input,Tensor indices,object kernel_size,object
stride=,object padding=,object output_size=;nn.functional.max_unpool3d=Tensor input,Tensor indices,object
kernel_size,object stride=,object padding=,object output_size=;nn.functional.mish=Tensor input,bool
inplace=;nn.functional.mse_loss=Tensor input,Tensor target,bool? size_average=,bool? reduce=,str reduction=,Tensor?
weight=;nn.functional.multi_head_attention_forward=Tensor query,Tensor key,Tensor value,int embed_dim_to_check,int
num_heads,Tensor? in_proj_weight,Tensor? in_proj_bias,Tensor? bias_k,Tensor? bias_v,bool add_zero_attn,float
dropout_p,Tensor out_proj_weight,Tensor? out_proj_bias,bool training=,Tensor? key_padding_mask=,bool
need_weights=,Tensor? attn_mask=,bool use_separate_proj_weight=,Tensor? q_proj_weight=,Tensor? k_proj_weight=,Tensor?
v_proj_weight=,Tensor? static_k=,Tensor? static_v=,bool average_attn_weights=,bool
is_causal=;nn.functional.multi_margin_loss=Tensor input,Tensor target,int p=,float margin=,Tensor? weight=,bool?
size_average=,bool? reduce=,str reduction=;nn.functional.multilabel_margin_loss=Tensor input,Tensor target,bool?
size_average=,bool? reduce=,str reduction=;nn.functional.multilabel_soft_margin_loss=Tensor input,Tensor target,Tensor?
weight=,bool? size_average=,bool? reduce=,str reduction=;nn.functional.native_channel_shuffle=Tensor input,int
groups;nn.functional.nll_loss=Tensor input,Tensor target,Tensor? weight=,bool? size_average=,int ignore_index=,bool?
reduce=,str reduction=;nn.functional.normalize=Tensor input,float p=,int dim=,float eps=,Tensor?
out=;nn.functional.one_hot=Tensor input,int num_classes=;nn.functional.pad=Tensor input,int[] pad,str mode=,float?
value=;nn.functional.pairwise_distance=Tensor x1,Tensor x2,float p=,float eps=,bool keepdim=;nn.functional.pdist=Tensor
input,float p=;nn.functional.pixel_shuffle=Tensor input,int upscale_factor;nn.functional.pixel_unshuffle=Tensor
input,int downscale_factor;nn.functional.poisson_nll_loss=Tensor input,Tensor target,bool log_input=,bool full=,bool?
size_average=,float eps=,bool? reduce=,str reduction=;nn.functional.prelu=Tensor input,Tensor
weight;nn.functional.relu=Tensor input,bool inplace=;nn.functional.relu6=Tensor input,bool
inplace=;nn.functional.relu_=Tensor input;nn.functional.rms_norm=Tensor input,int[] normalized_shape,Tensor?
weight=,float? eps=;nn.functional.rrelu=Tensor input,float lower=,float upper=,bool training=,bool
inplace=;nn.functional.rrelu_=Tensor input,Scalar lower=,Scalar upper=,bool training=,Generator?
generator=;nn.functional.scaled_dot_product_attention=Tensor query,Tensor key,Tensor value,Tensor? attn_mask=,float
dropout_p=,bool is_causal=,*,float? scale=,bool enable_gqa=;nn.functional.selu=Tensor input,bool
inplace=;nn.functional.selu_=Tensor input;nn.functional.sigmoid=Tensor input;nn.functional.silu=Tensor input,bool
inplace=;nn.functional.smooth_l1_loss=Tensor input,Tensor target,bool? size_average=,bool? reduce=,str reduction=,float
beta=;nn.functional.soft_margin_loss=Tensor input,Tensor target,bool? size_average=,bool? reduce=,str
reduction=;nn.functional.softmax=Tensor input,int? dim=,int _stacklevel=,int? dtype=;nn.functional.softmin=Tensor
input,int? dim=,int _stacklevel=,int? dtype=;nn.functional.softplus=Tensor input,Scalar beta=,Scalar
threshold=;nn.functional.softshrink=Tensor input,Scalar lambd=;nn.functional.softsign=Tensor
input;nn.functional.tanh=Tensor input;nn.functional.tanhshrink=Tensor input;nn.functional.threshold=Tensor input,float
threshold,float value,bool inplace=;nn.functional.threshold_=Tensor input,Scalar threshold,Scalar
value;nn.functional.triplet_margin_loss=Tensor anchor,Tensor positive,Tensor negative,float margin=,float p=,float
eps=,bool swap=,bool? size_average=,bool? reduce=,str reduction=;nn.functional.triplet_margin_with_distance_loss=Tensor
anchor,Tensor positive,Tensor negative,*,object distance_function=,float margin=,bool swap=,str
reduction=;nn.functional.unfold=Tensor input,object kernel_size,object dilation=,object padding=,object
stride=;nn.functional.upsample=Tensor input,object size=,object scale_factor=,object mode=,object
align_corners=;nn.functional.upsample_bilinear=Tensor input,object size=,object
scale_factor=;nn.functional.upsample_nearest=Tensor input,object size=,object
scale_factor=;nn.init.calculate_gain=object nonlinearity,object param=;nn.init.constant_=Tensor tensor,float
val;nn.init.dirac_=Tensor tensor,int groups=;nn.init.eye_=Tensor tensor;nn.init.normal_=Tensor tensor,float mean=,float
std=,object generator=;nn.init.ones_=Tensor tensor;nn.init.orthogonal_=Tensor tensor,float gain=,object
generator=;nn.init.sparse_=Tensor tensor,float sparsity,float std=,object generator=;nn.init.xavier_normal_=Tensor
tensor,float gain=,object generator=;nn.init.xavier_uniform_=Tensor tensor,float gain=,object
generator=;nn.init.zeros_=Tensor tensor;nn.utils.clip_grad_norm_=object parameters,float max_norm,float norm_type=,bool
error_if_nonfinite=,bool? foreach=;nn.utils.clip_grad_value_=object parameters,float clip_value,bool?
foreach=;nn.utils.clip_grads_with_norm_=object parameters,float max_norm,Tensor total_norm,bool?
foreach=;nn.utils.fuse_conv_bn_eval=object conv,object bn,bool transpose=;nn.utils.fuse_conv_bn_weights=Tensor
conv_w,Tensor? conv_b,Tensor bn_rm,Tensor bn_rv,float bn_eps,Tensor? bn_w,Tensor? bn_b,bool
transpose=;nn.utils.fuse_linear_bn_eval=object linear,object bn;nn.utils.fuse_linear_bn_weights=Tensor linear_w,Tensor?
linear_b,Tensor bn_rm,Tensor bn_rv,float bn_eps,Tensor bn_w,Tensor bn_b;nn.utils.get_total_norm=object tensors,float
norm_type=,bool error_if_nonfinite=,bool? foreach=;nn.utils.parameters_to_vector=object
parameters;nn.utils.parametrizations.orthogonal=object module,str name=,str? orthogonal_map=,*,bool
use_trivialization=;nn.utils.parametrizations.spectral_norm=object module,str name=,int n_power_iterations=,float
eps=,int? dim=;nn.utils.parametrizations.weight_norm=object module,str name=,int
dim=;nn.utils.parametrize.is_parametrized=object module,str?
tensor_name=;nn.utils.parametrize.register_parametrization=object module,str tensor_name,object parametrization,*,bool
unsafe=;nn.utils.parametrize.remove_parametrizations=object module,str tensor_name,bool
leave_parametrized=;nn.utils.parametrize.type_before_parametrizations=object
module;nn.utils.prune.custom_from_mask=object module,object name,Tensor mask;nn.utils.prune.identity=object
module,object name;nn.utils.prune.is_pruned=object module;nn.utils.prune.l1_unstructured=object module,object
name,object amount,object importance_scores=;nn.utils.prune.ln_structured=object module,object name,object amount,object
n,object dim,object importance_scores=;nn.utils.prune.random_structured=object module,object name,object amount,object
dim;nn.utils.prune.random_unstructured=object module,object name,object amount;nn.utils.prune.remove=object
module,object name;nn.utils.remove_spectral_norm=object module,str name=;nn.utils.remove_weight_norm=object module,str
name=;nn.utils.rnn.invert_permutation=Tensor? permutation;nn.utils.rnn.pack_padded_sequence=Tensor input,object
lengths,bool batch_first=,bool enforce_sorted=;nn.utils.rnn.pack_sequence=Tensor[] sequences,bool
enforce_sorted=;nn.utils.rnn.pad_packed_sequence=object sequence,bool batch_first=,float padding_value=,int?
total_length=;nn.utils.rnn.pad_sequence=object sequences,bool batch_first=,float padding_value=,str
padding_side=;nn.utils.rnn.unpack_sequence=object packed_sequences;nn.utils.rnn.unpad_sequence=Tensor
padded_sequences,Tensor lengths,bool batch_first=;nn.utils.spectral_norm=object module,str name=,int
n_power_iterations=,float eps=,int? dim=;nn.utils.vector_to_parameters=Tensor vec,object
parameters;nn.utils.weight_norm=object module,str name=,int dim=;overrides.is_tensor_like=object
inp;overrides.is_tensor_method_or_property=object func;overrides.resolve_name=object
f;overrides.wrap_torch_function=object dispatcher;random.manual_seed=object seed;signal.windows.bartlett=int M,*,bool
sym=,ScalarType? dtype=,object layout=,object device=,bool requires_grad=;signal.windows.blackman=int M,*,bool
sym=,ScalarType? dtype=,object layout=,object device=,bool requires_grad=;signal.windows.cosine=int M,*,bool
sym=,ScalarType? dtype=,object layout=,object device=,bool requires_grad=;signal.windows.exponential=int M,*,float?
center=,float tau=,bool sym=,ScalarType? dtype=,object layout=,object device=,bool
requires_grad=;signal.windows.gaussian=int M,*,float std=,bool sym=,ScalarType? dtype=,object layout=,object
device=,bool requires_grad=;signal.windows.general_cosine=object M,*,object a,bool sym=,ScalarType? dtype=,object
layout=,object device=,bool requires_grad=;signal.windows.general_hamming=object M,*,float alpha=,bool sym=,ScalarType?
dtype=,object layout=,object device=,bool requires_grad=;signal.windows.hamming=int M,*,bool sym=,ScalarType?
dtype=,object layout=,object device=,bool requires_grad=;signal.windows.hann=int M,*,bool sym=,ScalarType? dtype=,object
layout=,object device=,bool requires_grad=;signal.windows.kaiser=int M,*,float beta=,bool sym=,ScalarType? dtype=,object
layout=,object device=,bool requires_grad=;signal.windows.nuttall=int M,*,bool sym=,ScalarType? dtype=,object
layout=,object device=,bool requires_grad=;special.airy_ai=Tensor x;special.bessel_j0=Tensor
input;special.bessel_j1=Tensor input;special.bessel_y0=Tensor input;special.bessel_y1=Tensor
input;special.chebyshev_polynomial_t=Scalar x,Tensor n|Tensor x,Scalar n|Tensor x,Tensor
n;special.chebyshev_polynomial_u=Scalar x,Tensor n|Tensor x,Scalar n|Tensor x,Tensor
n;special.chebyshev_polynomial_v=Scalar x,Tensor n|Tensor x,Scalar n|Tensor x,Tensor
n;special.chebyshev_polynomial_w=Scalar x,Tensor n|Tensor x,Scalar n|Tensor x,Tensor n;special.digamma=Tensor
input;special.entr=Tensor input;special.erf=Tensor input;special.erfc=Tensor input;special.erfcx=Tensor
input;special.erfinv=Tensor input;special.exp2=Tensor input;special.expit=Tensor input;special.expm1=Tensor
input;special.gammainc=Tensor input,Tensor other;special.gammaincc=Tensor input,Tensor other;special.gammaln=Tensor
input;special.hermite_polynomial_h=Scalar x,Tensor n|Tensor x,Scalar n|Tensor x,Tensor
n;special.hermite_polynomial_he=Scalar x,Tensor n|Tensor x,Scalar n|Tensor x,Tensor n;special.i0=Tensor
input;special.i0e=Tensor input;special.i1=Tensor input;special.i1e=Tensor input;special.laguerre_polynomial_l=Scalar
x,Tensor n|Tensor x,Scalar n|Tensor x,Tensor n;special.legendre_polynomial_p=Scalar x,Tensor n|Tensor x,Scalar n|Tensor
x,Tensor n;special.log1p=Tensor input;special.log_ndtr=Tensor input;special.log_softmax=Tensor input,int
dim,*,ScalarType? dtype=;special.logit=Tensor input,float? eps=;special.logsumexp=Tensor input,int[1] dim,bool
keepdim=;special.modified_bessel_k0=Tensor input;special.modified_bessel_k1=Tensor input;special.multigammaln=Tensor
input,int p;special.ndtr=Tensor input;special.ndtri=Tensor input;special.polygamma=int n,Tensor input;special.psi=Tensor
input;special.round=Tensor input,*,int decimals=;special.scaled_modified_bessel_k0=Tensor
x;special.scaled_modified_bessel_k1=Tensor x;special.shifted_chebyshev_polynomial_t=Scalar x,Tensor n|Tensor x,Scalar
n|Tensor x,Tensor n;special.shifted_chebyshev_polynomial_u=Scalar x,Tensor n|Tensor x,Scalar n|Tensor x,Tensor
n;special.shifted_chebyshev_polynomial_v=Scalar x,Tensor n|Tensor x,Scalar n|Tensor x,Tensor
n;special.shifted_chebyshev_polynomial_w=Scalar x,Tensor n|Tensor x,Scalar n|Tensor x,Tensor n;special.sinc=Tensor
input;special.softmax=Tensor input,int dim,ScalarType? dtype=;special.spherical_bessel_j0=Tensor
x;special.xlog1py=Scalar input,Tensor other|Tensor input,Scalar other|Tensor input,Tensor other;special.xlogy=Scalar
input,Tensor other|Tensor input,Scalar other|Tensor input,Tensor other;special.zeta=Scalar input,Tensor other|Tensor
input,Scalar other|Tensor input,Tensor other;testing.assert_close=object actual,object expected,*,bool
allow_subclasses=,float? rtol=,float? atol=,bool equal_nan=,bool check_device=,bool check_dtype=,bool check_layout=,bool
check_stride=,object msg=;utils._pytree.register_pytree_node=object cls,object flatten_fn,object unflatten_fn,*,str?
serialized_type_name=,object to_dumpable_context=,object from_dumpable_context=,object
flatten_with_keys_fn=;utils._pytree.tree_all=object pred,object tree,object is_leaf=;utils._pytree.tree_all_only=object
type_or_types,object pred,object tree,object is_leaf=;utils._pytree.tree_any=object pred,object tree,object
is_leaf=;utils._pytree.tree_any_only=object type_or_types,object pred,object tree,object
is_leaf=;utils._pytree.tree_flatten=object tree,object is_leaf=;utils._pytree.tree_is_leaf=object tree,object
is_leaf=;utils._pytree.tree_iter=object tree,object is_leaf=;utils._pytree.tree_leaves=object tree,object
is_leaf=;utils._pytree.tree_map_only=object type_or_types_or_pred,object func,object tree,object
is_leaf=;utils._pytree.tree_map_only_=object type_or_types_or_pred,object func,object tree,object
is_leaf=;utils._pytree.tree_structure=object tree,object is_leaf=;utils._pytree.tree_unflatten=object leaves,object
treespec;utils.checkpoint.check_backward_validity=object
inputs;utils.checkpoint.create_selective_checkpoint_contexts=object policy_fn_or_list,object
allow_cache_entry_mutation=;utils.checkpoint.detach_variable=object
inputs;utils.checkpoint.set_checkpoint_debug_enabled=bool? enabled;utils.checkpoint.set_checkpoint_early_stop=bool
enable;utils.dlpack.from_dlpack=object ext_tensor,*,object device=,bool? copy=
"""
