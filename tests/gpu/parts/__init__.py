# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The parts of tests/gpu/run. A new one is a function of (host, options) in a module here and a line of PARTS."""
import collections

from .beside import beside
from .codecs import codecs, codecs_sanitizer, encoder
from .devices import devices, tune
from .faults import cuda_faults
from .golden import golden
from .grids import grids, rounds, warps
from .lanes import lanes
from .operators import operators
from .operators_speed import operators_speed
from .managed import managed, managed_sanitizer
from .patterns import patterns, patterns_sanitizer
from .products import products
from .rival import rival
from .sanitizer import grid_sanitizer, sanitizer
from .service import service
from .share import share
from .soak import soak
from .speed import speed
from .throughput import throughput, throughput_of_gpus
from .whole import whole_products, whole_sanitizer, whole_way
from .wic import wic, wic_examples, wic_sanitizer
from .wic_apps import wic_apps, wic_apps_figures, wic_apps_sanitizer, wic_pairs, wic_pairs_gpus
from .wic_depend import wic_depend, wic_depend_figures, wic_depend_sanitizer
from .wic_figures import wic_figures, wic_frontier
from .wic_peer import wic_peer, wic_peer_sanitizer

Part = collections.namedtuple("Part", "number name run what sanitizes", defaults=(False,))
# In the order in which they run.
PARTS = [
    Part("1.", "devices", devices, "what the driver shows"),
    Part("", "tune", tune, "transfer plans by measurement beside trying every candidate (check_tune); what is kept is used"),
    Part("2.", "operators", operators, "every operator and random expressions, CPU against GPU (check_ops); areas of warps (check_warp); a GPU that is lost (check_lost)"),
    Part("", "operators-speed", operators_speed, "every operator on a scene in device memory beside the host's cores, as a share of a copy; bars (check_ops_speed)"),
    Part("", "codecs", codecs, "blocks of files and 100,000 damaged ones decoded by the GPU and by the host (check_codecs), planes of samples (check_samples); statistics by both (check_statistics); speed"),
    Part("", "encoder", encoder, "blocks encoded by the GPU and by the host, and the speed of both; memcheck, synccheck and racecheck over that (check_encode)"),
    Part("3.", "products", products, "whole pipelines: checksums of CPU and GPU, pinned and host buffers; a run that is stopped for 6 s"),
    Part("", "grids", grids, "the same of chains over several grids and sources, and of several passes: crop, resample, difference, pansharpen, stretch, classify, all of them"),
    Part("", "warps", warps, "the same of chains into other coordinate systems, by all methods, over relief and to tiles of grids; of histogram_match and sieve"),
    Part("", "rounds", rounds, "classes that are found in rounds, by the CPU and by the GPU, which keeps the scene"),
    Part("", "patterns", patterns, "composite, k-means and gate, decoded on the GPU: the CPU's products; the time compared to blocks that the host decodes (--turns)"),
    Part("", "managed", managed, "planes in managed memory, a quarter of them on the GPU at a time: the CPU's products; the time compared to planes that fit (--turns)"),
    Part("", "golden", golden, "products of tests/golden/products.txt: every sample and pipelines of every feature, blocks decoded there and on the host"),
    Part("", "lanes", lanes, "several jobs at once, as lanes of one kernel: the CPU's products, jobs that are killed, six jobs beside streams"),
    Part("", "beside", beside, "a job by launches while another job has a resident kernel (check_beside)"),
    Part("", "share", share, "compute.share: products of a quarter of the GPU"),
    Part("3d.", "service", service, "the real service: jobs of several chains at once, on every GPU there is; an owner that is killed (service_on_gpus.py)"),
    Part("4.", "sanitizer", sanitizer, "compute-sanitizer memcheck over 2 and a part of 3", sanitizes=True),
    Part("", "grid-sanitizer", grid_sanitizer, "the same over the chains of grids", sanitizes=True),
    Part("", "patterns-sanitizer", patterns_sanitizer, "memcheck over composite, k-means and gate, decoded on the GPU", sanitizes=True),
    Part("", "managed-sanitizer", managed_sanitizer, "memcheck over managed planes", sanitizes=True),
    Part("", "codecs-sanitizer", codecs_sanitizer, "memcheck over the codecs, and racecheck: of the decoders if check_codecs-racecheck is there", sanitizes=True),
    Part("", "whole-products", whole_products, "scenes whose blocks the GPU decodes: products of the CPU, damaged blocks"),
    Part("", "whole-sanitizer", whole_sanitizer, "memcheck and synccheck over that, in one process", sanitizes=True),
    Part("", "whole-way", whole_way, "figures of that, a table: scenes of each codec, ten bands, CPU and GPU taking turns (--turns, --rows)"),
    Part("", "rival", rival, "nvTIFF, CuPy and nvCOMP doing the same, where they are installed"),
    Part("", "throughput", throughput, "scenes a minute through the real service, CPU and GPU (--scenes)"),
    Part("", "throughput-gpus", throughput_of_gpus, "the same of one GPU and of all of them (--scenes)"),
    Part("", "soak", soak, "random scenes, damaged ones among them, through random pipelines, decoded by the GPU: the CPU's products and the CPU's words (--soak, --seed, --case)"),
    Part("5.", "speed", speed, "`pushbroom run` of an uncompressed and a deflate scene, CPU and GPU taking turns"),
    Part("", "wic-examples", wic_examples, "the programs of wic/examples, each of which checks its results (wic-example-*); stream.hpp and the like in many shapes,\n"
         "and the rate of a planar filter beside copies alone, if check_stream is there; guests, if check_guest is there"),
    Part("6.", "wic", wic, "the channel library's device side: ways out, replay, every result of every strategy of wic-bench, soaks by every\n"
         "transport, one of them stopped for 6 s"),
    Part("7.", "wic-sanitizer", wic_sanitizer, "memcheck and synccheck over a small soak by every transport; racecheck if wic-bench-racecheck and\n"
         "wic-gates-racecheck are there: the latter with mistakes that racecheck must find", sanitizes=True),
    Part("8.", "wic-figures", wic_figures, "wic-bench's short comparison, its table and its JSON (to WORK/wic-bench.json)"),
    Part("", "wic-frontier", wic_frontier, "latency against offered load, neighbours and ablations, and how wic stands beside the best rival (JSON to WORK)"),
    Part("", "wic-apps", wic_apps, "the WIC paper's applications: every result of every strategy in the two smallest sizes; mistakes that must be found"),
    Part("", "wic-pairs", wic_pairs, "those with a G_ name between two kernels of one GPU: results, mistakes, a table (JSON to WORK)"),
    Part("", "wic-pairs-gpus", wic_pairs_gpus, "the same with a kernel on each of two GPUs; not run where there is one"),
    Part("", "wic-apps-sanitizer", wic_apps_sanitizer, "memcheck over the smallest size", sanitizes=True),
    Part("", "wic-apps-figures", wic_apps_figures, "all sizes, a table (JSON and picture to WORK)"),
    Part("", "wic-peer", wic_peer, "channels between kernels of one GPU, and of two if they are there: every element, words, rates, rivals, patterns, ways out, mistakes"),
    Part("", "wic-peer-sanitizer", wic_peer_sanitizer, "memcheck and synccheck over small ones; racecheck if wic-peer-racecheck is there", sanitizes=True),
    Part("", "wic-depend", wic_depend, "two dependent stages and tiles with a halo: every result of every strategy and plan; mistakes that must be found"),
    Part("", "wic-depend-sanitizer", wic_depend_sanitizer, "memcheck and synccheck over small ones", sanitizes=True),
    Part("", "wic-depend-figures", wic_depend_figures, "dependent stages with ragged waves and transfer plans, a table (JSON to WORK)"),
    Part("9.", "cuda-faults", cuda_faults, "the n-th CUDA call of a run fails, for every n until a run passes; a GPU that ends nothing; a full GPU"),
]


def described():
    """A line a part, and more lines where it has more results."""
    return "\n".join(f"{part.number:>3} {part.name:16} " + part.what.replace("\n", "\n" + 21 * " ") for part in PARTS)
