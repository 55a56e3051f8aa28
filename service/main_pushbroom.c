/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Finds the command and runs it, or has pushbroom-compute run it. */
#include "service/cli/cli.h"

#include <string.h>

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "--help";
    if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) {
        cli_version();
        return CLI_DONE;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        if (argc > 2 && argv[2][0] != '-' && cli_command_find(argv[2]) == NULL)
            return cli_usage(NULL, "there is no command '%s'", argv[2]);
        cli_help(argc > 2 ? argv[2] : NULL, argc > 1 ? stdout : stderr);
        return argc > 1 ? CLI_DONE : CLI_USAGE;
    }
    if (argc == 3 && (strcmp(word, "--man") == 0 || strcmp(word, "--completion") == 0))
        return cli_end(cli_document(word, argv[2]));
    if (strcmp(word, "--complete") == 0)
        return cli_end(cli_complete(argc - 2, argv + 2));
    const struct cli_command *command = cli_command_find(word);
    if (command == NULL && word[0] == '-') {
        static const char *const options[] = {"--help", "--version"};
        return cli_unknown_option(NULL, word, options, 2);
    }
    if (command == NULL)
        return cli_usage(NULL, "there is no command '%s'", word);
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            cli_help(word, stdout);
            return CLI_DONE;
        }
    cli_json_if_wanted(argc, argv);
    return cli_end(command->run != NULL ? command->run(argc - 1, argv + 1) : cli_compute(argv + 1));
}
