/* What the tests of the two stores share: a directory, an engine on it, commands that write the same rows again
 * and again, and a check that everything is what a replay of the log gives. */
#ifndef TEST_ENGINE_TWICE_H
#define TEST_ENGINE_TWICE_H

#include <pawl/pawl.h>

#include "engine/knobs.h"
#include "test/lib/copy.h"

#define TWICE_WORKSPACES 6

struct twice {
    char base[256];
    char dir[300];
    pawl_options options;
    struct engine_knobs knobs;
    const char *total_key; /* an expression over the command; "1": one total a workspace */
    pawl_engine *engine;
    pawl_request *request;
    uint64_t billed[TWICE_WORKSPACES]; /* commands that were answered */
    pawl_error error;
};

void twice_make(struct twice *t);   /* the directory, and defaults that are small */
void twice_remove(struct twice *t); /* the engine is closed */

void twice_open(struct twice *t);
void twice_begin(struct twice *t); /* and apply the schema, create the workspaces */
void twice_close(struct twice *t);

/* One command to the n-th workspace: a record, and a total that is counted up. */
int twice_bill(struct twice *t, unsigned n);
void twice_bill_many(struct twice *t, unsigned count);

/* Very many, 60 of them under way at a time. */
void twice_bill_flying(struct twice *t, unsigned count);

/* Between two looks at a condition. */
void twice_pause(void);

/* Until the checkpoints lack at most so many events, and can stand in for the live stores. */
pawl_figures twice_wait(struct twice *t, uint64_t lag);
pawl_figures twice_figures(struct twice *t);

/* The engine is closed. Everything that was answered is there, once, and the state is what a replay says: fails
 * the test otherwise. */
void twice_check(struct twice *t);

#endif
