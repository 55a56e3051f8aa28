#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: slow
"""`pushbroom run` when its device fails: a fresh process, then the CPU, with one result an input and the words for it.
tests/tools/lossy_run.c is the program with a device that fails on demand; no GPU is needed."""
import json
import os
import threading

import pbtest
from pbtest import SOURCE, run

LOST, FAILED, MISSING, BUSY, GOOD = "device.lost", "device.failed", "device.missing", "device.busy", "-"


def scenes(scratch, *names):
    for name in names:
        run("make_scene", "--size", "300x200", "--compress", "NONE", scratch / name)
    return [scratch / name for name in names]


def lossy(scratch, codes, *words, config=SOURCE / "samples/vegetation.yaml", **more):
    """Returns the CompletedProcess and the runs as (pid, where it is computed, input)."""
    done = run("lossy_run", "run", "-c", config, "-o", scratch / "out", *words, env={"LOSSY_CODES": ",".join(codes)}, **more)
    return done, [line.split(" ", 3)[1:] for line in done.stderr.splitlines() if line.startswith("LOSSY ")]


def devices(runs):
    return [device for _, device, _ in runs]


def results(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def checksums(result):
    return {p["type"]: p["checksum"] for p in result["products"] if p["type"] != "stac"}


def test_lost_once_runs_again_in_a_fresh_process(scratch):
    image, = scenes(scratch, "a.tif")
    done, runs = lossy(scratch, [LOST], "--json", image)
    assert devices(runs) == ["gpu", "gpu"], runs
    assert runs[0][0] != runs[1][0], runs
    result, = results(done)
    assert result["status"] == "successful" and result["error"] is None, result
    assert result["device_why"].startswith("again in a fresh process after device.lost: the GPU failed"), result
    assert "a.tif: runs again in a fresh process after device.lost" in done.stderr, done.stderr


def test_device_lost_twice_gives_same_products_on_cpu(scratch):
    image, = scenes(scratch, "a.tif")
    done, runs = lossy(scratch, [], "--json", image)
    plain, = results(done)
    assert plain["device_why"] is None and len(runs) == 1
    for second in (LOST, FAILED, MISSING):
        done, runs = lossy(scratch, [LOST, second], "--json", image)
        assert devices(runs) == ["gpu", "gpu", "cpu"], runs
        result, = results(done)
        assert result["device_why"].startswith(f"on the CPU after {second}: "), result
        assert checksums(result) == checksums(plain)
        assert sorted(p.name for p in (scratch / "out").iterdir()) == ["a"]


def test_a_full_device_is_used_by_streams(scratch):
    image, = scenes(scratch, "a.tif")
    done, runs = lossy(scratch, [BUSY], "--json", image)
    assert devices(runs) == ["gpu", "stream"], runs
    assert runs[0][0] != runs[1][0], runs
    result, = results(done)
    assert result["status"] == "successful", result
    assert result["device_why"].startswith("by streams in a fresh process after device.busy: the GPU failed"), result
    assert "a.tif: runs by streams in a fresh process after device.busy" in done.stderr, done.stderr
    for codes, asked in (([BUSY, LOST], ["gpu", "stream", "cpu"]), ([LOST, BUSY], ["gpu", "gpu", "stream"])):
        done, runs = lossy(scratch, codes, "--json", image)
        assert devices(runs) == asked, (codes, runs)
        assert results(done)[0]["status"] == "successful", done


def test_lost_for_ever_is_one_failure(scratch):
    image, = scenes(scratch, "a.tif")
    done, runs = lossy(scratch, [LOST] * 9, "--json", image, code=1)
    assert devices(runs) == ["gpu", "gpu", "cpu"], runs
    result, = results(done)
    assert (result["status"], result["error"]["code"]) == ("failed", LOST), result
    assert list((scratch / "out").iterdir()) == []
    done, runs = lossy(scratch, [LOST] * 9, image, code=1)
    assert done.stderr.count("[device.lost]") == 1 and not done.stdout, done


def test_other_errors_and_absent_devices_are_final(scratch):
    image, = scenes(scratch, "a.tif")
    for codes in ([MISSING], ["input.damaged"], [LOST, "input.damaged"]):
        done, runs = lossy(scratch, codes, "--json", image, code=1)
        assert len(runs) == len(codes), runs
        assert results(done)[0]["error"]["code"] == codes[-1]


def test_only_input_of_the_failed_device_uses_the_cpu(scratch):
    images = scenes(scratch, "a.tif", "b.tif", "c.tif", "d.tif")
    done, runs = lossy(scratch, [GOOD, LOST, LOST, GOOD, GOOD, LOST, GOOD], "--json", *images)
    assert [(device, name) for _, device, name in runs] == [
        ("gpu", "a.tif"), ("gpu", "b.tif"), ("gpu", "b.tif"), ("cpu", "b.tif"), ("gpu", "c.tif"), ("gpu", "d.tif"), ("gpu", "d.tif")], runs
    made = results(done)
    assert [r["input"] for r in made] == [str(image) for image in images]
    assert [(r["device_why"] or "").split(" after")[0] for r in made] == ["", "on the CPU", "", "again in a fresh process"]
    pids = [run[0] for run in runs]
    assert len(set(pids)) == len(pids), pids


def test_worker_change_keeps_failures_and_options(scratch):
    scenes(scratch, "-b c.tif")
    config = scratch / "c.yaml"
    config.write_text((SOURCE / "samples/vegetation.yaml").read_text())
    done, runs = lossy(scratch, [LOST], "--json", "-p", "vegetation", "--device", "cuda:3", "--", "no.tif", "-b c.tif",
                       config="c.yaml", cwd=scratch, code=1)
    assert devices(runs) == ["gpu", "gpu"] and runs[1][2] == "-b c.tif", runs
    bad, good = results(done)
    assert (bad["status"], good["status"], good["pipeline"]) == ("failed", "successful", "vegetation")
    assert "interrupted" not in done.stderr


def test_required_gpu_fallback_is_shown_even_if_quiet(scratch):
    image, = scenes(scratch, "a.tif")
    done, runs = lossy(scratch, [LOST, LOST], "--quiet", "--device", "cuda", image)
    assert devices(runs) == ["gpu", "gpu", "cpu"], runs
    assert "on the CPU, although the configuration demands a GPU, after device.lost" in done.stderr, done.stderr
    assert not done.stdout


def test_a_device_that_is_never_set_up_ends_the_run(scratch):
    image, = scenes(scratch, "a.tif")
    config = scratch / "c.yaml"
    config.write_text("service: {stall: 1s}\n" + (SOURCE / "samples/vegetation.yaml").read_text())
    os.environ["LOSSY_HANG"] = "1"
    try:
        done, _ = lossy(scratch, [], "--json", image, config=config, code=1)
    finally:
        del os.environ["LOSSY_HANG"]
    result, = results(done)
    assert (result["status"], result["error"]["code"]) == ("failed", "job.stalled"), result


def test_what_was_printed_before_is_printed_once(scratch):
    images = scenes(scratch, "a.tif", "b.tif")
    done, _ = lossy(scratch, [GOOD, LOST, LOST], *images)
    assert [line.split(" -> ")[0] for line in done.stdout.splitlines() if " -> " in line] == [str(i) for i in images], done.stdout


def test_config_readable_once_is_used_for_all_tries(scratch):
    image, = scenes(scratch, "a.tif")
    fifo = scratch / "c.yaml"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=[(SOURCE / "samples/vegetation.yaml").read_bytes()], daemon=True)
    writer.start()
    done, runs = lossy(scratch, [LOST, LOST], "--json", image, config=fifo)
    writer.join()
    assert devices(runs) == ["gpu", "gpu", "cpu"] and results(done)[0]["status"] == "successful", done


pbtest.main()
