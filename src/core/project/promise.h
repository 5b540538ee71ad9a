/* core/project/promise.h: rows that a run will write, told to the next run of its chain before they are staged.
 *
 * A number that needs an earlier one can be run when the rows of that one are known. They are staged only when all
 * numbers before it are staged, but they are known as soon as its run is handed in. So the next number of the chain
 * (schedule.h) is given out then, and its run sees these rows as if they were there:
 *
 *     staged
 *        │ 1   2   3   4   5   6        2 and 5 are of one customer; 1 takes long
 *     ───┴───────────────────────►
 *          ..  ✓   ✓   ✓   ▲            2 is handed in: 5 is run, with the row that 2 promises. 6, if it needs 5,
 *              └───────────┘            will get what 5 makes of it
 *
 * The run that promises may be repeated, and others may write the same rows. So
 *
 *   P1  a promise decides nothing: a run that has read a promised row stands only if the row is there at the run's
 *       turn, byte for byte as it was promised (lane_stands, in lane_acquire.c);
 *   P2  a run that has a promise sees the row as promised in every snapshot, also if the store has another one by then.
 *       So what it has read of the row is one value, and that is what is compared;
 *   P3  a promise has at most PROMISED_ROWS_MAX rows of PROMISED_BYTES_MAX together, each key once. */
#ifndef CORE_PROJECT_PROMISE_H
#define CORE_PROJECT_PROMISE_H

#include "base/arena.h"
#include "core/state/overlay.h"

#define PROMISED_ROWS_MAX  ((size_t)64) /* reads.h has a bit for each */
#define PROMISED_BYTES_MAX ((size_t)16 << 10)

struct promised_row {
    pawl_bytes key;
    pawl_bytes value; /* data NULL: it will not be there */
    uint64_t number;  /* whose operation writes it; 0: that of the run that made it */
};

struct promise {
    struct promised_row *rows;
    size_t count;
};

/* What a run has made, from the changes that its writes made to the state that it has seen. Copies. PAWL_ETOOBIG (P3),
 * PAWL_ENOMEM: there is no promise. */
int promise_make(struct promise *promise, struct arena *memory, const struct changes *changes);

/* What the next run of a chain gets: rows that the run of number has made, and those that it was promised itself and that
 * are not staged yet; all of the workspace. Copies. Errors: as above. */
int promise_pass_on(struct promise *promise, struct arena *memory, const struct promise *had,
                    const struct promise *made, uint64_t number, uint64_t staged, uint64_t wsid);

/* Whether that is within the bounds (P3), whatever the workspace. */
bool promise_fits(const struct promise *had, const struct promise *made, uint64_t staged);

/* Which rows have this key: a bit for each, so at most one. Which have a key that begins so. */
uint64_t promise_find(const struct promise *promise, pawl_bytes key);
uint64_t promise_find_all(const struct promise *promise, pawl_bytes prefix);

#endif
