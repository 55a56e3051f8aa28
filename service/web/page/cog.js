// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Worker that reads the tiles of a GeoTIFF by ranges of bytes. The page sends {open: address} once and then {want: [{level,
// index}], planes, answers}, which replaces the list before; `answers` is the count of those that the page has. The answers are
// {opened}, {tile} and {error}. Files may be damaged: each number of the file is compared to a limit before memory or time
// depends on it.
"use strict";

importScripts("/zstd.js");

const BLOCK = 65536; // a read of directories and tables
const BLOCKS_MAX = 256; // kept blocks
const RANGE_MAX = 4 << 20; // neighbours are read together up to this
const GAP_MAX = 4096; // bytes between neighbours
const RANGES = 3; // at a time
const TILE_MAX = 256 << 20; // bytes of a decoded tile
const DIRECTORIES_MAX = 64;
const ENTRIES_MAX = 1024;
const BANDS_MAX = 4096;
const VALUE_MAX = 1 << 20; // bytes of a tag's value

const CODECS = { 1: "none", 5: "lzw", 7: "jpeg", 8: "deflate", 32946: "deflate", 50000: "zstd", 50001: "webp" };
const TYPE_BYTES = { 1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8 };
const SAMPLES = { "1-8": Uint8Array, "1-16": Uint16Array, "1-32": Uint32Array, "2-8": Int8Array, "2-16": Int16Array, "2-32": Int32Array, "3-32": Float32Array, "3-64": Float64Array };

function refuse(words) {
  throw new Error(words);
}

// --- ranges of the file ---

class Source {
  constructor(address) {
    this.address = address;
    this.size = null;
    this.tag = null;
    this.blocks = new Map(); // number -> promise of bytes, the least recently used first
    this.requests = 0;
    this.bytes = 0;
  }

  // The bytes [from, end), or fewer at the end of the file.
  async range(from, end) {
    this.requests++;
    let reply;
    try {
      reply = await fetch(this.address, { cache: "no-store", headers: { Range: "bytes=" + from + "-" + (end - 1) } });
    } catch {
      refuse("pushbroom-web does not answer");
    }
    const tag = reply.headers.get("ETag");
    const found = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(reply.headers.get("Content-Range") || "");
    if (reply.status !== 206 || !found || Number(found[1]) !== from) {
      await reply.body?.cancel();
      if (reply.status === 404) refuse("the file is not there: it was removed, or the address is wrong");
      refuse(reply.status === 416 ? "the file is cut off" : reply.ok ? "the server, or a proxy before it, does not send ranges of files" : "the server answers with status " + reply.status);
    }
    if (this.tag !== null && tag !== this.tag) refuse("the file was replaced while it was shown. Open it again");
    this.tag = tag;
    this.size = Number(found[3]);
    const bytes = new Uint8Array(await reply.arrayBuffer());
    this.bytes += bytes.length;
    if (bytes.length !== Math.min(end, this.size) - from) refuse("pushbroom-web sent a part of the file only");
    return bytes;
  }

  block(number) {
    const known = this.blocks.get(number);
    const block = known || this.range(number * BLOCK, (number + 1) * BLOCK);
    this.blocks.delete(number);
    this.blocks.set(number, block);
    if (!known) block.catch(() => this.blocks.delete(number)); // a later read tries again
    if (this.blocks.size > BLOCKS_MAX) this.blocks.delete([...this.blocks.keys()].find((key) => key !== 0));
    return block;
  }

  // The bytes [from, from + n) by way of the kept blocks.
  async read(from, n) {
    if (this.size !== null && from + n > this.size) refuse("the file is cut off");
    const out = new Uint8Array(n);
    for (let at = from; at < from + n;) {
      const number = Math.floor(at / BLOCK);
      const block = await this.block(number);
      const part = block.subarray(at - number * BLOCK, Math.min(block.length, from + n - number * BLOCK));
      if (part.length === 0) refuse("the file is cut off");
      out.set(part, at - from);
      at += part.length;
    }
    return out;
  }

  // The bytes [from, end) if they are in the first block.
  async begin(from, end) {
    const first = await this.block(0);
    return end <= first.length ? first.subarray(from, end) : null;
  }
}

// --- directories ---

class Tiff {
  constructor(source) {
    this.source = source;
    this.levels = [];
  }

  number(view, at, type) {
    const { little } = this;
    if (type === 1 || type === 2 || type === 7) return view.getUint8(at);
    if (type === 3) return view.getUint16(at, little);
    if (type === 4 || type === 13) return view.getUint32(at, little);
    if (type === 11) return view.getFloat32(at, little);
    if (type === 12) return view.getFloat64(at, little);
    if (type === 16 || type === 18) return Number(view.getBigUint64(at, little));
    return refuse("a tag has an unknown type");
  }

  async open() {
    const head = new DataView((await this.source.read(0, Math.min(16, (await this.source.block(0)).length))).buffer);
    if (head.byteLength < 8) refuse("this is no TIFF file");
    const order = head.getUint16(0);
    this.little = order === 0x4949;
    const version = head.getUint16(2, this.little);
    if ((order !== 0x4949 && order !== 0x4d4d) || (version !== 42 && version !== 43)) refuse("this is no TIFF file");
    this.big = version === 43;
    if (this.big && head.byteLength < 16) refuse("the file is cut off");
    let at = this.big ? this.number(head, 8, 16) : this.number(head, 4, 4);
    const seen = new Set();
    while (at !== 0) {
      if (seen.has(at) || seen.size === DIRECTORIES_MAX) refuse("the directories of the file have no end");
      seen.add(at);
      at = await this.directory(at);
    }
    return this.describe();
  }

  // Reads a directory. Returns the place of the next one.
  async directory(at) {
    const word = this.big ? 8 : 4;
    const head = this.big ? 8 : 2;
    const each = this.big ? 20 : 12;
    const n = this.number(new DataView((await this.source.read(at, head)).buffer), 0, this.big ? 16 : 3);
    if (n > ENTRIES_MAX) refuse("a directory of the file is damaged");
    const view = new DataView((await this.source.read(at + head, n * each + word)).buffer);
    const tags = new Map();
    for (let i = 0; i < n; i++) {
      const entry = i * each;
      const type = view.getUint16(entry + 2, this.little);
      const count = this.number(view, entry + 4, this.big ? 16 : 4);
      const bytes = count * (TYPE_BYTES[type] || 0);
      const place = bytes <= word ? at + head + entry + 4 + word : this.number(view, entry + 4 + word, this.big ? 16 : 4);
      tags.set(view.getUint16(entry, this.little), { type, count, bytes, place });
    }
    await this.level(tags);
    return this.number(view, n * each, this.big ? 16 : 4);
  }

  async values(tags, tag, given) {
    const entry = tags.get(tag);
    if (!entry) return given;
    if (entry.bytes > VALUE_MAX) refuse("a tag of the file is too large");
    const bytes = await this.source.read(entry.place, entry.bytes);
    if (entry.type === 2) return new TextDecoder().decode(bytes).replace(/\0[^]*$/, "");
    if (entry.type === 7) return bytes;
    const view = new DataView(bytes.buffer);
    const step = TYPE_BYTES[entry.type];
    return Array.from({ length: entry.count }, (_, i) => this.number(view, i * step, entry.type));
  }

  async one(tags, tag, given) {
    const values = await this.values(tags, tag);
    return values === undefined || values.length === 0 ? given : values[0];
  }

  async level(tags) {
    if ([258, 338, 339].some((tag) => tags.get(tag)?.count > BANDS_MAX)) refuse("the number of bands is damaged");
    const level = {
      kind: await this.one(tags, 254, 0), width: await this.one(tags, 256, 0), height: await this.one(tags, 257, 0),
      bits: await this.values(tags, 258, [1]), codec: CODECS[await this.one(tags, 259, 1)], photometric: await this.one(tags, 262, 1),
      bands: await this.one(tags, 277, 1), planar: (await this.one(tags, 284, 1)) === 2, predictor: await this.one(tags, 317, 1),
      tileWidth: await this.one(tags, 322, 0), tileHeight: await this.one(tags, 323, 0), extra: await this.values(tags, 338, []),
      formats: await this.values(tags, 339, [1]), tables: await this.values(tags, 347, null), offsets: tags.get(324), counts: tags.get(325), mask: null,
    };
    if ((level.kind & 4) !== 0) { // of the image before it
      this.check(level);
      const image = this.levels.find((other) => ["width", "height", "tileWidth", "tileHeight"].every((key) => other[key] === level[key]));
      if (image) image.mask = level;
      return;
    }
    if (this.levels.length && ((level.kind & 1) === 0 || level.bands !== this.levels[0].bands)) return; // another image
    this.check(level);
    if (!this.levels.length) this.tags = tags;
    this.levels.push(level);
  }

  // Refuses what the page cannot show, and numbers that no file has.
  check(level) {
    const { width, height, tileWidth, tileHeight, bands, bits } = level;
    if (!level.offsets || !level.counts || !tileWidth || !tileHeight) refuse("the file has no tiles. The page shows tiled files, as cloud-optimised GeoTIFFs are");
    const isCount = (n, most) => Number.isInteger(n) && n > 0 && n <= most;
    if (![width, height, tileWidth, tileHeight].every((n) => isCount(n, 2 ** 31))) refuse("the size of the image is damaged");
    if (!isCount(bands, BANDS_MAX)) refuse("the number of bands is damaged");
    if (level.codec === undefined) refuse("the page cannot decode the compression of the file. It decodes deflate, zstd, lzw, jpeg and webp");
    const kind = level.formats[0] + "-" + bits[0];
    if (bits.some((n) => n !== bits[0]) || level.formats.some((n) => n !== level.formats[0])) refuse("the bands of the file have different types");
    level.samples = bits[0] === 1 && (level.kind & 4) !== 0 ? null : SAMPLES[kind];
    if (level.samples === undefined) refuse("the page cannot show samples of " + bits[0] + " bits" + (level.formats[0] > 3 ? " of complex numbers" : ""));
    level.across = Math.ceil(width / tileWidth);
    level.down = Math.ceil(height / tileHeight);
    level.perPixel = level.planar ? 1 : bands;
    level.rowBytes = level.samples === null ? Math.ceil(tileWidth / 8) : tileWidth * level.perPixel * level.samples.BYTES_PER_ELEMENT;
    level.tileBytes = level.rowBytes * tileHeight;
    if (level.tileBytes > TILE_MAX || tileWidth * tileHeight > TILE_MAX) refuse("the tiles of the file are too large: " + tileWidth + " x " + tileHeight + " pixels");
    const tiles = level.across * level.down * (level.planar ? bands : 1);
    const isTable = ({ type, count }) => [3, 4, 16].includes(type) && count >= tiles;
    if (!isTable(level.offsets) || !isTable(level.counts)) refuse("the table of tiles is too short");
    if (![1, 2, 3].includes(level.predictor) || (level.predictor === 3 && level.formats[0] !== 3)) refuse("the page does not know the predictor of the file");
    if ((level.codec === "jpeg" || level.codec === "webp") && (level.samples !== Uint8Array || ![1, 3, 4].includes(level.perPixel))) refuse("the file has a picture of " + bits[0] + " bits and " + level.perPixel + " bands, which the page cannot decode");
  }

  // The part of the file's description that the page needs.
  async describe() {
    if (!this.levels.length) refuse("the file has no image");
    const { tags } = this;
    const [first] = this.levels;
    this.levels = [first, ...this.levels.slice(1).filter((level) => level.samples === first.samples && level.planar === first.planar).sort((a, b) => b.width - a.width)];
    return {
      levels: this.levels.map(({ width, height, tileWidth, tileHeight, across, down, tileBytes }) => ({ width, height, tileWidth, tileHeight, across, down, tileBytes })),
      bands: first.bands, planar: first.planar, type: first.samples.name.replace("Array", ""), photometric: first.photometric, extra: first.extra, codec: first.codec,
      colours: await this.values(tags, 320, null), scale: await this.values(tags, 33550, null), tie: await this.values(tags, 33922, null), matrix: await this.values(tags, 34264, null),
      keys: await this.values(tags, 34735, null), metadata: await this.values(tags, 42112, ""), nodata: await this.values(tags, 42113, null), size: this.source.size,
    };
  }

  // The range of tile `index` of a plane: {from, bytes}; 0 bytes: the file has no data there.
  async place(level, index, plane) {
    const i = (level.planar ? plane * level.across * level.down : 0) + index;
    const read = async ({ type, place }) => {
      const step = TYPE_BYTES[type];
      return this.number(new DataView((await this.source.read(place + i * step, step)).buffer), 0, type);
    };
    const bytes = await read(level.counts);
    const from = await read(level.offsets);
    if (from + bytes > this.source.size) refuse("the file is cut off");
    if (!Number.isSafeInteger(from) || !Number.isSafeInteger(bytes) || bytes > 2 * level.tileBytes + 65536) refuse("the size of a tile is damaged");
    return { from, bytes: from === 0 ? 0 : bytes };
  }
}

// --- decoders ---

async function inflate(bytes, size) {
  const out = new Uint8Array(size);
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
  let at = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (value.length > size - at) refuse("it is larger than its tile");
      out.set(value, at);
      at += value.length;
    }
  } catch (error) {
    reader.cancel().catch(() => {});
    refuse("damaged deflate data: " + error.message);
  }
  if (at !== size) refuse("damaged deflate data: it has " + at + " bytes instead of " + size);
  return out;
}

// LZW as TIFF has it: codes of 9 to 12 bits, the highest bit first, each width ends one code early.
function unlzw(bytes, size) {
  const out = new Uint8Array(size);
  const from = new Int32Array(4097); // a string is a part of the output
  const length = new Int32Array(4097);
  let next = 258;
  let width = 9;
  let held = 0;
  let bits = 0;
  let at = 0;
  let last = -1; // begin of the string before in the output
  let lastLength = 0;
  for (let i = 0; ;) {
    while (bits < width && i < bytes.length) {
      held = ((held << 8) | bytes[i++]) & 0xffffff;
      bits += 8;
    }
    if (bits < width) break;
    const code = (held >> (bits - width)) & ((1 << width) - 1);
    bits -= width;
    if (code === 257) break;
    if (code === 256) {
      next = 258;
      width = 9;
      last = -1;
      continue;
    }
    const n = code < 256 ? 1 : code < next ? length[code] : code === next && last >= 0 ? lastLength + 1 : 0;
    if (n === 0 || n > size - at || next > 4096) refuse("damaged lzw data");
    const source = code < 256 ? -1 : code < next ? from[code] : last;
    if (source < 0) out[at] = code;
    else for (let k = 0; k < n; k++) out[at + k] = out[source + k];
    if (last >= 0) {
      from[next] = last;
      length[next++] = lastLength + 1;
    }
    last = at;
    lastLength = n;
    at += n;
    if (next >= (1 << width) - 1 && width < 12) width++;
  }
  if (at !== size) refuse("damaged lzw data: it has " + at + " bytes instead of " + size);
  return out;
}

// The size of a picture by its head, so that the browser decodes none that is larger than its tile. [0, 0] if the head is damaged.
function jpegSize(bytes) {
  let found = null;
  for (let at = 2; at + 9 < bytes.length;) {
    if (bytes[at] !== 0xff) break;
    const mark = bytes[at + 1];
    if (mark === 0xff) {
      at++; // a mark may begin with more of them
      continue;
    }
    if (mark === 0xda) return found || [0, 0];
    const length = (bytes[at + 2] << 8) | bytes[at + 3];
    if (mark < 0xc0 || (mark >= 0xd0 && mark <= 0xd9) || length < 2) break;
    if (mark <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(mark)) {
      if (found) break;
      found = [(bytes[at + 7] << 8) | bytes[at + 8], (bytes[at + 5] << 8) | bytes[at + 6]];
    }
    at += 2 + length;
  }
  return [0, 0];
}

function webpSize(bytes) {
  if (bytes.length < 30) return [0, 0];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const name = (at) => String.fromCharCode(...bytes.subarray(at, at + 4));
  if (name(0) !== "RIFF" || name(8) !== "WEBP") return [0, 0];
  const kind = name(12);
  if (kind === "VP8 ") return [view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff];
  const word = view.getUint32(21, true);
  if (kind === "VP8L") return [(word & 0x3fff) + 1, ((word >>> 14) & 0x3fff) + 1];
  if (kind === "VP8X") return [(view.getUint32(24, true) & 0xffffff) + 1, (view.getUint32(26, true) >>> 8) + 1];
  return [0, 0];
}

// The pixels of a WebP with alpha as RGBA, or null. A canvas multiplies colours with alpha, which rounds them; this decoder of the
// browser does not. It gives a lossy picture in another form, and only pages of a secure host (or this machine) have it.
async function alphaPixels(data, width, height) {
  if (typeof ImageDecoder !== "function") return null;
  const decoder = new ImageDecoder({ data, type: "image/webp", premultiplyAlpha: "none", colorSpaceConversion: "none" });
  let image = null;
  try {
    image = (await decoder.decode()).image;
    if (!["RGBA", "BGRA"].includes(image.format) || image.codedWidth !== width || image.codedHeight !== height) return null;
    const out = new Uint8Array(image.allocationSize());
    const [{ offset, stride }] = await image.copyTo(out);
    if (offset !== 0 || stride !== 4 * width) return null;
    if (image.format === "BGRA") for (let i = 0; i < out.length; i += 4) [out[i], out[i + 2]] = [out[i + 2], out[i]];
    return out;
  } catch {
    return null;
  } finally {
    if (image) image.close();
    decoder.close();
  }
}

// A picture that the browser decodes. JPEG: the tables of the file are put before the stream, and a mark that says whether its
// colours are YCbCr, which is otherwise guessed.
async function unpicture(bytes, level) {
  const { tileWidth: width, tileHeight: height, perPixel } = level;
  let data = bytes;
  if (level.codec === "jpeg") {
    if (bytes.length < 4 || bytes[0] !== 0xff || bytes[1] !== 0xd8) refuse("damaged jpeg data");
    const mark = [0xff, 0xd8, 0xff, 0xee, 0, 14, 0x41, 0x64, 0x6f, 0x62, 0x65, 0, 100, 0, 0, 0, 0, level.photometric === 6 ? 1 : 0];
    const tables = level.tables && level.tables.length > 4 ? level.tables.subarray(2, level.tables.length - 2) : [];
    data = new Uint8Array(mark.length + tables.length + bytes.length - 2);
    data.set(mark);
    data.set(tables, mark.length);
    data.set(bytes.subarray(2), mark.length + tables.length);
  }
  const size = level.codec === "jpeg" ? jpegSize(data) : webpSize(data);
  if (size[0] !== width || size[1] !== height) refuse("damaged " + level.codec + " data: a tile has another size");
  const exact = perPixel === 4 && level.codec === "webp" ? await alphaPixels(data, width, height) : null;
  if (exact) return exact;
  let image;
  try {
    image = await createImageBitmap(new Blob([data], { type: "image/" + level.codec }), { premultiplyAlpha: "none", colorSpaceConversion: "none" });
  } catch {
    refuse("damaged " + level.codec + " data");
  }
  if (image.width !== width || image.height !== height) refuse("damaged " + level.codec + " data: a tile has another size");
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  image.close();
  const pixels = context.getImageData(0, 0, width, height).data;
  const out = new Uint8Array(width * height * perPixel);
  for (let i = 0, at = 0; at < out.length; i += 4) for (let b = 0; b < perPixel; b++) out[at++] = pixels[i + b];
  return out;
}

function swap(bytes, step) {
  for (let at = 0; at < bytes.length; at += step)
    for (let low = at, high = at + step - 1; low < high; low++, high--) [bytes[low], bytes[high]] = [bytes[high], bytes[low]];
}

// Undoes predictor 2, differences of samples, in place.
function undoDifferences(array, level) {
  const { perPixel } = level;
  const row = level.tileWidth * perPixel;
  for (let y = 0; y < level.tileHeight; y++)
    for (let at = y * row + perPixel, end = (y + 1) * row; at < end; at++) array[at] += array[at - perPixel]; // wraps as the type does
}

// Undoes predictor 3: each row has its bytes in planes, the highest first, as differences.
function undoPlanes(bytes, level) {
  const { perPixel, rowBytes } = level;
  const step = level.samples.BYTES_PER_ELEMENT;
  const n = rowBytes / step;
  const out = new Uint8Array(bytes.length);
  const words = new Uint32Array(out.buffer); // browsers are little-endian
  for (let y = 0; y < level.tileHeight; y++) {
    const row = y * rowBytes;
    for (let band = 0; band < perPixel; band++)
      for (let at = row + band, sum = 0, end = row + rowBytes; at < end; at += perPixel) bytes[at] = sum = (sum + bytes[at]) & 255;
    if (step === 4) {
      for (let i = row, to = row >> 2, end = row + n; i < end; i++) words[to++] = (bytes[i] << 24) | (bytes[i + n] << 16) | (bytes[i + 2 * n] << 8) | bytes[i + 3 * n];
    } else {
      for (let plane = 0; plane < step; plane++)
        for (let i = 0, from = row + plane * n, to = row + step - 1 - plane; i < n; i++, to += step) out[to] = bytes[from + i];
    }
  }
  return out;
}

// The samples of a tile; those of a mask are 0 and 1.
async function decode(bytes, level, little) {
  const { codec, samples, predictor } = level;
  let data;
  if (codec === "jpeg" || codec === "webp") return unpicture(bytes, level);
  if (codec === "deflate") data = await inflate(bytes, level.tileBytes);
  else if (codec === "zstd") data = zstdDecode(bytes, level.tileBytes);
  else if (codec === "lzw") data = unlzw(bytes, level.tileBytes);
  else data = bytes.slice(0, level.tileBytes);
  if (data.length !== level.tileBytes) refuse("a tile is too short");
  if (samples === null) {
    const out = new Uint8Array(level.tileWidth * level.tileHeight);
    for (let y = 0, at = 0; y < level.tileHeight; y++)
      for (let x = 0; x < level.tileWidth; x++) out[at++] = (data[y * level.rowBytes + (x >> 3)] >> (7 - (x & 7))) & 1;
    return out;
  }
  const step = samples.BYTES_PER_ELEMENT;
  if (predictor === 3) data = undoPlanes(data, level);
  else if (!little && step > 1) swap(data, step);
  const integers = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: BigUint64Array }[step];
  if (predictor === 2) undoDifferences(new integers(data.buffer), level);
  return new samples(data.buffer);
}

// --- requests of the page ---

let tiff = null;
let wanted = []; // tiles that are not being read yet, the first ones first
let running = 0;
const busy = new Set(); // keys of tiles that are being read
const answered = new Map(); // key -> number of the answer; the page may ask before it has it
let answers = 0;

const keyOf = (tile) => tile.level + "/" + tile.index + "/" + tile.planes.join();

function report(error, tile) {
  postMessage({ error: error instanceof RangeError ? "there is no memory for it" : error.message, tile });
}

function isDone(tile) {
  if (!busy.delete(tile.key)) return false;
  answered.set(tile.key, ++answers);
  return true;
}

// The ranges that a tile needs: of its planes and of its mask.
async function rangesOf(tile) {
  const level = tiff.levels[tile.level];
  const places = tile.planes.map((plane) => ({ tile, plane, level, index: tile.index }));
  if (level.mask) places.push({ tile, plane: "mask", level: level.mask, index: tile.index });
  for (const place of places) Object.assign(place, await tiff.place(place.level, place.index, place.plane === "mask" ? 0 : place.plane));
  return places;
}

// Joins neighbours, in the order of the file, to lists that are read by one request.
function join(places) {
  const lists = [];
  for (const place of places.sort((a, b) => a.from - b.from)) {
    const list = lists.at(-1);
    const end = list ? list.end : 0;
    if (list && place.from >= list.from && place.from - end <= GAP_MAX && Math.max(end, place.from + place.bytes) - list.from <= RANGE_MAX) {
      list.places.push(place);
      list.end = Math.max(end, place.from + place.bytes);
    } else {
      lists.push({ from: place.from, end: place.from + place.bytes, places: [place] });
    }
  }
  return lists;
}

async function take(place, list, data) {
  const { tile, level } = place;
  const bytes = place.bytes === 0 ? null : data.subarray(place.from - list.from, place.from - list.from + place.bytes);
  if (bytes === null) tile.parts[place.plane] = place.plane === "mask" ? new Uint8Array(level.tileWidth * level.tileHeight) : null; // none valid, as GDAL reads it
  else tile.parts[place.plane] = await decode(bytes, level, tiff.little);
  if (--tile.missing > 0 || !isDone(tile)) return;
  const buffers = Object.values(tile.parts).filter(Boolean).map((array) => array.buffer);
  postMessage({ tile: { level: tile.level, index: tile.index, planes: tile.planes, parts: tile.parts }, requests: tiff.source.requests, bytes: tiff.source.bytes }, [...new Set(buffers)]);
}

function fail(error, tile) {
  if (isDone(tile)) report(error, { level: tile.level, index: tile.index, planes: tile.planes });
}

async function readList(list) {
  let data;
  try {
    data = list.end === list.from ? null : (await tiff.source.begin(list.from, list.end)) || (await tiff.source.range(list.from, list.end));
  } catch (error) {
    for (const { tile } of list.places) fail(error, tile);
    return;
  }
  for (const place of list.places) await take(place, list, data).catch((error) => fail(error, place.tile));
}

async function readTiles() {
  if (running >= RANGES || !wanted.length) return;
  running++;
  const places = [];
  const part = wanted.splice(0, 64);
  for (const tile of part) busy.add(tile.key);
  for (const tile of part) {
    try {
      const found = await rangesOf(tile);
      tile.missing = found.length;
      places.push(...found);
    } catch (error) {
      fail(error, tile);
    }
  }
  await Promise.all(join(places).map(readList));
  running--;
  readTiles();
}

function want(message) {
  wanted = [];
  for (const [key, number] of answered) if (number <= message.answers) answered.delete(key);
  for (const { level, index } of message.want) {
    const tile = { level, index, planes: tiff.levels[level].planar ? message.planes : [0], parts: {} };
    tile.key = keyOf(tile);
    if (!busy.has(tile.key) && !answered.has(tile.key)) wanted.push(tile);
  }
  for (let i = running; i < RANGES; i++) readTiles();
}

onmessage = async ({ data }) => {
  if (data.want) {
    want(data);
    return;
  }
  try {
    const opening = new Tiff(new Source(data.open));
    const opened = await opening.open();
    tiff = opening;
    postMessage({ opened });
  } catch (error) {
    report(error);
  }
};
