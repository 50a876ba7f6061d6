"""Tensor's methods that pick, place and rearrange elements, a line each."""

from backlight.ops import (
    flipping,
    histograms,
    indexing,
    joining,
    masking,
    repeating,
    scattering,
    selecting,
    slicing,
    splitting,
    striding,
    triangles,
)
from backlight.ops.copying import copy_into
from backlight.ops.filling import fill_into, zero_into
from backlight.ops.inplace import inplace, inplace_view
from backlight.ops.resized import resize_, resize_as_


class IndexMethods:
    """The part of Tensor that picks, places and rearranges elements."""

    __slots__ = ()

    __getitem__ = indexing.get_item
    __setitem__ = indexing.set_item
    index_put = indexing.index_put
    index_put_ = indexing.index_put_

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

    index_select = selecting.index_select
    index_add = selecting.index_add
    index_copy = selecting.index_copy
    index_fill = selecting.index_fill
    take = selecting.take
    put = selecting.put
    index_add_ = inplace(selecting.index_add)
    index_copy_ = inplace(selecting.index_copy)
    index_fill_ = inplace(selecting.index_fill)
    put_ = inplace(selecting.put)

    gather = scattering.gather
    scatter = scattering.scatter
    scatter_add = scattering.scatter_add
    scatter_reduce = scattering.scatter_reduce
    index_reduce = scattering.index_reduce
    take_along_dim = scattering.take_along_dim
    scatter_ = inplace(scattering.scatter)
    scatter_add_ = inplace(scattering.scatter_add)
    scatter_reduce_ = inplace(scattering.scatter_reduce)
    index_reduce_ = inplace(scattering.index_reduce)

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

    repeat = repeating.repeated
    tile = repeating.tile
    repeat_interleave = repeating.repeat_interleave
    flip = flipping.flip
    fliplr = flipping.fliplr
    flipud = flipping.flipud
    roll = flipping.roll
    rot90 = flipping.rot90

    tril = triangles.tril
    triu = triangles.triu
    diag = triangles.diag
    diag_embed = triangles.diag_embed
    diagflat = triangles.diagflat
    trace = triangles.trace
    tril_ = inplace(triangles.tril)
    triu_ = inplace(triangles.triu)
    combinations = joining.combinations
