#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: optimised slow
"""The real daemon with the real pipeline and real pixels: scenes into the inbox, products out, and what happens when
something is killed, cancelled, broken or full on the way."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess

import pbtest
import sums
from daemon_kit import Daemon, wait_for
from pbtest import plain_scene, run, run_json

PIPELINE = """compute: {device: cpu, threads: 1}
pipelines:
  vegetation:
    input: {match: ["*.tif", "*.tiff"], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001}
    steps:
      - index: {names: [NDVI]}
    products:
      - cog: {bands: [NDVI], level: 9}
      - quicklook: {bands: [R, G, B], size: 256}
      - statistics: {}
      - stac: {datetime: file-time}
"""
FILES = (".pushbroom.json", "{}.png", "{}.stac.json", "{}.statistics.json", "{}.tif")
FOLDER = pbtest.program_folder()
BIG = 1200 if pbtest.SANITIZED else 2048  # pixels a side; its tiles take long enough to be stopped in the middle


@contextlib.contextmanager
def service(start=True, output=None, **settings):
    with Daemon(fake=False, **settings) as d:
        d.set_pipelines(PIPELINE.replace("    steps:", f"    output: {output}\n    steps:") if output else PIPELINE)
        yield d.start() if start else d


def scene(size):
    return plain_scene(FOLDER, size)


def cli(d, *words, **more):
    return run("pushbroom", *words, "--socket", d.root / "s.sock", **more)


def wait(d, name, status):
    return d.wait_job(name, status)


def wait_mid_job(d, name):
    """Until some tiles are done and some are not; then the workers are stopped (SIGSTOP)."""
    job, = d.wait_for(lambda: [j for j in d.jobs() if j["name"] == name and (j["progress"] > 0 or j["finished"])])
    for pid in d.workers():
        os.kill(pid, signal.SIGSTOP)
    job = d.call("job.get", id=job["id"])
    if job["status"] != "running" or job["stage"] == "publish":
        raise pbtest.Missed(f"{name} is {job['status']}, {job['stage']}")
    return job


def go_on(workers):
    for pid in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def products(d):
    return sorted(os.listdir(d.root / "products"))


def check_products(d, job):
    name = job["scene"]
    folder = pathlib.Path(job["directory"])
    assert folder.parent.parent == d.root / "products" and folder.name == "vegetation", folder
    assert sorted(os.listdir(folder)) == sorted(f.format(name) for f in FILES), os.listdir(folder)
    manifest = json.loads((folder / ".pushbroom.json").read_text())
    assert (manifest["job"], manifest["pipeline"], manifest["input"]["name"]) == (job["id"], "vegetation", job["name"]), manifest
    assert {(f["file"], f["bytes"], "blake3:" + f["blake3"]) for f in manifest["files"]} == \
        {(os.path.basename(p["path"]), p["bytes"], p["checksum"]) for p in job["products"]}, manifest
    assert [p["type"] for p in job["products"]] == ["cog", "quicklook", "statistics", "stac"], job
    for p in job["products"]:
        data = pathlib.Path(p["path"]).read_bytes()
        assert len(data) == p["bytes"] and "blake3:" + sums.digest_of(data) == p["checksum"], p


def same_bytes(job, d, source, scratch):
    """The products are those of an undisturbed run."""
    shutil.copy(source, scratch / job["name"])
    alone, = run_json("pushbroom", "run", "--json", "-c", d.config, "-o", scratch / "alone", scratch / job["name"])
    sums = lambda ps: [p["checksum"] for p in ps if p["type"] != "stac"]
    assert sums(alone["products"]) == sums(job["products"]), (alone, job)


def test_three_scenes_become_products_while_watched(scratch):
    with service() as d:
        small = scene(700)
        for name in ("a.tif", "b.tif", "c.tif"):
            d.drop_copy(small, name)
        out = cli(d, "status", "--watch", "--until-idle", "--expect", "3", "--json").stdout
        seen = [json.loads(line) for line in out.splitlines()]
        assert {j["name"] for j in seen} == {"a.tif", "b.tif", "c.tif"}, out
        for name in ("a.tif", "b.tif", "c.tif"):
            job = wait(d, name, "successful")
            assert (job["progress"], job["attempts"], job["device"], job["error"]) == (100, 1, "cpu", None), job
            check_products(d, job)
        assert products(d) == ["a", "b", "c"] and d.files("inbox") == []
        assert d.files("work") == ["done", "done/a.tif", "done/b.tif", "done/c.tif"]
        item = json.loads((d.root / "products/a/vegetation/a.stac.json").read_text())
        assert item["stac_version"] == "1.1.0" and item["assets"]["data"]["proj:transform"][0] == 10, item
        from osgeo_utils.samples import validate_cloud_optimized_geotiff as validator
        warnings, errors, _ = validator.validate(str(d.root / "products/a/vegetation/a.tif"), full_check=True)
        assert not warnings and not errors, (warnings, errors)


def test_kill_9_of_the_service_loses_nothing(scratch):
    with service() as d:
        d.drop_copy(scene(700), "first.tif")
        first = wait(d, "first.tif", "successful")
        d.drop_copy(scene(BIG), "big.tif")
        wait_mid_job(d, "big.tif")
        d.drop_copy(scene(700), "waits.tif")
        wait(d, "waits.tif", "accepted")
        workers = d.workers()
        d.stop(signal.SIGKILL)
        assert not (d.root / "products/big").exists()
        go_on(workers)
        wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers))
        d.start()
        left = [p for p in products(d) if any(f".{pid}-" in p for pid in workers)]
        assert left == [], left
        assert d.call("job.get", id=first["id"])["status"] == "successful"
        job = wait(d, "big.tif", "successful")
        assert job["attempts"] == 2, job
        wait(d, "waits.tif", "successful")
        assert products(d) == ["big", "first", "waits"], products(d)
        check_products(d, job)
        same_bytes(job, d, scene(BIG), scratch)


def test_kill_9_of_a_worker_is_tried_again(scratch):
    with service() as d:
        d.drop_copy(scene(BIG), "big.tif")
        wait_mid_job(d, "big.tif")
        for pid in d.workers():
            os.kill(pid, signal.SIGKILL)
        job = wait(d, "big.tif", "successful")
        assert job["attempts"] == 1 and "signal 9" in d.log_text(), job
        assert products(d) == ["big"], products(d)
        check_products(d, job)


def test_cancelled_job_keeps_input_and_can_be_retried(scratch):
    with service() as d:
        d.drop_copy(scene(BIG), "big.tif")
        job = wait_mid_job(d, "big.tif")
        cli(d, "cancel", job["id"])
        go_on(d.workers())
        job = wait(d, "big.tif", "dismissed")
        assert job["error"]["code"] == "job.dismissed" and products(d) == [], (job, products(d))
        assert d.files("quarantine") == ["big.tif", "big.tif.error.json"]
        cli(d, "retry", job["id"][-4:])
        done = wait(d, "big.tif", "successful")
        assert done["id"] == job["id"] and d.files("quarantine") == [] and products(d) == ["big"]


def test_broken_scene_is_quarantined_and_runs_repaired(scratch):
    with service() as d:
        whole = scene(700).read_bytes()
        (scratch / "cut.tif").write_bytes(whole[:len(whole) // 2])
        (scratch / "text.tif").write_text("this is no TIFF")
        d.drop_copy(scratch / "cut.tif", "cut.tif")
        d.drop_copy(scratch / "text.tif", "text.tif")
        d.drop_copy(scene(700), "good.tif")
        job = wait(d, "cut.tif", "failed")
        wait(d, "good.tif", "successful")
        assert wait(d, "text.tif", "failed")["error"]["code"] == "input.not_tiff"
        record = json.loads((d.root / "quarantine/cut.tif.error.json").read_text())
        assert (record["code"], record["job"]) == ("input.truncated", job["id"]), record
        assert record["input"] == job["input"] == str(d.root / "quarantine/cut.tif"), record
        # Nothing names the place in work/ where the scene was for a moment.
        assert "/work/" not in record["message"] and record["hint"], record
        assert f"cut.tif taken from the inbox ({len(whole) // 2} bytes)" in d.log_text()
        assert "input.truncated" in cli(d, "status").stdout
        done = cli(d, "retry", job["id"])
        wait(d, "cut.tif", "failed")
        (d.root / "quarantine/cut.tif").write_bytes(whole)
        cli(d, "retry", job["id"])
        job = wait(d, "cut.tif", "successful")
        assert d.files("quarantine") == ["text.tif", "text.tif.error.json"] and done.stdout
        check_products(d, job)


def test_sigterm_puts_the_job_back_within_10_seconds(scratch):
    with service() as d:
        d.drop_copy(scene(BIG), "big.tif")
        wait_mid_job(d, "big.tif")
        go_on(d.workers())
        status, seconds = d.stop()
        assert status == 0 and seconds < 40, (status, seconds)  # it promises 10, and this machine may have other work
        assert [p for p in products(d) if p.startswith(".")] == [], products(d)
        assert not (d.root / "s.sock").exists()
        d.start()
        job = wait(d, "big.tif", "successful")
        assert job["attempts"] == 1, job
        check_products(d, job)


def test_same_file_again_replaces_products_in_one_step(scratch):
    with service() as d:
        def deliver():
            d.drop_copy(scene(700), "x.tif")  # name, size and mtime are those of the first
        deliver()
        before = wait(d, "x.tif", "successful")
        folder = d.root / "products/x/vegetation"
        inode = folder.stat().st_ino
        deliver()

        def second():
            assert len(os.listdir(folder)) == 5  # at every moment the old products or the new ones
            return [j for j in d.jobs(status="successful") if j["id"] != before["id"]]
        after = d.wait_for(second, step=0.005)[0]
        check_products(d, after)
        assert products(d) == ["x"] and folder.stat().st_ino != inode
        assert json.loads((folder / ".pushbroom.json").read_text())["job"] == after["id"]


def test_other_file_of_equal_stat_has_its_own_place(scratch):
    with service(output="{exists: version}") as d:
        run("make_scene", "--size", "300x300", "--compress", "none", scratch / "x.tif")
        other = bytearray((scratch / "x.tif").read_bytes())
        other[-1] ^= 1
        (scratch / "other.tif").write_bytes(other)

        def deliver(path):
            done = len(d.jobs(status="successful"))
            os.utime(path, (1e9, 1e9))
            d.drop_copy(path, "x.tif")
            return d.wait_for(lambda: d.jobs(status="successful")[0] if len(d.jobs(status="successful")) > done else None)
        places = [pathlib.Path(deliver(scratch / f)["directory"]).parent.name for f in ("x.tif", "other.tif", "other.tif", "x.tif")]
        assert places == ["x", "x~2", "x~2", "x"], places
        for place, path in (("x", "x.tif"), ("x~2", "other.tif")):
            manifest = json.loads((d.root / "products" / place / "vegetation/.pushbroom.json").read_text())
            assert manifest["input"]["blake3"] == sums.digest(scratch / path)


def test_other_file_of_the_same_name_has_its_own_place(scratch):
    with service(output="{exists: version}") as d:
        d.drop_copy(scene(700), "x.tif")
        before = wait(d, "x.tif", "successful")
        run("make_scene", "--size", "700x700", "--seed", "7", scratch / "other.tif")
        d.drop_copy(scratch / "other.tif", "x.tif")
        after = d.wait_for(lambda: [j for j in d.jobs(status="successful") if j["id"] != before["id"]])[0]
        run("make_scene", "--size", "700x700", "--seed", "8", scratch / "third.tif")
        d.drop_copy(scratch / "third.tif", "x.tiff")  # the suffix is no part of the scene's name
        third = wait(d, "x.tiff", "successful")
        assert products(d) == ["x", "x~2", "x~3"], products(d)
        for job, place in ((before, "x"), (after, "x~2"), (third, "x~3")):
            assert job["directory"] == str(d.root / "products" / place / "vegetation"), job
            check_products(d, job)
            item = json.loads((d.root / "products" / place / "vegetation/x.stac.json").read_text())
            assert item["id"] == place + ".vegetation", item
        assert after["products"][0]["checksum"] != before["products"][0]["checksum"]


def test_path_places_products_and_refuses_other_input(scratch):
    with service(output='{path: "all/{pipeline}/{scene}", name: "{scene}_{product}"}') as d:
        d.drop_copy(scene(300), "x.tif")
        job = wait(d, "x.tif", "successful")
        folder = d.root / "products/all/vegetation/x"
        assert job["directory"] == str(folder), job
        assert sorted(p.name for p in folder.iterdir()) == [".pushbroom.json", "x_cog.tif", "x_quicklook.png", "x_stac.json", "x_statistics.json"]
        manifest = json.loads((folder / ".pushbroom.json").read_text())
        assert manifest["path"] == "all/vegetation/x" and manifest["job"] == job["id"], manifest
        item = json.loads((folder / "x_stac.json").read_text())
        assert item["id"] == "all.vegetation.x.vegetation" and {a["href"] for a in item["assets"].values()} == {"./x_cog.tif", "./x_quicklook.png", "./x_statistics.json"}, item
        before = kept(folder)
        run("make_scene", "--size", "300x300", "--seed", "7", scratch / "other.tif")
        d.drop_copy(scratch / "other.tif", "x.tif")
        failed, = d.wait_for(lambda: d.jobs(status="failed"))
        assert failed["error"]["code"] == "output.exists" and "another input" in failed["error"]["message"], failed
        assert kept(folder) == before and (d.root / "quarantine/x.tif").exists()
        d.drop_copy(scene(300), "x.tif")  # the same content is the same input
        again = d.wait_for(lambda: [j for j in d.jobs(status="successful") if j["id"] != job["id"]])[0]
        assert again["directory"] == str(folder)


def kept(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_unknown_path_field_fails_before_any_pixel(scratch):
    with service(output='{path: "{sensor}/{scene}"}') as d:
        d.drop_copy(scene(300), "x.tif")
        job = wait(d, "x.tif", "failed")
        assert job["error"]["code"] == "output.path" and "{sensor}" in job["error"]["message"], job
        assert job["tiles_done"] == 0 and not products(d), job


def test_products_have_the_permissions_of_the_config(scratch):
    was = os.umask(0o077)
    try:
        with service(start=False) as d:
            d.change("service:\n", "service:\n  products_mode: 0640\n")
            d.start()
            d.drop_copy(scene(700), "x.tif")
            check_products(d, wait(d, "x.tif", "successful"))
            folder = d.root / "products/x"
            modes = {str(p.relative_to(folder.parent)): p.stat().st_mode & 0o7777 for p in (folder, *folder.rglob("*"))}
            assert all(mode == (0o750 if name in ("x", "x/vegetation") else 0o640) for name, mode in modes.items()), modes
            assert len(modes) == 8, modes
    finally:
        os.umask(was)


def test_full_disk_is_reported_and_job_continues_later(scratch):
    with service(start=False) as d:
        small = d.root / "products"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", small], capture_output=True).returncode:
            raise pbtest.Skip("cannot mount a tmpfs here")
        try:
            d.start()
            cli(d, "submit", scene(700))
            trouble = d.wait_for(lambda: d.trouble("queue"))
            assert trouble["code"] == "output.full" and "free space" in trouble["hint"], trouble
            assert "trouble" in cli(d, "status").stdout
            job = wait(d, "700.tif", "accepted")
            assert job["error"]["code"] == "output.full" and job["attempts"] == 0, job
            assert products(d) == [], products(d)
            subprocess.run(["mount", "-o", "remount,size=50m", small], check=True)
            check_products(d, wait(d, "700.tif", "successful"))
        finally:
            d.stop()
            subprocess.run(["umount", small], check=True)


if __name__ == "__main__":
    pbtest.main(workers=3)
