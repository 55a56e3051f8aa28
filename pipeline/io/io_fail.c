/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/io_fail.h"

#include <errno.h>
#include <string.h>

int pb_io_fail(struct pb_err *err, int error, const char *what, const char *path)
{
    enum pb_code code = PB_E_OUTPUT_WRITE;
    if (error == ENOSPC || error == EDQUOT)
        code = PB_E_OUTPUT_FULL;
    else if (error == EACCES || error == EPERM || error == EROFS)
        code = PB_E_OUTPUT_DENIED;
    else if (error == EMFILE || error == ENFILE)
        code = PB_E_SYSTEM_FILES;
    else if (error == ENOMEM)
        code = PB_E_MEMORY;
    else if (error == ENAMETOOLONG)
        code = PB_E_OUTPUT_NAME;
    char words[128];
    return pb_fail(err, code, "%s '%s': %s", what, path, strerror_r(error, words, sizeof words));
}
