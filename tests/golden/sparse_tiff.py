# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""GeoTIFF files of any size with next to no blocks: of a compressed image all blocks are at the place of one, of the others they are
holes of the file, which ends where it would with all of them. A plan reads headers only. The same bytes with every library."""
import os
import struct

KINDS = {"uint8": (8, 1), "uint16": (16, 1), "int16": (16, 2), "uint32": (32, 1), "int32": (32, 2), "float32": (32, 3), "float64": (64, 3)}
CODECS = {"none": 1, "lzw": 5, "deflate": 8, "zstd": 50000}
BYTE, ASCII, SHORT, LONG, DOUBLE, LONG8 = 1, 2, 3, 4, 12, 16
FORMAT = {BYTE: "B", SHORT: "H", LONG: "I", DOUBLE: "d", LONG8: "Q"}
SUBFILE_MASK = 4


def geo_keys(epsg):
    is_geographic = 4000 <= epsg < 5000
    return [1, 1, 0, 3, 1024, 0, 1, 2 if is_geographic else 1, 1025, 0, 1, 1, 2048 if is_geographic else 3072, 0, 1, epsg]


class Image:
    """One directory. strips: rows of a strip; 0: tiles of `block` pixels. share: stored bytes of a block by its pixels' bytes."""

    def __init__(self, width, height, bands=1, kind="uint16", *, block=512, strips=0, codec="deflate", predictor=1, planar=False, share=0.6,
                 epsg=32632, corner=(600000, 5900040), pixel=10, nodata=None, rpc=None, is_mask=False):
        bits, form = KINDS[kind]
        across, self.rows = (width, strips) if strips else (block, block)
        columns, lines = (1, -(-height // strips)) if strips else (-(-width // block), -(-height // block))
        samples = 1 if planar else bands
        self.is_plain = codec == "none"
        raw = across * self.rows * samples * (1 if is_mask else bits // 8)
        self.stored = raw if self.is_plain else max(16, int(raw * share))
        n = columns * lines * (bands if planar else 1)
        self.sizes = [self.stored] * n
        if strips and self.is_plain and height % strips:
            last = raw // strips * (height % strips)
            self.sizes = [last if (i + 1) % lines == 0 else raw for i in range(n)]
        self.tags = {256: (LONG, [width]), 257: (LONG, [height]), 258: (SHORT, [1 if is_mask else bits] * bands), 259: (SHORT, [CODECS[codec]]),
                     262: (SHORT, [4 if is_mask else 1]), 277: (SHORT, [bands]), 284: (SHORT, [2 if planar else 1])}
        if is_mask:
            self.tags[254] = LONG, [SUBFILE_MASK]
        else:
            self.tags[339] = SHORT, [form] * bands
        if predictor > 1:
            self.tags[317] = SHORT, [predictor]
        if bands > 1:
            self.tags[338] = SHORT, [0] * (bands - 1)
        if strips:
            self.tags[278] = LONG, [strips]
        else:
            self.tags |= {322: (LONG, [block]), 323: (LONG, [block])}
        if epsg and not is_mask:
            self.tags |= {33550: (DOUBLE, [pixel, pixel, 0]), 33922: (DOUBLE, [0, 0, 0, *corner, 0]), 34735: (SHORT, geo_keys(epsg))}
        if nodata is not None:
            self.tags[42113] = ASCII, f"{nodata}\0".encode()
        if rpc:
            self.tags[50844] = DOUBLE, rpc
        self.places, self.counts = (273, 279) if strips else (324, 325)


def packed(kind, values):
    return values if kind == ASCII else struct.pack(f"<{len(values)}{FORMAT[kind]}", *values)


def directory(image, at, first_block, following, big):
    """The bytes of a directory at that place, whose last entry is the place of the following one."""
    places, position = [], first_block
    for size in image.sizes:
        places.append(position)
        position += size if image.is_plain else 0
    wide = LONG8 if big else LONG
    tags = image.tags | {image.places: (wide, places), image.counts: (LONG, image.sizes)}
    entry, count, room = ("<HHQ", "<Q", 8) if big else ("<HHI", "<H", 4)
    size = struct.calcsize(count) + len(tags) * (4 + 2 * room) + room
    head, more = struct.pack(count, len(tags)), b""
    for number, (kind, values) in sorted(tags.items()):
        text = packed(kind, values)
        head += struct.pack(entry, number, kind, len(values))
        if len(text) <= room:
            head += text.ljust(room, b"\0")
        else:
            head += struct.pack("<Q" if big else "<I", at + size + len(more))
            more += text + bytes(len(text) % 2)
    return head + struct.pack("<Q" if big else "<I", following) + more


def write(path, width, height, bands=1, kind="uint16", mask=False, **options):
    """Returns the path. mask: the file has a mask of its own."""
    images = [Image(width, height, bands, kind, **options)]
    if mask:
        images.append(Image(width, height, 1, "uint8", block=options.get("block", 512), strips=options.get("strips", 0), share=0.01, is_mask=True))
    total = sum(sum(image.sizes) for image in images)
    big = total > 4_000_000_000
    at = [16 if big else 8]
    for image in images:
        at.append(at[-1] + (len(directory(image, at[-1], 0, 0, big)) + 15) // 16 * 16)
    block, data, stored = at[-1], b"", []
    for i, image in enumerate(images):
        data += directory(image, at[i], block, at[i + 1] if i + 1 < len(images) else 0, big).ljust(at[i + 1] - at[i], b"\0")
        stored += [] if image.is_plain else [(block, image.stored)]
        block += sum(image.sizes)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.write(struct.pack("<2sHHHQ", b"II", 43, 8, 0, 16) if big else struct.pack("<2sHI", b"II", 42, 8))
        file.write(data)
        for place, size in stored:
            file.seek(place)
            file.write(b"\1" * size)
        os.ftruncate(file.fileno(), block)
    return path
