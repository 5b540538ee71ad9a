#include "bench/peers/numbers.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/invoices.h"
#include "bench/peers/postgres.h"

#define TENANTS_MAX 100

static const char tables[] = "DROP TABLE IF EXISTS counter, numbered;"
                             "CREATE TABLE counter(wsid bigint PRIMARY KEY, last bigint NOT NULL);"
                             "CREATE TABLE numbered(wsid bigint, number bigint, cents bigint, body text,"
                             " PRIMARY KEY (wsid, number));"
                             "INSERT INTO counter SELECT n, 0 FROM generate_series(1, %u) n;"
                             "CHECKPOINT";

static const char count[] =
    "DO $$ BEGIN IF EXISTS (SELECT FROM numbered GROUP BY wsid HAVING count(*) <> max(number))"
    " THEN RAISE EXCEPTION 'the numbers have a gap'; END IF; END $$";

static const char *const prepared[] = {
    [NUMBERS_BY_COUNTER] =
        "PREPARE next(bigint) AS UPDATE counter SET last = last + 1 WHERE wsid = $1 RETURNING last;"
        "PREPARE bill(bigint, bigint) AS INSERT INTO numbered VALUES ($1, $2, 12345, '" INVOICE_TEXT "')",
    [NUMBERS_BY_STATEMENT] = "PREPARE bill(bigint) AS WITH next AS (UPDATE counter SET last = last + 1 WHERE "
                             "wsid = $1 RETURNING last)"
                             " INSERT INTO numbered SELECT $1, last, 12345, '" INVOICE_TEXT "' FROM next",
    [NUMBERS_BY_MAX] =
        "PREPARE bill(bigint) AS INSERT INTO numbered SELECT $1, coalesce(max(number), 0) + 1, 12345,"
        " '" INVOICE_TEXT "' FROM numbered WHERE wsid = $1",
};

/* --- the transaction in four questions --- */

enum { BEGUN = 1, COUNTED, INSERTED, COMMITTED };

/* The first value of the first row; 0: there is none. A row: D, length, number of values; a value: length, text. */
static uint64_t first_value(pawl_bytes answer)
{
    const char *text = answer.data;
    char digits[24];
    for (size_t at = 0; answer.size - at >= 11;) {
        uint32_t length, size;
        memcpy(&length, text + at + 1, 4);
        memcpy(&size, text + at + 7, 4);
        size = ntohl(size);
        if (text[at] == 'D' && size < sizeof digits && size <= answer.size - at - 11) {
            snprintf(digits, sizeof digits, "%.*s", (int)size, text + at + 11);
            return strtoull(digits, NULL, 10);
        }
        at += 1 + ntohl(length);
    }
    return 0;
}

static bool is_done(pawl_bytes answer, const char *tag)
{
    if (memmem(answer.data, answer.size, tag, strlen(tag)))
        return true;
    fprintf(stderr, "PostgreSQL did not say %s\n", tag);
    return false;
}

/* The tenants in turn; clients begin with different ones. */
static bool talk_counter(void *arg, struct talk *t)
{
    static unsigned turns[LOAD_CLIENTS_MAX];
    unsigned tenants = *(const unsigned *)arg, *turn = &turns[t->client],
             wsid = (t->client + *turn) % tenants + 1;
    char query[64] = "BEGIN";
    uint64_t number = 0;
    bool ok = true;
    switch (t->step++) {
    case BEGUN: snprintf(query, sizeof query, "EXECUTE next(%u)", wsid); break;
    case COUNTED:
        number = first_value(t->answer);
        ok = number > 0 && is_done(t->answer, "UPDATE 1");
        snprintf(query, sizeof query, "EXECUTE bill(%u, %" PRIu64 ")", wsid, number);
        break;
    case INSERTED:
        ok = is_done(t->answer, "INSERT 0 1");
        snprintf(query, sizeof query, "COMMIT");
        break;
    case COMMITTED:
        ok = is_done(t->answer, "COMMIT");
        t->ended = true;
        t->step = BEGUN;
        ++*turn;
        break;
    default: break; /* the first transaction begins */
    }
    t->size = postgres_query(t->words, sizeof t->words, query);
    return ok && t->size > 0;
}

/* --- all ways --- */

double numbers_in_postgres(const struct bench_round *round, enum numbers_way way, unsigned clients,
                           unsigned tenants, uint64_t duration)
{
    static char texts[TENANTS_MAX][64];
    static pawl_bytes asks[TENANTS_MAX];
    char statements[1024], prepare[1024], query[48];
    bool missing;
    uint16_t port = postgres_port(round, NULL, &missing);
    if (!port)
        return missing ? BENCH_NO_PEER : 0;
    snprintf(statements, sizeof statements, tables, tenants);
    if (tenants > TENANTS_MAX || !postgres_do(port, statements))
        return 0;
    for (unsigned i = 0; i < tenants; i++) {
        snprintf(query, sizeof query, "EXECUTE bill(%u)", i + 1);
        asks[i] = (pawl_bytes){texts[i], postgres_query(texts[i], sizeof texts[i], query)};
    }
    struct load load = {
        .speech = SPEAK_POSTGRES,
        .port = port,
        .clients = clients,
        .hellos = {postgres_hello(), {prepare, postgres_query(prepare, sizeof prepare, prepared[way])}},
        .ask_count = tenants,
        .asks = asks,
        .expected = "INSERT 0 1",
        .duration = duration};
    if (way == NUMBERS_BY_MAX)
        load.again = "23505"; /* unique_violation */
    if (way == NUMBERS_BY_COUNTER) {
        load.talk = talk_counter;
        load.arg = &tenants;
        load.expected = NULL;
    }
    double rate = load_rate(&load, NULL);
    return postgres_do(port, count) ? rate : 0;
}
