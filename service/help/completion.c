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

static void bash_pages(const struct pb_help_page *const *pages, size_t n, FILE *out)
{
    (void)fputs("  case \"$command:$prev\" in\n", out);
    for (size_t i = 0; i < n; i++)
        bash_values(pages[i], out);
    (void)fputs("  esac\n  if [[ $cur == -* ]]; then\n    case \"$command\" in\n", out);
    for (size_t i = 0; i < n; i++)
        bash_options(pages[i], out);
    (void)fputs("    esac\n    COMPREPLY=($(compgen -W \"$words --help\" -- \"$cur\"))\n"
                "    return\n  fi\n  case \"$command\" in\n    ",
                out);
    const char *bar = "";
    for (size_t i = 0; i < n; i++) {
        if (!pages[i]->takes_files)
            continue;
        (void)fprintf(out, "%s%s", bar, pages[i]->name);
        bar = "|";
    }
    (void)fputs(") COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n  esac\n}\n", out);
}

void pb_completion_bash(const struct pb_help_page *const *commands, size_t n, FILE *out)
{
    (void)fputs("# bash completion of pushbroom. Made by 'pushbroom --completion bash'.\n"
                "_pushbroom() {\n"
                "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                "  local command=${COMP_WORDS[1]} words=\n  COMPREPLY=()\n"
                "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W '",
                out);
    for (size_t i = 0; i < n; i++)
        (void)fprintf(out, "%s ", commands[i]->name);
    (void)fputs("help --help --version' -- \"$cur\"))\n    return\n  fi\n", out);
    bash_pages(commands, n, out);
    static const struct pb_help_page *const programs[] = {&pb_help_pushbroomd, &pb_help_notify};
    (void)fputs("_pushbroom_program() {\n"
                "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                "  local command=${COMP_WORDS[0]##*/} words=\n  COMPREPLY=()\n",
                out);
    (void)fputs("  case \"$command:$prev\" in\n", out);
    for (size_t i = 0; i < 2; i++)
        bash_values(programs[i], out);
    (void)fputs("  esac\n    case \"$command\" in\n", out);
    for (size_t i = 0; i < 2; i++)
        bash_options(programs[i], out);
    (void)fputs("    esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
                "complete -o filenames -F _pushbroom pushbroom\n"
                "complete -o filenames -F _pushbroom_program pushbroomd pushbroom-notify\n",
                out);
}

/* --- zsh --- */

/* Inside single quotes; of `special` each character gets a backslash. */
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

void pb_completion_zsh(const struct pb_help_page *const *commands, size_t n, FILE *out)
{
    (void)fputs("#compdef pushbroom pushbroomd pushbroom-notify\n"
                "# zsh completion of pushbroom. Made by 'pushbroom --completion zsh'.\n"
                "_pushbroom() {\n  local -a commands=(\n",
                out);
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(out, "    '%s:", commands[i]->name);
        quoted(commands[i]->summary, ":\\", out);
        (void)fputs("'\n", out);
    }
    (void)fputs("  )\n  local command=$service\n  if [[ $service == pushbroom ]]; then\n"
                "    if (( CURRENT == 2 )); then\n      _describe command commands\n"
                "      return\n    fi\n"
                "    command=$words[2]\n    shift words\n    (( CURRENT-- ))\n  fi\n"
                "  case $command in\n",
                out);
    for (size_t i = 0; i < n; i++)
        zsh_page(commands[i], out);
    zsh_page(&pb_help_pushbroomd, out);
    zsh_page(&pb_help_notify, out);
    (void)fputs("  esac\n}\n_pushbroom \"$@\"\n", out);
}
