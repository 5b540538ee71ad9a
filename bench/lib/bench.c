#include "bench/lib/bench.h"

#include <errno.h>
#include <ftw.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/lib/report.h"

struct options {
    unsigned rounds;
    bool quick;
    bool only_ours;
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

static double processor_of(int who)
{
    struct rusage used;
    getrusage(who, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6
           + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Microseconds of all threads, and of children that have ended. */
static double processor_now(void)
{
    return processor_of(RUSAGE_SELF) + processor_of(RUSAGE_CHILDREN);
}

/* Of the present round: see bench_begin. */
static struct {
    double began_us;
    double used_us;      /* until bench_per_second; */
    uint64_t operations; /* 0: it was not called */
} work;

uint64_t bench_begin(void)
{
    work.operations = 0;
    work.began_us = processor_now();
    return bench_now();
}

double bench_per_second(uint64_t operations, uint64_t began)
{
    uint64_t elapsed = bench_now() - began;
    work.used_us = processor_now() - work.began_us;
    work.operations = operations;
    return (double)operations * 1e9 / (double)(elapsed ? elapsed : 1);
}

double bench_failed(const char *what, const pawl_error *error)
{
    fprintf(stderr, "%s: %s\n", what, error && error->text[0] ? error->text : strerror(errno));
    return 0;
}

static int usage(const char *program)
{
    fprintf(stderr, "usage: %s [--rounds N] [--quick] [--only TEXT] [--ours] [--dir DIR] [--json FILE]\n",
            program);
    return 2;
}

static bool parse_options(int argc, char **argv, struct options *o)
{
    enum { ROUNDS = 1, QUICK, ONLY, OURS, DIR, JSON };
    static const struct option known[] = {
        {"rounds", required_argument, NULL, ROUNDS},
        {"quick", no_argument, NULL, QUICK},
        {"only", required_argument, NULL, ONLY},
        {"ours", no_argument, NULL, OURS},
        {"dir", required_argument, NULL, DIR},
        {"json", required_argument, NULL, JSON},
        {0},
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
        case OURS: o->only_ours = true; break;
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

struct measurement {
    double value;
    double processor_us; /* an operation, or the round */
    bool per_operation;
};

/* One measurement of one side in a directory of its own. Returns whether it succeeded. */
static bool measure(const struct bench_question *q, bench_measure side, const struct options *o,
                    struct measurement *ret_m)
{
    char dir[PATH_MAX + 32];
    snprintf(dir, sizeof dir, "%s/pawl-bench-XXXXXX", o->dir);
    if (!mkdtemp(dir)) {
        fprintf(stderr, "%s: %s\n", dir, strerror(errno));
        return false;
    }
    bench_begin();
    double value = side(&(struct bench_round){.dir = dir, .quick = o->quick, .arg = q->arg});
    if (work.operations == 0)
        work.used_us = processor_now() - work.began_us;
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    *ret_m = (struct measurement){.value = BENCH_NO_PEER};
    if (value == BENCH_NO_PEER && side != q->ours)
        return true;
    if (!isfinite(value) || value <= 0) {
        fprintf(stderr, "'%s': %s could not be measured\n", q->question, side == q->ours ? "ours" : "the peer");
        return false;
    }
    bool counted = work.operations > 0;
    *ret_m = (struct measurement){value, work.used_us / (counted ? (double)work.operations : 1), counted};
    return true;
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

/* median() sorts, so the least value comes first and the greatest last. */
static struct bench_side summarize(const struct measurement *all, unsigned count)
{
    double values[BENCH_ROUNDS_MAX] = {0}, processor[BENCH_ROUNDS_MAX] = {0};
    for (unsigned i = 0; i < count; i++) {
        values[i] = all[i].value;
        processor[i] = all[i].processor_us;
    }
    double middle = median(values, count);
    return (struct bench_side){middle, values[0], values[count - 1], median(processor, count),
                               all[0].per_operation};
}

static bool ask(const struct bench_question *q, const struct options *o, struct bench_answer *ret_answer)
{
    struct measurement ours[BENCH_ROUNDS_MAX], peer[BENCH_ROUNDS_MAX];
    bool shown = isatty(STDERR_FILENO), beside = q->peer && !o->only_ours;
    for (unsigned r = 0; r < o->rounds; r++) {
        if (shown)
            fprintf(stderr, "\r\033[K%s: round %u of %u", q->question, r + 1, o->rounds);
        if (!measure(q, q->ours, o, &ours[r]) || (beside && !measure(q, q->peer, o, &peer[r])))
            return false;
        beside = beside && peer[r].value > 0;
    }
    if (shown)
        fprintf(stderr, "\r\033[K");
    *ret_answer = (struct bench_answer){.question = q, .ours = summarize(ours, o->rounds)};
    if (!beside)
        return true;
    double ratios[BENCH_ROUNDS_MAX] = {0};
    for (unsigned r = 0; r < o->rounds; r++)
        ratios[r] = ours[r].value / peer[r].value;
    ret_answer->peer = summarize(peer, o->rounds);
    ret_answer->ratio = median(ratios, o->rounds);
    return true;
}

static bool write_json(const char *path, const struct bench_run *run, const struct bench_answer *answers,
                       size_t count)
{
    FILE *file = fopen(path, "w");
    if (file) {
        report_json(file, run, answers, count);
        bool failed = ferror(file) != 0;
        if (fclose(file) == 0 && !failed)
            return true;
    }
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return false;
}

static double load_now(void)
{
    double load = 0;
    return getloadavg(&load, 1) == 1 ? load : 0;
}

/* The program bench_NAME is the bench NAME. */
static const char *name_of(const char *program)
{
    const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
    return strncmp(name, "bench_", 6) == 0 ? name + 6 : name;
}

int bench_main(int argc, char **argv, const struct bench_question *questions, size_t count)
{
    struct options o = {0};
    if (!parse_options(argc, argv, &o))
        return usage(argv[0]);
    struct bench_answer *answers = calloc(count ? count : 1, sizeof *answers);
    struct bench_run run = {name_of(argv[0]), o.dir, o.rounds, o.quick, .load_before = load_now()};
    size_t answered = 0;
    bool ok = answers != NULL;

    report_machine(stdout, o.dir);
    for (size_t i = 0; ok && i < count; i++)
        if (!o.only || strstr(questions[i].question, o.only))
            ok = ask(&questions[i], &o, &answers[answered++]);
    if (ok)
        report_table(stdout, answers, answered);
    run.load_after = load_now();
    if (ok && o.json)
        ok = write_json(o.json, &run, answers, answered);
    free(answers);
    return ok ? 0 : 1;
}
