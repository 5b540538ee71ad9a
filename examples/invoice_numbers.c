/* invoice_numbers: gap-free invoice numbers for many tenants, from several threads, over one sequencer.
 *
 * The "database" is one plain file of this program's own: a line an event, appended and synced. It is the log,
 * and for the storage of the numbers it keeps a second file that is replaced as a whole. A child process
 * numbers invoices until it is killed with SIGKILL in the middle of its work; another one goes on where the log
 * ends; and so on. At the end every line of the log is read and counted.
 *
 *     threads ── request ──► mailbox ──► shard: start, next, stage ... one write, one fdatasync, flush
 *
 * Run: invoice_numbers [DIR] [KILLS]. Prints what it found, and fails if there is a gap or a double. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pawl/sequencer.h>

enum { TENANTS = 50, THREADS = 4, SHOP = 1, INVOICE = 1, WAITING_MAX = 64, LINE = 60, FIRST_INVOICE = 1000 };

/* --- The database: DIR/log has lines "offset tenant invoice", DIR/stored has "last offset" and a number a
 * tenant. */

struct database {
    const char *dir;
    int log;
    uint64_t stored[TENANTS + 1];
    uint64_t stored_last;
    pthread_mutex_t lock; /* a number may be read while others are written */
};

static FILE *open_file(const struct database *db, const char *name, const char *mode)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", db->dir, name);
    return fopen(path, mode);
}

static int read_numbers(void *ctx, uint64_t wsid, const uint16_t *seqs, size_t count, uint64_t *ret_numbers,
                        pawl_error *error)
{
    struct database *db = ctx;
    pthread_mutex_lock(&db->lock);
    ret_numbers[0] = db->stored[wsid]; /* a shop has one sequence only */
    pthread_mutex_unlock(&db->lock);
    return PAWL_OK;
}

static int read_last_offset(void *ctx, uint64_t *ret_last, pawl_error *error)
{
    *ret_last = ((struct database *)ctx)->stored_last;
    return PAWL_OK;
}

/* A new file beside the old one, then renamed over it: all at once, or not at all. */
static int write_values_and_offset(void *ctx, const pawl_sequence_row *rows, size_t count, uint64_t last,
                                   pawl_error *error)
{
    struct database *db = ctx;
    char from[4096];
    char to[4096];
    snprintf(from, sizeof from, "%s/stored.new", db->dir);
    snprintf(to, sizeof to, "%s/stored", db->dir);
    pthread_mutex_lock(&db->lock);
    for (size_t i = 0; i < count; i++)
        db->stored[rows[i].wsid] = rows[i].number;
    db->stored_last = last;
    pthread_mutex_unlock(&db->lock);
    FILE *file = fopen(from, "w");
    if (!file)
        return PAWL_EIO;
    fprintf(file, "%llu\n", (unsigned long long)last);
    for (int t = 1; t <= TENANTS; t++)
        fprintf(file, "%llu\n", (unsigned long long)db->stored[t]);
    bool good = fflush(file) == 0 && fdatasync(fileno(file)) == 0;
    good = fclose(file) == 0 && good && rename(from, to) == 0;
    return good ? PAWL_OK : PAWL_EIO;
}

static int scan_log(void *ctx, uint64_t after, pawl_sequence_batcher *batcher, uint64_t *ret_last,
                    pawl_error *error)
{
    FILE *file = open_file(ctx, "log", "r");
    unsigned long long offset;
    unsigned long long tenant;
    unsigned long long invoice;
    int status = PAWL_OK;
    *ret_last = 0;
    while (file && status == PAWL_OK && fscanf(file, "%llu %llu %llu\n", &offset, &tenant, &invoice) == 3) {
        pawl_sequence_number number = {INVOICE, invoice};
        pawl_sequence_event event = {offset, tenant, SHOP, &number, 1};
        *ret_last = offset;
        if (offset > after)
            status = batcher->take(batcher, &event, 1);
    }
    if (file)
        fclose(file);
    return status;
}

static void database_open(struct database *db, const char *dir)
{
    char path[4096];
    *db = (struct database){.dir = dir};
    pthread_mutex_init(&db->lock, NULL);
    snprintf(path, sizeof path, "%s/log", dir);
    db->log = open(path, O_RDWR | O_CREAT | O_APPEND, 0644);
    if (db->log < 0) {
        perror(path);
        exit(1);
    }
    /* A kill may cut the last line in the middle. It was never acknowledged: remove it. */
    off_t size = lseek(db->log, 0, SEEK_END);
    char last;
    while (size > 0 && pread(db->log, &last, 1, size - 1) == 1 && last != '\n')
        size--;
    if (ftruncate(db->log, size) || fdatasync(db->log))
        exit(1);
    FILE *stored = open_file(db, "stored", "r");
    unsigned long long number;
    if (stored && fscanf(stored, "%llu", &number) == 1)
        db->stored_last = number;
    for (int t = 1; stored && t <= TENANTS && fscanf(stored, "%llu", &number) == 1; t++)
        db->stored[t] = number;
    if (stored)
        fclose(stored);
}

/* --- The mailbox: a task on the shard serves all requests that wait, with one sync. */

struct request {
    uint64_t tenant;
    uint64_t invoice;
    int status;
};

struct office {
    pawl_env *env;
    pawl_sequencer *sequencer;
    struct database db;
    pthread_mutex_t lock;
    struct request *waiting[WAITING_MAX];
    size_t count;
};

/* On the shard. */
static void serve(void *arg)
{
    struct office *office = arg;
    struct request *batch[WAITING_MAX];
    char lines[WAITING_MAX * LINE];
    size_t size = 0;
    uint64_t last = 0;
    pthread_mutex_lock(&office->lock);
    size_t count = office->count;
    memcpy(batch, office->waiting, count * sizeof batch[0]);
    office->count = 0;
    pthread_mutex_unlock(&office->lock);

    for (size_t i = 0; i < count; i++) {
        struct request *r = batch[i];
        uint64_t offset;
        r->status = pawl_sequencer_start(office->sequencer, SHOP, r->tenant, &offset);
        if (r->status)
            continue;
        r->status = pawl_sequencer_next(office->sequencer, INVOICE, &r->invoice);
        if (r->status) {
            pawl_sequencer_cancel(office->sequencer);
            continue;
        }
        pawl_sequencer_stage(office->sequencer);
        size +=
            (size_t)snprintf(lines + size, sizeof lines - size, "%llu %llu %llu\n", (unsigned long long)offset,
                             (unsigned long long)r->tenant, (unsigned long long)r->invoice);
        last = offset;
    }
    if (size == 0)
        return;
    if (write(office->db.log, lines, size) == (ssize_t)size && fdatasync(office->db.log) == 0)
        pawl_sequencer_flush(office->sequencer, last);
    else
        abort(); /* nobody knows what the file holds: the next process will read it */
}

static int number_invoice(struct office *office, uint64_t tenant, uint64_t *ret_invoice)
{
    struct request request = {.tenant = tenant, .status = PAWL_EBUSY};
    pthread_mutex_lock(&office->lock);
    bool room = office->count < WAITING_MAX;
    if (room)
        office->waiting[office->count++] = &request;
    pthread_mutex_unlock(&office->lock);
    if (room)
        pawl_env_run(office->env, 0, serve, office);
    if (request.status == PAWL_OK)
        *ret_invoice = request.invoice;
    return request.status;
}

/* --- A process that works until it is killed, telling its parent of each acknowledged invoice. */

struct clerk {
    struct office *office;
    int report;
    unsigned seed;
};

static void *work(void *arg)
{
    struct clerk *clerk = arg;
    for (;;) {
        uint64_t invoice;
        clerk->seed = clerk->seed * 1103515245 + 12345;
        if (number_invoice(clerk->office, clerk->seed / 65536 % TENANTS + 1, &invoice) == PAWL_OK
            && write(clerk->report, "i", 1) != 1)
            return NULL;
    }
}

static void run_office(const char *dir, int report)
{
    static const pawl_sequence sequences[] = {{INVOICE, FIRST_INVOICE, 0}};
    static const pawl_workspace_kind kinds[] = {{SHOP, sequences, 1}};
    static struct office office;
    pawl_error error;
    database_open(&office.db, dir);
    pthread_mutex_init(&office.lock, NULL);
    pawl_sequencer_options options = {
        .storage = {&office.db, read_numbers, read_last_offset, write_values_and_offset, scan_log},
        .kinds = kinds,
        .kind_count = 1,
        .kinds_elsewhere = true, /* there is only one kind, and the storage has one number a tenant */
    };
    int status = pawl_env_open(NULL, &office.env, &error);
    options.env = office.env;
    if (status == PAWL_OK)
        status = pawl_sequencer_new(&options, &office.sequencer, &error);
    if (status == PAWL_OK)
        status = pawl_sequencer_wait(office.sequencer, 10 * PAWL_SECOND, &error);
    if (status) {
        fprintf(stderr, "cannot begin: %s\n", error.text);
        exit(1);
    }
    pthread_t threads[THREADS];
    struct clerk clerks[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        clerks[i] = (struct clerk){&office, report, i * 7919 + (unsigned)getpid()};
        pthread_create(&threads[i], NULL, work, &clerks[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* --- The parent. */

/* How many invoices the child reported before it was killed, in the middle of its work. */
static uint64_t run_and_kill(const char *dir, uint64_t kill_after)
{
    int pipes[2];
    char bytes[256];
    uint64_t reported = 0;
    if (pipe(pipes))
        exit(1);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(pipes[0]);
        run_office(dir, pipes[1]);
        _exit(1);
    }
    close(pipes[1]);
    for (ssize_t n; (n = read(pipes[0], bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR);) {
        reported += n > 0 ? (uint64_t)n : 0;
        if (reported >= kill_after)
            kill(child, SIGKILL);
    }
    close(pipes[0]);
    waitpid(child, NULL, 0);
    return reported;
}

/* Every line of the log: offsets and each tenant's invoices without a gap and without a double. */
static bool check(const char *dir, uint64_t reported)
{
    struct database db;
    uint64_t next[TENANTS + 1];
    uint64_t count = 0;
    unsigned long long offset;
    unsigned long long tenant;
    unsigned long long invoice;
    bool good = true;
    for (int t = 0; t <= TENANTS; t++)
        next[t] = FIRST_INVOICE;
    database_open(&db, dir);
    FILE *file = open_file(&db, "log", "r");
    while (file && good && fscanf(file, "%llu %llu %llu\n", &offset, &tenant, &invoice) == 3) {
        good = offset == ++count && tenant >= 1 && tenant <= TENANTS && invoice == next[tenant]++;
        if (!good)
            printf("line %llu: offset %llu, tenant %llu, invoice %llu\n", (unsigned long long)count, offset,
                   tenant, invoice);
    }
    if (file)
        fclose(file);
    close(db.log);
    printf("%llu invoices of %d tenants in the log, %llu of them acknowledged before a kill\n",
           (unsigned long long)count, TENANTS, (unsigned long long)reported);
    for (int t = 1; t <= 3; t++)
        printf("  tenant %d: %d to %llu\n", t, FIRST_INVOICE, (unsigned long long)next[t] - 1);
    return good && count >= reported && reported > 0;
}

int main(int argc, char **argv)
{
    char made[] = "/tmp/invoice_numbers.XXXXXX";
    const char *dir = argc > 1 ? argv[1] : mkdtemp(made);
    unsigned long kills = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;
    uint64_t reported = 0;
    if (!dir)
        return 1;
    for (unsigned long i = 0; i < kills; i++) {
        uint64_t now = run_and_kill(dir, 100 + 37 * i);
        printf("run %lu: %llu invoices, then kill -9\n", i + 1, (unsigned long long)now);
        reported += now;
    }
    bool good = check(dir, reported);
    printf("%s\n", good ? "no gap, no double" : "NOT GAP-FREE");
    if (argc <= 1) {
        static const char *const names[] = {"log", "stored", "stored.new"};
        char path[4096];
        for (int i = 0; i < 3; i++) {
            snprintf(path, sizeof path, "%s/%s", dir, names[i]);
            unlink(path);
        }
        rmdir(dir);
    }
    return good ? 0 : 1;
}
