# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Operators without a function in scipy and OpenCV, written with them: whole planes at a time, float32."""
import numpy as np


def profile_curvature(a, pixel):
    """Zevenbergen and Thorne, 100 times 1/m; 0 on level ground."""
    p = np.pad(a, 1, "symmetric")
    centre, north, south, west, east = p[1:-1, 1:-1], p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]
    g, h = (east - west) / np.float32(2 * pixel), (north - south) / np.float32(2 * pixel)
    ee, nn = (east + west - 2 * centre) / np.float32(pixel**2), (north + south - 2 * centre) / np.float32(pixel**2)
    en = (p[:-2, 2:] + p[2:, :-2] - p[:-2, :-2] - p[2:, 2:]) / np.float32(4 * pixel**2)
    g2, h2 = g * g, h * h
    steep = g2 + h2
    return np.float32(100) * np.divide(ee * g2 + 2 * en * g * h + nn * h2, steep, out=np.zeros_like(a), where=steep > 0)


def unmix(bands, first, second):
    """Shares of two endmembers that add up to 1 and are 0 or more, least squares: a projection onto the line between them."""
    line = [np.float32(f - s) for f, s in zip(first, second)]
    along = sum((band - np.float32(s)) * d for band, s, d in zip(bands, second, line)) / sum(d * d for d in line)
    share = np.clip(along, 0, 1)
    return share, 1 - share


def nnls_rest(bands, first, second):
    """Rest after non-negative shares of two endmembers, a pixel at a time: scipy.optimize.nnls takes no planes."""
    from scipy.optimize import nnls
    spectra = np.stack([first, second], 1)
    return np.array([nnls(spectra, pixel)[1] for pixel in np.stack(bands, -1).reshape(-1, len(bands))]) / len(bands)**0.5


def halves():
    """The pixels of a window of 7 x 7 on one side of a line through its middle and on it, for 8 directions: kernels of means."""
    y, x = np.mgrid[-3:4, -3:4]
    sides = [side >= 0 for normal in (x, y, x + y, x - y) for side in (normal, -normal)]
    return [side.astype(np.float32) / np.float32(side.sum()) for side in sides]


def refined_lee(a, mean3, correlate, speckle=1.0):
    """Filters 7 x 7 pixels: the edge's direction from nine means of 3 x 3, then Lee's filter with the half of the window on the pixel's side."""
    p = np.pad(mean3(a), 2, "symmetric")
    h, w = a.shape

    def at(j, i):
        return p[2 + j:2 + j + h, 2 + i:2 + i + w]
    pairs = [(at(0, 2), at(0, -2)), (at(2, 0), at(-2, 0)), (at(2, 2), at(-2, -2)), (at(-2, 2), at(2, -2))]
    across = np.argmax(np.stack([np.abs(one - other) for one, other in pairs]), 0)
    nearer = np.choose(across, [np.abs(at(0, 0) - other) < np.abs(at(0, 0) - one) for one, other in pairs])
    half, squares = 2 * across + nearer, a * a
    mean = np.choose(half, [correlate(a, k) for k in halves()])
    variance = np.choose(half, [correlate(squares, k) for k in halves()]) - mean * mean
    c = np.float32(speckle)
    k = np.clip((variance - mean * mean * c) / ((1 + c) * np.maximum(variance, np.float32(1e-12))), 0, None)
    return mean + k * (a - mean)
