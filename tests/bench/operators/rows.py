# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Measurements in memory: a line is a case of an operator (the label in its descriptor) and, by engine, the expression that does the same. An
expression sees np, planes `a`, `b`, `c` (512 x 512 float32), its footprint helpers `disc`, `line` and `cross`, and of its engine: scipy `nd`, opencv
`cv2`, gdal `gdal`, the dataset `d` of plane a in memory and `dem`, which calls gdaldem with it. Its result has the pixels that are counted. For steps on single pixels,
where loading is a good part of the work, both sides begin with stored samples: `A`, `B`, `C` are planes of UInt16, of which `load` makes reflectance
with NaN for nodata. The functions of written.py are absent in scipy and in OpenCV."""
import collections

Row = collections.namedtuple("Row", "operator case rivals")


def row(operator, case, **rivals):
    return Row(operator, case, rivals)


ROWS = [
    row("scale", "one factor", scipy="load(A) * np.float32(2)"),
    row("index", "NDVI", scipy="((a := load(A)) - (b := load(B))) / (a + b)"),
    row("decibel", "power", scipy="10 * np.log10(load(A))"),
    row("stretch", "percentiles", scipy="np.clip((load(A) - np.float32(0.1)) * np.float32(200), 0, 255)"),
    row("pca", "three bands", scipy="sum((load(P) - np.float32(0.5)) * np.float32(0.6) for P in (A, B, C))"),
    row("change_vector", "magnitude of two", scipy="np.sqrt((load(A) - (b := load(B))) ** 2 + (b - load(C)) ** 2)"),
    row("composite", "median of two", scipy="np.nanmedian(np.stack([load(A), load(B)]), 0)"),
    row("composite", "mean of two", scipy="np.nanmean(np.stack([load(A), load(B)]), 0)"),
    row("mosaic", "the first of two", scipy="np.where(np.isnan(a := load(A)), load(B), a)"),
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
    row("morphology", "dilate cross 15", scipy="nd.grey_dilation(a, footprint=cross(7))", opencv="cv2.dilate(a, cross(7))"),
    row("texture", "mean 15 x 15", scipy="nd.uniform_filter(a, 15)", opencv="cv2.blur(a, (15, 15))"),
    row("texture", "deviation", scipy="np.sqrt(np.maximum(nd.uniform_filter(a * a, 3) - nd.uniform_filter(a, 3) ** 2, 0))",
        opencv="np.sqrt(np.maximum(cv2.blur(a * a, (3, 3)) - cv2.blur(a, (3, 3)) ** 2, 0))"),
    row("texture", "variance 7 x 7", scipy="nd.uniform_filter(a * a, 7) - nd.uniform_filter(a, 7) ** 2", opencv="cv2.blur(a * a, (7, 7)) - cv2.blur(a, (7, 7)) ** 2"),
    row("bilateral", "5 x 5", opencv="cv2.bilateralFilter(a, 5, 50, 2)"),
    row("bilateral", "15 x 15", opencv="cv2.bilateralFilter(a, 15, 0.05, 3)"),
    row("lee", "7 x 7", scipy="(m := nd.uniform_filter(a, 7)) + (a - m) * np.clip(1 - m * m / (nd.uniform_filter(a * a, 7) - m * m), 0, 1)"),
    row("refined_lee", "7 x 7", scipy="refined_lee(a, lambda x: nd.uniform_filter(x, 3), nd.correlate)",
        opencv="refined_lee(a, lambda x: cv2.blur(x, (3, 3)), lambda x, k: cv2.filter2D(x, -1, k))"),
    row("unmix", "both constraints", scipy="unmix([load(A), load(B)], (3, 40), (2, 1))[0]"),
    row("unmix", "0 or more, and what is left", scipy="nnls_rest([load(A)[:64, :64] + 1, load(B)[:64, :64] + 1], (3, 40), (2, 1))"),
    row("multilook", "2 x 2", scipy="a.reshape(256, 2, 256, 2).mean((1, 3))"),
    row("roughness", "3 x 3", gdal="dem('roughness')"),
    row("slope", "degrees", gdal="dem('slope')"),
    row("slope", "zevenbergen-thorne", gdal="dem('slope', alg='ZevenbergenThorne')"),
    row("aspect", "horn", gdal="dem('aspect')"),
    row("hillshade", "from north-west", gdal="dem('hillshade')"),
    row("hillshade", "multidirectional", gdal="dem('hillshade', multiDirectional=True)"),
    row("hillshade", "igor", gdal="dem('hillshade', igor=True)"),
    row("curvature", "total", scipy="nd.laplace(a) * np.float32(-100 / 30**2)", opencv="cv2.Laplacian(a, -1) * np.float32(-100 / 30**2)"),
    row("curvature", "profile, reflected", scipy="profile_curvature(a, 30)"),
    row("tpi", "3 x 3", gdal="dem('TPI')"),
    row("tri", "riley", gdal="dem('TRI', alg='Riley')"),
    row("resample", "half", gdal="gdal.Translate('', d, format='MEM', width=256, height=256, resampleAlg='bilinear')"),
    row("resample", "cubic", gdal="gdal.Translate('', d, format='MEM', width=896, height=896, resampleAlg='cubic')"),
    row("resample", "mode", gdal="gdal.Translate('', d, format='MEM', width=154, height=154, resampleAlg='mode')"),
]
