# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The rows: product and scene. One line here is a row of the benchmark."""
import dataclasses

BANDS = {"B": 1, "G": 2, "R": 3, "N": 4}
NDVI = {"NDVI": "(N - R)/(N + R)"}
# Indices of the catalogue of `pushbroom indices` whose formula has nothing but bands and whose denominators stay away from 0.
TWENTY = {
    "NDVI": "(N - R)/(N + R)", "GNDVI": "(N - G)/(N + G)", "BNDVI": "(N - B)/(N + B)", "NDWI": "(G - N) / (G + N)", "NGRDI": "(G - R) / (G + R)",
    "NDYI": "(G - B) / (G + B)", "GRNDVI": "(N - (G + R))/(N + (G + R))", "GBNDVI": "(N - (G + B))/(N + (G + B))",
    "ENDVI": "((N + G) - (2 * B)) / ((N + G) + (2 * B))", "NormG": "G/(N + G + R)", "NormR": "R/(N + G + R)", "NormNIR": "N/(N + G + R)",
    "SR": "N/R", "CIG": "(N / G) - 1.0", "DSWI4": "G/R", "DVI": "N - R", "OSAVI": "(N - R) / (N + R + 0.16)", "GOSAVI": "(N - G) / (N + G + 0.16)",
    "RDVI": "(N - R) / ((N + R) ** 0.5)", "NIRv": "((N - R) / (N + R)) * N"}
VEGETATION = {"NDVI": "(N - R)/(N + R)", "EVI": "2.5 * (N - R) / (N + 6 * R - 7.5 * B + 1.0)", "WATER": "(G - N) / (G + N)"}


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    title: str
    outputs: dict  # {band of the product: formula}; a formula that is a band's name takes the band as it is
    bars: tuple  # the ratios to the best rival that are aimed at: of seconds and of CPU seconds; 0: no aim
    type: str = "float32"
    compress: str = "deflate"
    level: int = 0  # level of both sides; 0: pushbroom's default, and rivals at several
    overviews: bool = True
    scale: float = 0  # scale of the bands; 0: stored values
    gaussian: int = 0  # side of the neighbourhood of the one output
    bands: int = 4  # bands of the scene
    tolerance: float = 1e-6  # tolerance of a pixel, relative where its value is above 1
    everything: bool = False  # samples/vegetation.yaml with all products
    shrink: int = 1  # divisor of the scene's side
    scenes: int = 1  # number of scenes; several are small, of this side
    side: int = 0
    service: bool = False  # through the service; else one command
    depends: bool = True  # on how well pixels compress: measured on both kinds of scenes; else on one unless --scenes names both
    polygons: int = 0  # number of polygons whose means are the product, a CSV table

    @property
    def nodata(self):
        return "nan" if self.type == "float32" else 0

    @property
    def unchanged(self):
        return not self.gaussian and all(f in BANDS for f in self.outputs.values())

    @property
    def is_default(self):
        """True if pushbroom chooses how to compress."""
        return self.compresses and not self.level

    @property
    def compresses(self):
        return self.compress != "none" and not self.polygons


SMALL = {"overviews": False, "scenes": 200, "side": 512}
ROWS = {row.name: row for row in (
    Row("ndvi", "NDVI, float32 deflate COG, defaults", NDVI, (2.6, 2.6)),
    Row("ndvi6", "NDVI, float32 deflate COG, level 6", NDVI, (3.5, 3.5), level=6),
    Row("zstd1", "NDVI, float32 zstd COG, level 1", NDVI, (2.2, 2.2), compress="zstd", level=1),
    Row("zstd9", "NDVI, float32 zstd COG, level 9", NDVI, (3.5, 3.5), compress="zstd", level=9),
    Row("plain", "NDVI, uncompressed, no overviews", NDVI, (2.5, 0), compress="none", overviews=False, depends=False),
    Row("plain-ov", "NDVI, uncompressed COG", NDVI, (2.2, 2.2), compress="none", depends=False),
    Row("band", "one uint16 band of four, deflate COG", {"N": "N"}, (2.8, 2.2), type="uint16", tolerance=0),
    Row("band1", "one uint16 band of four, deflate COG, level 1", {"N": "N"}, (2.8, 2.2), type="uint16", level=1, tolerance=0),
    Row("pass1", "a one-band uint16 deflate file as it is, COG", {"B": "B"}, (4.0, 0), type="uint16", bands=1, tolerance=0),
    Row("pass4", "the four-band uint16 deflate scene as it is, COG", {b: b for b in BANDS}, (4.0, 0), type="uint16", tolerance=0),
    Row("gauss3", "Gaussian 3 x 3 of a band, float32 deflate COG", {"R": "R"}, (2.0, 0), gaussian=3, tolerance=1e-5),
    Row("gauss15", "Gaussian 15 x 15 of a band, float32 deflate COG", {"R": "R"}, (2.5, 0), gaussian=15, tolerance=1e-5),
    Row("gauss3-plain", "Gaussian 3 x 3 of a band, uncompressed", {"R": "R"}, (1.8, 1.6), compress="none", overviews=False, gaussian=3, tolerance=1e-5, depends=False),
    Row("gauss15-plain", "Gaussian 15 x 15 of a band, uncompressed", {"R": "R"}, (1.8, 1.6), compress="none", overviews=False, gaussian=15, tolerance=1e-5, depends=False),
    Row("indices", "20 indices, one float32 deflate COG, half the side", TWENTY, (5.0, 5.0), scale=0.0001, tolerance=1e-5, shrink=2),
    Row("vegetation", "samples/vegetation.yaml, all products", VEGETATION, (0, 6.0), scale=0.0001, tolerance=1e-4, everything=True),
    Row("zones", "means of 10,000 polygons, a CSV table", {"R": "R"}, (2.4, 2.4), tolerance=0.02, polygons=10000, depends=False),
    Row("small", "200 scenes of 512 x 512, NDVI, one command", NDVI, (1.5, 0), **SMALL),
    Row("service", "200 scenes of 512 x 512, NDVI, through the service", NDVI, (1.2, 0), service=True, **SMALL),
)}


def pipeline(row, root, polygons=None):
    """pushbroom's configuration of a row, of which everything else stays at its default. polygons: the file of a row that has some."""
    if row.everything:
        return "compute: {device: cpu}\n" + (root / "samples/vegetation.yaml").read_text()
    names = ", ".join(row.outputs)
    step = f"convolve: {{kernel: gaussian, size: {row.gaussian}, bands: [{names}]}}" if row.gaussian else f"index: {{names: [{names}]}}"
    steps = "" if row.unchanged else f"    steps:\n      - {step}\n"
    bands = ", ".join(f"{b}: {n}" for b, n in BANDS.items() if n <= row.bands)
    cog = f"bands: [{names}], type: {row.type}, compress: {row.compress}, overviews: {'average' if row.overviews else 'none'}"
    cog += f", level: {row.level}" if row.level else ""
    cog += "" if row.type == "float32" else f", nodata: {row.nodata}"
    scale = f", scale: {row.scale}" if row.scale else ""
    product = f"zones: {{zones: {polygons}, id: field, bands: [{names}], stats: [mean]}}" if row.polygons else f"cog: {{{cog}}}"
    return f"""compute: {{device: cpu}}
pipelines:
  {row.name}:
    input: {{match: ["*.tif"], bands: {{{bands}}}{scale}}}
{steps}    products:
      - {product}
"""
