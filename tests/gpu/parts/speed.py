# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""`pushbroom run` on the CPU and the GPU, taking turns."""
import json

from .pipelines import CLASSES, EXACT, NDVI


def speed(host, options):
    size = options.scene_size
    print(f"5. speed: {size} x {size} x 4 UInt16, median of 3, seconds in the stream (and to publish)")
    chains = {"ndvi": NDVI, "halo": EXACT.replace("zstd", "COMPRESS"), "classes": CLASSES}
    cases = [("NONE", "none", "ndvi"), ("NONE", "none", "halo"), ("NONE", "none", "classes"), ("NONE", "deflate", "ndvi"), ("DEFLATE", "none", "ndvi"), ("DEFLATE", "deflate", "ndvi")]
    for codec, product, chain in cases:
        scene = host.scene(f"speed {codec}", ["--size", f"{size}x{size}", "--compress", codec])
        scene.read_bytes()
        ways = [("cpu", "auto", "wic"), ("cuda", "pinned", "wic"), ("cuda", "pinned", "stream")]
        rows = {}
        for _ in range(3):
            for way in ways:
                device, buffers, sync = way
                config = host.config(f"{chain}-{product}-{buffers}-{sync}", chains[chain].replace("COMPRESS", product), buffers, sync)
                result, _ = host.run(config, scene, device, "speed")
                rows.setdefault(way, []).append(result.get("report"))
        for (device, buffers, sync), reports in rows.items():
            if None in reports:
                host.check(False, f"{codec} {product} {chain} {device} {buffers} {sync}")
                continue
            middle = sorted(reports, key=lambda r: r["elapsed_ms"])[1]
            seconds, publish = middle["elapsed_ms"] / 1e3, middle["publish_ms"] / 1e3
            stages = ", ".join(f"{s['name']} {s['busy_ms'] / 1e3:.2f} busy {100 * s.get('parked_share', 0):.0f} % parked on {s['threads']}" for s in middle["stages"])
            print(f"  {chain} {codec:8} -> COG {product:8} {device:5} {buffers:8} {sync:7} {seconds:6.2f} (+{publish:.2f})  {size * size / 1e6 / seconds:7.0f} Mpx/s   {stages}")
            link = middle.get("link")
            if link:
                share = lambda x: "?" if x is None else f"{100 * x:.1f} %"
                print(f"      link: {link['to_device_bytes'] / 1e6:.0f} MB in ({share(link['to_device_share'])}), {link['from_device_bytes'] / 1e6:.0f} MB out ({share(link['from_device_share'])}); starved {link['starved_ms']} ms, left after {link['leave_ms']} ms, {link['launches']} launches, {link['plan']}")
            print("JSON " + json.dumps({"chain": chain, "scene": codec, "product": product, "device": device, "buffers": buffers, "sync": sync, "seconds": seconds, "publish": publish, "report": middle}))
