# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Measurements from file to file: a line is a step, the scene that it is given (scenes of files.py), and the commands that make the same with
other programs. {0}, {1} are the scene's files, {tmp} is a name for a file of theirs, {cog} the command that makes a COG of it, {out} their product,
{here} this folder, {n} the number of cores and {size} a side of the scene. A row of a table has a product of its own and no step."""
import collections

Row = collections.namedtuple("Row", "name operator scene steps bands type rival commands product")
WARP = "gdalwarp -q -multi -wo NUM_THREADS={n} -wm 500 -r METHOD -t_srs CRS -dstnodata 0 -co TILED=YES {0} {tmp} && {cog}"
DEM = "gdaldem {} {{0}} {{tmp}} -q -compute_edges -co TILED=YES && {{cog}}".format
OTB = "OTB_MAX_RAM_HINT=512 otbcli_Despeckle -in {0} -out {tmp} float -filter "


def row(name, operator, scene, step, rival, commands, bands="[B]", type="float32", product=None):
    return Row(name, operator, scene, step, bands, type, rival, commands, product)


def warp(name, crs, method):
    return row(name, "warp", "band", f'warp: {{crs: "{crs}", method: {method}}}', "gdalwarp -multi", WARP.replace("METHOD", method).replace("CRS", crs), type="uint16")


FILE_ROWS = [
    warp("warp bilinear", "EPSG:3035", "bilinear"),
    warp("warp bilinear, degrees", "EPSG:4326", "bilinear"),
    warp("warp cubic, Web Mercator", "EPSG:3857", "cubic"),
    row("warp average to 20 m", "warp", "band", 'warp: {crs: "EPSG:3035", method: average, pixel: 20}', "gdalwarp -multi",
        WARP.replace("METHOD", "average").replace("CRS", "EPSG:3035 -tr 20 20"), type="uint16"),
    row("warp mode to 20 m", "warp", "classes", 'warp: {crs: "EPSG:3035", method: mode, pixel: 20}', "gdalwarp -multi",
        WARP.replace("METHOD", "mode").replace("CRS", "EPSG:3035 -tr 20 20"), type="uint8"),
    row("half, average", "resample", "band", "resample: {factor: 0.5, method: average}", "gdal_translate -r", "gdal_translate -q -r average -outsize 50% 50% -co TILED=YES {0} {tmp} && {cog}", type="uint16"),
    row("times 1.5, cubic", "resample", "band", "resample: {factor: 1.5, method: cubic}", "gdal_translate -r", "gdal_translate -q -r cubic -outsize 150% 150% -co TILED=YES {0} {tmp} && {cog}", type="uint16"),
    row("a fifth, mode", "resample", "bytes", "resample: {factor: 0.2, method: mode}", "gdal_translate -r", "gdal_translate -q -r mode -outsize 20% 20% -co TILED=YES {0} {tmp} && {cog}", type="uint8"),
    row("two scenes side by side", "mosaic", "pair", "mosaic: {bands: [B], of: [_1, _2]}", "gdalbuildvrt, gdal_translate", "gdalbuildvrt -q {tmp}.vrt {0} {1} && gdal_translate -q {tmp}.vrt {tmp} -co TILED=YES && {cog}", type="uint16"),
    row("four bands, weighted Brovey", "pansharpen", "bundle", "pansharpen: {pan: P, bands: [B, G, R, N]}", "gdal_pansharpen.py", "gdal_pansharpen.py -q -threads {n} -co TILED=YES {0} {1} {tmp} && {cog}", "[B, G, R, N]", "uint16"),
    row("hillshade", "hillshade", "heights", "hillshade: {edge: extrapolate}", "gdaldem", DEM("hillshade"), type="uint8"),
    row("slope", "slope", "heights", "slope: {edge: extrapolate}", "gdaldem", DEM("slope")),
    row("aspect", "aspect", "heights", "aspect: {edge: extrapolate}", "gdaldem", DEM("aspect")),
    row("tri", "tri", "heights", "tri: {edge: extrapolate}", "gdaldem", DEM("TRI -alg Riley")),
    row("Lee 7 x 7", "lee", "radar", "lee: {looks: 4}", "OTB Despeckle", OTB + "kuan -filter.kuan.rad 3 -filter.kuan.nblooks 4 && {cog}"),
    row("Frost 5 x 5", "frost", "radar", "frost: {size: 5}", "OTB Despeckle", OTB + "frost -filter.frost.rad 2 && {cog}"),
    row("Gamma-MAP 7 x 7", "gamma_map", "radar", "gamma_map: {looks: 4}", "OTB Despeckle", OTB + "gammamap -filter.gammamap.rad 3 -filter.gammamap.nblooks 4 && {cog}"),
    row("areas under 25 pixels", "sieve", "classes", "sieve: {bands: [B], size: 25}", "gdal_sieve.py", "gdal_sieve.py -q -st 25 -4 {0} {tmp} && {cog}", type="uint8"),
    row("seven classes", "zones", "zoned", None, "GDAL, numpy", "/usr/bin/python3 {here}/zones_numpy.py {0} {1} {out}", product="zones: {bands: [B], by: CLASS, stats: [min, max, mean, std, sum]}"),
    row("a difference", "math", "bands", 'math: {bands: {B: "(N - R) / (N + R)"}}', "gdal_calc.py",
        "gdal_calc.py --quiet -N {0} --N_band=4 -R {0} --R_band=3 --type=Float32 --co TILED=YES --calc='(N.astype(numpy.float32) - R) / (N.astype(numpy.float32) + R)' --outfile={tmp} && {cog}"),
]
