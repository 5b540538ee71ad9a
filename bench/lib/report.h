/* report.h: how the answers of a bench are shown, to people and to programs. */
#ifndef BENCH_LIB_REPORT_H
#define BENCH_LIB_REPORT_H

#include <stdio.h>

#include "bench/lib/bench.h"

struct bench_answer {
    const struct bench_question *question;
    double ours, peer; /* medians; peer is 0 when there is none */
};

double answer_ratio(const struct bench_answer *answer); /* 0 when there is no peer */
bool answer_met(const struct bench_answer *answer);

/* What the numbers were measured on: commit, processor, kernel, and the filesystem of dir. */
void report_machine(FILE *out, const char *dir);

/* question | ours | peer | unit | ratio | goal | met, aligned. */
void report_table(FILE *out, const struct bench_answer *answers, size_t count);

/* The same as a JSON array of objects. */
void report_json(FILE *out, const struct bench_answer *answers, size_t count);

#endif
