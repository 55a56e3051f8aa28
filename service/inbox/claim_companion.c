/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/claim_companion.h"

#include "config/base/base_name.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int pb_claim_companion_expect(const struct pb_companion_rule *rule,
                              const struct pb_claim_place *place, const char *name,
                              struct pb_job *job, struct pb_err *err)
{
    char beside[PB_FILES_PATH_BYTES];
    if (rule->kind == PB_COMPANION_NONE)
        return 0;
    if (!pb_companion_of(rule, pb_base_name(name), beside))
        return -EAGAIN;
    int rc = pb_job_expect_companion(job, place->real, beside, rule->kind == PB_COMPANION_CHECKSUM);
    if (rc == -ENOMEM)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    return rc ? pb_fail(err, PB_E_INPUT_LIMIT, "the path of %.200s is too long: %s", beside,
                        strerror(-rc))
              : 0;
}

int pb_claim_companion_take(const struct pb_companion_rule *rule,
                            const struct pb_claim_place *place, const char *name, const char *claim,
                            struct pb_job *job, struct pb_err *err)
{
    char beside[PB_FILES_PATH_BYTES], moved[PB_FILES_PATH_BYTES];
    if (rule->kind == PB_COMPANION_NONE)
        return 0;
    if (!pb_companion_of(rule, pb_base_name(name), beside))
        return -EAGAIN;
    int rc = pb_companion_take(place->path, beside, claim, moved);
    if (rc == -ENOENT)
        return -EAGAIN;
    if (rc != 0)
        return pb_fail(err, rc == -EMFILE || rc == -ENFILE ? PB_E_SYSTEM_FILES : PB_E_SYSTEM,
                       "cannot move %.200s to %s: %s", beside, claim, strerror(-rc));
    rc = pb_job_set_companion(job, moved);
    return rc ? pb_fail(err, PB_E_MEMORY, "out of memory") : 0;
}

void pb_claim_companion_give_back(const struct pb_claim_place *place, const char *name,
                                  const struct pb_job *job)
{
    char input[PB_FILES_PATH_BYTES], path[PB_FILES_PATH_BYTES];
    const char *companion = pb_job_companion(job, path);
    if (companion != NULL && pb_files_join(input, place->path, pb_base_name(name)) == 0 &&
        faccessat(AT_FDCWD, input, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        (void)pb_companion_give_back(companion, place->path);
}
