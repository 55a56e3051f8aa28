#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The installed unit under a real systemd: a Debian folder is booted by systemd-nspawn, pushbroom is installed there, and
what the unit promises is looked at: jobs run in its sandbox, rights, reload, a refused config, kill -9, the watchdog, stop.
By hand, as root; needs debootstrap and systemd-container, and for the first time the network.

  unit.py ROOT       the folder, made when it is not there (some minutes). MemoryMax is set, not tried: nspawn has no memory cgroup."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from service_kit import BIN, closing_line

PACKAGES = ("systemd,systemd-sysv,dbus,procps,libgdal32,libuv1,libyaml-0-2,libsqlite3-0,libjson-c5,libseccomp2,"
            "libdeflate0,libarchive13,libpcre2-8-0,libmosquitto1,libmicrohttpd12,proj-data")


class Machine:
    def __init__(self, root):
        self.root = root
        if not root.exists():
            subprocess.run(["debootstrap", "--variant=minbase", "--include=" + PACKAGES, "bookworm", root], check=True)
        subprocess.run(["cmake", "--install", BIN.parent, "--prefix", "/usr"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "DESTDIR": str(root)})
        subprocess.run(["install", BIN / "make_scene", root / "usr/bin/make_scene"], check=True)
        (root / "etc/pushbroom/pushbroom.yaml").write_bytes((root / "usr/share/pushbroom/pushbroom.yaml").read_bytes())
        self.nspawn = subprocess.Popen(["systemd-nspawn", "-b", "-q", "-D", root, "--register=no", "--keep-unit",
                                        "--private-network", "--console=pipe"], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait(lambda: "running" in self.do("systemctl is-system-running || true"), "the machine does not come up")

    def init(self):
        return pathlib.Path(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children").read_text().split()[0]

    def do(self, command, user=None, check=True):
        words = ["runuser", "-u", user, "--"] if user else []
        try:
            done = subprocess.run(["nsenter", "-t", self.init(), "-a", "--", *words, "/bin/sh", "-c", command],
                                  capture_output=True, text=True, timeout=900)
        except IndexError:
            return ""
        assert not check or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def wait(self, what, or_else, seconds=300):
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, or_else + "\n" + self.do("journalctl -u pushbroom --no-pager | tail -20", check=False)
            time.sleep(0.2)

    def show(self, name):
        return self.do(f"systemctl show pushbroom -p {name} --value").strip()

    def jobs(self):
        newest_first = [json.loads(line) for line in self.do("pushbroom status --json").splitlines()]
        return {pathlib.Path(job["input"]).name: job for job in reversed(newest_first)}

    def deliver(self, name, size=256):
        self.do(f"make_scene --size {size}x{size} /home/member/{name}", user="member")
        self.do(f"cp /home/member/{name} /var/lib/pushbroom/inbox/.{name}.part && "
                f"mv /var/lib/pushbroom/inbox/.{name}.part /var/lib/pushbroom/inbox/{name}", user="member")

    def wait_done(self, name):
        self.wait(lambda: self.jobs().get(name, {}).get("status") in ("successful", "failed"), f"{name} does not end")
        assert self.jobs()[name]["status"] == "successful", self.jobs()[name]

    def end(self):
        subprocess.run(["nsenter", "-t", self.init(), "-a", "--", "systemctl", "poweroff"], capture_output=True)
        try:
            self.nspawn.wait(60)
        except subprocess.TimeoutExpired:
            self.nspawn.kill()


def comes_up(m):
    m.do("systemctl stop pushbroom; rm -rf /var/lib/pushbroom", check=False)  # rest of a run before
    m.do("systemd-sysusers && systemd-tmpfiles --create pushbroom.conf && systemctl daemon-reload")
    m.do("id member || useradd -m -G pushbroom member; id stranger || useradd -m stranger")
    m.do("mkdir -p /etc/systemd/system/pushbroom.service.d && pushbroomd --drop-in -c /etc/pushbroom/pushbroom.yaml > "
         "/etc/systemd/system/pushbroom.service.d/memory.conf && systemctl daemon-reload && systemctl restart pushbroom")
    assert "running" in m.show("StatusText") and int(m.show("MemoryMax")) > 1 << 30, m.do("systemctl status pushbroom")


def jobs_run_in_the_sandbox(m):
    m.deliver("a.tif")
    m.wait_done("a.tif")
    m.do("cat /var/lib/pushbroom/products/a*/vegetation/.pushbroom.json", user="stranger")
    m.do("mkdir -p /srv/scenes && cp /home/member/a.tif /srv/scenes/s.tif && chmod 644 /srv/scenes/s.tif")
    m.do("pushbroom submit --wait /srv/scenes/s.tif", user="member")
    m.do("pushbroom run -c /etc/pushbroom/pushbroom.yaml -o ~/own /srv/scenes/s.tif && pushbroom devices", user="member")


def strangers_stay_outside(m):
    said = m.do("pushbroom status", user="stranger", check=False)
    assert "you are not in the group pushbroom" in said, said
    assert "Permission denied" in m.do("cp /etc/hostname /var/lib/pushbroom/inbox/x.tif", user="stranger", check=False)
    assert "enied" in m.do("rm /var/lib/pushbroom/products/a*/vegetation/.pushbroom.json", user="member", check=False)


def exposure(m):
    line = m.do("systemd-analyze security pushbroom.service --no-pager | tail -1")
    print(line.strip())
    assert float(line.split(":")[1].split()[0]) <= 1.0, line


def reloads(m):
    config = m.root / "etc/pushbroom/pushbroom.yaml"
    good, pid = config.read_text(), m.show("MainPID")
    m.do("systemctl reload pushbroom")
    m.wait(lambda: "is in use" in m.do("journalctl -u pushbroom --no-pager"), "no reload")
    config.write_text(good + "\nnonsense: 1\n")
    failed = "systemctl reload pushbroom || echo reload failed"
    assert "reload failed" in m.do(failed), "systemctl accepts a bad config"
    assert "nonsense" in m.do("journalctl -u pushbroom --no-pager"), "the journal does not name the mistake"
    m.do("systemctl kill --kill-who=main -s HUP pushbroom")
    m.wait(lambda: "reload: refused" in m.do("journalctl -u pushbroom --no-pager"), "a bad config is not refused")
    assert m.show("MainPID") == pid and m.show("ActiveState") == "active"
    m.do("systemctl restart pushbroom", check=False)
    assert m.show("ActiveState") == "failed" and m.show("NRestarts") == "0", "a bad config is started again and again"
    config.write_text(good)
    m.do("systemctl start pushbroom")


def survives_kill_9(m):
    m.deliver("b.tif", 4000)
    m.wait(lambda: m.jobs().get("b.tif", {}).get("status") == "running", "b.tif does not run")
    pid = m.show("MainPID")
    m.do(f"kill -9 {pid}")
    m.wait(lambda: m.show("MainPID") not in (pid, "0"), "it does not come back")
    m.wait(lambda: "running" in m.show("StatusText"), "it does not answer")
    m.wait_done("b.tif")


def watchdog_ends_a_loop_that_stands_still(m):
    pid = m.show("MainPID")
    m.do(f"kill -STOP {pid}")
    m.wait(lambda: m.show("MainPID") not in (pid, "0"), "the watchdog did nothing")
    m.wait(lambda: "running" in m.show("StatusText"), "it does not answer")


def stops(m):
    begun = time.monotonic()
    m.do("systemctl stop pushbroom")
    print(f"stopped in {time.monotonic() - begun:.1f} s")
    assert m.show("Result") == "success", m.do("systemctl status pushbroom", check=False)
    m.do("test ! -e /run/pushbroom")
    assert m.do("pgrep pushbroom", check=False).strip() == "", "processes are left"


def main():
    machine, wrong, passed = Machine(pathlib.Path(sys.argv[1]).resolve()), [], 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for trial in (comes_up, jobs_run_in_the_sandbox, strangers_stay_outside, exposure, reloads, survives_kill_9,
                      watchdog_ends_a_loop_that_stands_still, stops):
            try:
                trial(machine)
                passed += 1
                print("ok  ", trial.__name__, flush=True)
            except (AssertionError, KeyError) as error:
                wrong.append(f"{trial.__name__}: {error}")
                print("FAIL", trial.__name__, flush=True)
    finally:
        machine.end()
    sys.exit(closing_line(wrong, passed))


main()
