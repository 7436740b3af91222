"""Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.build import fourier as transforms
from pdojo.build.operator import array, call, operator

Values = NDArray[Any]


def _complex(x: Values) -> NDArray[np.complex128]:
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0].astype(np.complex128)


def _parts(x: NDArray[np.complex128]) -> Values:
    return np.stack([x.real, x.imag], -1)


@operator(
    transforms.fourier,
    call(array("2 7 1"), 1),
    call(array("2 8 2"), 1),
    call(array("3 5 4 2"), 2, 6),
    call(array("3 5 1"), 1, 4),
    call(array("2 7 1"), 1, onesided=True),
    call(array("2 8 1"), 1, 10, onesided=True),
    call(array("2 7 2"), 1, inverse=True),
    call(array("2 5 2"), 1, inverse=True, onesided=True),
    call(array("2 5 2"), 1, 7, inverse=True, onesided=True),
    call(array("2 1 2"), 1),
    ulps=16,
)
def fourier(
    x: Values, axis: int, length: int | None = None, *, inverse: bool = False, onesided: bool = False
) -> Values:
    """The discrete Fourier transform along an axis."""
    u = _complex(x)
    if inverse and onesided:
        return np.fft.irfft(u, length, axis)[..., None]
    if onesided:
        return _parts(np.fft.rfft(u.real, length, axis))
    return _parts((np.fft.ifft if inverse else np.fft.fft)(u, length, axis))


@operator(
    transforms.short_time_fourier,
    call(array("2 20 1"), 6, 4),
    call(array("1 17 1"), 8, 3, array("8")),
    call(array("1 16 2"), 5, 2, array("5"), onesided=False),
    ulps=16,
)
def short_time_fourier(
    x: Values, size: int, step: int, window: Values | None = None, *, onesided: bool = True
) -> Values:
    """The transforms of frames of a signal."""
    frames = [x[:, k : k + size] for k in range(0, x.shape[1] - size + 1, step)]
    windowed = np.stack(frames, 1) * (1 if window is None else window[:, None])
    return fourier(windowed, 2, size, onesided=onesided)
