"""Lookup tables, and bags of embeddings."""

from backlight.dtypes import dtype
from backlight.engine.grad_mode import no_grad
from backlight.nn import functional as F
from backlight.nn import init
from backlight.nn.modules.module import Module, changed_options
from backlight.nn.parameter import Parameter
from backlight.tensor.factories import empty
from backlight.tensor.tensor import Tensor
from backlight.types import Device

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """What both lookups share: a table of rows, from the normal distribution or given, with zeros at `padding_idx`."""

    def _make_rows(self, given: Tensor | None, trained: bool, device: Device, dtype: dtype | None) -> None:
        shape = (self.num_embeddings, self.embedding_dim)
        if given is not None and tuple(given.shape) != shape:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        rows = empty(shape, device=device, dtype=dtype) if given is None else given
        self.weight = Parameter(rows, requires_grad=trained)
        if given is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values from the normal distribution, with zeros at `padding_idx`."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_Table):
    """Look up rows of a trained table by index.

    Shapes: input (…) of integers -> (…, embedding_dim)

    Args:
        num_embeddings: the number of rows.
        embedding_dim: the size of each row.
        padding_idx: a row that is initialised to zeros and gets no gradient.
        max_norm: looked-up rows with a larger norm are rescaled in place.
        norm_type: the order of the norm for `max_norm`.
        scale_grad_by_freq: divide each row's gradient by the number of times it was looked up.
        sparse: the gradient of the rows is a sparse tensor, for `SparseAdam`, `SGD` or `Adagrad`.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Device = None,
        dtype: dtype | None = None,
    ):
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_row(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._make_rows(_weight, not _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        rows_taken = (self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)
        return F.embedding(input, self.weight, *rows_taken)

    def extra_repr(self) -> str:
        changed = changed_options(self, padding_idx=None, max_norm=None, norm_type=2, scale_grad_by_freq=False)
        sizes = f"{self.num_embeddings}, {self.embedding_dim}"
        return ", ".join([sizes, *changed] + ["sparse=True"] * (self.sparse is not False))

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> "Embedding":
        """Make a layer from a matrix of rows, which are trained only if `freeze` is False."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        return cls(rows, columns, *options, _weight=embeddings, _freeze=freeze)


def padding_row(padding_idx: int | None, rows: int, name: str = "Padding_idx") -> int | None:
    """Return the padding row counted from the start; `name`: its name in PyTorch's error."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError(f"{name} must be within num_embeddings; got {padding_idx} for {rows} rows")
    return padding_idx % rows


class EmbeddingBag(_Table):
    """Look up rows of a trained table for each bag of indices, and return their sum, mean or maximum.

    Shapes: input (bags, size), or (n,) with offsets (bags,) -> (bags, embedding_dim)

    Args:
        num_embeddings: the number of rows.
        embedding_dim: the size of each row.
        max_norm: rows taken that are longer than this are shortened in place.
        norm_type: which norm `max_norm` speaks of.
        scale_grad_by_freq: divide each row's gradient by how often the row was taken.
        mode: "sum", "mean" or "max".
        sparse: the gradient of the rows is a sparse tensor, for `SparseAdam`, `SGD` or `Adagrad`.
        include_last_offset: whether offsets end with the length of the input.
        padding_idx: a row that is initialised to zeros and ignored.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Device = None,
        dtype: dtype | None = None,
    ):
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = padding_row(padding_idx, num_embeddings, "padding_idx")
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._make_rows(_weight, True, device, dtype)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """Return one vector for each bag.

        Args:
            offsets: where each bag starts in a 1-D input.
            per_sample_weights: a factor for each index; only with mode "sum".
        """
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        changed = changed_options(self, max_norm=None, norm_type=2, scale_grad_by_freq=False)
        changed += [f"mode={self.mode!r}", *changed_options(self, padding_idx=None)]
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *changed])

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> "EmbeddingBag":
        """Make a layer from a matrix of rows, which are trained only if `freeze` is False."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        options = (max_norm, norm_type, scale_grad_by_freq, mode, sparse)
        made = cls(rows, columns, *options, embeddings, include_last_offset, padding_idx)
        made.weight.requires_grad_(not freeze)
        return made
