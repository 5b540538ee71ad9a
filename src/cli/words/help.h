/* cli/words/help.h: what the program says about itself, on a terminal; cli/words/man.c says the same as manual pages. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

#include "cli/words/table.h"

/* The program in one line; how it is called; where its directory comes from; how it ends. */
extern const char about_pawl[];
extern const char about_usage[];
extern const char about_directory[];

struct exit_meaning {
    const char *code;
    const char *meaning;
};

#define EXIT_MEANINGS 7
extern const struct exit_meaning exit_meanings[EXIT_MEANINGS];

/* All commands, with a line each. */
void print_overview(FILE *to);

/* A command: how it is called, what it does, its options. */
void print_help(const struct command *command);

/* The verbs of the noun that this command belongs to, with a line each. */
void print_verbs(const struct command *first);

void print_version(void);

#endif
