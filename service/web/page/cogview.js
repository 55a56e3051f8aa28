// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows a product COG: pan, zoom, bands, colours, and the values under the pointer. cog.js reads and decodes the tiles in a worker;
// this file keeps them within a limit, colours them and draws them. The address of the page has the file, the place and the
// colours after "#cog=", and can be sent to others.
"use strict";

const COG_TILES_BYTES = 256e6; // kept samples and pixels
const COG_VIEW_BYTES = 192e6; // those of a view
const COG_VIEW_TILES = 1024;
const COG_ITEM_BYTES = 4e6;
let cog = null; // the viewer that is open

// --- the viewer ---

class CogView {
  constructor(address) {
    this.address = address;
    this.name = cogText(address.path.split("/").pop());
    this.tiles = new Map(); // key -> tile, the least recently drawn first
    this.held = 0;
    this.failed = new Map(); // key -> words
    this.answers = 0; // tiles that came, and failures
    this.view = null; // {x, y, scale}: the pixel in the middle, screen pixels for one of the image
    this.pointer = null; // {x, y} on the canvas
    this.exact = null; // {column, row} whose full tile is wanted
    this.version = 0; // of the colours
    this.pointers = new Map();
    this.build();
    this.start();
  }

  build() {
    const button = (id, label, text, onclick) => make("button", { type: "button", id, "aria-label": label, title: label, onclick }, text);
    this.canvas = make("canvas", { id: "cog-canvas", tabindex: 0, role: "application", autofocus: true, "aria-label": "Picture of " + this.name + ": arrows move, plus and minus zoom, 0 shows all, Enter reads the pixel in the middle" });
    this.context = this.canvas.getContext("2d");
    this.status = make("p", { id: "cog-value" }, "The file is being read.");
    this.place = make("p", { id: "cog-place" });
    this.alert = make("div", { id: "cog-trouble", role: "alert" });
    this.looks = make("select", { id: "cog-look", "aria-label": "Colours", onchange: () => this.setLook(this.looks.value, true) });
    this.rows = make("div", { id: "cog-rows" });
    this.copied = make("span", { class: "note", role: "status" });
    this.zooms = make("div", { id: "cog-zoom", hidden: true }, button("cog-in", "Zoom in", "+", () => this.zoom(2)), button("cog-out", "Zoom out", "\u2212", () => this.zoom(0.5)), button("cog-all", "Show all", "All", () => this.fit()));
    this.stage = make("div", { id: "cog-stage" }, this.canvas, this.zooms);
    this.tools = make("div", { id: "cog-tools", hidden: true }, this.looks, this.rows,
      make("button", { type: "button", id: "cog-stretch", title: "From the 2nd to the 98th percentile of what is in sight", onclick: () => this.stretch(true) }, "Stretch to view"));
    this.dialog = make("dialog", { id: "cog", "aria-labelledby": "cog-title" },
      make("div", { id: "cog-head" }, make("h2", { id: "cog-title", class: "name" }, this.name), make("span", { id: "cog-facts", class: "note" }), this.copied,
        make("button", { type: "button", onclick: () => this.copyLink() }, "Copy link"), make("button", { type: "button", id: "cog-close", onclick: () => this.dialog.close() }, "Close")),
      this.alert, this.tools, this.stage, make("div", { id: "cog-under" }, this.status, this.place));
    this.dialog.addEventListener("close", () => this.end());
    this.listen();
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.stage);
  }

  start() {
    this.worker = new Worker("/cog.js");
    this.worker.addEventListener("message", ({ data }) => this.onMessage(data));
    this.worker.addEventListener("error", () => this.trouble("the decoder of the page did not start"));
    this.worker.postMessage({ open: this.address.path });
    this.renders = this.readItem(); // at the same time
  }

  end() {
    if (this.ended) return;
    this.ended = true;
    this.worker.terminate();
    this.observer.disconnect();
    this.dialog.remove();
    clearTimeout(this.timer);
    if (cog === this) {
      cog = null;
      history.replaceState(null, "", location.pathname + location.search);
    }
  }

  trouble(words) {
    this.alert.replaceChildren(make("p", { class: "trouble" }, make("b", {}, "Not shown:"), " ", words, ". ", this.opened ? make("button", { type: "button", onclick: () => this.again() }, "Try again") : null));
    if (!this.opened) this.status.textContent = "";
  }

  again() {
    this.failed.clear();
    this.alert.replaceChildren();
    this.draw();
  }

  async onMessage(data) {
    if (data.tile) this.answers++;
    if (data.error && !data.tile) this.trouble(data.error);
    else if (data.error) {
      this.failed.set(this.key(data.tile.level, data.tile.index, data.tile.planes), data.error);
      const { width } = this.opened.levels[data.tile.level];
      this.trouble("a tile of " + (data.tile.level ? "the overview of " + width + " columns" : "the image") + ": " + data.error);
      this.draw();
    } else if (data.opened) {
      try {
        await this.onOpened(data.opened);
      } catch (error) {
        this.opened = null;
        this.tools.hidden = this.zooms.hidden = true;
        this.trouble("the page does not understand the file or its item: " + error.message);
      }
    } else if (data.tile) this.keepTile(data);
  }

  async onOpened(opened) {
    const renders = await this.renders;
    if (this.ended) return;
    this.opened = opened;
    this.full = opened.levels[0];
    this.ground = cogGround(opened);
    this.bands = cogBands(opened);
    const nodata = opened.nodata === null ? "" : String(opened.nodata).trim();
    this.nodata = nodata === "" ? NaN : Number(nodata);
    if (opened.type === "Float32") this.nodata = Math.fround(this.nodata);
    const alpha = opened.extra.indexOf(2);
    this.alphaBand = alpha < 0 ? -1 : opened.bands - opened.extra.length + alpha;
    this.dialog.querySelector("#cog-facts").textContent = [this.full.width + " \u00d7 " + this.full.height, count(opened.bands, "band", "bands"), opened.type, opened.codec, bytes(opened.size)].join(" \u00b7 ");
    this.makeLooks(renders);
    this.tools.hidden = this.zooms.hidden = false;
    const { at } = this.address;
    if (at && at[2] > 0) this.view = { x: at[0], y: at[1], scale: at[2] };
    this.resize();
    if (this.view) this.moved(); // a link may name any place
    else this.fit();
    this.setLook(this.address.look, false);
  }

  // The renderings of this file in the STAC item next to it.
  async readItem() {
    if (!this.address.item) return [];
    try {
      const reply = await fetch(new URL(encodeURIComponent(this.address.item), location.origin + this.address.path));
      const isItem = reply.ok && /^application\/(geo\+)?json\b/.test(reply.headers.get("Content-Type")) && Number(reply.headers.get("Content-Length")) <= COG_ITEM_BYTES;
      if (!isItem) { // a link may name any product
        await reply.body?.cancel();
        return [];
      }
      const item = await reply.json();
      const keys = Object.entries(item.assets || {}).filter(([, asset]) => new URL(asset.href, location.origin + this.address.path).pathname === this.address.path).map(([key]) => key);
      return Object.entries(item.renders || item.properties?.renders || {}).filter(([, render]) => render.assets?.length === 1 && keys.includes(render.assets[0]) && Array.isArray(render.bidx));
    } catch {
      return []; // the file is shown without
    }
  }

  // --- looks: which bands in which colours ---

  makeLooks(renders) {
    const { bands, photometric, colours, type } = this.opened;
    const within = (list) => list.every((b) => Number.isInteger(b) && b >= 1 && b <= bands);
    this.look = new Map();
    renders.forEach(([key, render]) => {
      const { bidx, rescale } = render;
      if ((bidx.length !== 1 && bidx.length !== 3) || !within(bidx)) return;
      const pairs = Array.isArray(rescale) && rescale.length === bidx.length && rescale.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every(Number.isFinite)) ? rescale.map((pair) => [...pair]) : null;
      this.look.set("item:" + key, { title: cogText(key), bands: bidx.map((b) => b - 1), ranges: pairs, ...(bidx.length === 1 ? cogRenderColours(render) : {}) });
    });
    if (photometric === 3 && colours && colours.length >= 3) {
      const n = colours.length / 3;
      this.look.set("palette", { title: "Colours of the file", bands: [0], exact: new Map(Array.from({ length: n }, (_, i) => [i, cogRgba(colours[i] >> 8, colours[n + i] >> 8, colours[2 * n + i] >> 8, 255)])) });
    }
    const rgb = { title: "Three bands", bands: [0, 1, 2], ranges: type === "Uint8" ? [[0, 255], [0, 255], [0, 255]] : null };
    if (bands >= 3 && (photometric === 2 || photometric === 6)) this.look.set("rgb", rgb);
    for (const ramp of Object.keys(COG_RAMPS)) this.look.set(ramp, { title: "One band, " + ramp, bands: [0], table: cogTable(COG_RAMPS[ramp]), ranges: null });
    if (bands >= 3 && !this.look.has("rgb")) this.look.set("rgb", rgb);
    this.looks.replaceChildren(...[...this.look].map(([key, look]) => make("option", { value: key }, look.title)));
  }

  // Takes a look; by the user bands stay if they fit.
  setLook(key, byUser) {
    const chosen = this.look.has(key) ? key : this.look.keys().next().value;
    const look = this.look.get(chosen);
    const before = this.shown;
    const same = byUser && before && before.bands.length === look.bands.length && !chosen.startsWith("item:");
    this.shown = { ...look, key: chosen, bands: [...(same ? before.bands : look.bands)], ranges: look.exact ? null : (same && before.ranges ? before.ranges : look.ranges)?.map((pair) => [...pair]) || null };
    if (!byUser) {
      const { bands, range } = this.address;
      if (bands && bands.length === this.shown.bands.length && bands.every((b) => Number.isInteger(b) && b >= 1 && b <= this.opened.bands)) this.shown.bands = bands.map((b) => b - 1);
      if (range && range.length === 2 * this.shown.bands.length && !look.exact) this.shown.ranges = this.shown.bands.map((_, i) => [range[2 * i], range[2 * i + 1]]);
    }
    this.looks.value = chosen;
    this.recolour();
    this.drawRows();
  }

  recolour() {
    this.version++;
    this.integers = null;
    this.draw();
    this.saveSoon();
  }

  // Fields and sliders of the bands that are shown.
  drawRows() {
    const { bands, ranges } = this.shown;
    const names = bands.length === 3 ? ["Red", "Green", "Blue"] : ["Band"];
    this.rows.replaceChildren(...bands.map((band, i) => {
      const options = this.bands.map((b, n) => make("option", { value: n, selected: n === band }, b.number + (b.name ? " " + b.name : "")));
      const choice = make("select", { "aria-label": names[i], "data-band": i, onchange: (event) => this.setBand(i, Number(event.target.value)) }, ...options);
      const row = make("div", { class: "cog-row" }, make("span", { class: "note" }, names[i]), this.bands.length > 1 ? choice : make("span", { class: "name" }, this.bands[0].name || "1"));
      if (this.shown.exact) return row;
      const [least, most] = this.extent(band, ranges && ranges[i]);
      for (const [end, word] of [[0, "low"], [1, "high"]]) {
        const value = ranges ? ranges[i][end] : end ? most : least;
        const label = names[i] + ", " + word + " end";
        const field = make("input", { type: "number", step: "any", value: cogNumber(value), "aria-label": label, "data-end": end, "data-band": i });
        const slider = make("input", { type: "range", min: least, max: most, step: "any", value, "aria-label": label + ", slider" });
        const set = (from, to) => {
          if (from.value === "" || !Number.isFinite(Number(from.value)) || !this.shown.ranges) return;
          this.shown.ranges[i][end] = Number(from.value);
          to.value = from === slider ? cogNumber(Number(from.value)) : from.value;
          this.recolour();
        };
        field.addEventListener("change", () => set(field, slider));
        slider.addEventListener("input", () => set(slider, field));
        row.append(field, slider);
      }
      return row;
    }));
    this.dialog.querySelector("#cog-stretch").hidden = Boolean(this.shown.exact);
  }

  setBand(i, band) {
    this.shown.bands[i] = band;
    if (this.shown.ranges && this.opened.type !== "Uint8") this.shown.ranges = null; // another band has other values
    this.recolour();
    this.drawRows();
  }

  // The ends of the sliders: of the values that were seen, or of the range.
  extent(band, range) {
    const seen = this.values([band])[0];
    const ends = [...(seen.length ? [seen[0], seen[seen.length - 1]] : []), ...(range || [])];
    if (!ends.length) return [0, 1];
    const [least, most] = [Math.min(...ends), Math.max(...ends)];
    return least < most ? [least, most] : [least - 1, most + 1];
  }

  // Some valid values of each band in the tiles in sight, ascending.
  values(bands) {
    const lists = bands.map(() => []);
    const tiles = (this.inSight || []).map(({ level, index }) => this.tiles.get(this.key(level, index))).filter(Boolean);
    for (const tile of tiles) {
      const step = Math.max(1, Math.floor((tile.width * tile.height * tiles.length) / 50000));
      bands.forEach((band, k) => {
        const { array, from, each } = this.samples(tile, band);
        if (!array) return;
        for (let i = step >> 1; i < tile.stride * tile.height; i += step) {
          if (i % tile.stride >= tile.width) continue;
          const value = Number(array[from + i * each]);
          if (Number.isFinite(value) && value !== this.nodata && this.isValid(tile, i)) lists[k].push(value);
        }
      });
    }
    return lists.map((list) => Float64Array.from(list).sort());
  }

  // Sets the ranges to percentiles of what is in sight. Returns false if nothing valid is there.
  stretch(byUser) {
    const lists = this.values(this.shown.bands);
    if (this.shown.exact || lists.every((list) => list.length === 0)) return false;
    this.shown.ranges = lists.map((list) => {
      if (!list.length) return [0, 1];
      const [low, high] = [list[Math.floor(0.02 * (list.length - 1))], list[Math.ceil(0.98 * (list.length - 1))]];
      return low < high ? [Number(cogNumber(low)), Number(cogNumber(high))] : [low - 0.5, high + 0.5];
    });
    if (byUser) this.recolour();
    else this.version++;
    this.integers = null;
    this.drawRows();
    return true;
  }

  // --- tiles ---

  key(level, index, planes) {
    return level + "/" + index + "/" + (this.opened.planar ? planes || this.planes() : [0]).join();
  }

  // The planes of the file that the picture needs: all bands of a chunky file are in one.
  planes() {
    const { bands } = this.shown;
    return [...new Set(this.alphaBand < 0 ? bands : [...bands, this.alphaBand])].sort((a, b) => a - b);
  }

  keepTile({ tile: { level, index, planes, parts }, requests, bytes: read }) {
    const { width, height, tileWidth, tileHeight, across } = this.opened.levels[level];
    const x = (index % across) * tileWidth;
    const y = Math.floor(index / across) * tileHeight;
    const held = Object.values(parts).reduce((sum, part) => sum + (part ? part.byteLength : 0), 4 * tileWidth * tileHeight);
    const tile = { level, index, parts, x, y, stride: tileWidth, width: Math.min(tileWidth, width - x), height: Math.min(tileHeight, height - y), held, version: -1, canvas: null };
    this.tiles.set(this.key(level, index, planes), tile);
    this.held += held;
    this.read = { requests, bytes: read };
    this.draw();
  }

  // Removes tiles that were not drawn for longest.
  trim(needed) {
    for (const [key, tile] of this.tiles) {
      if (this.held <= COG_TILES_BYTES) return;
      if (needed.has(key)) continue;
      this.tiles.delete(key);
      this.held -= tile.held;
    }
  }

  // Where the samples of a band are: array[from + pixel * each].
  samples(tile, band) {
    return this.opened.planar ? { array: tile.parts[band], from: 0, each: 1 } : { array: tile.parts[0], from: band, each: this.opened.bands };
  }

  isValid(tile, i) {
    if (tile.parts.mask && tile.parts.mask[i] === 0) return false;
    if (this.alphaBand < 0) return true;
    const { array, from, each } = this.samples(tile, this.alphaBand);
    return !array || Number(array[from + i * each]) !== 0;
  }

  // The colour of each value of 8 or 16 bits, by its bits; null for other types.
  integerTable() {
    const { type } = this.opened;
    const signed = type.startsWith("Int");
    const n = type.endsWith("nt8") ? 256 : 65536;
    const { exact, table, ranges } = this.shown;
    return Uint32Array.from({ length: n }, (_, i) => {
      const value = signed && i >= n / 2 ? i - n : i;
      if (value === this.nodata) return 0;
      if (exact) return exact.get(value) || 0;
      return table[Math.min(255, Math.max(0, Math.floor(((value - ranges[0][0]) / (ranges[0][1] - ranges[0][0])) * 255.999) || 0))]; // 0 if both ends are the value
    });
  }

  paint(tile) {
    const { bands, ranges, exact, table } = this.shown;
    const parts = bands.map((band) => this.samples(tile, band));
    const n = tile.stride * tile.height;
    const pixels = new Uint32Array(n);
    const { nodata } = this;
    if (parts.every(({ array }) => !array)) { // the file has no data here
      pixels.fill(0);
    } else if (parts.length === 1) {
      const { array, from, each } = parts[0];
      if (/nt(8|16)$/.test(this.opened.type)) {
        this.integers = this.integers || this.integerTable();
        const mask = this.integers.length - 1;
        for (let i = 0, at = from; i < n; i++, at += each) pixels[i] = this.integers[array[at] & mask];
      } else if (exact) {
        for (let i = 0, at = from; i < n; i++, at += each) pixels[i] = array[at] === nodata ? 0 : exact.get(array[at]) || 0;
      } else {
        const [low] = ranges[0];
        const factor = 255.999 / (ranges[0][1] - low);
        for (let i = 0, at = from; i < n; i++, at += each) {
          const value = array[at];
          const level = (value - low) * factor;
          pixels[i] = value !== value || value === nodata ? 0 : table[level >= 255 ? 255 : level > 0 ? level | 0 : 0];
        }
      }
    } else {
      parts.forEach(({ array, from, each }, c) => {
        const [low] = ranges[c];
        const factor = 255.999 / (ranges[c][1] - low);
        for (let i = 0, at = from; array && i < n; i++, at += each) {
          const value = array[at];
          const level = (value - low) * factor;
          if (value === value && value !== nodata) pixels[i] |= 0xff000000;
          pixels[i] |= (level >= 255 ? 255 : level > 0 ? level | 0 : 0) << (8 * c);
        }
      });
      for (let i = 0; i < n; i++) if (pixels[i] < 0x1000000) pixels[i] = 0;
    }
    if (tile.parts.mask || this.alphaBand >= 0) for (let i = 0; i < n; i++) if (pixels[i] !== 0 && !this.isValid(tile, i)) pixels[i] = 0;
    tile.canvas = tile.canvas || new OffscreenCanvas(tile.width, tile.height);
    tile.canvas.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), tile.stride, tile.height), 0, 0);
    tile.version = this.version;
  }

  // --- drawing ---

  resize() {
    const box = this.stage.getBoundingClientRect();
    const dots = devicePixelRatio || 1;
    this.width = Math.max(1, box.width);
    this.height = Math.max(1, box.height);
    this.canvas.width = Math.round(this.width * dots);
    this.canvas.height = Math.round(this.height * dots);
    if (this.opened && this.isFit) this.fit();
    this.draw();
  }

  fit() {
    if (!this.full) return;
    const scale = Math.min(this.width / this.full.width, this.height / this.full.height);
    this.view = { x: this.full.width / 2, y: this.full.height / 2, scale: Math.min(32, scale) };
    this.isFit = true;
    this.moved();
  }

  moved() {
    const { view, full } = this;
    const least = Math.min(1, this.width / full.width, this.height / full.height) / 2;
    view.scale = Math.min(64, Math.max(least, view.scale));
    view.x = Math.min(full.width, Math.max(0, view.x));
    view.y = Math.min(full.height, Math.max(0, view.y));
    this.draw();
    this.saveSoon();
  }

  // Zooms and keeps the pixel at a place of the canvas.
  zoom(factor, x = this.width / 2, y = this.height / 2) {
    if (!this.view) return;
    const { view } = this;
    const before = view.scale;
    this.isFit = false;
    view.scale *= factor;
    this.moved();
    view.x += (x - this.width / 2) * (1 / before - 1 / view.scale);
    view.y += (y - this.height / 2) * (1 / before - 1 / view.scale);
    this.moved();
  }

  pan(dx, dy) {
    if (!this.view) return;
    this.isFit = false;
    this.view.x -= dx / this.view.scale;
    this.view.y -= dy / this.view.scale;
    this.moved();
  }

  // The smallest overview whose pixels are not much larger than those of the screen.
  levelInSight() {
    const dots = devicePixelRatio || 1;
    const { levels } = this.opened;
    let best = 0;
    levels.forEach((level, k) => { if ((this.full.width / level.width) * this.view.scale * dots <= 1.42) best = k; });
    return best;
  }

  // The samples and pixels of a tile.
  bytesOf(level) {
    return (this.opened.planar ? this.planes().length : 1) * level.tileBytes + 4 * level.tileWidth * level.tileHeight;
  }

  // The tiles of a level in sight: {level, index}, those in the middle first; null if they are too many.
  tilesInSight(k) {
    const level = this.opened.levels[k];
    const factor = [this.full.width / level.width, this.full.height / level.height];
    const { x, y, scale } = this.view;
    const cells = (middle, half, size, most) => [Math.max(0, Math.floor((middle - half) / size)), Math.min(most - 1, Math.floor((middle + half) / size))];
    const [left, right] = cells(x / factor[0], this.width / scale / 2 / factor[0], level.tileWidth, level.across);
    const [top, bottom] = cells(y / factor[1], this.height / scale / 2 / factor[1], level.tileHeight, level.down);
    const n = (right - left + 1) * (bottom - top + 1);
    if (n > COG_VIEW_TILES || n * this.bytesOf(level) > COG_VIEW_BYTES) return null;
    const found = [];
    for (let row = top; row <= bottom; row++) for (let column = left; column <= right; column++) found.push({ level: k, index: row * level.across + column, far: Math.hypot(column - (left + right) / 2, row - (top + bottom) / 2) });
    return found.sort((a, b) => a.far - b.far);
  }

  draw() {
    if (this.waiting || this.ended) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (this.opened && this.shown && this.view && !this.ended) this.drawNow();
    });
  }

  drawNow() {
    let best = this.levelInSight();
    let sight = this.tilesInSight(best);
    while (sight === null && best + 1 < this.opened.levels.length) sight = this.tilesInSight(++best);
    this.inSight = sight || [];
    if (this.isTooFar !== (sight === null)) {
      this.isTooFar = sight === null;
      if (this.isTooFar) this.trouble("the file has no overview for so large a part. Zoom in");
      else if (this.failed.size === 0) this.alert.replaceChildren();
    }
    const needed = new Set();
    const missing = [];
    const mark = (tile) => {
      const key = this.key(tile.level, tile.index);
      if (needed.has(key)) return;
      needed.add(key);
      const known = this.tiles.get(key);
      if (known) {
        this.tiles.delete(key);
        this.tiles.set(key, known);
      } else if (!this.failed.has(key)) {
        missing.push({ level: tile.level, index: tile.index });
      }
    };
    this.inSight.forEach(mark);
    if (this.exact && this.bytesOf(this.full) <= COG_VIEW_BYTES) mark(this.tileAt(0, this.exact.column, this.exact.row));
    const wants = JSON.stringify([missing, this.planes()]);
    if (wants !== this.wants) {
      this.wants = wants;
      this.worker.postMessage({ want: missing, planes: this.planes(), answers: this.answers });
    }
    const complete = this.inSight.every(({ level, index }) => this.tiles.has(this.key(level, index)) || this.failed.has(this.key(level, index)));
    if (!this.shown.exact && !this.shown.ranges && (!complete || !this.stretch(false))) {
      if (!complete || this.inSight.length === 0) return; // colours depend on all of the first picture
      this.shown.ranges = this.shown.bands.map(() => [0, 1]);
    }
    this.paintAll(best);
    this.trim(needed);
    this.showValue();
    this.dialog.dataset.ready = String(complete && !this.isTooFar);
    if (complete && !this.firstShown) {
      this.firstShown = performance.now();
      this.drawRows();
    }
  }

  paintAll(best) {
    const { context, canvas, view, full } = this;
    const dots = canvas.width / this.width;
    const scale = view.scale * dots;
    const left = canvas.width / 2 - view.x * scale;
    const top = canvas.height / 2 - view.y * scale;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    const order = [...this.tiles.values()].filter((tile) => tile.level >= best && this.tiles.get(this.key(tile.level, tile.index)) === tile).sort((a, b) => b.level - a.level);
    for (const tile of order) {
      const level = this.opened.levels[tile.level];
      const [fx, fy] = [full.width / level.width, full.height / level.height];
      const x0 = Math.round(left + tile.x * fx * scale);
      const y0 = Math.round(top + tile.y * fy * scale);
      const x1 = Math.round(left + (tile.x + tile.width) * fx * scale);
      const y1 = Math.round(top + (tile.y + tile.height) * fy * scale);
      if (x1 <= 0 || y1 <= 0 || x0 >= canvas.width || y0 >= canvas.height) continue;
      if (tile.version !== this.version) this.paint(tile);
      context.imageSmoothingEnabled = fx * scale < 1;
      context.clearRect(x0, y0, x1 - x0, y1 - y0); // where it is transparent no coarser tile shows
      context.drawImage(tile.canvas, x0, y0, x1 - x0, y1 - y0);
    }
    if (this.pointer && this.pointer.isMarked) {
      const [x, y] = [Math.round(this.pointer.x * dots), Math.round(this.pointer.y * dots)];
      for (const [width, colour] of [[3, "#000"], [1, "#fff"]]) {
        context.lineWidth = width * dots;
        context.strokeStyle = colour;
        context.beginPath();
        context.moveTo(x - 8 * dots, y);
        context.lineTo(x + 8 * dots, y);
        context.moveTo(x, y - 8 * dots);
        context.lineTo(x, y + 8 * dots);
        context.stroke();
      }
    }
  }

  // --- values ---

  tileAt(k, column, row) {
    const level = this.opened.levels[k];
    const x = Math.min(level.width - 1, Math.floor((column + 0.5) * (level.width / this.full.width)));
    const y = Math.min(level.height - 1, Math.floor((row + 0.5) * (level.height / this.full.height)));
    return { level: k, index: Math.floor(y / level.tileHeight) * level.across + Math.floor(x / level.tileWidth), pixel: (y % level.tileHeight) * level.tileWidth + (x % level.tileWidth) };
  }

  pixelAt({ x, y }) {
    const column = Math.floor(this.view.x + (x - this.width / 2) / this.view.scale);
    const row = Math.floor(this.view.y + (y - this.height / 2) / this.view.scale);
    return column >= 0 && row >= 0 && column < this.full.width && row < this.full.height ? { column, row } : null;
  }

  showValue() {
    const pixel = this.pointer && this.view ? this.pixelAt(this.pointer) : null;
    if (!pixel) {
      this.place.textContent = "";
      this.status.textContent = this.shown ? "Point at a pixel for its values; click for those of the full resolution." : "";
      return;
    }
    const { column, row } = pixel;
    const parts = ["column " + column + ", row " + row];
    if (this.ground) {
      const [x, y] = this.ground.at(column, row);
      const digits = this.ground.geographic ? 6 : 2;
      parts.push((this.ground.code ? "EPSG:" + this.ground.code + " " : "") + x.toFixed(digits) + ", " + y.toFixed(digits));
      const lonLat = this.ground.geographic ? null : cogLonLat(this.ground.code, x, y);
      if (lonLat) parts.push(Math.abs(lonLat[0]).toFixed(6) + "\u00b0" + (lonLat[0] < 0 ? "W" : "E") + " " + Math.abs(lonLat[1]).toFixed(6) + "\u00b0" + (lonLat[1] < 0 ? "S" : "N"));
    }
    this.place.textContent = parts.join(" \u00b7 ");
    this.status.textContent = this.valueText(column, row);
    this.canvas.dataset.pixel = column + "," + row;
  }

  // The values of a pixel: those of the finest tile that is here.
  valueText(column, row) {
    const isLarge = this.bytesOf(this.full) > COG_VIEW_BYTES;
    for (let k = 0; k < this.opened.levels.length; k++) {
      const found = this.tileAt(k, column, row);
      const tile = this.tiles.get(this.key(k, found.index));
      if (!tile) continue;
      const factor = Math.round(this.full.width / this.opened.levels[k].width);
      const where = k === 0 ? "" : " (overview 1:" + factor + (isLarge ? "; the tiles of the image are too large to read)" : "; click for the pixel)");
      if (!this.isValid(tile, found.pixel)) return "no data" + where;
      const bands = this.opened.planar ? this.planes() : [...new Set([...this.shown.bands, ...this.bands.keys()])].slice(0, 12);
      return bands.map((band) => this.bandText(tile, band, found.pixel)).join(" \u00b7 ") + where;
    }
    if (!this.exact || this.exact.column !== column || this.exact.row !== row) return "";
    return isLarge ? "The tile of the pixel is too large to read." : "The pixel is being read.";
  }

  bandText(tile, band, pixel) {
    const { array, from, each } = this.samples(tile, band);
    const { name, unit, scale, offset, number } = this.bands[band];
    const label = cogText(name || "band " + number) + ": ";
    if (!array) return label + "no data";
    const value = array[from + pixel * each];
    if (value !== value || value === this.nodata) return label + "no data";
    const text = this.opened.type === "Float32" ? cogFloat(value) : String(value);
    const real = scale === 1 && offset === 0 ? text : cogNumber(value * scale + offset);
    return label + real + (unit ? " " + cogText(unit) : "") + (real === text ? "" : " (stored " + text + ")");
  }

  // --- input ---

  listen() {
    const { canvas, pointers } = this;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    let travelled = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, at(event));
      travelled = pointers.size > 1 ? Infinity : 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const now = at(event);
      const before = pointers.get(event.pointerId);
      if (before) {
        const other = [...pointers].find(([id]) => id !== event.pointerId);
        travelled += Math.hypot(now.x - before.x, now.y - before.y);
        if (other) {
          const [, { x, y }] = other;
          this.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
          this.zoom(Math.hypot(now.x - x, now.y - y) / Math.max(1, Math.hypot(before.x - x, before.y - y)), (now.x + x) / 2, (now.y + y) / 2);
        } else {
          this.pan(now.x - before.x, now.y - before.y);
        }
        pointers.set(event.pointerId, now);
      }
      this.pointer = now;
      this.exact = null;
      this.draw();
    });
    const up = (event) => {
      if (!pointers.delete(event.pointerId) || event.type !== "pointerup" || travelled > 4) return;
      this.pointer = { ...at(event), isMarked: event.pointerType !== "mouse" };
      this.readPixel();
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "mouse") return; // a finger that was lifted: its pixel stays
      this.pointer = null;
      this.draw();
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const { x, y } = at(event);
      this.zoom(Math.exp(-Math.max(-200, Math.min(200, event.deltaY * (event.deltaMode === 1 ? 20 : 1))) * (event.ctrlKey ? 0.01 : 0.003)), x, y);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  onKey(event) {
    if (!this.view || event.altKey || event.metaKey || event.ctrlKey) return;
    const step = (event.shiftKey ? 0.5 : 0.125) * Math.min(this.width, this.height);
    const moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    this.pointer = { x: this.width / 2, y: this.height / 2, isMarked: true };
    this.exact = null;
    if (moves[event.key]) this.pan(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(2);
    else if (event.key === "-") this.zoom(0.5);
    else if (event.key === "0" || event.key === "Home") this.fit();
    else if (event.key === "Enter") this.readPixel();
    else return;
    event.preventDefault();
  }

  // Reads the tile of the full image at the pointer, for the pixel's own values.
  readPixel() {
    this.exact = this.pointer && this.view ? this.pixelAt(this.pointer) : null;
    this.draw();
  }

  // --- the link ---

  link() {
    const { path, item } = this.address;
    const { shown, view } = this;
    if (!shown || !view) return cogHref(path, item);
    return cogHref(path, item, { at: [view.x.toFixed(1), view.y.toFixed(1), Number(view.scale.toPrecision(4))].join(), look: shown.key, bands: shown.bands.map((b) => b + 1).join(), range: shown.ranges ? shown.ranges.flat().join() : "" });
  }

  saveSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (!this.ended) history.replaceState(null, "", this.link());
    }, 300);
  }

  async copyLink() {
    history.replaceState(null, "", this.link());
    try {
      await navigator.clipboard.writeText(location.href);
      this.copied.textContent = "The link is copied.";
    } catch {
      this.copied.textContent = "The link is the address of this page.";
    }
  }
}

// Opens or closes the viewer as the address says.
function followAddress() {
  const address = cogAddress(location.hash);
  if (cog && address && address.path === cog.address.path && location.hash === cog.link()) return;
  const before = cog;
  cog = null;
  if (before) before.dialog.close();
  if (address) cog = new CogView(address);
}

addEventListener("hashchange", followAddress);
followAddress();
