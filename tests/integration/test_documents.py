#!/usr/bin/python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""Manual pages and completions as they are installed: roff without a fault, shells that take them, and the same options
as the commands."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from pbtest import BIN, main

PAGES = ("pushbroom.1", "pushbroom.yaml.5", "pushbroom-errors.7", "pushbroomd.8", "pushbroom-notify.8", "pushbroom-web.8", "pushbroom-ccsds.8", "pushbroom-fetch.8")


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)


def made(*words):
    done = run(BIN / "pushbroom", *words)
    assert done.returncode == 0, done
    return done.stdout


def needs(tool):
    return unittest.skipUnless(shutil.which(tool), tool + " is not on this machine")


class Documents(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="pb-documents-"))
        self.addCleanup(shutil.rmtree, self.root)

    def page(self, name):
        path = self.root / name
        path.write_text(made("--man", name))
        return path

    @needs("mandoc")
    def test_pages_have_no_fault_by_mandoc(self):
        for name in PAGES:
            done = run("mandoc", "-T", "lint", "-W", "warning", self.page(name))
            self.assertEqual((done.returncode, done.stdout), (0, ""), name)

    @needs("man")
    def test_pages_have_no_fault_by_man(self):
        for name in PAGES:
            done = run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", self.page(name), env=dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="80"))
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
        bad = self.root / "bad.1"
        bad.write_text(".TH bad 1\n.nosuchmacro\n")
        self.assertIn("nosuchmacro", run("man", "--warnings", "-l", "-Tutf8", "-Z", bad).stderr)

    def test_pages_say_what_the_tables_say(self):
        date = run(BIN / "pushbroom", "--man", "pushbroom.1", env=dict(os.environ, SOURCE_DATE_EPOCH="86400")).stdout
        self.assertIn('"1970-01-02"', date)
        commands = re.findall(r"^  ([a-z-]+) ", made("--help"), re.M)
        self.assertGreater(len(commands), 10)
        text = made("--man", "pushbroom.1").replace("\\-", "-")
        for command in commands:
            self.assertIn('.SS "%s ' % command, text)
        keys = made("--man", "pushbroom.yaml.5").replace("\\-", "-")
        for key in ("inbox", "max_pixels", "nodata", "overviews", "secret_file", "worker_user", "command"):
            self.assertIn("\\fB%s\\fR: " % key, keys)
        self.assertIn("input.truncated", made("--man", "pushbroom-errors.7"))
        self.assertEqual(run(BIN / "pushbroom", "--man", "x").returncode, 2)

    def test_commands_accept_the_options_in_their_help(self):
        for command in re.findall(r"^  ([a-z-]+) ", made("--help"), re.M):
            options = re.findall(r"^  (?:-\w, |    )--([a-z-]+)", made(command, "--help"), re.M)
            self.assertTrue(options, command)
            for option in options:
                done = run(BIN / "pushbroom", command, "--%sq" % option)  # an option that it does not have, but almost
                self.assertEqual(done.returncode, 2, (command, option, done))
                self.assertIn("did you mean '--", done.stderr, (command, option))
                self.assertIn("--%s'" % option, done.stderr, (command, option))

    @needs("bash")
    def test_bash_completes(self):
        script = self.root / "completion"
        script.write_text(made("--completion", "bash"))

        def complete(function, *words):
            code = 'source %s; COMP_WORDS=(%s); COMP_CWORD=%d; %s; printf "%%s\\n" "${COMPREPLY[@]}"' % (
                script, " ".join("'%s'" % word for word in words), len(words) - 1, function)
            done = run("bash", "-u", "-c", code, cwd=self.root, env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **env})
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
            return done.stdout.splitlines() if done.stdout.strip() else []
        env = {"PUSHBROOM_SOCKET": str(self.root / "nosuch")}  # no service: nothing, and no words about it
        self.assertEqual(complete("_pushbroom", "pushbroom", "status", ""), [])
        self.assertEqual(complete("_pushbroom", "pushbroom", "submit", "-p", ""), [])
        self.assertEqual(complete("_pushbroom", "pushbroom", "help", "che"), ["check-config"])
        self.assertEqual(complete("_pushbroom", "pushbroom", "operators", "mas"), ["mask"])
        self.assertEqual(complete("_pushbroom", "pushbroom", "indices", "NDVI"), [n for n in complete("_pushbroom", "pushbroom", "indices", "") if n.startswith("NDVI")])
        self.assertIn("alternating", complete("_pushbroom", "pushbroom", "patterns", ""))
        self.assertIn("jetson-orin", complete("_pushbroom", "pushbroom", "devices", "--as", "jet"))
        self.assertIn("sentinel2-l2a", complete("_pushbroom", "pushbroom", "new", "sentinel2-"))
        self.assertIn("sentinel2-l2a", complete("_pushbroom", "pushbroom", "run", "-c", "sentinel2-"))
        self.assertEqual(complete("_pushbroom", "pushbroom", "quarantine", ""), ["list", "show", "retry", "drop"])
        self.assertEqual(complete("_pushbroom", "pushbroom", "store", ""), ["init", "check", "forget"])
        (self.root / "c.yaml").write_text("pipelines: {one: {products: [{statistics: {}}]}, two: {products: [{statistics: {}}]}}")
        self.assertEqual(complete("_pushbroom", "pushbroom", "run", "-c", "c.yaml", "-p", ""), ["one", "two"])
        (self.root / "scene.tif").touch()
        self.assertEqual(complete("_pushbroom", "pushbroom", "sta"), ["status"])
        self.assertEqual(complete("_pushbroom", "pushbroom", "run", "--dr"), ["--dry-run"])
        self.assertEqual(complete("_pushbroom", "pushbroom", "run", "--device", "cu"), ["cuda"])
        self.assertEqual(complete("_pushbroom", "pushbroom", "run", "-c", "sce"), ["scene.tif"])
        self.assertEqual(complete("_pushbroom", "pushbroom", "submit", "sce"), ["scene.tif"])
        self.assertEqual(complete("_pushbroom_program", "pushbroom-notify", "--so"), ["--socket"])

    @needs("zsh")
    def test_zsh_takes_its_completion(self):
        script = self.root / "_pushbroom"
        script.write_text(made("--completion", "zsh"))
        self.assertEqual(run("zsh", "-n", script).stderr, "")
        code = ("fpath=(%s $fpath); autoload -Uz compinit; compinit -u -d %s/dump; "
                "print $_comps[pushbroom] $_comps[pushbroomd] $_comps[pushbroom-notify]") % (self.root, self.root)
        done = run("zsh", "-f", "-c", code)
        self.assertEqual(done.stdout.split(), ["_pushbroom"] * 3, done.stderr)


if __name__ == "__main__":
    main()
