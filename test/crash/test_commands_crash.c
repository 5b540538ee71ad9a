/* test_commands_crash.c: kill -9, fifty times, in the middle of commands.
 *
 * A process sends commands from several threads, each command with a key, and notes every answer in a file
 * before it sends the next one. It is killed at a random moment, and the next process goes on: each thread
 * first repeats the command whose answer it does not know. A command's invoice number can be foretold: the n-th
 * command of a thread is the (n / WORKSPACES + 1)-th of its workspace. So every answer says by itself whether
 * anything was lost, or done twice. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <pawl/pawl.h>

#include "test/lib/child.h"
#include "test/lib/dir.h"
#include "test/lib/event.h"

#define THREADS    4
#define WORKSPACES 8 /* of each thread */

static const char schema[] = "{\"schema\": 1, \"package\": \"t\", \"workspaces\": {\"tenant\": {\"sequences\": "
                             "{\"invoice\": {\"first\": 1}}}},"
                             " \"types\": {\"Invoice\": {\"kind\": \"WDoc\", \"fields\": {\"number\": "
                             "{\"type\": \"int64\", \"sequence\": \"invoice\"},"
                             "   \"command\": {\"type\": \"int64\"}}}},"
                             " \"commands\": {\"Bill\": {\"records\": [\"Invoice\"]}},"
                             " \"entities\": {\"Total\": {\"key\": [\"k\"], \"fields\": {\"k\": {\"type\": "
                             "\"int64\"}, \"n\": {\"type\": \"int64\"}}}},"
                             " \"projectors\": {\"count\": {\"sync\": true, \"on\": [\"Bill\"], \"do\": "
                             "[{\"upsert\": \"Total\", \"key\": {\"k\": \"1\"},"
                             "   \"set\": {\"n\": \"coalesce(n, 0) + 1\"}}]}}}";

static char dir[256];

/* A thread's notes: "n number\n" for every answer. */
struct worker {
    pthread_t thread;
    pawl_engine *engine;
    unsigned index;
    int notes;
    uint64_t next; /* command */
    bool failed;
};

static uint64_t workspace_of(unsigned thread, uint64_t n)
{
    return 1 + thread * WORKSPACES + n % WORKSPACES;
}

static bool see_number(void *arg, const pawl_row *record)
{
    int64_t number = 0;
    (void)pawl_row_int64(record, "number", &number, NULL);
    *(int64_t *)arg = number;
    return true;
}

static int bill(struct worker *w, pawl_request *r, pawl_error *error)
{
    char key[32];
    uint64_t wsid = workspace_of(w->index, w->next);
    snprintf(key, sizeof key, "%u-%" PRIu64, w->index, w->next);
    pawl_request_begin(r, wsid, "t.Bill");
    pawl_request_record(r, 1, "t.Invoice");
    pawl_request_set_int64(r, "command", (int64_t)w->next);
    pawl_request_key(r, key);
    int status = pawl_command(w->engine, r, NULL, error);
    int64_t number = 0;
    status = status ? status
                    : pawl_record_read(w->engine, wsid, "t.Invoice", pawl_request_id(r, 1), NULL, see_number,
                                       &number, error);
    if (status != PAWL_OK)
        return status;
    char line[64];
    int size = snprintf(line, sizeof line, "%" PRIu64 " %" PRId64 "\n", w->next, number);
    return write(w->notes, line, (size_t)size) == size ? PAWL_OK : PAWL_EIO;
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    pawl_request *r;
    pawl_error error = {0};
    int status = pawl_request_new(w->engine, &r);
    for (uint64_t i = 0; status == PAWL_OK && i < WORKSPACES; i++) {
        status = pawl_workspace_create(w->engine, r, workspace_of(w->index, i), "t.tenant", NULL, &error);
        status = status == PAWL_EEXISTS ? PAWL_OK : status;
    }
    for (; status == PAWL_OK; w->next++)
        status = bill(w, r, &error);
    fprintf(stderr, "# thread %u: %s\n", w->index, error.text);
    w->failed = true;
    _exit(3); /* it never ends by itself */
}

/* How many whole lines a thread has noted: a kill may cut the last one, which then is not an answer that was
 * seen, and is cut off. */
static uint64_t noted(int file)
{
    char line[64];
    uint64_t count = 0;
    off_t whole = 0;
    FILE *stream = fdopen(dup(file), "r");
    rewind(stream);
    while (fgets(line, sizeof line, stream) && strchr(line, '\n')) {
        whole += (off_t)strlen(line);
        count++;
    }
    fclose(stream);
    if (ftruncate(file, whole) != 0)
        abort();
    lseek(file, 0, SEEK_END);
    return count;
}

static int work(void)
{
    static struct worker workers[THREADS];
    char path[300];
    pawl_error error = {0};
    pawl_engine *engine;
    pawl_options options = {.partitions = 4, .shards = 2};
    snprintf(path, sizeof path, "%s/data", dir);
    int status = pawl_open(path, &options, &engine, &error);
    status = status ? status : pawl_schema_apply(engine, schema, NULL, &error);
    if (status != PAWL_OK) {
        fprintf(stderr, "# %s\n", error.text);
        return 2;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        snprintf(path, sizeof path, "%s/notes.%u", dir, i);
        workers[i] = (struct worker){
            .engine = engine, .index = i, .notes = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
        CHECK(workers[i].notes >= 0);
        workers[i].next = noted(workers[i].notes);
        CHECK(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) == 0);
    }
    for (;;)
        pause();
}

static off_t notes_bytes(void)
{
    char path[300];
    struct stat st;
    off_t bytes = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        snprintf(path, sizeof path, "%s/notes.%u", dir, i);
        bytes += stat(path, &st) == 0 ? st.st_size : 0;
    }
    return bytes;
}

/* Every other life ends wherever it is by then, and be it in opening; the rest not before an answer has come,
 * however slow the machine is. */
static void kill_in_the_middle(unsigned round, uint64_t *random)
{
    sigset_t ended;
    off_t before = notes_bytes();
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ended, NULL);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(work());
    struct timespec time = {.tv_nsec = (long)(10 + test_random(random) % 200) * 1000000};
    bool alone = false; /* it does not end by itself, unless something is wrong */
    while (!alone && round % 2 && notes_bytes() == before)
        alone = sigtimedwait(&ended, NULL, &(struct timespec){.tv_nsec = 1000000}) == SIGCHLD;
    if (!alone)
        (void)sigtimedwait(&ended, NULL, &time);
    kill(child, SIGKILL);
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    (void)sigtimedwait(&ended, NULL, &(struct timespec){0}); /* this one's, which is known by now */
    if (!WIFSIGNALED(how))
        print_error("round %u: the process ended by itself: %d\n", round, WEXITSTATUS(how));
    assert_true(WIFSIGNALED(how));
}

/* Every answer that was noted is the one that could be foretold. */
static uint64_t check_notes(unsigned thread)
{
    char path[300], line[64];
    uint64_t count = 0;
    snprintf(path, sizeof path, "%s/notes.%u", dir, thread);
    FILE *notes = fopen(path, "r");
    if (!notes)
        return 0; /* it was never reached */
    while (fgets(line, sizeof line, notes) && strchr(line, '\n')) {
        char *rest;
        uint64_t n = strtoull(line, &rest, 10), number = strtoull(rest, NULL, 10);
        assert_int_equal(n, count);
        assert_int_equal(number, n / WORKSPACES + 1);
        count++;
    }
    fclose(notes);
    return count;
}

static bool count_event(void *arg, const pawl_event *event)
{
    *(uint64_t *)arg += event_is(event, "t.Bill");
    return true;
}

static int check_state(void)
{
    char path[300];
    pawl_error error = {0};
    pawl_engine *engine;
    pawl_options options = {.must_exist = true};
    uint64_t answered = 0, events = 0;
    snprintf(path, sizeof path, "%s/data", dir);
    CHECK(pawl_open(path, &options, &engine, &error) == PAWL_OK);
    for (unsigned i = 0; i < THREADS; i++)
        answered += check_notes(i);
    for (uint32_t p = 0; p < pawl_partitions(engine); p++)
        CHECK(pawl_events_read(engine, (uint16_t)p, 1, SIZE_MAX, count_event, &events, NULL, &error)
              == PAWL_OK);
    CHECK(pawl_close(engine) == PAWL_OK);
    fprintf(stderr, "# %" PRIu64 " answered, %" PRIu64 " events\n", answered, events);
    CHECK(answered > 0 && events >= answered && events <= answered + THREADS);

    pawl_replay_options replay = {.dir = path};
    pawl_state_report report;
    CHECK(pawl_replay(&replay, &report, &error) == PAWL_OK);
    fprintf(stderr, "# %s\n", report.live.first.text);
    CHECK(report.live.differences == 0 && report.live.behind == 0 && report.live.compared == 4);
    return 0;
}

TEST(nothing_is_lost_or_done_twice_by_fifty_kills)
{
    unsigned rounds = getenv("PAWL_SOAK") ? 1000 : 50;
    uint64_t random = test_seed(20);
    test_dir_make(dir, sizeof dir);
    for (unsigned i = 0; i < rounds; i++)
        kill_in_the_middle(i, &random);
    assert_int_equal(in_child(check_state), 0);
    test_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {RUN(nothing_is_lost_or_done_twice_by_fifty_kills)};
    return TEST_MAIN(tests);
}
