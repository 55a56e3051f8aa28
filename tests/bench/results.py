# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Writes a measured table into its section of RESULTS.md, with date and machine."""
import datetime
import os
import re


def machine(cores=None):
    """The cores in use and their model, as '2 cores of an AMD EPYC'."""
    text = open("/proc/cpuinfo", encoding="utf-8").read()
    model = re.search(r"^model name\s*: (.*)$", text, re.M)
    name = re.sub(r"\s+", " ", model.group(1)).strip() if model else "an unknown processor"
    return f"{cores or len(os.sched_getaffinity(0))} cores of {'an ' if name[:1] in 'AEIO' else ''}{name}"


def replaced(page, heading, how, table):
    """The page with another date line and first table below a heading."""
    begin = page.index(f"\n## {heading}\n") + len(f"\n## {heading}\n")
    end = page.find("\n## ", begin)
    section = page[begin : end if end >= 0 else len(page)]
    found = re.search(r"^\|.*?(?=^[^|]|\Z)", section, re.M | re.S)
    if not re.match(r"\n\d{4}-\d\d-\d\d, ", section) or found is None:
        raise ValueError(f"the section '{heading}' has no date, or no table")
    section = section[: found.start()] + "\n".join(table) + "\n" + section[found.end() :]
    section = re.sub(r"\A\n\d{4}[^\n]*\n", lambda _: f"\n{datetime.date.today()}, {machine()}, {how}.\n", section)
    return page[:begin] + section + (page[end:] if end >= 0 else "")
