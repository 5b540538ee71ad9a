/* redis.h: Redis as a peer: a server of the bench's own, which syncs its file before each answer (appendfsync always),
 * makes no snapshots, and has its defaults otherwise. */
#ifndef BENCH_PEERS_REDIS_H
#define BENCH_PEERS_REDIS_H

#include "bench/peers/load.h"

/* Its port; 0: it is not installed, or could not be started, and that was said. *ret_missing: it is not installed. */
uint16_t redis_port(const struct bench_round *round, bool *ret_missing);

/* Clients that say the same words again and again, after a hello, which may be empty: operations a second. how has the
 * number of clients, the duration and, if any, the rate; ret_loaded may be NULL. BENCH_NO_PEER: it is not installed. */
double redis_ask(const struct bench_round *round, const struct load *how, const char *hello, const char *words,
                 struct loaded *ret_loaded);

/* One entry of a stream with the fields of an invoice, for a text of 80 bytes. */
#define REDIS_XADD(text)                                                                                       \
    "*9\r\n$4\r\nXADD\r\n$6\r\nevents\r\n$1\r\n*\r\n$4\r\nwsid\r\n$1\r\n7\r\n$5\r\ncents\r\n$5\r\n12345\r\n"   \
    "$4\r\ntext\r\n$80\r\n" text "\r\n"

void redis_remove(void);

#endif
