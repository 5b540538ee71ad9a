/* bench.h: the frame of a bench program.
 *
 * A bench is a list of questions, each answered by measuring ours and a peer on the same machine in the same
 * run:
 *
 *     static double ours(const struct bench_round *round)
 *     {
 *         prepare();
 *         uint64_t began = bench_begin();
 *         uint64_t count = work();
 *         return bench_per_second(count, began);
 *     }
 *
 *     static const struct bench_question questions[] = {
 *         {.question = "durable appends of 200 bytes, one at a time", .unit = "op/s",
 *          .better = BENCH_MORE, .goal = 1.0, .ours = ours, .peer = sqlite},
 *     };
 *     int main(int argc, char **argv) { return bench_main(argc, argv, questions, 1); }
 *
 * Rounds of the two alternate. What else the machine does hits both sides of a round, and so not its ratio; the median of
 * these ratios is the answer's.
 * Options:
 *
 *     --rounds N    so many rounds (5; with --quick 3)
 *     --quick       do a tenth of the work
 *     --only TEXT   only questions that contain this text
 *     --ours        leave the peers out; nothing is compared then
 *     --dir DIR     where to work. Otherwise TMPDIR, otherwise the current directory. Durability is measured
 *                   on a disk: a tmpfs syncs nothing
 *     --json FILE   write the answers there (bench/lib/report.h)
 */
#ifndef BENCH_LIB_BENCH_H
#define BENCH_LIB_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#define BENCH_ROUNDS_MAX 101

struct bench_round {
    const char *dir; /* empty, made for this round, removed after it */
    bool quick;      /* a look is enough: do a tenth of the work */
    void *arg;       /* the question's */
};

/* One measurement, in the question's unit. What is not a positive number says that it failed, after the
 * function printed why; the bench ends then. BENCH_NO_PEER, of a peer only: this machine has no such peer, and
 * the function printed what is missing. The question is answered without it. */
#define BENCH_NO_PEER (-2.0)
typedef double (*bench_measure)(const struct bench_round *round);

enum bench_better { BENCH_MORE, BENCH_LESS };

struct bench_question {
    const char *question;
    const char *unit; /* "op/s", "ns/op", "MB/s" */
    enum bench_better better;
    double goal; /* of ours / peer: at least, or with BENCH_LESS at most. Without a peer: of ours. 0: none */
    bench_measure ours;
    bench_measure peer; /* may be NULL */
    void *arg;
};

/* Returns the exit status: 0 when everything was measured, whether or not the goals were met. */
int bench_main(int argc, char **argv, const struct bench_question *questions, size_t count);

/* Nanoseconds of a clock that only goes forward. */
uint64_t bench_now(void);

/* The moment when the work begins, as bench_now has it; and operations per second since then. The frame measures
 * the processor time between the two calls and divides it by the operations. So call each once in a measurement,
 * from the thread that measures, behind the preparation. Without bench_begin the whole round counts; without
 * bench_per_second what follows bench_begin, undivided. */
uint64_t bench_begin(void);
double bench_per_second(uint64_t operations, uint64_t began);

/* Says what could not be done, and why: the error, or errno if there is none. Returns 0, the measurement. */
double bench_failed(const char *what, const pawl_error *error);

/* A peer is measured in this version. The report names it, once for each name. */
void bench_peer(const char *name, const char *version);

#endif
