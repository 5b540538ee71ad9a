/* cli/care/verify_show.h: what a verification has found, in words for people. */
#ifndef CLI_VERIFY_SHOW_H
#define CLI_VERIFY_SHOW_H

#include <jansson.h>

/* found: what `pawl verify --json` prints. */
void print_verified(const json_t *found);

#endif
