#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Takes the worker's place on the other end of the real pipes, so that crashes, hangs and garbage
happen when a test wants them. The first word of the input file is its action for a job:
ok | slow SECONDS | fail | crash [N]: the first N runs of the scene (without N: all) | crash_once | stall | deaf | garbage | long | flood | elsewhere | other_job |
quiet_exit | lost_on_cancel
published WORD [ARGUMENT...]: puts complete products into place, and continues with WORD
turn TILES BYTES WORD [ARGUMENT...]: has a plan with these needs, and continues with WORD when it may compute
until FILE [PERCENT]: works until FILE is there, next to products/; PERCENT (0) of its tiles are done then
publishing FILE [N [AFTER]]: like until, in the stage "publish", with N (10) of 10 tiles computed; with all when AFTER is there
fault CODE [N]: the first N runs of the scene (without N: all) end with CODE | while FILE CODE: CODE as long as FILE is
there, next to products/ | killed_once: SIGKILL, as from outside, in the first run
scenes NAME,NAME... WORD [ARGUMENT...]: the job of the archive ends with these scenes, and that of a scene continues with WORD
device CODE... [WORD...]: the n-th run of the scene ends with the n-th CODE (device.lost, ...); after the last one
it does WORD. Each of these runs leaves a line "pid device-that-was-asked-for" in tries-SCENE next to products/."""
import fcntl
import hashlib
import json
import os
import shutil
import signal
import sys
import threading
import time

out_lock = threading.Lock()
cancelled = threading.Event()
turn = threading.Event()


current = None  # the job that runs


def die(number):
    """The signal may be another thread's: no line is written until it works."""
    os.kill(os.getpid(), number)
    time.sleep(60)


def say(**event):
    if current and event["event"] != "device":
        event.setdefault("job", current)
    with out_lock:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()


def progress(done, total, stage="compute", **more):
    say(event="progress", stage=stage, tiles_done=done, tiles_total=total, bytes_read=done * 1000,
        bytes_written=done * 100, elapsed_ms=done * 10, device="cpu", **more)


def device(job, words):
    """Action of this run of the scene: ["device", code], or the words after the codes."""
    path = os.path.join(os.path.dirname(job["products"]), "tries-" + job["scene"])
    with open(path, "a+") as file:
        file.seek(0)
        run_before = len(file.readlines())
        file.write("%d %s\n" % (os.getpid(), job.get("device", "stream" if "stream_why" in job else "config")))
    codes = [word for word in words if word.startswith("device.")]
    return ["device", codes[run_before]] if run_before < len(codes) else words[len(codes):] or ["ok"]


def runs_before(job):
    path = os.path.join(os.path.dirname(job["products"]), "runs-" + job["scene"])
    with open(path, "a+") as file:
        file.seek(0)
        before = len(file.readlines())
        file.write("%s\n" % job["job"])
    return before


MESSAGES = {"plan.memory": "this scene needs at least 2048 MiB"}


def fault(job, words):
    """The code that this run ends with, or None."""
    before = runs_before(job)
    if words[0] == "fault":
        return words[1] if len(words) < 3 or before < int(words[2]) else None
    if words[0] == "while":
        return words[2] if os.path.exists(os.path.join(os.path.dirname(job["products"]), words[1])) else None
    if before == 0:
        progress(3, 10)
        die(signal.SIGKILL)
    return None


def temporary_name(job, n):
    """Name of a directory in the form of the workers, so that a sweep of this machine knows their owner."""
    try:
        with open("/etc/machine-id", "rb") as file:
            machine = file.read(127)
    except OSError:
        machine = b""
    node = hashlib.sha256(machine + os.uname().nodename.encode()).hexdigest()[:12]
    with open("/proc/self/stat") as file:
        start = file.read().rsplit(")", 1)[1].split()[19]
    return os.path.join(job["products"], ".%s.%s.1.%s.%d-%s-%d.tmp" % (job["scene"], job["job"], node, os.getpid(), start, n))


def publish(job):
    """Leaves the files of a real worker in products/: the directory with its manifest, by one rename."""
    runs_before(job)
    temporary = temporary_name(job, 1)
    os.makedirs(temporary)
    with open(os.path.join(temporary, "x.tif"), "w") as file:
        file.write("pixels")
    input_id = {"name": os.path.basename(job["manifest"]["input"]), "bytes": 1, "mtime_ns": 1}
    manifest = {"manifest": 1, "pushbroom": "test", "scene": job["scene"], "input": input_id}
    scene = os.path.join(job["products"], job["scene"])
    os.makedirs(scene, exist_ok=True)
    with open(os.path.join(scene, ".pushbroom.json"), "w") as file:
        json.dump(manifest, file)
    files = [{"type": "cog", "file": "x.tif", "bytes": 6, "sha256": "0" * 64, "media_type": "image/tiff"}]
    with open(os.path.join(temporary, ".pushbroom.json"), "w") as file:
        json.dump(dict(manifest, pipeline=job["pipeline"], job=job["job"], files=files), file)
    os.rename(temporary, os.path.join(scene, job["pipeline"]))


def make_locked(path):
    """Makes and locks a directory like a real worker: a locked directory is not swept, and one that a sweep removed before is made again."""
    while True:
        os.makedirs(path, exist_ok=True)
        try:
            lock = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(path) and os.path.samestat(os.stat(path), os.fstat(lock)):
            return lock
        os.close(lock)


def script(path):
    """The file with the words: of a folder the first one."""
    return path if os.path.isfile(path) else os.path.join(path, sorted(os.listdir(path))[0])


def run(job):
    with open(script(job["manifest"]["input"]), "rb") as file:
        words = file.read(200).decode(errors="replace").split() or ["ok"]
    if words[0] == "device":
        words = device(job, words[1:])
    if words[0] == "published":
        publish(job)
        words = words[1:]
    if words[0] == "turn":
        turn.clear()
        say(event="turn", tiles=int(words[1]), memory_bytes=int(words[2]))
        turn.wait()
        words = words[3:]
    if words[0] == "scenes":
        names, words = words[1].split(","), words[2:]
        if job["scene"] not in names:
            say(event="failed", error={"code": "input.scenes", "message": "several", "hint": ""}, scenes=names)
            return
    what = words[0]
    code = fault(job, words) if what in ("fault", "while", "killed_once") else None
    if code:
        say(event="failed", job=job["job"], error={"code": code, "message": MESSAGES.get(code, "as the test wants it"), "hint": "wait"})
        return
    temporary = temporary_name(job, 0)
    lock = make_locked(temporary)
    leftover = os.path.join(temporary, "scene")
    os.makedirs(leftover)
    identity = {"name": job["name"], "bytes": 1, "mtime_ns": 1}
    with open(os.path.join(leftover, ".pushbroom.json"), "w") as file:  # ours to sweep
        json.dump({"manifest": 1, "pushbroom": "0", "scene": job["scene"], "input": identity}, file)
    open(os.path.join(leftover, "half.tif"), "w").close()
    mark = os.path.join(os.path.dirname(job["products"]), "crashed-" + job["scene"])
    if (what == "crash" and (len(words) < 2 or runs_before(job) < int(words[1]))) or (what == "crash_once" and not os.path.exists(mark)):
        open(mark, "w").close()
        progress(3, 10)
        die(signal.SIGSEGV)
    if what == "killed":
        die(signal.SIGKILL)
    if what == "quiet_exit":
        os._exit(0)
    if what == "garbage":
        sys.stdout.write("this is no JSON\n")
        sys.stdout.flush()
        time.sleep(60)
    if what == "flood":
        line = (json.dumps(dict(event="progress", job=current, stage="compute", tiles_done=1, tiles_total=10, bytes_read=1,
                                bytes_written=1, elapsed_ms=1, device="cpu")) + "\n").encode()
        try:
            while True:
                os.write(1, line * 100)
        except BrokenPipeError:
            os._exit(1)
    if what == "elsewhere":
        say(event="done", directory="/etc", products=[], report={"device": "cpu", "memory_bytes": 1, "elapsed_ms": 1})
        time.sleep(60)
    if what == "other_job":
        say(event="failed", job="20200101-000000-aaaa", error={"code": "input.damaged", "message": "not mine", "hint": ""})
        time.sleep(60)
    if what == "long":
        sys.stdout.write("x" * (2 << 20))
        sys.stdout.flush()
        time.sleep(60)
    if what in ("stall", "deaf"):
        for _ in range(1000):
            progress(5, 10)
            time.sleep(0.05)
            if what == "stall" and cancelled.is_set():
                break
    if what == "device":
        shutil.rmtree(temporary)
        os.close(lock)
        progress(7, 10)
        error = {"code": words[1], "message": "the GPU failed while computing: unspecified launch failure", "hint": "dmesg"}
        late = dict(event="progress", job=current, stage="compute", tiles_done=9, tiles_total=10, bytes_read=9000,
                    bytes_written=900, elapsed_ms=90, device="cpu")
        with out_lock:  # a line too many in one write: it is read with the line that ends the run
            os.write(1, "".join(json.dumps(e) + "\n" for e in ({"event": "failed", "job": current, "error": error}, late)).encode())
        return
    if what == "lost_on_cancel":
        progress(1, 10)
        cancelled.wait()
        say(event="failed", error={"code": "device.lost", "message": "the kernel did not leave", "hint": "dmesg"})
        return
    if what == "fail":
        shutil.rmtree(temporary)
        os.close(lock)
        say(event="failed", error={"code": "input.truncated", "message": "tile 7 is\nmissing", "hint": "again"})
        return
    done = 0
    while what == "until" and not os.path.exists(os.path.join(os.path.dirname(job["products"]), words[1])):
        done += 1
        progress(done + 10000 * int(words[2] if len(words) > 2 else 0), 1000000)
        if cancelled.wait(0.1):
            say(event="failed", error={"code": "job.dismissed", "message": "cancelled", "hint": ""})
            return
    if what == "until":
        progress(1000000, 1000000)
    while what == "publishing" and not os.path.exists(os.path.join(os.path.dirname(job["products"]), words[1])):
        complete = len(words) < 3 or (len(words) > 3 and os.path.exists(os.path.join(os.path.dirname(job["products"]), words[3])))
        progress(10 if complete else int(words[2]), 10, stage="publish")
        time.sleep(0.1)
    seconds = float(words[1]) if what == "slow" else 0.05
    steps = 20 if what not in ("until", "publishing") else 0
    for i in range(steps):
        if cancelled.wait(seconds / steps):
            say(event="failed", error={"code": "job.dismissed", "message": "cancelled", "hint": ""})
            return
        progress(i + 1, steps)
    directory = os.path.join(job["products"], job["scene"], job["pipeline"])
    os.makedirs(directory, exist_ok=True)
    os.rename(os.path.join(leftover, "half.tif"), os.path.join(directory, job["scene"] + ".tif"))
    os.unlink(os.path.join(leftover, ".pushbroom.json"))
    os.rmdir(leftover)
    os.rmdir(temporary)
    say(event="done", directory=directory,
        products=[{"type": "cog", "path": directory + "/x.tif", "bytes": 1, "checksum": "sha256:" + "0" * 64,
                   "media_type": "image/tiff"}],
        report={"device": "cpu", "memory_bytes": 4096, "elapsed_ms": 50,
                "stages": [{"name": "read", "busy_ms": 10, "parked_ms": 5}]})


def main():
    global current
    assert sys.argv[1:] == ["--worker"]
    sys.stdout.write("\n")
    sys.stdout.flush()
    for line in sys.stdin:
        command = json.loads(line)
        if command["cmd"] == "probe":
            say(event="device", device="cpu", why="a test")
        elif command["cmd"] == "run":
            cancelled.clear()
            current = command["job"]
            sys.stderr.write("fake worker takes %s\n" % command["job"])
            sys.stderr.flush()
            threading.Thread(target=run, args=(command,), daemon=True).start()
        elif command["cmd"] == "turn":
            assert command["job"] == current, command
            turn.set()
        elif command["cmd"] == "cancel":
            cancelled.set()
            turn.set()
    os._exit(0)


main()
