#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Products of the programs for arm64, under an emulator, are those of the programs for this machine, byte for byte: scenes of
many layouts and types, each codec that is read and written, chains of + - * / sqrt, neighbourhoods, other grids, reductions.
exp, log and pow are libm's, which promises 2 ULP and not the same bits, so no product here has them."""
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
import pbtest  # noqa: E402
from patience import run_to_end  # noqa: E402

DATA = pbtest.SOURCE / "tests/data"
# The program that computes, which pushbroom would start: the kernel cannot run it for an emulated pushbroom.
EMULATED = [*shlex.split(os.environ.get("PB_EMULATOR", "")), str(pbtest.BIN / "../libexec/pushbroom/pushbroom-compute")]
NATIVE = [os.path.join(os.environ.get("PB_NATIVE_BIN", ""), "pushbroom")]
LANDSAT = "{B: 1, G: 2, R: 3, N: 4, S1: 5, S2: 6}"

# name: scenes, bands, steps, products
CASES = {
    "indices": (["real/landsat7_L7_ETMs_6band.tif", "derived/l7_bigtiff_be_deflate.tif"], LANDSAT,
                ["index: {names: [NDVI, EVI, NDWI]}", 'math: {bands: {X: "sqrt(N / R) + (G - B) / (S1 + 1)", Y: "where(R > N, R * 0.3, 0 / 0)"}}'],
                ["cog: {bands: [NDVI, EVI, NDWI, X, Y], type: float32}", "quicklook: {bands: [R, G, B]}", "statistics: {}"]),
    "neighbours": (["derived/l7_lzw_p2.tif", "derived/l7_int16_zstd_p2.tif"], LANDSAT,
                   ["convolve: {kernel: gaussian, size: 7, bands: {S: N}}", "median: {size: 5, bands: {M: R}}", "texture: {measure: mean, size: 5, bands: {T: G}}",
                    "roughness: {size: 5, bands: {H: B}}"],
                   ["cog: {bands: [S, M, T, H], type: float32, compress: zstd}", "cog: {name: whole, bands: [M, S], type: uint16, nodata: 65535, compress: lzw}"]),
    "grids": (["derived/l7_float32_deflate_p3.tif", "derived/l7_nodata255.tif"], LANDSAT,
              ["resample: {factor: 0.6, method: cubic, bands: [N, R]}", "crop: {window: [5, 7, 40, 33], bands: [N, R]}"],
              ["cog: {bands: [N, R], type: float32}", "cog: {name: bytes, bands: [N], type: uint8, nodata: 0, compress: none}"]),
    "reductions": (["derived/l7_packbits.tif"], LANDSAT,
                   ["stretch: {bands: {P: N}, percentiles: [2, 98]}", "classify: {bands: [N, R, G], classes: 4, rounds: 5, as: C}"],
                   ["cog: {bands: [P, C], type: float32}", "statistics: {}"]),
    "heights": (["real/dem/storml_elev.tif", "real/odd/gdal_float32_LZW_predictor_3.tif", "real/odd/gdal_nan32_nodata.tif"], "{Z: 1}",
                ["convolve: {kernel: box, size: 3, bands: {S: Z}}"], ["cog: {bands: [Z, S], type: float32}", "statistics: {}"]),
    "digits": (["real/odd/gdal_uint32.tif", "real/odd/gdal_float64.tif"], "{Z: 1}", [], ["cog: {bands: [Z]}", "statistics: {}"]),
    "pictures": (["derived/l7_jpeg90_rgb_lossy.tif", "derived/l7_webp_lossless_rgb.tif"], "{R: 1, G: 2, B: 3}", [],
                 ["cog: {bands: [R, G, B], type: uint8, nodata: 0}",
                  "quicklook: {bands: [R, G, B], size: 300}"]),
}


def products(program, scratch, name, case):
    """Digests of the files of every product, by scene and name; their manifests and items have times, and stay out."""
    scenes, bands, steps, kinds = case
    config = scratch / f"{name}.yaml"
    config.write_text("compute: {device: cpu, memory: 256MiB, threads: 2, tile: 64}\npipelines:\n  p:\n    input: {bands: %s}\n" % bands +
                      ("    steps:\n" if steps else "") + "".join(f"      - {s}\n" for s in steps) + "    products:\n" + "".join(f"      - {p}\n" for p in kinds))
    done = run_to_end([*program, "run", "--quiet", "--json", "-c", config, "-o", scratch / "o", *(DATA / s for s in scenes)],
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, (program, name, done.stdout[-2000:], done.stderr)
    made = {}
    for line in done.stdout.splitlines():
        for product in json.loads(line)["products"]:
            path = pathlib.Path(product["path"])
            made[str(path.relative_to(scratch / "o"))] = hashlib.sha256(path.read_bytes()).hexdigest()
    shutil.rmtree(scratch / "o")
    return made


def compare(scratch, name):
    expected, found = (products(program, scratch, name, CASES[name]) for program in (NATIVE, EMULATED))
    assert len(expected) == len(CASES[name][0]) * len(CASES[name][3]), expected
    assert found == expected, {file: (found.get(file), digest) for file, digest in expected.items() if found.get(file) != digest}


def compared(name):
    def test(scratch):
        if not os.path.exists(NATIVE[0]):
            raise pbtest.Skip("PB_NATIVE_BIN names no programs of a build for this machine")
        compare(scratch, name)
    return test


for case in CASES:
    globals()[f"test_{case}"] = compared(case)

if __name__ == "__main__":
    pbtest.main()
