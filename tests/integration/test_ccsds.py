#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""pushbroom-ccsds: files, standard input, UDP, its counts, and its mistakes."""
import re
import signal
import socket
import subprocess

import ccsds_encoder as ccsds
import pbtest
from patience import wait_for
from test_ccsds_lines import Sensor, surviving

PROGRAM = str(pbtest.BIN / "pushbroom-ccsds")


def counts_of(text):
    return {name: int(n) for name, n in re.findall(r"^(\w+) +(\d+)  ", text, re.M)}


def recording(scratch, seed=1, n=200):
    """A description, the pieces that arrived, and the lines that survived."""
    sensor, link = Sensor(seed), ccsds.Link()
    packets = sensor.packets(n)
    frames, touched = link.frames(packets)
    arrived, whole = ccsds.Channel(seed).carry([link.sent(f) for f in frames], 4)
    description = scratch / "downlink.yaml"
    description.write_text(link.description() + sensor.description())
    return description, arrived, sorted(surviving(packets, touched, whole))


def gaps(lines):
    return [(a + 1, b - 1) for a, b in zip(lines, lines[1:]) if b > a + 1]


def logged_gaps(log):
    return [(int(a), int(b or a)) for a, b in re.findall(r"lines? (\d+)(?: to (\d+))? (?:is|are) missing", log)]


def test_file_is_counted_and_its_gaps_are_logged(scratch):
    description, arrived, lines = recording(scratch)
    data = scratch / "data"
    data.write_bytes(b"".join(arrived))
    for command, stdin in (([str(data)], None), (["-"], data.open("rb"))):
        done = pbtest.run_to_end([PROGRAM, "-c", str(description), *command], stdin=stdin, stdout=-1, stderr=-1, text=True)
        assert done.returncode == 0, done.stderr
        counts = counts_of(done.stdout)
        assert counts["lines"] == len(lines) and counts["frames"] == len(arrived), counts
        assert gaps(lines) and logged_gaps(done.stderr) == gaps(lines), done.stderr
        assert counts["lines_lost"] == sum(b - a + 1 for a, b in gaps(lines)), counts


def test_udp_is_received_until_the_program_stops(scratch):
    description, arrived, lines = recording(scratch, 2)
    for address, family, sender, refused in (("127.0.0.1", socket.AF_INET, "127.0.0.1", 0), ("[::1]", socket.AF_INET6, "::1", 0),
                                             ("127.0.0.1", socket.AF_INET, "127.0.0.9", len(arrived))):
        with (scratch / "log").open("w+") as log:
            process = subprocess.Popen([PROGRAM, "-c", str(description), "--udp", address + ":0", "--from", sender, "--silence", "1h"], stdout=-1, stderr=log, text=True)
            port = int(wait_for(lambda: re.search(r"listens at .* port (\d+)", (scratch / "log").read_text())).group(1))
            with socket.socket(family, socket.SOCK_DGRAM) as out:
                for piece in arrived:
                    out.sendto(piece, (address.strip("[]"), port))
            process.send_signal(signal.SIGTERM)
            text = process.communicate()[0]
        counts = counts_of(text)
        assert process.returncode == 0 and counts["datagrams"] == len(arrived) and counts["datagrams_refused"] == refused, counts
        assert counts["lines"] == (0 if refused else len(lines)), counts
        if not refused:
            assert logged_gaps((scratch / "log").read_text()) == gaps(lines)


def test_silence_gives_up_what_is_missing(scratch):
    """The last line waits for nothing: a packet of it is missing, and the link is silent."""
    sensor, link = Sensor(3, samples=20), ccsds.Link(length=128)
    packets = sensor.packets(30)
    frames = link.frames(packets)[0]
    description = scratch / "downlink.yaml"
    description.write_text(link.description() + sensor.description())
    with (scratch / "log").open("w+") as log:
        process = subprocess.Popen([PROGRAM, "-c", str(description), "--udp", "127.0.0.1:0", "--silence", "200ms"], stdout=-1, stderr=log, text=True)
        read = (scratch / "log").read_text
        port = int(wait_for(lambda: re.search(r"listens at .* port (\d+)", read())).group(1))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            for frame in frames[:-6] + frames[-4:]:  # fewer follow than a late frame may have
                out.sendto(link.sent(frame), ("127.0.0.1", port))
        wait_for(lambda: "missing" in read())
        assert process.poll() is None
        process.terminate()
        counts = counts_of(process.communicate()[0])
    assert counts["frames_lost"] == 2 and 0 < counts["lines_lost"] <= 3, counts


def test_mistakes_are_named(scratch):
    description, _, _ = recording(scratch, n=30)
    bad = scratch / "bad.yaml"
    bad.write_text("frames: {kind: tc}\nlines: {}\n")
    for words, code, message in (((), 2, "--config is missing"), (("-c", description), 2, "--udp ADDRESS:PORT or a file"),
                                 (("-c", description, "a", "b"), 2, "one argument too many: b"), (("-c", bad, "a"), 2, "bad.yaml:1:16: frames.kind: 'tc'"),
                                 (("-c", scratch / "none", "a"), 2, "cannot be opened"), (("-c", description, scratch / "none"), 1, "No such file"),
                                 (("-c", description, "--udp", "host:1"), 2, "is not an address in numbers"),
                                 (("-c", description, "--from", "::1", "x"), 2, "--from needs --udp"), (("-c", description, "-g", "0", "x"), 2, "wrong value: 0"),
                                 (("-c", description, "--stream", "s", "--socket", scratch / "status.sock", description), 3, "stream s: "),
                                 (("-c", description, "--stream", "s", "--token-file", scratch / "none", description), 2, "none: No such file")):
        done = pbtest.run_to_end([PROGRAM, *map(str, words)], stdout=-1, stderr=-1, text=True)
        assert done.returncode == code and message in done.stderr, (words, done)


def test_example_is_a_description(scratch):
    example = pbtest.run_to_end([PROGRAM, "--example"], stdout=-1, text=True).stdout
    (scratch / "example.yaml").write_text(example)
    (scratch / "empty").touch()
    done = pbtest.run_to_end([PROGRAM, "-c", str(scratch / "example.yaml"), str(scratch / "empty")], stdout=-1, stderr=-1, text=True)
    assert done.returncode == 0 and set(counts_of(done.stdout).values()) == {0}, done


if __name__ == "__main__":
    pbtest.main()
