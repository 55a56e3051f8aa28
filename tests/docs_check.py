#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The documents agree with the tree. Prints every gap, exits 1.
    docs_check.py ROOT             links, limits of length, commands, samples, sample files, words of the code, error codes, measured figures
    docs_check.py ROOT --write     writes the pages made of a .def: service/doc/errors.md, service/doc/engines.md; and figures of the newest page of tests/bench
    docs_check.py --links FOLDER   links of an installed tree only"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "bench"))
import figures  # noqa: E402

GENERATED = ("kernels/ops/", "service/doc/errors.md", "service/doc/engines.md")
FREE_LENGTH = ("CHANGELOG.md", "SECURITY.md", "deploy/python/")
FOREIGN = re.compile(r"^(build|\.|LICENSES/|tests/data/|tests/fuzz/)")
LINES = {"README.md": 250, "CONTRIBUTING.md": 150}
COLUMNS, SECTION_LINES, SENTENCES, WORDS = 100, 40, 5, 25
GLOSSARIES = ("service/README.md", "wic/README.md")
CLASSES = {
    "INPUT": "The input's own: the job fails, and the input moves to quarantine.",
    "CONFIG": "The configuration does not fit the input: the job of an inbox waits for another configuration.",
    "MACHINE": "A fault of the machine: the job waits and is tried again.",
    "REQUEST": "A configuration, command or request: it is reported to its author.",
}


def pages(root):
    for path in sorted(root.rglob("*.md")):
        name = path.relative_to(root).as_posix()
        if not FOREIGN.match(name):
            yield name, path.read_text()


def without_code(text):
    return re.sub(r"^```.*?^```", lambda m: "\n" * m.group().count("\n"), text, flags=re.M | re.S)


# --- links ---


def anchors(text):
    """The anchors of headings as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", without_code(text), re.M):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found


def link_gaps(root):
    texts = dict(pages(root))
    for name, text in texts.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", without_code(text))):
            if re.match(r"(https?|mailto):", target):
                continue
            path, _, anchor = target.partition("#")
            there = (root / name).parent / path if path else root / name
            if not there.exists():
                yield f"{name}: the link {target} is dead"
            elif anchor and there.suffix == ".md" and anchor not in anchors(there.read_text()):
                yield f"{name}: {path or name} has no heading for the link #{anchor}"


# --- lengths ---


def paragraphs(text):
    """(line, words) of each paragraph and item of a list."""
    start, words = 0, []
    for number, line in enumerate([*without_code(text).split("\n"), ""], 1):
        item = re.match(r"\s*(?:[-*]|\d+\.) (.*)", line)
        if item or not line.strip() or re.match(r"[#|<!]", line.lstrip()):
            if words:
                yield start, " ".join(words)
            start, words = number, [item.group(1)] if item else []
        else:
            start = start if words else number
            words.append(line.strip())


def sentences(words):
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "X", words))
    return [s for s in re.split(r"(?<=[.!?:;])\s+", plain) if s], re.split(r"(?<=[.!?])\s+(?=\S)", plain)


def length_gaps(name, text):
    lines, prose = text.split("\n")[:-1], set(without_code(text).split("\n"))
    if len(lines) > LINES.get(name, len(lines)):
        yield f"{name}: {len(lines)} lines, at most {LINES[name]}"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS and (name == "README.md" or line[:1] not in "|<!" and line in prose):
            yield f"{name}:{number}: {len(line)} columns, at most {COLUMNS}"
    since = 0
    for number, line in enumerate([*without_code(text).split("\n"), "# end"], 1):
        if line.startswith("#"):
            n = sum(1 for x in without_code(text).split("\n")[since : number - 1] if x.strip() and not x.startswith("|"))
            if n > SECTION_LINES:
                yield f"{name}:{since or 1}: {n} lines without a heading, at most {SECTION_LINES}"
            since = number
    for number, words in paragraphs(text):
        short, whole = sentences(words)
        if len(whole) > SENTENCES:
            yield f"{name}:{number}: {len(whole)} sentences in a paragraph, at most {SENTENCES}"
        for sentence in short:
            if len(sentence.split()) > WORDS:
                yield f"{name}:{number}: {len(sentence.split())} words in a sentence, at most {WORDS}: {sentence[:60]}..."


# --- lists that have to be complete ---


def error_page(root):
    text = (root / "config/base/err_codes.def").read_text()
    rows = re.findall(r'PB_ERR\(\w+, "([^"]+)", \w+, (\w+),\s*((?:"[^"]*"\s*)+)\)', text)
    out = "# Error codes\n\nThe code is for programs. The message names the place, and this page the remedy; `pushbroom-errors(7)` is the same.\n"
    out += "`tests/docs_check.py . --write` writes this page from [err_codes.def](../../config/base/err_codes.def).\n"
    groups = {}
    for code, kind, hint in rows:
        groups.setdefault(code.split(".")[0], []).append((code, kind, "".join(re.findall(r'"([^"]*)"', hint))))
    out += "\n| class | meaning |\n|---|---|\n" + "".join(f"| {kind.lower()} | {words} |\n" for kind, words in CLASSES.items())
    for group, members in groups.items():
        out += f"\n## {group}\n\n| code | class | remedy |\n|---|---|---|\n"
        out += "".join(f"| `{code}` | {kind.lower()} | {hint or 'the message has all that is known'} |\n" for code, kind, hint in members)
    return out if rows else None


def error_gaps(root):
    path = root / "service/doc/errors.md"
    if error_page(root) is None:
        yield "config/base/err_codes.def: no rows found"
    elif not path.exists() or path.read_text() != error_page(root):
        yield "service/doc/errors.md: not what config/base/err_codes.def has; write it with: tests/docs_check.py . --write"


ENGINES = {
    "GPU": "Computing on the GPU: else the CPU computes",
    "RESIDENT": "A kernel that stays on the GPU: else each tile is a launch",
    "DECODER": "Decoding on the GPU: else the host decodes",
    "FILE": "Decoding of a file on the GPU: else the host decodes this file",
    "PRODUCTS": "Products made on the GPU of the decoded pixels: else the host makes this product",
    "MANAGED": "Planes in managed memory: else they are device memory",
}
KINDS = {
    "CHOSEN": "The configuration demands it.",
    "MACHINE": "The machine, or its memory, does not allow it.",
    "SCENE": "The scene or the product gains nothing from it, or cannot have it.",
    "MISSING": "The engine could do it and does not.",
}


def engine_page(root):
    text = (root / "pipeline/device/engine_limits.def").read_text()
    rows = re.findall(r'^PB_LIMIT\(\w+, (\w+), (\w+), "([^"]+)", "([^"]+)", "([^"]*)"\)$', text, re.M)
    if len(rows) != text.count("\nPB_LIMIT("):
        return None
    out = "# Limits of the engines\n\nThe products are the same in any case. `pushbroom run --dry-run -v` and the report have the reason of a job.\n"
    out += "`tests/docs_check.py . --write` writes this page from [engine_limits.def](../../pipeline/device/engine_limits.def).\n"
    out += "\n| kind | meaning |\n|---|---|\n" + "".join(f"| {kind.lower()} | {words} |\n" for kind, words in KINDS.items())
    for engine, title in ENGINES.items():
        out += f"\n## {title}\n\n| feature | kind | reason | remedy |\n|---|---|---|---|\n"
        out += "".join(f"| {feature} | {kind.lower()} | {reason} | {remedy} |\n" for of, kind, feature, reason, remedy in rows if of == engine)
    return out


def engine_gaps(root):
    path, page = root / "service/doc/engines.md", engine_page(root)
    if page is None:
        yield "pipeline/device/engine_limits.def: a row is not of the form PB_LIMIT(...)"
    elif not path.exists() or path.read_text() != page:
        yield "service/doc/engines.md: not what pipeline/device/engine_limits.def has; write it with: tests/docs_check.py . --write"


def command_gaps(root, readme):
    commands = re.findall(r'^    \{\{\.name = "([a-z-]+)"', (root / "service/cli/cli.c").read_text(), re.M)
    if len(commands) < 8:
        yield "service/cli/cli.c: no commands found"
    for command in commands:
        if f"pushbroom {command}" not in readme and f"`{command}`" not in readme:
            yield f"README.md does not name the command '{command}'"


def glossary_gaps(root, name):
    text = (root / name).read_text()
    rows = re.findall(r"^\| `?([\w ]+?)`?(?: \([\w ]+\))? \| \[[^]]+\]\(([^)]+)\) \|", text.split("## Glossary")[1].split("\n## ")[0], re.M)
    if len(rows) < 10:
        yield f"{name}: no glossary found"
    for word, target in rows:
        path = root / pathlib.Path(name).parent / target
        if not path.exists() or not re.search(r"(?i)\b_?%s" % word.replace(" ", r"[\s_*]+"), path.read_text().replace("_", " _")):
            yield f"{name}: the word '{word}' is not in {target}"


def sample_gaps(root):
    table = (root / "samples/README.md").read_text()
    for path in sorted((root / "samples").glob("*.yaml")):
        if f"[{path.stem}]({path.name})" not in table:
            yield f"samples/README.md does not have {path.name}"
    data = root / "tests/data"
    manifest = (data / "MANIFEST.md").read_text()
    for kind in ("real", "derived", "metadata", "hostile"):
        section = manifest.split(f"## {kind}/")[1].split("\n## ")[0]
        listed = set(re.findall(r"^\| (\S+\.\S+) \|", section, re.M)) if kind != "derived" else set(re.findall(r"[\w/]+\.tif", section))
        there = {p.relative_to(data / kind).as_posix() for p in (data / kind).rglob("*") if p.is_file()}
        for name in sorted(listed ^ there):
            yield f"tests/data/{kind}/{name} is {'listed and absent' if name in listed else 'not in MANIFEST.md'}"


def gaps(root):
    yield from link_gaps(root)
    for name, text in pages(root):
        if not name.startswith((*GENERATED, *FREE_LENGTH)):
            yield from length_gaps(name, text)
    yield from command_gaps(root, (root / "README.md").read_text())
    yield from error_gaps(root)
    yield from engine_gaps(root)
    yield from sample_gaps(root)
    yield from figures.gaps(root, dict(pages(root)))
    for name in GLOSSARIES:
        yield from glossary_gaps(root, name)


if __name__ == "__main__":
    if sys.argv[1] == "--links":
        found = list(link_gaps(pathlib.Path(sys.argv[2])))
    else:
        where = pathlib.Path(sys.argv[1])
        if "--write" in sys.argv:
            (where / "service/doc/errors.md").write_text(error_page(where))
            (where / "service/doc/engines.md").write_text(engine_page(where))
            figures.renew(where, dict(pages(where)))
        found = list(gaps(where))
    print("\n".join(found) if found else "docs: links, lengths, commands, error codes, samples, words and figures agree with the tree")
    sys.exit(1 if found else 0)
