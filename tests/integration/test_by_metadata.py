#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""input.by with {meta.date} and {meta.tile}: loose files whose names have neither become the scenes of their metadata, by the command
and by the service; messages for files without date or tile, and the state after a kill, a reload and a late file. Real workers."""
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
import numpy as np  # noqa: E402
from osgeo import gdal  # noqa: E402

import pbtest  # noqa: E402
from daemon_kit import BIN, DaemonCase, wait_for  # noqa: E402
from test_cloud_order import image, item  # noqa: E402

gdal.UseExceptions()
FILES = ", ".join(f"A_{k}: {{match: '*.tif', nth: {k}, optional: {'true' if k > 1 else 'false'}}}" for k in range(1, 6))
PIPELINE = """
pipelines:
  month:
    input:
      group: '%s'
      by: %s
      %s
      nodata: 0
      files: {%s}
      complete: {expire: %s, reopen: 90d}
    steps: [composite: {method: median, bands: [A], of: [_1, _2, _3, _4, _5]}]
    products: [cog: {bands: [A], type: float32}, stac: {}]
"""
WITHOUT_DATE = json.dumps({"type": "Feature", "stac_version": "1.0.0", "id": "x", "geometry": None, "properties": {"eo:cloud_cover": 12}, "links": [], "assets": {}})
PROXY = """#!/usr/bin/python3
import json, os, subprocess, sys, threading
real = subprocess.Popen([%r] + sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
os.write(1, os.read(real.stdout.fileno(), 4096))  # it runs
def forward():
    while text := os.read(real.stdout.fileno(), 4096):
        os.write(1, text)
threading.Thread(target=forward).start()
for line in sys.stdin:
    if json.loads(line)["cmd"] == "describe" and "dies" in json.loads(line)["input"]:
        real.kill()
        os.kill(os.getpid(), 11)
    real.stdin.write(line.encode())
    real.stdin.flush()
real.stdin.close()
sys.exit(real.wait())
"""
GATE = """#!/bin/sh
while [ -e %s ]; do sleep 0.05; done
exec %s "$@"
"""


def pipeline(group=r".*\.tif", by='"m_{meta.date:%Y%m}"', metadata="", expire="100ms"):
    return PIPELINE % (group, by, metadata, FILES, expire)


def of_two():
    """Complete with two files, of as many as there are the first by their names, and what they lack is waited for."""
    text = pipeline(metadata='metadata: "*.json"', expire="1h")
    return text.replace(FILES, "A_1: {match: '*.tif', nth: 1}, A_2: {match: '*.tif', nth: 2}").replace("[_1, _2, _3, _4, _5]", "[_1, _2]")


def taken(path, value, date=None):
    """A file of one value, with GDAL's date of the acquisition; TIFFTAG_DATETIME, when the file was made, is another one."""
    image(path, value)
    made = gdal.Open(str(path), gdal.GA_Update)
    made.SetMetadataItem("TIFFTAG_DATETIME", "2019:01:31 00:00:00")
    if date is not None:
        made.SetMetadata({"ACQUISITIONDATETIME": date, "SATELLITEID": "test"}, "IMAGERY")
    made = None


def value_of(products):
    return np.unique(gdal.Open(next(p["path"] for p in products if p["type"] == "cog")).ReadAsArray()).tolist()


def in_scratch(test):
    def wrapper(self):
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="pb-"))
        self.addCleanup(shutil.rmtree, scratch, ignore_errors=True)
        test(self, scratch)
    return wrapper


class Command(DaemonCase):
    def write(self, scratch, text):
        (scratch / "c.yaml").write_text("compute: {memory: 64MiB, tile: 64}" + text)
        return scratch / "c.yaml"

    def compute(self, scratch, *names, code=0):
        return pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out",
                               *(scratch / name for name in names), code=code)

    @in_scratch
    def test_neighbouring_files_of_the_month_are_taken(self, scratch):
        self.write(scratch, pipeline())
        for name, value, date in (("x", 2, "2026-06-01 00:00:00"), ("b", 4, "2026-06-15 10:50:31"), ("q", 9, "2026-06-30 23:59:59"),
                                  ("july", 100, "2026-07-01 00:00:00")):
            taken(scratch / f"{name}.tif", value, date)
        june, = self.compute(scratch, "x.tif", "b.tif")
        self.assertEqual((pathlib.Path(june["input"]).name, value_of(june["products"])), ("m_202606", [4]))
        stac = json.loads(pathlib.Path(next(p["path"] for p in june["products"] if p["type"] == "stac")).read_text())["properties"]
        self.assertEqual((stac["start_datetime"], stac["end_datetime"]), ("2026-06-01T00:00:00Z", "2026-06-30T23:59:59Z"))
        july, = self.compute(scratch, "july.tif")
        self.assertEqual(value_of(july["products"]), [100])

    @in_scratch
    def test_date_of_the_page_that_is_read_counts(self, scratch):
        """The first page is a thumbnail without metadata."""
        image(scratch / "x.tif", 7)
        page = gdal.GetDriverByName("GTiff").Create(str(scratch / "x.tif"), 53, 37, 1, gdal.GDT_UInt16, ["APPEND_SUBDATASET=YES"])
        page.SetGeoTransform((500000, 10, 0, 4000000, 0, -10))
        page.GetRasterBand(1).Fill(3)
        page.SetMetadata({"ACQUISITIONDATETIME": "2026-06-01 00:00:00", "SATELLITEID": "test"}, "IMAGERY")
        del page
        self.write(scratch, pipeline().replace("nth: ", "page: 2, nth: "))
        done, = self.compute(scratch, "x.tif")
        self.assertEqual((pathlib.Path(done["input"]).name, value_of(done["products"])), ("m_202606", [3]))

    @in_scratch
    def test_folder_with_a_path_that_is_too_long_fails(self, scratch):
        self.write(scratch, pipeline(metadata='metadata: "*.json"'))
        image(scratch / "x.tif", 2)
        item(scratch / "x.json", 10)
        here = os.getcwd()
        try:
            os.chdir(scratch)
            for _ in range(21):  # 4200 bytes
                os.mkdir("d" * 199)
                os.chdir("d" * 199)
            for name in ("x.tif", "x.json"):
                os.link(scratch / name, name)
            for more in (("--dry-run",), ()):
                failed, = pbtest.run_json("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", "x.tif", *more, code=1)
                self.assertEqual(failed["error"]["code"], "input.io", failed)
                self.assertIn("cannot list the files of the scene: File name too long", failed["error"]["message"])
        finally:
            os.chdir(here)

    @in_scratch
    def test_stac_items_tell_tile_and_date(self, scratch):
        self.write(scratch, pipeline(r".*\.(tif|json)", '"{meta.tile}_{meta.date:%Y%m}"', 'metadata: "*.json"'))
        for name, value, tile in (("a", 3, {"grid:code": "MGRS-33XWJ"}), ("b", 5, {"s2:mgrs_tile": "33XWJ"}),
                                  ("c", 8, {"landsat:wrs_path": "1", "landsat:wrs_row": "62"})):
            image(scratch / f"{name}.tif", value)
            item(scratch / f"{name}.json", 10, **tile)
        done = self.compute(scratch, "a.tif", "c.tif")
        self.assertEqual([(pathlib.Path(d["input"]).name, value_of(d["products"])) for d in done], [("T33XWJ_202606", [4]), ("001062_202606", [8])])
        self.assertEqual([f["file"] for f in done[0]["report"]["order"]["files"]], ["a.tif", "b.tif"])

    @in_scratch
    def test_an_mtl_tells_the_scene_of_real_bands(self, scratch):
        real = pbtest.DATA / "real/landsat8_c1_016037"
        if not real.is_dir():
            self.skipTest("no real Landsat scene")
        for path in real.iterdir():
            shutil.copy(path, scratch)
        self.write(scratch, """
pipelines:
  toa:
    input:
      group: '.*_(B\\d+|BQA|MTL)\\.(tif|txt)'
      by: "{meta.tile}_{meta.date}"
      metadata: "*_MTL.txt"
      files: {R: "*_B4.*"}
    steps: [calibrate: {bands: [R], to: toa}]
    products: [statistics: {bands: [R]}, stac: {}]
""")
        done, = self.compute(scratch, "LC08_L1TP_016037_20170813_20170814_01_RT_B4.TIF")
        self.assertEqual(pathlib.Path(done["input"]).name, "016037_20170813")  # WRS_PATH 16, WRS_ROW 37, DATE_ACQUIRED
        self.assertEqual(json.loads(pathlib.Path(next(p["path"] for p in done["products"] if p["type"] == "stac")).read_text())
                         ["properties"]["datetime"], "2017-08-13T15:54:15.788464Z")

    @in_scratch
    def test_parts_of_names_go_with_metadata(self, scratch):
        self.write(scratch, pipeline(r"(?<where>[a-z]+)\d\.tif", '"{where}_{meta.date}"'))
        for name, value in (("east1", 3), ("east2", 5), ("west1", 50)):
            taken(scratch / f"{name}.tif", value, "2026-06-05 10:00:00")
        done, = self.compute(scratch, "east1.tif")
        self.assertEqual((pathlib.Path(done["input"]).name, value_of(done["products"])), ("east_20260605", [4]))

    @in_scratch
    def test_file_without_date_is_an_error_or_a_warning(self, scratch):
        self.write(scratch, pipeline())
        taken(scratch / "a.tif", 3, "2026-06-05 10:00:00")
        taken(scratch / "none.tif", 5)
        taken(scratch / "wrong.tif", 5, "yesterday")
        (scratch / "cut.tif").write_bytes((scratch / "a.tif").read_bytes()[:20])
        good, none, wrong = self.compute(scratch, "a.tif", "none.tif", "wrong.tif", code=1)
        self.assertEqual(value_of(good["products"]), [3])
        self.assertEqual(none["error"]["code"], "input.metadata_missing")
        self.assertIn("the date of the acquisition that input.by of pipeline month takes is unknown", none["error"]["message"])
        self.assertEqual(wrong["error"]["code"], "input.metadata_value")
        said = pbtest.run("pushbroom", "run", "--dry-run", "-c", scratch / "c.yaml", "-o", scratch / "out", scratch / "a.tif").stderr
        self.assertIn("none.tif is left out: the date", said)
        self.assertIn("cut.tif is left out: ", said)

    @in_scratch
    def test_metadata_go_where_their_file_goes(self, scratch):
        self.write(scratch, pipeline(metadata='metadata: "*.json"'))  # input.group does not fit them
        for name, value, date in (("a", 3, None), ("b", 5, "2026-06-20 10:00:00"), ("c", 100, "2026-07-20 10:00:00")):
            taken(scratch / f"{name}.tif", value, date)
        item(scratch / "a.json", 10)
        for name in "bc":  # without a date: that of the file counts
            (scratch / f"{name}.json").write_text(WITHOUT_DATE)
        june, july = self.compute(scratch, "a.tif", "a.json", "b.json", "b.tif", "c.json")
        self.assertEqual((value_of(june["products"]), value_of(july["products"])), ([4], [100]))
        item(scratch / "alone.json", 10)
        alone, = self.compute(scratch, "alone.json", code=1)
        self.assertIn("the file that it is metadata of is missing", alone["error"]["message"])

    @in_scratch
    def test_wrong_templates_are_refused_at_their_place(self, scratch):
        for by, words in (('"{meta.clouds}"', "c.yaml:6:11: input.by: {meta.clouds} is not read from metadata"),
                          ('"{meta.tile:%Y}"', "c.yaml:6:11: input.by: a format is for {date:%Y%m} and {meta.date:%Y%m}"),
                          ("meta.cloud", "c.yaml:6:11: input.by: 'meta.cloud' names no group in braces"),
                          ('"{meta.date:}"', "no format after its colon"),
                          ('"{meta.date:%Y/%m}"', "c.yaml:6:11: input.by: '{meta.date:%Y/%m}' has a slash"),
                          ("meta.tile", "input.by takes {meta.tile}, which is read from metadata next to a file")):
            config = self.write(scratch, pipeline(by=by))
            self.assertIn(words, pbtest.run("pushbroom", "check-config", config, code=2).stderr)
        config = self.write(scratch, pipeline(metadata='metadata: "{scene}.json"'))
        self.assertIn("c.yaml:7:17: input.metadata: with metadata in input.by", pbtest.run("pushbroom", "check-config", config, code=2).stderr)
        for word, full in (("meta.date", "{meta.date:%Y%m%d}"), ("meta.tile", "{meta.tile}")):
            config = self.write(scratch, pipeline(by=word, metadata='metadata: "*.json"'))
            self.assertIn(f'by: "{full}"', pbtest.run("pushbroom", "check-config", config).stdout)


class Service(DaemonCase):
    def service(self, text=None, worker=None, start=True):
        d = self.daemon(fake=False, worker=worker, start=False)
        self.configure(d, text or pipeline())
        (d.root / "made").mkdir()
        return d.start() if start else d

    def configure(self, d, text):
        d.set_pipelines(text)

    def script(self, text):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="pb-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        path = folder / "worker"
        path.write_text(text)
        path.chmod(0o755)
        return path

    def deliver(self, d, *files):
        """(name, value, date), all at once."""
        for name, value, date in files:
            taken(d.root / f"made/{name}.tif", value, date)
        with d.paused():
            for name, _, _ in files:
                os.rename(d.root / f"made/{name}.tif", d.root / f"inbox/{name}.tif")

    def made(self, d, expected):
        """Until these are the scenes, and their values: in how many jobs depends on when files were seen."""
        def values():
            last = {j["scene"]: j["products"] for j in reversed(d.jobs()) if j["status"] == "successful"}
            try:
                return {scene: value_of(products) for scene, products in last.items()} == expected
            except RuntimeError:  # a later job puts its products in their place
                return False
        d.wait_for(values)

    def waiting(self, d):
        return [s for s in d.call("service.info").get("gathering", []) if "metadata are read first" in s["missing"]]

    def test_months_need_no_dates_in_the_names_of_files(self):
        d = self.service()
        self.deliver(d, ("x", 2, "2026-06-01 00:00:00"), ("b", 4, "2026-06-15 10:50:31"), ("q", 9, "2026-06-30 23:59:59"),
                     ("july", 100, "2026-07-01 00:00:00"))
        self.made(d, {"m_202606": [4], "m_202607": [100]})
        self.assertEqual((d.files("inbox"), d.files("quarantine")), ([], []))

    def test_a_late_file_joins_its_month(self):
        d = self.service()
        self.deliver(d, ("x", 2, "2026-06-01 00:00:00"))
        self.made(d, {"m_202606": [2]})
        self.deliver(d, ("y", 4, "2026-06-02 00:00:00"))
        self.made(d, {"m_202606": [3]})

    def test_files_without_date_fail_and_block_no_other(self):
        d = self.service()
        (d.root / "inbox/.cut").write_bytes(b"II*\0 no image")
        os.rename(d.root / "inbox/.cut", d.root / "inbox/cut.tif")
        self.deliver(d, ("none", 5, None), ("x", 2, "2026-06-01 00:00:00"))
        self.made(d, {"m_202606": [2]})
        d.wait_for(lambda: len([j for j in d.jobs() if j["status"] == "failed"]) == 2)
        errors = {j["name"]: j["error"] for j in d.jobs() if j["status"] == "failed"}
        self.assertEqual(errors["none.tif"]["code"], "input.metadata_missing")
        self.assertIn("the date of the acquisition", errors["none.tif"]["message"])
        self.assertEqual(errors["cut.tif"]["code"].split(".")[0], "input")
        self.assertNotEqual(errors["cut.tif"]["code"], "input.no_pipeline")
        wait_for(lambda: d.files("inbox") == [])
        self.assertEqual({pathlib.Path(f).name for f in d.files("quarantine")} & {"none.tif", "cut.tif"}, {"none.tif", "cut.tif"})

    def test_a_file_that_is_written_on_is_asked_again(self):
        gate = pathlib.Path(tempfile.mkdtemp(prefix="pb-")) / "gate"
        self.addCleanup(shutil.rmtree, gate.parent, ignore_errors=True)
        gate.touch()
        d = self.service(worker=self.script(GATE % (gate, BIN / "pushbroomd")))
        taken(d.root / "made/x.tif", 2, "2026-06-01 00:00:00")
        whole = (d.root / "made/x.tif").read_bytes()
        (d.root / "made/x.tif").write_bytes(whole[:100])
        os.rename(d.root / "made/x.tif", d.root / "inbox/x.tif")
        wait_for(lambda: self.waiting(d))
        with open(d.root / "inbox/x.tif", "wb") as out:  # its writer continues during the query
            out.write(whole)
            out.flush()
            gate.unlink()
        self.made(d, {"m_202606": [2]})
        self.assertEqual(d.files("quarantine"), [])

    def test_a_file_at_which_the_reader_dies_fails_alone(self):
        d = self.service(worker=self.script(PROXY % str(BIN / "pushbroomd")))
        self.deliver(d, ("dies", 5, "2026-06-03 00:00:00"), ("x", 2, "2026-06-01 00:00:00"))
        self.made(d, {"m_202606": [2]})
        error = d.wait_job("dies.tif", "failed")["error"]
        self.assertEqual(error["code"], "job.crashed")
        self.assertIn("signal 11", error["message"])

    def test_kill_during_queries_loses_or_doubles_no_file(self):
        gate = pathlib.Path(tempfile.mkdtemp(prefix="pb-")) / "gate"
        self.addCleanup(shutil.rmtree, gate.parent, ignore_errors=True)
        gate.touch()
        d = self.service(worker=self.script(GATE % (gate, BIN / "pushbroomd")))
        self.deliver(d, ("x", 2, "2026-06-01 00:00:00"), ("b", 4, "2026-06-15 10:50:31"))
        wait_for(lambda: len(self.waiting(d)) == 2)
        self.assertEqual(d.jobs(), [])
        d.stop(signal.SIGKILL)
        self.assertEqual(d.files("inbox"), ["b.tif", "x.tif"])
        d.start()
        wait_for(lambda: len(self.waiting(d)) == 2)
        gate.unlink()
        self.made(d, {"m_202606": [3]})
        self.assertEqual(d.files("inbox"), [])
        self.assertEqual({j["status"] for j in d.jobs()}, {"successful"})

    def test_reload_during_queries_uses_the_new_config(self):
        gate = pathlib.Path(tempfile.mkdtemp(prefix="pb-")) / "gate"
        self.addCleanup(shutil.rmtree, gate.parent, ignore_errors=True)
        gate.touch()
        d = self.service(worker=self.script(GATE % (gate, BIN / "pushbroomd")))
        self.deliver(d, ("x", 2, "2026-06-01 00:00:00"), ("b", 4, "2026-06-15 10:50:31"))
        wait_for(lambda: len(self.waiting(d)) == 2)
        self.configure(d, pipeline(by='"y_{meta.date:%Y}"'))
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "reload:" in d.log_text())
        gate.unlink()
        self.made(d, {"y_2026": [3]})
        self.assertEqual({j["scene"] for j in d.jobs()}, {"y_2026"})

    def test_file_waits_for_the_item_with_its_month(self):
        d = self.service(pipeline(r".*\.(tif|json)", metadata='metadata: "*.json"', expire="1h"))
        image(d.root / "made/x.tif", 7)
        os.rename(d.root / "made/x.tif", d.root / "inbox/x.tif")
        wait_for(lambda: "its metadata (*.json) are missing" in json.dumps(d.call("service.info").get("gathering")))
        self.assertEqual(d.jobs(), [])
        item(d.root / "made/x.json", 10)
        os.rename(d.root / "made/x.json", d.root / "inbox/x.json")
        told = wait_for(lambda: [s for s in d.call("service.info")["gathering"] if s["scene"] == "m_202606"] or d.jobs())
        self.assertTrue(told)

    def pairs(self, d, *names):
        """Images, and their texts, all at once."""
        with d.paused():
            for name in names:
                os.rename(d.root / "made" / name, d.root / "inbox" / name)

    def test_early_metadata_wait_for_their_file(self):
        d = self.service(of_two())
        for name, value in (("x", 2), ("y", 4)):
            image(d.root / f"made/{name}.tif", value)
            item(d.root / f"made/{name}.json", 10)
        self.pairs(d, "x.json", "x.tif", "y.json", "y.tif")
        self.made(d, {"m_202606": [3]})
        image(d.root / "made/y.tif", 8)
        item(d.root / "made/y.json", 20)
        self.pairs(d, "y.json")  # its month is complete, and it could join it
        wait_for(lambda: [s for s in d.call("service.info")["gathering"]
                          if s["scene"] == "y.json" and s["missing"] == "the file that it is metadata of is missing"])
        self.pairs(d, "y.tif")
        self.made(d, {"m_202606": [5]})
        d.wait_idle()
        self.assertEqual((d.files("inbox"), d.files("quarantine"), {j["status"] for j in d.jobs()}), ([], [], {"successful"}))

    def test_many_pairs_of_a_month_lose_none(self):
        d = self.service(of_two())
        names = [f"p{i:02}" for i in range(24)]
        for i, name in enumerate(names):
            image(d.root / f"made/{name}.tif", 6)
            item(d.root / f"made/{name}.json", 10, day=i + 1)
        self.pairs(d, *(f"{name}.json" for name in names), *(f"{name}.tif" for name in names))
        # files leave the inbox before their job is stored, and work/ before its end is
        wait_for(lambda: d.files("inbox") == [] and not [f for f in d.files("work") if not f.startswith("done")], progress=d.progress)
        d.wait_idle()
        self.assertEqual({j["status"] for j in d.jobs(limit=100)} - {"successful", "dismissed"}, set())
        self.assertEqual(d.files("quarantine"), [])

    def test_date_in_the_file_is_used_if_item_has_no_date(self):
        d = self.service(of_two())
        for name, value in (("x", 7), ("y", 9)):
            taken(d.root / f"made/{name}.tif", value, "2026-06-20 10:00:00")
            (d.root / f"made/{name}.json").write_text(WITHOUT_DATE)
        self.pairs(d, "x.json", "x.tif", "y.json", "y.tif")
        self.made(d, {"m_202606": [8]})
        self.assertEqual(d.files("quarantine"), [])

    def test_what_tells_nothing_takes_its_metadata_along(self):
        d = self.service(of_two())
        image(d.root / "made/x.tif", 7)
        (d.root / "made/x.json").write_text(WITHOUT_DATE)
        self.pairs(d, "x.json", "x.tif")
        failed = d.wait_job("x.tif", "failed")
        self.assertEqual(failed["error"]["code"], "input.metadata_missing")
        self.assertIn("x.json does not have it, and the file has no ACQUISITIONDATETIME", failed["error"]["message"])
        wait_for(lambda: {pathlib.Path(f).name for f in d.files("quarantine")} >= {"x.tif", "x.json"})
        self.assertEqual((d.files("inbox"), len(d.jobs())), ([], 1))
        d.call("job.retry", id=failed["id"])
        wait_for(lambda: "from the quarantine to the inbox" in str(d.jobs()[0]["error"]))


pbtest.main(workers=3)
