/* report.h: how the answers of a bench are shown, to people and to programs. */
#ifndef BENCH_LIB_REPORT_H
#define BENCH_LIB_REPORT_H

#include <stdio.h>

#include "bench/lib/bench.h"

/* What the rounds of one side came to; all 0 if the side was not measured. */
struct bench_side {
    double median, least, most;
    double
        processor_us; /* median of the processor time of a round, user and system, all threads and children; */
    bool per_operation; /* divided by its operations, if the round counted them (bench_per_second) */
};

struct bench_answer {
    const struct bench_question *question;
    struct bench_side ours, peer;
    double ratio; /* the median of the rounds' ratios; 0: no peer was measured */
};

bool answer_met(const struct bench_answer *answer);

/* How the bench was run; the commit, the machine and the kernel are found by the report itself. */
struct bench_run {
    const char *bench; /* its name */
    const char *dir;
    unsigned rounds;
    bool quick;
    double load_before,
        load_after; /* average number of processes that want a processor, over the last minute */
};

/* What the numbers were measured on: commit, processor, kernel, and the filesystem of dir. */
void report_machine(FILE *out, const char *dir);

/* question | ours | peer | unit | ratio | goal | met, aligned. */
void report_table(FILE *out, const struct bench_answer *answers, size_t count);

/* The run and its answers as one JSON object. tools/performance and tools/compare-benches read it. */
void report_json(FILE *out, const struct bench_run *run, const struct bench_answer *answers, size_t count);

#endif
