#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: sanitized
"""The receiver of pushbroom-ccsds with data of an independent encoder: which lines arrive, with which values and times, after
losses, repetitions, changes of order and bit errors. Every line that was not touched by one has to arrive, and no other."""
import random
import struct

import ccsds_encoder as ccsds
import pbtest

EPOCH = "2000-01-01T00:00:00Z"
EPOCH_S = 946684800


class Sensor:
    """Lines with random pixels, and the packets that carry them."""

    def __init__(self, seed, samples=200, apids=(100, 101), bits=0, segments=1, crc=False, code="cuc", secondary=True, counter_bits=32,
                 first_line=0):
        self.random, self.samples, self.apids, self.bits, self.segments = random.Random(seed), samples, apids, bits, segments
        self.crc, self.code, self.secondary, self.counter_bits, self.first_line = crc, code, secondary, counter_bits, first_line
        self.sequence = {apid: 0 for apid in apids}
        self.sent = {}  # (scene, line): (time in ns, values of each band)

    def time(self, line):
        at = line * 1_234_567  # ns
        if self.code == "cuc":
            fine = (at % 10**9 << 16) // 10**9
            return ccsds.cuc(at // 10**9 + 5000, at % 10**9), (EPOCH_S + 5000 - 18 + at // 10**9) * 10**9 + (fine * 10**9 >> 16)
        ms, us = at // 10**6, at % 10**6 // 1000
        return ccsds.cds(9000, 1000 + ms, us), (EPOCH_S + 9000 * 86400) * 10**9 + (1000 + ms) * 10**6 + us * 1000

    def packets_of(self, scene, line):
        code, ns = self.time(line)
        counter = (line % (1 << self.counter_bits)).to_bytes(self.counter_bits // 8, "big")
        bands = []
        for apid in self.apids:
            values = [self.random.randrange(1 << (self.bits or 16)) for _ in range(self.samples)]
            bands.append(values)
            data = ccsds.packed(values, self.bits) if self.bits else struct.pack(f">{self.samples}H", *values)
            step = -(-len(data) // self.segments)
            for k in range(self.segments):
                flags = ccsds.ALONE if self.segments == 1 else ccsds.FIRST if k == 0 else ccsds.LAST if k == self.segments - 1 else ccsds.MIDDLE
                header = self.secondary or k == 0
                body = (code + counter if header else b"") + data[k * step:(k + 1) * step]
                octets = ccsds.packet(apid, self.sequence[apid], flags, body, header, self.crc)
                self.sequence[apid] += 1
                yield ccsds.Packet(octets, (scene, line))
        self.sent[scene, line] = (ns, bands)

    def packets(self, n, scene=0):
        return [one for line in range(self.first_line, self.first_line + n) for one in self.packets_of(scene, line)]

    def description(self):
        code = 6 if self.code == "cuc" else 8
        time = f"time: {{code: {self.code}, epoch: '{EPOCH}', " + ("leap_seconds: 18}\n" if self.code == "cuc" else "submilliseconds: 2}\n")
        return time + (f"lines: {{bands: {{{', '.join(f'B{i}: {a}' for i, a in enumerate(self.apids))}}}, samples: {self.samples}, "
                       f"counter_at: {6 + code}, counter_bits: {self.counter_bits}, pixels_at: {6 + code + self.counter_bits // 8}, "
                       f"bits: {self.bits}, crc: {str(self.crc).lower()}}}\n")


def receive(scratch, text, data, how="65536"):
    """Lines in the order of their delivery, as (line, time, bands), and the counts."""
    description, source, out = scratch / "downlink.yaml", scratch / "data", scratch / "lines"
    description.write_text(text)
    source.write_bytes(data)
    done = pbtest.run_to_end([str(pbtest.BIN / "ccsds_lines"), str(description), str(source), how], stdout=out.open("wb"), stderr=-1, text=True)
    assert done.returncode == 0, done.stderr
    return out.read_bytes(), {k: int(v) for k, v in (row.split("=") for row in done.stderr.split())}


def split(octets, sensor):
    size = 16 + 2 * sensor.samples * len(sensor.apids)
    assert len(octets) % size == 0
    for at in range(0, len(octets), size):
        line, ns = struct.unpack_from("<Qq", octets, at)
        values = struct.unpack_from(f"<{sensor.samples * len(sensor.apids)}H", octets, at + 16)
        yield line, ns, [list(values[i * sensor.samples:(i + 1) * sensor.samples]) for i in range(len(sensor.apids))]


def check(octets, sensor, survivors, scene=0):
    """Exactly these lines have arrived, in order, with their values and times."""
    got = list(split(octets, sensor))
    numbers = [line for line, _, _ in got]
    wanted = sorted(survivors)
    assert numbers == wanted, f"missing {sorted(set(wanted) - set(numbers))[:9]}, surplus {sorted(set(numbers) - set(wanted))[:9]}"
    for line, ns, bands in got:
        assert (ns, bands) == sensor.sent[scene, line], f"line {line}: {ns} {sensor.sent[scene, line][0]}"


def surviving(packets, touched, whole, kept=None):
    """Lines of which every packet arrived: all frames that it touches are whole."""
    lost = {p.line[1] for p, frames in zip(packets, touched) if not all(f in whole for f in frames)}
    return {p.line[1] for p in (kept if kept is not None else packets)} - lost


def through_frames(scratch, sensor, link, n, channel, pieces=("65536",), sent=None):
    packets = sensor.packets(n)
    frames, touched = link.frames(packets)
    arrived, whole = channel.carry([link.sent(f) for f in frames], 4 if link.sync else 0)
    survivors = surviving(packets, touched, whole)
    assert len(survivors) < n or not channel.happened["lost"], "the channel lost nothing"
    for piece in pieces:
        octets, counts = receive(scratch, link.description() + sensor.description(), b"".join(arrived), piece)
        check(octets, sensor, survivors)
        assert counts["lines"] == len(survivors), counts
        assert counts["frames"] == len(arrived) and counts["frames_damaged"] == channel.happened["damaged"], (counts, channel.happened)
        assert counts["frames_duplicate"] == channel.happened["repeated"], (counts, channel.happened)
        lost = max(whole) + 1 - len(whole)
        assert counts["frames_lost"] == lost and counts["lines_lost"] == max(survivors) - min(survivors) + 1 - len(survivors), (counts, lost)
    return counts


def test_encoder_agrees_with_standards(scratch):
    assert ccsds.checksum(b"123456789") == b"\x29\xb1" == ccsds.long_division(b"123456789")
    data = random.Random(1).randbytes(300)
    assert ccsds.checksum(data) == ccsds.long_division(data)
    assert ccsds.pseudo_random(8).hex() == "ff480ec09a0d70bc"
    assert ccsds.pseudo_random(510)[255:] == ccsds.pseudo_random(255)


def test_aos_file_without_faults_is_complete(scratch):
    channel = ccsds.Channel(1, 0, 0, 0, 0)
    through_frames(scratch, Sensor(1), ccsds.Link(), 60, channel, ("65536", "1", "263"))


def test_aos_file_has_exact_gaps(scratch):
    for seed in range(4):
        link = ccsds.Link(length=300, randomized=True, ocf=True, header_crc=True, insert_zone=8)
        through_frames(scratch, Sensor(seed), link, 400, ccsds.Channel(seed), ("65536", "1000"))


def test_small_packets_have_exact_gaps(scratch):
    for seed in range(3):
        through_frames(scratch, Sensor(seed, samples=5, apids=(7, 8, 9)), ccsds.Link(length=512), 3000, ccsds.Channel(seed, 0.02, 0.02, 0.05, 0.02))


def test_tm_segments_have_exact_gaps(scratch):
    for seed in range(4):
        link = ccsds.Link("tm", 256, 700, randomized=seed % 2 == 1, ocf=True, tm_secondary=4)
        sensor = Sensor(seed, samples=333, bits=12, segments=4, code="cds", secondary=seed < 2)
        through_frames(scratch, sensor, link, 200, ccsds.Channel(seed))


def test_packed_bits_keep_their_values(scratch):
    for bits in (10, 14):
        through_frames(scratch, Sensor(bits, samples=101, bits=bits), ccsds.Link(), 30, ccsds.Channel(bits, 0, 0, 0, 0))


def test_packet_faults_make_exact_gaps(scratch):
    """Packets that are lost, repeated and late before they are put into frames."""
    for seed in range(4):
        sensor, link = Sensor(seed, crc=True), ccsds.Link()
        packets = sensor.packets(400)
        channel = ccsds.Channel(seed, damaged=0.01, most_delay=8, calm=40)
        arrived, whole = channel.carry([p.octets for p in packets], 6)
        frames, _ = link.frames([ccsds.Packet(octets) for octets in arrived])
        survivors = {p.line[1] for p in packets} - {p.line[1] for i, p in enumerate(packets) if i not in whole}
        octets, counts = receive(scratch, link.description() + sensor.description(), b"".join(map(link.sent, frames)))
        check(octets, sensor, survivors)
        last = {apid: max(i for i in whole if i % 2 == k) for k, apid in enumerate(sensor.apids)}
        lost = sum(i not in whole and i < last[sensor.apids[i % 2]] for i in range(len(packets)))
        assert counts["packets_lost"] == lost, (counts, lost)
        assert counts["packets_duplicate"] == channel.happened["repeated"], (counts, channel.happened)


def test_datagrams_have_exact_gaps(scratch):
    for seed, sync in enumerate((True, False)):
        sensor, link = Sensor(seed), ccsds.Link(sync=sync)
        packets = sensor.packets(400)
        frames, touched = link.frames(packets)
        channel = ccsds.Channel(seed, delayed=0.1)
        arrived, whole = channel.carry([link.sent(f) for f in frames], 4 if sync else 0)
        arrived[30:30] = [b"garbage"]
        text = ccsds.Link().description() + sensor.description()
        octets, counts = receive(scratch, text, b"".join(struct.pack(">I", len(a)) + a for a in arrived), "--datagrams")
        check(octets, sensor, surviving(packets, touched, whole))
        assert counts["datagrams_refused"] == 1, counts


def test_packets_without_frames_have_exact_gaps(scratch):
    text = "frames: {kind: none}\n"
    for how in ("--datagrams", "65536", "10"):
        sensor = Sensor(3, crc=True)
        packets = sensor.packets(300)
        channel = ccsds.Channel(3)
        arrived, whole = channel.carry([p.octets for p in packets], 14)  # the lengths of packets in a file stay right
        survivors = {p.line[1] for p in packets} - {p.line[1] for i, p in enumerate(packets) if i not in whole}
        data = b"".join((struct.pack(">I", len(a)) if how == "--datagrams" else b"") + a for a in arrived)
        octets, counts = receive(scratch, text + sensor.description(), data, how)
        check(octets, sensor, survivors)


def test_file_with_lost_and_added_octets_resumes(scratch):
    """Octets are missing in some frames and added in others: those frames are lost, and no other one."""
    sensor, link = Sensor(5), ccsds.Link(length=300, randomized=True)
    packets = sensor.packets(300)
    frames, touched = link.frames(packets)
    source, whole, data = random.Random(5), set(range(len(frames))), [b"noise in front"]
    for i, frame in enumerate(map(link.sent, frames)):
        fate = source.random() if i > 20 else 1
        at = source.randrange(8, len(frame))
        if fate < 0.02:
            frame = frame[:at] + frame[at + source.randint(1, 20):]
        elif fate < 0.04:
            frame = frame[:at] + source.randbytes(source.randint(1, 20)) + frame[at:]
        if fate < 0.04:
            whole.discard(i)
        data.append(frame)
    for piece in ("65536", "100"):
        octets, counts = receive(scratch, link.description() + sensor.description(), b"".join(data), piece)
        check(octets, sensor, surviving(packets, touched, whole))
        assert counts["octets_skipped"] > 0 and counts["frames_lost"] == max(whole) + 1 - len(whole), (counts, len(whole))


def test_counters_wrap_and_scenes_begin_again(scratch):
    sensor, link = Sensor(6, counter_bits=8, samples=20), ccsds.Link()
    packets = sensor.packets(700)
    octets, counts = receive(scratch, link.description() + sensor.description(), b"".join(map(link.sent, link.frames(packets)[0])))
    check(octets, sensor, set(range(700)))
    assert counts["scenes"] == 0
    sensor = Sensor(7, samples=20)
    packets = sensor.packets(100) + sensor.packets(50, 1)
    octets, counts = receive(scratch, link.description() + sensor.description(), b"".join(map(link.sent, link.frames(packets)[0])))
    size = 100 * (16 + 2 * 20 * 2)
    check(octets[:size], sensor, set(range(100)), 0)
    check(octets[size:], sensor, set(range(50)), 1)
    assert counts["scenes"] == 1 and counts["lines"] == 150, counts


def test_other_channels_and_packets_are_ignored(scratch):
    sensor, link = Sensor(8), ccsds.Link()
    packets = sensor.packets(40)
    mixed = [q for p in packets for q in (p, ccsds.Packet(ccsds.packet(55, 0, ccsds.ALONE, b"housekeeping", True)), ccsds.Packet(b"\xe0"))]
    other = ccsds.Link(spacecraft=9)
    frames = [f for pair in zip(link.frames(mixed)[0], other.frames(mixed)[0], link.frames(mixed, 63)[0], link.frames(mixed, 6)[0]) for f in pair]
    octets, counts = receive(scratch, link.description(channels=[5]) + sensor.description(), b"".join(map(link.sent, frames)))
    check(octets, sensor, set(range(40)))
    assert counts["packets_other"] == len(packets) and counts["frames_idle"] == len(frames) // 4 and counts["frames_foreign"] == len(frames) // 2, counts


def test_impossible_times_are_not_guessed(scratch):
    sensor, link = Sensor(9, code="cds", samples=10), ccsds.Link()
    packets = sensor.packets(20)
    for p in packets:  # milliseconds beyond the day
        if p.line[1] == 7:
            p.octets = p.octets[:8] + b"\xff\xff\xff\xff" + p.octets[12:]
    octets, counts = receive(scratch, link.description() + sensor.description(), b"".join(map(link.sent, link.frames(packets)[0])))
    times = {line: ns for line, ns, _ in split(octets, sensor)}
    assert times[7] == -2**63 and times[8] == sensor.sent[0, 8][0] and counts["times_invalid"] == 2, (times[7], counts)


if __name__ == "__main__":
    pbtest.main()
