/* numbers.h: numbers per tenant that leave no gap, in PostgreSQL: what people do without Pawl.
 *
 * Each operation inserts an invoice with the next number of its tenant, and commits. The table's primary key is tenant and
 * number. Statements are prepared. Behind each run the numbers are counted: a gap is a failure. */
#ifndef BENCH_PEERS_NUMBERS_H
#define BENCH_PEERS_NUMBERS_H

#include "bench/lib/bench.h"

enum numbers_way {
    NUMBERS_BY_COUNTER, /* BEGIN, UPDATE of the tenant's row of counters ... RETURNING, INSERT, COMMIT: a question each */
    NUMBERS_BY_STATEMENT, /* the same as one statement, so one question: WITH (UPDATE ... RETURNING) INSERT ... */
    NUMBERS_BY_MAX,       /* INSERT ... SELECT max(number) + 1; if another one was faster, the same again */
};

/* Operations a second of so many clients, which take the tenants in turn. BENCH_NO_PEER: it is not installed. */
double numbers_in_postgres(const struct bench_round *round, enum numbers_way way, unsigned clients,
                           unsigned tenants, uint64_t duration);

#endif
