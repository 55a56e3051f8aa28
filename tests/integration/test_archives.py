#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Archives of scenes through `pushbroom run`: the products of a folder and of its archives are equal, which folder in an
archive is the scene, and archives that are damaged or made to do harm."""
import hashlib
import io
import json
import os
import pathlib
import shutil
import stat
import struct
import subprocess
import tarfile
import zipfile
import zlib

import numpy as np
from osgeo import gdal

import pbtest
import sums
from test_scenes import small, small_folder

SCENE = "S2X_a_L2A"
CONFIG = """
LIMITS
pipelines:
  s2:
    input:
      scene: "S2?_*_L2A/"
      files: {R: B04.tif, N: B08.tif, SCL: {match: SCL.tif, resample: nearest}}
      MORE
    steps:
      - math: {bands: {X: "N - R + SCL"}}
    products:
      - cog: {bands: [X], type: float32}
      - stac: {datetime: file-time}
"""


def config(scratch, more="", limits=""):
    path = scratch / "c.yaml"
    path.write_text(CONFIG.replace("MORE", more).replace("LIMITS", limits))
    return path


def files_of(folder):
    return {f.name: f.read_bytes() for f in sorted(folder.iterdir())}


def make_zip(path, members, how=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", how) as out:
        for name, data in members.items():
            out.writestr(name, data)
    return path


def make_tar(path, members, how=""):
    with tarfile.open(path, "w:" + how) as out:
        for name, data in members.items():
            info = data if isinstance(data, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = 0 if isinstance(data, tarfile.TarInfo) else len(data)
            out.addfile(info, None if isinstance(data, tarfile.TarInfo) else io.BytesIO(data))
    return path


def inside(folder, top=SCENE):
    return {f"{top}/{name}": data for name, data in files_of(folder).items()}


def outcome(scratch, archive, *args, code=None, name="c.yaml"):
    done = pbtest.run_json("pushbroom", "run", "-c", scratch / name, "-o", scratch / "out", "--device", "cpu", "--json", *args, archive, code=code)
    assert len(done) == 1, done
    left = [str(f) for f in (scratch / "out").rglob("*") if f.name.startswith(".") and f.name != ".pushbroom.json"]
    assert not left, f"left behind: {left}"
    return done[0]


def product(done):
    path = next(p["path"] for p in done["products"] if p["type"] == "cog")
    with open(path, "rb") as file:
        return file.read()


def refused(scratch, archive, code, *words):
    error = outcome(scratch, archive, code=1)["error"]
    assert error["code"] == code, error
    for word in words:
        assert word in error["message"] + error["hint"], f"{word!r} is not in {error}"


def test_archives_make_the_products_of_their_folder(scratch):
    config(scratch)
    folder = small_folder(scratch, SCENE)
    expected = product(outcome(scratch, folder, code=0))
    members = inside(folder)
    (scratch / "in").mkdir()
    made = {}
    for how, name in ((zipfile.ZIP_STORED, "zip"), (zipfile.ZIP_DEFLATED, "ZIP"), (zipfile.ZIP_BZIP2, "b.zip")):
        made[name] = make_zip(scratch / "in" / f"S2X_{name[0]}_L2A.{name[-3:]}", members, how)
    for how in ("", "gz", "bz2", "xz"):
        made["tar" + how] = make_tar(scratch / "in" / f"S2X_t{how}_L2A.tar{'.' + how if how else ''}", members, how)
    made["tgz"] = make_tar(scratch / "in/S2X_T_L2A.TGZ", members, "gz")
    made["flat"] = make_tar(scratch / "in/S2X_flat_L2A.tar", files_of(folder))
    made["flat zip"] = make_zip(scratch / "in/S2X_flatzip_L2A.zip", files_of(folder))
    tar = made["tar"].read_bytes()
    made["zst"] = scratch / "in/S2X_zst_L2A.tar.zst"
    made["zst"].write_bytes(subprocess.run(["zstd", "-q", "-c"], input=tar, stdout=subprocess.PIPE, check=True).stdout)
    for kind, path in made.items():
        done = outcome(scratch, path, code=0)
        assert product(done) == expected, kind
        archive = done["report"]["archive"]
        packed = kind not in ("zip", "tar", "flat", "flat zip")
        assert (archive["unpacked_bytes"] > 0) == packed, f"{kind}: {archive}"
        assert archive["needed_bytes"] == sum(len(d) for d in members.values()) and archive["members"] == 3, archive
        assert done["report"]["files"] == ["B04.tif", "B08.tif", "SCL.tif"], done["report"]


class Stream(io.RawIOBase):
    """A file that cannot seek, as a server sees its client."""

    def __init__(self, path):
        self.file = open(path, "wb")

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)

    def close(self):
        self.file.close()
        super().close()


def test_zips_that_were_streamed_and_tars_with_holes(scratch):
    config(scratch)
    folder = small_folder(scratch)
    os.truncate(folder / "B08.tif", 8 << 20)
    expected = product(outcome(scratch, folder, code=0))
    (scratch / "in").mkdir()
    for how in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        path = scratch / f"in/S2X_{how}_L2A.zip"
        with Stream(path) as stream, zipfile.ZipFile(stream, "w", how) as out:
            for name, data in inside(folder).items():
                out.writestr(name, data)
        assert path.read_bytes()[6] & 8, "its lengths are behind the members"
        done = outcome(scratch, path, code=0)
        assert product(done) == expected and (done["report"]["archive"]["unpacked_bytes"] == 0) == (how == zipfile.ZIP_STORED), done
    for kind in ("gnu", "pax"):
        tar = scratch / f"in/S2X_{kind}_L2A.tar"
        subprocess.run(["tar", "-S", f"--format={kind}", "-C", scratch, "-cf", tar, folder.name], check=True)
        assert tar.stat().st_size < 1 << 20
        done = outcome(scratch, tar, code=0)
        assert product(done) == expected and done["report"]["archive"]["unpacked_bytes"] >= 8 << 20, done


def test_lineage_has_checksum_of_archive_and_members(scratch):
    config(scratch)
    archive = make_zip(scratch / "S2X_a_L2A.zip", inside(small_folder(scratch)))
    done = outcome(scratch, archive, code=0)
    manifest = json.loads((scratch / "out/S2X_a_L2A/s2/.pushbroom.json").read_text())
    assert manifest["input"]["name"] == "S2X_a_L2A.zip" and manifest["input"]["blake3"] == sums.digest(archive), manifest["input"]
    assert manifest["input"]["bytes"] == archive.stat().st_size and manifest["input"]["mtime_ns"] == archive.stat().st_mtime_ns
    item = json.loads(next(open(p["path"]).read() for p in done["products"] if p["type"] == "stac"))
    assert item["properties"]["pushbroom:input_files"] == ["B04.tif", "B08.tif", "SCL.tif"], item["properties"]
    assert item["properties"]["pushbroom:input"] == "S2X_a_L2A.zip", item["properties"]


def test_only_what_is_needed_is_unpacked(scratch):
    config(scratch, more="complete: {all: false}")
    members = inside(small_folder(scratch)) | {f"{SCENE}/B01.tif": os.urandom(3000000), f"{SCENE}/x.zip": b"PK\3\4 no archive"}
    done = outcome(scratch, make_zip(scratch / "S2X_a_L2A.zip", members, zipfile.ZIP_DEFLATED), code=0)
    assert done["report"]["archive"]["unpacked_bytes"] < 100000, done["report"]["archive"]


def test_dry_run_lists_unpacked_members_leaves_no_file(scratch):
    config(scratch)
    folder = inside(small_folder(scratch))
    for how, words in ((zipfile.ZIP_STORED, "read in place"), (zipfile.ZIP_DEFLATED, "of them unpacked")):
        archive = make_zip(scratch / "S2X_a_L2A.zip", folder, how)
        said = pbtest.run("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "dry", "--dry-run", archive).stdout
        assert "archive" in said and "3 members" in said and words in said and "B08.tif" in said, said
        assert not (scratch / "dry").exists()


def test_scene_is_matching_or_only_or_top_folder(scratch):
    config(scratch)
    folder = small_folder(scratch)
    good, other = inside(folder), {"notes/B04.tif": b"no", "notes/SCL.tif": b"no", "readme.txt": b"text"}
    names = ("__MACOSX/S2X_a_L2A/._B04.tif", "S2X_a_L2A/._B08.tif", "S2X_a_L2A/.DS_Store", "__MACOSX/._S2X_a_L2A")
    for i, members in enumerate((good | other, other | good, inside(folder, "data"), good | dict.fromkeys(names, b"mac"),
                                 {f"./{n}": d for n, d in good.items()}, inside(folder, "S2X_a_L2A//.//"))):
        outcome(scratch, make_tar(scratch / f"S2X_{i}_L2A.tar", members), code=0)
    refused(scratch, make_tar(scratch / "S2X_c_L2A.tar", inside(folder, "a") | inside(folder, "b")), "input.archive_scene",
            "none of the folders", "a, b")
    refused(scratch, make_tar(scratch / "S2X_e_L2A.tar", {}), "input.archive_scene", "no files")


def test_safe_archive_is_taken_with_or_without_ending(scratch):
    config(scratch)
    text = (scratch / "c.yaml").read_text()
    (scratch / "c.yaml").write_text(text.replace('"S2?_*_L2A/"', '"S2?_MSIL2A_*.SAFE"').replace("R: B04.tif", 'R: "GRANULE/*/B04.tif"'))
    members = {"S2B_MSIL2A_x.SAFE/" + ("GRANULE/L2A/" if n == "B04.tif" else "") + n: d
               for n, d in files_of(small_folder(scratch)).items()}
    for name in ("S2B_MSIL2A_x.SAFE.zip", "S2B_MSIL2A_x.zip"):
        done = outcome(scratch, make_zip(scratch / name, members), "--existing", "version", code=0)
        assert "/S2B_MSIL2A_x" in done["directory"] and ".SAFE" not in done["directory"], done["directory"]
        assert done["report"]["files"][0] == "GRANULE/L2A/B04.tif", done["report"]["files"]


def test_metadata_are_a_member_and_follow_its_folder(scratch):
    data = pbtest.need_data() / "real/landsat8_c1_016037"
    scene = "LC08_L1TP_016037_20170813_20170814_01_RT"
    if not data.is_dir():
        raise pbtest.Skip(f"{data} is not there")
    shutil.copytree(data, scratch / "made" / scene)
    data = scratch / "made"
    (scratch / "c.yaml").write_text("""
pipelines:
  toa:
    input:
      scene: "LC0[89]_L1*"
      files: {R: "{scene}_B4.TIF", N: "{scene}_B5.TIF"}
      metadata: "{scene}_MTL.txt"
    steps:
      - calibrate: {to: toa, bands: [R, N]}
    products:
      - cog: {bands: [R, N], type: float32}
      - stac: {}
""")
    expected = product(outcome(scratch, data / scene, code=0))
    bundle = make_tar(scratch / f"{scene}.tar", files_of(data / scene))
    assert product(outcome(scratch, bundle, "--existing", "replace", code=0)) == expected
    (scratch / "other").mkdir()
    packed = make_tar(scratch / "other/LC08_L1TP_download.tar.gz", inside(data / scene, scene), "gz")
    done = outcome(scratch, packed, code=0)
    assert product(done) == expected
    assert done["report"]["metadata"]["family"] == "landsat-c2", done["report"]["metadata"]


def each_scene(scratch, archive, *more):
    """{directory of the products: their pixels} of all scenes in an archive, in the order of the results."""
    done = pbtest.run_json("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out", "--device", "cpu", "--json", archive, *more)
    plans = pbtest.run_json("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "dry", "--device", "cpu", "--json", "--dry-run", archive, *more)
    assert {d["status"] for d in done} == {"successful"} and {p["status"] for p in plans} == {"planned"}, (done, plans)
    made = {pathlib.Path(d["directory"]).parent.name: product(d) for d in done}
    assert [p["plan"]["scene"] for p in plans] == list(made) and len(made) == len(done), (plans, made)
    return made


def test_each_folder_in_an_archive_is_a_scene(scratch):
    config(scratch)
    folder = small_folder(scratch)
    expected = product(outcome(scratch, make_tar(scratch / "S2X_a_L2A.tar", inside(folder)), code=0))
    shutil.rmtree(scratch / "out")
    scenes = [f"S2X_{letter}_L2A" for letter in "abc"]
    members = {name: data for scene in scenes for name, data in inside(folder, scene).items()} | {"notes/readme.txt": b"text"}
    for name, more in (("S2X_a_L2A.tar", ()), ("S2X_many_L2A.tar", (make_tar(scratch / "S2X_z_L2A.tar", inside(folder, "S2X_z_L2A")),))):
        made = each_scene(scratch, make_tar(scratch / name, members), *more, "--existing", "replace")
        assert list(made)[:3] == scenes and all(m == expected for m in made.values()), made.keys()
    broken = {n: d for n, d in members.items() if n != "S2X_b_L2A/B08.tif"}
    done = pbtest.run_json("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "other", "--json", make_tar(scratch / "S2X_e_L2A.tar", broken), code=1)
    assert [d["status"] for d in done] == ["successful", "failed", "successful"] and done[1]["error"]["code"] == "input.incomplete", done


def test_lines_name_the_archive_and_the_scene(scratch):
    config(scratch)
    folder = small_folder(scratch)
    members = {name: data for letter in "ab" for name, data in inside(folder, f"S2X_{letter}_L2A").items()}
    archive = make_tar(scratch / "S2X_e_L2A.tar", {n: d for n, d in members.items() if n != "S2X_b_L2A/B08.tif"})
    words = ["pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out", archive]
    done, plan = pbtest.run(*words, code=1), pbtest.run(*words, "--dry-run", code=1)
    assert done.stdout.startswith(f"{archive} (S2X_a_L2A) -> "), done.stdout
    assert plan.stdout.startswith(f"{archive} (S2X_a_L2A)\n"), plan.stdout
    for text in (done.stderr, plan.stderr):
        assert f"pushbroom: {archive} (S2X_b_L2A): 1 of 3 files of the scene is missing: band N (B08.tif) [input.incomplete]" in text, text
    assert "1 done, 1 failed: S2X_e_L2A.tar (S2X_b_L2A)\n" in done.stderr, done.stderr
    for more in ((), ("--dry-run",)):
        assert [r["scene"] for r in pbtest.run_json(*words, "--json", *more, code=1)] == ["S2X_a_L2A", "S2X_b_L2A"]


def test_two_folders_with_one_scene_name_are_refused(scratch):
    config(scratch)
    (scratch / "c.yaml").write_text((scratch / "c.yaml").read_text().replace("L2A/", "L2A*"))
    folder = small_folder(scratch)
    one, two, other = (inside(folder, top) for top in ("S2X_a_L2A", "S2X_a_L2A.SAFE", "S2X_b_L2A"))
    for members in (one | two, two | one):
        refused(scratch, make_tar(scratch / "S2X_a_L2A.tar", members), "input.archive_scene", "two folders in it are scene S2X_a_L2A", "S2X_a_L2A.SAFE")
    done = pbtest.run_json("pushbroom", "run", "-c", scratch / "c.yaml", "-o", scratch / "out", "--json", make_tar(scratch / "S2X_m_L2A.tar", one | other | two), code=1)
    assert [d["status"] for d in done] == ["failed", "successful"] and done[0]["error"]["code"] == "input.archive_scene", done


def with_group(text, scene="S2._\\w"):
    """The configuration for scenes of loose files whose names begin with the scene."""
    text = text.replace('scene: "S2?_*_L2A/"', f"group: '(?<scene>{scene})_(B04|B08|SCL).tif'")
    return text.replace("B04.tif,", '"{scene}_B04.tif",').replace("B08.tif,", '"*_B08.tif",').replace("SCL.tif,", '"*_SCL.tif",')


def make_odd_zip(path, files):
    """A ZIP of three loose scenes, whose names end with a space, a byte of Latin-1 and a control character."""
    make_zip(path, {f"S2X_{letter}_{name}": data for letter in (" ", "@", "#") for name, data in files.items()})
    path.write_bytes(path.read_bytes().replace(b"S2X_@_", b"S2X_\xe9_").replace(b"S2X_#_", b"S2X_\x01_"))
    return path


ODD_NAMES = ["S2X_ "] + [f"S2X__-{hashlib.sha256(name).hexdigest()[:12]}" for name in (b"S2X_\xe9", b"S2X_\x01")]


def test_scenes_with_odd_names_in_an_archive(scratch):
    files = files_of(small_folder(scratch, "made"))
    config(scratch)
    expected = product(outcome(scratch, make_tar(scratch / "S2X_a_L2A.tar", inside(scratch / "made")), code=0))
    shutil.rmtree(scratch / "out")
    (scratch / "c.yaml").write_text(with_group((scratch / "c.yaml").read_text(), "S2._.+?"))
    made = each_scene(scratch, make_odd_zip(scratch / "S2X_many.zip", files))
    assert made == {name: expected for name in ODD_NAMES}, (list(made), ODD_NAMES)


def test_bundle_of_loose_files_uses_its_group_pipeline(scratch):
    files = {f"S2X_a_{n}": d for n, d in files_of(small_folder(scratch, "made")).items()}
    config(scratch)
    (scratch / "c.yaml").write_text(with_group((scratch / "c.yaml").read_text()))
    for name, data in files.items():
        (scratch / name).write_bytes(data)
    expected = product(outcome(scratch, scratch / "S2X_a_B04.tif", code=0))
    (scratch / "in").mkdir()
    for members, suffix in ((files, "tar"), ({f"any/{n}": d for n, d in files.items()} | {"any/readme.txt": b"text"}, "tar.gz")):
        done = outcome(scratch, make_tar(scratch / f"in/S2X_a.{suffix}", members, suffix[4:]), "--existing", "replace", code=0)
        assert product(done) == expected and done["directory"].endswith("out/S2X_a/s2"), done
    shutil.rmtree(scratch / "out")
    two = each_scene(scratch, make_tar(scratch / "in/S2X_a.tar", files | {n.replace("_a_", "_b_"): d for n, d in files.items()}))
    assert two == {"S2X_a": expected, "S2X_b": expected}, two
    shutil.rmtree(scratch / "out")
    refused(scratch, make_tar(scratch / "in/S2X_a.tar", {"x.tif": b""}), "input.archive_scene", "input.group fits none")


def test_grouped_scenes_have_their_sidecars_metadata(scratch):
    data = pbtest.need_data() / "real/landsat8_c1_016037"
    if not data.is_dir():
        raise pbtest.Skip(f"{data} is not there")
    scene = "LC08_L1TP_016037_20170813_20170814_01_RT"
    (scratch / "c.yaml").write_text("""
pipelines:
  toa:
    input:
      group: '(?<scene>.+)_B[45]\\.TIF'
      files: {R: "{scene}_B4.TIF", N: "{scene}_B5.TIF"}
      metadata: "{scene}_MTL.txt"
      sidecars: [.msk]
    steps:
      - calibrate: {to: toa, bands: [R, N]}
    products:
      - cog: {bands: [R, N], type: float32}
""")
    one = {name: content for name, content in files_of(data).items() if name.endswith(("_B4.TIF", "_B5.TIF", "_MTL.txt"))}
    red = gdal.Open(str(data / f"{scene}_B4.TIF"))
    shape = (red.RasterYSize, red.RasterXSize)
    valid = np.full(shape, 255, np.uint8)
    valid[:, :shape[1] // 3] = 0
    mask = gdal.GetDriverByName("GTiff").Create(str(scratch / "a.msk"), shape[1], shape[0], 1, gdal.GDT_Byte)
    mask.SetMetadataItem("INTERNAL_MASK_FLAGS_1", "2")
    mask.GetRasterBand(1).WriteArray(valid)
    del mask
    msk = {f"{scene}_B4.TIF.msk": (scratch / "a.msk").read_bytes()}
    plain = product(outcome(scratch, make_zip(scratch / "plain.zip", one), code=0))
    masked = product(outcome(scratch, make_zip(scratch / "masked.zip", one | msk), "--existing", "replace", code=0))
    assert plain != masked
    other = {name.replace(scene, "other"): content for name, content in one.items()}
    made = each_scene(scratch, make_zip(scratch / "both.zip", other | one | msk), "--existing", "replace")
    assert made == {"other": plain, scene: masked}, made.keys()


def test_jpeg_2000_is_read_inside_a_zip(scratch):
    data = pbtest.need_data() / "real/sentinel2_19UDP_jp2"
    if not data.is_dir():
        raise pbtest.Skip(f"{data} is not there")
    config(scratch, more="nodata: 0")
    text = (scratch / "c.yaml").read_text().replace("R: B04.tif, N: B08.tif, SCL: {match: SCL.tif, resample: nearest}", "R: B04.jp2")
    (scratch / "c.yaml").write_text(text.replace("N - R + SCL", "R * 2"))
    shutil.copytree(data, scratch / "S2X_j_L2A")
    expected = product(outcome(scratch, scratch / "S2X_j_L2A", code=0))
    members = {f"S2X_j_L2A/{p.relative_to(data)}": p.read_bytes() for p in sorted(data.rglob("*.jp2"))}
    for how in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        done = outcome(scratch, make_zip(scratch / "S2X_j_L2A.zip", members, how), "--existing", "replace", code=0)
        assert product(done) == expected and (done["report"]["archive"]["unpacked_bytes"] == 0) == (how == zipfile.ZIP_STORED)


def test_what_is_missing_or_there_twice_is_named(scratch):
    config(scratch)
    members = inside(small_folder(scratch))
    refused(scratch, make_zip(scratch / "S2X_a_L2A.zip", {n: d for n, d in members.items() if "SCL" not in n}),
            "input.incomplete", "SCL.tif", "S2X_a_L2A.zip")
    refused(scratch, make_zip(scratch / "S2X_b_L2A.zip", members | {f"{SCENE}/more/B04.tif": b"x"}), "input.ambiguous", "more/B04.tif")
    refused(scratch, make_zip(scratch / "S2X_c_L2A.zip", members | {f"{SCENE}/b04.TIF": b"x"}), "input.ambiguous", "b04.TIF", "B04.tif")
    refused(scratch, make_zip(scratch / "S2X_d_L2A.zip", members | {f"{SCENE}/B08.tif": b""}), "input.truncated", "B08.tif")
    refused(scratch, make_zip(scratch / "S2X_e_L2A.zip", members | {f"{SCENE}/B08.tif": b"not a tiff"}), "input.not_tiff", "B08.tif")


def link(name, to, kind=tarfile.SYMTYPE):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, to
    return info


def test_names_outside_are_refused_without_a_write(scratch):
    config(scratch)
    members = inside(small_folder(scratch))
    bad = {"../evil.tif": "..", f"{SCENE}/../../evil.tif": "..", "/tmp/pb_evil.tif": "absolute", "C:/evil.tif": "absolute",
           f"{SCENE}/" + "d/" * 20 + "x.tif": "limits.archive_depth", f"{SCENE}/" + "n" * 300: "too long"}
    for i, (name, word) in enumerate(bad.items()):
        for make, suffix in ((make_zip, "zip"), (make_tar, "tar")):
            path = scratch / f"S2X_{i}{suffix}_L2A.{suffix}"
            refused(scratch, make(path, members | {name: b"evil"}), "input.archive_unsafe", word)
    assert not list(scratch.rglob("evil*")) and not os.path.exists("/tmp/pb_evil.tif")


def test_links_devices_and_repeated_names_are_refused(scratch):
    config(scratch)
    members = inside(small_folder(scratch))
    for i, (info, word) in enumerate((
            (link(f"{SCENE}/link.tif", "/etc/passwd"), "symbolic link"), (link(f"{SCENE}/l", "B04.tif", tarfile.LNKTYPE), "hard link"),
            (link(f"{SCENE}/dev", "", tarfile.CHRTYPE), "device"), (link(f"{SCENE}/pipe", "", tarfile.FIFOTYPE), "pipe"))):
        refused(scratch, make_tar(scratch / f"S2X_{i}_L2A.tar", members | {info.name: info}), "input.archive_unsafe", word, info.name)
    with zipfile.ZipFile(scratch / "S2X_l_L2A.zip", "w") as out:
        info = zipfile.ZipInfo(f"{SCENE}/link.tif")
        info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        out.writestr(info, "/etc/passwd")
    refused(scratch, scratch / "S2X_l_L2A.zip", "input.archive_unsafe", "symbolic link")
    path = make_tar(scratch / "S2X_t_L2A.tar", members)
    with tarfile.open(path, "a") as out:
        info = tarfile.TarInfo(f"./{SCENE}/B04.tif")
        info.size = 4
        out.addfile(info, io.BytesIO(b"evil"))
    refused(scratch, path, "input.archive_unsafe", "twice", "B04.tif")


def test_encrypted_members_are_refused(scratch):
    config(scratch)
    path = make_zip(scratch / "S2X_a_L2A.zip", inside(small_folder(scratch)))
    data = bytearray(path.read_bytes())
    for magic, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        where = data.find(magic)
        while where >= 0:
            data[where + at] |= 1
            where = data.find(magic, where + 4)
    path.write_bytes(data)
    refused(scratch, path, "input.archive_encrypted", "encrypted", "without a password")


def cut(path, name, bytes_left):
    out = path.with_name(name)
    out.write_bytes(path.read_bytes()[:bytes_left])
    return out


def test_archives_that_were_cut_are_truncated(scratch):
    config(scratch)
    folder = small_folder(scratch)
    for i in range(3): # larger than what is read at once
        small(folder / f"B{i}.tif", np.random.default_rng(i).integers(1, 9999, (512, 512)).astype(np.uint16))
    members = inside(folder)
    for suffix, path in (("zip", make_zip(scratch / "S2X_a_L2A.zip", members)),
                         ("zip", make_zip(scratch / "S2X_b_L2A.zip", members, zipfile.ZIP_DEFLATED)),
                         ("tar", make_tar(scratch / "S2X_c_L2A.tar", members)),
                         ("tar.gz", make_tar(scratch / "S2X_d_L2A.tar.gz", members, "gz")),
                         ("tar.bz2", make_tar(scratch / "S2X_e_L2A.tar.bz2", members, "bz2")),
                         ("tar.xz", make_tar(scratch / "S2X_f_L2A.tar.xz", members, "xz"))):
        for part in (0.3, 0.6, 0.9):
            refused(scratch, cut(path, f"S2X_cut_L2A.{suffix}", int(path.stat().st_size * part)), "input.truncated")
    (scratch / "S2X_empty_L2A.zip").write_bytes(b"")
    refused(scratch, scratch / "S2X_empty_L2A.zip", "input.truncated", "empty")


def test_what_is_no_archive_is_said_so(scratch):
    config(scratch)
    for i, data in enumerate((b"<html>404</html>" * 100, b"\x1f\x8b\x08" + os.urandom(500), b"\0" * 5000, b"Rar!\x1a\7\0" + os.urandom(500))):
        path = scratch / f"S2X_{i}_L2A.zip"
        path.write_bytes(data)
        error = outcome(scratch, path, code=1)["error"]
        assert error["code"] in ("input.not_archive", "input.truncated", "input.damaged", "input.archive_scene"), error
    twice = zlib.compressobj(9, zlib.DEFLATED, 31)
    once = make_tar(scratch / "x.tgz", inside(small_folder(scratch)), "gz").read_bytes()
    (scratch / "S2X_t_L2A.tar.gz").write_bytes(twice.compress(once) + twice.flush())
    refused(scratch, scratch / "S2X_t_L2A.tar.gz", "input.not_archive", "more than once")


def test_damage_is_found_by_the_check_sums_of_a_zip(scratch):
    config(scratch)
    members = inside(small_folder(scratch))
    for how in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        path = make_zip(scratch / "S2X_a_L2A.zip", members, how)
        data = bytearray(path.read_bytes())
        with zipfile.ZipFile(path) as z:
            info = z.getinfo(f"{SCENE}/B08.tif")
        data[info.header_offset + 30 + len(info.filename) + info.compress_size // 2] ^= 0x10
        path.write_bytes(data)
        refused(scratch, path, "input.damaged", "B08.tif")


def test_more_bytes_than_declared_are_refused(scratch):
    config(scratch)
    members = inside(small_folder(scratch)) | {f"{SCENE}/B08.tif": b"\1" * 100000}
    path = make_zip(scratch / "S2X_a_L2A.zip", members, zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    for old in (struct.pack("<I", 100000),):
        while old in data:
            at = data.find(old)
            data[at:at + 4] = struct.pack("<I", 1000)
    path.write_bytes(data)
    error = outcome(scratch, path, code=1)["error"]
    assert error["code"] in ("input.archive_unsafe", "input.damaged"), error
    assert "B08.tif" in error["message"], error


def bomb(name, bytes_declared, copies=1):
    """A ZIP whose members are 1 MiB of zeros each, whatever they declare, in 1 KB."""
    zeros = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = zeros.compress(bytes(1 << 20)) + zeros.flush()
    local, directory = [], []
    at = 0
    for i in range(copies):
        own = name if i == 0 else name + b"%d" % i
        local.append(struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 8, 0, 0, 0, len(packed), bytes_declared, len(own), 0) + own + packed)
        directory.append(struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 8, 0, 0, 0, len(packed), bytes_declared, len(own), 0, 0, 0, 0,
                                     0, at) + own)
        at += len(local[-1])
    size = sum(map(len, directory))
    return b"".join(local + directory) + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, copies, copies, size, at, 0)


def test_bombs_are_refused_before_they_go_off(scratch):
    config(scratch)
    path = scratch / "S2X_a_L2A.zip"
    path.write_bytes(bomb(b"S2X_a_L2A/B04.tif", 0xfffffffe)) # 4 GB of 1 KB
    refused(scratch, path, "input.limit", "limits.archive_ratio")
    path.write_bytes(bomb(b"S2X_a_L2A/B04.tif", 1 << 20, 2000)) # 2 GB of 2 MB
    refused(scratch, path, "input.limit", "limits.archive_ratio")
    config(scratch, limits="limits: {archive_ratio: 100000000}")
    path.write_bytes(bomb(b"S2X_a_L2A/B04.tif", 0xfffffffe, 1000))
    refused(scratch, path, "input.limit", "limits.archive_bytes")
    path.write_bytes(bomb(b"S2X_a_L2A/B04.tif", 10, 20001))
    refused(scratch, path, "input.limit", "limits.archive_members")
    config(scratch)
    tar = scratch / "S2X_b_L2A.tar.gz" # 2 GB of zeros in 2 MB, with the needed files
    zeros, head = zlib.compressobj(1, zlib.DEFLATED, 31), tarfile.TarInfo("S2X_a_L2A/zeros")
    head.size = 2 << 30
    with open(tar, "wb") as out:
        out.write(zeros.compress(head.tobuf()))
        for _ in range(64):
            out.write(zeros.compress(bytes(1 << 20)))
        out.write(zeros.flush())
    refused(scratch, tar, "input.limit", "limits.archive_ratio")


def test_limits_are_configured(scratch):
    members = inside(small_folder(scratch))
    archive = make_zip(scratch / "S2X_a_L2A.zip", members, zipfile.ZIP_DEFLATED)
    for limit, word in (("archive_members: 2", "more than 2 members"), ("archive_bytes: 4KiB", "more than 4096 bytes"),
                        ("archive_depth: 1", None)):
        config(scratch, limits=f"limits: {{{limit}}}")
        if word:
            refused(scratch, archive, "input.limit", word, limit.split(":")[0])
        else:
            outcome(scratch, archive, code=0)


def test_an_archive_in_an_archive_is_not_opened(scratch):
    config(scratch)
    inner = make_zip(scratch / "inner.zip", inside(small_folder(scratch))).read_bytes()
    refused(scratch, make_zip(scratch / "S2X_a_L2A.zip", {"S2X_a_L2A.zip": inner}), "input.incomplete", "B04.tif")


def test_other_files_and_other_names_are_not_taken(scratch):
    config(scratch)
    folder = small_folder(scratch)
    done = outcome(scratch, make_zip(scratch / "other.zip", inside(folder)), code=1)
    assert done["error"]["code"] == "input.no_pipeline" and "the folder in it (input.scene): s2 takes S2?_*_L2A/" in \
        done["error"]["message"], done
    outcome(scratch, scratch / "other.zip", "-p", "s2", code=0)
    done = outcome(scratch, folder / "B04.tif", "-p", "s2", code=1)
    assert done["error"]["code"] == "input.no_pipeline" and ".tar.gz" in done["error"]["message"], done


if __name__ == "__main__":
    pbtest.main()
