# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""What is measured: a line is a case of an operator (the label in its descriptor) and, by engine, the expression that does the same. An expression
sees np, the plane `a` (512 x 512 float32), its footprint helpers `disc` and `line`, and of its engine: scipy `nd`, opencv `cv2`, gdal `gdal` and the
dataset `d` of the plane in memory."""
import collections

Row = collections.namedtuple("Row", "operator case rivals")


def row(operator, case, **rivals):
    return Row(operator, case, rivals)


ROWS = [
    row("scale", "one factor", scipy="a * np.float32(2)"),
    row("convolve", "gaussian", scipy="nd.gaussian_filter(a, 1.1, radius=2)", opencv="cv2.GaussianBlur(a, (5, 5), 1.1)"),
    row("convolve", "gaussian 31", scipy="nd.gaussian_filter(a, 5, radius=15)", opencv="cv2.GaussianBlur(a, (31, 31), 5)"),
    row("convolve", "sobel", scipy="np.hypot(nd.sobel(a, 0), nd.sobel(a, 1))", opencv="cv2.magnitude(cv2.Sobel(a, -1, 1, 0), cv2.Sobel(a, -1, 0, 1))"),
    row("convolve", "laplacian", scipy="nd.laplace(a)", opencv="cv2.Laplacian(a, -1)"),
    row("unsharp", "radius 1", scipy="a + (a - nd.gaussian_filter(a, 1, radius=3))", opencv="cv2.addWeighted(a, 2, cv2.GaussianBlur(a, (7, 7), 1), -1, 0)"),
    row("median", "3 x 3", scipy="nd.median_filter(a, 3)", opencv="cv2.medianBlur(a, 3)"),
    row("median", "5 x 5", scipy="nd.median_filter(a, 5)", opencv="cv2.medianBlur(a, 5)"),
    row("median", "7 x 7", scipy="nd.median_filter(a, 7)"),
    row("median", "7 x 7, 90 %", scipy="nd.percentile_filter(a, 90, 7)"),
    row("median", "15 x 15", scipy="nd.median_filter(a, 15)"),
    row("morphology", "erode 3 x 3", scipy="nd.grey_erosion(a, 3)", opencv="cv2.erode(a, np.ones((3, 3), np.uint8))"),
    row("morphology", "open 7 x 7", scipy="nd.grey_opening(a, 7)", opencv="cv2.morphologyEx(a, cv2.MORPH_OPEN, np.ones((7, 7), np.uint8))"),
    row("morphology", "close disc 9", scipy="nd.grey_closing(a, footprint=disc(4))", opencv="cv2.morphologyEx(a, cv2.MORPH_CLOSE, disc(4))"),
    row("morphology", "gradient disc 31", scipy="nd.morphological_gradient(a, footprint=disc(15))", opencv="cv2.morphologyEx(a, cv2.MORPH_GRADIENT, disc(15))"),
    row("morphology", "tophat line 45", scipy="nd.white_tophat(a, footprint=line(5))", opencv="cv2.morphologyEx(a, cv2.MORPH_TOPHAT, line(5))"),
    row("roughness", "3 x 3", gdal="gdal.DEMProcessing('', d, 'roughness', format='MEM')"),
    row("slope", "degrees", gdal="gdal.DEMProcessing('', d, 'slope', format='MEM')"),
]
