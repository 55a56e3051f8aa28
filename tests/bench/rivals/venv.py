# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The scratch environment of the rivals of the Python index, and the list of those that are installed."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

PACKAGES = ("numpy", "rasterio", "numexpr", "pyvips", "pyvips-binary", "opencv-python-headless", "scipy")
DEBIAN = "/usr/bin/python3"
VERSIONS = """
import importlib, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        module = importlib.import_module(name)
    except Exception:
        continue
    found[name] = getattr(module, "__version__", "")
    if name == "rasterio":
        found["gdal"] = module.__gdal_version__
    if name == "pyvips":
        found["vips"] = ".".join(str(module.version(i)) for i in range(3))
    if name == "osgeo":
        from osgeo import gdal
        found["osgeo"] = gdal.__version__
print(json.dumps(found))
"""


def newest_python():
    """rasterio gives its newest version, with the newest GDAL, to the newest interpreters only."""
    for minor in range(14, 10, -1):
        for path in (shutil.which(f"python3.{minor}"), *sorted(pathlib.Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3"))):
            if path and subprocess.run([path, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
                return str(path)
    return sys.executable


def prepare(folder):
    """Makes the environment where it is not there yet. A package that the index does not give is absent, and the table has a note."""
    python = folder / "bin/python"
    if not python.exists():
        subprocess.run([newest_python(), "-m", "venv", folder], check=True)
        for package in PACKAGES:
            if subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", package], check=False).returncode != 0:
                print(f"absent: the Python index gave no {package}", file=sys.stderr)
    return str(python)


def versions(python, modules):
    """{module: version} of those that this interpreter can import."""
    if python is None:
        return {}
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS")}
    done = subprocess.run([python, "-c", VERSIONS, *modules], stdout=subprocess.PIPE, env=env, check=False, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {}
