#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that the documents print.
    docs_run.py ROOT PROGRAMS [PAGE...]
Each page has a scratch directory with the repository's samples and data; its `sh` blocks run there in order by bash -eu, with the
built programs. A block without a language after it is the output, which is compared; times, sizes, shares and ids may differ, and
"..." stands for any text of a line, or as a line for any lines. A comment before a block sets its kind:
    <!-- docs: service -->          a service runs; JOB is one of its jobs, scene.tif a scene, /var/lib/pushbroom its directories
    <!-- docs: parse; reason -->    it cannot run here: programs, commands, options and presets exist
A `yaml` block is a configuration, or a part of one: check-config accepts it; one with `frames` is read by pushbroom-ccsds. Commands in the text are checked as those that cannot
run. Prints what fails, exits 1."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time

sys.dont_write_bytecode = True
ROOT, PROGRAMS = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.argv[1:2] = []
sys.path.insert(0, str(ROOT / "tests"))
from docs_check import pages, paragraphs, without_code  # noqa: E402

OURS = {"pushbroom", "pushbroomd", "pushbroom-notify", "pushbroom-web", "pushbroom-ccsds", "make_scene", "wic-bench"}
# Programs that a block for a parser may use although this machine may lack them.
FOREIGN = set("""adduser apt apt-get cc chgrp chmod cmake cp ctest curl docker export git grep journalctl make mkdir mv ninja nvcc pip podman
promtool rclone rm sed sudoedit systemctl systemd-analyze systemd-sysusers systemd-tmpfiles tee xargs""".split())
HIDDEN = {"pushbroomd": {"--device", "--owner"}}  # the service's own processes and tests use them; --help leaves them out
FENCE = re.compile(r"(?:^<!-- docs: (\w+)(?:;[^\n]*)? -->\n)?^```(\w*)\n(.*?)^```$", re.M | re.S)
PIPELINE = "pipelines: {vegetation: {input: {match: ['*.tif'], bands: {B: 1, G: 2, R: 3, N: 4}}, steps: [{index: {names: [NDVI]}}], products: [{cog: {}}]}}\n"
SERVICE = """service: {{inbox: {0}/inbox, work: {0}/work, products: {0}/products, quarantine: {0}/quarantine, state: {0}/state, socket: {0}/status.sock,
          settle: 200ms}}
pipelines:
  vegetation: {{input: {{match: ["*.tif"], bands: {{B: 1, G: 2, R: 3, N: 4}}}}, steps: [{{index: {{names: [NDVI]}}}}], products: [{{cog: {{}}}}]}}
"""


class Page:
    """A scratch directory, and the service of a page once a block wants one."""

    def __init__(self, scratch):
        self.scratch, self.daemon, self.jobs = scratch, None, 0
        for folder in ("samples", "tests", "config", "deploy"):
            (scratch / folder).symlink_to(ROOT / folder)
        shutil.copy(ROOT / "tests/data/real/landsat7_L7_ETMs_6band.tif", scratch / "scene.tif")
        self.env = {"HOME": str(scratch), "PATH": f"{PROGRAMS}:/usr/bin:/bin", "LANG": "C.UTF-8", "COLUMNS": "80", "USER": "you", "TMPDIR": str(scratch),
                    "PROGRAMS": str(PROGRAMS)}  # for deploy/demo

    def serve(self):
        """Starts the service, and waits for it and for a job of it."""
        root = self.scratch / "var"
        root.mkdir()
        (root / "pushbroom.yaml").write_text(SERVICE.format(root))
        self.env["PUSHBROOM_SOCKET"] = str(root / "status.sock")
        with open(root / "log", "wb") as log:
            self.daemon = subprocess.Popen([PROGRAMS / "pushbroomd", "--config", root / "pushbroom.yaml"], env=self.env, stderr=log)
        while not (root / "status.sock").exists():
            assert self.daemon.poll() is None, (root / "log").read_text()
            time.sleep(0.05)

    def new_job(self):
        """The id of a finished job whose scene no other block has."""
        self.jobs += 1
        done = self.run(f"cp scene.tif job{self.jobs}.tif && pushbroom submit --wait --json job{self.jobs}.tif")
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])["id"]

    def run(self, text):
        return subprocess.run(["bash", "-eu", "-o", "pipefail", "-c", text], cwd=self.scratch, env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def stop(self):
        if self.daemon is not None:
            self.daemon.terminate()
            self.daemon.wait()


def gaps_of_run(page, kind, text):
    if kind == "service":
        if page.daemon is None:
            page.serve()
        root = page.scratch / "var"
        for word, value in (("/var/lib/pushbroom", root), ("/run/pushbroom/status.sock", root / "status.sock"), ("/etc/pushbroom/pushbroom.yaml", root / "pushbroom.yaml")):
            text = text.replace(word, str(value))
        text = re.sub(r"\bJOB\b", page.new_job(), text)
    done = page.run(text)
    if done.returncode != 0:
        return None, f"exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout, None


# --- outputs ---


def normal(line):
    for pattern, word in ((r"/\S*pushbroom-demo\.\w+", "DEMO"), (r"\d{8}-\d{6}-\w{4}", "ID"), (r"\d+(\.\d+)? ?(ms|min|s|h)\b", "TIME"), (r"\d+(\.\d+)? ?(B|kB|MB|GB|KiB|MiB|GiB)\b", "SIZE"),
                          (r"\d+(\.\d+)? ?%", "SHARE"), (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "DATE"), (r"\s+", " ")):
        line = re.sub(pattern, word, line)
    return line.strip()


def gap_of_output(shown, printed, scratch):
    """shown is a pattern: '...' any text, as a line any lines."""
    lines = [normal(line.replace(str(scratch), "/home/you/pushbroom")) for line in printed.splitlines()]
    at, free = 0, False
    for line in shown.splitlines():
        if line.strip() == "...":
            free = True
            continue
        pattern = ".*".join(re.escape(part) for part in normal(line).split("..."))
        found = next((i for i in range(at, len(lines) if free else min(at + 1, len(lines))) if re.fullmatch(pattern, lines[i])), None)
        if found is None:
            return f"the output lacks the line: {line}\nit is:\n{printed}"
        at, free = found + 1, False
    return None if free or at == len(lines) else f"the page lacks the line: {lines[at]}"


# --- blocks that cannot run ---


def options_of(program, words):
    """The options that --help of a program, or of its command, prints; None if there is no such command."""
    command = [word for word in words if not word.startswith("-")][:1] if program == "pushbroom" else []
    done = subprocess.run([PROGRAMS / program, *command, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        return None
    return set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", done.stdout)) | {"--help", "--version"}


def gap_of_command(words):
    while words and (words[0] in ("sudo", "exec", "then", "do", "command") or re.fullmatch(r"\w+=.*", words[0])):
        words = words[1:]
    if not words:
        return None
    program, rest = words[0], words[1:]
    if program == "podman" and rest[:1] == ["exec"]:
        program, rest = rest[2], rest[3:]
    if program in OURS:
        known = options_of(program, rest)
        if known is None:
            return f"'{' '.join([program, *rest[:1]])}' does not exist"
        known |= HIDDEN.get(program, set())
        for word in rest:
            if re.match(r"--?[a-z]", word) and word.split("=")[0] not in known:
                return f"{program} has no option {word}"
    elif "/" in program:
        path = ROOT / program.split("pushbroom/", 1)[-1]
        if not (path.exists() and os.access(path, os.X_OK)):
            return f"{program} is no program of the tree"
        for word in rest:
            if word.startswith("--") and word.split("=")[0] not in path.read_text():
                return f"{program} has no option {word}"
    elif program not in FOREIGN and shutil.which(program) is None:
        return f"there is no program {program}"
    presets = {p["name"] for kind in ("configurePresets", "buildPresets", "testPresets") for p in json.loads((ROOT / "CMakePresets.json").read_text()).get(kind, [])}
    if program in ("cmake", "ctest") and "--preset" in rest and rest[rest.index("--preset") + 1] not in presets:
        return f"there is no preset {rest[rest.index('--preset') + 1]}"
    return None


def gap_of_parse(text):
    done = subprocess.run(["bash", "-n"], input=text, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return done.stderr
    lexer = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars="|&;<>\n")
    lexer.whitespace, lexer.whitespace_split = " \t\r", True
    words = []
    for token in [*lexer, "\n"]:
        if not re.fullmatch(r"[|&;\n]+", token):
            words.append(token)
            continue
        cut = next((i for i, word in enumerate(words) if re.fullmatch(r"[<>]+", word)), len(words))
        gap = gap_of_command(words[:cut])
        if gap:
            return gap
        words = []
    return None


# --- configurations ---


def whole(text):
    text = textwrap.dedent(text)
    key = re.match(r"(?:\s*#[^\n]*\n)*(\w[\w-]*):", text)
    top = key.group(1) if key else ""
    if top == "pipelines" or "\npipelines:" in text:
        return text
    if top in ("input", "steps", "products", "output"):
        body = text + ("" if "\nproducts:" in "\n" + text else "products: [{statistics: {}}]\n")
        return "pipelines:\n  p:\n" + textwrap.indent(body, "    ")
    return text + PIPELINE


def gap_of_yaml(page, text):
    path = page.scratch / "block.yaml"
    is_downlink = text.startswith("frames:")
    path.write_text(text if is_downlink else whole(text))
    reader = [PROGRAMS / "pushbroom-ccsds", "--config", path, page.scratch / "scene.tif"] if is_downlink else [PROGRAMS / "pushbroom", "check-config", path]
    done = subprocess.run(reader, env=page.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return None if done.returncode == 0 else f"{reader[0].name}: {done.stdout[-1500:]}"


def gaps_of_words(name, text):
    """Commands in the text: the same checks as of blocks that cannot run."""
    for number, words in paragraphs_and_rows(text):
        for command in re.findall(r"`((?:pushbroom|pushbroomd|pushbroom-notify|pushbroom-web|pushbroom-ccsds|make_scene|tests/run|deploy/[a-z]+) [^`]*)`", words):
            gap = gap_of_parse(re.sub(r"\.\.\.|[<>|]", " ", command))
            if gap:
                yield f"{name}:{number}: `{command}`: {gap}"


def paragraphs_and_rows(text):
    plain = without_code(text)
    yield from paragraphs(text)
    yield from ((number, line) for number, line in enumerate(plain.split("\n"), 1) if line.startswith("|"))


def check(name, text):
    """Yields the gaps of a page."""
    yield from gaps_of_words(name, text)
    with tempfile.TemporaryDirectory(prefix="pb-docs.") as scratch:
        page = Page(pathlib.Path(scratch))
        try:
            printed = None
            for match in FENCE.finditer(text):
                kind, language, block = match.group(1) or "run", match.group(2), match.group(3)
                line, gap = text.count("\n", 0, match.start(2)) + 1, None
                if language == "sh":
                    if kind == "parse":
                        printed, gap = None, gap_of_parse(block)
                    else:
                        printed, gap = gaps_of_run(page, kind, block)
                elif language == "yaml":
                    printed, gap = None, gap_of_yaml(page, block)
                elif language == "" and printed is not None:
                    gap, printed = gap_of_output(block, printed, scratch), None
                if gap:
                    yield f"{name}:{line}: {gap}"
        finally:
            page.stop()


def main(chosen):
    failed, n = [], 0
    for name, text in pages(ROOT):
        if (not chosen and not name.startswith("kernels/ops/")) or name in chosen:
            n += len(FENCE.findall(text))
            failed += check(name, text)
    print("\n".join(failed) if failed else f"docs.run: {n} blocks hold what they show")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[2:])
