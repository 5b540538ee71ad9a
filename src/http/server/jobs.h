/* http/server/jobs.h: long work that the server does beside everything else: verify, audit, backup.
 *
 *     POST /v1/verify ──► waiting ──► running: pawl verify --json, a process of its own ──► done, failed, cancelled
 *
 * One job runs at a time. It is the pawl program, in a process of its own: a directory may be opened once in a
 * process only, and what a job needs of memory, or breaks, is not the server's. So its result is what the verb
 * prints. Its process ends with the server.
 *
 * Bounds: JOBS_WAITING_MAX jobs that are not finished, JOBS_KEPT_MAX that are remembered, JOB_OUTPUT_MAX bytes of
 * a result. */
#ifndef HTTP_SERVER_JOBS_H
#define HTTP_SERVER_JOBS_H

#include <jansson.h>

#include <pawl/pawl.h>

#define JOBS_WAITING_MAX 16
#define JOBS_KEPT_MAX    100
#define JOB_OUTPUT_MAX   ((size_t)4 << 20)

enum job_kind { JOB_VERIFY, JOB_AUDIT, JOB_BACKUP };

struct jobs;

/* program: the path of the pawl program; backups: the directory that backups are made in. Either may be NULL: then
 * such jobs are refused. Copies them. */
int jobs_new(pawl_engine *engine, const char *program, const char *backups, struct jobs **ret_jobs,
             pawl_error *error);

/* Cancels what runs and waits. NULL is allowed. */
void jobs_free(struct jobs *jobs);

/* What is to be done. */
struct job_wish {
    enum job_kind kind;
    /* Of a backup: one part of a path, of letters, digits, '.', '_' and '-', that does not begin with a '.'. */
    const char *name;
    bool audit, replay; /* of a verification: the options of the verb */
};

/* Copies the wish. Errors: PAWL_EINVAL (the name), PAWL_EACCES (not configured), PAWL_EEXISTS (there is such a
 * backup), PAWL_EBUSY (too many), PAWL_ENOMEM. */
int jobs_add(struct jobs *jobs, const struct job_wish *wish, uint64_t *ret_id, pawl_error *error);

/* A job as JSON; NULL: there is none, or no memory. All of them, the newest first: as an array. */
json_t *jobs_show(struct jobs *jobs, uint64_t id);
json_t *jobs_list(struct jobs *jobs);

/* PAWL_ENOTFOUND: there is no such job. PAWL_ECONFLICT: it has ended. */
int jobs_cancel(struct jobs *jobs, uint64_t id, pawl_error *error);

#endif
