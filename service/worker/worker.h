/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_H
#define PB_WORKER_H
/* The worker process: runs one job at a time in a confined child (worker_child.h) for the service
 * or the `pushbroom run` that started it, publishes the child's files, and waits for the next job.
 * Commands come as JSON lines on stdin:
 *   {"cmd":"run","job","config": YAML text,"config_name","pipeline","input","products","scene",
 *    "identity",                                       pipeline/io/file_identity.h; none: any file
 *    "reader",                                         user who must be allowed to read a folder's
 * files "name",                                           of the input, as it was delivered
 *    "device",                                         instead of the config's compute.device
 *    "owner",                                          the socket of the process that computes
 *                                                      (service/device/owner.h), unless the device
 *                                                      is cpu; none: a child of this one computes
 *    "owner_why",                                      why there is none although the machine has
 *                                                      a GPU
 *    "stream_why",                                     by streams whatever it says, for this reason
 *    "unpack",                                         directory for the members of an archive;
 * none: where the products are made "existing",                                       instead of
 * the pipeline's output.exists "foreground"}                                     of `pushbroom
 * run`: the manifest names no job, permissions are the umask's, no job runs beside, and the first
 * answer is a "device" A run that comes while another one runs is next and begins with that one's
 * end; one can wait.
 *    A run may have "known": checksums that the input is compared with before anything is computed
 *    (duplicates.h); an equal one is input.duplicate, with the checksum as its message. It may have
 *    "joined": the files of the set's earlier jobs, which are read as well (joined.h).
 *    A run of `pushbroom run` whose input is loose files may have "files": their names, where
 *    metadata told that they are of one scene.
 *   {"cmd":"cancel"}                                   the run, and the next
 *   {"cmd":"probe","config","config_name","owner_why"} which device would be used
 *   {"cmd":"describe","config","config_name","pipeline","input"}
 *                                                      what the metadata of a loose file say for
 *                                                      input.by; to a worker without a job. Its
 * only answer is a "described" and events leave as JSON lines on stdout, after an empty line that
 * says the program runs:
 *   {"event":"progress","job","stage","tiles_done","tiles_total","bytes_read","bytes_written",
 *    "elapsed_ms","device","io_ms","bytes_checked"}    io_ms: for how long a read or write
 *                                                      has been waiting for storage; bytes_checked:
 * of the input, for its checksum or to unpack it, while nothing else goes on; 5 times a second
 * while something moves, and once in 2 s as a sign of life
 *   {"event":"place","job","sensor","time_s"}         of the child to the worker alone: what
 *                                                     output.path needs of the metadata; it waits
 *                                                     for {"cmd":"place","place"}
 *   {"event":"inputs","job"}                          the same: it waits for the checksums of what
 *                                                     was read (worker_inputs.h)
 *   {"event":"done","job","directory","products":[...],"report":{...}}
 *   {"event":"failed","job","error":{"code","message","hint"}}
 *   {"event":"device","device","why"}
 *   {"event":"described","date","tile"}, or with "error" {"code","message","hint"}
 * The process ends with its owner: by the end of stdin, and by the kernel if that dies. */

/* They return the exit code of the process. Of the service: with more niceness, and the first that
 * the kernel ends when memory runs out. */
int pb_worker_main(void);
/* Of a command in the foreground, for several jobs and for one: libraries are initialised before
 * the first child, for all of them, or by the one child for what it needs. */
int pb_worker_main_foreground(void);
int pb_worker_main_single(void);
#endif
