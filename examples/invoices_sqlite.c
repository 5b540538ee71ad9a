/* invoices_sqlite: gap-free invoice numbers in a database of your own.
 *
 * The invoices are rows of a table in SQLite. That table is the log: an invoice's number is used when its row
 * is committed, and not before. A second table is the sequence storage, from which the sequencer begins. Kill
 * the program at any moment, as often as you like: each tenant's invoices are 1, 2, 3, ...
 *
 *     main ── pawl_env_run ──► shard: start, next, stage ... BEGIN, INSERT ... COMMIT, flush    connection "mine"
 *                              pool:  the sequencer reads and writes its storage               connection "its"
 *
 * There are two connections, because the storage is written in the background: on one connection that write
 * would fall into whatever transaction is open for the invoices.
 *
 * Run: invoices_sqlite FILE COUNT. Prints "tenant number" of each invoice, once it is committed. */
#include <stdio.h>
#include <stdlib.h>

#include <sqlite3.h>

#include <pawl/sequencer.h>

enum { TENANT = 1, INVOICE = 1, TENANTS = 7, BATCH = 10 };

static const char schema[] = "PRAGMA journal_mode = WAL;"
                             "CREATE TABLE IF NOT EXISTS invoice (offset INTEGER PRIMARY KEY, tenant INTEGER,"
                             "    number INTEGER, cents INTEGER, UNIQUE (tenant, number));"
                             "CREATE TABLE IF NOT EXISTS sequence (tenant INTEGER, seq INTEGER, number INTEGER,"
                             "    PRIMARY KEY (tenant, seq)) WITHOUT ROWID;";

/* Turn SQLite's failure into one of Pawl's, with SQLite's words. */
static int failed(sqlite3 *db, pawl_error *error)
{
    int code = sqlite3_errcode(db) == SQLITE_CORRUPT ? PAWL_ECORRUPT : PAWL_EIO;
    return pawl_error_set(error, code, "%s", sqlite3_errmsg(db));
}

/* Run one statement with up to four numbers, and get its first column, if it has a row. */
static int run(sqlite3 *db, const char *sql, const uint64_t numbers[4], uint64_t *ret, pawl_error *error)
{
    sqlite3_stmt *statement;
    int status = PAWL_OK;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        return failed(db, error);
    for (int i = 0; i < sqlite3_bind_parameter_count(statement); i++)
        sqlite3_bind_int64(statement, i + 1, (sqlite3_int64)numbers[i]);
    int step = sqlite3_step(statement);
    if (step == SQLITE_ROW && ret)
        *ret = (uint64_t)sqlite3_column_int64(statement, 0);
    else if (step != SQLITE_ROW && step != SQLITE_DONE)
        status = failed(db, error);
    sqlite3_finalize(statement);
    return status;
}

/* --- The sequencer's storage. The row (0, 0) of the storage has the last offset. */

static int read_numbers(void *its, uint64_t wsid, const uint16_t *seqs, size_t count, uint64_t *ret_numbers,
                        pawl_error *error)
{
    int status = PAWL_OK;
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        ret_numbers[i] = 0;
        status = run(its, "SELECT number FROM sequence WHERE tenant = ? AND seq = ?",
                     (uint64_t[4]){wsid, seqs[i]}, &ret_numbers[i], error);
    }
    return status;
}

static int read_last_offset(void *its, uint64_t *ret_last, pawl_error *error)
{
    static const uint16_t offset = 0;
    return read_numbers(its, 0, &offset, 1, ret_last, error);
}

static int write_values_and_offset(void *its, const pawl_sequence_row *rows, size_t count, uint64_t last,
                                   pawl_error *error)
{
    static const char put[] = "INSERT OR REPLACE INTO sequence VALUES (?, ?, ?)";
    int status = run(its, "BEGIN IMMEDIATE", NULL, NULL, error);
    for (size_t i = 0; i < count && status == PAWL_OK; i++)
        status = run(its, put, (uint64_t[4]){rows[i].wsid, rows[i].seq, rows[i].number}, NULL, error);
    if (status == PAWL_OK)
        status = run(its, put, (uint64_t[4]){0, 0, last}, NULL, error);
    if (status == PAWL_OK)
        status = run(its, "COMMIT", NULL, NULL, error);
    if (status)
        run(its, "ROLLBACK", NULL, NULL, &(pawl_error){0});
    return status;
}

static int scan_log(void *its, uint64_t after, pawl_sequence_batcher *batcher, uint64_t *ret_last,
                    pawl_error *error)
{
    static const char read[] = "SELECT offset, tenant, number FROM invoice WHERE offset > ? ORDER BY offset";
    sqlite3_stmt *statement;
    int step = SQLITE_DONE;
    *ret_last = 0; /* of the whole log, not only of what is new */
    int status = run(its, "SELECT max(offset) FROM invoice", NULL, ret_last, error);
    if (status)
        return status;
    if (sqlite3_prepare_v2(its, read, -1, &statement, NULL) != SQLITE_OK)
        return failed(its, error);
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)after);
    while (status == PAWL_OK && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        pawl_sequence_number number = {INVOICE, (uint64_t)sqlite3_column_int64(statement, 2)};
        pawl_sequence_event event = {.offset = (uint64_t)sqlite3_column_int64(statement, 0),
                                     .wsid = (uint64_t)sqlite3_column_int64(statement, 1),
                                     .kind = TENANT,
                                     .numbers = &number,
                                     .count = 1};
        status = batcher->take(batcher, &event, 1);
    }
    if (status == PAWL_OK && step != SQLITE_DONE)
        status = failed(its, error);
    sqlite3_finalize(statement);
    return status;
}

/* --- Your own program: invoices in one transaction, numbered. */

struct batch {
    pawl_sequencer *sequencer;
    sqlite3 *mine;
    uint64_t tenants[BATCH], numbers[BATCH];
    int status;
    pawl_error error;
};

/* Take all numbers before the transaction begins: next may read the storage, which must not wait for it. */
static int take_numbers(struct batch *b, uint64_t offsets[BATCH])
{
    for (int i = 0; i < BATCH; i++) {
        int status = pawl_sequencer_start(b->sequencer, TENANT, b->tenants[i], &offsets[i]);
        if (status == PAWL_OK)
            status = pawl_sequencer_next(b->sequencer, INVOICE, &b->numbers[i]);
        if (status) {
            b->error = *pawl_sequencer_error(b->sequencer);
            return status;
        }
        pawl_sequencer_stage(b->sequencer);
    }
    return PAWL_OK;
}

/* All invoices of the batch are committed, or none is. */
static int insert_all(struct batch *b, const uint64_t offsets[BATCH])
{
    int status = run(b->mine, "BEGIN IMMEDIATE", NULL, NULL, &b->error);
    for (int i = 0; i < BATCH && status == PAWL_OK; i++)
        status = run(b->mine, "INSERT INTO invoice VALUES (?, ?, ?, ?)",
                     (uint64_t[4]){offsets[i], b->tenants[i], b->numbers[i], 995}, NULL, &b->error);
    if (status == PAWL_OK)
        status = run(b->mine, "COMMIT", NULL, NULL, &b->error);
    if (status)
        run(b->mine, "ROLLBACK", NULL, NULL, &(pawl_error){0});
    return status;
}

/* On the shard. */
static void add_batch(void *arg)
{
    struct batch *b = arg;
    uint64_t offsets[BATCH];
    b->status = take_numbers(b, offsets);
    if (b->status == PAWL_OK)
        b->status = insert_all(b, offsets);
    if (b->status == PAWL_OK)
        pawl_sequencer_flush(b->sequencer, offsets[BATCH - 1]);
    else
        pawl_sequencer_actualize(b->sequencer); /* the table says whether they were committed after all */
}

static int number_invoices(const pawl_sequencer_options *options, struct batch *b, unsigned long count)
{
    while (count > 0) {
        for (int i = 0; i < BATCH; i++)
            b->tenants[i] = (uint64_t)rand() % TENANTS + 1;
        int status = pawl_env_run(options->env, 0, add_batch, b);
        if (status == PAWL_OK && b->status == PAWL_EBUSY) { /* the sequencer reads the table: wait until it is done */
            status = pawl_sequencer_wait(b->sequencer, 10 * PAWL_SECOND, &b->error);
            b->status = PAWL_OK;
        } else if (status == PAWL_OK && b->status == PAWL_OK) {
            for (int i = 0; i < BATCH; i++)
                printf("%llu %llu\n", (unsigned long long)b->tenants[i], (unsigned long long)b->numbers[i]);
            fflush(stdout);
            count -= count < BATCH ? count : BATCH;
        }
        if (status || b->status)
            return status ? status : b->status;
    }
    return PAWL_OK;
}

static sqlite3 *connect(const char *file)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL)
        || sqlite3_busy_timeout(db, 10000) || sqlite3_exec(db, schema, NULL, NULL, NULL)
        || sqlite3_exec(db, "PRAGMA synchronous = FULL", NULL, NULL, NULL)) {
        fprintf(stderr, "%s: %s\n", file, sqlite3_errmsg(db));
        exit(1);
    }
    return db;
}

int main(int argc, char **argv)
{
    static const pawl_sequence sequences[] = {{.seq = INVOICE, .first = 1}};
    static const pawl_workspace_kind kinds[] = {{TENANT, sequences, 1}};
    if (argc != 3) {
        fprintf(stderr, "usage: invoices_sqlite FILE COUNT\n");
        return 2;
    }
    sqlite3 *its = connect(argv[1]);
    struct batch batch = {.mine = connect(argv[1])};
    pawl_sequencer_options options = {
        .storage = {its, read_numbers, read_last_offset, write_values_and_offset, scan_log},
        .kinds = kinds,
        .kind_count = 1,
    };
    int status = pawl_env_open(NULL, &options.env, &batch.error);
    if (status == PAWL_OK)
        status = pawl_sequencer_new(&options, &batch.sequencer, &batch.error);
    if (status == PAWL_OK)
        status = pawl_sequencer_wait(batch.sequencer, 10 * PAWL_SECOND, &batch.error);
    if (status == PAWL_OK)
        status = number_invoices(&options, &batch, strtoul(argv[2], NULL, 10));
    if (status)
        fprintf(stderr, "%s: %s\n", pawl_status_text(status), batch.error.text);
    pawl_sequencer_free(batch.sequencer);
    pawl_env_close(options.env);
    sqlite3_close(batch.mine);
    sqlite3_close(its);
    return status ? 1 : 0;
}
