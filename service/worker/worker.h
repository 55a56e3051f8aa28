/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_H
#define PB_WORKER_H
/* The worker process: has one job at a time computed by a confined child (worker_child.h) for the
 * service that started it, publishes what that made, and stays for the next. Commands come as JSON
 * lines on stdin:
 *   {"cmd":"run","job","config": YAML text,"config_name","pipeline","input","products","scene",
 *    "identity",                                       pipeline/io/file_identity.h; none: any file
 *    "device",                                         "cpu": on the CPU whatever the config says
 *    "stream_why"}                                     by streams whatever it says, for this reason
 *   {"cmd":"cancel"}
 *   {"cmd":"probe","config","config_name"}             which device would be used
 * and events leave as JSON lines on stdout, after an empty line that says the program runs:
 *   {"event":"progress","job","stage","tiles_done","tiles_total","bytes_read","bytes_written",
 *    "elapsed_ms","device","io_ms","bytes_checked"}    io_ms: for how long a read or write
 *                                                      has been waiting for storage; bytes_checked:
 * of the input, for its checksum, while nothing else goes on; 5 times a second while something
 * moves, and once in 2 s as a sign of life
 *   {"event":"done","job","directory","products":[...],"report":{...}}
 *   {"event":"failed","job","error":{"code","message","hint"}}
 *   {"event":"device","device","why"}
 * The process ends with its service: by the end of stdin, and by the kernel if that dies. */

/* Returns the exit code of the process. */
int pb_worker_main(void);
#endif
