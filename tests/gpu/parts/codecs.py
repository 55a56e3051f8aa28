# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Decoding and encoding on the GPU compared with the host's codecs: files, damaged streams, speed."""
import pathlib
import shutil

from .host import show
from .races import racecheck

DATA = pathlib.Path(__file__).resolve().parents[2] / "data"


def files(host):
    """Scenes of every codec and layout that a GPU decodes, and the samples of tests/data."""
    made = [
        host.scene("codecs deflate", ["--size", "700x600"]),
        host.scene("codecs lzw", ["--size", "700x600", "--compress", "LZW"]),
        host.scene("codecs none", ["--size", "300x200", "--compress", "NONE"]),
        host.scene("codecs f32 strips", ["--size", "500x400", "--type", "Float32", "--strips", "--block", "16"]),
        host.scene("codecs bands", ["--size", "500x400", "--interleave", "BAND", "--block", "64", "--collar"]),
    ]
    return made + sorted(DATA.glob("derived/l7_*.tif")) + sorted(DATA.glob("hostile/*.tif"))


def codecs(host, _):
    print("2b. codecs: streams decoded by the GPU, planes of samples, statistics")
    done = host.call(host.program("check_samples"), "--speed", limit=120)
    show(done)
    host.check(done.returncode == 0, f"check_samples (exit {done.returncode})")
    done = host.call(host.program("check_codecs"), "--mutate", 100000, *files(host), limit=300)
    show(done)
    host.check(done.returncode == 0, f"check_codecs, 100,000 damaged streams of each codec (exit {done.returncode})")
    for name, arguments in (("u16", []), ("f32", ["--type", "Float32", "--bands", "1"]), ("lzw", ["--compress", "LZW"])):
        done = host.call(host.program("check_codecs"), "--speed", host.scene(f"codecs speed {name}", ["--size", "2048x2048", *arguments]), limit=120)
        show(done)
        host.check(done.returncode == 0 and "REFUSED" not in done.stdout, f"speed, {name} (exit {done.returncode})")
    done = host.call(host.program("check_statistics"), limit=120)
    show(done)
    host.check(done.returncode == 0, f"check_statistics (exit {done.returncode})")


def encoder(host, options):
    print("2c. blocks encoded by the GPU and by the host, and how fast; the same under compute-sanitizer")
    done = host.call(host.program("check_encode"), limit=120)
    show(done)
    host.check(done.returncode == 0, f"check_encode (exit {done.returncode})")
    if options.skip_sanitizer:
        return
    for tool in ("memcheck", "synccheck", "racecheck"):
        done = host.call("compute-sanitizer", "--tool", tool, "--error-exitcode", "99", host.program("check_encode"), "--quick", limit=280)
        host.check(done.returncode == 0, f"{tool} of check_encode: {(done.stdout + done.stderr).strip().splitlines()[-1:]}")


def codecs_sanitizer(host, _):
    print("4c. compute-sanitizer over the codecs")
    if shutil.which("compute-sanitizer") is None:
        host.check(False, "compute-sanitizer is not on PATH")
        return
    prefix = ["compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "99"]
    for program in (["check_samples"], ["check_warp", 200], ["check_statistics", "--quick"], ["check_codecs", "--mutate", 100000, *files(host)]):
        done = host.call(*prefix, host.program(program[0]), *program[1:], limit=580)
        host.check(done.returncode == 0, f"{program[0]}: {(done.stdout + done.stderr).strip().splitlines()[-1:]}")
    done = host.call("compute-sanitizer", "--tool", "racecheck", "--error-exitcode", "99", host.program("check_statistics"), "--quick", limit=280)
    host.check(done.returncode == 0, f"racecheck of check_statistics: {(done.stdout + done.stderr).strip().splitlines()[-1:]}")
    racecheck(host, [host.scene(f"races {codec}", ["--size", "500x400", "--block", "128", "--compress", codec]) for codec in ("DEFLATE", "LZW")])
