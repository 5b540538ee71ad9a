/* shop.h: what the parts of the shop share.
 *
 *     clerk.c       threads that send commands, as a day would bring them
 *     statement.c   a projector's handler, deliberately slow
 *     window.c      how the lanes are doing, as a picture; how far opening has come, as a bar
 *     view.c        a view that is made while the shops are open
 *     audit.c       whether everything is as the events say
 *     audit_view.c  whether the views are what their base says
 *     serve.c       the shops over HTTP; only if Pawl is built with its server */
#ifndef SHOP_H
#define SHOP_H

#include <stdatomic.h>

#include <pawl/pawl.h>

#define THREADS_MAX   256
#define INVOICES_VIEW "shop.invoices_by_customer"

struct options {
    const char *dir;
    const char *schema;
    const char *listen;
    const char *log; /* kafka://HOST:PORT,.../CLUSTER; NULL: in the directory, or where it was before */
    bool take_over;  /* the log belongs to a node that is gone */
    uint64_t tenants;
    uint64_t threads;
    uint64_t seconds;
    uint64_t seed;
    uint64_t slow;  /* milliseconds that a statement takes, on average */
    uint64_t rate;  /* commands a second that all clerks send together; 0: as many as they can */
    uint64_t lease; /* milliseconds of the first lease, and of the shortest; 0: as Pawl has them */
};

/* Print it on stderr; returns 1. */
int complain(const char *what, const pawl_error *error);

void wait_ms(long ms);

/* --- clerk.c --- */

extern _Atomic uint64_t answered;
extern _Atomic uint64_t turned_away; /* payments that came a second time */
extern atomic_bool stop;

/* start: returns how many threads did start. join: false if one of them failed. */
uint64_t clerks_start(const struct options *options, pawl_engine *engine);
bool clerks_join(uint64_t started);

/* --- statement.c --- */

/* Let the statements of this engine be written by this process. */
int statements_register(pawl_engine *engine, const struct options *options, pawl_error *error);

/* The chain of a customer's statements, with one more: it depends on their order. */
uint64_t statement_chain(uint64_t chain, uint64_t workspace_offset);

/* --- window.c --- */

/* Show how the lanes are doing: over what was shown before if stdout is a terminal, else below it. head is a
 * line of its own, or NULL. */
void window_show(pawl_engine *engine, const char *head);
bool window_is_live(void);

/* A pawl_progress: how much of the state was derived from the log. end: all of it was. */
bool window_progress(void *arg, uint64_t done, uint64_t total);
void window_progress_end(pawl_engine *engine);

/* Print what became of all leases. */
void window_sum(pawl_engine *engine);

/* --- view.c --- */

int view_invoices(const struct options *options);

/* Let views of invoices be built at a rate by which those that there are take so long, about. */
int view_throttle(pawl_engine *engine, uint64_t seconds, pawl_error *error);

/* --- audit.c --- */

int audit(const struct options *options);

/* --- audit_view.c --- */

struct view_counts {
    uint64_t rows; /* of the view of invoices, that were compared */
    uint64_t payments;
};

/* The views of one tenant. False: something is wrong, and was said. */
bool audit_views(pawl_engine *engine, uint64_t wsid, struct view_counts *counts, pawl_error *error);

/* --- serve.c --- */

int serve_shops(const struct options *options);

#endif
