"""PyTorch's `torch.return_types`: the named tuples that ops with several outputs return."""

from collections import namedtuple


def _named(name: str, *fields: str) -> type:
    made = namedtuple(name, fields, module=__name__)
    made.__doc__ = f"What `torch.{name}` returns: {' and '.join(fields)}."
    made.__repr__ = _show
    return made


def _show(self) -> str:
    parts = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self))
    return f"torch.return_types.{type(self).__name__}(\n{parts})"


max = _named("max", "values", "indices")
min = _named("min", "values", "indices")
aminmax = _named("aminmax", "min", "max")
cummax = _named("cummax", "values", "indices")
cummin = _named("cummin", "values", "indices")
kthvalue = _named("kthvalue", "values", "indices")
median = _named("median", "values", "indices")
nanmedian = _named("nanmedian", "values", "indices")
mode = _named("mode", "values", "indices")
sort = _named("sort", "values", "indices")
topk = _named("topk", "values", "indices")
frexp = _named("frexp", "mantissa", "exponent")
