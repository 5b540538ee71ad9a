/* cli/words/completion.h: scripts that let a shell complete what is typed behind pawl, made from the tables of commands.
 *
 * A script knows nouns, verbs and options, and what their values are, as far as the name of a value says it. */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "cli/words/table.h"

enum value_kind {
    VALUE_UNKNOWN,
    VALUE_FILE,
    VALUE_DIRECTORY,
    VALUE_COMMAND, /* a noun, or a verb that has none */
    VALUE_VERB,    /* a verb of the noun before it */
    VALUE_CHOICE,  /* one of the words that the command's table names */
};

/* What a value of this command is, by what it is called; brackets around it do not count. ret_words: those of a
 * choice, with a space between them. */
enum value_kind completion_kind(const struct command *command, const char *called, const char **ret_words);

void completion_bash(void);
void completion_zsh(void);

#endif
