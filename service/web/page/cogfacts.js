// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// What cogview.js knows about a product: colours, ground, bands, its address in this page, and numbers as texts. No state.
"use strict";

const COG_GREY = "000000ffffff";
const COG_RAMPS = {
  grey: COG_GREY,
  viridis: "440154470d6048186a482374472d7b4537814240863e49893b528b375b8d33638d2f6b8e2c728e297a8e26828e23898e21918c1f978b1f9f8821a68527ad8131b57b3dbc744cc26c5cc8636ece5881d34d95d840aadc32c0df25d5e21aeae51afde725",
  magma: "0000040303120a0822130d341d114729115a36106b440f7651127c5d177f6a1c81762181832681902a819c2e7faa337db73779c23b75cf4070db476ae55064ee5b5ef4695cf9785dfb8761fd9668fea571feb47bfec287fed194fde0a1fceeb0fcfdbf",
  inferno: "0000040403120b0724150b37210c4a2f0a5b3d09654a0c6b57106e64156e71196e7d1e6d8a226a972766a32c61b0315bbc3754c63d4dd04545da4e3ce35933eb6429f1711ff67e14f98c0afb9b06fcaa0ffbba1ff9c932f5d949f2e865f3f586fcffa4",
  plasma: "0d08872206903105973f049c4c02a15901a56600a77201a87e03a88a09a59511a1a01a9caa2395b32c8ebc3587c43e7fcc4778d24f71d9586adf6263e56b5deb7556f07f4ff48948f89441fb9f3afdab33feb72dfdc328fcd025f9dd25f5eb27f0f921",
  turbo: "30123b392a734040a24456c7466be34680f64294ff37a8fa28bceb1ccdd818ddc21fe9af32f2984ef97d6dfe628bff4ba4fc3cb7f735cbed34dde037ecd13af7c13afdae35fe992cfb8122f56918ec530fe14109d23105c12302ac1701950d017a0403",
  terrain: "1b6e3c5c9a4ba8bf6ae3dc9ad1b177a9815a8a6a58b5a69dffffff",
  ndvi: "26456e3d65924f7ca87099bb9cb8c9d9d0bdd6c586a9c8645fa0462a7a330a4420",
  moisture: "8c510abf812ddfc27df6e8c3f5f5f5c7eae580cdc135978f01665e",
  change: "b2182bd6604df4a582fddbc7f7f7f7d1e5f092c5de4393c32166ac",
};

// --- colours ---

function cogRgba(r, g, b, a) {
  return ((a << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

// 256 colours of equidistant stops.
function cogTable(hex) {
  const stops = hex.match(/../g).map((two) => parseInt(two, 16));
  const last = stops.length / 3 - 1;
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * last;
    const low = Math.min(last - 1, Math.floor(at));
    const part = (c) => Math.round(stops[3 * low + c] + (at - low) * (stops[3 * low + 3 + c] - stops[3 * low + c]));
    return cogRgba(part(0), part(1), part(2), 255);
  });
}

// The colours of a rendering of the STAC item: {table} for a range, or {exact}, a map of values.
function cogRenderColours(render) {
  const name = String(render.colormap_name || "gray");
  const given = render.colormap;
  if (given && typeof given === "object") {
    const exact = new Map(Object.entries(given).filter(([, c]) => Array.isArray(c)).map(([value, c]) => [Number(value), cogRgba(...[0, 1, 2].map((i) => c[i] & 255), c[3] === undefined ? 255 : c[3] & 255)]));
    return render.rescale ? { table: Uint32Array.from({ length: 256 }, (_, i) => exact.get(i) || 0) } : { exact };
  }
  const plain = name.replace(/_r$/, "").replace("gray", "grey");
  const table = cogTable(Object.hasOwn(COG_RAMPS, plain) ? COG_RAMPS[plain] : COG_GREY);
  return { table: name.endsWith("_r") ? table.reverse() : table };
}

// --- the ground ---

// Longitude and latitude of a place on the grid of UTM (WGS 84, ETRS89) or of web maps; null for other grids. The series is that
// of Krueger, exact to less than a millimetre within a zone.
function cogLonLat(code, x, y) {
  const degrees = 180 / Math.PI;
  const around = (lon) => lon - 360 * Math.round(lon / 360); // -180 to 180
  if (code === 3857) return [around((x / 6378137) * degrees), (2 * Math.atan(Math.exp(y / 6378137)) - Math.PI / 2) * degrees];
  const zone = code % 100;
  const south = Math.floor(code / 100) === 327;
  if (![326, 327, 258].includes(Math.floor(code / 100)) || zone < 1 || zone > 60 || (code < 26000 && (zone < 28 || zone > 38))) return null;
  const f = 1 / (code < 26000 ? 298.257222101 : 298.257223563);
  const n = f / (2 - f);
  const a = (6378137 / (1 + n)) * (1 + n ** 2 / 4 + n ** 4 / 64) * 0.9996;
  const beta = [n / 2 - (2 * n ** 2) / 3 + (37 * n ** 3) / 96 - n ** 4 / 360, n ** 2 / 48 + n ** 3 / 15 - (437 * n ** 4) / 1440, (17 * n ** 3) / 480 - (37 * n ** 4) / 840, (4397 * n ** 4) / 161280];
  const delta = [2 * n - (2 * n ** 2) / 3 - 2 * n ** 3 + (116 * n ** 4) / 45, (7 * n ** 2) / 3 - (8 * n ** 3) / 5 - (227 * n ** 4) / 45, (56 * n ** 3) / 15 - (136 * n ** 4) / 35, (4279 * n ** 4) / 630];
  const xi = (y - (south ? 1e7 : 0)) / a;
  const eta = (x - 500000) / a;
  let xi2 = xi;
  let eta2 = eta;
  beta.forEach((b, i) => {
    xi2 -= b * Math.sin((2 * i + 2) * xi) * Math.cosh((2 * i + 2) * eta);
    eta2 -= b * Math.cos((2 * i + 2) * xi) * Math.sinh((2 * i + 2) * eta);
  });
  const chi = Math.asin(Math.sin(xi2) / Math.cosh(eta2));
  let latitude = chi;
  delta.forEach((d, i) => { latitude += d * Math.sin((2 * i + 2) * chi); });
  return [around((zone - 30.5) * 6 + Math.atan2(Math.sinh(eta2), Math.cos(xi2)) * degrees), latitude * degrees];
}

// What the tags say about the ground: {at(column, row), code, geographic}; null without tags. The place is that of the pixel's centre.
function cogGround(opened) {
  const { keys, matrix, scale, tie } = opened;
  const key = (id) => {
    for (let i = 4; keys && i + 3 < keys.length; i += 4) if (keys[i] === id && keys[i + 1] === 0) return keys[i + 3];
    return 0;
  };
  let m = null;
  if (matrix && matrix.length === 16) m = [matrix[0], matrix[1], matrix[3], matrix[4], matrix[5], matrix[7]];
  else if (scale && tie && scale.length >= 2 && tie.length >= 6) m = [scale[0], 0, tie[3] - tie[0] * scale[0], 0, -scale[1], tie[4] + tie[1] * scale[1]];
  if (m === null || !m.every(Number.isFinite)) return null;
  const half = key(1025) === 2 ? 0 : 0.5; // the tags name the centres of pixels, or their corners
  const geographic = key(1024) === 2;
  const code = geographic ? key(2048) : key(3072);
  return { geographic, code: code > 0 && code < 32767 ? code : 0,
    at: (column, row) => [m[0] * (column + half) + m[1] * (row + half) + m[2], m[3] * (column + half) + m[4] * (row + half) + m[5]] };
}

// Names, units and scales of the bands by GDAL's metadata.
function cogBands(opened) {
  const bands = Array.from({ length: opened.bands }, (_, i) => ({ name: "", unit: "", scale: 1, offset: 0, number: i + 1 }));
  const metadata = /<!(?!--)/.test(opened.metadata) ? "" : opened.metadata; // GDAL declares no entities, which may grow without end
  const xml = metadata ? new DOMParser().parseFromString(metadata, "text/xml") : null;
  for (const item of xml ? xml.querySelectorAll("Item[sample][role]") : []) {
    const band = bands[Number(item.getAttribute("sample"))];
    const role = item.getAttribute("role");
    if (!band) continue;
    if (role === "description") band.name = item.textContent;
    else if (role === "unittype") band.unit = item.textContent;
    else if ((role === "scale" || role === "offset") && Number.isFinite(Number(item.textContent))) band[role] = Number(item.textContent);
  }
  return bands;
}

// --- the address ---

// The parts of "#cog=/products/...": null if it names no product. The address may come from anybody.
function cogAddress(hash) {
  const query = new URLSearchParams(hash.slice(1));
  if (!query.has("cog")) return null;
  let url;
  try {
    url = new URL(query.get("cog"), location.origin);
  } catch {
    return null;
  }
  if (url.origin !== location.origin || !url.pathname.startsWith("/products/")) return null;
  const numbers = (key, least, most) => {
    const list = query.has(key) ? query.get(key).split(",").map(Number) : [];
    return list.length >= least && list.length <= most && list.every(Number.isFinite) ? list : null;
  };
  const item = query.get("item");
  return { path: url.pathname, item: item && !/[/\\]/.test(item) ? item : null, at: numbers("at", 3, 3), bands: numbers("bands", 1, 3), range: numbers("range", 2, 6), look: query.get("look") };
}

function cogHref(path, item, more = {}) {
  const text = (value) => encodeURIComponent(value).replaceAll("%2F", "/").replaceAll("%2C", ",");
  return "#cog=" + text(path) + (item ? "&item=" + text(item) : "") + Object.entries(more).filter(([, value]) => value).map(([key, value]) => "&" + key + "=" + text(value)).join("");
}

// The link that shows a product of a job, or null for other products.
function cogLink(job, product, ...children) {
  if (product.type !== "cog" || !product.href) return null;
  const item = job.products.find((other) => other.type === "stac");
  return make("a", { href: cogHref(product.href, item ? item.path.split("/").pop() : null), class: "cog-link" }, ...children);
}

// The picture of a job as a link to its first COG; null without one of them.
function cogPicture(job) {
  const product = job.products.find((one) => one.type === "cog" && one.href);
  const image = product ? picture(job) : null;
  if (!image) return null;
  image.alt = "Show values of " + clean(job.scene);
  return cogLink(job, product, image);
}

// --- texts ---

// A name or text of a file.
function cogText(text) {
  try {
    return clean(decodeURIComponent(text));
  } catch {
    return clean(text);
  }
}

// A number with up to six significant digits.
function cogNumber(value) {
  return String(Number(Number(value).toPrecision(6)));
}

// The shortest text of a float of 32 bits.
function cogFloat(value) {
  for (let digits = 6; digits < 9; digits++) {
    const text = Number(value.toPrecision(digits));
    if (Math.fround(text) === value) return String(text);
  }
  return String(Number(value.toPrecision(9)));
}
