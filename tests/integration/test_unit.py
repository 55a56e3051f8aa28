#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Installs into a scratch root and lets systemd judge the unit, the user and the directories, without booting anything. Checks
without their tool on this machine are skipped with a message."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from patience import run_to_end
from pbtest import BIN, main

EXPOSURE_MAX = 1.0  # on a scale to 10; systemd calls up to 4 OK


def run(*command, **options):
    return run_to_end(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def needs(tool):
    return unittest.skipUnless(shutil.which(tool), tool + " is not on this machine")


class Unit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="pb-install-"))
        cls.install = run("cmake", "--install", BIN.parent, "--prefix", "/usr", env=dict(os.environ, DESTDIR=str(cls.root)))
        cls.unit = cls.root / "usr/lib/systemd/system/pushbroom.service"

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    def test_everything_is_installed_in_its_place(self):
        self.assertEqual(self.install.returncode, 0, self.install.stdout)
        for path in ("usr/bin/pushbroom", "usr/libexec/pushbroom/pushbroom-compute", "usr/bin/pushbroomd", "usr/lib/systemd/system/pushbroom.service",
                     "usr/bin/pushbroom-notify", "usr/lib/systemd/system/pushbroom-notify.service",
                     "usr/bin/pushbroom-ccsds", "usr/bin/pushbroom-fetch", "usr/lib/systemd/system/pushbroom-fetch.service", "usr/lib/systemd/system/pushbroom-ccsds@.service",
                     "usr/bin/pushbroom-web", "usr/lib/systemd/system/pushbroom-web.service",
                     "usr/lib/systemd/system/pushbroom-metrics.service", "usr/lib/systemd/system/pushbroom-metrics.timer",
                     "usr/share/pushbroom/examples/stream_writer.c", "usr/share/pushbroom/examples/stream_writer.py", "usr/share/pushbroom/grafana/pushbroom.json", "usr/share/pushbroom/prometheus/pushbroom.rules.yml",
                     "usr/lib/sysusers.d/pushbroom.conf", "usr/lib/tmpfiles.d/pushbroom.conf", "etc/pushbroom/pushbroom.yaml"):
            self.assertTrue((self.root / path).is_file(), path)
        version = run(self.root / "usr/bin/pushbroomd", "--version")
        self.assertEqual(version.returncode, 0, version.stdout)

    def test_manual_pages_and_completions_are_installed(self):
        share = self.root / "usr/share"
        for path in ("man/man1/pushbroom.1", "man/man5/pushbroom.yaml.5", "man/man7/pushbroom-errors.7", "man/man8/pushbroomd.8",
                     "man/man8/pushbroom-notify.8", "man/man8/pushbroom-web.8", "man/man8/pushbroom-ccsds.8", "man/man8/pushbroom-fetch.8", "bash-completion/completions/pushbroom-ccsds", "bash-completion/completions/pushbroom-web", "bash-completion/completions/pushbroom", "bash-completion/completions/pushbroomd",
                     "bash-completion/completions/pushbroom-notify", "zsh/site-functions/_pushbroom"):
            self.assertGreater((share / path).stat().st_size, 500, path)

    def test_installed_pages_have_no_dead_link(self):
        """Links to pages, pictures and configurations work; links to other files are text (deploy/installed_pages.cmake)."""
        doc, source = self.root / "usr/share/doc/pushbroom", pathlib.Path(__file__).parents[2]
        check = run("/usr/bin/python3", "-B", source / "tests/docs_check.py", "--links", doc)
        self.assertEqual(check.returncode, 0, check.stdout)
        pages = list(doc.rglob("*.md"))
        self.assertGreater(len(pages), 30)
        links = lambda page: set(re.findall(r"\]\(([^)#:]+\.(?:md|jpg|png|svg|yaml|geojson))[)#]", page.read_text()))
        for page in pages:
            self.assertEqual(links(page), links(source / page.relative_to(doc)), page)
        security = (doc / "service/doc/security.md").read_text()
        self.assertIn("(confine_seccomp.c)", security, "a link to a source is text")

    def test_presets_are_found_by_the_installed_program(self):
        source = pathlib.Path(__file__).parents[2] / "samples"
        installed = self.root / "usr/share/pushbroom/presets"
        self.assertEqual({p.name for p in installed.iterdir()}, {p.name for p in [*source.glob("*.yaml"), *source.glob("*.geojson")]})
        listed = run(self.root / "usr/bin/pushbroom", "new", "--json")
        self.assertEqual({entry["path"] for entry in map(json.loads, listed.stdout.splitlines())}, {str(p) for p in installed.glob("*.yaml")})
        for path in source.glob("*.yaml"):
            check = run(self.root / "usr/bin/pushbroom", "check-config", path.stem)
            self.assertEqual(check.returncode, 0, check.stdout)

    def test_short_config_is_installed_and_long_one_shared(self):
        text = (self.root / "etc/pushbroom/pushbroom.yaml").read_text()
        self.assertLess(len(text.splitlines()), 26)
        self.assertTrue((self.root / "etc/pushbroom/pipelines.d").is_dir() and (self.root / "etc/pushbroom/presets").is_dir())
        shared = self.root / "usr/share/pushbroom/pushbroom.yaml"
        self.assertEqual(shared.read_text(), (pathlib.Path(__file__).parents[2] / "config/pushbroom.yaml").read_text())

    def test_installed_config_passes_the_installed_service(self):
        check = run(self.root / "usr/bin/pushbroomd", "--check", "--config", self.root / "etc/pushbroom/pushbroom.yaml")
        self.assertEqual(check.returncode, 0, check.stdout)

    def test_the_drop_in_has_the_memory_of_the_budget(self):
        config = self.root / "budget.yaml"
        config.write_text((self.root / "usr/share/pushbroom/pushbroom.yaml").read_text())
        daemon = self.root / "usr/bin/pushbroomd"
        command = (daemon, "--drop-in", "--config", config)
        text = run(*command).stdout
        cores = len(os.sched_getaffinity(0))  # their jobs have one budget; one more job publishes, and one has the place of service.express
        self.assertIn("MemoryMax=%dM" % (256 + 3 * 512 + (cores + 2) * (256 + 512)), text)
        self.assertIn("[Service]", text)
        config.write_text(config.read_text().replace("  parallel_jobs: 0", "  parallel_jobs: 1"))
        one = 512 + 256 + 512
        self.assertIn("MemoryMax=%dM" % (256 + 3 * one), run(*command).stdout)
        config.write_text(config.read_text().replace("  memory: 512MiB", "  memory: 3GiB").replace("  parallel_jobs: 1", "  parallel_jobs: 4"))
        one = 3072 + 256 + 512
        self.assertIn("MemoryMax=%dM" % (256 + 6 * one), run(*command).stdout)
        four = config.read_text()
        for key, value in (("device", "cuda"), ("express", "0s"), ("publishing_jobs", "0")):  # with which there is no such place
            config.write_text(re.sub(r"(?m)^  (# )?%s: .*" % key, "  %s: %s" % (key, value), four))
            self.assertIn("MemoryMax=%dM" % (256 + 5 * one), run(*command).stdout, key)
        config.write_text("nonsense: 1")
        self.assertEqual(run(*command).returncode, 2)

    def test_programs_may_confine_themselves_in_the_units(self):
        for unit, calls in ((self.unit, ("seccomp",)), (self.unit.with_name("pushbroom-web.service"), ())):
            for call in (*calls, "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"):
                self.assertRegex(unit.read_text(), "(?m)^SystemCallFilter=[^~\n]*" + call, unit)

    def test_a_config_that_is_there_is_kept(self):
        config = self.root / "etc/pushbroom/pushbroom.yaml"
        before = config.read_text()
        config.write_text("mine")
        again = run("cmake", "--install", BIN.parent, "--prefix", "/usr", env=dict(os.environ, DESTDIR=str(self.root)))
        after = config.read_text()
        config.write_text(before)
        self.assertEqual((again.returncode, after), (0, "mine"), again.stdout)

    def test_reload_checks_the_config_before_the_signal(self):
        lines = re.findall(r"(?m)^ExecReload=(.*)$", self.unit.read_text())
        self.assertEqual(len(lines), 2, lines)
        self.assertIn("kill -HUP", lines[1])
        config = self.root / "reload.yaml"
        command = [str(self.root) + word if word.startswith("/usr/") else word for word in lines[0].split()]
        self.assertEqual(command[-1], "/etc/pushbroom/pushbroom.yaml")
        command[-1] = str(config)
        config.write_text((self.root / "usr/share/pushbroom/pushbroom.yaml").read_text())
        self.assertEqual(run(*command).returncode, 0)
        config.write_text("nonsense: 1\n")
        refused = run(*command)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("reload.yaml:1:1: ", refused.stdout)

    @needs("systemd-analyze")
    def test_systemd_finds_no_fault_in_the_unit(self):
        # The unit names /usr/bin; verify looks whether that program is there, so it gets the staged one.
        scratch = self.root / "verify"
        scratch.mkdir()
        text = self.unit.read_text()
        self.assertIn("ExecStart=/usr/bin/pushbroomd ", text)
        self.assertIn("Type=notify", text)
        self.assertIn("WatchdogSec=", text)
        (scratch / "pushbroom.service").write_text(text.replace("=/usr/bin/pushbroomd", "=%s/usr/bin/pushbroomd" % self.root))
        verify = run("systemd-analyze", "verify", "--man=no", scratch / "pushbroom.service")
        ours = [line for line in verify.stdout.splitlines() if "pushbroom" in line]
        self.assertEqual((verify.returncode, ours), (0, []), verify.stdout)

    @needs("systemd-analyze")
    def test_systemd_finds_no_fault_in_the_units_beside_it(self):
        scratch = self.root / "beside"
        scratch.mkdir()
        names = ("pushbroom-notify.service", "pushbroom-metrics.service", "pushbroom-web.service", "pushbroom-fetch.service", "pushbroom-ccsds@.service", "pushbroom-metrics.timer")
        for name in names:
            text = (self.unit.parent / name).read_text()
            self.assertNotIn("@BINDIR@", text)
            (scratch / name).write_text(text.replace("ExecStart=/usr/bin/", "ExecStart=%s/usr/bin/" % self.root))
        for name in names:
            verify = run("systemd-analyze", "verify", "--man=no", scratch / name)
            self.assertEqual([line for line in verify.stdout.splitlines() if "pushbroom-" in line], [], verify.stdout)
        security = run("systemd-analyze", "security", "--offline=yes", "--no-pager", scratch / names[0])
        match = re.search(r"exposure level for pushbroom-notify\.service: ([0-9.]+)", security.stdout)
        self.assertLessEqual(float(match.group(1)), 2.0, security.stdout)  # it has the network
        security = run("systemd-analyze", "security", "--offline=yes", "--no-pager", scratch / names[1])
        match = re.search(r"exposure level for pushbroom-metrics\.service: ([0-9.]+)", security.stdout)
        self.assertLessEqual(float(match.group(1)), 1.5, security.stdout)  # it writes to a directory of another user
        security = run("systemd-analyze", "security", "--offline=yes", "--no-pager", scratch / names[2])
        match = re.search(r"exposure level for pushbroom-web\.service: ([0-9.]+)", security.stdout)
        self.assertLessEqual(float(match.group(1)), 1.5, security.stdout)  # it has the network of this machine
        security = run("systemd-analyze", "security", "--offline=yes", "--no-pager", scratch / names[3])
        match = re.search(r"exposure level for pushbroom-fetch\.service: ([0-9.]+)", security.stdout)
        print("exposure of pushbroom-fetch", match.group(1), file=sys.stderr)
        self.assertLessEqual(float(match.group(1)), 1.5, security.stdout)  # it has the network
        security = run("systemd-analyze", "security", "--offline=yes", "--no-pager", scratch / names[4])
        match = re.search(r"exposure level for pushbroom-ccsds@.*\.service: ([0-9.]+)", security.stdout)
        print("exposure of pushbroom-ccsds@", match.group(1), file=sys.stderr)
        self.assertLessEqual(float(match.group(1)), 1.5, security.stdout)  # it has the network

    @needs("systemd-analyze")
    def test_verify_does_find_faults(self):
        scratch = self.root / "broken"
        scratch.mkdir()
        (scratch / "pushbroom.service").write_text(self.unit.read_text().replace("Type=notify", "Type=notfy").replace("ProtectClock", "ProtectClok"))
        verify = run("systemd-analyze", "verify", "--man=no", scratch / "pushbroom.service")
        self.assertIn("ProtectClok", verify.stdout)

    @needs("systemd-analyze")
    def test_the_sandbox_is_tight(self):
        security = run("systemd-analyze", "security", "--offline=yes", "--no-pager", self.unit)
        match = re.search(r"exposure level for pushbroom\.service: ([0-9.]+)", security.stdout)
        self.assertIsNotNone(match, security.stdout)
        print("exposure", match.group(1), file=sys.stderr)
        self.assertLessEqual(float(match.group(1)), EXPOSURE_MAX, security.stdout)

    @needs("systemd-sysusers")
    def test_the_user_is_made(self):
        root = self.root / "users"
        (root / "etc").mkdir(parents=True)
        made = run("systemd-sysusers", "--root", root, self.root / "usr/lib/sysusers.d/pushbroom.conf")
        self.assertEqual(made.returncode, 0, made.stdout)
        for user in ("pushbroom", "pushbroom-worker", "pushbroom-notify", "pushbroom-web", "pushbroom-fetch", "pushbroom-ccsds"):
            self.assertIn(user + ":", (root / "etc/passwd").read_text())

    @needs("systemd-tmpfiles")
    def test_the_directories_are_made(self):
        root = self.root / "tmpfiles"
        (root / "etc").mkdir(parents=True)
        (root / "etc/passwd").write_text("pushbroom:x:%d:%d::/:/bin/false\n" % (os.getuid(), os.getgid()))
        (root / "etc/group").write_text("pushbroom:x:%d:\n" % os.getgid())
        made = run("systemd-tmpfiles", "--create", "--root", root, self.root / "usr/lib/tmpfiles.d/pushbroom.conf")
        self.assertEqual(made.returncode, 0, made.stdout)
        self.assertEqual((root / "var/lib/pushbroom/inbox").stat().st_mode & 0o7777, 0o3775)


if __name__ == "__main__":
    main()
