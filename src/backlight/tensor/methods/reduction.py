"""Tensor's methods for reductions, scans and sorting, a line each."""

from backlight.ops.inplace import inplace
from backlight.ops.linalg import matrix_norms
from backlight.ops.reduction import extremes, norms, quantiles, reductions, scans, sorting, statistics


class ReductionMethods:
    """Tensor's reductions, scans and sorts."""

    __slots__ = ()

    sum = reductions.sum
    nansum = reductions.nansum
    mean = reductions.mean
    nanmean = reductions.nanmean
    prod = reductions.prod
    all = reductions.all
    any = reductions.any
    count_nonzero = reductions.count_nonzero
    logsumexp = reductions.logsumexp

    max = extremes.max
    min = extremes.min
    amax = extremes.amax
    amin = extremes.amin
    aminmax = extremes.aminmax
    argmax = extremes.argmax
    argmin = extremes.argmin

    var = statistics.var
    std = statistics.std
    median = quantiles.median
    nanmedian = quantiles.nanmedian
    mode = quantiles.mode
    quantile = quantiles.quantile
    nanquantile = quantiles.nanquantile
    cov = statistics.cov
    corrcoef = statistics.corrcoef

    norm = matrix_norms.norm
    dist = norms.dist
    renorm = norms.renorm
    renorm_ = inplace(norms.renorm)

    cumsum = scans.cumsum
    cumprod = scans.cumprod
    cummax = scans.cummax
    cummin = scans.cummin
    logcumsumexp = scans.logcumsumexp
    diff = scans.diff
    cumsum_ = inplace(scans.cumsum)
    cumprod_ = inplace(scans.cumprod)

    sort = sorting.sort
    argsort = sorting.argsort
    msort = sorting.msort
    topk = sorting.topk
    kthvalue = sorting.kthvalue
    unique = sorting.unique
    unique_consecutive = sorting.unique_consecutive
    histc = sorting.histc
    bincount = sorting.bincount
