/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_H
#define PB_WORKER_H
/* The worker process: runs one job at a time in a confined child (worker_child.h) for the service
 * or the `pushbroom run` that started it, publishes the child's files, and waits for the next job.
 *
 * Commands on stdin, a JSON object a line:
 *
 *   {"cmd":"run","job","config","config_name","pipeline","manifest","products","scene",
 *    ...}
 *     "config" is YAML text. "manifest" has the input, and its files as far as they are known
 *     (pipeline/scene/manifest.h): its companion; loose files that belong to one scene by their
 *     metadata; the files of the set's earlier jobs, which are read as well; with "part" the
 *     archive, which is not read for a checksum that is known of its present state. A run that
 *     arrives during another one is next and begins when that one ends; one can wait. Optional
 *     members:
 *     "root"         id that the token of "products" must have (pipeline/publish/publish_root.h)
 *     "epoch"        number of this run of the job (pipeline/publish/publish_temp.h)
 *     "identity"     pipeline/io/file_identity.h; absent: any file
 *     "reader"       user who must be allowed to read the files of a folder
 *     "name"         name of the input when it was delivered
 *     "device"       instead of the config's compute.device
 *     "owner"        socket of the process that computes (service/device/owner.h), unless the
 *                    device is cpu; absent: a child of this process computes
 *     "owner_why"    reason for the absence of "owner" although the machine has a GPU
 *     "stream_why"   the run must use streams, for this reason
 *     "unpack"       directory for the members of an archive; absent: that of the products
 *     "existing"     instead of the pipeline's output.exists
 *     "known"        checksums that the input is compared with before anything is computed
 *                    (duplicates.h); an equal one is input.duplicate, with the checksum as message
 *     "earlier"      these jobs (joined.h)
 *     "part"         "scene" is one of several in the archive
 *     "foreground"   for `pushbroom run`: the manifest names no job, permissions are the umask's,
 *                    no other job runs, and the first answer is a "device"
 *     "turn"         the run sends a "turn" and waits for {"cmd":"turn"} before it computes
 *     "permit"       the run sends a "permit" and waits for {"cmd":"permit"} before its products
 *                    become visible
 *     "home"         {"node","address","socket","room"}: the input is on that node, which publishes
 *                    the products (worker_away.h); "products" is its directory
 *     "guest"        descriptor of a socket: another node computes (worker_host.h)
 *   {"cmd":"turn","job"}              the run may compute
 *   {"cmd":"permit","job","granted"}  the run may publish. "granted" false: the job store has
 *                                     another run of the job, or its end; the run publishes nothing
 *                                     and fails
 *   {"cmd":"cancel"}                  cancels the run, and the next
 *   {"cmd":"probe","config","config_name","owner_why"}
 *                                     finds the device that would be used
 *   {"cmd":"describe","config","config_name","pipeline","input"}
 *                                     reads the metadata of a loose file for input.by; to a worker
 *                                     without a job. Its only answer is a "described"
 *
 * Events on stdout, a JSON object a line, after an empty line as a sign that the program runs:
 *
 *   {"event":"progress","job","stage","tiles_done","tiles_total","bytes_read","bytes_written",
 *    "elapsed_ms","device","io_ms","waits","latency":[...],"bytes_checked","bbox"}
 *     5 times a second while a number changes, and once in 2 s as a sign of life.
 *     "waits": true while the run waits for lines of the scene, which counts as progress.
 *     "latency": struct pb_latency_counts of lines that arrive, if it has changed: n, then sum_ns.
 *     "io_ms": time for which a read or write has been waiting for storage. "bytes_checked": bytes
 *     read of the input for its checksum or to unpack it, while nothing else is done. "bbox":
 *     bounds of the scene as soon as they are known, also of "failed"
 *   {"event":"alerts","job","alerts":[{"name","band","number","pixels","line","sample",
 *    "acquired_ns","value","lon","lat"},...]}
 *     alerts of the lines that were computed (job_alert.h), PB_JOB_ALERTS_MAX in all. A worker of
 *     `pushbroom run` writes them to stderr
 *   {"event":"turn","job","tiles","memory_bytes"}
 *     needs of its plan, before their memory is allocated
 *   {"event":"permit","job","epoch"}
 *     all products are complete, and not visible. When they are on the disk the worker waits for as
 *     long as the job store does not answer; a cancel ends the wait
 *   {"event":"place","job","sensor","time_s"}   from the child to the worker only: facts of the
 *                                               metadata for output.path; it waits for
 *                                               {"cmd":"place","place"}
 *   {"event":"inputs","job"}                    the same; it waits for the checksums of the files
 *                                               that were read (worker_inputs.h)
 *   {"event":"done","job","directory","products":[...],"report":{...}}
 *   {"event":"failed","job","error":{"code","message","hint"},"scenes":[...],"manifest"}
 *                                               "scenes": of input.scenes, those in the archive;
 *                                               "manifest": the archive with its checksum and
 * state, for the jobs of these scenes; absent: unknown
 *   {"event":"device","device","why"}
 *   {"event":"described","date","tile"}, or with "error" {"code","message","hint"}
 *
 * The process ends with its owner: at the end of stdin, and by the kernel if the owner dies. */

/* Return the exit code of the process. pb_worker_main is for the service: it raises the niceness,
 * and the kernel kills its process first when memory runs out. */
int pb_worker_main(void);
/* For a command in the foreground: initialises libraries before the first child if there are
 * several jobs; with one job its child does so as needed. */
int pb_worker_main_foreground(void);
int pb_worker_main_single(void);
#endif
