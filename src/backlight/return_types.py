"""PyTorch's `torch.return_types`: the named tuples that ops with several outputs return."""

import collections


def _named(name: str, *fields: str) -> type:
    plain = collections.namedtuple(name, fields, module=__name__)

    def of_sequence(cls, *given, **named):
        """Make one of a sequence of its fields, as PyTorch does, or of the fields themselves."""
        if len(given) == 1 and not named and isinstance(given[0], (tuple, list)):
            given = given[0]
        return plain.__new__(cls, *given, **named)

    made = type(name, (plain,), {"__new__": of_sequence, "__slots__": (), "__module__": __name__})
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
histogram = _named("histogram", "hist", "bin_edges")
histogramdd = _named("histogramdd", "hist", "bin_edges")
frexp = _named("frexp", "mantissa", "exponent")
linalg_cholesky_ex = _named("linalg_cholesky_ex", "L", "info")
linalg_eig = _named("linalg_eig", "eigenvalues", "eigenvectors")
linalg_eigh = _named("linalg_eigh", "eigenvalues", "eigenvectors")
linalg_inv_ex = _named("linalg_inv_ex", "inverse", "info")
linalg_ldl_factor = _named("linalg_ldl_factor", "LD", "pivots")
linalg_ldl_factor_ex = _named("linalg_ldl_factor_ex", "LD", "pivots", "info")
linalg_lstsq = _named("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
linalg_lu = _named("linalg_lu", "P", "L", "U")
linalg_lu_factor = _named("linalg_lu_factor", "LU", "pivots")
linalg_lu_factor_ex = _named("linalg_lu_factor_ex", "LU", "pivots", "info")
linalg_qr = _named("linalg_qr", "Q", "R")
linalg_slogdet = _named("linalg_slogdet", "sign", "logabsdet")
linalg_solve_ex = _named("linalg_solve_ex", "result", "info")
linalg_svd = _named("linalg_svd", "U", "S", "Vh")
lu_unpack = _named("lu_unpack", "P", "L", "U")
_lu_with_info = _named("_lu_with_info", "LU", "pivots", "info")
qr = _named("qr", "Q", "R")
slogdet = _named("slogdet", "sign", "logabsdet")
svd = _named("svd", "U", "S", "V")
triangular_solve = _named("triangular_solve", "solution", "cloned_coefficient")
geqrf = _named("geqrf", "a", "tau")


# PyTorch has a type of its own for calls with `out`; here a call returns the same with or without.
_WITH_OUT = """
aminmax cummax cummin frexp geqrf histogram kthvalue linalg_cholesky_ex linalg_eig linalg_eigh linalg_inv_ex
linalg_ldl_factor linalg_ldl_factor_ex linalg_lstsq linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_qr
linalg_slogdet linalg_solve_ex linalg_svd lu_unpack max median min mode nanmedian qr slogdet sort svd topk
triangular_solve
"""
globals().update({f"{name}_out": globals()[name] for name in _WITH_OUT.split()})
