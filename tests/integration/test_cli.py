#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized slow
"""`pushbroom` as a user meets it: help, words and exit codes for mistakes, JSON, tables of 80 columns, terminals of all sizes,
Ctrl-C. Its service is real, its workers are scripted."""
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading

import pbtest
from daemon_kit import Daemon, wait_for
from patience import children, finish, run_to_end
from pbtest import BIN, SANITIZED, SOURCE, run
from terminal import Terminal, colours, rows

COMMANDS = "run submit status cancel retry again quarantine drain check-config operators indices patterns devices metrics store".split()
CONFIG = SOURCE / "samples/vegetation.yaml"


@contextlib.contextmanager
def service(**settings):
    with Daemon(**settings) as daemon:
        yield daemon.start()


def cli(daemon, *words, **more):
    return run("pushbroom", *words, "--socket", daemon.root / "s.sock", **more)


def scene(scratch, name="scene.tif", size="600x500"):
    run("make_scene", "--size", size, "--compress", "NONE", scratch / name)
    return scratch / name


def large(side=2000):
    """Pixels to either side of what takes a second or more; sanitizers take their time with fewer."""
    side = side // 2 if SANITIZED else side
    return f"{side}x{side}"


def slow_config(scratch):
    """A second for a large() scene on one thread, so that something can happen meanwhile."""
    path = scratch / "slow.yaml"
    path.write_text("compute: {device: cpu, threads: 1}\npipelines:\n  p:\n    input: {match: ['*']}\n    products:\n"
                    "      - cog: {bands: [B1, B2], level: 9}\n")
    return path


def catches(pid, number):
    """The process has a handler for the signal."""
    with open(f"/proc/{pid}/status") as file:
        caught = next(line for line in file if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (number - 1) & 1


def check_width(text, columns=80):
    wide = [line for line in text.splitlines() if len(line) > columns]
    assert not wide, wide


def test_help_of_every_command(scratch):
    texts = [run("pushbroom", "--help").stdout] + [run("pushbroom", c, "--help").stdout for c in COMMANDS]
    for text in texts:
        assert text.startswith("usage: pushbroom "), text
        check_width(text)
    assert all(f"  {c} " in texts[0] for c in COMMANDS), texts[0]
    assert run("pushbroom", "help", "run").stdout == run("pushbroom", "run", "-h").stdout
    assert run("pushbroom", "--version").stdout.startswith("pushbroom 0")


def test_what_needs_the_service_is_listed_so(scratch):
    text = run("pushbroom", "--help").stdout
    groups = re.split(r"\n([A-Z][^\n]*:)\n", text)
    listed = {groups[i]: re.findall(r"^  ([a-z-]+) ", groups[i + 1], re.M) for i in range(1, len(groups) - 1, 2)}
    assert listed == {"Without the service:": ["run"],
                      "With the service (pushbroomd):": ["put", "submit", "status", "cancel", "retry", "again", "quarantine", "drain", "feed", "metrics", "store"],
                      "To look things up:": ["new", "check-config", "operators", "indices", "patterns", "devices"]}, listed


def test_operators_are_listed_in_two_columns(scratch):
    groups = run("pushbroom", "operators").stdout.split("\n\n")[:-1]
    lines = [line for group in groups for line in group.splitlines()[1:]]
    columns = {len(re.match(r"  \w+ +", line).group()) for line in lines}
    assert len(groups) > 5 and all(group.splitlines()[0].endswith(":") for group in groups), groups
    assert len(lines) > 20 and len(columns) == 1, lines


def test_wrong_usage_exits_2_and_says_what_is_wrong(scratch):
    cases = {
        "": "usage: pushbroom",
        "rnu": "did you mean 'pushbroom run'",
        "help rnu": "no command 'rnu'",
        "--verison": "did you mean '--version'",
        "run": "-c FILE is missing",
        f"run -c {CONFIG}": "no INPUT",
        f"run -c {CONFIG} --output= x.tif": "-o wants a directory",
        "run -c": "'-c' needs a value",
        "run --confg x y": "did you mean '--config'",
        "run --json=3 x": "'--json' takes no value",
        "run -x": "no option '-x'",
        "run -c /no/such.yaml x.tif": "No such file",
        f"run -c {CONFIG} -p nope x.tif": "no pipeline 'nope'",
        f"run -c {CONFIG} --device gpu x.tif": "auto, cpu, cuda or cuda:N",
        "submit": "no FILE",
        "submit --pipeline": "'--pipeline' needs a value",
        "status --wach": "did you mean '--watch'",
        "status --wait": "no option '--wait'",
        "status a b": "'b' is too many",
        "status --until-idle": "need --watch",
        "status --watch --until-idle --expect x": "a number of jobs",
        "status --watch --since 1h": "--since with --expect only",
        "cancel": "which JOB",
        "cancel --pipeline x y": "no option '--pipeline'",
        "retry": "which JOB",
        "metrics x": "'x'",
        "check-config": "no FILE",
        "check-config a b": "'b' is too many",
        "check-config --jsn a": "did you mean '--json'",
        "operators indx": "did you mean 'index'",
        "indices NDVII": "did you mean 'NDVI'",
        "indices --domain woods": "known: vegetation, water",
        "indices --bands": "'--bands' needs a value",
        "patterns multipl": "did you mean 'multiple'",
        "patterns --all": "no option '--all'",
        "devices x": "'x'",
        "devices --tun": "did you mean '--tune'",
        "store": "init, check or forget is missing",
        "store forget": "which NODE?",
        "store drop": "no action 'drop'",
        "store check host=x dbname=y": "'dbname=y' is too many",
        "store check -c x dbname=y": "not both",
        "store check password=secret": "use passfile=FILE",
        "store init postgresql://me:secret@host/x": "use passfile=FILE",
        f"store check -c {CONFIG}": "has no service.store",
    }
    for words, what in cases.items():
        done = run("pushbroom", *words.split(), code=2)
        assert what in done.stderr and not done.stdout, (words, done.stdout, done.stderr)
        assert "secret" not in done.stderr, done.stderr


def test_a_service_that_is_not_there_exits_3(scratch):
    for words in ("status", "status x", "status --watch", "submit x", "cancel x", "retry x", "metrics"):
        done = run("pushbroom", *words.split(), env={"PUSHBROOM_SOCKET": str(scratch / "none")}, code=3)
        assert "service.unreachable" in done.stderr and "start pushbroomd" in done.stderr, done.stderr
        assert str(scratch / "none") in done.stderr and not done.stdout, done
    for words in ("store check", "store init"):
        done = run("pushbroom", *words.split(), f"host={scratch} dbname=x", code=3)
        assert "start the server" in done.stderr and not done.stdout, done


def test_config_mistakes_all_have_place_and_remedy(scratch):
    path = scratch / "wrong.yaml"
    path.write_text("service: {settle: soon}\ncompute: {memory: lots, theads: 2}\npipelines:\n  p:\n    input: {match: ['*']}\n"
                    "    steps:\n      - indx: {names: [NDVI]}\n    products:\n      - cog: {compress: gzip}\n")
    done = run("pushbroom", "check-config", path, code=2)
    for what in (f"{path}:1:19: ", "did you mean 'threads'", "did you mean 'index'", "none, deflate, zstd, lzw", "5 mistakes in"):
        assert what in done.stderr, (what, done.stderr)
    assert not done.stdout
    result = json.loads(run("pushbroom", "check-config", "--json", path, code=2).stdout)
    assert not result["ok"] and len(result["errors"]) == 5 and result["errors"][0]["line"] == 1, result
    assert run("pushbroom", "run", "-c", path, "x.tif", code=2).stderr == done.stderr


def test_unreadable_config_is_not_reported_as_invalid(scratch):
    for words in (["check-config", "/no/such.yaml"], ["run", "-c", "/no/such.yaml", "x.tif"]):
        done = run("pushbroom", *words, code=2)
        assert done.stderr == "/no/such.yaml: cannot open it: No such file or directory; check the path and its permissions\n", done


def test_the_effective_config_is_a_config(scratch):
    text = run("pushbroom", "check-config", CONFIG).stdout
    (scratch / "again.yaml").write_text(text)
    assert run("pushbroom", "check-config", scratch / "again.yaml").stdout == text


def test_patterns_are_those_of_the_installation(scratch):
    """The built-in one, and the plugins in the directory next to the programs; a bad one has its reason."""
    listed = pbtest.run_json("pushbroom", "patterns", "--json")
    assert [(p["name"], p["built_in"]) for p in listed] == [
        ("unidirectional", True), ("alternating", False), ("multiple", False), ("probabilistic", False)], listed
    assert [a["name"] for a in listed[2]["arguments"]] == ["n0", "n1"], listed
    assert listed[2]["arguments"][0] == {"name": "n0", "range": "1 to 1048576", "default": "4",
                                         "doc": "Chunks from D0 to D1 in a cycle."}, listed
    bare = scratch / "prefix"  # an installed prefix, with one file that is not a plugin
    folder = bare / "lib/wic/patterns"
    folder.mkdir(parents=True)
    (bare / "bin").mkdir()
    shutil.copy(BIN / "pushbroom", bare / "bin/pushbroom")
    program = [bare / "bin/pushbroom", "patterns"]
    assert "alternating" not in subprocess.run(program, capture_output=True, text=True, check=True).stdout
    (folder / "broken.so").write_text("no plugin")
    (folder / "notes.txt").write_text("not listed")
    text = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert "broken" in text and "refused" in text and "no shared object" in text and "notes" not in text, text
    config = scratch / "broken.yaml"
    config.write_text("pipelines:\n  p:\n    exchange: {pattern: broken}\n    products: [cog: {}]\n")
    done = subprocess.run([bare / "bin/pushbroom", "check-config", config], capture_output=True, text=True)
    assert done.returncode == 2 and ":3:25: exchange.pattern: " in done.stderr and "no shared object" in done.stderr, done


def test_pipeline_whose_jobs_all_fail_is_a_warning(scratch):
    path = scratch / "c.yaml"

    def warnings(pipeline):
        path.write_text(f"pipelines:\n  p:\n    {pipeline}\n")
        told = json.loads(run("pushbroom", "check-config", "--json", path).stdout)
        said = [line for line in run("pushbroom", "check-config", path).stderr.splitlines() if "warning" in line]
        assert [f"{path}:{w['line']}:{w['column']}: warning: {w['message']}" for w in told["warnings"]] == said, (told, said)
        checked = run("pushbroomd", "--check", "--config", path, code=None)
        assert [line for line in checked.stderr.splitlines() if "warning" in line] == said, checked
        return told["warnings"]
    late, = warnings("products: [cog: {}, stac: {}]")
    assert (late["line"], late["column"]) == (3, 25) and "every job of pipeline 'p' will fail: the STAC item needs the time" in late["message"], late
    assert warnings("products: [cog: {}, stac: {datetime: metadata}]") and not warnings("products: [stac: {datetime: tag}]")
    assert not warnings('input: {metadata: "a*.txt"}\n    products: [cog: {}, stac: {}]')
    part, = warnings('output: {path: "{sensor}/{scene}"}\n    products: [cog: {}]')
    assert "output.path has {sensor} or {datetime}, and no input.metadata provides them" in part["message"], part
    part, = warnings('output: {name: "{datetime:%Y}_{product}"}\n    products: [cog: {}]')
    assert "output.name has" in part["message"], part


def test_a_pipeline_that_no_file_reaches_is_a_warning(scratch):
    def warnings(*matches):
        config = scratch / "c.yaml"
        config.write_text("pipelines:\n" + "".join(f"  p{i}:\n    input: {{match: {json.dumps(m)}}}\n    products: [cog: {{}}]\n" for i, m in enumerate(matches)))
        done = run("pushbroom", "check-config", config)
        return [line.split("pipeline '")[1].split("'")[0] for line in done.stderr.splitlines() if "warning" in line]
    assert warnings(["*.tif"], ["S2*.tif"]) == ["p1"]
    assert warnings(["S2*.tif"], ["*.tif"]) == []
    assert warnings(["a*.tif", "b*.tif"], ["B1.TIF", "a?.tif"], ["*.tif"]) == ["p1"]
    assert warnings(["a?.tif"], ["a*.tif"], ["A?.tif"]) == ["p2"]
    assert warnings(["*.tif"], ["*.tif", "*.jp2"]) == []


def test_tables_fit_80_columns_without_escape_codes(scratch):
    names = [o["name"] for o in pbtest.run_json("pushbroom", "operators", "--json")]
    for words in (["operators"], ["indices"], ["indices", "--bands", "B,G,R,N"], ["indices", "NDVI", "--bands", "R,N"],
                  ["indices", "TCARIOSAVI"], ["patterns"], ["patterns", "probabilistic"], ["devices"], ["devices", "--as", "jetson-orin-nano"], *(["operators", name] for name in names)):
        text = run("pushbroom", *words).stdout
        assert text and "\x1b" not in text, words
        check_width(text)


def test_without_a_gpu_there_is_nothing_to_tune(scratch):
    """The rest is printed as ever, and nothing is written."""
    env = {"PUSHBROOM_TUNING": str(scratch / "tuning.json")}
    for extra in ([], ["--json"]):
        done = run("pushbroom", "devices", *extra, env={**env, "CUDA_VISIBLE_DEVICES": ""})
        tuned = run("pushbroom", "devices", "--tune", *extra, env={**env, "CUDA_VISIBLE_DEVICES": ""}, code=1)
        assert tuned.stdout == done.stdout and "no GPU to tune" in tuned.stderr, (done, tuned)
    assert not (scratch / "tuning.json").exists()


def test_short_runs_print_products_alone(scratch):
    image = scene(scratch)
    plain, more = (run("pushbroom", "run", *v, "-c", CONFIG, "-o", scratch / "out", image) for v in ([], ["-v"]))
    assert "  limit " not in plain.stdout and "  cores " not in plain.stdout and plain.stderr == "", plain
    assert "  limit " in more.stdout or "  cores " in more.stdout, more
    assert "computing on the CPU" in more.stderr or "on cuda" in more.stdout, more
    planned = [run("pushbroom", "run", *v, "--dry-run", "-c", CONFIG, "-o", scratch / "out", image) for v in ([], ["-v"])]
    assert planned[0].stderr == "", planned


def test_mistakes_of_run_get_remedies_for_run(scratch):
    image = scene(scratch)
    (scratch / "file").touch()
    for words, expected in (
            (["-c", image, CONFIG], ["this is a TIFF image; name the configuration first"]),
            (["-c", CONFIG, "-p", "vegitation", image], ["did you mean 'vegetation'?"]),
            (["-c", CONFIG, "-p", "zzzzzzzz", image], ["; it has vegetation"]),
            (["-c", CONFIG, "-o", scratch / "file", image], ["check that -o names a directory"])):
        text = run("pushbroom", "run", *words, code=None).stderr
        assert all(word in text for word in expected), (words, text)


def test_indices_of_unknown_bands_are_refused(scratch):
    assert "there is no band 'RR'; did you mean 'R'?" in run("pushbroom", "indices", "--bands", "B,RR", code=2).stderr
    assert "did you mean 'B'?" in run("pushbroom", "indices", "--bands", "b,g", code=2).stderr
    assert " of 280 can be" in run("pushbroom", "indices", "--bands", "N,R,lambdaN,HH,PAR").stdout


def test_version_names_libraries(scratch):
    text = run("pushbroom", "--version").stdout
    assert re.search(r"GDAL \d.*SQLite \d.*libuv \d.*CUDA: .", text), text


def test_only_commands_that_compute_load_gdal(scratch):
    """pushbroom, pushbroom-notify, pushbroom-web and pushbroom-ccsds have few libraries, and no command but those of pushbroom-compute starts that one."""
    def libraries(program):
        return run("/usr/bin/ldd", BIN / program).stdout.split("\n")
    for program in ("pushbroom", "pushbroom-notify", "pushbroom-web", "pushbroom-ccsds", "pushbroom-fetch"):
        assert not any("libgdal" in line or "libproj" in line for line in libraries(program)), libraries(program)
    assert any("libgdal" in line for line in libraries("../libexec/pushbroom/pushbroom-compute"))
    alone = scratch / "bin/pushbroom"  # without pushbroom-compute
    alone.parent.mkdir()
    shutil.copy(BIN / "pushbroom", alone)
    config = scratch / "c.yaml"
    config.write_text("pipelines:\n  p:\n    products: [cog: {}]\n")
    for words in ("--version", "--help", "run --help", "operators", "patterns", "indices", "--complete r", f"check-config {config}", f"check-config --json {config}"):
        assert subprocess.run([alone, *words.split()], capture_output=True, text=True).returncode == 0, words
    config.write_text("pipelines:\n  p:\n    steps: [warp: {crs: 'EPSG:4326'}]\n    products: [cog: {}]\n")
    for words in (f"run -c {config} x.tif", "devices", f"check-config {config}"):
        done = subprocess.run([alone, *words.split(), "--json"], capture_output=True, text=True)
        error = json.loads(done.stdout)["error"]
        assert done.returncode == 1 and error["code"] == "system" and "pushbroom-compute" in error["message"], (words, done)


def test_unknown_coordinate_systems_are_mistakes(scratch):
    config = scratch / "c.yaml"
    for crs, code in (("EPSG:32633", 0), ("EPSG:99999", 2)):
        config.write_text(f"pipelines:\n  p:\n    steps: [warp: {{crs: '{crs}'}}]\n    products: [cog: {{}}]\n")
        for words in ((), ("--json",)):
            done = run("pushbroom", "check-config", *words, config, code=code)
            assert code == 0 or "is no coordinate system that is known" in done.stdout + done.stderr, done


def test_json_everywhere_parses(scratch):
    lists = ("operators", "indices", "indices --domain water --bands G,N", "indices --bands-help", "patterns", "devices", "new")
    for words in (*lists, "operators math", "indices NDVI", "patterns multiple", "devices --as t4", f"check-config {CONFIG}"):
        lines = [json.loads(line) for line in run("pushbroom", *words.split(), "--json").stdout.splitlines()]
        assert all(isinstance(line, dict) for line in lines), words
        assert len(lines) == 1 if words not in lists or words == "devices" else len(lines) > 3, words
    for words, word in (("operators nosuch", "usage"), ("indices --domain x", "usage"), ("status --nosuch", "usage"),
                        ("submit nofile --socket /nosuch", "service.unreachable"), ("run -c nofile x", "config.file")):
        done = run("pushbroom", *words.split(), "--json", code=None)
        error, = (json.loads(line)["error"] for line in done.stdout.splitlines())
        assert done.returncode in (2, 3) and error["code"] == word and error["message"] and "hint" in error, (words, done)
    image = scene(scratch)
    planned, = pbtest.run_json("pushbroom", "run", "--dry-run", "--json", "-c", CONFIG, "-o", scratch / "out", image)
    assert planned["status"] == "planned" and planned["plan"]["grid"]["width"] == 600, planned
    assert planned["plan"]["memory_bytes"] > 0 and not (scratch / "out").exists(), planned
    good, bad = pbtest.run_json("pushbroom", "run", "--json", "-c", CONFIG, "-o", scratch / "out", image, scratch / "no.tif", code=1)
    shares = [s["parked_share"] for s in good["report"]["stages"]]
    assert len(shares) == 3 and all(0 <= share <= 1.1 for share in shares), shares
    assert (good["status"], bad["status"], bad["error"]["code"]) == ("successful", "failed", "input.missing")
    with service() as d:
        d.drop("a.tif", "fail")
        d.wait_job("a.tif", "failed")
        listed, = (json.loads(line) for line in cli(d, "status", "--json").stdout.splitlines())
        assert json.loads(cli(d, "status", listed["id"], "--json").stdout) == {**listed, "report": None}
        assert "pushbroom_jobs_total" in json.loads(cli(d, "metrics", "--json").stdout)["text"]
        d.drop("b.tif", "slow 60")
        b = d.wait_job("b.tif", "running")["id"]
        assert json.loads(cli(d, "cancel", b, "--json").stdout)["id"] == b
        d.wait_job("b.tif", "dismissed")
        assert json.loads(cli(d, "retry", b, "--json").stdout)["status"] in ("accepted", "running")
        (d.root / "c.tif").write_text("ok")
        assert json.loads(cli(d, "submit", "--json", d.root / "c.tif").stdout)["status"] == "accepted"


def test_run_prints_products_and_exits_1_on_a_failure(scratch):
    image = scene(scratch)
    done = run("pushbroom", "run", "-c", CONFIG, "-o", scratch / "out", image)
    assert "scene.tif" in done.stdout and "\x1b" not in done.stdout + done.stderr, done.stdout
    done = run("pushbroom", "run", "--quiet", "-c", CONFIG, "-o", scratch / "out", scratch, image, code=1)
    assert "this is a directory" in done.stderr and not done.stdout, done.stderr
    (scratch / "x.dat").write_text("x")
    done = run("pushbroom", "run", "-c", CONFIG, scratch / "x.dat", code=1)
    assert "input.no_pipeline" in done.stderr and "to do: " in done.stderr, done.stderr


def test_several_inputs_end_with_a_sum_of_failures(scratch):
    good = [scene(scratch, f"good{n}.tif", "64x64") for n in range(2)]
    bad = [scratch / f"bad{n}\x1b.tif" for n in range(7)]
    for path in bad:
        path.write_text("no image")
    last = run("pushbroom", "run", "--quiet", "-c", CONFIG, "-o", scratch / "out", bad[0], *good, *bad[1:], code=1).stderr.splitlines()[-1]
    assert last == "2 done, 7 failed: bad0 .tif, bad1 .tif, bad2 .tif, bad3 .tif, bad4 .tif and 2 more", last
    for words in (bad[:1], [*good], ["--json", *good, *bad]):
        done = run("pushbroom", "run", "-c", CONFIG, "-o", scratch / "out", *words, code=int(words != good))
        assert "failed: " not in done.stderr and " done, " not in done.stderr, done.stderr


def test_folder_of_the_shell_has_its_name(scratch):
    """A folder of input.scene is given as ".", and as another path that ends in a dot."""
    folder = scratch / "S2A_x"
    (folder / "more").mkdir(parents=True)
    scene(folder, "B04.tif", "64x64")
    (scratch / "c.yaml").write_text("compute: {device: cpu}\npipelines: {p: {input: {scene: 'S2A_*', files: {R: B04.tif}}, products: [cog: {bands: [R], type: float32}]}}\n")
    for where, path in ((folder, "."), (folder, "./"), (scratch, folder / "more/.."), (scratch, f"{folder}/.")):
        done = json.loads(run("pushbroom", "run", "--json", "-c", scratch / "c.yaml", "-o", scratch / "out", path, cwd=where).stdout)
        assert done["input"] == str(folder) and done["products"][0]["path"].endswith("/S2A_x/p/S2A_x.tif"), done


def test_a_failure_names_its_file_once_as_it_was_given(scratch):
    scene(scratch)
    with open(scratch / "scene.tif", "r+b") as file:
        file.truncate(os.path.getsize(scratch / "scene.tif") - 1000)
    run("make_scene", "--size", "300x300", scratch / "damaged.tif")
    data = bytearray((scratch / "damaged.tif").read_bytes())
    data[len(data) // 2:len(data) // 2 + 40] = b"x" * 40
    (scratch / "damaged.tif").write_bytes(data)
    for name, code in (("scene.tif", "[input.truncated]"), ("damaged.tif", "[input.damaged]")):
        for more in ([], ["--json"]):
            done = run("pushbroom", "run", "-c", CONFIG, "-o", "out", *more, name, code=1, cwd=scratch)
            said = done.stderr if not more else json.loads(done.stdout)["error"]["message"]
            assert "./" not in said and said.count(name) == 1, said
            assert more or code in said, said


def test_long_name_is_cut_at_its_begin_only(scratch):
    for length in range(250, 262):
        name = "x" * 200 + "/" + "y" * (length - 205) + ".tif"
        said = run("pushbroom", "run", "-c", CONFIG, "-o", "out", name, code=1, cwd=scratch).stderr
        assert (name if length < 256 else "..." + name[-252:]) + ":" in said, (length, said)


def test_output_that_cannot_be_written_is_a_failure(scratch):
    with open("/dev/full", "w") as full:
        for words in (["indices"], ["run", "--json", "-c", CONFIG, "-o", scratch / "out", scene(scratch)]):
            done = run_to_end([BIN / "pushbroom", *words], stdout=full, stderr=subprocess.PIPE, text=True)
            assert done.returncode == 1 and "No space left" in done.stderr, (words, done)


def test_ctrl_c_ends_a_run_and_leaves_nothing(scratch):
    image = scene(scratch, size=large())
    terminal = Terminal([BIN / "pushbroom", "run", "-c", slow_config(scratch), "-o", scratch / "out", image, image])
    terminal.read(until="tiles/s")
    os.write(terminal.main, b"\x03")  # typed: the terminal makes the signal
    terminal.process.send_signal(signal.SIGINT)  # without a controlling terminal it does not
    code, text = terminal.end()
    if code == 0:
        raise pbtest.Missed("it was done before the signal came")
    assert code == -signal.SIGINT and "interrupted" in text and "run it again" in text, (code, text)
    assert not list((scratch / "out").iterdir()), list((scratch / "out").iterdir())


def test_closed_terminal_ends_a_run_unless_nohup(scratch):
    image = scene(scratch, size=large())
    for ignored, code in ((False, -signal.SIGHUP), (True, 0)):
        process = subprocess.Popen([BIN / "pushbroom", "run", "-c", slow_config(scratch), "-o", scratch / "out", image],
                                   start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL))
        wait_for(lambda: process.poll() is not None or any(children(worker) for worker in children(process.pid)))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGHUP)  # like the kernel: to all of the session
        out, err = finish(process)
        if process.returncode == 0 and not ignored:
            raise pbtest.Missed("it was done before the signal came")
        assert process.returncode == code, (ignored, process.returncode, out, err)
        assert [p.name for p in (scratch / "out").iterdir()] == (["scene"] if ignored else [])


def test_product_over_the_file_size_limit_is_an_error(scratch):
    image, config = scene(scratch), scratch / "c.yaml"
    limit = (200 << 10, 200 << 10)  # like `ulimit -f` in a shell
    for compress in ("none", "deflate"):
        config.write_text(f"compute: {{device: cpu}}\npipelines:\n  p:\n    input: {{match: ['*']}}\n    products:\n      - cog: {{compress: {compress}, type: float64}}\n")
        process = subprocess.Popen([BIN / "pushbroom", "run", "--json", "-c", config, "-o", scratch / "out", image],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
        out, err = finish(process)
        error = json.loads(out)["error"]
        assert process.returncode == 1 and error["code"] == "output.write" and "File too large" in error["message"], (compress, out, err)
        assert not list((scratch / "out").rglob("*.tif"))


def test_ctrl_c_while_publishing_leaves_nothing(scratch):
    image = scene(scratch, size=large())
    config = scratch / "large.yaml"
    config.write_text("compute: {device: cpu}\npipelines:\n  p:\n    input: {match: ['*']}\n    products:\n"
                      + "      - cog: {name: a%d, compress: none, type: float64, overviews: none}\n" * 4 % (0, 1, 2, 3))
    words = [BIN / "pushbroom", "run", "-c", config, "-o", scratch / "out", image]
    for tries in range(5):  # the disk may be faster than we are
        terminal = Terminal(words)
        seen = terminal.read(until="publish")
        terminal.process.send_signal(signal.SIGINT)
        code, text = terminal.end()
        if code != 0:
            break
    else:
        raise pbtest.Missed("it was done before publishing was seen")
    assert "publish" in seen + text, (seen, text)
    assert code == -signal.SIGINT and "interrupted" in text and "cancelled" in text, (code, text)
    left = [p.name for p in (scratch / "out").iterdir() if tries == 0 or p.name.startswith(".")]
    assert not left, left


def test_a_worker_that_is_killed_costs_an_attempt(scratch):
    image = scene(scratch, size=large(1000))
    words = [BIN / "pushbroom", "run", "-c", slow_config(scratch), "-o", scratch / "out", image]
    for kills, code, told in ((1, 0, "it runs again"), (2, 1, "[memory]")):
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        killed = []
        for _ in range(kills):
            wait_for(lambda: process.poll() is not None or any(children(worker) for worker in set(children(process.pid)) - set(killed)))
            for worker in set(children(process.pid)) - set(killed):
                os.kill(worker, signal.SIGKILL)
                killed.append(worker)
        out, err = finish(process)
        if len(killed) < kills or "was ended by signal 9" not in err:
            raise pbtest.Missed("it was done before the worker was killed")
        assert process.returncode == code and told in err, (process.returncode, out, err)
        assert [p.name for p in (scratch / "out").iterdir()] == ([] if code else ["scene"])
        if code == 0:
            (scratch / "out/scene").rename(scratch / "first")


def test_what_a_killed_run_left_goes_with_the_next(scratch):
    image = scene(scratch, size=large())
    words = [BIN / "pushbroom", "run", "-c", slow_config(scratch), "-o", scratch / "out", image]
    terminal = Terminal(words)
    terminal.read(until="tiles/s")
    workers = children(terminal.process.pid)
    workers += [child for worker in workers for child in children(worker)]
    terminal.process.kill()
    if terminal.end()[0] == 0:
        raise pbtest.Missed("it was done before the signal came")
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}/exe") for pid in workers))  # their open files are not left
    left, = (scratch / "out").iterdir()
    assert left.name.startswith(".scene."), left
    scene(scratch)
    run("pushbroom", "run", "--quiet", "-c", CONFIG, "-o", scratch / "out", image)
    assert [p.name for p in (scratch / "out").iterdir()] == ["scene"]


def test_progress_fits_the_terminal(scratch):
    image = scene(scratch, "S2A_MSIL2A_20260101T101031_N0400_R022_T32UNE_20260101.tif", large(1800))
    slow = slow_config(scratch)
    for columns in (80, 50, 30, 12):
        code, text = Terminal([BIN / "pushbroom", "run", "-c", slow, "-o", scratch / "out", image], columns).end()
        assert code == 0, text
        bars = [row for row in rows(text.partition(" -> ")[0]) if "%" in row]
        assert bars and all(len(row) < columns for row in bars), (columns, bars)
        if columns >= 80:
            if not any("tiles/s" in row for row in bars):
                raise pbtest.Missed("it was done before a rate could be shown")
            assert any("tiles/s" in row and "B/s" in row and " left" in row and "20260101.tif [" in row for row in bars), bars


def test_colours_need_a_terminal_without_no_color(scratch):
    words = [BIN / "pushbroom", "operators", "math"]
    assert colours(Terminal(words).end()[1])
    assert not colours(Terminal(words, env={"NO_COLOR": "1"}).end()[1])
    assert not colours(Terminal(words, env={"TERM": "dumb"}).end()[1])
    assert "\x1b" not in run(*["pushbroom", "operators", "math"]).stdout


def test_status_lists_jobs_in_80_columns(scratch):
    long_name = "S2A_MSIL2A_20260101T101031_N0400_R022_T32UNE_20260101T130812.tif"
    with service() as d:
        assert "no jobs yet" in cli(d, "status").stdout
        d.drop(long_name, "fail")
        job = d.wait_job(long_name, "failed")
        text = cli(d, "status", env={"COLUMNS": "80"}).stdout
        check_width(text)
        assert "..2A_" not in text and "T130812.tif" in text and "input.truncated: tile 7 is missing" in text, text
        for whole in (cli(d, "status").stdout, cli(d, "status", "--wide", env={"COLUMNS": "80"}).stdout):
            assert f"plain         {long_name}\n" in whole and ".." not in whole, whole
        wider = cli(d, "status", env={"COLUMNS": "110"}).stdout
        check_width(wider, 110)
        assert any(len(line) > 80 for line in wider.splitlines()), wider
        for word in (job["id"], job["id"][-4:]):
            one = cli(d, "status", word).stdout
            assert job["id"] in one and "to do      fetch the file again" in one and "attempts   1" in one, one
        assert "job.unknown" in cli(d, "status", "zzzz", code=1).stderr
        assert "job.state" in cli(d, "cancel", job["id"], code=1).stderr
        for i in range(21):
            d.drop("s%02d.tif" % i)
        d.wait_for(lambda: len(d.jobs(status="successful", limit=100)) == 21)
        text = cli(d, "status").stdout
        assert text.count(".tif") == 20 and "--all" in text, text
        assert cli(d, "status", "--all").stdout.count(".tif") == 22


def test_completion_offers_jobs_and_pipelines(scratch):
    with service() as d:
        for name, text in (("a.tif", "ok"), ("b.tif", "fail")):
            d.drop(name, text)
        good, bad = d.wait_job("a.tif", "successful")["id"], d.wait_job("b.tif", "failed")["id"]

        def offered(*words):
            done = run("pushbroom", "--complete", *words, env={"PUSHBROOM_SOCKET": str(d.root / "s.sock")})
            assert not done.stderr, done
            return [line.partition("\t")[0] for line in done.stdout.splitlines()]
        assert offered("status", "") == [bad, good]
        assert offered("again", good[-4:]) == [good] == offered("again", good[:16])
        assert offered("retry", "") == [bad] == offered("quarantine", "show", "")
        assert offered("cancel", "") == []
        assert offered("status", "-p", "") == ["plain"] == offered("again", "--pipeline", "pl")
        assert offered("status", "--until") == ["--until-idle"]


def test_submit_wait_tells_success_failure_and_refusal(scratch):
    with service() as d:
        good, bad = d.root / "good.tif", d.root / "bad.tif"
        good.write_text("ok")
        bad.write_text("fail")
        text = cli(d, "submit", "--wait", good).stdout
        assert "successful" in text and "\x1b" not in text, text
        done = cli(d, "submit", "--wait", good, bad, code=1)
        assert "input.truncated: tile 7 is missing" in done.stdout, done.stdout
        lines = [json.loads(line) for line in cli(d, "submit", "--wait", "--json", good).stdout.splitlines()]
        assert lines[-1]["status"] == "successful" and lines[-1]["products"], lines
        assert "there is no such file" in cli(d, "submit", d.root / "no.tif", code=1).stderr
        assert "no pipeline 'nope'" in cli(d, "submit", "-p", "nope", good, code=1).stderr
        assert "input.no_pipeline" in cli(d, "submit", d.config, code=1).stderr


def test_submit_ends_when_the_service_is_lost(scratch):
    """The reply to one file must not be taken for that to the next."""
    (scratch / "a.tif").write_text("ok")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(scratch / "own.sock"))
        server.listen()

        def refuse():
            peer, _ = server.accept()
            with peer, peer.makefile("rb") as lines:
                lines.readline()
        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        done = run("pushbroom", "submit", "--socket", scratch / "own.sock", *[scratch / "a.tif"] * 3, code=3)
        thread.join()
    assert done.stderr.count("service.unreachable") == 1, done.stderr


def test_uncancellable_job_does_not_block_the_others(scratch):
    with service() as d:
        d.drop("runs.tif", "slow 100")
        running = d.wait_job("runs.tif", "running")
        d.drop("waits.tif", "ok")
        waiting = d.wait_job("waits.tif", "accepted")
        done = cli(d, "cancel", "0000", waiting["id"], running["id"], code=1)
        assert "there is no job '0000'" in done.stderr, done
        assert [line.split()[0] for line in done.stdout.splitlines()] == [waiting["id"], running["id"]], done
        d.wait_job("waits.tif", "dismissed")
        d.wait_job("runs.tif", "dismissed")


def test_watching_a_job_that_has_ended_ends(scratch):
    with service() as d:
        d.drop("good.tif")
        d.drop("bad.tif", "fail")
        assert "successful" in cli(d, "status", "--watch", d.wait_job("good.tif", "successful")["id"]).stdout
        cli(d, "status", "--watch", d.wait_job("bad.tif", "failed")["id"], code=1)
        cli(d, "status", "--watch", "--until-idle")


def test_jobs_that_ended_before_a_watch_count(scratch):
    with service(parallel=2) as d:
        for name, words in (("a.tif", ""), ("b.tif", ""), ("bad.tif", "fail")):
            d.drop(name, words)
        for name, status in (("a.tif", "successful"), ("b.tif", "successful"), ("bad.tif", "failed")):
            d.wait_job(name, status)
        watch = ("status", "--watch", "--until-idle", "--since", "1h", "--expect")
        out = cli(d, *watch, "3", "--json", code=1).stdout
        assert sorted(json.loads(line)["name"] for line in out.splitlines()) == ["a.tif", "b.tif", "bad.tif"], out
        d.drop("slow.tif", "until go")
        process = subprocess.Popen([BIN / "pushbroom", *watch, "5", "--socket", d.root / "s.sock"], stdout=subprocess.PIPE, text=True)
        assert next(line for line in process.stdout if "bad.tif" in line).startswith("failed") # slow.tif may be shown before
        d.drop("last.tif")
        d.wait_job("last.tif", "successful")
        assert process.poll() is None
        (d.root / "go").touch()
        out = process.stdout.read()
        assert process.wait() == 1 and re.search("successful .*slow.tif", out), out


def test_many_jobs_are_watched_on_a_small_terminal(scratch):
    with service(parallel=2) as d:
        for i in range(40):
            d.drop("s%02d.tif" % i, "until go" if i < 2 else "ok")
        d.wait_for(lambda: len(d.jobs(limit=100)) == 40)
        terminal = Terminal([BIN / "pushbroom", "status", "--watch", "--until-idle", "--socket", d.root / "s.sock"], 60, 8)
        terminal.read(until="\x1b[A\x1b[2K")  # it writes over what it wrote
        (d.root / "go").touch()
        code, text = terminal.end()
        assert code == 0, text
        ups = max(len(part) // len("\x1b[A\x1b[2K") for part in
                  re.findall(r"(?:\x1b\[A\x1b\[2K)+", text))
        assert 0 < ups < 8, ups
        assert " more" in text and all(len(row) < 60 for row in rows(text) if "%" in row), text


def test_a_watch_ends_with_3_when_the_service_does(scratch):
    with service() as d:
        d.drop("a.tif", "slow 60")
        d.wait_job("a.tif", "running")
        watch = subprocess.Popen([BIN / "pushbroom", "status", "--watch", "--socket", d.root / "s.sock"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        for line in watch.stdout:
            if "running" in line:
                break
        d.stop(signal.SIGKILL)
        out, err = finish(watch)
        assert watch.returncode == 3 and "service.unreachable" in err and "running" in line, (watch.returncode, line, out, err)


def test_ctrl_c_while_waiting_leaves_the_job_alone(scratch):
    with service() as d:
        (d.root / "slow.tif").write_text("until go")
        wait = subprocess.Popen([BIN / "pushbroom", "submit", "--wait", d.root / "slow.tif", "--socket", d.root / "s.sock"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        d.wait_job("slow.tif", "running")
        wait_for(lambda: catches(wait.pid, signal.SIGINT))
        wait.send_signal(signal.SIGINT)
        _, err = finish(wait)
        assert wait.returncode == -signal.SIGINT and "the jobs continue" in err, (wait.returncode, err)
        (d.root / "go").touch()
        d.wait_job("slow.tif", "successful")


def test_metrics_go_to_a_file_in_one_step(scratch):
    with service() as d:
        target = scratch / "pushbroom.prom"
        target.write_text("old")
        with open(target) as old:
            run("pushbroom", "metrics", "--textfile", target, "--socket", d.root / "s.sock")
            assert old.read() == "old"  # another file, under the same name
        text = target.read_text()
        assert text.startswith("# HELP pushbroom_") and text.endswith("\n"), text[:80]
        assert [p.name for p in scratch.iterdir()] == ["pushbroom.prom"] and target.stat().st_mode & 0o777 == 0o644
        for words, code in ((["--textfile", scratch / "no" / "x.prom"], 1), (["--textfile", target, "--json"], 2)):
            done = run_to_end([BIN / "pushbroom", "metrics", *words, "--socket", d.root / "s.sock"], stderr=subprocess.PIPE, text=True)
            assert done.returncode == code, (words, done)


def test_what_names_of_bands_mean(scratch):
    text = run("pushbroom", "indices", "--bands-help").stdout
    check_width(text)
    assert re.search(r"^N +Near-Infrared \(NIR\) +760 to 900 +B8 +B5 +B8$", text, re.M), text
    bands = {b["name"]: b for b in pbtest.run_json("pushbroom", "indices", "--bands-help", "--json")}
    assert (bands["R"]["shortest_nm"], bands["R"]["longest_nm"], bands["WV"]["landsat8"]) == (620, 690, None)
    assert {"B", "G", "R", "RE1", "N", "S1", "S2", "T"} <= set(bands)


pbtest.main(workers=3)
