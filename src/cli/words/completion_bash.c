/* cli/words/completion_bash.c: the script for bash.
 *
 * It needs nothing but bash itself. The part that is made from the tables has for each command one word for each
 * thing that it takes:
 *
 *   --json        a flag                        :FILE        an argument that is a file
 *   --dir:DIR     an option with a value        :            an argument that nobody knows
 *   +--record:    one that may come again       :bash,zsh    an argument that is one of these
 */
#include <stdio.h>
#include <string.h>

#include "cli/words/completion.h"

static const char script_head[] =
    "# Completion of pawl for bash. Made by 'pawl completion bash' from the tables of the program.\n\n";

static const char script_body[] =
    "# Complete the word with the words of $1, or by a name of the file system.\n"
    "_pawl_value() {\n"
    "    case $1 in\n"
    "    FILE) compopt -o default -o filenames 2>/dev/null ;;\n"
    "    DIR) compopt -o dirnames -o filenames 2>/dev/null ;;\n"
    "    COMMAND) _pawl_value \"$nouns\" ;;\n"
    "    VERB) _pawl_verbs \"$argument\" && _pawl_value \"$verbs\" ;;\n"
    "    *) COMPREPLY=($(compgen -W \"${1//,/ }\" -- \"$word\")) ;;\n"
    "    esac\n"
    "}\n\n"
    "_pawl() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} at=2\n"
    "    local nouns verbs takes thing name given=' ' names=() option='' argument='' place=0 known='' i\n"
    "    COMPREPLY=()\n"
    "    [[ $word != = ]] || word=''\n"
    "    _pawl_nouns\n"
    "    if ((COMP_CWORD == 1)); then\n"
    "        _pawl_value \"$nouns --help --version\"\n"
    "        return\n"
    "    fi\n"
    "    if _pawl_verbs \"$command\"; then\n"
    "        if ((COMP_CWORD == 2)); then\n"
    "            _pawl_value \"$verbs --help\"\n"
    "            return\n"
    "        fi\n"
    "        command+=\" ${COMP_WORDS[2]}\" at=3\n"
    "    fi\n"
    "    _pawl_takes \"$command\" || return\n\n"
    "    # What is there already. bash has cut the words at = and at colons.\n"
    "    for ((i = at; i < COMP_CWORD; i++)); do\n"
    "        name=${COMP_WORDS[i]}\n"
    "        if [[ $name == : ]]; then\n"
    "            i=$((i + 1))\n"
    "        elif [[ $name == = ]]; then\n"
    "            continue\n"
    "        elif [[ $option ]]; then\n"
    "            option=''\n"
    "        elif [[ $name == --* ]]; then\n"
    "            given+=\"$name \"\n"
    "            for thing in $takes; do\n"
    "                [[ ${thing#+} != \"$name\":* ]] || option=$thing\n"
    "            done\n"
    "        else\n"
    "            argument=$name place=$((place + 1))\n"
    "        fi\n"
    "    done\n\n"
    "    if [[ $option ]]; then\n"
    "        _pawl_value \"${option#*:}\"\n"
    "        return\n"
    "    fi\n"
    "    i=0\n"
    "    for thing in $takes; do\n"
    "        name=${thing%%:*}\n"
    "        if [[ ! $name ]]; then\n"
    "            ((i++ != place)) || known=${thing#:}\n"
    "        elif [[ $name == +* ]]; then\n"
    "            names+=(\"${name#+}\")\n"
    "        elif [[ $given != *\" $name \"* ]]; then\n"
    "            names+=(\"$name\")\n"
    "        fi\n"
    "    done\n"
    "    if [[ $known && $word != -* ]]; then\n"
    "        _pawl_value \"$known\"\n"
    "    else\n"
    "        _pawl_value \"${names[*]} --help\"\n"
    "    fi\n"
    "}\n\n"
    "complete -F _pawl pawl\n";

static void put_kind(const struct command *command, const char *called)
{
    const char *words = "";
    switch (completion_kind(command, called, &words)) {
    case VALUE_FILE: fputs("FILE", stdout); break;
    case VALUE_DIRECTORY: fputs("DIR", stdout); break;
    case VALUE_COMMAND: fputs("COMMAND", stdout); break;
    case VALUE_VERB: fputs("VERB", stdout); break;
    case VALUE_CHOICE:
        for (; *words; words++)
            putchar(*words == ' ' ? ',' : *words);
        break;
    case VALUE_UNKNOWN: break;
    }
}

static void put_takes(const struct command *command)
{
    const char *space = "";
    printf("    '%s') takes='", command->name);
    for (size_t i = 0; i < ARGUMENTS_MAX && command->arguments[i]; i++) {
        printf("%s:", space);
        put_kind(command, command->arguments[i]);
        space = " ";
    }
    for (size_t i = 0; i < OPTIONS_MAX && command->options[i].name; i++) {
        const struct option_spec *option = &command->options[i];
        printf("%s%s--%s%s", space, option->many ? "+" : "", option->name, option->value ? ":" : "");
        if (option->value)
            put_kind(command, option->value);
        space = " ";
    }
    puts("' ;;");
}

static void put_verbs(const char *noun, size_t length)
{
    const char *space = "";
    printf("    %.*s) verbs='", (int)length, noun);
    for (size_t i = 0; i < commands_count; i++)
        if (command_is_of(commands[i], noun, length)) {
            printf("%s%s", space, command_verb(commands[i]));
            space = " ";
        }
    puts("' ;;");
}

void completion_bash(void)
{
    const char *space = "";
    printf("%s_pawl_nouns() {\n    nouns='", script_head);
    for (size_t i = 0; i < commands_count; i++) {
        size_t length = command_noun(commands[i]);
        if (length && !command_begins_noun(i))
            continue;
        printf("%s%.*s", space, (int)(length ? length : strlen(commands[i]->name)), commands[i]->name);
        space = " ";
    }
    fputs("'\n}\n\n_pawl_verbs() {\n    case $1 in\n", stdout);
    for (size_t i = 0; i < commands_count; i++)
        if (command_begins_noun(i))
            put_verbs(commands[i]->name, command_noun(commands[i]));
    fputs("    *) return 1 ;;\n    esac\n}\n\n_pawl_takes() {\n    case $1 in\n", stdout);
    for (size_t i = 0; i < commands_count; i++)
        put_takes(commands[i]);
    printf("    *) return 1 ;;\n    esac\n}\n\n%s", script_body);
}
