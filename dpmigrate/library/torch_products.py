"""torch's products of matrices and its Fourier transforms (https://docs.pytorch.org/docs/stable/torch.html)."""

from __future__ import annotations

from dpmigrate.library.effects import batched
from dpmigrate.library.products import einsum, matmul, tensordot
from dpmigrate.library.reductions import along
from dpmigrate.library.sites import Row, examples
from dpmigrate.library.torch_math import both

_DOC = "https://docs.pytorch.org/docs/stable/torch.html"

ROWS = (
    Row(f"""
{both('matmul mm bmm addmm baddbmm mv dot inner vdot addmv')} .__matmul__ .__rmatmul__
""", matmul, examples("""
x @ w
torch.mm(x, w)
w @ x.t()
x.t() @ y
x @ y.t()
x[:, 0] @ y[:, 0]
x[:, None] @ y[:, :, None]
torch.bmm(x[:, None], y[:, :, None])
torch.addmm(w[0], x, w)
x.mv(w[0])
x.mean(0) @ w
x.sum(0) @ x.sum(0)
torch.inner(x, w)
torch.inner(x, y)
torch.cat([x, y]) @ w
x[None] @ w
x @ x.mean(0)
w[None] @ x[:, :, None]
"""), _DOC),
    Row(both("tensordot"), tensordot, ("torch.tensordot(w, w)",), _DOC),
    Row("torch.einsum", einsum, examples("""
torch.einsum('nf,nf->n', x, y)
torch.einsum('nf,fg->ng', x, w)
torch.einsum('nf,ng->fg', x, y)
torch.einsum('nf,mf->nm', x, y)
torch.einsum('fg,nf->gn', w, x)
torch.einsum('f,fg->g', x.mean(0), w)
torch.einsum('...f,fg->...g', x, w)
"""), _DOC),
    Row("""
torch.fft.fft torch.fft.rfft torch.fft.irfft torch.fft.ifft torch.fft.hfft
""", along(2), examples("""
torch.fft.fft(x, dim=1).abs()
torch.fft.fft(x, dim=0).abs()
torch.fft.rfft(x).abs()
"""), "https://docs.pytorch.org/docs/stable/fft.html"),
    Row("""
torch.fft.fft2 torch.fft.ifft2 torch.fft.rfft2 torch.fft.irfft2
""", batched(2), examples("""
torch.fft.fft2(x.view(-1, 2, 2)).abs()
torch.fft.fft2(x).abs()
"""), "https://docs.pytorch.org/docs/stable/fft.html"),
    Row("""
torch.fft.fftn torch.fft.ifftn torch.fft.fftshift torch.fft.ifftshift
""", along(2, None), examples("""
torch.fft.fftn(x, dim=(1,)).abs()
torch.fft.fftn(x).abs()
"""), "https://docs.pytorch.org/docs/stable/fft.html"),
)  # fmt: skip
