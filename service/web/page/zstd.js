// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Decodes Zstandard frames (RFC 8878) of a block whose size is known. Matches are copied within the output, therefore the
// memory is that of the output and of some tables. Each loop ends with the input or the output. Checksums are not compared.
"use strict";

const ZSTD_MAGIC = 0xfd2fb528;
const ZSTD_BLOCK = 1 << 17;

// Base value and count of extra bits of each code.
const ZSTD_LITERALS = [[0, 0], [1, 0], [2, 0], [3, 0], [4, 0], [5, 0], [6, 0], [7, 0], [8, 0], [9, 0], [10, 0], [11, 0], [12, 0], [13, 0], [14, 0], [15, 0],
  [16, 1], [18, 1], [20, 1], [22, 1], [24, 2], [28, 2], [32, 3], [40, 3], [48, 4], [64, 6], [128, 7], [256, 8], [512, 9], [1024, 10], [2048, 11], [4096, 12],
  [8192, 13], [16384, 14], [32768, 15], [65536, 16]];
const ZSTD_MATCHES = [...Array.from({ length: 32 }, (_, i) => [i + 3, 0]), [35, 1], [37, 1], [39, 1], [41, 1], [43, 2], [47, 2], [51, 3], [59, 3], [67, 4], [83, 4],
  [99, 5], [131, 7], [259, 8], [515, 9], [1027, 10], [2051, 11], [4099, 12], [8195, 13], [16387, 14], [32771, 15], [65539, 16]];
const ZSTD_OFFSETS = Array.from({ length: 29 }, (_, i) => [2 ** i, i]); // a block of this page has less than 2^28 bytes

function zstdFail(words) {
  throw new Error("damaged zstd data: " + words);
}

// --- bits ---

// Four bytes from byte `at`; the input has spare bytes at its end.
function zstdWord(input, at) {
  return input[at] | (input[at + 1] << 8) | (input[at + 2] << 16) | (input[at + 3] << 24);
}

// Reads bits from the end of input[from, end) to its begin. The highest 1 of the last byte marks the end.
class ZstdBits {
  constructor(input, from, end) {
    const last = end > from ? input[end - 1] : 0;
    if (last === 0) zstdFail("a stream of bits has no end");
    this.input = input;
    this.base = from * 8;
    this.at = (end - 1) * 8 + 31 - Math.clz32(last);
  }

  // n <= 28. Bits before the begin are 0; left() is negative then.
  read(n) {
    this.at -= n;
    if (n > 24) {
      const high = n - 16;
      this.at += 16;
      const upper = this.read0(high);
      this.at -= 16;
      return upper * 65536 + this.read0(16);
    }
    return this.read0(n);
  }

  read0(n) {
    const under = this.base - this.at;
    if (under > 0) return under >= n ? 0 : ((zstdWord(this.input, this.base >> 3) << under) & ((1 << n) - 1));
    return (zstdWord(this.input, this.at >> 3) >>> (this.at & 7)) & ((1 << n) - 1);
  }

  left() {
    return this.at - this.base;
  }
}

// --- finite-state codes ---

// The decoding table of counts (-1: less than one).
function zstdStates(counts, log) {
  const size = 1 << log;
  const symbol = new Uint8Array(size);
  const bits = new Uint8Array(size);
  const base = new Uint16Array(size);
  const next = new Uint16Array(counts.length);
  let high = size;
  counts.forEach((n, s) => {
    if (n === -1) symbol[--high] = s;
    next[s] = n === -1 ? 1 : n;
  });
  const step = (size >> 1) + (size >> 3) + 3;
  let at = 0;
  counts.forEach((n, s) => {
    for (let i = 0; i < n; i++) {
      symbol[at] = s;
      do at = (at + step) & (size - 1);
      while (at >= high);
    }
  });
  for (let i = 0; i < size; i++) {
    const x = next[symbol[i]]++;
    bits[i] = log - (31 - Math.clz32(x));
    base[i] = (x << bits[i]) - size;
  }
  return { log, symbol, bits, base };
}

// Reads a description of counts from input[at, end). Returns {states, at}.
function zstdDescription(input, at, end, maxLog, symbols) {
  let bit = at * 8;
  const take = (n) => {
    const value = (zstdWord(input, bit >> 3) >>> (bit & 7)) & ((1 << n) - 1);
    bit += n;
    return value;
  };
  const log = take(4) + 5;
  if (log > maxLog) zstdFail("a table of codes is too large");
  const counts = [];
  let rest = (1 << log) + 1;
  while (rest > 1 && counts.length < symbols) {
    const width = 32 - Math.clz32(rest);
    const low = (1 << width) - 1 - rest; // so many values need a bit less
    let value = take(width - 1);
    if (value >= low) {
      value += take(1) << (width - 1);
      if (value >= 1 << (width - 1)) value -= low;
    }
    const n = value - 1;
    counts.push(n);
    rest -= n < 0 ? 1 : n;
    for (let repeat = n === 0 ? 3 : 0; repeat === 3 && counts.length < symbols;) {
      repeat = take(2);
      for (let i = 0; i < repeat; i++) counts.push(0);
    }
    if (bit > end * 8) zstdFail("a table of codes is cut off");
  }
  if (rest !== 1 || counts.length > symbols) zstdFail("the counts of a table are wrong");
  return { states: zstdStates(counts, log), at: (bit + 7) >> 3 };
}

const ZSTD_KINDS = {
  literals: { codes: ZSTD_LITERALS, log: 9, given: zstdStates([4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1], 6) },
  offsets: { codes: ZSTD_OFFSETS, log: 8, given: zstdStates([1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1], 5) },
  matches: { codes: ZSTD_MATCHES, log: 9,
    given: zstdStates([1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1], 6) },
};
for (const kind of Object.values(ZSTD_KINDS)) {
  kind.base = Float64Array.from(kind.codes, ([base]) => base);
  kind.extra = Uint8Array.from(kind.codes, ([, extra]) => extra);
}

// --- Huffman codes of literals ---

// The decoding table of weights; the last weight is implied.
function zstdHuffman(weights) {
  let sum = 0;
  for (const weight of weights) {
    if (weight > 11) zstdFail("a code of literals is too long");
    sum += weight ? 1 << (weight - 1) : 0;
  }
  const log = 32 - Math.clz32(sum);
  const rest = (1 << log) - sum;
  if (sum === 0 || log > 11 || (rest & (rest - 1)) !== 0) zstdFail("the codes of literals are incomplete");
  weights.push(32 - Math.clz32(rest));
  const symbol = new Uint8Array(1 << log);
  const bits = new Uint8Array(1 << log);
  let at = 0;
  for (let weight = 1; weight <= log; weight++)
    for (let s = 0; s < weights.length; s++) {
      if (weights[s] !== weight) continue;
      const end = at + (1 << (weight - 1));
      symbol.fill(s, at, end);
      bits.fill(log + 1 - weight, at, end);
      at = end;
    }
  return { log, symbol, bits };
}

// Reads a description of codes from input[at, end). Returns {codes, at}.
function zstdCodes(input, at, end) {
  const head = input[at++];
  const weights = [];
  if (head >= 128) {
    const n = head - 127;
    if (at + ((n + 1) >> 1) > end) zstdFail("the codes of literals are cut off");
    for (let i = 0; i < n; i++) weights.push(i & 1 ? input[at + (i >> 1)] & 15 : input[at + (i >> 1)] >> 4);
    return { codes: zstdHuffman(weights), at: at + ((n + 1) >> 1) };
  }
  const stop = at + head;
  if (stop > end) zstdFail("the codes of literals are cut off");
  const table = zstdDescription(input, at, stop, 6, 12); // weights 0 to 11
  const { log, symbol, bits, base } = table.states;
  const stream = new ZstdBits(input, table.at, stop);
  const states = [stream.read(log), stream.read(log)];
  if (stream.left() < 0) zstdFail("the codes of literals are cut off");
  for (let turn = 0; weights.length < 255; turn ^= 1) { // two states in turn
    weights.push(symbol[states[turn]]);
    states[turn] = base[states[turn]] + stream.read(bits[states[turn]]);
    if (stream.left() < 0) {
      weights.push(symbol[states[turn ^ 1]]);
      return { codes: zstdHuffman(weights), at: stop };
    }
  }
  return zstdFail("there are too many codes of literals");
}

// Decodes output[to, until) from the stream input[from, end).
function zstdHuffmanStream(codes, input, from, end, output, to, until) {
  const { log, symbol, bits } = codes;
  const base = from * 8;
  let at = new ZstdBits(input, from, end).at - log; // the lowest bit of the next code
  const mask = (1 << log) - 1;
  while (until - to >= 2 && at >= base + 24) { // two codes of at most 11 bits from one word
    const low = at + log - 24;
    const word = zstdWord(input, low >> 3) >>> (low & 7);
    const first = (word >>> (24 - log)) & mask;
    output[to++] = symbol[first];
    const used = bits[first];
    const second = (word >>> (24 - log - used)) & mask;
    output[to++] = symbol[second];
    at -= used + bits[second];
  }
  while (to < until) {
    const under = base - at;
    if (under > log) zstdFail("literals are cut off");
    const index = under > 0 ? (zstdWord(input, from) << under) & mask : (zstdWord(input, at >> 3) >>> (at & 7)) & mask;
    output[to++] = symbol[index];
    at -= bits[index];
  }
  if (at + log !== base) zstdFail("a stream of literals has another length");
}

// --- blocks ---

// State of a frame, and the output that it continues.
class ZstdFrame {
  constructor(input, output, at, literal) {
    this.input = input;
    this.output = output;
    this.begin = at;
    this.at = at;
    this.repeat = [1, 4, 8];
    this.codes = null;
    this.states = { literals: null, offsets: null, matches: null };
    this.literal = literal;
  }

  room(n) {
    if (n > this.output.length - this.at) zstdFail("it is larger than its tile");
  }

  // Decodes the literals of the block input[at, end) to this.literal. Returns the byte after them.
  literals(at, end) {
    const { input } = this;
    const kind = input[at] & 3;
    const format = (input[at] >> 2) & 3;
    const word = zstdWord(input, at);
    let size;
    if (kind < 2) { // raw, or one byte
      const head = format === 1 ? 2 : format === 3 ? 3 : 1;
      size = head === 1 ? input[at] >> 3 : head === 2 ? (word & 0xffff) >> 4 : (word & 0xffffff) >> 4;
      at += head;
      const stored = kind === 0 ? size : 1;
      if (size > ZSTD_BLOCK || at + stored > end) zstdFail("literals are cut off");
      if (kind === 0) this.literal.set(input.subarray(at, at + size));
      else this.literal.fill(input[at], 0, size);
      this.count = size;
      return at + stored;
    }
    const width = format < 2 ? 10 : format === 2 ? 14 : 18;
    const head = format < 2 ? 3 : format + 2;
    const mask = (1 << width) - 1;
    size = (word >>> 4) & mask;
    let stored = (word >>> (4 + width)) & mask;
    if (format === 3) stored = ((word >>> 22) | (input[at + 4] << 10)) & mask;
    at += head;
    const stop = at + stored;
    if (size > ZSTD_BLOCK || stop > end) zstdFail("literals are cut off");
    if (kind === 2) {
      const read = zstdCodes(input, at, stop);
      this.codes = read.codes;
      at = read.at;
    }
    if (this.codes === null) zstdFail("literals have no codes");
    if (format === 0) {
      zstdHuffmanStream(this.codes, input, at, stop, this.literal, 0, size);
    } else {
      const part = (size + 3) >> 2;
      let from = at + 6;
      if (from > stop || part * 3 > size) zstdFail("literals are cut off");
      for (let i = 0; i < 4; i++) {
        const until = i < 3 ? from + (input[at + 2 * i] | (input[at + 2 * i + 1] << 8)) : stop;
        if (until > stop) zstdFail("literals are cut off");
        zstdHuffmanStream(this.codes, input, from, until, this.literal, part * i, i < 3 ? part * (i + 1) : size);
        from = until;
      }
    }
    this.count = size;
    return stop;
  }

  // The table of a kind of codes. Returns the byte after its description.
  table(kind, mode, at, end) {
    const { codes, log, given } = ZSTD_KINDS[kind];
    if (mode === 0) {
      this.states[kind] = given;
    } else if (mode === 1) {
      if (at >= end || this.input[at] >= codes.length) zstdFail("a code does not exist");
      this.states[kind] = { log: 0, symbol: this.input.slice(at, ++at), bits: new Uint8Array(1), base: new Uint16Array(1) };
    } else if (mode === 2) {
      const read = zstdDescription(this.input, at, end, log, codes.length);
      this.states[kind] = read.states;
      at = read.at;
    } else if (this.states[kind] === null) {
      zstdFail("a table is used before it is there");
    }
    return at;
  }

  // The distance of a match by its value in the stream; the last three distances have short values.
  distance(value, noLiterals) {
    const { repeat } = this;
    let found;
    if (value > 3) {
      found = value - 3;
      this.repeat = [found, repeat[0], repeat[1]];
      return found;
    }
    const which = value - 1 + (noLiterals ? 1 : 0);
    found = which === 3 ? repeat[0] - 1 : repeat[which];
    if (which > 0) this.repeat = which === 1 ? [found, repeat[0], repeat[2]] : [found, repeat[0], repeat[1]];
    return found;
  }

  copy(distance, length) {
    const { output } = this;
    let { at } = this;
    this.room(length);
    if (distance < 1 || distance > at - this.begin) zstdFail("a match begins before the data");
    this.at += length;
    if (distance === 1) output.fill(output[at - 1], at, at + length);
    else if (distance >= length && length > 24) output.copyWithin(at, at - distance, at - distance + length);
    else for (const end = at + length; at < end; at++) output[at] = output[at - distance];
  }

  putLiterals(from, n) {
    const { output, literal, at } = this;
    this.room(n);
    if (n > 24) output.set(literal.subarray(from, from + n), at);
    else for (let i = 0; i < n; i++) output[at + i] = literal[from + i];
    this.at += n;
  }

  // A compressed block input[at, end).
  compressed(at, end) {
    const { input } = this;
    if (end - at < 2) zstdFail("a block is too short");
    const start = this.at;
    at = this.literals(at, end);
    let n = input[at++];
    if (at > end) zstdFail("a block is cut off");
    if (n > 127) n = n < 255 ? ((n - 128) << 8) + input[at++] : input[at++] + (input[at++] << 8) + 0x7f00;
    let used = 0;
    if (n > 0) {
      const modes = input[at++];
      at = this.table("literals", modes >> 6, at, end);
      at = this.table("offsets", (modes >> 4) & 3, at, end);
      at = this.table("matches", (modes >> 2) & 3, at, end);
      if (at >= end || (modes & 3) !== 0) zstdFail("a block is cut off");
      used = this.sequences(n, new ZstdBits(input, at, end), start);
    } else if (at !== end) {
      zstdFail("a block has another length");
    }
    this.putLiterals(used, this.count - used);
    if (this.at - start > ZSTD_BLOCK) zstdFail("a block is too large");
  }

  // Carries out n sequences. Returns the count of literals that they use.
  sequences(n, bits, start) {
    const { literals, offsets, matches } = this.states;
    const L = ZSTD_KINDS.literals;
    const M = ZSTD_KINDS.matches;
    let l = bits.read(literals.log);
    let o = bits.read(offsets.log);
    let m = bits.read(matches.log);
    let used = 0;
    for (let i = 0; i < n; i++) {
      const offset = offsets.symbol[o];
      const value = 2 ** offset + bits.read(offset);
      const matchCode = matches.symbol[m];
      const match = M.base[matchCode] + bits.read(M.extra[matchCode]);
      const literalCode = literals.symbol[l];
      const before = L.base[literalCode] + bits.read(L.extra[literalCode]);
      if (used + before > this.count || bits.left() < 0) zstdFail("a sequence has too many literals");
      this.putLiterals(used, before);
      used += before;
      this.copy(this.distance(value, before === 0), match);
      if (this.at - start > ZSTD_BLOCK) zstdFail("a block is too large");
      if (i + 1 < n) {
        l = literals.base[l] + bits.read(literals.bits[l]);
        m = matches.base[m] + bits.read(matches.bits[m]);
        o = offsets.base[o] + bits.read(offsets.bits[o]);
      }
    }
    if (bits.left() !== 0) zstdFail("a stream of sequences has another length");
    return used;
  }
}

// Decodes the blocks of a frame from input[at, end). Returns {at, out}.
function zstdBlocks(input, at, end, output, out, literal) {
  const frame = new ZstdFrame(input, output, out, literal);
  for (let last = 0; !last;) {
    if (at + 3 > end) zstdFail("it is cut off");
    const head = zstdWord(input, at) & 0xffffff;
    last = head & 1;
    const kind = (head >> 1) & 3;
    const size = head >> 3;
    at += 3;
    const stored = kind === 1 ? 1 : size;
    if (size > ZSTD_BLOCK || kind === 3 || at + stored > end) zstdFail(kind === 3 ? "a block has an unknown type" : "it is cut off");
    if (kind === 2) {
      frame.compressed(at, at + size);
    } else {
      frame.room(size);
      if (kind === 0) output.set(input.subarray(at, at + size), frame.at);
      else output.fill(input[at], frame.at, frame.at + size);
      frame.at += size;
    }
    at += stored;
  }
  return { at, out: frame.at };
}

// Decodes frames to a new array of `size` bytes; throws an Error if they are damaged or have another size.
function zstdDecode(bytes, size) {
  const end = bytes.length;
  const input = new Uint8Array(end + 8); // zstdWord() reads past the end
  const output = new Uint8Array(size);
  const literal = new Uint8Array(ZSTD_BLOCK); // of all frames
  input.set(bytes);
  let at = 0;
  let out = 0;
  while (at < end) {
    if (at + 8 > end) zstdFail("it is cut off");
    const magic = zstdWord(input, at) >>> 0;
    at += 4;
    if (magic >>> 4 === 0x184d2a5) { // a frame to skip
      at += 4 + (zstdWord(input, at) >>> 0);
      if (at > end) zstdFail("it is cut off");
      continue;
    }
    if (magic !== ZSTD_MAGIC) zstdFail("it has no head");
    const head = input[at++];
    const single = (head >> 5) & 1;
    if (head & 8) zstdFail("its head is of a later version");
    at += single ? 0 : 1;
    const dictionary = [0, 1, 2, 4][head & 3];
    for (let i = 0; i < dictionary; i++) if (input[at + i] !== 0) zstdFail("it needs a dictionary");
    at += dictionary + [single, 2, 4, 8][head >> 6];
    const begin = out;
    ({ at, out } = zstdBlocks(input, at, end, output, out, literal));
    if (head & 4) at += 4;
    if (at > end || out < begin) zstdFail("it is cut off");
  }
  if (out !== size) zstdFail("it has " + out + " bytes instead of " + size);
  return output;
}
