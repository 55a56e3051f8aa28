# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The real service on every GPU of the host."""
import os
import pathlib
import shutil
import subprocess
import sys


def service(host, _):
    print("3d. the service on every GPU of this host")
    here = pathlib.Path(__file__).resolve().parents[1]
    where = {"PB_BIN": str(host.bin or pathlib.Path(shutil.which("pushbroomd")).parent)}
    done = subprocess.run([sys.executable, str(here / "service_on_gpus.py")], env={**os.environ, **where}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    print("\n".join("  " + line for line in done.stdout.splitlines()))
    host.check(done.returncode == 0, f"service_on_gpus.py (exit {done.returncode})")
