/* http/routes/maintenance.c: jobs: verify, audit and backup, begun, shown and cancelled. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "http/routes/body.h"
#include "http/server/server.h"

static void answer_job(struct exchange *x, enum http_status status, uint64_t id)
{
    json_t *job = jobs_show(x->server->jobs, id);
    if (!job) {
        exchange_refuse(x, HTTP_NOT_FOUND, PAWL_ENOTFOUND, "$path.id: there is no job %" PRIu64, id);
        return;
    }
    exchange_answer_json(x, status, job);
}

static void begin_job(struct exchange *x, enum job_kind kind)
{
    struct job_wish wish = {.kind = kind};
    struct body body;
    pawl_error error;
    uint64_t id;
    if (!body_begin(x, &body))
        return;
    if (kind == JOB_BACKUP)
        wish.name = body_string(&body, "name", BODY_NEEDED);
    else
        wish.replay = body_flag(&body, "replay");
    if (kind == JOB_VERIFY)
        wish.audit = body_flag(&body, "audit");
    if (!body_end(&body))
        return;
    int status = jobs_add(x->server->jobs, &wish, &id, &error);
    body_release(&body);
    if (status != PAWL_OK) {
        exchange_fail(x, &error);
        return;
    }
    exchange_add_header(x, "Location", "/v1/jobs/%" PRIu64, id);
    answer_job(x, HTTP_ACCEPTED, id);
}

void jobs_verify(struct exchange *x)
{
    begin_job(x, JOB_VERIFY);
}

void jobs_audit(struct exchange *x)
{
    begin_job(x, JOB_AUDIT);
}

void jobs_backup(struct exchange *x)
{
    begin_job(x, JOB_BACKUP);
}

void jobs_read(struct exchange *x)
{
    json_t *all = jobs_list(x->server->jobs), *job;
    size_t i;
    pawl_bytes none = {"", 0};
    char *text = NULL;
    size_t size = 0;
    FILE *lines = open_memstream(&text, &size);
    json_array_foreach(all, i, job)
    {
        if (!lines)
            break;
        json_dumpf(job, lines, JSON_COMPACT);
        fputc('\n', lines);
    }
    json_decref(all);
    if (!lines || fclose(lines) != 0)
        exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ENOMEM, "no memory for the jobs");
    else
        exchange_answer_copy(x, HTTP_OK, TYPE_NDJSON, size ? (pawl_bytes){text, size} : none);
    free(text);
}

void jobs_get(struct exchange *x)
{
    uint64_t id;
    if (exchange_path_number(x, "id", 1, UINT64_MAX, &id))
        answer_job(x, HTTP_OK, id);
}

void jobs_delete(struct exchange *x)
{
    uint64_t id;
    pawl_error error;
    if (!exchange_path_number(x, "id", 1, UINT64_MAX, &id))
        return;
    if (jobs_cancel(x->server->jobs, id, &error) == PAWL_OK)
        answer_job(x, HTTP_ACCEPTED, id);
    else
        exchange_fail(x, &error);
}
