# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""pushbroom compared with its rivals, for tests/bench/run. rows.py has what is done, rivals.py who does it and with what settings, venv.py where they
are installed, programs/ what they run; contest.py takes turns and measures, compare.py looks at the pixels, table.py prints; alone.py and memory.py
are the two rows that have no rivals."""
