// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The map: land, footprints of jobs and their pictures on one canvas, which Leaflet moves and zooms. It shows the jobs of the list
// (its search and states) that its own filters leave, and shares the selection with it. Uses make, clean, keepFocus, jobs, shown
// and selected of page.js, which calls mapZone.draw after changes and mapZone.show after a selection.
"use strict";
{
  const PLACES_MOST = 2000; // footprints on the map; older ones are counted
  const PICTURES_MOST = 60;
  const STRIPS = 24; // of a picture, each drawn by an affine transformation
  const LATITUDE = 85.05; // the map's end
  const SPANS = [["86400", "Last 24 hours"], ["3600", "Last hour"], ["604800", "Last 7 days"], ["", "All times"]];
  const STATES = { successful: "--green", failed: "--red", running: "--blue", accepted: "--soft" };
  const zone = document.getElementById("map-zone");
  const images = new Map(); // address -> image
  const known = new Map(); // id -> footprint of the job's row
  let map = null;
  let layer = null;
  let places = []; // newest first
  let fitted = false;
  let tiles = null; // { address, layer }: the operator's base map
  let hits = { ids: "", at: 0 }; // footprints below the last click

  // --- places: x and y are 0 to 1 over the world, x is continuous ---

  function toX(lon) {
    return (lon + 180) / 360;
  }

  function toY(lat) {
    const sine = Math.sin((Math.min(LATITUDE, Math.max(-LATITUDE, lat)) * Math.PI) / 180);
    return 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI);
  }

  // The footprint's corners, or null: of the picture if they bound the same area as the box, which they do not around a pole.
  function cornersOf(job, box) {
    const corners = job.corners;
    if (!corners) return null;
    const lons = corners.map(([lon]) => lon);
    const lats = corners.map(([, lat]) => lat);
    const west = Math.min(...lons);
    const wide = Math.max(...lons) - west;
    const high = Math.max(...lats) - Math.min(...lats);
    const loose = 0.1 * Math.max(wide, high);
    const fits = Math.abs(wide - (box[2] - box[0])) <= loose && Math.abs(Math.min(...lats) - box[1]) <= loose && Math.abs(Math.max(...lats) - box[3]) <= loose;
    return fits && Math.min(...lats) > -LATITUDE && Math.max(...lats) < LATITUDE ? corners : null;
  }

  // A place of the picture, as shares of its width and height.
  function placeIn(corners, u, v) {
    return [0, 1].map((k) => (1 - v) * ((1 - u) * corners[0][k] + u * corners[1][k]) + v * ((1 - u) * corners[3][k] + u * corners[2][k]));
  }

  // The footprint of a job that has a place: a ring of x and y, its box, and the corners of its picture.
  function footprint(job) {
    const old = known.get(job.id);
    if (old && old.job === job) return old;
    const [west, south, , north] = job.bbox;
    const east = job.bbox[2] < west ? job.bbox[2] + 360 : job.bbox[2];
    const corners = cornersOf(job, [west, south, east, north]);
    const outline = corners || [[west, north], [east, north], [east, south], [west, south]];
    const steps = Math.min(16, Math.max(1, Math.ceil((north - south) / 2))); // the map's vertical scale changes with the latitude
    const ring = [];
    for (const [u, v, du, dv] of [[0, 0, 1, 0], [1, 0, 0, 1], [1, 1, -1, 0], [0, 1, 0, -1]])
      for (let i = 0; i < steps; i++) {
        const [lon, lat] = placeIn(outline, u + (du * i) / steps, v + (dv * i) / steps);
        ring.push([toX(lon), toY(lat)]);
      }
    const xs = ring.map(([x]) => x);
    const ys = ring.map(([, y]) => y);
    const made = { job, ring, corners, west: Math.min(...xs), east: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys), size: (east - west) * (north - south) };
    known.set(job.id, made);
    return made;
  }

  function isInside(ring, x, y) {
    let inside = false;
    for (let i = 0, k = ring.length - 1; i < ring.length; k = i++) {
      const [ax, ay] = ring[i];
      const [bx, by] = ring[k];
      if (ay > y !== by > y && x < ax + ((bx - ax) * (y - ay)) / (by - ay)) inside = !inside;
    }
    return inside;
  }

  const land = COAST.map((numbers) => {
    const ring = [];
    let lon = 0;
    let lat = 0;
    for (let i = 0; i < numbers.length; i += 2) {
      lon += numbers[i];
      lat += numbers[i + 1];
      ring.push([toX(lon / 100), toY(lat / 100)]);
    }
    return ring;
  });

  // --- which jobs ---

  function timeOf(job) {
    return job.finished || job.updated || job.created;
  }

  function isWanted(job, { since, day, pipeline }) {
    if (pipeline && job.pipeline !== pipeline) return false;
    if (day) return timeOf(job).startsWith(day) || (job.datetime || "").startsWith(day);
    return !since || timeOf(job) >= since;
  }

  function sinceWhen() {
    const seconds = zone.querySelector("#map-time").value;
    return seconds ? new Date(Date.now() - 1000 * seconds).toISOString() : "";
  }

  function choose() {
    const filters = { since: sinceWhen(), day: zone.querySelector("#map-day").value, pipeline: zone.querySelector("#map-pipeline").value };
    let without = 0;
    let more = 0;
    places = [];
    for (const job of shown) {
      if (!isWanted(job, filters)) continue;
      if (!job.bbox) without++;
      else if (places.length < PLACES_MOST || job.id === selected) places.push(footprint(job));
      else more++;
    }
    if (known.size > 2 * jobs.size + 100) for (const id of known.keys()) if (!jobs.has(id)) known.delete(id);
    const texts = [count(places.length, "place", "places")];
    if (more) texts.push(more + " older ones not drawn");
    if (without) texts.push(without + " without a place");
    zone.querySelector("#map-count").textContent = texts.join(", ");
  }

  // Names of pipelines for the filter; the chosen one stays.
  function listPipelines() {
    const list = zone.querySelector("#map-pipeline");
    const names = [...new Set([...jobs.values()].map((job) => job.pipeline).filter(Boolean))].sort();
    if (list.value && !names.includes(list.value)) names.push(list.value);
    if (names.join("\n") === list.dataset.names) return;
    const chosen = list.value;
    list.dataset.names = names.join("\n");
    list.replaceChildren(make("option", { value: "" }, "All pipelines"), ...names.map((name) => make("option", { value: name }, name)));
    list.value = chosen;
  }

  function describe() {
    const job = jobs.get(selected);
    const there = job && places.some((place) => place.job.id === selected);
    const about = zone.querySelector("#map-about");
    keepFocus(about, job ? [make("button", { type: "button", class: "name", "data-job": job.id, onclick: () => openJob(job.id) }, job.scene || job.name), " ",
      make("span", { class: "note" }, [job.status, job.pipeline, ago(timeOf(job)) + " ago", there ? "" : job.bbox ? "not among those shown" : "no place known"].filter(Boolean).join(" \u00b7 "))] : []);
  }

  // --- drawing ---

  function imageOf(place) {
    const address = place.job.preview;
    if (!place.corners || !address || !address.startsWith("/products/")) return null;
    let image = images.get(address);
    if (!image) {
      image = new Image();
      image.decoding = "async";
      image.addEventListener("load", () => layer.draw());
      image.addEventListener("error", () => setTimeout(() => { // a later drawing asks again
        if (images.get(address) === image) images.delete(address);
      }, 30000));
      image.src = address;
      images.set(address, image);
    }
    return image.complete && image.naturalWidth > 0 ? image : null;
  }

  // A picture in strips: each follows the ground between two rows of the picture.
  function drape(context, place, image, toPixel) {
    const w = image.naturalWidth;
    const h = image.naturalHeight;
    const strips = Math.min(STRIPS, h);
    const at = (u, v) => {
      const [lon, lat] = placeIn(place.corners, u, v);
      return toPixel(toX(lon), toY(lat));
    };
    for (let i = 0; i < strips; i++) {
      const y = Math.floor((i * h) / strips);
      const end = Math.floor(((i + 1) * h) / strips);
      const above = Math.min(2, y); // rows around the strip, which smoothing needs
      const rows = above + end - y + Math.min(2, h - end);
      const [ax, ay] = at(0, y / h);
      const [bx, by] = at(1, y / h);
      const [cx, cy] = at(0, end / h);
      context.save();
      context.setTransform((bx - ax) / w, (by - ay) / w, (cx - ax) / (end - y), (cy - ay) / (end - y), ax, ay);
      context.beginPath();
      context.rect(0, 0, w, end - y + (end < h ? 0.5 : 0)); // strips overlap, against gaps
      context.clip();
      context.drawImage(image, 0, y - above, w, rows, 0, -above, w, rows);
      context.restore();
    }
  }

  function trace(context, ring, toPixel) {
    ring.forEach(([x, y], i) => {
      const [px, py] = toPixel(x, y);
      if (i === 0) context.moveTo(px, py);
      else context.lineTo(px, py);
    });
    context.closePath();
  }

  function drawGrid(context, view, colour) {
    const step = map.getZoom() < 3.5 ? 30 : map.getZoom() < 5.5 ? 10 : 1;
    context.beginPath();
    const [west, east] = [view.x0 * 360 - 180, view.x1 * 360 - 180];
    for (let lon = Math.ceil(west / step) * step; lon <= east; lon += step) {
      const [x] = view.toPixel(toX(lon), 0);
      context.moveTo(x, 0);
      context.lineTo(x, view.height);
    }
    for (let lat = -90 + step; lat < 90; lat += step) {
      const [, y] = view.toPixel(0, toY(lat));
      if (y < 0 || y > view.height) continue;
      context.moveTo(0, y);
      context.lineTo(view.width, y);
    }
    context.strokeStyle = colour;
    context.lineWidth = 0.5;
    context.stroke();
  }

  // Draws one footprint; too small ones are dots.
  function drawPlace(context, place, toPixel, world, colour, age) {
    const chosen = place.job.id === selected;
    const large = Math.max(place.east - place.west, place.bottom - place.top) * world;
    context.beginPath();
    if (large < 8) {
      const [x, y] = toPixel((place.west + place.east) / 2, (place.top + place.bottom) / 2);
      context.arc(x, y, chosen ? 6 : 4, 0, 7);
    } else {
      trace(context, place.ring, toPixel);
    }
    context.strokeStyle = context.fillStyle = colour;
    context.globalAlpha = (place.drawn ? 0 : large < 8 ? 0.6 : 0.25) * age;
    context.fill();
    context.globalAlpha = chosen ? 1 : 0.35 + 0.65 * age;
    context.lineWidth = chosen ? 4 : 1.5;
    context.stroke();
    context.globalAlpha = 1;
  }

  // Oldest first, the selected one last.
  function inOrder(list) {
    return list.reverse().sort((a, b) => (a.place.job.id === selected) - (b.place.job.id === selected));
  }

  function paint(canvas, bounds) {
    const ratio = window.devicePixelRatio || 1;
    const size = bounds.getSize();
    const context = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const world = map.options.crs.scale(map.getZoom());
    const from = map.getPixelOrigin().add(bounds.min);
    const view = { width: size.x, height: size.y, x0: from.x / world, x1: (from.x + size.x) / world };
    view.toPixel = (x, y) => [x * world - from.x, y * world - from.y];
    const copies = [];
    for (let k = Math.floor(view.x0) - 1; k <= Math.floor(view.x1) + 1; k++) copies.push(k);
    const shift = (k) => (x, y) => [(x + k) * world - from.x, y * world - from.y];
    // Pixels of pictures are those of the screen, also where that has more than one per unit.
    canvas.width = Math.round(size.x * ratio);
    canvas.height = Math.round(size.y * ratio);
    canvas.style.width = size.x + "px";
    canvas.style.height = size.y + "px";
    const scaled = (toPixel) => (x, y) => toPixel(x, y).map((v) => v * ratio);
    context.scale(ratio, ratio);
    if (!tiles) {
      context.fillStyle = colour("--sea");
      context.fillRect(0, 0, size.x, size.y);
      context.beginPath();
      for (const k of copies) for (const ring of land) trace(context, ring, shift(k));
      context.fillStyle = colour("--land");
      context.fill("evenodd");
    }
    drawGrid(context, view, colour("--line"));
    const inView = [];
    for (const place of places) {
      place.drawn = false;
      for (const k of copies) {
        if (place.east + k < view.x0 || place.west + k > view.x1 || place.bottom * world < from.y || place.top * world > from.y + size.y) continue;
        inView.push({ place, toPixel: shift(k) });
      }
    }
    // Pictures of the newest that are large enough, oldest first.
    if (zone.querySelector("#map-pictures").checked) {
      const large = inView.filter(({ place }) => (place.east - place.west) * world > 24);
      const used = new Set();
      const ready = [];
      for (const one of large) {
        if (used.size >= PICTURES_MOST && !used.has(one.place)) continue;
        used.add(one.place);
        const image = imageOf(one.place);
        if (image) ready.push({ ...one, image });
      }
      for (const { place, image, toPixel } of inOrder(ready)) {
        place.drawn = true;
        drape(context, place, image, scaled(toPixel));
      }
      if (images.size > 4 * PICTURES_MOST) for (const address of images.keys()) if (![...used].some((place) => place.job.preview === address)) images.delete(address);
    }
    const seconds = Number(zone.querySelector("#map-time").value) || 604800;
    for (const { place, toPixel } of inOrder(inView)) {
      const old = (Date.now() - Date.parse(timeOf(place.job))) / 1000 / seconds;
      drawPlace(context, place, toPixel, world, place.job.id === selected ? colour("--text") : colour(STATES[place.job.status] || "--soft"), Math.max(0.2, 1 - 0.8 * Math.max(0, old)));
    }
  }

  // --- selection ---

  function boundsOf(list) {
    if (!list.length) return null;
    const toLat = (y) => (Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180) / Math.PI;
    const middle = list[0].west;
    let box = [Infinity, Infinity, -Infinity, -Infinity];
    for (const { west, east, top, bottom } of list) {
      const turn = Math.round(middle - west); // the shorter way around the world
      box = [Math.min(box[0], west + turn), Math.min(box[1], top), Math.max(box[2], east + turn), Math.max(box[3], bottom)];
    }
    return L.latLngBounds([toLat(box[3]), box[0] * 360 - 180], [toLat(box[1]), box[2] * 360 - 180]);
  }

  function fit(list, most) {
    const bounds = boundsOf(list);
    if (bounds) map.fitBounds(bounds, { padding: [30, 30], maxZoom: most, animate: false });
    else map.setView([20, 0], map.getMinZoom(), { animate: false });
  }

  // Shows the selected job; moves the map only if its footprint is not in sight or tiny.
  function show() {
    choose();
    const place = places.find((one) => one.job.id === selected);
    describe();
    layer.draw();
    if (!place) return;
    const bounds = boundsOf([place]);
    const turn = 360 * Math.round((map.getCenter().lng - bounds.getCenter().lng) / 360);
    const there = L.latLngBounds([bounds.getSouth(), bounds.getWest() + turn], [bounds.getNorth(), bounds.getEast() + turn]);
    const wide = (place.east - place.west) * map.options.crs.scale(map.getZoom());
    if (!map.getBounds().intersects(there) || wide < 24) map.fitBounds(bounds, { padding: [60, 60], maxZoom: 9, animate: false });
  }

  // Selects the footprint below a click; further clicks at the same place select those below it, the smallest first.
  function onClick(event) {
    const scale = map.options.crs.scale(map.getZoom());
    const x = toX(event.latlng.lng);
    const y = toY(event.latlng.lat);
    const near = 8 / scale; // dots
    const found = places.filter((place) => [-2, -1, 0, 1, 2].some((k) => {
      const tiny = Math.max(place.east - place.west, place.bottom - place.top) < near;
      return tiny ? Math.hypot(x + k - (place.west + place.east) / 2, y - (place.top + place.bottom) / 2) < near : isInside(place.ring, x + k, y);
    })).sort((a, b) => a.size - b.size);
    if (!found.length) return;
    const ids = found.map((place) => place.job.id).join();
    hits = { ids, at: hits.ids === ids ? (hits.at + 1) % found.length : 0 };
    choosePlace(found[hits.at]);
  }

  let moving = true;
  function choosePlace(place) {
    moving = false; // the map stays where it is
    select(place.job.id);
    moving = true;
    describe();
    layer.draw();
  }

  function onKey(event) {
    const step = { PageDown: 1, PageUp: -1 }[event.key];
    if (event.target !== map.getContainer()) return; // the buttons in it have keys of their own
    if (event.key === "Enter" && jobs.has(selected)) openJob(selected);
    else if (step && places.length) {
      const at = places.findIndex((place) => place.job.id === selected);
      select(places[at < 0 ? 0 : Math.min(places.length - 1, Math.max(0, at + step))].job.id);
    } else return;
    event.preventDefault();
  }

  // A removed tile keeps its address: Leaflet sets it to an empty picture (data:), which the policy of the page forbids.
  const Tiles = typeof L === "undefined" ? null : L.TileLayer.extend({ _removeTile: L.GridLayer.prototype._removeTile, _abortLoading() {} });

  // Puts the tiles of web.basemap below the footprints, in place of the coasts. The text of their owner is no HTML.
  function setBasemap() {
    const address = info?.web?.basemap || "";
    if (address === (tiles ? tiles.address : "")) return;
    if (tiles) tiles.layer.remove();
    tiles = address ? { address, layer: new Tiles(address, { maxZoom: 16 }).addTo(map) } : null;
    zone.querySelector("#map-owner").textContent = address ? clean(info.web.attribution) : "";
    layer.draw();
  }

  // --- the page's calls ---

  // Most changes are progress of jobs without a place: the map is painted again only if a footprint changed, or is paler now.
  let painted = { places: [], at: 0 };
  function draw() {
    const begun = !fitted && loaded;
    setBasemap();
    listPipelines();
    choose();
    describe();
    const same = places.length === painted.places.length && places.every((place, i) => place === painted.places[i]);
    if (same && !begun && Date.now() - painted.at < 25000) return;
    painted = { places, at: Date.now() };
    if (begun) {
      fitted = true;
      fit(places, 8);
    }
    layer.draw();
  }

  function start() {
    const again = () => {
      painted.at = 0;
      draw();
    };
    const time = make("select", { id: "map-time", "aria-label": "Jobs of which time", onchange: again }, ...SPANS.map(([value, label]) => make("option", { value }, label)));
    zone.append(
      make("div", { class: "tools" }, time,
        make("label", {}, "Day ", make("input", { id: "map-day", type: "date", "aria-label": "Jobs finished or acquired on a day (UTC)", onchange: again })),
        make("select", { id: "map-pipeline", "aria-label": "Jobs of which pipeline", onchange: again }),
        make("label", {}, make("input", { id: "map-pictures", type: "checkbox", checked: true, onchange: again }), " Pictures"),
        make("button", { type: "button", id: "map-all", onclick: () => fit(places, 12) }, "Show all")),
      make("div", { id: "map", role: "application", "aria-label": "Map of jobs: arrows move, plus and minus zoom, Page Up and Page Down select a job, Enter opens it" }),
      make("div", { class: "about" }, make("p", { id: "map-owner", class: "note" }), make("p", { id: "map-about" }), make("p", { id: "map-count", class: "note", title: "The search and the states of the list apply to the map" })));
    if (typeof L === "undefined") {
      zone.querySelector("#map").replaceWith(make("p", { class: "note" }, "The map needs Leaflet: install the package libjs-leaflet, restart pushbroom-web and load this page again."));
      zone.querySelector(".tools").remove();
      return;
    }
    const Sheet = L.Renderer.extend({
      options: { padding: 0.2 },
      _initContainer() { this._container = document.createElement("canvas"); },
      _destroyContainer() { this._container.remove(); },
      _updatePaths() {},
      _update() {
        if (this._map._animatingZoom && this._bounds) return;
        L.Renderer.prototype._update.call(this);
        L.DomUtil.setPosition(this._container, this._bounds.min);
        paint(this._container, this._bounds);
      },
      draw() { if (this._map && this._bounds && !this._map._animatingZoom) paint(this._container, this._bounds); },
    });
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    map = L.map("map", { attributionControl: false, zoomControl: false, worldCopyJump: true, zoomSnap: 0.5, minZoom: 1, maxZoom: 16, maxBounds: [[-LATITUDE, -1e6], [LATITUDE, 1e6]],
      maxBoundsViscosity: 1, zoomAnimation: !still, fadeAnimation: !still, inertia: !still });
    L.control.zoom({ zoomInTitle: "Zoom in", zoomOutTitle: "Zoom out" }).addTo(map);
    map.setView([20, 0], 1.5);
    layer = new Sheet().addTo(map);
    map.on("click", onClick);
    map.getContainer().addEventListener("keydown", onKey);
    new ResizeObserver(() => map.invalidateSize({ animate: false })).observe(map.getContainer());
    new MutationObserver(() => layer.draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => layer.draw());
    window.mapZone = { draw, show: () => { if (moving) show(); }, map };
    draw();
  }

  start();
}
