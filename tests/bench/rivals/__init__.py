# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""pushbroom compared with its rivals, for tests/bench/run. rows.py has the rows, rivals.py the rivals and their settings, venv.py installs them,
programs/ are their programs; scene.py makes the scenes, contest.py takes turns and measures, compare.py looks at the pixels, table.py draws the conclusions;
regression.py is the comparison with an older page; alone.py and memory.py are the two rows without rivals."""
