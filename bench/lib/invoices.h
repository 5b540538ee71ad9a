/* invoices.h: what a command is in several benches: it makes one event of about 300 bytes, and one record with a number
 * of its workspace that leaves no gap. */
#ifndef BENCH_LIB_INVOICES_H
#define BENCH_LIB_INVOICES_H

#include <pawl/pawl.h>

#define INVOICE_BYTES ((size_t)360) /* such an event in the journal */

/* 80 bytes: with heads, numbers and the row an event has 300. */
#define INVOICE_TEXT "Consulting in the month of November, as agreed: 3 days on site and 2 days remote"

/* A new engine in DIR/pawl with the defaults, and workspaces 1 to so many; one without a checkpoint; and one that takes
 * each command as soon as it comes. NULL, after saying why. */
pawl_engine *invoices_open(const char *dir, uint64_t workspaces);
pawl_engine *invoices_open_alone(const char *dir, uint64_t workspaces);
pawl_engine *invoices_open_hasty(const char *dir, uint64_t workspaces);

/* A command to a workspace; and one of a crowd, to workspaces in turn. */
void invoices_bill(pawl_request *request, uint64_t wsid, pawl_ack ack);

struct invoices_turn {
    uint64_t workspaces;
    pawl_ack ack;
};
void invoices_bill_in_turn(void *turn, pawl_request *request, uint64_t n);

#endif
