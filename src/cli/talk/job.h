/* cli/talk/job.h: long work that a server does: begun, watched, and cancelled if this program is told to end. */
#ifndef CLI_JOB_H
#define CLI_JOB_H

#include <jansson.h>

#include "cli/options.h"

/* Have the server that the options name do a job, "verify" or "backup", and wait for its end. Meanwhile stderr shows
 * what the job says about its progress. Takes body. On failure it has said why, and returns the exit code; after a
 * signal 128 and its number. CLI_OK: *ret_result is what the verb prints with --json on the server's machine;
 * json_decref it. */
int job_run(const struct options *options, const char *kind, json_t *body, json_t **ret_result);

#endif
