/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/help/completion.h"

#include <string.h>

static bool is_path(const struct pb_help_option *option)
{
    return option->choices == NULL &&
           (strcmp(option->value, "FILE") == 0 || strcmp(option->value, "DIR") == 0 ||
            strcmp(option->value, "PATH") == 0);
}

static void choices(const char *words, FILE *out)
{
    for (; *words; words++)
        (void)fputc(*words == '|' ? ' ' : *words, out);
}

/* --- bash --- */

static void bash_values(const struct pb_help_page *page, FILE *out)
{
    for (const struct pb_help_option *o = page->options; o->name != NULL; o++) {
        if (o->value == NULL)
            continue;
        (void)fprintf(out, "    %s:--%s", page->name, o->name);
        if (o->letter != 0)
            (void)fprintf(out, "|%s:-%c", page->name, o->letter);
        if (o->choices != NULL) {
            (void)fputs(") COMPREPLY=($(compgen -W '", out);
            choices(o->choices, out);
            (void)fputs("' -- \"$cur\")); return ;;\n", out);
        } else {
            (void)fprintf(out, ") %s return ;;\n",
                          is_path(o) ? "COMPREPLY=($(compgen -f -- \"$cur\"));" : "");
        }
    }
}

static void bash_options(const struct pb_help_page *page, FILE *out)
{
    (void)fprintf(out, "      %s) words='", page->name);
    for (const struct pb_help_option *o = page->options; o->name != NULL; o++)
        (void)fprintf(out, "%s--%s", o == page->options ? "" : " ", o->name);
    (void)fputs("' ;;\n", out);
}

void pb_completion_bash(FILE *out)
{
    static const struct pb_help_page *const programs[] = {
        &pb_help_pushbroomd, &pb_help_notify, &pb_help_web, &pb_help_ccsds, &pb_help_fetch};
    (void)fputs("# bash completion of pushbroom. Made by 'pushbroom --completion bash'.\n"
                "_pushbroom() {\n"
                "  local cur=${COMP_WORDS[COMP_CWORD]} line tab=$'\\t'\n"
                "  COMPREPLY=()\n"
                "  while IFS= read -r line; do\n"
                "    if [[ $line == :files ]]; then\n"
                "      while IFS= read -r line; do COMPREPLY+=(\"$line\"); done "
                "< <(compgen -f -- \"$cur\")\n"
                "    else\n"
                "      COMPREPLY+=(\"${line%%\"$tab\"*}\")\n"
                "    fi\n"
                "  done < <(\"${COMP_WORDS[0]}\" --complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" "
                "2>/dev/null)\n"
                "}\n"
                "_pushbroom_program() {\n"
                "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                "  local command=${COMP_WORDS[0]##*/} words=\n  COMPREPLY=()\n",
                out);
    (void)fputs("  case \"$command:$prev\" in\n", out);
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        bash_values(programs[i], out);
    (void)fputs("  esac\n    case \"$command\" in\n", out);
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        bash_options(programs[i], out);
    (void)fputs(
        "    esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
        "complete -o filenames -F _pushbroom pushbroom\n"
        "complete -o filenames -F _pushbroom_program pushbroomd pushbroom-notify pushbroom-web "
        "pushbroom-ccsds pushbroom-fetch\n",
        out);
}

/* --- zsh --- */

/* Prints a text inside single quotes; each character of `special` gets a backslash. */
static void quoted(const char *text, const char *special, FILE *out)
{
    for (; *text; text++) {
        if (*text == '\'')
            (void)fputs("'\\''", out);
        else
            (void)fprintf(out, "%s%c", strchr(special, *text) ? "\\" : "", *text);
    }
}

static void zsh_option(const struct pb_help_option *o, FILE *out)
{
    if (o->letter != 0)
        (void)fprintf(out, " \\\n        '(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter,
                      o->name);
    else
        (void)fprintf(out, " \\\n        '--%s[", o->name);
    quoted(o->doc, "[]:\\", out);
    (void)fputc(']', out);
    if (o->value != NULL)
        (void)fprintf(out, ":%s:", o->value);
    if (o->value != NULL && o->choices != NULL) {
        (void)fputc('(', out);
        choices(o->choices, out);
        (void)fputc(')', out);
    } else if (o->value != NULL && is_path(o)) {
        (void)fputs("_files", out);
    }
    (void)fputc('\'', out);
}

static void zsh_page(const struct pb_help_page *page, FILE *out)
{
    (void)fprintf(out, "    %s)\n      _arguments", page->name);
    for (const struct pb_help_option *o = page->options; o->name != NULL; o++)
        zsh_option(o, out);
    (void)fprintf(out, " \\\n        '*:argument:%s' ;;\n", page->takes_files ? "_files" : "");
}

void pb_completion_zsh(FILE *out)
{
    (void)fputs("#compdef pushbroom pushbroomd pushbroom-notify pushbroom-web pushbroom-ccsds "
                "pushbroom-fetch\n"
                "# zsh completion of pushbroom. Made by 'pushbroom --completion zsh'.\n"
                "_pushbroom_words() {\n"
                "  local line files=0 tab=$'\\t'\n  local -a names texts\n"
                "  for line in \"${(@f)$($words[1] --complete \"${(@)words[2,CURRENT]}\" "
                "2>/dev/null)}\"; do\n"
                "    if [[ $line == :files ]]; then\n      files=1\n"
                "    elif [[ -n $line ]]; then\n"
                "      names+=(\"${line%%$tab*}\")\n"
                "      texts+=(\"${line/$tab/  }\")\n"
                "    fi\n  done\n"
                "  (( $#names )) && compadd -U -l -d texts -a names\n"
                "  (( files )) && _files\n}\n"
                "_pushbroom() {\n"
                "  local command=$service\n"
                "  case $command in\n"
                "    pushbroom)\n      _pushbroom_words ;;\n",
                out);
    zsh_page(&pb_help_pushbroomd, out);
    zsh_page(&pb_help_notify, out);
    zsh_page(&pb_help_web, out);
    zsh_page(&pb_help_ccsds, out);
    zsh_page(&pb_help_fetch, out);
    (void)fputs("  esac\n}\n_pushbroom \"$@\"\n", out);
}
