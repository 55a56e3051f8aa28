# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""A part of the GPU (compute.share): the products of all of it, by a kernel that stays, by streams and by the GPU's decoders."""
from .host import show, sums
from .pipelines import NDVI


def share(host, options):
    print("a quarter of the GPU")
    scene = host.scene("share deflate", ["--size", f"{options.scene_size}x{options.scene_size}"])
    for sync, codecs in (("wic", "host"), ("stream", "host"), ("stream", "device")):
        made = {}
        for percent in (100, 25):
            config = host.config(f"share-{sync}-{codecs}-{percent}", NDVI.replace("COMPRESS", "deflate"), sync=sync, codecs=codecs)
            config.write_text(config.read_text().replace("{memory: 1GiB", f"{{share: {percent}%, memory: 1GiB"))
            made[percent], done = host.run(config, scene, "cuda", "share")
            if made[percent]["status"] != "successful":
                show(done)
        same = sums(made[100]) and sums(made[100]) == sums(made[25])
        reports = [made[percent].get("report", {}) for percent in (100, 25)]
        took = " and ".join(f"{report.get('elapsed_ms', 0)} ms" for report in reports)
        host.check(same, f"sync {sync}, codecs {codecs}: equal products of all and of a quarter, {took}")
    text = host.call(host.program("pushbroom"), "run", "--dry-run", "--device", "cuda", "-c", config, "-o", host.work / "share", scene).stdout
    lines = [line.strip() for line in text.splitlines() if line.startswith("  share ")]
    host.check(len(lines) == 1 and "multiprocessors" in lines[0], f"the dry run has it: {lines}")
