# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The scratch environment of the rivals of the Python index (requirements.txt has their versions), and the list of those that are installed."""
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys

REQUIREMENTS = pathlib.Path(__file__).with_name("requirements.txt")
PYTHON = "3.13"  # the versions of requirements.txt are for this one
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
        found["rasterio_gdal"] = module.__gdal_version__
    if name == "pyvips":
        found["vips"] = ".".join(str(module.version(i)) for i in range(3))
    if name == "osgeo":
        from osgeo import gdal
        found["osgeo"] = gdal.__version__
        if hasattr(gdal, "Run"):
            found["gdal_wheel"] = gdal.__version__
print(json.dumps(found))
"""


def interpreter():
    """The interpreter for which the versions are pinned, or the newest one in its place."""
    for version in (PYTHON, "3.14", "3.12", "3.11"):
        for path in (shutil.which(f"python{version}"), *sorted(pathlib.Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"))):
            if path and subprocess.run([path, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
                return str(path)
    return sys.executable


def wanted():
    return [line.strip() for line in REQUIREMENTS.read_text().splitlines() if line.strip() and not line.startswith("#")]


def prepare(folder):
    """Makes the environment, or installs what changed in requirements.txt since. A package that the index does not have in this version is absent, with a
    note; the rows name the rivals that need it."""
    python, done = folder / "bin/python", folder / "requirements.txt"
    if not python.exists():
        subprocess.run([interpreter(), "-m", "venv", folder], check=True)
    if not done.exists() or done.read_text() != REQUIREMENTS.read_text():
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        if subprocess.run([*pip, "-r", REQUIREMENTS], check=False).returncode != 0:
            for package in wanted():
                if subprocess.run([*pip, package], check=False).returncode != 0:
                    print(f"absent: the Python index has no {package}", file=sys.stderr)
        shutil.copyfile(REQUIREMENTS, done)
    return str(python)


@functools.cache
def versions(python, modules):
    """{module: version} of those that this interpreter can import."""
    if python is None:
        return {}
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS")}
    done = subprocess.run([python, "-c", VERSIONS, *modules], stdout=subprocess.PIPE, env=env, check=False, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {}
