# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A job as a VRT: bands taken as they are, normalised differences by the pixel function norm_diff, Gaussians by a filtered source.
GDAL's expressions need muparser or ExprTk, with which neither Debian's GDAL nor rasterio's wheel is built."""
import re


def size_of(job):
    try:
        import rasterio
        with rasterio.open(job.source) as d:
            return d.width, d.height, d.transform.to_gdal(), d.crs.to_wkt()
    except ImportError:
        from osgeo import gdal
        d = gdal.Open(job.source)
        return d.RasterXSize, d.RasterYSize, d.GetGeoTransform(), d.GetProjection()


def source(job, name, kind="SimpleSource", more=""):
    return f'<{kind}><SourceFilename relativeToVRT="0">{job.source}</SourceFilename><SourceBand>{job.bands[name]}</SourceBand>{more}</{kind}>'


def band(job, number, formula):
    type_name = job.type.capitalize().replace("Uint", "UInt")
    head = f'<VRTRasterBand dataType="{type_name}" band="{number}"'
    nodata = f"<NoDataValue>{job.nodata}</NoDataValue>"
    if job.gaussian:
        line = " ".join(repr(w) for w in job.weights())
        kernel = f'<Kernel normalized="1"><Size>{job.gaussian}</Size><Coefs>{line}</Coefs></Kernel>'
        return head + f">{nodata}" + source(job, formula, "KernelFilteredSource", kernel) + "</VRTRasterBand>"
    pair = re.fullmatch(r"\((\w+) ?- ?(\w+)\) ?/ ?\(\1 ?\+ ?\2\)", formula)
    if pair:
        return head + f' subClass="VRTDerivedRasterBand"><PixelFunctionType>norm_diff</PixelFunctionType><SourceTransferType>Float32</SourceTransferType>{nodata}' \
            + source(job, pair[1]) + source(job, pair[2]) + "</VRTRasterBand>"
    return head + f">{nodata}" + source(job, formula) + "</VRTRasterBand>"


def text(job):
    width, height, transform, crs = size_of(job)
    bands = "".join(band(job, i, f) for i, f in enumerate(job.outputs.values(), 1))
    wkt = crs.replace("&", "&amp;").replace("<", "&lt;")
    return f'<VRTDataset rasterXSize="{width}" rasterYSize="{height}"><SRS>{wkt}</SRS><GeoTransform>{", ".join(map(repr, transform))}</GeoTransform>{bands}</VRTDataset>'
