/* cli/words/completion_zsh.c: the script for zsh, with the descriptions that the help has.
 *
 * For each command it has the words that zsh's _arguments understands:
 *
 *   '--json[say it for machines]'
 *   '--dir=[the data directory]:DIR:_path_files -/'
 *   '1:WSID: '                                          an argument that nobody knows
 *   '2::FILE:_files'                                    one that may be left out
 */
#include <stdio.h>
#include <string.h>

#include "cli/words/completion.h"

static const char script_head[] = "#compdef pawl\n# Completion of pawl for zsh. Made by 'pawl completion zsh' "
                                  "from the tables of the program.\n\n";

static const char script_tail[] = "    esac\n"
                                  "}\n\n"
                                  "if [[ $funcstack[1] == _pawl ]]; then\n"
                                  "    _pawl \"$@\"\n"
                                  "else\n"
                                  "    compdef _pawl pawl\n"
                                  "fi\n";

/* Print text that stands between single quotes. special: characters that need a backslash there. */
static void put(const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
            continue;
        }
        if (*text == '\\' || strchr(special, *text))
            putchar('\\');
        putchar(*text);
    }
}

static void put_value(const struct command *command, const char *called)
{
    const char *words = "";
    size_t open = called[0] == '[';
    printf(":%.*s:", (int)strcspn(called + open, "]"), called + open);
    switch (completion_kind(command, called, &words)) {
    case VALUE_FILE: fputs("_files", stdout); break;
    case VALUE_DIRECTORY: fputs("_path_files -/", stdout); break;
    case VALUE_COMMAND: fputs("_pawl_nouns", stdout); break;
    case VALUE_VERB: fputs("{_pawl_verbs $words[2]}", stdout); break;
    case VALUE_CHOICE: printf("(%s)", words); break;
    case VALUE_UNKNOWN: putchar(' '); break;
    }
}

static void put_command(const struct command *command)
{
    printf("    '%s')\n        _arguments", command->name);
    for (size_t i = 0; i < OPTIONS_MAX && command->options[i].name; i++) {
        const struct option_spec *option = &command->options[i];
        printf(" \\\n            '%s--%s%s[", option->many ? "*" : "", option->name, option->value ? "=" : "");
        put(option->help, "[]");
        putchar(']');
        if (option->value)
            put_value(command, option->value);
        putchar('\'');
    }
    fputs(" \\\n            '(- *)--help[what this command does]'", stdout);
    for (size_t i = 0; i < ARGUMENTS_MAX && command->arguments[i]; i++) {
        printf(" \\\n            '%zu%s", i + 1, command->arguments[i][0] == '[' ? ":" : "");
        put_value(command, command->arguments[i]);
        putchar('\'');
    }
    puts(" ;;");
}

static void put_described(const char *name, size_t length, const char *summary)
{
    printf("'%.*s:", (int)length, name);
    put(summary, "");
    putchar('\'');
}

/* A noun is described by its verbs. */
static void put_noun(const char *noun, size_t length)
{
    const char *comma = "";
    printf("'%.*s:", (int)length, noun);
    for (size_t i = 0; i < commands_count; i++)
        if (command_is_of(commands[i], noun, length)) {
            printf("%s%s", comma, command_verb(commands[i]));
            comma = ", ";
        }
    putchar('\'');
}

static void put_nouns(void)
{
    fputs("_pawl_nouns() {\n    local -a nouns=(\n", stdout);
    for (size_t i = 0; i < commands_count; i++) {
        size_t length = command_noun(commands[i]);
        if (length && !command_begins_noun(i))
            continue;
        fputs("        ", stdout);
        if (length)
            put_noun(commands[i]->name, length);
        else
            put_described(commands[i]->name, strlen(commands[i]->name), commands[i]->summary);
        putchar('\n');
    }
    fputs("    )\n    _describe -t commands command nouns\n}\n\n", stdout);
}

static void put_verbs(void)
{
    fputs("_pawl_verbs() {\n    local -a verbs\n    case $1 in\n", stdout);
    for (size_t i = 0; i < commands_count; i++) {
        size_t length = command_noun(commands[i]);
        if (!length)
            continue;
        if (command_begins_noun(i))
            printf("    %.*s)\n        verbs=(\n", (int)length, commands[i]->name);
        fputs("            ", stdout);
        put_described(command_verb(commands[i]), strlen(command_verb(commands[i])), commands[i]->summary);
        putchar('\n');
        if (i + 1 == commands_count || !command_is_of(commands[i + 1], commands[i]->name, length))
            fputs("        ) ;;\n", stdout);
    }
    fputs("    *) return 1 ;;\n    esac\n    _describe -t verbs verb verbs\n}\n\n", stdout);
}

void completion_zsh(void)
{
    const char *bar = "";
    fputs(script_head, stdout);
    put_nouns();
    put_verbs();
    fputs("_pawl() {\n"
          "    local command=$words[2]\n"
          "    if ((CURRENT == 2)); then\n"
          "        _pawl_nouns\n"
          "        return\n"
          "    fi\n"
          "    case $command in\n"
          "    ",
          stdout);
    for (size_t i = 0; i < commands_count; i++)
        if (command_begins_noun(i)) {
            printf("%s%.*s", bar, (int)command_noun(commands[i]), commands[i]->name);
            bar = " | ";
        }
    fputs(")\n"
          "        if ((CURRENT == 3)); then\n"
          "            _pawl_verbs $command\n"
          "            return\n"
          "        fi\n"
          "        command+=\" $words[3]\"\n"
          "        shift words\n"
          "        ((CURRENT--)) ;;\n"
          "    esac\n"
          "    shift words\n"
          "    ((CURRENT--))\n"
          "    case $command in\n",
          stdout);
    for (size_t i = 0; i < commands_count; i++)
        put_command(commands[i]);
    fputs(script_tail, stdout);
}
