#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""input.order: list. The files of a scene count as a file of the scene lists them: loose, in a folder, in an archive; files that
the list lacks are not used, and a list that is wrong fails the job."""
import json
import pathlib
import tarfile

import numpy as np
from osgeo import gdal

import pbtest
from test_cloud_order import compute, image, pixels, refused

GROUP = r"group: '(?<scene>t)_\w+\.(tif|lst)'"


def config(scratch, count=3, where=GROUP, match="*_A.tif", more="", bands="A", listed="t_order.lst"):
    path = scratch / "c.yaml"
    files = "".join(f", A_{k}: {{match: '{match}', nth: {k}, optional: true}}" for k in range(2, count + 1))
    path.write_text(f"""compute: {{memory: 64MiB, tile: 64}}
pipelines:
  p:
    input: {{{where}, order: list, list: '{listed}', nodata: 0, files: {{A_1: {{match: '{match}', nth: 1}}{files}{more}}}}}
    steps: [mosaic: {{bands: [{bands}], of: [{', '.join(f'_{k}' for k in range(1, count + 1))}]}}]
    products: [cog: {{bands: [{bands}], type: float32}}, stac: {{datetime: file-time}}]
""")
    return path


def order(report):
    return [(f["file"], f["nth"], f["used"]) for f in report["report"]["order"]["files"]]


def of_values(folder, values, band="A"):
    """Files whose columns from 10 times the value on have no data: the mosaic shows the order."""
    for value in values:
        image(folder / f"t_{value}_{band}.tif", value, hole=(10 * value, 53))


def right(values):
    out = np.full((37, 53), np.nan, np.float32)
    for value in reversed(values):
        out[:, :10 * value] = value
    return out


def test_files_count_in_list_order_others_are_unused(scratch):
    of_values(scratch, (1, 2, 3, 4, 5))
    path = config(scratch)
    for text, values, rest in (("t_3_A.tif\nt_1_A.tif\nt_5_A.tif\n", (3, 1, 5), (2, 4)),
                               ("\ufeff# the best first\r\n\r\n  ./t_2_A.tif \r\nt_5_A.tif", (2, 5), (1, 3, 4)),
                               ("t_4_A.tif\nt_1_A.tif\nt_2_A.tif\nt_3_A.tif\n", (4, 1, 2), (3, 5))):
        (scratch / "t_order.lst").write_bytes(text.encode())
        done = compute(scratch, path, scratch / "t_1_A.tif")
        np.testing.assert_array_equal(pixels(done), right(values))
        said = order(done)
        assert [f for f, _, used in said if used] == [f"t_{v}_A.tif" for v in values] and [n for _, n, used in said if used] == list(range(1, len(values) + 1)), said
        assert {f for f, _, used in said if not used} == {f"t_{v}_A.tif" for v in rest}, said
        item = json.loads(pathlib.Path(done["products"][1]["path"]).read_text())["properties"]
        assert "Not used, by the list of the files: " in item["processing:lineage"], item
    assert order(done)[3:] == [("t_3_A.tif", 4, False), ("t_5_A.tif", None, False)]
    said = pbtest.run("pushbroom", "run", "--dry-run", "-c", path, scratch / "t_1_A.tif").stdout
    assert "1 t_4_A.tif" in said and "- t_5_A.tif; not used: the list does not have it" in said and "4 t_3_A.tif; not used: nth counts fewer" in said, said


def test_another_order_is_another_input(scratch):
    of_values(scratch, (1, 2))
    path = config(scratch)
    sums = []
    for text in ("t_1_A.tif\nt_2_A.tif\n", "t_2_A.tif\nt_1_A.tif\n"):
        (scratch / "t_order.lst").write_text(text)
        done = compute(scratch, path, scratch / "t_1_A.tif")
        read = json.loads((pathlib.Path(done["directory"]) / ".pushbroom.json").read_text())["input"]
        assert "t_order.lst" in [f["file"] for f in read["files"]], read
        sums.append(next(v for k, v in read.items() if k in ("blake3", "sha256")))
    assert sums[0] != sums[1]


def test_a_folder_and_an_archive_of_it(scratch):
    for value in (1, 2, 3):
        image(scratch / f"month/{value}/A.tif", value, hole=(10 * value, 53))
    (scratch / "month/order.lst").write_text("3/A.tif\n1/A.tif\n")
    path = config(scratch, where="scene: 'month/'", match="*/A.tif", listed="order.lst")
    done = compute(scratch, path, scratch / "month")
    np.testing.assert_array_equal(pixels(done), right((3, 1)))
    with tarfile.open(scratch / "month.tar.gz", "w:gz") as archive:
        archive.add(scratch / "month", "month")
    packed = compute(scratch, path, scratch / "month.tar.gz")
    assert order(packed) == order(done) == [("3/A.tif", 1, True), ("1/A.tif", 2, True), ("2/A.tif", None, False)]
    np.testing.assert_array_equal(pixels(packed), pixels(done))
    (scratch / "month/order.lst").write_text("A.tif\n")
    refused(scratch, path, scratch / "month", "input.ambiguous", "1/A.tif and 2/A.tif have that name")


def test_bands_in_files_of_their_own_keep_together(scratch):
    of_values(scratch, (1, 2, 3))
    of_values(scratch, (1, 2, 3), "B")
    more = ", B_1: {match: '*_B.tif', nth: 1}, B_2: {match: '*_B.tif', nth: 2, optional: true}, B_3: {match: '*_B.tif', nth: 3, optional: true}"
    path = config(scratch, more=more, bands="A, B")
    (scratch / "t_order.lst").write_text("t_2_A.tif\nt_3_A.tif\nt_2_B.tif\nt_3_B.tif\n")
    made = pixels(compute(scratch, path, scratch / "t_1_A.tif"))
    np.testing.assert_array_equal(made[0], right((2, 3)))
    np.testing.assert_array_equal(made[1], right((2, 3)))
    (scratch / "t_order.lst").write_text("t_2_A.tif\nt_3_A.tif\nt_3_B.tif\n")
    refused(scratch, path, scratch / "t_1_A.tif", "input.metadata_conflict", "2 files of *_A.tif and 1 of *_B.tif")


def test_a_wrong_list_fails_the_job_and_says_where(scratch):
    of_values(scratch, (1, 2, 3))
    path = config(scratch)
    refused(scratch, path, scratch / "t_1_A.tif", "input.incomplete", "the list of its files (t_order.lst)")
    for text, code, words in (("t_1_A.tif\nt_9_A.tif\n", "input.incomplete", "t_order.lst:2: it lists t_9_A.tif, which is no file of the scene"),
                              ("t_1_A.tif\n\nt_1_A.tif\n", "input.metadata_invalid", "t_order.lst:3: it lists t_1_A.tif for the second time"),
                              ("t_order.lst\n", "input.incomplete", "t_order.lst, which is no file"),
                              ("../secret\n", "input.incomplete", "../secret"),
                              ("# nothing\n\n", "input.metadata_invalid", "it lists no file"),
                              ("t_1_A.tif\0\n", "input.metadata_invalid", "it is no text"),
                              ("x" * (1 << 20) + "y", "input.metadata_invalid", "larger than 1 MiB"),
                              ("\n" + "x\n" * 4097, "input.metadata_invalid", "t_order.lst:4098: it lists more files")):
        (scratch / "t_order.lst").write_text(text)
        refused(scratch, path, scratch / "t_1_A.tif", code, words, "t_order.lst")
    (scratch / "t_order.lst").write_text("t_1_A.tif\n")
    path.write_text(path.read_text().replace(", optional: true", ""))
    refused(scratch, path, scratch / "t_1_A.tif", "input.incomplete", "fewer than 2 files of *_A.tif")


def test_mistakes_of_the_configuration(scratch):
    def wrong(words, *change):
        path = config(scratch)
        path.write_text(path.read_text().replace(*change))
        told = pbtest.run("pushbroom", "check-config", path, code=2).stderr
        assert words in told and "c.yaml:4:" in told, told
    wrong("name it with input.list", "list: 't_order.lst', ", "")
    wrong("input.list is for input.order: list", "order: list", "order: name")


if __name__ == "__main__":
    pbtest.main()
