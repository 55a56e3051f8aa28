#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Plain English in comments, in messages (string literals of the layers) and on *.md pages, and short names.

RULES lists the patterns that make a sentence hard to read, each with its remedy. tests/prose_baseline.txt has the number of
hits of each folder; more hits than that fail, and the new ones are printed. Fewer pass: --write lowers the numbers and never
raises one. When a file moves to another folder, move its hits in the baseline by hand. Quoted text, code and identifiers are
not checked. Also checked, without a baseline: subjects of commits that branch main lacks (72 characters) and names of
tests (50 characters).

  tests/prose_check.py                              the check, as ctest runs it
  tests/prose_check.py --write                      lower the baseline to what is found
  tests/prose_check.py --list service/cli           print the hits of a folder or file
  tests/prose_check.py --sample 160 --seed 1 [--under service pipeline]   random comments of at least 5 words, to judge by hand
  tests/prose_check.py --sample 100 --seed 1 --hits                       random hits, to judge the rules
"""
import argparse
import collections
import io
import pathlib
import random
import re
import subprocess
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASELINE = ROOT / "tests/prose_baseline.txt"
LAYERS = ("wic", "kernels", "config", "pipeline", "service")
SKIP = re.compile(r"tests/data/|tests/fuzz/(seeds|corpus)/|tests/prose_check\.py")
SQL = re.compile(r"(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER) ")
SUBJECT_MOST, TEST_NAME_MOST = 72, 50

C_FILES = (".c", ".h", ".cu", ".cuh", ".cpp", ".hpp", ".def", ".pml")
HASH_FILES = (".yaml", ".cmake", ".in", ".sysusers", ".tmpfiles", ".timer", ".supp")

ALL = ("comments", "messages", "pages")
FIRST = r"(?:\A|(?<=[.!?] )|(?<=[;:] ))"  # word of a sentence
RULES = {  # name: (remedy, pattern, kinds of text that it is for, a sentence that it finds, one that it does not find)
    "fragment": (
        "write a sentence, or a noun phrase with its noun: 'count of ...', 'true if ...', 'returns ...'",
        r"\A(?:(?i:of|that|which|whose|whom|who|by|whether|than)\b|from\b(?! \d)|(?i:as)\b(?! (?:written|configured|given|in|above|before)\b))|(?<=[.] )(?:Of|Whether|Which|Whose|Whom|That of|Those of)\b",
        ("comments",),
        "of a block; 0: unknown",
        "size of a block in bytes; 0 = unknown",
    ),
    "what-clause": (
        "begin with a noun or a verb: 'Output side of ...', 'Queues ...', 'Returns ...'",
        FIRST + r"(?i:what|whatever)\b(?![^.]*\?)",
        ALL,
        "Output of a run. What becomes of computed tiles.",
        "Output side of a run: queues computed tiles. What does it cost?",
    ),
    "speech": (
        "files and processes do not talk: 'reports', 'sets', 'requests', 'query', 'message', 'according to', 'specified'",
        r"\b(?i:told|tells?|telling|said|says?|saying|asked|asks?|asking|hears?|heard|obey(?:s|ed)?|speaks?|spoken?)\b(?<!, say)(?! (?:\w+ ){0,3}apart\b)",
        ALL,
        "the header tells the size",
        "the header contains the size; 'says' is quoted",
    ),
    "place verb": (
        "'is', 'is in', 'follows', 'next to', 'after', 'is moved with', 'arrives', 'continues'",
        r"\b(?i:lies?|lay(?! out)|lain|lying|stands?(?! for)|stood|go|goes|going|comes?|came|coming|beside|besides|behind|apart from)\b",
        ALL,
        "the file lies beside its metadata",
        "the file is next to its metadata, which stands for the scene",
    ),
    "is none": (
        "'not found', 'empty', 'absent', '0 = no limit', 'NULL if absent'",
        r"\b(?i:is|are|was|were|has|have|had|be|makes?|takes?|needs?|gives?|gets?|leaves?) none\b(?! of)|\bnone (?:is|are|was|were|has|had)(?=[.,;:)]|\Z)",
        ALL,
        "NULL: there is none",
        "NULL if absent; none of these is read",
    ),
    "people": (
        "threads and processes are not people: 'no thread', 'the reader thread', 'the caller'",
        r"\b(?<!user )(?i:nobody|somebody|anybody|whoever|whomever)\b",
        ALL,
        "nobody waits for it",
        "no thread waits for it",
    ),
    "archaic": (
        "'because', 'therefore', 'again', 'anyway', 'also', 'except', 'until', 'this many'",
        r"\b(?i:aloud|anew|all the same|once more|likewise|but for(?! (?:each|every|all|which)\b)|till|lest|by and by|so far as|so (?:many|few))\b"
        r"|(?<=, )as (?:it|they|there|no|nothing|nobody|this|these)\b(?! (?:is|are|was|were)[,.;)])"
        r"|(?<=[,;:] )for (?:it|they|there|nothing) (?=\w)"
        r"|(?:\A|(?<=[.] ))So (?:is|are|do|does|did|has|have|may|can|will|was|were|must)\b",
        ALL,
        "queued anew, as it is not complete",
        "queued again, because it is incomplete",
    ),
}
RULES = {name: (remedy, re.compile(pattern), *rest) for name, (remedy, pattern, *rest) in RULES.items()}


class Text:
    """One comment, message or paragraph of a page: parts (line of the file, words), markup removed."""

    def __init__(self, path, kind, parts):
        self.path, self.kind, self.line = path, kind, parts[0][0]
        self.text, self.places = "", []
        for line, words in parts:
            words = re.sub(r"\s+", " ", words).strip()
            self.text += " " if self.text and words else ""
            self.places.append((len(self.text), line))
            self.text += words

    def line_of(self, at):
        return max(line for place, line in self.places if place <= at)


def numbered(line, words):
    return list(enumerate(words.split("\n"), line))


C_TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|\bR"\((.*?)\)"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+'""", re.S)


def c_texts(path, source, has_messages):
    """A literal that follows another, and a // line that follows another, belong to the same text."""
    last = {"comments": None, "messages": None}
    for match in C_TOKEN.finditer(source):
        word, line = match.group(), source.count("\n", 0, match.start()) + 1
        if word.startswith("/*"):
            yield Text(path, "comments", [(n, re.sub(r"^\s*\*+", "", words)) for n, words in numbered(line, word[2:-2])])
            continue
        kind = "comments" if word.startswith("//") else "messages" if word.startswith('"') else None
        if kind is None or kind == "messages" and not has_messages:
            continue
        alone = kind == "messages" or not source[source.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        between = r"\s*" if kind == "comments" else r"(\s|\\\n|PRI\w+)*"
        words = (line, word[2:] if kind == "comments" else re.sub(r"\\[ntr]", " ", word[1:-1]))
        parts, end = last[kind] or ([], 0)
        if parts and alone and re.fullmatch(between, source[end : match.start()]):
            parts.append(words)
        else:
            if parts:
                yield Text(path, kind, parts)
            parts = [words]
        last[kind] = (parts, match.end())
    for kind, found in last.items():
        if found:
            yield Text(path, kind, found[0])


def hash_texts(path, source):
    parts, whole = [], False
    for number, line in enumerate(source.splitlines(), 1):
        match = re.match(r"(.*?)(?:^|(?<=\s))#(?!!) ?(?=[\w`(]|$)(.*)", line)
        alone = bool(match) and not match.group(1).strip()
        if parts and not (alone and whole):
            yield Text(path, "comments", parts)
            parts = []
        if match:
            parts.append((number, match.group(2)))
            whole = alone
    if parts:
        yield Text(path, "comments", parts)


def python_texts(path, source):
    parts, whole, previous = [], False, tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            alone = not token.line[: token.start[1]].strip()
            if parts and not (alone and whole and line == parts[-1][0] + 1):
                yield Text(path, "comments", parts)
                parts = []
            parts.append((line, token.string.lstrip("#!")))
            whole = alone
        elif token.type == tokenize.STRING and previous in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            yield Text(path, "comments", numbered(line, token.string.strip("rbf\"'")))
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            previous = token.type
    if parts:
        yield Text(path, "comments", parts)


def page_texts(path, source):
    source = re.sub(r"(?ms)^ *```.*?^ *```", lambda m: "\n" * m.group().count("\n"), source)
    source = re.sub(r"\]\([^)\s]*\)", "]", source)
    parts = []
    for number, line in enumerate(source.splitlines() + [""], 1):
        row, item = line.startswith("|"), re.match(r" *([-*]|\d+\.) |#", line)
        if parts and (not line.strip() or row or item):
            yield Text(path, "pages", parts)
            parts = []
        if row:
            for cell in line.strip("|").split("|"):
                yield Text(path, "pages", [(number, cell)])
        elif line.strip():
            parts.append((number, re.sub(r"^ *([-*]|\d+\.|#+) ", "", line)))


def texts(path, source):
    suffix = pathlib.Path(path).suffix
    layer = path.split("/")[0] in LAYERS
    if suffix in C_FILES:
        found = c_texts(path, source, layer and "/bench/" not in path)
    elif suffix == ".py" or source.startswith("#!/usr/bin/env python3"):
        found = python_texts(path, source)
    elif suffix == ".md":
        found = page_texts(path, source)
    elif suffix in HASH_FILES or path.endswith("CMakeLists.txt") or source.startswith("#!"):
        found = hash_texts(path, source)
    else:
        return
    for text in found:
        spdx = re.match(r"SPDX-FileCopyrightText: .*? SPDX-License-Identifier: Apache-2\.0 ?", text.text)
        if spdx:
            text.places = [(max(0, place - spdx.end()), line) for place, line in text.places]
            text.text = text.text[spdx.end() :]
        if text.kind != "messages" or " " in text.text.strip() and not SQL.match(text.text):
            yield text


def without_quotes(text):
    """Quoted text and code become spaces of the same length, so that places stay."""
    def blank(match):
        return re.sub(r"\w", "_", match.group())
    for quoted in (r"`[^`]*`", r'(?<!\w)"[^"]*"', r'\\"[^"]*\\"', r"(?<!\w)'[^']{1,80}'(?!\w)", r"<[^>]{1,40}>", r"[\w.*-]*/[\w./*-]+"):
        text = re.sub(quoted, blank, text)
    return text


def hits(text):
    plain = without_quotes(text.text)
    for rule, (_, pattern, kinds, _, _) in RULES.items():
        if text.kind in kinds:
            for match in pattern.finditer(plain):
                yield rule, text.line_of(match.start()), text.text[match.start() : match.end()]


def folder_of(path):
    """service/cli, tests/unit: two levels."""
    return "/".join(path.split("/")[:-1][:2]) or "."


def git(*words):
    done = subprocess.run(["git", "-C", str(ROOT), *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
    return done.stdout if done.returncode == 0 else None


def sources(under=()):
    """Path and content of each text file of the repository; without git, of the folders that it has."""
    listed = git("ls-files", "--cached", "--others", "--exclude-standard")
    if listed is None:
        folders = [*LAYERS, "tests", "deploy", "samples", ".ci"]
        paths = [p.relative_to(ROOT).as_posix() for f in folders for p in (ROOT / f).rglob("*") if p.is_file()]
        paths += [p.name for p in ROOT.iterdir() if p.is_file()]
    else:
        paths = listed.splitlines()
    for path in sorted(set(paths)):
        if SKIP.match(path) or under and not any(path == u or path.startswith(u.rstrip("/") + "/") for u in under):
            continue
        try:
            yield path, (ROOT / path).read_text()
        except (UnicodeDecodeError, OSError):
            continue  # not text, or a file that is deleted and not committed yet


def test_names(path, source):
    if path.startswith("tests/"):
        for match in re.finditer(r"\bSTART_TEST\((\w+)\)|^ *def (test_\w+)", source, re.M):
            name = match.group(1) or match.group(2)
            if len(name) > TEST_NAME_MOST:
                yield "test name", source.count("\n", 0, match.start()) + 1, name


def findings(path, source):
    """(kind, rule, line, words) of a file."""
    for text in texts(path, source):
        for rule, line, words in hits(text):
            yield text.kind, rule, line, words
    for rule, line, name in test_names(path, source):
        yield "test-names", rule, line, name


def all_findings(under=()):
    found = collections.defaultdict(list)
    for path, source in sources(under):
        for kind, rule, line, words in findings(path, source):
            found[kind, folder_of(path)].append((path, line, rule, words))
    return found


def broken_rules():
    """Rules that do not find their own example, or find the plain one; also the limit of names."""
    for rule, (_, _, _, hard, plain) in RULES.items():
        if rule not in [found for found, _, _ in hits(Text("", "comments", [(1, hard)]))]:
            yield f"the rule '{rule}' does not find: {hard}"
        for found, _, words in hits(Text("", "comments", [(1, plain)])):
            yield f"the rule '{found}' finds '{words}' in plain words: {plain}"
    for form in ("START_TEST({})", "    def test_{}(self):"):
        room = TEST_NAME_MOST - len("test_" if "test_" in form else "")
        if [len([*test_names("tests/a", form.format("a" * n))]) for n in (room, room + 1)] != [0, 1]:
            yield f"names of tests are not limited to {TEST_NAME_MOST} characters: {form}"


def read_baseline():
    """(kind, folder): number. Merges keep the rows of both sides (.gitattributes): the lower one counts."""
    allowed = {}
    for line in BASELINE.read_text().splitlines():
        if line and not line.startswith("#"):
            kind, folder, n = line.split()
            allowed[kind, folder] = min(int(n), allowed.get((kind, folder), int(n)))
    return allowed


def base_commit():
    """The commit of main that the working tree began with; None: unknown."""
    for branch in ("main", "origin/main"):
        base = git("merge-base", "HEAD", branch)
        if base:
            return base.strip()
    return None


def new_hits(kind, rows, base):
    """The hits of a kind that the files did not have in `base`; all of them if that is unknown."""
    old = collections.Counter()
    for path in {row[0] for row in rows}:
        source = git("show", f"{base}:{path}") if base else None
        if source:
            old.update((path, rule, words) for its, rule, _, words in findings(path, source) if its == kind)
    new = []
    for row in rows:
        key = (row[0], row[2], row[3])
        old[key] -= 1
        if old[key] < 0:
            new.append(row)
    return new


def printed(rows):
    for path, line, rule, words in rows:
        remedy = f"at most {TEST_NAME_MOST} characters: test_<subject>_<expected>" if rule == "test name" else RULES[rule][0]
        print(f"{path}:{line}: {rule}: '{words}' -> {remedy}")


def check():
    found, baseline, base = all_findings(), read_baseline(), base_commit()
    mistakes = list(broken_rules())
    print("\n".join(mistakes), end="\n" if mistakes else "")
    bad = len(mistakes)
    for key, rows in sorted(found.items()):
        if key[0] == "test-names":
            bad += len(rows)
            printed(rows)
            continue
        allowed = baseline.get(key, 0)
        if len(rows) > allowed:
            new = new_hits(key[0], rows, base)
            on_main = base is not None and base == (git("rev-parse", "HEAD") or "").strip() and not new
            bad += bool(new) or on_main
            print(f"{key[1]}: {len(rows)} hits in {key[0]}, {allowed} are allowed (tests/prose_baseline.txt). {'New:' if new else 'All are on main.'}")
            printed(new)
    subjects = git("log", "--format=%s", f"{base}..HEAD") if base else None
    for subject in (subjects or "").splitlines():
        if len(subject) > SUBJECT_MOST:
            bad += 1
            print(f"subject of a commit: {len(subject)} characters, {SUBJECT_MOST} are allowed: {subject}")
    if not bad:
        total = collections.Counter()
        for (kind, _), rows in found.items():
            total[kind] += len(rows)
        print("prose:", ", ".join(f"{n} in {kind}" for kind, n in sorted(total.items())), "(none above the baseline)")
    return 1 if bad else 0


def write():
    found, baseline = all_findings(), read_baseline()
    head = [line for line in BASELINE.read_text().splitlines() if line.startswith("#")]
    counts = {key: min(n, len(found.get(key, ()))) for key, n in baseline.items()}
    lines = [f"{kind} {folder} {n}" for (kind, folder), n in sorted(counts.items()) if n > 0]
    BASELINE.write_text("\n".join(head + lines) + "\n")


def sample(n, seed, under, of_hits):
    rows = []
    for path, source in sources(under):
        for text in texts(path, source):
            if of_hits:
                rows += [(path, line, f"[{rule}: {words}] {text.text}") for rule, line, words in hits(text)]
            elif text.kind == "comments" and len(text.text.split()) >= 5:
                rows.append((path, text.line, text.text))
    for path, line, words in random.Random(seed).sample(rows, min(n, len(rows))):
        print(f"{path}:{line}: {words}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", nargs="+", metavar="PATH")
    parser.add_argument("--sample", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--under", nargs="+", default=[], metavar="PATH")
    parser.add_argument("--hits", action="store_true")
    options = parser.parse_args()
    if options.write:
        write()
    elif options.list:
        for rows in all_findings(options.list).values():
            printed(rows)
    elif options.sample:
        sample(options.sample, options.seed, options.under, options.hits)
    else:
        return check()
    return 0


if __name__ == "__main__":
    sys.exit(main())
