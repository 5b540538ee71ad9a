/* postgres.h: PostgreSQL 15 as a peer: a cluster of the bench's own, with its defaults (so it syncs before it answers a
 * commit) but for what the caller sets. It refuses to run as root, and then runs as the user postgres. */
#ifndef BENCH_PEERS_POSTGRES_H
#define BENCH_PEERS_POSTGRES_H

#include "bench/peers/load.h"

#define POSTGRES_PROGRAMS "/usr/lib/postgresql/15/bin/"

/* Its port; 0: it is not installed, or could not be started, and that was said. *ret_missing: it is not installed.
 * settings: "NAME=VALUE", NULL at the end, or NULL for none; those of the first call hold. */
uint16_t postgres_port(const struct bench_round *round, const char *const *settings, bool *ret_missing);

/* Everyone is the user "bench", in the database "postgres". */
pawl_bytes postgres_hello(void);

/* A message with a query, or several. The bytes that it has; 0: there is no room. */
size_t postgres_query(char *text, size_t room, const char *query);

/* Do these statements, on a connection of their own. False, after saying why. */
bool postgres_do(uint16_t port, const char *statements);

/* Clients that each insert a row with this text, one a transaction: transactions a second. how, ret_loaded and the
 * result are as those of redis_ask. */
double postgres_insert(const struct bench_round *round, const struct load *how, const char *text,
                       struct loaded *ret_loaded);

void postgres_remove(void);

#endif
