#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Sidecars: files next to the scene's that input.sidecars lists are read as GDAL reads them, others are reported; with the
service, they are waited for and taken along."""
import errno
import itertools
import json
import os
import shutil
import sys
import zipfile

import numpy as np
from osgeo import gdal, osr

import pbtest

sys.path.insert(0, str(pbtest.SOURCE / "tests/proof"))
import control  # noqa: E402

gdal.UseExceptions()
TRANSFORM = (500000.0, 10.0, 0, 4000000.0, 0, -10.0)


def scene(path, place=True, nodata=None, bands=1):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.arange(40 * 60, dtype=np.uint16).reshape(40, 60) + 1
    out = gdal.GetDriverByName("GTiff").Create(str(path), 60, 40, bands, gdal.GDT_UInt16)
    if place:
        out.SetGeoTransform(TRANSFORM)
        system = osr.SpatialReference()
        system.ImportFromEPSG(32632)
        out.SetProjection(system.ExportToWkt())
    for i in range(bands):
        out.GetRasterBand(i + 1).WriteArray(pixels)
        if nodata is not None:
            out.GetRasterBand(i + 1).SetNoDataValue(nodata)
    del out
    return pixels


def mask(path, shape=(40, 60)):
    """GDAL's own external mask: the left third is invalid."""
    valid = np.full(shape, 255, np.uint8)
    valid[:, :shape[1] // 3] = 0
    out = gdal.GetDriverByName("GTiff").Create(f"{path}.msk", shape[1], shape[0], 1, gdal.GDT_Byte)
    out.SetMetadataItem("INTERNAL_MASK_FLAGS_1", "2")
    out.GetRasterBand(1).WriteArray(valid)
    del out
    return valid > 0


def config(scratch, sidecars=None, more="", match='match: ["*.tif"]', limits=""):
    path = scratch / "c.yaml"
    lines = [match] + ([f"sidecars: {sidecars}"] if sidecars else []) + ([more] if more else [])
    path.write_text(f"""{limits}
pipelines:
  p:
    input:
{''.join(f'      {line}' + chr(10) for line in lines)}
    products:
      - cog: {{type: float32, overviews: none}}
      - stac: {{datetime: file-time}}
""")
    return path


def compute(scratch, path, *more, code=0):
    done = pbtest.run("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", "--existing", "version", *more, path, code=None)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout.splitlines()[0])


def product(report, kind="cog"):
    return [p["path"] for p in report["products"] if p["type"] == kind][0]


def pixels(report):
    return gdal.Open(product(report)).ReadAsArray()


def test_an_external_mask_counts_when_it_is_listed(scratch):
    values = scene(scratch / "in/x.tif")
    valid = mask(scratch / "in/x.tif")
    config(scratch)
    assert np.isfinite(pixels(compute(scratch, scratch / "in/x.tif"))).all()
    config(scratch, "[.msk]")
    report = compute(scratch, scratch / "in/x.tif")
    got = pixels(report)
    assert np.array_equal(np.isfinite(got), valid) and np.array_equal(got[valid], values[valid].astype(np.float32))
    assert report["report"]["sidecars"] == {"read": ["x.tif.msk"], "unused": []}


def test_path_without_directory_has_its_sidecars_too(scratch):
    scene(scratch / "x.tif")
    valid = mask(scratch / "x.tif")
    config(scratch, "[.msk]")
    for given in ("x.tif", "./x.tif"):
        done = pbtest.run("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", given, cwd=scratch)
        assert np.array_equal(np.isfinite(pixels(json.loads(done.stdout))), valid), given


def test_named_sidecars_are_part_of_their_input(scratch):
    scene(scratch / "in/x.tif")
    valid = mask(scratch / "in/x.tif")
    (scratch / "in/x.tfw").write_text("1\n0\n0\n-1\n0\n0\n")
    config(scratch, "[.msk]")
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", *sorted(scratch.glob("in/*")))
    assert done["input"] == str(scratch / "in/x.tif") and np.array_equal(np.isfinite(pixels(done)), valid), done
    (scratch / "in/y.json").write_text("{}")
    config(scratch, more='metadata: "{scene}.json"')
    lost = compute(scratch, scratch / "in/y.json", code=1)["error"]
    assert (lost["code"], lost["message"]) == ("input.incomplete", f"{scratch}/in/y.json: the file that it is metadata of is missing"), lost


def test_mask_counts_if_an_optional_file_is_missing(scratch):
    scene(scratch / "in/a_1.tif")
    valid = mask(scratch / "in/a_1.tif")
    config(scratch, "[.msk]", match="group: '(?<scene>a)_\\d\\.tif'", more="files: {X: a_1.tif, Y: {match: a_2.tif, optional: true}}")
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", scratch / "in/a_1.tif")
    got = pixels(done)
    assert np.array_equal(np.isfinite(got[0]), valid) and np.isnan(got[1]).all()
    config(scratch, "[.msk]", match="group: '(?<scene>a)_\\d\\.tif'",
           more="files: {X: a_1.tif, Y: {match: a_2.tif, optional: true}}\n    steps: [math: {bands: {Z: X + 0}}]")
    text = (scratch / "c.yaml").read_text().replace("cog: {type", "cog: {bands: [Z], type")
    (scratch / "c.yaml").write_text(text)
    done, = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out2", scratch / "in/a_1.tif")
    assert np.array_equal(np.isfinite(pixels(done)), valid), "Y is not even wanted"


def test_what_is_not_listed_is_told(scratch):
    scene(scratch / "in/x.tif")
    mask(scratch / "in/x.tif")
    (scratch / "in/x.tfw").write_text("1\n0\n0\n-1\n0\n0\n")
    (scratch / "in/y.tfw").write_text("another scene's")
    config(scratch, "[.msk]")
    report = compute(scratch, scratch / "in/x.tif")
    assert report["report"]["sidecars"] == {"read": ["x.tif.msk"], "unused": ["x.tfw"]}, report["report"]
    item = json.loads(open(product(report, "stac")).read())
    assert "Not read, as input.sidecars does not list them: x.tfw. " in item["properties"]["processing:lineage"]
    assert any(file["file"] == "x.tif.msk" for file in item["properties"]["pushbroom:inputs"]), item["properties"]
    said = pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out2", scratch / "in/x.tif").stdout
    assert "sidecars   x.tif.msk\n" in said and "x.tfw, not read: input.sidecars does not list it" in said, said


def test_a_world_file_places_a_scene_that_has_no_place(scratch):
    scene(scratch / "in/x.tif", place=False)
    (scratch / "in/x.tfw").write_text("10.0\n0\n0\n-10.0\n500005.0\n3999995.0\n")
    config(scratch, "[.tfw]")
    assert gdal.Open(product(compute(scratch, scratch / "in/x.tif"))).GetGeoTransform() == TRANSFORM
    config(scratch)
    assert gdal.Open(product(compute(scratch, scratch / "in/x.tif"))).GetGeoTransform(can_return_null=True) is None


def test_system_of_a_prj_is_that_of_every_step(scratch):
    """Products of a scene with .tfw and .prj are those of the scene with GeoKeys."""
    steps = {"metres": ("warp: {crs: 'EPSG:32633', pixel: 20}", 32632, TRANSFORM),
             "degrees": ("warp: {crs: 'EPSG:4326'}", 32632, TRANSFORM),
             "same": ("warp: {crs: 'EPSG:32632', pixel: 20}", 32632, TRANSFORM),
             "from degrees": ("warp: {crs: 'EPSG:3857'}", 4326, (10.0, 0.001, 0, 50.0, 0, -0.001)),
             "part": ("crop: {window: [10, 5, 30, 20]}, warp: {crs: 'EPSG:32633'}", 32632, TRANSFORM),
             "crop": ("crop: {bounds: [9.0011, 36.140, 9.005, 36.144], crs: 'EPSG:4326'}", 32632, TRANSFORM)}
    for name, (step, epsg, transform) in steps.items():
        config(scratch, "[.tfw, .prj]")
        text = (scratch / "c.yaml").read_text().replace("    products:", f"    steps: [{step}]\n    products:")
        (scratch / "c.yaml").write_text(text)
        made = []
        for folder in ("keys", "files"):
            path = scratch / name / folder / "x.tif"
            scene(path, place=False)
            system = osr.SpatialReference()
            system.ImportFromEPSG(epsg)
            if folder == "keys":
                file = gdal.Open(str(path), gdal.GA_Update)
                file.SetGeoTransform(transform)
                file.SetProjection(system.ExportToWkt())
                del file
            else:
                world = (transform[1], 0, 0, transform[5], transform[0] + transform[1] / 2, transform[3] + transform[5] / 2)
                path.with_suffix(".tfw").write_text("".join(f"{v!r}\n" for v in world))
                path.with_suffix(".prj").write_text(system.ExportToWkt(["FORMAT=WKT1_ESRI"]))
            made.append(gdal.Open(product(compute(scratch, path))))
        keys, files = made
        assert np.allclose(files.GetGeoTransform(), keys.GetGeoTransform(), rtol=1e-12), (name, files.GetGeoTransform(), keys.GetGeoTransform())
        assert files.GetSpatialRef().IsSame(keys.GetSpatialRef()), name
        assert np.array_equal(files.ReadAsArray(), keys.ReadAsArray(), equal_nan=True) and np.isfinite(keys.ReadAsArray()).any(), name


def test_zones_are_placed_by_the_system_of_a_prj(scratch):
    scene(scratch / "in/x.tif", place=False)
    (scratch / "in/x.tfw").write_text("10.0\n0\n0\n-10.0\n500005.0\n3999995.0\n")
    system = osr.SpatialReference()
    system.ImportFromEPSG(32632)
    (scratch / "in/x.prj").write_text(system.ExportToWkt(["FORMAT=WKT1_ESRI"]))
    lonlat = osr.SpatialReference()
    lonlat.ImportFromEPSG(4326)
    lonlat.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    to = osr.CoordinateTransformation(system, lonlat)
    ring = [to.TransformPoint(500000 + x, 4000000 - y)[:2] for x, y in ((102, 52), (302, 52), (302, 252), (102, 252), (102, 52))]
    (scratch / "zones.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [
        {"type": "Feature", "properties": {"id": 1}, "geometry": {"type": "Polygon", "coordinates": [ring]}}]}))
    config(scratch, "[.tfw, .prj]")
    text = (scratch / "c.yaml").read_text()
    (scratch / "c.yaml").write_text(text + "      - zones: {zones: zones.geojson, id: id, stats: [valid, mean], format: json}\n")
    zone, = json.loads(open(product(compute(scratch, scratch / "in/x.tif"), "zones")).read())["zones"]
    expected = (np.arange(40 * 60).reshape(40, 60) + 1)[5:25, 10:30]
    assert "400" in json.dumps(zone) and str(expected.mean()) in json.dumps(zone), (zone, expected.mean())


def test_prj_that_cannot_be_read_is_not_called_damaged(scratch):
    """The storage fails; the job is tried again then."""
    if pbtest.SANITIZED:
        raise pbtest.Skip("the sanitizer wants to be the first library")
    scene(scratch / "in/x.tif", place=False)
    (scratch / "in/x.tfw").write_text("10.0\n0\n0\n-10.0\n500005.0\n3999995.0\n")
    (scratch / "in/x.prj").write_text("not read")
    config(scratch, "[.tfw, .prj]")
    faults = control.Faults(scratch / "faults", pbtest.BIN / "pbfault.so")
    rule = faults.rule("pread", control.FAIL_ALL, error=errno.EIO, path="x.prj")
    done = pbtest.run("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", scratch / "in/x.tif", code=None,
                      env=faults.environment())
    error = json.loads(done.stdout.splitlines()[0])["error"]
    assert error["code"] == "input.io" and faults.counts(rule)[1] > 0, (error, faults.counts(rule))


def test_aux_xml_gives_what_the_file_does_not_say(scratch):
    values = scene(scratch / "in/x.tif", place=False)
    (scratch / "in/x.tif.aux.xml").write_text(
        "<PAMDataset><SRS>EPSG:32633</SRS><GeoTransform>1.0,2.0,0,3.0,0,-2.0</GeoTransform>"
        "<PAMRasterBand band='1'><Description>red</Description><NoDataValue>7</NoDataValue></PAMRasterBand></PAMDataset>")
    config(scratch, "[.aux.xml]")
    made = gdal.Open(product(compute(scratch, scratch / "in/x.tif")))
    assert made.GetGeoTransform() == (1.0, 2.0, 0, 3.0, 0, -2.0) and "UTM zone 33N" in made.GetProjection()
    assert made.GetRasterBand(1).GetDescription() in ("red", "B1")
    assert np.array_equal(np.isnan(made.ReadAsArray()), values == 7)


def test_rpcs_in_a_text_file_reach_the_product(scratch):
    scene(scratch / "in/x.tif", place=False)
    keys = ["LINE_OFF: 20", "SAMP_OFF: 30", "LAT_OFF: 40", "LONG_OFF: 10", "HEIGHT_OFF: 100", "LINE_SCALE: 20", "SAMP_SCALE: 30",
            "LAT_SCALE: 0.1", "LONG_SCALE: 0.1", "HEIGHT_SCALE: 500"]
    for name, row in (("LINE_NUM_COEFF", 2), ("LINE_DEN_COEFF", 0), ("SAMP_NUM_COEFF", 1), ("SAMP_DEN_COEFF", 0)):
        keys += [f"{name}_{i + 1}: {float(i == row)}" for i in range(20)]
    (scratch / "in/x_RPC.TXT").write_text("\n".join(keys) + "\n")
    config(scratch, "[_RPC.TXT]")
    made = gdal.Open(product(compute(scratch, scratch / "in/x.tif")))
    assert float(made.GetMetadata("RPC")["LINE_OFF"]) == 20, made.GetMetadata("RPC")
    config(scratch)
    assert not gdal.Open(product(compute(scratch, scratch / "in/x.tif"))).GetMetadata("RPC")


def test_the_input_is_another_one_with_another_mask(scratch):
    scene(scratch / "in/x.tif")
    mask(scratch / "in/x.tif")
    config(scratch, "[.msk]")
    first, again = (product(compute(scratch, scratch / "in/x.tif")) for _ in range(2))
    assert first == again
    mask(scratch / "in/x.tif", (40, 61))
    shutil.copyfile(scratch / "in/x.tif", scratch / "in/y.tif")
    mask(scratch / "in/y.tif")
    os.replace(scratch / "in/y.tif.msk", scratch / "in/x.tif.msk")
    with open(scratch / "in/x.tif.msk", "ab") as file:
        file.write(b"\0")
    assert "x~2" in product(compute(scratch, scratch / "in/x.tif"))


def test_sidecars_of_a_folders_files(scratch):
    values = scene(scratch / "in/S/a/B04.tif")
    valid = mask(scratch / "in/S/a/B04.tif")
    scene(scratch / "in/S/B08.tif")
    shutil.copyfile(scratch / "in/S/a/B04.tif.msk", scratch / "in/S/B08.tfw")
    config(scratch, "[.msk]", match='scene: "S"', more="files: {R: a/B04.tif, N: B08.tif}")
    report = compute(scratch, scratch / "in/S")
    assert report["report"]["sidecars"] == {"read": ["B04.tif.msk"], "unused": ["B08.tfw"]}
    got = pixels(report)[0]
    assert np.array_equal(np.isfinite(got), valid) and np.array_equal(got[valid], values[valid])


def test_sidecars_of_loose_files(scratch):
    values = scene(scratch / "in/s1_R.tif")
    valid = mask(scratch / "in/s1_R.tif")
    scene(scratch / "in/s2_R.tif")
    mask(scratch / "in/s2_R.tif")
    config(scratch, "[.msk]", match="group: '(?<scene>s.)_R.tif'", more="files: {R: \"{scene}_R.tif\"}")
    report = compute(scratch, scratch / "in/s1_R.tif")
    assert report["report"]["sidecars"] == {"read": ["s1_R.tif.msk"], "unused": []}
    got = pixels(report)
    assert np.array_equal(np.isfinite(got), valid) and np.array_equal(got[valid], values[valid])


def test_pattern_prefers_the_file_to_its_sidecar(scratch):
    scene(scratch / "in/S/x_B04.tif")
    (scratch / "in/S/x_B04.tif.aux.xml").write_text("<PAMDataset/>")
    (scratch / "in/S/x_B04.tfw").write_text("10.0\n0\n0\n-10.0\n500005.0\n3999995.0\n")
    config(scratch, match='scene: "S"', more="files: {R: \"*_B04.*\"}")
    assert compute(scratch, scratch / "in/S")["report"]["files"] == ["x_B04.tif"]
    scene(scratch / "in/S/y_B04.tif")
    assert compute(scratch, scratch / "in/S", code=1)["error"]["code"] == "input.ambiguous"


def test_of_files_whose_names_begin_alike(scratch):
    values = scene(scratch / "in/S/x.tif")
    scene(scratch / "in/S/x_2.tif")
    valid = mask(scratch / "in/S/x_2.tif")
    config(scratch, "[.msk]", match='scene: "S"', more="files: {A: x.tif, B: x_2.tif}")
    report = compute(scratch, scratch / "in/S")
    assert report["report"]["sidecars"]["read"] == ["x_2.tif.msk"]
    a, b = pixels(report)
    assert np.array_equal(a, values), "the mask of x_2.tif is not that of x.tif"
    assert np.array_equal(np.isfinite(b), valid) and np.array_equal(b[valid], values[valid])


def test_in_an_archive(scratch):
    values = scene(scratch / "in/S/a/B04.tif")
    valid = mask(scratch / "in/S/a/B04.tif")
    scene(scratch / "in/S/B08.tif")
    mask(scratch / "in/S/a/B08.tif")
    (scratch / "in/S/B08.tfw").write_text("10\n0\n0\n-10\n0\n0\n")
    config(scratch, "[.msk]", match='scene: "S"', more="files: {R: a/B04.tif, N: B08.tif}")
    of_folder = compute(scratch, scratch / "in/S")
    for kind in ("zip", "tar", "gztar"):
        archive = shutil.make_archive(str(scratch / "in/S"), kind, scratch / "in", "S")
        report = compute(scratch, archive, "--existing", "replace")
        assert report["report"]["sidecars"] == {"read": ["B04.tif.msk"], "unused": ["B08.tfw"]}
        got = pixels(report)[0]
        assert np.array_equal(np.isfinite(got), valid) and np.array_equal(got[valid], values[valid])
        assert report["report"]["sidecars"] == of_folder["report"]["sidecars"]
    (scratch / "in/S.msk").write_bytes(b"beside the archive: none of its files")
    assert compute(scratch, scratch / "in/S.zip")["report"]["sidecars"] == of_folder["report"]["sidecars"]


def test_the_order_in_an_archive_is_of_no_matter(scratch):
    scene(scratch / "in/S/x_B04.tif")
    for name in ("x_B04.tif.aux.xml", "x_B04_RPC.TXT"):
        (scratch / "in/S" / name).write_text("not read")
    config(scratch, match='scene: "S"', more="files: {R: \"*_B04*\"}")
    expected = compute(scratch, scratch / "in/S")["report"]
    for order in itertools.permutations(("x_B04.tif", "x_B04.tif.aux.xml", "x_B04_RPC.TXT")):
        with zipfile.ZipFile(scratch / "in/S.zip", "w") as archive:
            for name in order:
                archive.write(scratch / "in/S" / name, f"S/{name}")
        report = compute(scratch, scratch / "in/S.zip")["report"]
        assert report["files"] == ["x_B04.tif"] and report["sidecars"] == expected["sidecars"], order


def test_sidecars_that_lie(scratch):
    scene(scratch / "in/x.tif")
    config(scratch, "[.msk, .aux.xml, .tfw]")
    for name, content in (("x.tif.msk", b"II*\0rubbish"), ("x.tif.msk", b""), ("x.tif.aux.xml", b"<PAMDataset><"),
                          ("x.tif.aux.xml", b"<VRTDataset/>")):
        (scratch / "in" / name).write_bytes(content)
        error = compute(scratch, scratch / "in/x.tif", code=1)["error"]
        assert error["code"] in ("input.truncated", "input.damaged", "input.not_tiff") and name in error["message"], (name, error)
        (scratch / "in" / name).unlink()
    scene(scratch / "in/placeless.tif", place=False)
    (scratch / "in/placeless.tfw").write_bytes(b"\xff\xfe\0\0nonsense")
    error = compute(scratch, scratch / "in/placeless.tif", code=1)["error"]
    assert error["code"] == "input.damaged" and "no place of the image in it" in error["message"], error
    mask(scratch / "in/x.tif", (400, 600))
    config(scratch, "[.msk]", limits="limits: {max_pixels: 100000}")
    assert compute(scratch, scratch / "in/x.tif", code=1)["error"]["code"] == "input.limit"
    config(scratch, "[.msk]")
    error = compute(scratch, scratch / "in/x.tif", code=1)["error"]
    assert error["code"] == "input.damaged" and "600 x 400 pixels, and the image that it belongs to 60 x 40" in error["message"], error
    (scratch / "in/x.tif.msk").unlink()
    (scratch / "in/x.tif.msk").symlink_to("/etc/passwd")
    assert compute(scratch, scratch / "in/x.tif", code=1)["error"]["code"] == "input.link"


def test_all_of_them_may_be_wanted(scratch):
    scene(scratch / "in/x.tif")
    config(scratch, "[.msk, .tfw]", more="complete: {expire: 1s}")
    mask(scratch / "in/x.tif")
    error = compute(scratch, scratch / "in/x.tif", code=1)["error"]
    assert error["code"] == "input.incomplete" and "the sidecar .tfw of x.tif is missing" in error["message"], error
    config(scratch, "[.msk, .tfw]", more="complete: {all: false}")
    compute(scratch, scratch / "in/x.tif")


def test_mistakes(scratch):
    for entry in (".tif", "msk", "x", ".m*"):
        done = pbtest.run("pushbroom", "check-config", config(scratch, f'["{entry}"]'), code=2)
        assert "is no ending of a sidecar" in done.stderr, (entry, done.stderr)
    shown = pbtest.run("pushbroom", "check-config", config(scratch, "[.msk, _RPC.TXT]", more="complete: {expire: 2h}")).stdout
    assert ".msk" in shown and "_RPC.TXT" in shown and "expire: 2h" in shown, shown


def test_a_dry_run_sees_them(scratch):
    scene(scratch / "in/x.tif")
    mask(scratch / "in/x.tif")
    config(scratch, "[.msk]")
    said = pbtest.run("pushbroom", "run", "--dry-run", "-c", scratch / "c.yaml", scratch / "in/x.tif").stdout
    assert "valid      by the file's mask" in said and "sidecars   x.tif.msk\n" in said, said


pbtest.main()
