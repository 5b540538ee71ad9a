/* cli/talk/lanes.h: the lanes of an engine as the verbs show them: one row for each generation in each partition,
 * and their sums. */
#ifndef CLI_LANES_H
#define CLI_LANES_H

#include <pawl/pawl.h>

#include "cli/talk/open.h"

struct lane_row {
    char *name;  /* status.lane is the same */
    char *error; /* status.error, or NULL */
    pawl_lane_status status;
};

struct lanes {
    struct lane_row *rows; /* those of a generation one behind the other */
    size_t count;
};

/* All, or those of one lane (NULL: all). Copies. Give it back with lanes_free. */
int lanes_load(pawl_engine *engine, const char *lane, struct lanes *ret_lanes, pawl_error *error);
void lanes_free(struct lanes *lanes);

/* How many rows from this one on are of the same lane and generation. */
size_t lanes_run(const struct lanes *lanes, size_t first);

/* The sum of such rows. */
struct lane_sum {
    size_t partitions;
    uint64_t end;
    uint64_t offset;
    uint64_t operations;
    uint64_t repeated;
    pawl_lease_figures leases; /* by pawl_lease_figures_add */
};

struct lane_sum lanes_sum(const struct lane_row *rows, size_t count);

/* "640 us", "12 ms", "1.5 s". */
#define DURATION_TEXT_MAX 24
void duration_format(pawl_duration duration, char text[DURATION_TEXT_MAX]);

/* The directory was just opened: wait a few seconds at most until its lanes have done what they can do by
 * themselves. What is under way then is what an operator asks about. */
void lanes_settle(pawl_engine *engine, const char *lane);

#endif
