#include "bench/lib/invoices.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/lib/bench.h"
#include "bench/lib/crowd.h"
#include "engine/knobs.h"

static const char schema[] =
    "{\"schema\": 1, \"package\": \"bench\", \"workspaces\": {\"tenant\": {\"sequences\": {\"invoice\": "
    "{\"first\": 1}}}},"
    " \"types\": {\"Invoice\": {\"kind\": \"WDoc\", \"fields\": {"
    "   \"number\": {\"type\": \"int64\", \"sequence\": \"invoice\"}, \"cents\": {\"type\": \"int64\"},"
    "   \"text\": {\"type\": \"string\"}}}},"
    " \"commands\": {\"Bill\": {\"records\": [\"Invoice\"]}}}";

void invoices_bill(pawl_request *request, uint64_t wsid, pawl_ack ack)
{
    pawl_request_begin(request, wsid, "bench.Bill");
    pawl_request_record(request, 1, "bench.Invoice");
    pawl_request_set_int64(request, "cents", 12345);
    pawl_request_set_string(request, "text", INVOICE_TEXT);
    pawl_request_ack(request, ack);
}

void invoices_bill_in_turn(void *turn, pawl_request *request, uint64_t n)
{
    const struct invoices_turn *t = turn;
    invoices_bill(request, n % t->workspaces + 1, t->ack);
}

static bool make_workspaces(pawl_engine *engine, uint64_t first, uint64_t most)
{
    pawl_request *request;
    pawl_error error = {0};
    if (pawl_request_new(engine, &request) != PAWL_OK)
        return false;
    bool ok = true;
    for (uint64_t wsid = first; ok && wsid <= most; wsid += CROWD)
        ok = pawl_workspace_create(engine, request, wsid, "bench.tenant", NULL, &error) == PAWL_OK;
    pawl_request_free(request);
    if (!ok)
        bench_failed("workspace", &error);
    return ok;
}

struct maker {
    pthread_t thread;
    pawl_engine *engine;
    uint64_t first, most;
    bool ok;
};

static void *maker_main(void *arg)
{
    struct maker *m = arg;
    m->ok = make_workspaces(m->engine, m->first, m->most);
    return NULL;
}

static pawl_engine *open_with(const char *dir, uint64_t workspaces, const struct engine_knobs *knobs)
{
    pawl_engine *engine;
    pawl_error error = {0};
    struct maker makers[CROWD];
    bool ok = true;
    char path[PATH_MAX];
    const pawl_options defaults = {0};
    snprintf(path, sizeof path, "%s/pawl", dir);
    if (engine_open(path, &defaults, knobs, &engine, &error) != PAWL_OK) {
        bench_failed(path, &error);
        return NULL;
    }
    if (pawl_schema_apply(engine, schema, NULL, &error) != PAWL_OK) {
        bench_failed("schema", &error);
        pawl_close(engine);
        return NULL;
    }
    for (unsigned i = 0; i < CROWD; i++) {
        makers[i] = (struct maker){.engine = engine, .first = i + 1, .most = workspaces};
        pthread_create(&makers[i].thread, NULL, maker_main, &makers[i]);
    }
    for (unsigned i = 0; i < CROWD; i++) {
        pthread_join(makers[i].thread, NULL);
        ok = ok && makers[i].ok;
    }
    if (ok)
        return engine;
    pawl_close(engine);
    return NULL;
}

pawl_engine *invoices_open(const char *dir, uint64_t workspaces)
{
    return open_with(dir, workspaces, NULL);
}

pawl_engine *invoices_open_alone(const char *dir, uint64_t workspaces)
{
    return open_with(dir, workspaces, &(struct engine_knobs){.no_checkpoint = true});
}

pawl_engine *invoices_open_hasty(const char *dir, uint64_t workspaces)
{
    return open_with(dir, workspaces, &(struct engine_knobs){.gather_max = 1});
}
