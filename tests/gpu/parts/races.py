# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""compute-sanitizer racecheck over the decoders. It follows barriers, and reports data that threads exchange by fences and atomics as races. Some
functions of kernels/codec do that on purpose, and their comments have the reason; every other race is a mistake."""
import collections
import pathlib
import re
import shutil

CODEC = pathlib.Path(__file__).resolve().parents[3] / "kernels/codec"
# A race is meant where both accesses are in the functions of one of these; of two files, one in each.
MEANT = (
    # A match is copied when the bitmap `missing`, which is changed by atomics after a fence, shows that its source is there.
    {"inflate_copy.cuh": ("byte_of", "copy_short", "is_complete", "mark", "copy_long", "try_match")},
    # Up to three bytes after a source are read and not used, and those of a source that has left the ring are read from memory after that.
    {"inflate_round.cuh": ("write_piece",), "inflate_copy.cuh": ("copy_short",)},
    # A word is read and written whole, and each that was ever stored is true.
    {"lzw.cuh": ("link_strings",)},
)
ACCESS = re.compile(r"(Read|Write) access at .* in (\S+?):(\d+)")


def lines_of(source, names):
    """The lines of these functions of a file in the house's style, in which a body ends with a brace in the first column."""
    found, inside, told = set(), None, []
    for number, line in enumerate(source.splitlines(), 1):
        begins = re.match(r"(?:template .*|__device__ .*|[a-z].*)?\b(\w+)\(", line) if not line.startswith((" ", "//", "#")) or "__device__" in line else None
        if inside is None and begins and begins[1] in names:
            inside = begins[1]
            told.append(inside)
        if inside:
            found.add(number)
        if line == "}":
            inside = None
    return found, sorted(set(names) - set(told))


def meant_lines():
    """MEANT with lines in place of functions, and the names of functions that were not found."""
    meant, lost = [], []
    for where in MEANT:
        meant.append({})
        for file, names in where.items():
            meant[-1][file], missing = lines_of((CODEC / file).read_text(), names)
            lost += missing
    return meant, lost


def is_meant(meant, *accesses):
    return any({file for file, _ in accesses} == set(lines) and all(line in lines[file] for file, line in accesses) for lines in meant)


def races(text):
    """Parses racecheck's output: [((file, line) of the first access, (file, line) of the other, how many)]."""
    first, found = None, []
    for line in text.splitlines():
        access = ACCESS.search(line)
        if not access:
            continue
        where = access[2].rsplit("/", 1)[-1], int(access[3])
        if "Race reported between" in line:
            first = where
        elif first:
            found.append((first, where, int((re.search(r"\[(\d+) hazards?\]", line) or [0, 1])[1])))
    return found


def racecheck(host, files):
    """Runs check_codecs-racecheck, which is built by its name, over small files."""
    program = host.bin / "check_codecs-racecheck" if host.bin else shutil.which("check_codecs-racecheck")
    if not program or not pathlib.Path(program).exists() or not CODEC.is_dir():
        print("  racecheck skipped: there is no check_codecs-racecheck (it is not built with the others), or no source beside it")
        return
    meant_in, lost = meant_lines()
    host.check(not lost, f"functions whose races are meant are where they are looked for {lost}")
    for file in files:
        done = host.call("compute-sanitizer", "--tool", "racecheck", "--error-exitcode", "99", program, file, limit=280)
        found, bad = races(done.stdout + done.stderr), collections.Counter()
        for a, b, n in found:
            if not is_meant(meant_in, a, b):
                bad[f"{a[0]}:{a[1]} and {b[0]}:{b[1]}"] += n
        meant = sum(n for *_, n in found) - sum(bad.values())
        for where, n in bad.most_common(20):
            print(f"    {n} hazards between {where}")
        told = done.returncode == (99 if found else 0)
        host.check(told and not bad, f"racecheck of {file.name}: {meant} hazards that are meant, {sum(bad.values())} others (exit {done.returncode})")
