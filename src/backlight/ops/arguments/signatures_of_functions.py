"""PyTorch's signatures of its functions, read from PyTorch 2.13.

`name=kind parameter,…`, several signatures with `|` between.
A parameter ends with `=` where it has a default; after `*` they are given by name.
"""

FUNCTIONS = """
abs=Tensor input;abs_=Tensor input;absolute=Tensor input;acos=Tensor input;acos_=Tensor input;acosh=Tensor
input;acosh_=Tensor input;adaptive_avg_pool1d=Tensor input,int[1] output_size;adaptive_max_pool1d=Tensor input,int[1]
output_size;add=Tensor input,Scalar other,Scalar alpha=|Tensor input,Tensor other,*,Scalar alpha=;addbmm=Tensor
input,Tensor batch1,Tensor batch2,*,Scalar beta=,Scalar alpha=;addcdiv=Tensor input,Tensor tensor1,Tensor
tensor2,*,Scalar value=;addcmul=Tensor input,Tensor tensor1,Tensor tensor2,*,Scalar value=;addmm=Tensor input,Tensor
mat1,Tensor mat2,*,Scalar beta=,Scalar alpha=|Tensor input,Tensor mat1,Tensor mat2,ScalarType out_dtype,*,Scalar
beta=,Scalar alpha=;addmv=Tensor input,Tensor mat,Tensor vec,*,Scalar beta=,Scalar alpha=;addmv_=Tensor input,Tensor
mat,Tensor vec,*,Scalar beta=,Scalar alpha=;addr=Tensor input,Tensor vec1,Tensor vec2,*,Scalar beta=,Scalar
alpha=;adjoint=Tensor input;affine_grid_generator=Tensor theta,int[] size,bool align_corners;alias_copy=Tensor
input;all=Tensor input|Tensor input,int dim,bool keepdim=|Tensor input,int[]? dim=,bool keepdim=;allclose=Tensor
input,Tensor other,float rtol=,float atol=,bool equal_nan=;alpha_dropout=Tensor input,float p,bool
train;alpha_dropout_=Tensor input,float p,bool train;amax=Tensor input,int[1] dim=,bool keepdim=;amin=Tensor
input,int[1] dim=,bool keepdim=;aminmax=Tensor input,*,int? dim=,bool keepdim=;angle=Tensor input;any=Tensor
input|Tensor input,int dim,bool keepdim=|Tensor input,int[]? dim=,bool keepdim=;arange=Scalar end,*,ScalarType?
dtype=,Layout? layout=,Device? device=,bool? pin_memory=|Scalar start,Scalar end,*,ScalarType? dtype=,Layout?
layout=,Device? device=,bool? pin_memory=|Scalar start,Scalar end,Scalar step=,*,ScalarType? dtype=,Layout?
layout=,Device? device=,bool? pin_memory=;arccos=Tensor input;arccos_=Tensor input;arccosh=Tensor input;arccosh_=Tensor
input;arcsin=Tensor input;arcsin_=Tensor input;arcsinh=Tensor input;arcsinh_=Tensor input;arctan=Tensor
input;arctan2=Tensor input,Tensor other;arctan_=Tensor input;arctanh=Tensor input;arctanh_=Tensor input;argmax=Tensor
input,int? dim=,bool keepdim=;argmin=Tensor input,int? dim=,bool keepdim=;argsort=Tensor input,*,bool stable,int
dim=,bool descending=|Tensor input,int dim=,bool descending=;argwhere=Tensor input;as_strided=Tensor input,int[]
size,int[] stride,int? storage_offset=;as_strided_=Tensor input,int[] size,int[] stride,int?
storage_offset=;as_strided_copy=Tensor input,int[] size,int[] stride,int? storage_offset=;as_strided_scatter=Tensor
input,Tensor src,int[] size,int[] stride,int? storage_offset=;as_tensor=Tensor data,*,ScalarType? dtype=,Device?
device=|int t,*,ScalarType? dtype=,Device? device=;asin=Tensor input;asin_=Tensor input;asinh=Tensor input;asinh_=Tensor
input;atan=Tensor input;atan2=Tensor input,Tensor other;atan_=Tensor input;atanh=Tensor input;atanh_=Tensor
input;avg_pool1d=Tensor input,int[1] kernel_size,int[1] stride=,int[1] padding=,bool ceil_mode=,bool
count_include_pad=;baddbmm=Tensor input,Tensor batch1,Tensor batch2,*,Scalar beta=,Scalar alpha=|Tensor input,Tensor
batch1,Tensor batch2,ScalarType out_dtype,*,Scalar beta=,Scalar alpha=;bartlett_window=int window_length,*,ScalarType?
dtype=,Layout? layout=,Device? device=,bool? pin_memory=|int window_length,bool periodic,*,ScalarType? dtype=,Layout?
layout=,Device? device=,bool? pin_memory=;batch_norm=Tensor input,Tensor? weight,Tensor? bias,Tensor?
running_mean,Tensor? running_var,bool training,float momentum,float eps,bool cudnn_enabled;bernoulli=Tensor
input,*,Generator? generator=|Tensor input,Tensor p,*,Generator? generator=|Tensor input,float p,*,Generator?
generator=;bilinear=Tensor input1,Tensor input2,Tensor weight,Tensor? bias=;binary_cross_entropy_with_logits=Tensor
input,Tensor target,Tensor? weight=,Tensor? pos_weight=,int reduction=;bincount=Tensor input,Tensor? weights=,int
minlength=;binomial=Tensor count,Tensor prob,Generator? generator=;bitwise_and=Scalar input,Tensor other|Tensor
input,Scalar other|Tensor input,Tensor other;bitwise_left_shift=Scalar input,Tensor other|Tensor input,Scalar
other|Tensor input,Tensor other;bitwise_not=Tensor input;bitwise_or=Scalar input,Tensor other|Tensor input,Scalar
other|Tensor input,Tensor other;bitwise_right_shift=Scalar input,Tensor other|Tensor input,Scalar other|Tensor
input,Tensor other;bitwise_xor=Scalar input,Tensor other|Tensor input,Scalar other|Tensor input,Tensor
other;blackman_window=int window_length,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=|int
window_length,bool periodic,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=;bmm=Tensor
input,Tensor mat2|Tensor input,Tensor mat2,ScalarType out_dtype;broadcast_to=Tensor input,int[] size;bucketize=Scalar
input,Tensor boundaries,*,bool out_int32=,bool right=|Tensor input,Tensor boundaries,*,bool out_int32=,bool
right=;can_cast=ScalarType from_,ScalarType to;cat=Tensor[] tensors,int dim=;cdist=Tensor x1,Tensor x2,object p=,object
compute_mode=;ceil=Tensor input;ceil_=Tensor input;celu=Tensor input,Scalar alpha=;celu_=Tensor input,Scalar
alpha=;channel_shuffle=Tensor input,int groups;cholesky=Tensor input,bool upper=;cholesky_inverse=Tensor input,bool
upper=;cholesky_solve=Tensor input,Tensor input2,bool upper=;chunk=Tensor input,int chunks,int dim=;clamp=Tensor
input,Scalar? min=,Scalar? max=|Tensor input,Tensor? min=,Tensor? max=;clamp_=Tensor input,Scalar? min=,Scalar?
max=|Tensor input,Tensor? min=,Tensor? max=;clamp_max=Tensor input,Scalar max|Tensor input,Tensor max;clamp_max_=Tensor
input,Scalar max|Tensor input,Tensor max;clamp_min=Tensor input,Scalar min|Tensor input,Tensor min;clamp_min_=Tensor
input,Scalar min|Tensor input,Tensor min;clip=Tensor input,Scalar? min=,Scalar? max=|Tensor input,Tensor? min=,Tensor?
max=;clip_=Tensor input,Scalar? min=,Scalar? max=|Tensor input,Tensor? min=,Tensor? max=;clone=Tensor
input,*,MemoryFormat? memory_format=;column_stack=Tensor[] tensors;combinations=Tensor input,int r=,bool
with_replacement=;complex=Tensor real,Tensor imag;concat=Tensor[] tensors,int dim=;concatenate=Tensor[] tensors,int
dim=;conj=Tensor input;conj_physical=Tensor input;conj_physical_=Tensor input;constant_pad_nd=Tensor input,int[]
pad,Scalar value=;conv1d=Tensor input,Tensor weight,Tensor? bias=,int[1] stride=,int[1] padding=,int[1] dilation=,int
groups=|Tensor input,Tensor weight,Tensor? bias=,int[1] stride=,str padding=,int[1] dilation=,int groups=;conv2d=Tensor
input,Tensor weight,Tensor? bias=,int[2] stride=,int[2] padding=,int[2] dilation=,int groups=|Tensor input,Tensor
weight,Tensor? bias=,int[2] stride=,str padding=,int[2] dilation=,int groups=;conv3d=Tensor input,Tensor weight,Tensor?
bias=,int[3] stride=,int[3] padding=,int[3] dilation=,int groups=|Tensor input,Tensor weight,Tensor? bias=,int[3]
stride=,str padding=,int[3] dilation=,int groups=;conv_tbc=Tensor input,Tensor weight,Tensor bias,int
pad=;conv_transpose1d=Tensor input,Tensor weight,Tensor? bias=,int[1] stride=,int[1] padding=,int[1] output_padding=,int
groups=,int[1] dilation=;conv_transpose2d=Tensor input,Tensor weight,Tensor? bias=,int[2] stride=,int[2] padding=,int[2]
output_padding=,int groups=,int[2] dilation=;conv_transpose3d=Tensor input,Tensor weight,Tensor? bias=,int[3]
stride=,int[3] padding=,int[3] output_padding=,int groups=,int[3] dilation=;convolution=Tensor input,Tensor
weight,Tensor? bias,int[] stride,int[] padding,int[] dilation,bool transposed,int[] output_padding,int
groups;copysign=Tensor input,Scalar other|Tensor input,Tensor other;corrcoef=Tensor input;cos=Tensor input;cos_=Tensor
input;cosh=Tensor input;cosh_=Tensor input;cosine_embedding_loss=Tensor input1,Tensor input2,Tensor target,float
margin=,int reduction=;cosine_similarity=Tensor x1,Tensor x2,int dim=,float eps=;count_nonzero=Tensor input,int?
dim=|Tensor input,int[] dim;cov=Tensor input,*,int correction=,Tensor? fweights=,Tensor? aweights=;cross=Tensor
input,Tensor other,int? dim=;ctc_loss=Tensor log_probs,Tensor targets,Tensor input_lengths,Tensor target_lengths,int
blank=,int reduction=,bool zero_infinity=|Tensor log_probs,Tensor targets,int[] input_lengths,int[] target_lengths,int
blank=,int reduction=,bool zero_infinity=;cummax=Tensor input,int dim;cummin=Tensor input,int dim;cumprod=Tensor
input,int dim,*,ScalarType? dtype=;cumsum=Tensor input,int dim,*,ScalarType? dtype=;cumulative_trapezoid=Tensor
y,*,Scalar dx=,int dim=|Tensor y,Tensor x,*,int dim=;deg2rad=Tensor input;deg2rad_=Tensor input;det=Tensor
input;detach=Tensor input;detach_=Tensor input;diag=Tensor input,int diagonal=;diag_embed=Tensor input,int offset=,int
dim1=,int dim2=;diagflat=Tensor input,int offset=;diagonal=Tensor input,int offset=,int dim1=,int
dim2=;diagonal_copy=Tensor input,int offset=,int dim1=,int dim2=;diagonal_scatter=Tensor input,Tensor src,int
offset=,int dim1=,int dim2=;diff=Tensor input,int n=,int dim=,Tensor? prepend=,Tensor? append=;digamma=Tensor
input;dist=Tensor input,Tensor other,Scalar p=;div=Tensor input,Scalar other|Tensor input,Scalar other,*,str?
rounding_mode|Tensor input,Tensor other|Tensor input,Tensor other,*,str? rounding_mode;divide=Tensor input,Scalar
other|Tensor input,Scalar other,*,str? rounding_mode|Tensor input,Tensor other|Tensor input,Tensor other,*,str?
rounding_mode;dot=Tensor input,Tensor tensor;dropout=Tensor input,float p,bool train;dropout_=Tensor input,float p,bool
train;dsplit=Tensor input,int sections|Tensor input,int[] indices;dstack=Tensor[] tensors;eig=Tensor input,bool
eigenvectors=,*,object e=,object v=;embedding=Tensor weight,Tensor indices,int padding_idx=,bool
scale_grad_by_freq=,bool sparse=;embedding_bag=Tensor weight,Tensor indices,Tensor offsets,bool scale_grad_by_freq,int
mode,bool sparse,Tensor? per_sample_weights,bool include_last_offset,int? padding_idx|Tensor weight,Tensor
indices,Tensor offsets,bool scale_grad_by_freq=,int mode=,bool sparse=,Tensor? per_sample_weights=,bool
include_last_offset=;embedding_renorm_=Tensor input,Tensor indices,float max_norm,float norm_type;empty=int[]
size,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=,MemoryFormat?
memory_format=;empty_like=Tensor input,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=,MemoryFormat? memory_format=;empty_strided=int[] size,int[] stride,*,ScalarType? dtype=,Layout?
layout=,Device? device=,bool? pin_memory=;eq=AnyEnumType a,AnyEnumType b|Device a,Device b|Tensor input,Scalar
other|Tensor input,Tensor other|Tensor[] a,Tensor[] b;equal=Tensor input,Tensor other;erf=Tensor input;erf_=Tensor
input;erfc=Tensor input;erfc_=Tensor input;erfinv=Tensor input;exp=Tensor input;exp2=Tensor input;exp2_=Tensor
input;exp_=Tensor input;expand_copy=Tensor input,int[] size,*,bool implicit=;expm1=Tensor input;expm1_=Tensor
input;eye=int n,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=|int n,int m,*,ScalarType?
dtype=,Layout? layout=,Device? device=,bool? pin_memory=;feature_alpha_dropout=Tensor input,float p,bool
train;feature_alpha_dropout_=Tensor input,float p,bool train;feature_dropout=Tensor input,float p,bool
train;feature_dropout_=Tensor input,float p,bool train;fill=Tensor input,Scalar value|Tensor input,Tensor
value;fill_=Tensor input,Scalar value|Tensor input,Tensor value;fix=Tensor input;fix_=Tensor input;flatten=Tensor
input,int start_dim=,int end_dim=;flip=Tensor input,int[] dims;fliplr=Tensor input;flipud=Tensor
input;float_power=Scalar input,Tensor exponent|Tensor input,Scalar exponent|Tensor input,Tensor exponent;floor=Tensor
input;floor_=Tensor input;floor_divide=Tensor input,Scalar other|Tensor input,Tensor other;fmax=Tensor input,Tensor
other;fmin=Tensor input,Tensor other;fmod=Tensor input,Scalar other|Tensor input,Tensor other;frac=Tensor
input;frac_=Tensor input;frexp=Tensor input;from_dlpack=object ext_tensor,*,object device=,bool? copy=;full=int[]
size,Scalar fill_value,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=;full_like=Tensor
input,Scalar fill_value,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=,MemoryFormat?
memory_format=;gather=Tensor input,int dim,Tensor index,*,bool sparse_grad=;gcd=Tensor input,Tensor other;gcd_=Tensor
input,Tensor other;ge=Tensor input,Scalar other|Tensor input,Tensor other;geqrf=Tensor input|Tensor input,*,Tensor
a,Tensor tau;ger=Tensor input,Tensor vec2;get_device=Tensor input;gradient=Tensor input,*,Scalar spacing,int[] dim,int
edge_order=|Tensor input,*,Scalar? spacing=,int? dim=,int edge_order=|Tensor input,*,Scalar[] spacing,int? dim=,int
edge_order=|Tensor input,*,Scalar[] spacing,int[] dim,int edge_order=|Tensor input,*,Tensor[] spacing,int? dim=,int
edge_order=|Tensor input,*,Tensor[] spacing,int[] dim,int edge_order=|Tensor input,*,int[] dim,int
edge_order=;greater=Tensor input,Scalar other|Tensor input,Tensor other;greater_equal=Tensor input,Scalar other|Tensor
input,Tensor other;grid_sampler=Tensor input,Tensor grid,int interpolation_mode,int padding_mode,bool
align_corners;grid_sampler_2d=Tensor input,Tensor grid,int interpolation_mode,int padding_mode,bool
align_corners;grid_sampler_3d=Tensor input,Tensor grid,int interpolation_mode,int padding_mode,bool
align_corners;group_norm=Tensor input,int num_groups,Tensor? weight=,Tensor? bias=,float eps=,bool
cudnn_enabled=;gru=Tensor data,Tensor batch_sizes,Tensor hx,Tensor[] params,bool has_biases,int num_layers,float
dropout,bool train,bool bidirectional|Tensor input,Tensor hx,Tensor[] params,bool has_biases,int num_layers,float
dropout,bool train,bool bidirectional,bool batch_first;gru_cell=Tensor input,Tensor hx,Tensor w_ih,Tensor w_hh,Tensor?
b_ih=,Tensor? b_hh=;gt=Tensor input,Scalar other|Tensor input,Tensor other;hamming_window=int
window_length,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=|int window_length,bool
periodic,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=|int window_length,bool periodic,float
alpha,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=|int window_length,bool periodic,float
alpha,float beta,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=;hann_window=int
window_length,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=|int window_length,bool
periodic,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=;hardshrink=Tensor input,Scalar
lambd=;heaviside=Tensor input,Tensor values;hinge_embedding_loss=Tensor input,Tensor target,float margin=,int
reduction=;histc=Tensor input,int bins=,Scalar min=,Scalar max=;histogram=Tensor input,Tensor bins,*,Tensor?
weight=,bool density=|Tensor input,int bins=,*,float[]? range=,Tensor? weight=,bool density=;histogramdd=Tensor
input,Tensor[] bins,float[]? range=,Tensor? weight=,bool density=|Tensor input,int bins,float[]? range=,Tensor?
weight=,bool density=|Tensor input,int[] bins,float[]? range=,Tensor? weight=,bool density=;hsplit=Tensor input,int
sections|Tensor input,int[] indices;hstack=Tensor[] tensors;hypot=Tensor input,Tensor other;i0=Tensor input;i0_=Tensor
input;igamma=Tensor input,Tensor other;igammac=Tensor input,Tensor other;imag=Tensor input;index_add=Tensor input,int
dim,Tensor index,Tensor source,*,Scalar alpha=;index_copy=Tensor input,int dim,Tensor index,Tensor
source;index_fill=Tensor input,int dim,Tensor index,Scalar value|Tensor input,int dim,Tensor index,Tensor
value;index_put=Tensor input,Tensor?[] indices,Tensor values,bool accumulate=|Tensor input,Tensor[] indices,Tensor
values,bool accumulate=;index_put_=Tensor input,Tensor?[] indices,Tensor values,bool accumulate=|Tensor input,Tensor[]
indices,Tensor values,bool accumulate=;index_reduce=Tensor input,int dim,Tensor index,Tensor source,str reduce,*,bool
include_self=;index_select=Tensor input,int dim,Tensor index;inner=Tensor input,Tensor other;instance_norm=Tensor
input,Tensor? weight,Tensor? bias,Tensor? running_mean,Tensor? running_var,bool use_input_stats,float momentum,float
eps,bool cudnn_enabled;inverse=Tensor input;is_complex=Tensor input;is_conj=Tensor input;is_floating_point=Tensor
input;is_inference=Tensor input;is_neg=Tensor input;is_nonzero=Tensor input;is_same_size=Tensor input,Tensor
other;is_signed=Tensor input;is_storage=object obj;is_tensor=object obj;isclose=Tensor input,Tensor other,float
rtol=,float atol=,bool equal_nan=;isfinite=Tensor input;isin=Scalar element,Tensor test_elements,*,bool
assume_unique=,bool invert=|Tensor elements,Scalar test_element,*,bool assume_unique=,bool invert=|Tensor
elements,Tensor test_elements,*,bool assume_unique=,bool invert=;isinf=Tensor input;isnan=Tensor input;isneginf=Tensor
input;isposinf=Tensor input;isreal=Tensor input;istft=Tensor input,int n_fft,int? hop_length=,int? win_length=,Tensor?
window=,bool center=,bool normalized=,bool? onesided=,int? length=,bool return_complex=;kaiser_window=int
window_length,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=|int window_length,bool
periodic,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=|int window_length,bool periodic,float
beta,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=;kl_div=Tensor input,Tensor target,int
reduction=,*,bool log_target=;kron=Tensor input,Tensor other;kthvalue=Tensor input,int k,int dim=,bool keepdim=|Tensor
input,int k,int dim=,bool keepdim=,*,Tensor values,Tensor indices;layer_norm=Tensor input,int[] normalized_shape,Tensor?
weight=,Tensor? bias=,float eps=,bool cudnn_enable=;lcm=Tensor input,Tensor other;lcm_=Tensor input,Tensor
other;ldexp=Tensor input,Tensor other;ldexp_=Tensor input,Tensor other;le=Tensor input,Scalar other|Tensor input,Tensor
other;lerp=Tensor input,Tensor end,Scalar weight|Tensor input,Tensor end,Tensor weight;less=Tensor input,Scalar
other|Tensor input,Tensor other;less_equal=Tensor input,Scalar other|Tensor input,Tensor other;lgamma=Tensor
input;linspace=Scalar start,Scalar end,int steps,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=|Scalar start,Tensor end,int steps,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=|Tensor start,Scalar end,int steps,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=|Tensor start,Tensor end,int steps,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=;lobpcg=Tensor A,int? k=,Tensor? B=,Tensor? X=,int? n=,Tensor? iK=,int? niter=,float? tol=,bool?
largest=,str? method=,object tracker=,object ortho_iparams=,object ortho_fparams=,object ortho_bparams=;log=Tensor
input;log10=Tensor input;log10_=Tensor input;log1p=Tensor input;log1p_=Tensor input;log2=Tensor input;log2_=Tensor
input;log_=Tensor input;log_softmax=Tensor input,int dim,ScalarType? dtype=;logaddexp=Tensor input,Tensor
other;logaddexp2=Tensor input,Tensor other;logcumsumexp=Tensor input,int dim;logdet=Tensor input;logical_and=Tensor
input,Tensor other;logical_not=Tensor input;logical_or=Tensor input,Tensor other;logical_xor=Tensor input,Tensor
other;logit=Tensor input,float? eps=;logit_=Tensor input,float? eps=;logspace=Scalar start,Scalar end,int steps,float
base=,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=|Scalar start,Tensor end,int steps,float
base=,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=|Tensor start,Scalar end,int steps,float
base=,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=|Tensor start,Tensor end,int steps,float
base=,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=;logsumexp=Tensor input,int[1] dim,bool
keepdim=;lstm=Tensor data,Tensor batch_sizes,Tensor[] hx,Tensor[] params,bool has_biases,int num_layers,float
dropout,bool train,bool bidirectional|Tensor input,Tensor[] hx,Tensor[] params,bool has_biases,int num_layers,float
dropout,bool train,bool bidirectional,bool batch_first;lstm_cell=Tensor input,Tensor[] hx,Tensor w_ih,Tensor
w_hh,Tensor? b_ih=,Tensor? b_hh=;lstsq=Tensor input,Tensor A,*,object out=;lt=Tensor input,Scalar other|Tensor
input,Tensor other;lu_solve=Tensor input,Tensor LU_data,Tensor LU_pivots;lu_unpack=Tensor LU_data,Tensor LU_pivots,bool
unpack_data=,bool unpack_pivots=;manual_seed=object seed;margin_ranking_loss=Tensor input1,Tensor input2,Tensor
target,float margin=,int reduction=;masked_fill=Tensor input,Tensor mask,Scalar value|Tensor input,Tensor mask,Tensor
value;masked_scatter=Tensor input,Tensor mask,Tensor source;masked_select=Tensor input,Tensor mask;matmul=Tensor
input,Tensor other;matrix_exp=Tensor input;matrix_power=Tensor input,int n;matrix_rank=Tensor input,object tol=,object
symmetric=,*,object out=;max=Tensor input|Tensor input,Tensor other|Tensor input,int dim,bool keepdim=|Tensor input,int
dim,bool keepdim=,*,Tensor max,Tensor max_values;max_pool1d=Tensor input,int[1] kernel_size,int[1] stride=,int[1]
padding=,int[1] dilation=,bool ceil_mode=;max_pool1d_with_indices=Tensor input,int[1] kernel_size,int[1] stride=,int[1]
padding=,int[1] dilation=,bool ceil_mode=;max_pool2d=Tensor input,int[2] kernel_size,int[2] stride=,int[2]
padding=,int[2] dilation=,bool ceil_mode=;max_pool3d=Tensor input,int[3] kernel_size,int[3] stride=,int[3]
padding=,int[3] dilation=,bool ceil_mode=;maximum=Tensor input,Tensor other;mean=Tensor input,*,ScalarType?
dtype=|Tensor input,int[1]? dim,bool keepdim=,*,ScalarType? dtype=;median=Tensor input|Tensor input,int dim,bool
keepdim=|Tensor input,int dim,bool keepdim=,*,Tensor values,Tensor indices;min=Tensor input|Tensor input,Tensor
other|Tensor input,int dim,bool keepdim=|Tensor input,int dim,bool keepdim=,*,Tensor min,Tensor
min_indices;minimum=Tensor input,Tensor other;mm=Tensor input,Tensor mat2|Tensor input,Tensor mat2,ScalarType
out_dtype;mode=Tensor input,int dim=,bool keepdim=|Tensor input,int dim=,bool keepdim=,*,Tensor values,Tensor
indices;moveaxis=Tensor input,int source,int destination|Tensor input,int[] source,int[] destination;movedim=Tensor
input,int source,int destination|Tensor input,int[] source,int[] destination;msort=Tensor input;mul=Tensor input,Scalar
other|Tensor input,Tensor other;multinomial=Tensor input,int num_samples,bool replacement=,*,Generator?
generator=;multiply=Tensor input,Scalar other|Tensor input,Tensor other;mv=Tensor input,Tensor vec;mvlgamma=Tensor
input,int p;nan_to_num=Tensor input,float? nan=,float? posinf=,float? neginf=;nan_to_num_=Tensor input,float?
nan=,float? posinf=,float? neginf=;nanmean=Tensor input,int[1]? dim=,bool keepdim=,*,ScalarType? dtype=;nanmedian=Tensor
input|Tensor input,int dim,bool keepdim=|Tensor input,int dim,bool keepdim=,*,Tensor values,Tensor
indices;nanquantile=Tensor input,Tensor q,int? dim=,bool keepdim=,*,str interpolation=|Tensor input,float q,int?
dim=,bool keepdim=,*,str interpolation=;nansum=Tensor input,int[1]? dim=,bool keepdim=,*,ScalarType?
dtype=;narrow=Tensor input,int dim,Tensor start,int length|Tensor input,int dim,int start,int length;narrow_copy=Tensor
input,int dim,int start,int length;native_batch_norm=Tensor input,Tensor? weight,Tensor? bias,Tensor?
running_mean,Tensor? running_var,bool training,float momentum,float eps;native_channel_shuffle=Tensor input,int
groups;native_dropout=Tensor input,float p,bool? train;native_group_norm=Tensor input,Tensor? weight,Tensor? bias,int
N,int C,int HxW,int group,float eps;native_layer_norm=Tensor input,int[] normalized_shape,Tensor? weight,Tensor?
bias,float eps;ne=AnyEnumType a,AnyEnumType b|Device a,Device b|Tensor input,Scalar other|Tensor input,Tensor
other|Tensor[] a,Tensor[] b;neg=Tensor input;neg_=Tensor input;negative=Tensor input;negative_=Tensor
input;nextafter=Tensor input,Tensor other;nonzero=Tensor input;nonzero_static=Tensor input,*,int size,int
fill_value=;norm=Tensor input,object p=,object dim=,object keepdim=,object out=,object dtype=;norm_except_dim=Tensor
v,int pow=,int dim=;normal=Tensor mean,Tensor std,*,Generator? generator=|Tensor mean,float std=,*,Generator?
generator=;not_equal=Tensor input,Scalar other|Tensor input,Tensor other;numel=Tensor input;ones=int[]
size,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=;ones_like=Tensor input,*,ScalarType?
dtype=,Layout? layout=,Device? device=,bool? pin_memory=,MemoryFormat? memory_format=;orgqr=Tensor input,Tensor
input2;ormqr=Tensor input,Tensor input2,Tensor input3,bool left=,bool transpose=;outer=Tensor input,Tensor
vec2;pairwise_distance=Tensor x1,Tensor x2,float p=,float eps=,bool keepdim=;pca_lowrank=Tensor A,int? q=,bool
center=,int niter=;pdist=Tensor input,float p=;permute=Tensor input,int[] dims;permute_copy=Tensor input,int[]
dims;pinverse=Tensor input,float rcond=;pixel_shuffle=Tensor input,int upscale_factor;pixel_unshuffle=Tensor input,int
downscale_factor;poisson=Tensor input,Generator? generator=;poisson_nll_loss=Tensor input,Tensor target,bool
log_input,bool full,float eps,int reduction;polar=Tensor abs,Tensor angle;polygamma=int n,Tensor input;positive=Tensor
input;pow=Scalar input,Tensor exponent|Tensor input,Scalar exponent|Tensor input,Tensor exponent;prelu=Tensor
input,Tensor weight;prod=Tensor input,*,ScalarType? dtype=|Tensor input,int dim,bool keepdim=,*,ScalarType?
dtype=;promote_types=ScalarType type1,ScalarType type2;put=Tensor input,Tensor index,Tensor source,bool
accumulate=;qr=Tensor input,bool some=|Tensor input,bool some=,*,Tensor Q,Tensor R;quantile=Tensor input,Tensor q,int?
dim=,bool keepdim=,*,str interpolation=|Tensor input,float q,int? dim=,bool keepdim=,*,str interpolation=;rad2deg=Tensor
input;rad2deg_=Tensor input;rand=int[] size,*,Generator? generator,ScalarType? dtype=,Layout? layout=,Device?
device=,bool? pin_memory=|int[] size,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=;rand_like=Tensor input,*,Generator? generator,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=,MemoryFormat? memory_format=|Tensor input,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=,MemoryFormat? memory_format=;randint=int high,int[] size,*,Generator? generator,ScalarType? dtype=,Layout?
layout=,Device? device=,bool? pin_memory=|int high,int[] size,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=|int low,int high,int[] size,*,Generator? generator,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=|int low,int high,int[] size,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=;randint_like=Tensor input,Tensor high,*,Generator? generator,ScalarType? dtype=,Layout? layout=,Device?
device=,bool? pin_memory=,MemoryFormat? memory_format=|Tensor input,Tensor high,*,ScalarType? dtype=,Layout?
layout=,Device? device=,bool? pin_memory=,MemoryFormat? memory_format=|Tensor input,int high,*,Generator?
generator,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=,MemoryFormat? memory_format=|Tensor
input,int high,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=,MemoryFormat?
memory_format=|Tensor input,int low,int high,*,Generator? generator,ScalarType? dtype=,Layout? layout=,Device?
device=,bool? pin_memory=,MemoryFormat? memory_format=|Tensor input,int low,int high,*,ScalarType? dtype=,Layout?
layout=,Device? device=,bool? pin_memory=,MemoryFormat? memory_format=;randn=int[] size,*,Generator?
generator,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=|int[] size,*,ScalarType? dtype=,Layout?
layout=,Device? device=,bool? pin_memory=;randn_like=Tensor input,*,Generator? generator,ScalarType? dtype=,Layout?
layout=,Device? device=,bool? pin_memory=,MemoryFormat? memory_format=|Tensor input,*,ScalarType? dtype=,Layout?
layout=,Device? device=,bool? pin_memory=,MemoryFormat? memory_format=;randperm=int n,*,Generator? generator,ScalarType?
dtype=,Layout? layout=,Device? device=,bool? pin_memory=|int n,*,ScalarType? dtype=,Layout? layout=,Device?
device=,bool? pin_memory=;range=Scalar start,Scalar end,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=|Scalar start,Scalar end,Scalar step=,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=;ravel=Tensor input;real=Tensor input;reciprocal=Tensor input;reciprocal_=Tensor input;relu=Tensor
input;relu_=Tensor input;remainder=Scalar input,Tensor other|Tensor input,Scalar other|Tensor input,Tensor
other;renorm=Tensor input,Scalar p,int dim,Scalar maxnorm;repeat_interleave=Tensor input,Tensor repeats,int? dim=,*,int?
output_size=|Tensor input,int repeats,int? dim=,*,int? output_size=|Tensor repeats,*,int? output_size=;reshape=Tensor
input,int[] shape;resize_as_=Tensor input,Tensor the_template,*,MemoryFormat? memory_format=;resolve_conj=Tensor
input;resolve_neg=Tensor input;result_type=Scalar scalar,Tensor tensor|Scalar scalar1,Scalar scalar2|Tensor
tensor,Scalar other|Tensor tensor,Tensor other;rms_norm=Tensor input,int[] normalized_shape,Tensor? weight=,float?
eps=;rnn_relu=Tensor data,Tensor batch_sizes,Tensor hx,Tensor[] params,bool has_biases,int num_layers,float dropout,bool
train,bool bidirectional|Tensor input,Tensor hx,Tensor[] params,bool has_biases,int num_layers,float dropout,bool
train,bool bidirectional,bool batch_first;rnn_relu_cell=Tensor input,Tensor hx,Tensor w_ih,Tensor w_hh,Tensor?
b_ih=,Tensor? b_hh=;rnn_tanh=Tensor data,Tensor batch_sizes,Tensor hx,Tensor[] params,bool has_biases,int
num_layers,float dropout,bool train,bool bidirectional|Tensor input,Tensor hx,Tensor[] params,bool has_biases,int
num_layers,float dropout,bool train,bool bidirectional,bool batch_first;rnn_tanh_cell=Tensor input,Tensor hx,Tensor
w_ih,Tensor w_hh,Tensor? b_ih=,Tensor? b_hh=;roll=Tensor input,int[1] shifts,int[1] dims=;rot90=Tensor input,int
k=,int[] dims=;round=Tensor input|Tensor input,*,int decimals;round_=Tensor input|Tensor input,*,int
decimals;row_stack=Tensor[] tensors;rrelu=Tensor input,Scalar lower=,Scalar upper=,bool training=,Generator?
generator=;rrelu_=Tensor input,Scalar lower=,Scalar upper=,bool training=,Generator? generator=;rsqrt=Tensor
input;rsqrt_=Tensor input;rsub=Tensor input,Scalar other,Scalar alpha=|Tensor input,Tensor other,*,Scalar
alpha=;scalar_tensor=Scalar s,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=;scatter=Tensor
input,int dim,Tensor index,Scalar value|Tensor input,int dim,Tensor index,Scalar value,*,str reduce|Tensor input,int
dim,Tensor index,Tensor src|Tensor input,int dim,Tensor index,Tensor src,*,str reduce;scatter_add=Tensor input,int
dim,Tensor index,Tensor src;scatter_reduce=Tensor input,int dim,Tensor index,Tensor src,str reduce,*,bool
include_self=;searchsorted=Tensor sorted_sequence,Scalar input,*,bool out_int32=,bool right=,str? side=,Tensor?
sorter=|Tensor sorted_sequence,Tensor input,*,bool out_int32=,bool right=,str? side=,Tensor?
sorter=;segment_reduce=Tensor data,str reduce,*,Tensor? lengths=,Tensor? indices=,Tensor? offsets=,int axis=,bool
unsafe=,Scalar? initial=;select=Tensor input,int dim,int index;select_copy=Tensor input,int dim,int
index;select_scatter=Tensor input,Tensor src,int dim,int index;selu=Tensor input;selu_=Tensor
input;set_default_device=object device;set_default_dtype=ScalarType d;set_default_tensor_type=object
t;set_deterministic_debug_mode=object debug_mode;set_float32_matmul_precision=str precision;set_printoptions=object
precision=,object threshold=,object edgeitems=,object linewidth=,object profile=,object sci_mode=;set_warn_always=bool
b;sgn=Tensor input;sigmoid=Tensor input;sigmoid_=Tensor input;sign=Tensor input;signbit=Tensor input;sin=Tensor
input;sin_=Tensor input;sinc=Tensor input;sinc_=Tensor input;sinh=Tensor input;sinh_=Tensor input;slice_copy=Tensor
input,int dim=,int? start=,int? end=,int step=;slice_scatter=Tensor input,Tensor src,int dim=,int? start=,int? end=,int
step=;slogdet=Tensor input;softmax=Tensor input,int dim,ScalarType? dtype=;solve=Tensor input,Tensor A,*,object
out=;sort=Tensor input,*,bool? stable,int dim=,bool descending=|Tensor input,*,bool? stable,int dim=,bool
descending=,Tensor values,Tensor indices|Tensor input,int dim=,bool descending=|Tensor input,int dim=,bool
descending=,*,Tensor values,Tensor indices|Tensor[] input,bool reverse=;split=Tensor tensor,object
split_size_or_sections,int dim=;split_copy=Tensor input,int split_size,int dim=;split_with_sizes=Tensor input,int[]
split_sizes,int dim=;split_with_sizes_copy=Tensor input,int[] split_sizes,int dim=;sqrt=Tensor input;sqrt_=Tensor
input;square=Tensor input;square_=Tensor input;squeeze=Tensor input|Tensor input,int dim|Tensor input,int[]
dim;squeeze_copy=Tensor input|Tensor input,int dim|Tensor input,int[] dim;stack=Tensor[] tensors,int dim=;std=Tensor
input,bool unbiased=|Tensor input,int[1]? dim,bool unbiased=,bool keepdim=|Tensor input,int[1]? dim=,*,Scalar?
correction=,bool keepdim=;std_mean=Tensor input,bool unbiased=|Tensor input,int[1]? dim,bool unbiased=,bool
keepdim=|Tensor input,int[1]? dim=,*,Scalar? correction=,bool keepdim=;stft=Tensor input,int n_fft,int? hop_length=,int?
win_length=,Tensor? window=,bool center=,str pad_mode=,bool normalized=,bool? onesided=,bool? return_complex=,bool?
align_to_window=;sub=Tensor input,Scalar other,Scalar alpha=|Tensor input,Tensor other,*,Scalar alpha=;subtract=Tensor
input,Scalar other,Scalar alpha=|Tensor input,Tensor other,*,Scalar alpha=;sum=Tensor input,*,ScalarType? dtype=|Tensor
input,int[1]? dim,bool keepdim=,*,ScalarType? dtype=;svd=Tensor input,bool some=,bool compute_uv=|Tensor input,bool
some=,bool compute_uv=,*,Tensor U,Tensor S,Tensor V;svd_lowrank=Tensor A,int? q=,int? niter=,Tensor? M=;swapaxes=Tensor
input,int axis0,int axis1;swapdims=Tensor input,int dim0,int dim1;symeig=Tensor input,object eigenvectors=,object
upper=,*,object out=;t=Tensor input;t_copy=Tensor input;take=Tensor input,Tensor index;take_along_dim=Tensor
input,Tensor indices,int? dim=;tan=Tensor input;tan_=Tensor input;tanh=Tensor input;tanh_=Tensor input;tensor=int
t,*,ScalarType? dtype=,Device? device=,bool requires_grad=;tensor_split=Tensor input,Tensor
tensor_indices_or_sections,int dim=|Tensor input,int sections,int dim=|Tensor input,int[] indices,int
dim=;tensordot=object a,object b,object dims=,Tensor? out=;threshold=Tensor input,Scalar threshold,Scalar
value;threshold_=Tensor input,Scalar threshold,Scalar value;tile=Tensor input,int[] dims;topk=Tensor input,int k,int
dim=,bool largest=,bool sorted=|Tensor input,int k,int dim=,bool largest=,bool sorted=,*,Tensor values,Tensor
indices;trace=Tensor input;transpose=Tensor input,int dim0,int dim1;transpose_copy=Tensor input,int dim0,int
dim1;trapezoid=Tensor y,*,Scalar dx=,int dim=|Tensor y,Tensor x,*,int dim=;trapz=Tensor y,*,float dx=,int dim=|Tensor
y,Tensor x,*,int dim=;triangular_solve=Tensor input,Tensor A,bool upper=,bool transpose=,bool unitriangular=|Tensor
input,Tensor A,bool upper=,bool transpose=,bool unitriangular=,*,Tensor X,Tensor M;tril=Tensor input,int
diagonal=;tril_indices=int row,int col,int offset=,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=;triplet_margin_loss=Tensor anchor,Tensor positive,Tensor negative,float margin=,float p=,float eps=,bool
swap=,int reduction=;triu=Tensor input,int diagonal=;triu_indices=int row,int col,int offset=,*,ScalarType?
dtype=,Layout? layout=,Device? device=,bool? pin_memory=;true_divide=Tensor input,Scalar other|Tensor input,Tensor
other;trunc=Tensor input;trunc_=Tensor input;typename=object obj;unbind=Tensor input,int dim=;unbind_copy=Tensor
input,int dim=;unflatten=Tensor input,int dim,int[] sizes;unfold_copy=Tensor input,int dimension,int size,int
step;unique_consecutive=Tensor input,bool return_inverse=,bool return_counts=,int? dim=;unravel_index=Tensor
indices,object shape;unsafe_chunk=Tensor input,int chunks,int dim=;unsafe_split=Tensor input,int split_size,int
dim=;unsafe_split_with_sizes=Tensor input,int[] split_sizes,int dim=;unsqueeze=Tensor input,int
dim;unsqueeze_copy=Tensor input,int dim;use_deterministic_algorithms=bool mode,*,bool warn_only=;vander=Tensor x,int?
N=,bool increasing=;var=Tensor input,bool unbiased=|Tensor input,int[1]? dim,bool unbiased=,bool keepdim=|Tensor
input,int[1]? dim=,*,Scalar? correction=,bool keepdim=;var_mean=Tensor input,bool unbiased=|Tensor input,int[1]?
dim,bool unbiased=,bool keepdim=|Tensor input,int[1]? dim=,*,Scalar? correction=,bool keepdim=;vdot=Tensor input,Tensor
other;view_as_complex=Tensor input;view_as_complex_copy=Tensor input;view_as_real=Tensor input;view_as_real_copy=Tensor
input;view_copy=Tensor input,ScalarType dtype|Tensor input,int[] size;vmap=object func,object in_dims=,object
out_dims=,str randomness=,*,int? chunk_size=;vsplit=Tensor input,int sections|Tensor input,int[] indices;vstack=Tensor[]
tensors;where=Tensor condition|Tensor condition,Scalar input,Scalar other|Tensor condition,Scalar input,Tensor
other|Tensor condition,Tensor input,Scalar other|Tensor condition,Tensor input,Tensor other;xlogy=Scalar input,Tensor
other|Tensor input,Scalar other|Tensor input,Tensor other;xlogy_=Tensor input,Scalar other|Tensor input,Tensor
other;zero_=Tensor input;zeros=int[] size,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool?
pin_memory=;zeros_like=Tensor input,*,ScalarType? dtype=,Layout? layout=,Device? device=,bool? pin_memory=,MemoryFormat?
memory_format=
"""
