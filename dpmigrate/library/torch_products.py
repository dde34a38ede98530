"""torch's products of matrices and its Fourier transforms (https://docs.pytorch.org/docs/stable/torch.html)."""

from __future__ import annotations

from dpmigrate.execution import derivation
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.values import NONE, NOTHING, Value, const, items, placement_of
from dpmigrate.library.products import distances, einsum, matmul, tensordot
from dpmigrate.library.reductions import along
from dpmigrate.library.shapes import axes_of
from dpmigrate.library.sites import Effect, Row, Site, examples
from dpmigrate.library.torch_math import both

_DOC = "https://docs.pytorch.org/docs/stable/torch.html"


def spectrum_of_images(site: Site) -> Value | None:
    """``torch.fft.fft2(x, s, dim)``: along two axes, the last ones where none are named."""
    if site.get(2, "dim"):
        return along(2)(site)
    inner = Arguments([site.get(0) or NOTHING, NONE, items([const(-2), const(-1)])])
    return along(2)(Site(site.m, site.name, inner, site.node, site.frame))


def parts_of_complex(change: int) -> Effect:
    """``torch.view_as_real(z)``: an axis more at the end, for the real and the imaginary part."""

    def effect(site: Site) -> Value:
        first = site.flat(site.get(0) or ())
        axes = axes_of(first)
        left = axes + change if axes is not None and axes + change >= 0 else None
        return derivation.derived(site.word, placement_of(first), [first], site.node, axes=left, keep_axes=False)

    return effect


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
    Row("torch.cdist", distances, examples("""
torch.cdist(x, y)
torch.cdist(x, w)
torch.cdist(x, w, p=1)
torch.cdist(w, x)
torch.cdist(w, w)
torch.cdist(x.t(), y.t())
torch.cdist(w, x[:4].t())
torch.cdist(x[None], w)
torch.cdist(w, x[None])
torch.cdist(w[None], x[None])
torch.cdist(x[:, None], w)
torch.cdist(x[:, None], w[None])
torch.cdist(w, x[:, None])
torch.cdist(x[:, None], y[:, None])
torch.cdist(x[:, None], w.expand(x.size(0), 4, 4))
torch.cdist(x[:, None], w[None].repeat((x.size(0), 1, 1)))
torch.cdist(x[:, None], y)
torch.cdist(x[:, None], y[None])
torch.cdist(x[None, :, None], y[:, None])
torch.cdist(x, x.mean(0, keepdim=True))
torch.cdist(x1=x.detach(), x2=w).argmin(1)
"""), "https://docs.pytorch.org/docs/stable/generated/torch.cdist.html"),
    Row(both("tensordot"), tensordot, examples("""
torch.tensordot(w, w)
torch.tensordot(x, w, dims=1)
torch.tensordot(x[None], w, 1)
torch.tensordot(x.view(-1, 2, 2), w[:2, :2])
torch.tensordot(x.t(), y, 1)
torch.tensordot(x, x.t(), 1)
torch.tensordot(x, w, dims=([1], [0]))
torch.tensordot(w, x, dims=([1], [1]))
torch.tensordot(x, y, dims=([0], [0]))
torch.tensordot(x, y, dims=([0, 1], [0, 1]))
torch.tensordot(x, y, dims=([1], [1]))
torch.tensordot(x, y, dims=([-1], [-1]))
torch.tensordot(x.view(-1, 2, 2), w[:2, :2], dims=([2, 1], [0, 1]))
torch.tensordot(w, x.t(), 1)
torch.tensordot(x[:, None], x.mean() * w, 1)
"""), _DOC),
    Row("torch.einsum", einsum, examples("""
torch.einsum('nf,nf->n', x, y)
torch.einsum('nf,fg->ng', x, w)
torch.einsum('nf,ng->fg', x, y)
torch.einsum('nf,mf->nm', x, y)
torch.einsum('fg,nf->gn', w, x)
torch.einsum('f,fg->g', x.mean(0), w)
torch.einsum('...f,fg->...g', x, w)
torch.einsum('...bi,bio->...bo', x.view(-1, 2, 2), w.view(2, 2, 4))
torch.einsum('...f,...f->...', x, y)
torch.einsum('...f,n...->f', w, x)
torch.einsum('nf,fg', x, w)
torch.einsum('nf,nf', x, y)
"""), _DOC),
    Row("""
torch.fft.fft torch.fft.rfft torch.fft.irfft torch.fft.ifft torch.fft.hfft torch.fft.ihfft
""", along(2), examples("""
torch.fft.fft(x, dim=1).abs()
torch.fft.fft(x, dim=0).abs()
torch.fft.rfft(x).abs()
torch.fft.ihfft(x).abs()
"""), "https://docs.pytorch.org/docs/stable/fft.html"),
    Row("torch.view_as_real", parts_of_complex(1), ("torch.view_as_real(torch.fft.fft(x))",), _DOC),
    Row("torch.view_as_complex", parts_of_complex(-1), ("torch.view_as_complex(torch.stack([x, x], -1)).abs()",), _DOC),
    Row("""
torch.fft.fft2 torch.fft.ifft2 torch.fft.rfft2 torch.fft.irfft2 torch.fft.hfft2 torch.fft.ihfft2
""", spectrum_of_images, examples("""
torch.fft.fft2(x.view(-1, 2, 2)).abs()
torch.fft.fft2(x).abs()
torch.fft.fft2(x[:, None], dim=(1, 2)).abs()
torch.fft.fft2(x[None], dim=(0, 1)).abs()
torch.fft.rfft2(x.view(-1, 2, 2), dim=(-2, -1)).abs()
torch.fft.fft2(x.view(-1, 1, 2, 2), dim=(-3, -2)).abs()
"""), "https://docs.pytorch.org/docs/stable/fft.html"),
    Row("""
torch.fft.fftn torch.fft.ifftn torch.fft.rfftn torch.fft.irfftn torch.fft.hfftn torch.fft.ihfftn
""", along(2, None), examples("""
torch.fft.fftn(x, dim=(1,)).abs()
torch.fft.fftn(x).abs()
torch.fft.rfftn(x, dim=(1,)).abs()
torch.fft.irfftn(x, dim=(1,)).abs()
torch.fft.fftn(x.view(-1, 2, 2), dim=(-2, -1)).abs()
"""), "https://docs.pytorch.org/docs/stable/fft.html"),
    Row("torch.fft.fftshift torch.fft.ifftshift", along(1, None), examples("""
torch.fft.fftshift(x)
torch.fft.fftshift(x, 1)
torch.fft.fftshift(x.view(-1, 2, 2), dim=(-2, -1))
"""), "https://docs.pytorch.org/docs/stable/fft.html"),
)  # fmt: skip
