/* bench/checkpoint.c: what the checkpoint costs while commands run, and what it saves after a loss of power.
 *
 * The peer of commands with a checkpoint is the same without one. For the loss of power a process makes a log
 * of so many events, with a lag of at most LAG, and ends without closing anything; the live stores are then of
 * another boot. Measured are the events that opening replays, which must not depend on the log's length, and
 * the time until the first command is answered. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pawl/pawl.h>

#include "bench/lib/bench.h"
#include "bench/lib/crowd.h"
#include "engine/knobs.h"

#define WORKSPACES 1000
#define LAG        UINT64_C(100000) /* of a shard */
#define SHARDS     2

static const char schema[] = "{\"schema\": 1, \"package\": \"bench\", \"workspaces\": {\"tenant\": {}},"
                             " \"types\": {\"Invoice\": {\"kind\": \"WDoc\", \"fields\": {\"cents\": "
                             "{\"type\": \"int64\"}, \"text\": {\"type\": "
                             "\"string\"}}}}, \"commands\": {\"Bill\": {\"records\": [\"Invoice\"]}}}";

static void bill(void *arg, pawl_request *r, uint64_t n)
{
    pawl_request_begin(r, n % WORKSPACES + 1, "bench.Bill");
    pawl_request_record(r, 1, "bench.Invoice");
    pawl_request_set_int64(r, "cents", 12345);
    pawl_request_set_string(r, "text", "Consulting in November, as agreed");
}

static pawl_engine *open_engine(const char *dir, const struct engine_knobs *knobs, bool make)
{
    char path[4096];
    pawl_engine *engine;
    pawl_request *request;
    pawl_error error = {0};
    pawl_options options = {.shards = SHARDS, .checkpoint_lag_max = LAG};
    snprintf(path, sizeof path, "%s/pawl", dir);
    int status = engine_open(path, &options, knobs, &engine, &error);
    if (status != PAWL_OK) {
        bench_failed(path, &error);
        return NULL;
    }
    status = make ? pawl_schema_apply(engine, schema, NULL, &error) : PAWL_OK;
    pawl_request_new(engine, &request);
    for (uint64_t i = 1; status == PAWL_OK && make && i <= WORKSPACES; i++)
        status = pawl_workspace_create(engine, request, i, "bench.tenant", NULL, &error);
    if (status != PAWL_OK)
        bench_failed("workspaces", &error);
    pawl_request_free(request);
    return engine;
}

static double commands(const struct bench_round *round, bool no_checkpoint)
{
    struct engine_knobs knobs = {.no_checkpoint = no_checkpoint};
    pawl_engine *engine = open_engine(round->dir, &knobs, true);
    if (!engine)
        return 0;
    uint64_t began = bench_begin();
    struct crowd crowd = {
        .engine = engine, .make = bill, .deadline = began + (round->quick ? 500 : 8000) * UINT64_C(1000000)};
    double rate = bench_per_second(crowd_run(&crowd), began);
    pawl_close(engine);
    return rate;
}

static double with(const struct bench_round *round)
{
    return commands(round, false);
}

static double without(const struct bench_round *round)
{
    return commands(round, true);
}

static int fill(const char *dir, uint64_t events)
{
    struct engine_knobs knobs = {.boot_id = "this boot"};
    pawl_engine *engine = open_engine(dir, &knobs, true);
    struct crowd crowd = {.engine = engine, .make = bill, .most = events};
    return engine && crowd_run(&crowd) > 0 ? 0 : 1; /* the process ends without closing anything */
}

struct loss {
    uint64_t events; /* in the log */
    bool time;       /* until the first command is answered, in ms; or the events replayed */
};

static double lose_power(const struct bench_round *round)
{
    const struct loss *loss = round->arg;
    struct engine_knobs knobs = {.boot_id = "the next boot"};
    pawl_request *request;
    pawl_figures figures;
    pawl_error error = {0};
    int how;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(fill(round->dir, loss->events / (round->quick ? 10 : 1)));
    if (child < 0 || waitpid(child, &how, 0) != child || how != 0)
        return 0;
    uint64_t began = bench_begin();
    pawl_engine *engine = open_engine(round->dir, &knobs, false);
    if (!engine || pawl_request_new(engine, &request) != PAWL_OK)
        return 0;
    bill(NULL, request, 0);
    int status = pawl_command(engine, request, NULL, &error);
    double ms = (double)(bench_now() - began) / 1e6;
    status = status ? status : pawl_figures_get(engine, &figures, &error);
    if (status != PAWL_OK)
        bench_failed("after the loss of power", &error);
    pawl_request_free(request);
    pawl_close(engine);
    if (status != PAWL_OK)
        return 0;
    return loss->time ? ms : (double)(figures.replayed ? figures.replayed : 1);
}

int main(int argc, char **argv)
{
    static struct loss million = {1000000, false}, ten = {10000000, false}, first = {1000000, true};
    const double most = (double)(LAG * SHARDS);
    const struct bench_question questions[] = {
        {"commands, 64 outstanding: with a checkpoint, and without", "op/s", BENCH_MORE, 0.8, with, without,
         NULL},
        {"replayed after a loss of power, 1 M events in the log", "events", BENCH_LESS, most, lose_power, NULL,
         &million},
        {"replayed after a loss of power, 10 M events in the log", "events", BENCH_LESS, most, lose_power, NULL,
         &ten},
        {"first command after a loss of power, 1 M events", "ms", BENCH_LESS, 2000 + most / 200, lose_power,
         NULL, &first},
    };
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
