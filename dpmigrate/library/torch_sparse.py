"""torch's sparse tensors: products and reductions of them
(https://docs.pytorch.org/docs/stable/sparse.html).

A sparse tensor has the axes of the dense one, and its samples lie along the same of them.
"""

from __future__ import annotations

from dataclasses import replace

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import NONE, Value, const, placement_of
from dpmigrate.library.effects import elementwise, same, unestablished
from dpmigrate.library.products import matmul
from dpmigrate.library.reductions import along, reduce
from dpmigrate.library.sites import Effect, Row, Site, examples, prefixed
from dpmigrate.library.torch_math import both

_DOC = "https://docs.pytorch.org/docs/stable/sparse.html"


def _as(word: str) -> Effect:
    """A product under another name than that of dense matrices."""

    def effect(site: Site) -> Value:
        how = site.get(2, "reduce") if word == "mm" else None
        made = matmul(replace(site, name=f"torch.{word}", arguments=_operands(site, word)))
        if how and how not in (NONE, const("sum")) and placement_of(made).kind is Kind.PARTIAL:
            return site.unknown(f"how {site.word} takes the samples together")
        return made

    return effect


def _operands(site: Site, word: str) -> Arguments:
    """The matrices alone: ``reduce`` is no operand."""
    count = (3 if word == "addmm" else 2) - (site.receiver is not None)
    return Arguments(site.arguments.all()[:count])


ROWS = (
    Row(f"torch.sparse.mm {both('smm hspmm')} torch.spmm", _as("mm"), examples("""
torch.sparse.mm(w.to_sparse(), x.t())
torch.sparse.mm(x.to_sparse(), w)
torch.sparse.mm(x.t().to_sparse(), y)
torch.sparse.mm(x.to_sparse(), y.t())
torch.spmm(w.to_sparse(), x.t())
"""), _DOC),
    Row(f"torch.sparse.addmm {both('sspaddmm')}", _as("addmm"), examples("""
torch.sparse.addmm(w, w.to_sparse(), w)
torch.sparse.addmm(x.t(), w.to_sparse(), x.t())
"""), _DOC),
    Row("torch.sparse.sum", reduce("sum", keep=-1), examples("""
torch.sparse.sum(x.to_sparse())
torch.sparse.sum(x.to_sparse(), dim=0).to_dense()
torch.sparse.sum(x.to_sparse(), dim=1).to_dense()
torch.sparse.sum(x.to_sparse(), (0, 1))
"""), _DOC),
    Row("torch.sparse.softmax torch.sparse.log_softmax", along(1), examples("""
torch.sparse.softmax(x.to_sparse(), dim=1).to_dense()
torch.sparse.softmax(x.to_sparse(), 0).to_dense()
"""), _DOC),
    Row(both("to_sparse_csr to_sparse_csc to_sparse_coo"), same,
        ("w.to_sparse_csr().to_dense()", "x.to_sparse_coo().to_dense()"), _DOC),
    Row(both("sparse_mask"), elementwise, ("w.sparse_mask(w.to_sparse()).to_dense()",), _DOC),
    Row(prefixed("torch.sparse.", """
FloatTensor DoubleTensor LongTensor IntTensor HalfTensor BFloat16Tensor
spdiags sampled_addmm
""") + f""" {prefixed("torch.cuda.sparse.", "FloatTensor DoubleTensor LongTensor")}
torch.sparse_coo_tensor torch.sparse_csr_tensor torch.sparse_csc_tensor torch.sparse_bsr_tensor
torch.sparse_bsc_tensor torch.sparse_compressed_tensor
""", unestablished("which samples the elements of a sparse tensor belong to"), examples("""
torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 2)).to_dense()
torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2)).to_dense()
"""), _DOC),
    Row(".crow_indices .col_indices .ccol_indices .row_indices .indices .values",
        unestablished("which samples the elements of a sparse tensor belong to"),
        ("w.to_sparse().values()", "w.to_sparse_csr().col_indices()"), _DOC),
)  # fmt: skip
