"""Tensor's methods for indexing and rearranging, a line each."""

from backlight.ops.elementwise.copying import copy_into
from backlight.ops.elementwise.filling import fill_into, zero_into
from backlight.ops.indexing import gather_scatter, getitem, index_selection, masking, slicing
from backlight.ops.inplace import inplace, inplace_view
from backlight.ops.reduction import histograms
from backlight.ops.shape import expanding, flipping, joining, splitting, striding, triangular
from backlight.ops.shape.resizing import resize_, resize_as_


class IndexMethods:
    """Tensor's methods for indexing and rearranging."""

    __slots__ = ()

    __getitem__ = getitem.get_item
    __setitem__ = getitem.set_item
    index_put = getitem.index_put
    index_put_ = getitem.index_put_

    select = slicing.select
    narrow = slicing.narrow
    narrow_copy = slicing.narrow_copy
    diagonal = slicing.diagonal
    select_scatter = slicing.select_scatter
    slice_scatter = slicing.slice_scatter
    diagonal_scatter = slicing.diagonal_scatter
    unfold = striding.unfold
    as_strided = striding.as_strided
    as_strided_ = inplace_view(striding.as_strided, "as_strided_")
    as_strided_scatter = striding.as_strided_scatter
    resize_ = resize_
    resize_as_ = resize_as_

    split = splitting.split
    split_with_sizes = splitting.split_with_sizes
    chunk = splitting.chunk
    unsafe_split = splitting.unsafe_split
    unsafe_split_with_sizes = splitting.unsafe_split_with_sizes
    unsafe_chunk = splitting.unsafe_chunk
    tensor_split = splitting.tensor_split
    hsplit = splitting.hsplit
    vsplit = splitting.vsplit
    dsplit = splitting.dsplit
    unbind = splitting.unbind

    index_select = index_selection.index_select
    index_add = index_selection.index_add
    index_copy = index_selection.index_copy
    index_fill = index_selection.index_fill
    take = index_selection.take
    put = index_selection.put
    index_add_ = inplace(index_selection.index_add)
    index_copy_ = inplace(index_selection.index_copy)
    index_fill_ = inplace(index_selection.index_fill)
    put_ = inplace(index_selection.put)

    gather = gather_scatter.gather
    scatter = gather_scatter.scatter
    scatter_add = gather_scatter.scatter_add
    scatter_reduce = gather_scatter.scatter_reduce
    index_reduce = gather_scatter.index_reduce
    take_along_dim = gather_scatter.take_along_dim
    scatter_ = inplace(gather_scatter.scatter)
    scatter_add_ = inplace(gather_scatter.scatter_add)
    scatter_reduce_ = inplace(gather_scatter.scatter_reduce)
    index_reduce_ = inplace(gather_scatter.index_reduce)

    masked_fill = masking.masked_fill
    masked_select = masking.masked_select
    masked_scatter = masking.masked_scatter
    masked_fill_ = inplace(masking.masked_fill)
    masked_scatter_ = inplace(masking.masked_scatter)
    nonzero = masking.nonzero
    histogram = histograms.histogram
    nonzero_static = masking.nonzero_static
    argwhere = masking.argwhere

    copy_ = copy_into
    fill_ = fill_into
    zero_ = zero_into
    fill_diagonal_ = striding.fill_diagonal_

    repeat = expanding.repeated
    tile = expanding.tile
    repeat_interleave = expanding.repeat_interleave
    flip = flipping.flip
    fliplr = flipping.fliplr
    flipud = flipping.flipud
    roll = flipping.roll
    rot90 = flipping.rot90

    tril = triangular.tril
    triu = triangular.triu
    diag = triangular.diag
    diag_embed = triangular.diag_embed
    diagflat = triangular.diagflat
    trace = triangular.trace
    tril_ = inplace(triangular.tril)
    triu_ = inplace(triangular.triu)
    combinations = joining.combinations
