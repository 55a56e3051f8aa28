#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Every one of the 280 indices against an independent evaluation: the formulas of the published catalogue (not of our table)
are evaluated by Python in float64, on numbers that carry a bound of the rounding errors that a float32 evaluation may have
made so far. The results of bin/eval_index through a real chain must be within the bound; and for all but a few pixels of an
index the bound itself must be below 1e-4 of the value, so that the comparison is strict. Kernel terms and the rules of
validity (x / 0, roots of negative numbers) are written down here again, from their definitions. The catalogue's names,
formulas, bands, references and constants are compared too, as eval_index and the .def files have them."""
import json
import re
import subprocess

import numpy as np
import pbtest

DATA = pbtest.DATA
UNIT = 2.0**-24  # half a unit in the last place of float32, relative
SHARP = 1e-4  # a comparison is worth something when its bound is below this part of the value
BANDS = "A B G G1 R RE1 RE2 RE3 N N2 WV S1 S2 T T1 T2 Y VV VH HH HV".split()
WAVES = {"lambdaG": 560, "lambdaR": 665, "lambdaN": 842, "lambdaN2": 865, "lambdaS1": 1610,
         "lambdaS2": 2190, "PAR": 1500}


class Number:
    """Float64 values with a bound of the error of the same computation in float32."""

    __array_ufunc__ = None  # numpy arrays on the left give way to the operators here

    def __init__(self, value, error=0.0):
        self.v = np.asarray(value, np.float64)
        self.e = np.broadcast_to(np.asarray(error, np.float64), self.v.shape)

    @staticmethod
    def of(x):
        # A literal is rounded to float32 once.
        return x if isinstance(x, Number) else Number(float(x), UNIT * abs(float(x)))

    @staticmethod
    def rounded(v, e, units=1.0):
        return Number(v, e + units * UNIT * np.abs(v))

    def __neg__(self):
        return Number(-self.v, self.e)

    def __add__(self, other):
        other = Number.of(other)
        return Number.rounded(self.v + other.v, self.e + other.e)

    def __sub__(self, other):
        other = Number.of(other)
        return Number.rounded(self.v - other.v, self.e + other.e)

    def __mul__(self, other):
        o = Number.of(other)
        e = np.abs(self.v) * o.e + np.abs(o.v) * self.e + self.e * o.e
        return Number.rounded(self.v * o.v, e)

    def __truediv__(self, other):
        o = Number.of(other)
        v = np.where(o.v == 0, np.nan, self.v / o.v)  # x / 0 is invalid here, never infinite
        room = np.abs(o.v) - o.e
        unsure = (room <= 0) & (o.e > 0)
        e = np.where(unsure, np.inf, (self.e + np.abs(v) * o.e) / room)
        return Number.rounded(v, np.where(np.isnan(v) & ~unsure, 0, e))

    def __pow__(self, other):
        o = Number.of(other)
        v = self.v**o.v
        whole = (o.v == np.round(o.v)) & (o.e <= UNIT * np.abs(o.v))
        pole = (self.v == 0) & (o.v < 0)
        v = np.where(pole, np.nan, v)
        room = np.abs(self.v) - self.e
        # Near 0 the sign of the base decides whether a root exists at all.
        unsure = (room <= 0) & (self.e > 0) & ~(whole & (o.v > 0))
        part = np.where(room > 0, np.abs(o.v) * self.e / room, 0)
        part = part + np.where(whole, 0, np.abs(np.log(np.abs(self.v))) * o.e)
        e = np.abs(v) * np.expm1(part)
        near = whole & (o.v > 0) & (room <= 0)
        e = np.where(near, (np.abs(self.v) + self.e) ** np.abs(o.v) + np.abs(v), e)
        e = np.where(self.v == 0, np.where(o.v > 0, self.e ** np.abs(o.v), 0), e)
        return Number.rounded(v, np.where(unsure, np.inf, np.where(np.isnan(v), 0, e)), 2.0)

    def exp(self):
        v = np.exp(self.v)
        return Number.rounded(v, v * np.expm1(self.e), 2.0)

    def __radd__(self, other):
        return Number.of(other) + self

    def __rsub__(self, other):
        return Number.of(other) - self

    def __rmul__(self, other):
        return Number.of(other) * self

    def __rtruediv__(self, other):
        return Number.of(other) / self

    def __rpow__(self, other):
        return Number.of(other) ** self


def kernel_term(kind, a, b, names):
    if kind == "linear":
        return a * b
    if kind == "poly":
        return (a * b + names["c"]) ** names["p"]
    return (-((a - b) ** 2.0) / (2.0 * names["sigma"] ** 2.0)).exp()


def expected(row, kind, names):
    names = dict(names)
    for term in row["bands"]:
        match = re.fullmatch(r"k([NRGBL])([NRGBL])", term)
        if match:
            names[term] = kernel_term(kind, names[match[1]], names[match[2]], names)
    return eval(compile(row["formula"], "formula", "eval"), {"__builtins__": {}}, names)


def make_pixels(rng):
    """Random reflectances (T in kelvin); one pixel of zeros; one for each band with just it invalid."""
    planes = {b: rng.uniform(0.01, 0.7, 400) for b in BANDS}
    for band in ("T", "T1", "T2"):
        planes[band] = rng.uniform(250, 320, 400)
    for number, band in enumerate(BANDS):
        planes[band][399] = 0.0
        planes[band][300 + number] = np.nan
    return {b: p.astype(np.float32) for b, p in planes.items()}


def run(mode, kind, constants, planes):
    text = f"kernel {kind}\nconstants " + " ".join(f"{k}={v!r}" for k, v in constants.items())
    text += "\nbands " + " ".join(BANDS) + f"\npixels {len(planes['N'])}\n"
    rows = np.stack([planes[b] for b in BANDS], axis=1)
    text += "\n".join(" ".join(repr(float(v)) for v in row) for row in rows)
    done = subprocess.run([pbtest.BIN / "eval_index", mode], input=text, capture_output=True, text=True)
    assert done.returncode == 0, f"eval_index {mode} failed: {done.stderr}"
    return {w[0]: w[1:] for w in (line.split() for line in done.stdout.splitlines())}


def judge(name, row, got, want):
    """Error of one index; None = correct."""
    value, error = np.broadcast_to(want.v, got.shape), 2 * np.broadcast_to(want.e, got.shape)
    valid = np.isfinite(value) & (np.abs(value) < 3.4e38)
    sure = ~np.isinf(error) & ~(valid & np.isnan(error))
    if np.any(sure & (valid != np.isfinite(got))):
        at = int(np.flatnonzero(sure & (valid != np.isfinite(got)))[0])
        return f"{name}: pixel {at} is {got[at]}, expected {value[at]}"
    if np.any(np.isinf(got)):
        return f"{name}: infinite"
    compare = sure & valid
    wrong = compare & (np.abs(got - value) > error + 1e-36)
    if np.any(wrong):
        at = int(np.flatnonzero(wrong)[0])
        return f"{name}: pixel {at} is {got[at]!r}, expected {value[at]!r} +- {error[at]:.3g}"
    used = {t for b in row["bands"] for t in (b[1:] if re.fullmatch(r"k[A-Z][A-Z]", b) else [b])}
    for number, band in enumerate(BANDS):
        if band in used and np.isfinite(got[300 + number]):
            return f"{name}: valid although {band} is not"
    sharp = np.count_nonzero(compare & (error <= SHARP * np.abs(value)))
    if sharp < 0.5 * np.count_nonzero(np.isfinite(value[:300])) or sharp < 50:
        return f"{name}: only {sharp} pixels compare sharply"
    return None


def literals(path, macro, fields):
    """Rows of a .def file: C string literals joined, other fields as written."""
    text = re.sub(r"/\*.*?\*/", "", (pbtest.SOURCE / path).read_text(), flags=re.S)
    rows = []
    for body in re.findall(macro + r"\(((?:\"[^\"]*\"|[^\")])*)\)", text):
        body = re.sub(r'"\s+"', "", body)
        row = [q or plain for q, plain in re.findall(r'"([^"]*)"|([^\s,"][^,"]*)', body)]
        if len(row) != fields:
            raise AssertionError(f"{path}: {row}")
        rows.append(row)
    return rows


def table_mistakes(catalogue, constants):
    rows = literals("kernels/index/index_table.def", "PB_INDEX", 6)
    if [r[0] for r in rows] != sorted(catalogue):
        yield "index_table.def: names differ from the catalogue's"
    for name, long_name, domain, formula, bands, reference in rows:
        row = catalogue.get(name, {})
        if (long_name, domain, formula, bands.split(), reference) != tuple(
                row.get(k) for k in ("long_name", "application_domain", "formula", "bands", "reference")):
            yield f"index_table.def: {name} differs from the catalogue"
    rows = literals("kernels/index/index_constants.def", "PB_INDEX_CONSTANT", 4)
    if [r[0] for r in rows] != sorted(constants):
        yield "index_constants.def: names differ from the catalogue's"
    for name, has_default, value, doc in rows:
        default = constants[name]["default"]
        if (has_default == "true") != (default is not None) or float(value) != (default or 0):
            yield f"index_constants.def: {name} differs from the catalogue"


def test_every_index_is_that_of_the_catalogue(_):
    source = DATA / "spectral-indices-dict.json"
    if not source.exists():
        raise pbtest.Skip(f"{source} is not there")
    catalogue = json.loads(source.read_text())["SpectralIndices"]
    rows = json.loads((DATA / "spectral-constants.json").read_text())
    mistakes = list(table_mistakes(catalogue, rows))
    defaults = {k: v["default"] for k, v in rows.items() if v["default"] is not None}
    rng = np.random.default_rng(20260821)
    others = {k: round(v * 1.25 + 0.125, 3) for k, v in defaults.items()}
    compared = 0
    for kind, given in (("rbf", WAVES), ("linear", WAVES), ("poly", WAVES), ("rbf", {**WAVES, **others})):
        planes = make_pixels(rng)
        each, together = run("--each", kind, given, planes), run("--all", kind, given, planes)
        if each != together:
            mistakes.append(f"{kind}: one chain of all indices differs from one chain an index")
        if sorted(each) != sorted(catalogue):
            mistakes.append(f"{kind}: not exactly the indices of the catalogue were evaluated")
        names = {b: Number(p.astype(np.float64)) for b, p in planes.items()}
        names.update({k: Number.of(v) for k, v in {**defaults, **given}.items()})
        for name, row in catalogue.items():
            got = np.array(each.get(name, []), np.float32).astype(np.float64)
            with np.errstate(all="ignore"):
                problem = judge(name, row, got, expected(row, kind, names)) if len(got) else f"{name}: missing"
            compared += 1
            if problem:
                mistakes.append(f"{kind}: {problem}")
    assert not mistakes and compared == 4 * len(catalogue), "\n".join(mistakes[:40])


if __name__ == "__main__":
    pbtest.main()
