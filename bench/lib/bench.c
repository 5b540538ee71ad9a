#include "bench/lib/bench.h"

#include <errno.h>
#include <ftw.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/lib/report.h"

struct options {
    unsigned rounds;
    bool quick;
    const char *only;
    const char *json;
    char dir[PATH_MAX];
};

uint64_t bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

double bench_per_second(uint64_t operations, uint64_t began)
{
    uint64_t elapsed = bench_now() - began;
    return (double)operations * 1e9 / (double)(elapsed ? elapsed : 1);
}

double bench_failed(const char *what, const pawl_error *error)
{
    fprintf(stderr, "%s: %s\n", what, error && error->text[0] ? error->text : strerror(errno));
    return 0;
}

static int usage(const char *program)
{
    fprintf(stderr, "usage: %s [--rounds N] [--quick] [--only TEXT] [--dir DIR] [--json FILE]\n", program);
    return 2;
}

static bool parse_options(int argc, char **argv, struct options *o)
{
    enum { ROUNDS = 1, QUICK, ONLY, DIR, JSON };
    static const struct option known[] = {
        {"rounds", required_argument, NULL, ROUNDS}, {"quick", no_argument, NULL, QUICK},
        {"only", required_argument, NULL, ONLY},     {"dir", required_argument, NULL, DIR},
        {"json", required_argument, NULL, JSON},     {0},
    };
    const char *dir = getenv("TMPDIR");
    unsigned long rounds = 0;
    char *end = NULL;
    int which;
    optind = 0;
    while ((which = getopt_long(argc, argv, "", known, NULL)) != -1)
        switch (which) {
        case ROUNDS:
            rounds = strtoul(optarg, &end, 10);
            if (*end || rounds < 1 || rounds > BENCH_ROUNDS_MAX)
                return false;
            break;
        case QUICK: o->quick = true; break;
        case ONLY: o->only = optarg; break;
        case DIR: dir = optarg; break;
        case JSON: o->json = optarg; break;
        default: return false;
        }
    o->rounds = rounds ? (unsigned)rounds : o->quick ? 3 : 5;
    if (!realpath(dir && *dir ? dir : ".", o->dir)) {
        fprintf(stderr, "%s: %s\n", dir && *dir ? dir : ".", strerror(errno));
        return false;
    }
    return optind == argc;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    return remove(path);
}

/* One measurement of one side in a directory of its own; 0 if it failed. */
static double measure(const struct bench_question *q, bench_measure side, const struct options *o)
{
    char dir[PATH_MAX + 32];
    snprintf(dir, sizeof dir, "%s/pawl-bench-XXXXXX", o->dir);
    if (!mkdtemp(dir)) {
        fprintf(stderr, "%s: %s\n", dir, strerror(errno));
        return 0;
    }
    double value = side(&(struct bench_round){.dir = dir, .quick = o->quick, .arg = q->arg});
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (isfinite(value) && value > 0)
        return value;
    fprintf(stderr, "'%s': %s could not be measured\n", q->question, side == q->ours ? "ours" : "the peer");
    return 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof *values, compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static bool ask(const struct bench_question *q, const struct options *o, struct bench_answer *ret_answer)
{
    double ours[BENCH_ROUNDS_MAX] = {0}, peer[BENCH_ROUNDS_MAX] = {0};
    bool shown = isatty(STDERR_FILENO);
    for (unsigned r = 0; r < o->rounds; r++) {
        if (shown)
            fprintf(stderr, "\r\033[K%s: round %u of %u", q->question, r + 1, o->rounds);
        ours[r] = measure(q, q->ours, o);
        peer[r] = q->peer && ours[r] > 0 ? measure(q, q->peer, o) : 0;
        if (ours[r] <= 0 || (q->peer && peer[r] <= 0))
            return false;
    }
    if (shown)
        fprintf(stderr, "\r\033[K");
    *ret_answer = (struct bench_answer){q, median(ours, o->rounds), median(peer, o->rounds)};
    return true;
}

static bool write_json(const char *path, const struct bench_answer *answers, size_t count)
{
    FILE *file = fopen(path, "w");
    if (file) {
        report_json(file, answers, count);
        bool failed = ferror(file) != 0;
        if (fclose(file) == 0 && !failed)
            return true;
    }
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return false;
}

int bench_main(int argc, char **argv, const struct bench_question *questions, size_t count)
{
    struct options o = {0};
    if (!parse_options(argc, argv, &o))
        return usage(argv[0]);
    struct bench_answer *answers = calloc(count ? count : 1, sizeof *answers);
    size_t answered = 0;
    bool ok = answers != NULL;

    report_machine(stdout, o.dir);
    for (size_t i = 0; ok && i < count; i++)
        if (!o.only || strstr(questions[i].question, o.only))
            ok = ask(&questions[i], &o, &answers[answered++]);
    if (ok)
        report_table(stdout, answers, answered);
    if (ok && o.json)
        ok = write_json(o.json, answers, answered);
    free(answers);
    return ok ? 0 : 1;
}
