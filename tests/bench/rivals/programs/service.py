# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""pushbroom's service with one scene many times, all of which are renamed into the inbox at once. Its last line is JSON: seconds from the first
rename to the last product, peak MB of the largest process (0: not known), CPU seconds of the service and its processes, peak MB of its tree.
The memory is that of more scenes, which are not in the other figures: a process whose files below /proc are open when it is reaped makes its
parent spin in the kernel until they are closed. Samples during the 200 scenes took 20 % more CPU seconds on two busy cores.

    service.py BIN FOLDER SCENE NUMBER     the products are FOLDER/products/scene1/ndvi/scene1.tif and so on"""
import json
import os
import pathlib
import sys
import types

os.environ["PB_BIN"] = sys.argv[1]  # for the client of the service
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import latency  # noqa: E402
from measured import TreePeak  # noqa: E402

SAMPLED = 40  # most scenes of which the memory is sampled


def main():
    binary, root, scene, number = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    service = latency.Service(binary, root, types.SimpleNamespace(scene=scene, parallel=2, products="cog", old=False))
    before = service.cpu()
    _, whole = service.deliver(number)
    cpu = service.cpu() - before
    peak = TreePeak(service.process.pid)
    service.deliver(min(number, SAMPLED))
    service.wait_idle()
    mb = peak.stop()
    service.stop()
    print(json.dumps([whole, 0, cpu, mb]))


main()
