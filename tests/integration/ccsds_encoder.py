# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Encoder of CCSDS data for tests, written from the standards (132.0-B, 732.0-B, 131.0-B, 133.0-B, 301.0-B), and a channel that
loses, repeats, reorders and damages. It shares no code with the receiver: checksums are those of Python's binascii, the
pseudo-random sequence is a recurrence of bits, and which lines survive follows from the frames that each packet touches."""
import binascii
import collections
import dataclasses
import random
import struct

MARKER = bytes.fromhex("1acffc1d")
ALONE, FIRST, MIDDLE, LAST = 3, 1, 0, 2


def checksum(data):
    return struct.pack(">H", binascii.crc_hqx(data, 0xFFFF))


def long_division(data):
    """The same checksum as the remainder of a division of polynomials: the test of this encoder."""
    bits = int.from_bytes(data, "big") ^ (0xFFFF << (8 * len(data) - 16))
    bits <<= 16
    for at in range(8 * len(data) + 15, 15, -1):
        if bits >> at & 1:
            bits ^= 0x11021 << (at - 16)
    return struct.pack(">H", bits)


def pseudo_random(octets):
    bits = [1] * 8
    while len(bits) < 8 * octets:  # h(x) = x^8 + x^7 + x^5 + x^3 + 1
        bits.append(bits[-1] ^ bits[-3] ^ bits[-5] ^ bits[-8])
    return bytes(int("".join(map(str, bits[8 * i:8 * i + 8])), 2) for i in range(octets))


def combine(data, sequence):
    return (int.from_bytes(data, "big") ^ int.from_bytes(sequence, "big")).to_bytes(len(data), "big")


@dataclasses.dataclass
class Packet:
    octets: bytes
    line: object = None  # (scene, line) that it is a part of


def packet(apid, sequence, flags, body, secondary=True, crc=False):
    length = len(body) + (2 if crc else 0) - 1
    octets = struct.pack(">HHH", (8 if secondary else 0) << 8 | apid, flags << 14 | sequence % 16384, length) + body
    return octets + (checksum(octets) if crc else b"")


def idle_packet(octets):
    return packet(2047, 0, ALONE, b"\x55" * (octets - 6), secondary=False)


def cuc(seconds, nanoseconds, coarse=4, fine=2):
    fraction = (nanoseconds << (8 * fine)) // 10**9
    return seconds.to_bytes(coarse, "big") + fraction.to_bytes(fine, "big")


def cds(days, milliseconds, microseconds):
    return struct.pack(">HIH", days, milliseconds, microseconds)


def packed(values, bits):
    """Values of this many bits, the most significant one first, filled with zeros."""
    text = "".join(format(v, f"0{bits}b") for v in values)
    text += "0" * (-len(text) % 8)
    return int(text, 2).to_bytes(len(text) // 8, "big")


@dataclasses.dataclass
class Link:
    kind: str = "aos"
    length: int = 256
    spacecraft: int = 42
    sync: bool = True
    randomized: bool = False
    crc: bool = True
    ocf: bool = False
    header_crc: bool = False
    insert_zone: int = 0
    tm_secondary: int = 0  # octets of data in the secondary header of a tm frame

    def field(self):
        """Octets of a frame for packets."""
        head = 6 + (2 + self.insert_zone + 2 * self.header_crc if self.kind == "aos" else 1 + self.tm_secondary if self.tm_secondary else 0)
        return self.length - head - 4 * self.ocf - 2 * self.crc

    def frame(self, channel, count, first, data):
        if self.kind == "aos":
            head = struct.pack(">H", 1 << 14 | self.spacecraft << 6 | channel) + (count % (1 << 24)).to_bytes(3, "big") + b"\0"
            head += (b"\xab\xcd" if self.header_crc else b"") + b"\x77" * self.insert_zone + struct.pack(">H", first)
        else:
            secondary = bytes([self.tm_secondary]) + b"\x33" * self.tm_secondary if self.tm_secondary else b""
            head = struct.pack(">HBBH", self.spacecraft << 4 | channel << 1 | self.ocf, count % 256, count % 256,
                               (0x8000 if self.tm_secondary else 0) | 3 << 11 | first) + secondary
        octets = head + data + (b"\x01\x02\x03\x04" if self.ocf else b"")
        octets += checksum(octets) if self.crc else b""
        assert len(octets) == self.length, (len(octets), self.length)
        return octets

    def frames(self, packets, channel=5, start=0):
        """Frames with these packets one after the other, and for each packet the numbers of the frames that it touches."""
        stream, touched, begins = bytearray(), [], []
        for one in packets:
            begins.append(len(stream))
            stream += one.octets
        size = self.field()
        fill = -len(stream) % size
        if fill:
            begins.append(len(stream))
            stream += idle_packet(fill if fill >= 7 else fill + size)
        for i, one in enumerate(packets):
            touched.append(range(begins[i] // size, (begins[i] + len(one.octets) - 1) // size + 1))
        first = {}
        for at in begins:
            first.setdefault(at // size, at % size)
        frames = [self.frame(channel, start + i, first.get(i, 0x7FF), bytes(stream[i * size:(i + 1) * size])) for i in range(len(stream) // size)]
        return frames, touched

    def sent(self, frame):
        """The frame as it leaves the transmitter."""
        if self.randomized:
            frame = combine(frame, pseudo_random(len(frame)))
        return (MARKER if self.sync else b"") + frame

    def description(self, **lines):
        """Text of the section `frames` for the receiver."""
        rows = {"kind": self.kind, "length": self.length, "sync": self.sync, "randomized": self.randomized, "crc": self.crc,
                "spacecraft": self.spacecraft}
        if self.kind == "aos":
            rows |= {"ocf": self.ocf, "header_crc": self.header_crc, "insert_zone": self.insert_zone}
        return "frames:\n" + "".join(f"  {k}: {str(v).lower()}\n" for k, v in (rows | lines).items())


class Channel:
    """Loses, repeats, delays and damages pieces, by a seed. The first `calm` ones pass as they are."""

    def __init__(self, seed, lost=0.01, repeated=0.01, delayed=0.01, damaged=0.01, most_delay=8, calm=20):
        self.random = random.Random(seed)
        self.rates = {"lost": lost, "repeated": repeated, "delayed": delayed, "damaged": damaged}
        self.most_delay, self.calm = most_delay, calm
        self.happened = collections.Counter()

    def damage(self, piece, first_octet):
        """Turns one to three bits after first_octet: fewer than the checksum can miss."""
        value = bytearray(piece)
        for bit in self.random.sample(range(8 * first_octet, 8 * len(piece)), self.random.randint(1, 3)):
            value[bit // 8] ^= 1 << bit % 8
        return bytes(value)

    def carry(self, pieces, first_octet=0):
        """The pieces that arrive, in their order, and the set of numbers of the pieces that arrived whole."""
        arrived, whole = [], set()
        for i, piece in enumerate(pieces):
            fate = [what for what, rate in self.rates.items() if i >= self.calm and self.random.random() < rate][:1]
            fate = fate[0] if fate else "well"
            self.happened[fate] += 1
            if fate == "lost":
                continue
            place = i + (self.random.randint(2, self.most_delay) + 0.5 if fate == "delayed" else 0)
            arrived.append((place, i, self.damage(piece, first_octet) if fate == "damaged" else piece))
            if fate == "repeated":
                arrived.append((place + self.random.choice([0, 1, 2, self.most_delay]) + 0.25, i, piece))
            if fate != "damaged":
                whole.add(i)
        arrived.sort(key=lambda row: row[0])
        return [piece for _, _, piece in arrived], whole
