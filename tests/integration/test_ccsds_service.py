#!/usr/bin/env python3
# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
# ctest: threads sanitized slow
"""pushbroom-ccsds with a real service: a recording with losses becomes products in which exactly the lost lines are invalid."""
import os
import pathlib
import subprocess
import sys

import numpy
from osgeo import gdal

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ccsds_encoder as ccsds  # noqa: E402
from daemon_kit import BIN, DaemonCase  # noqa: E402
from pbtest import main  # noqa: E402
from test_ccsds_lines import Sensor, surviving  # noqa: E402

gdal.UseExceptions()
PIPELINES = """compute: {{device: cpu, threads: 1}}
pipelines:
  sat:
    input: {{stream: sat, bands: {{A: 1, B: 2}}, lines: {{every: {every}, silence: 60s}}}}
    products:
      - cog: {{bands: [A, B], type: float32}}
"""


class Downlink(DaemonCase):
    def service(self, every):
        d = self.daemon(start=False, fake=False)
        d.set_pipelines(PIPELINES.format(every=every))
        d.start().wait_streams()
        return d

    def jobs(self, d, n):
        """Until n scenes are done; their jobs in the order of their lines."""
        def found():
            jobs = d.jobs(limit=1000)
            return len(jobs) >= n and all(j["status"] not in ("accepted", "running") for j in jobs) and jobs
        jobs = d.wait_for(found)
        self.assertEqual([j["status"] for j in jobs], ["successful"] * n, d.log_text())
        return sorted(jobs, key=lambda j: j["name"])

    def values(self, d, job):
        folder = pathlib.Path(d.call("job.get", id=job["id"])["directory"])
        image, = folder.glob("*.tif")
        return gdal.Open(str(image)).ReadAsArray()

    def test_lost_lines_alone_are_invalid(self):
        n, every = 300, 1000
        d = self.service(every)
        for seed, link in enumerate((ccsds.Link(length=300, randomized=True, ocf=True), ccsds.Link("tm", 256, 700, tm_secondary=4))):
            sensor = Sensor(seed, bits=12 if seed else 0, segments=1 + 2 * seed, code=("cuc", "cds")[seed])
            packets = sensor.packets(n)
            frames, touched = link.frames(packets)
            arrived, whole = ccsds.Channel(seed).carry([link.sent(f) for f in frames], 4)
            lines = surviving(packets, touched, whole)
            (d.root / "downlink.yaml").write_text(link.description() + sensor.description())
            (d.root / "data").write_bytes(b"".join(arrived))
            done = subprocess.run([BIN / "pushbroom-ccsds", "--config", d.root / "downlink.yaml", "--stream", "sat", "--socket", d.root / "s.sock",
                                   d.root / "data"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            job = max(self.jobs(d, seed + 1), key=lambda j: j["created"] + j["id"])
            expected = numpy.full((2, max(lines) + 1, sensor.samples), numpy.nan, numpy.float32)
            for line in lines:
                expected[:, line] = sensor.sent[0, line][1]
            self.assertTrue(0 < numpy.isnan(expected).all(axis=(0, 2)).sum() < n // 2)
            expected[expected == 0] = numpy.nan  # the nodata value that gaps of integers have
            numpy.testing.assert_array_equal(self.values(d, job), expected)


if __name__ == "__main__":
    main()
