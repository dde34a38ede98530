"""Functions of torch that ordinary programs use less often
(https://docs.pytorch.org/docs/stable/torch.html).
"""

from __future__ import annotations

from dpmigrate.library.effects import (
    batched,
    coupled,
    elementwise,
    filled,
    in_place,
    none,
    operator,
    same,
    unestablished,
    uniform,
)
from dpmigrate.library.factories import counted, literal
from dpmigrate.library.joining import chunk, views
from dpmigrate.library.products import matmul
from dpmigrate.library.reductions import along, compared_rows
from dpmigrate.library.shapes import permute
from dpmigrate.library.sites import Row, examples, prefixed
from dpmigrate.library.slices import (
    broadcast,
    least_axes,
    matrices_normed,
    narrow,
    select,
    signal,
    spectrum,
    split_sizes,
    vectors,
)
from dpmigrate.library.streams import drawing
from dpmigrate.library.torch_math import both

_DOC = "https://docs.pytorch.org/docs/stable/torch.html"
_LINALG = "https://docs.pytorch.org/docs/stable/linalg.html"
_ELEMENT = """
arcsinh arccosh arctanh lcm igamma igammac polygamma mvlgamma rsub celu selu
"""
_SPECIAL = """
gammaln gammainc gammaincc ndtr ndtri psi entr i0e i1 i1e xlog1py zeta erfcx multigammaln
bessel_y0 bessel_y1
"""
ROWS = (
    Row(f"{both(_ELEMENT)} {prefixed('torch.', _SPECIAL)} torch.polar torch.complex .apply_ .map_",
        elementwise, examples("""
torch.arcsinh(x)
torch.special.ndtr(x)
torch.special.entr(x.abs())
torch.selu(x.mean(0))
torch.complex(x, y).abs()
torch.polar(x.abs(), y).abs()
"""), _DOC),
    Row(both("rrelu dropout alpha_dropout feature_dropout feature_alpha_dropout binomial"),
        drawing("torch", elementwise), ("torch.dropout(x, 0.5, False)",), _DOC),
    Row(both("select"), select, examples("""
x.select(1, 0)
x.select(0, 0)
x.select(-1, 2)
x.t().select(0, 1)
x.view(-1, 2, 2).select(-1, 0).sum(1)
torch.select(x, dim=1, index=0)
"""), _DOC),
    Row(both("narrow narrow_copy"), narrow, examples("""
x.narrow(1, 0, 2)
x.narrow(0, 0, 2)
x.narrow(-1, 1, 2)
"""), _DOC),
    Row("torch.broadcast_tensors", broadcast, examples("""
torch.broadcast_tensors(x, w[0])[1]
torch.broadcast_tensors(x, y[:, :1])[0]
torch.broadcast_tensors(x[:, None], y[None])[0]
"""), _DOC),
    Row(both("atleast_1d atleast_2d atleast_3d"), least_axes, examples("""
torch.atleast_1d(x)
torch.atleast_2d(x[:, 0])
torch.atleast_3d(x[:, 0])
torch.atleast_3d(x)
"""), _DOC),
    Row(both("stft"), spectrum, examples("""
torch.stft(x.repeat(1, 4), 4, window=torch.ones(4), return_complex=True).abs()
"""), _DOC),
    Row(both("istft"), signal, examples("""
torch.istft(torch.stft(x.repeat(1, 4), 4, return_complex=True, window=torch.ones(4)), 4)
"""), _DOC),
    Row(both("split_with_sizes unsafe_split_with_sizes"), views(split_sizes), examples("""
x.split_with_sizes([1, 3], 1)[1]
w.split_with_sizes([1, 3])[0]
"""), _DOC),
    Row(both("unsafe_chunk unsafe_split"), views(chunk), ("x.unsafe_chunk(2, 1)[0]",), _DOC),
    Row(both("hsplit vsplit dsplit as_strided index_put index_reduce masked_scatter reinforce"),
        unestablished("which part of the samples is taken"), ("w.hsplit(2)[0]",), _DOC),
    Row(both("block_diag diagflat addr chain_matmul frexp gradient trapezoid trapz vander"),
        coupled, ("torch.block_diag(w, w)", "torch.diagflat(w[0])"), _DOC),
    Row(both("addbmm"), matmul, ("torch.addbmm(w, w[None], w[None])",), _DOC),
    Row(both("""
matrix_power cholesky_inverse cholesky_ex inv_ex
"""), batched(2, square=True), examples("""
w.matrix_power(2)
(x[:, :, None] * x[:, None]).matrix_power(2)
torch.linalg.matrix_power(w, 3)
"""), _LINALG),
    Row(both("lu pinv lu_factor householder_product"), batched(2), examples("""
torch.linalg.pinv(w)
"""), _LINALG),
    Row(prefixed("torch.", """
cholesky_solve lu_solve multi_dot solve_triangular cond tensorsolve tensorinv triangular_solve
"""), unestablished("which samples meet"), ("torch.linalg.multi_dot([w, w, w])",), _LINALG),
    Row("torch.matrix_norm", matrices_normed, examples("""
torch.linalg.matrix_norm(w)
torch.linalg.matrix_norm(x.view(-1, 2, 2))
torch.linalg.matrix_norm(x)
"""), _LINALG),
    Row("torch.vecdot", vectors, examples("""
torch.linalg.vecdot(x, y)
torch.linalg.vecdot(x.t(), y.t())
"""), _LINALG),
    Row("torch.pairwise_distance", compared_rows(True), ("torch.pairwise_distance(x, y)",), _DOC),
    Row("""
torch.fft.fftfreq torch.fft.rfftfreq torch.bartlett_window torch.signal.windows.hamming
torch.signal.windows.hann torch.signal.windows.gaussian torch.signal.windows.kaiser
torch.signal.windows.blackman torch.signal.windows.cosine torch.signal.windows.bartlett
torch.signal.windows.exponential torch.signal.windows.nuttall
""", counted, ("torch.fft.fftfreq(4)", "torch.signal.windows.hann(4)"), _DOC),
    Row("torch.scalar_tensor", literal, ("torch.scalar_tensor(3.0)",), _DOC),
    Row(".as_subclass .ipu .mtia .coalesce .values_copy", same, source=_DOC),
    Row("torch.fill", filled, ("torch.fill(x, 2.0)",), _DOC),
    Row("""
torch.is_autocast_enabled torch.get_autocast_dtype torch.get_autocast_gpu_dtype
torch.get_float32_matmul_precision torch.are_deterministic_algorithms_enabled
torch.promote_types torch.can_cast torch.is_storage torch.is_inference_mode_enabled
torch.is_anomaly_enabled torch.get_num_interop_threads torch.get_default_device
torch.is_warn_always_enabled torch.is_autocast_cpu_enabled torch.get_autocast_cpu_dtype
torch.is_deterministic_algorithms_warn_only_enabled torch.get_deterministic_debug_mode
torch.get_device_module torch.is_distributed torch.layout torch.memory_format torch.storage
torch.iinfo torch.is_conj torch.is_neg torch.is_signed torch.is_same_size torch.get_device
torch.is_vulkan_available torch.compiled_with_cxx11_abi torch.is_autocast_cache_enabled
.is_conj .is_neg .is_signed .is_same_size .is_inference .is_coalesced .sparse_dim .dense_dim
.dim_order .is_set_to .is_distributed .storage_type .const_data_ptr
""", uniform, ("x.is_signed()", "x.is_same_size(x)"), _DOC),
    Row("""
torch.set_autocast_enabled torch.set_autocast_gpu_dtype torch.set_autocast_cache_enabled
torch.set_anomaly_enabled torch.clear_autocast_cache torch.set_deterministic_debug_mode
torch.set_autocast_dtype torch.set_autocast_cpu_enabled torch.set_autocast_cpu_dtype
.record_stream .sparse_resize_
""", none, source=_DOC),
)  # fmt: skip


#: methods that store their result in their receiver, by the function that they store
_CHANGING = {
    "multiply": operator("mul"), "divide": operator("truediv"), "subtract": operator("sub"),
    "true_divide": operator("truediv"), "addmm": matmul, "baddbmm": matmul, "addmv": matmul,
    "addbmm": matmul, "cumprod": along(), "triu": batched(2), "tril": batched(2),
    "swapaxes": permute, "swapdims": permute, "arcsinh": elementwise, "arccosh": elementwise,
    "arctanh": elementwise, "lcm": elementwise, "igamma": elementwise, "polygamma": elementwise,
    "mvlgamma": elementwise,
}  # fmt: skip
CHANGING = tuple(Row(f".{n}_", in_place(e), source=_DOC) for n, e in _CHANGING.items())
ATTRIBUTES = (
    Row("""
<data>.is_cpu <data>.is_meta <data>.is_mps <data>.is_quantized <data>.is_nested <data>.is_xpu
<data>.retains_grad <data>.output_nr <data>.is_sparse_csr <data>.is_mkldnn <data>.is_xla
""", uniform, ("x.is_cpu",), _DOC),
)  # fmt: skip
