/* bench/recovery.c: how long opening takes after kill -9, as the log grows and as workspaces grow.
 *
 *     bench_recovery [--events MILLIONS] [the options of bench.h]
 *
 * There is a directory for each size, made when it is first asked for, and removed at the end: some 15 GB in all, and
 * with --events 50 some 60 GB. A measurement is a process that opens the directory and sends a command. The time ends with
 * its answer. Then the process writes on, with 64 commands outstanding, and is killed in the midst of that: so every
 * opening comes after a kill under load. The quick form has a fiftieth of all. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pawl/pawl.h>

#include "bench/lib/bench.h"
#include "bench/lib/crowd.h"
#include "bench/lib/folder.h"
#include "bench/lib/invoices.h"

#define MILLION UINT64_C(1000000)
#define QUICKER 50
#define TAIL    UINT64_C(100000) /* events at least, behind an opening and before the kill */

struct size {
    uint64_t workspaces, events;
    char dir[PATH_MAX];
    bool made;
};

static uint64_t part(const struct bench_round *round, uint64_t count)
{
    return round->quick ? count / QUICKER : count;
}

/* --- in a process that is killed --- */

/* Says how long it took, and goes on until it is killed. The second word, which is 0, says that there is enough. */
static void write_on(pawl_engine *engine, uint64_t workspaces, uint64_t events, double ms, int told)
{
    struct invoices_turn turn = {workspaces, PAWL_ACK_APPLIED};
    struct crowd crowd = {.engine = engine, .make = invoices_bill_in_turn, .arg = &turn, .most = events};
    const double enough = 0;
    bool ok = write(told, &ms, sizeof ms) == sizeof ms && crowd_run(&crowd) > 0
              && write(told, &enough, sizeof enough) == sizeof enough;
    crowd.most = 0;
    while (ok && crowd_run(&crowd) > 0) {
    }
    _exit(1);
}

static void make(const struct bench_round *round, const struct size *size, int told)
{
    uint64_t workspaces = part(round, size->workspaces);
    pawl_engine *engine = invoices_open(size->dir, workspaces);
    if (!engine)
        _exit(1);
    write_on(engine, workspaces, part(round, size->events), 1, told);
}

static void open_again(const struct bench_round *round, const struct size *size, int told)
{
    char path[PATH_MAX + 8];
    pawl_engine *engine;
    pawl_request *request;
    pawl_error error = {0};
    snprintf(path, sizeof path, "%s/pawl", size->dir);
    uint64_t began = bench_now();
    int status = pawl_open(path, NULL, &engine, &error);
    if (status == PAWL_OK)
        status = pawl_request_new(engine, &request);
    if (status == PAWL_OK) {
        invoices_bill(request, 1, PAWL_ACK_APPLIED);
        status = pawl_command(engine, request, NULL, &error);
    }
    double ms = (double)(bench_now() - began) / 1e6;
    if (status != PAWL_OK) {
        bench_failed(path, &error);
        _exit(1);
    }
    write_on(engine, part(round, size->workspaces), part(round, TAIL), ms, told);
}

/* --- in the bench --- */

/* The first word of the process, which is killed when it has said both. 0: it failed. */
static double run(const struct bench_round *round, const struct size *size,
                  void (*process)(const struct bench_round *round, const struct size *size, int told))
{
    int pipes[2];
    double ms = 0, enough;
    if (pipe(pipes) != 0)
        return bench_failed("pipe", NULL);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pipes[0]);
        process(round, size, pipes[1]);
    }
    close(pipes[1]);
    bool ok = child > 0 && read(pipes[0], &ms, sizeof ms) == sizeof ms
              && read(pipes[0], &enough, sizeof enough) == sizeof enough;
    close(pipes[0]);
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return ok ? ms : bench_failed("the process that is killed has failed by itself", NULL);
}

static double open_size(const struct bench_round *round, struct size *size)
{
    if (!size->made)
        size->made = folder_make(round, "recovery", size->dir) && run(round, size, make) > 0;
    return size->made ? run(round, size, open_again) : 0;
}

static struct size base = {.workspaces = 1000, .events = MILLION};

static double ours(const struct bench_round *round)
{
    return open_size(round, round->arg);
}

static double peer(const struct bench_round *round)
{
    return open_size(round, &base);
}

int main(int argc, char **argv)
{
    static struct size events = {.workspaces = 1000, .events = 10 * MILLION};
    static struct size hundred = {.workspaces = 100000, .events = MILLION};
    static struct size million = {.workspaces = MILLION, .events = MILLION};
    static struct size *const all[] = {&base, &events, &hundred, &million};
    static char longer[] = "open after a kill, 1234567890 M events (peer: 1 M events)";
    struct bench_question questions[] = {
        {"open after a kill, 1 M events", "ms", BENCH_LESS, 1000, ours, NULL, &base},
        {"open after a kill, 10 M events (peer: 1 M events)", "ms", BENCH_LESS, 1.25, ours, peer, &events},
        {"open after a kill, 100,000 workspaces (peer: 1,000)", "ms", BENCH_LESS, 0, ours, peer, &hundred},
        {"open after a kill, 1,000,000 workspaces (peer: 1,000)", "ms", BENCH_LESS, 0, ours, peer, &million},
    };
    if (argc > 2 && strcmp(argv[1], "--events") == 0) {
        uint64_t millions = strtoul(argv[2], NULL, 10);
        if (millions < 2 || millions > 1000) {
            fprintf(stderr, "--events takes 2 to 1000 millions, not '%s'\n", argv[2]);
            return 2;
        }
        events.events = millions * MILLION;
        snprintf(longer, sizeof longer, "open after a kill, %u M events (peer: 1 M events)",
                 (unsigned)millions);
        questions[1].question = longer;
        argv[2] = argv[0];
        argc -= 2;
        argv += 2;
    }
    int status = bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->dir[0])
            folder_remove(all[i]->dir);
    return status;
}
