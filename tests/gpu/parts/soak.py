# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Random scenes, damaged ones among them, through random pipelines: products of blocks that the GPU decodes itself are the CPU's, or fail with
the same message. Case I of seed S is always the same; a difference is made as small as possible, and kept."""
import collections
import concurrent.futures
import copy
import json
import os
import pathlib
import random
import re
import time

from . import random_pipeline
from .host import sums

DATA = pathlib.Path(__file__).resolve().parents[2] / "data"
BLOCK = re.compile(r"(band \d+, )?(tile|strip) \d+ \([^)]*\)")
SHRINK_S = 60  # at most, of one case
# scene: (seed, longest side, damages) of random_scene, or a file of tests/data; settings: of the configuration
Case = collections.namedtuple("Case", "number scene settings")


def files():
    return sorted(DATA.glob("hostile/*.tif")) + sorted(DATA.glob("derived/*.tif")) + sorted(DATA.glob("real/**/*.tif"))


def settings_of(rng, bands, size):
    """Hostile files with a large declared size are refused by both."""
    return {"limits": {"max_pixels": 4000000}, "compute": random_pipeline.compute(rng), "pipelines": {"p": random_pipeline.pipeline(rng, bands, size)}}


def of_file(number, rng):
    return Case(number, rng.choice(files()), settings_of(rng, 1, (64, 64)))


def case(host, seed, number):
    rng = random.Random(f"{seed} {number}")
    if rng.random() < 0.15 and files():
        return of_file(number, rng)
    scene = rng.randrange(1 << 40), 1500, rng.choice([0] * 7 + [1, 1, 4])
    made = describe(host, scene, host.work / f"soak-{number}.tif")
    return Case(number, scene, settings_of(rng, made["bands"], made["size"]))


def describe(host, scene, path):
    """Makes the scene; returns its description."""
    seed, side, damages = scene
    done = host.call(host.program("random_scene"), "--side", side, *(["--damage", damages] if damages else []), seed, path)
    if done.returncode:
        raise RuntimeError(f"random_scene {scene}: {done.stderr}")
    return json.loads(done.stdout)


def path_of(host, found, name):
    if isinstance(found.scene, pathlib.Path):
        return found.scene
    path = host.work / f"{name}.tif"
    describe(host, found.scene, path)
    return path


def outcome(result):
    """Two runs agree where these are equal. An item has times, and names the device. Any of several damaged blocks is found first;
    blocks that GDAL decodes are read by windows of other sizes."""
    if result.get("status") == "successful":
        return {name: value for name, value in sums(result).items() if not name.endswith(".json") or name.endswith("statistics.json")}
    error = result.get("error")
    if not isinstance(error, dict):
        return str(error)
    message = error["message"]
    return error["code"], "a window" if "window at" in message else message


def agree(cpu, gpu):
    """True if two outcomes are equal: a block that both name has the same message; of two damaged blocks, which have codecs and damages of their
    own, either is found first."""
    if cpu == gpu or not isinstance(cpu, tuple) or not isinstance(gpu, tuple):
        return cpu == gpu
    named = [BLOCK.search(message) for _, message in (cpu, gpu)]
    if cpu[0] != gpu[0] or not all(named) or named[0][0] == named[1][0]:
        return False
    said = [BLOCK.sub("a block", message) for _, message in (cpu, gpu)]
    told = [re.fullmatch(r"(.*a block does not decode): \w+: .*", message, re.S) for message in said]
    return said[0] == said[1] or (all(told) and told[0][1] == told[1][1])


def both(host, found, name):
    """(What differs, or "", the GPU's result) of one case."""
    scene, config = path_of(host, found, name), host.work / f"{name}.yaml"
    service = {"service": {"socket": f"{host.work}/status"}} if host.owner else {}
    config.write_text(random_pipeline.text({**service, **found.settings}))
    results = []
    for device in ("cpu", "cuda"):  # into folders of one name, which messages have
        host.call("rm", "-rf", host.work / name)
        results.append(host.run(config, scene, device, name, limit=120)[0])
    cpu, gpu = (outcome(r) for r in results)
    wrong = "" if agree(cpu, gpu) else f"the CPU {cpu}, the GPU {gpu}"
    if not wrong and results[1].get("device_why"):
        wrong = f"the GPU was given up: {results[1]['device_why']}"
    return wrong, results[1]


def remove(host, found, name):
    if not isinstance(found.scene, pathlib.Path):
        (host.work / f"{name}.tif").unlink(missing_ok=True)
    (host.work / f"{name}.yaml").unlink(missing_ok=True)
    host.call("rm", "-rf", host.work / name)


def smaller(found):
    """Cases with a part less, one after the other."""
    for key in ("products", "steps"):
        parts = found.settings["pipelines"]["p"].get(key, [])
        for i in range(len(parts) - 1, -1, -1):
            if key == "products" and len(parts) == 1:
                continue
            settings = copy.deepcopy(found.settings)
            del settings["pipelines"]["p"][key][i]
            if not settings["pipelines"]["p"][key]:
                del settings["pipelines"]["p"][key]
            yield found._replace(settings=settings)
    for key, plain in (("tile", 0), ("device_memory", "0"), ("threads", 0)):
        if found.settings["compute"][key] != plain:
            settings = copy.deepcopy(found.settings)
            settings["compute"][key] = plain
            yield found._replace(settings=settings)
    if not isinstance(found.scene, pathlib.Path):
        seed, side, damages = found.scene
        if damages:
            yield found._replace(scene=(seed, side, damages - 1))
        for less in (24, 64, 150, 400, 800):
            if less < side:
                yield found._replace(scene=(seed, less, damages))


def shrunk(host, found, name):
    """The smallest case found that still differs."""
    end, again = time.monotonic() + SHRINK_S, True
    while again:
        again = False
        for less in smaller(found):
            if time.monotonic() > end:
                return found
            try:
                wrong, _ = both(host, less, name)
            except RuntimeError:
                continue
            if wrong:
                found, again = less, True
                break
    return found


def report(host, found, wrong):
    name = f"soak-{found.number}"
    small = shrunk(host, found, name)
    now, _ = both(host, small, name)
    scene = small.scene if isinstance(small.scene, pathlib.Path) else f"{host.work}/{name}.tif"
    print(f"    case {found.number}: {wrong[:600]}\n    smaller: {json.dumps(small.settings)}: {now[:600]}")
    if not isinstance(small.scene, pathlib.Path):
        seed, side, damages = small.scene
        print(f"    random_scene --side {side}{f' --damage {damages}' if damages else ''} {seed} {scene}")
    print("".join(f"    pushbroom run --json --device {device} -c {host.work}/{name}.yaml -o {host.work}/{device} {scene}\n" for device in ("cpu", "cuda")), end="", flush=True)


def soak(host, options):
    numbers = [options.case] if options.case is not None else range(options.soak)
    print(f"soak: {len(numbers)} random scenes and pipelines, seed {options.seed}, CPU against GPU")
    host.begin_owner()
    counts, differ = collections.Counter(), []

    def run(number):
        found, name = case(host, options.seed, number), f"soak-{number}"
        wrong, gpu = both(host, found, name)
        if not wrong:
            remove(host, found, name)
        return found, wrong, gpu

    with concurrent.futures.ThreadPoolExecutor(max(2, min(8, (os.cpu_count() or 2) // 2))) as pool:
        for found, wrong, gpu in pool.map(run, numbers):
            good = gpu["status"] == "successful"
            error = gpu.get("error")
            counts["successful" if good else "failed"] += 1
            way = gpu["report"].get("codecs_why") or {"device": "decoded by the GPU"}.get(gpu["report"].get("codecs"), "no word of codecs") if good else ""
            counts["by " + way if good else "as " + (error["code"] if isinstance(error, dict) else str(error).strip()[-150:])] += 1
            differ += [(found, wrong)] if wrong else []
    for found, wrong in differ[:5]:
        report(host, found, wrong)
    for what, n in sorted(counts.items(), key=lambda item: (item[0][:3] in ("by ", "as "), -item[1])):
        print(f"    {n:5} {what.removeprefix('by ').removeprefix('as ')}")
    enough = options.case is not None or (counts["by decoded by the GPU"] > len(numbers) / 4 and counts["successful"] > len(numbers) / 2)
    host.check(not differ and enough, f"{len(numbers)} cases of seed {options.seed}: {len(differ)} differ {[found.number for found, _ in differ][:10]}" + ("" if enough else ", and too few went the GPU's way"))
    host.end_owner()
