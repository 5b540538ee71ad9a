/* Entries in the middle of a stream, on a real broker: found without reading all before them, among records of
 * others that do not count. PAWL_KAFKA names the broker. */
#include <unistd.h>

#include <librdkafka/rdkafka.h>

#include "adapter/kafka/kafka.h"
#include "adapter/kafka/record.h"
#include "adapter/uv/env.h"
#include "base/latch.h"
#include "test/lib/test.h"

#define BATCH 500
#define LARGE 9000 /* the offset of an entry in fragments */

static const pawl_stream stream = {.kind = PAWL_STREAM_RAW, .partition = 1};
static char url[1400], topic[128];
static struct uv_env *env;
static rd_kafka_t *outsider;
static uint64_t last; /* of the stream */

static pawl_log *open_log(void)
{
    pawl_error error = {0};
    pawl_log *log = NULL;
    const struct kafka_log_options options = {.url = url, .env = uv_env_port(env)};
    if (kafka_log_open(&options, &log, &error) != PAWL_OK)
        fail_msg("%s", error.text);
    return log;
}

static void claim_done(pawl_claim *claim)
{
    latch_set(claim->arg);
}

static uint64_t claim(pawl_log *log, uint64_t *ret_next)
{
    struct latch latch;
    pawl_error error = {0};
    pawl_claim request = {.stream = stream, .done = claim_done, .arg = &latch, .error = &error};
    latch_init(&latch);
    assert_ok(pawl_log_claim(log, &request));
    latch_wait(&latch);
    if (request.status != PAWL_OK)
        fail_msg("%s", error.text);
    *ret_next = request.next;
    return request.epoch;
}

static void append_done(pawl_append *append)
{
    latch_set(append->arg);
}

/* The body of an entry says who it is; a large one is all one letter. */
static pawl_bytes body_of(uint64_t offset, uint64_t epoch, char *text)
{
    static char large[KAFKA_BODY_BYTES_MAX * 2 + 100];
    if (offset == LARGE) {
        memset(large, 'x', sizeof large);
        return (pawl_bytes){large, sizeof large};
    }
    int size = snprintf(text, 48, "entry %" PRIu64 " of epoch %" PRIu64, offset, epoch);
    return (pawl_bytes){text, (size_t)size};
}

static void append_batch(pawl_log *log, uint64_t epoch, uint64_t from, size_t count)
{
    static pawl_append_entry entries[BATCH];
    static char texts[BATCH][48];
    struct latch latch;
    pawl_error error = {0};
    for (size_t i = 0; i < count; i++)
        entries[i] = (pawl_append_entry){.entry = {.stream = stream,
                                                   .epoch = epoch,
                                                   .offset = from + i,
                                                   .body = body_of(from + i, epoch, texts[i])}};
    pawl_append request = {
        .entries = entries, .count = count, .done = append_done, .arg = &latch, .error = &error};
    latch_init(&latch);
    assert_ok(pawl_log_append(log, &request));
    latch_wait(&latch);
    if (request.status != PAWL_OK)
        fail_msg("%s", error.text);
}

static void put(struct kafka_record record)
{
    uint8_t bytes[KAFKA_RECORD_HEADER + 64];
    kafka_record_encode(&record, kafka_record_seed(topic, stream.partition), bytes);
    rd_kafka_topic_t *to = rd_kafka_topic_new(outsider, topic, NULL);
    assert_int_equal(rd_kafka_produce(to, stream.partition, RD_KAFKA_MSG_F_COPY, bytes,
                                      KAFKA_RECORD_HEADER + record.body.size, NULL, 0, NULL),
                     0);
    rd_kafka_topic_destroy(to);
}

/* What the owner before had in flight when it was replaced, again and again, and claims that came too late. first: the
 * offset with which this reign began. */
static void put_noise(uint64_t epoch, uint64_t first)
{
    if (epoch < 2)
        return;
    for (uint64_t i = 0; i < 300; i++)
        put((struct kafka_record){
            .head = {.kind = CLAIM_KIND_EVENT, .epoch = epoch - 1, .offset = first + i, .chain = i},
            .fragments = 1,
            .body = text_bytes("a zombie's")});
    put((struct kafka_record){.head = {.kind = CLAIM_KIND_CLAIM, .epoch = epoch, .node = 7, .nonce = epoch}});
    put((struct kafka_record){
        .head = {.kind = CLAIM_KIND_CLAIM, .epoch = epoch - 1, .node = 7, .nonce = epoch}});
    assert_int_equal(rd_kafka_flush(outsider, 120000), 0);
}

/* Reigns of different lengths, and among them one without an entry. */
static const size_t reigns[] = {6000, 500, 0, 7000, 9000, 1500};
#define REIGNS (sizeof reigns / sizeof reigns[0])

static uint64_t epoch_of(uint64_t offset)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < REIGNS; i++)
        if ((sum += reigns[i]) >= offset)
            return i + 1;
    fail_msg("no entry %" PRIu64, offset);
    return 0;
}

static void write_stream(void)
{
    pawl_log *logs[2] = {open_log(), open_log()};
    for (size_t r = 0; r < REIGNS; r++) {
        uint64_t next, epoch = claim(logs[r % 2], &next);
        assert_int_equal(epoch, r + 1);
        assert_int_equal(next, last + 1);
        uint64_t first = next;
        for (size_t done = 0; done < reigns[r]; done += BATCH) {
            put_noise(epoch, first);
            append_batch(logs[r % 2], epoch, last + 1, BATCH);
            last += BATCH;
        }
    }
    for (int i = 0; i < 2; i++)
        assert_ok(pawl_log_close(logs[i]));
}

struct reading {
    uint64_t next;
    pawl_place place; /* of the last */
    struct latch latch;
};

static bool check_entry(struct reading *r, const pawl_entry *entry, pawl_place place)
{
    char text[48];
    assert_int_equal(entry->offset, r->next);
    uint64_t epoch = epoch_of(entry->offset);
    pawl_bytes body = body_of(entry->offset, epoch, text);
    assert_int_equal(entry->epoch, epoch);
    assert_int_equal(entry->body.size, body.size);
    assert_memory_equal(entry->body.data, body.data, body.size);
    r->next++;
    r->place = place;
    return true;
}

static bool visit(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    return check_entry(read->arg, entry, place);
}

static void read_done(pawl_read *read)
{
    latch_set(&((struct reading *)read->arg)->latch);
}

/* Read, on this thread or on the log's, and check what comes. */
static void read_some(pawl_log *log, uint64_t from, uint64_t limit, pawl_place at, bool alone,
                      struct reading *ret)
{
    pawl_error error = {0};
    *ret = (struct reading){.next = from};
    latch_init(&ret->latch);
    pawl_read read = {.stream = stream,
                      .from = from,
                      .limit = limit,
                      .at = at,
                      .alone = alone,
                      .visit = visit,
                      .done = read_done,
                      .arg = ret,
                      .error = &error};
    int status = pawl_log_read(log, &read);
    if (status == PAWL_OK)
        latch_wait(&ret->latch);
    if (read.status != PAWL_OK)
        fail_msg("%s", error.text);
    uint64_t end = limit < last + 1 - from ? from + limit : last + 1;
    assert_int_equal(read.next, end);
    assert_int_equal(ret->next, end);
}

static struct kafka_figures figures_of(pawl_log *log)
{
    struct kafka_figures figures;
    kafka_log_figures(log, &figures);
    return figures;
}

TEST(an_entry_in_the_middle_is_found_by_a_log_that_knows_nothing)
{
    uint64_t random = test_seed(1);
    struct reading reading;
    int lost = 0;
    for (int n = 0; n < 20; n++) {
        uint64_t from = n == 0 ? LARGE : 1 + test_below(&random, last - 4 * BATCH);
        pawl_log *log = open_log();
        read_some(log, from, 1 + test_below(&random, 30), (pawl_place){0}, n % 2, &reading);
        struct kafka_figures figures = figures_of(log);
        if (from > 5000 && figures.sought == 0)
            fail_msg("%" PRIu64 " was not looked for", from);
        lost +=
            figures.found < figures.sought; /* misled by what does not count; it was read from the beginning */
        /* Its place, and a wrong one, lead there, too. */
        uint64_t again = reading.next - 1;
        read_some(log, again, 1, reading.place, n % 2, &(struct reading){0});
        read_some(log, again, 1, (pawl_place){1 + test_below(&random, last), 1}, n % 2, &(struct reading){0});
        assert_ok(pawl_log_close(log));
    }
    print_message("# %d of 20 were not found\n", lost);
    assert_true(lost <= 4);
}

/* Over the ends of reigns. */
TEST(what_is_read_on_from_there_is_what_the_stream_holds)
{
    uint64_t random = test_seed(2);
    struct reading reading;
    pawl_log *log = open_log();
    for (int n = 0; n < 12; n++)
        read_some(log, 1 + test_below(&random, last - 1), 1 + test_below(&random, 4000), (pawl_place){0}, n % 2,
                  &reading);
    read_some(log, 7000, UINT64_MAX, (pawl_place){0}, true, &reading);
    struct kafka_figures before = figures_of(log);
    for (int n = 0; n < 6; n++) /* now it knows everything, and needs no search but near a resume point */
        read_some(log, 1 + test_below(&random, last), 10, (pawl_place){0}, n % 2, &reading);
    assert_int_equal(figures_of(log).sought, before.sought);
    assert_ok(pawl_log_close(log));
}

TEST(the_end_is_read_by_a_log_that_knows_nothing)
{
    struct reading reading;
    for (int alone = 0; alone < 2; alone++) {
        pawl_log *log = open_log();
        read_some(log, last - 5, 100, (pawl_place){0}, alone, &reading);
        assert_ok(pawl_log_close(log));
    }
}

struct knowledge {
    int streams;
    uint8_t bytes[KAFKA_KNOWN_BYTES];
};

static void tell(void *arg, pawl_stream about, pawl_bytes known)
{
    struct knowledge *k = arg;
    assert_int_equal(known.size, sizeof k->bytes);
    memcpy(k->bytes, known.data, known.size);
    assert_true(about.kind == stream.kind && about.partition == stream.partition);
    k->streams++;
}

static struct knowledge knowledge_of(pawl_log *log, uint64_t records)
{
    struct knowledge k = {0};
    kafka_log_known(log, records, tell, &k);
    return k;
}

static int learn(pawl_log *log, const struct knowledge *k)
{
    return kafka_log_learn(log, stream, (pawl_bytes){k->bytes, sizeof k->bytes});
}

/* This test goes on in the stream. */
TEST(a_log_claims_and_reads_from_where_another_has_judged_the_stream)
{
    uint64_t next;
    struct reading reading;
    pawl_log *first = open_log(), *second = open_log();
    assert_int_equal(knowledge_of(first, 1).streams, 0);
    assert_int_equal(claim(first, &next), REIGNS + 1);
    assert_true(figures_of(first).owner_read > last);
    struct knowledge known = knowledge_of(first, 1);
    assert_int_equal(known.streams, 1);
    assert_int_equal(knowledge_of(first, 1).streams, 0); /* nothing is new */
    assert_ok(learn(second, &known));
    assert_int_equal(knowledge_of(second, 1).streams, 0);
    read_some(second, last - 5, 100, (pawl_place){0}, true, &reading);
    assert_int_equal(claim(second, &next), REIGNS + 2);
    assert_int_equal(next, last + 1);
    assert_true(figures_of(second).owner_read < 10);
    read_some(second, 20000, 1, (pawl_place){0}, true,
              &reading); /* of a reign before the place that it has learnt */
    assert_int_equal(figures_of(second).found, figures_of(second).sought);
    assert_ok(pawl_log_close(first));
    assert_ok(pawl_log_close(second));
}

TEST(what_is_no_knowledge_of_this_stream_is_not_learnt)
{
    uint64_t next;
    pawl_log *first = open_log(), *second = open_log();
    (void)claim(first, &next);
    struct knowledge known = knowledge_of(first, 1);
    for (size_t i = 0; i < sizeof known.bytes; i++) {
        known.bytes[i] ^= 1;
        assert_status(learn(second, &known), PAWL_EINVAL);
        known.bytes[i] ^= 1;
    }
    pawl_stream other = stream;
    other.partition--;
    pawl_bytes bytes = {known.bytes, sizeof known.bytes};
    assert_status(kafka_log_learn(second, other, bytes), PAWL_EINVAL);
    assert_status(kafka_log_learn(second, stream, (pawl_bytes){known.bytes, 20}), PAWL_EINVAL);
    assert_ok(kafka_log_learn(second, stream, bytes));
    assert_ok(pawl_log_close(first));
    assert_ok(pawl_log_close(second));
}

static int set_up(void **state)
{
    char why[256];
    pawl_error error = {0};
    const struct uv_env_options options = {.shards = 1, .pool_threads = 2};
    snprintf(url, sizeof url, "kafka://%s/places-%d?replication=1", getenv("PAWL_KAFKA"), (int)getpid());
    snprintf(topic, sizeof topic, "places-%d.raw", (int)getpid());
    if (kafka_cluster_init(url, 2, 1, &error) != PAWL_OK)
        fail_msg("%s", error.text);
    assert_ok(uv_env_open(&options, &env, NULL));
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers", getenv("PAWL_KAFKA"), why, sizeof why), 0);
    outsider = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    assert_non_null(outsider);
    write_stream();
    return 0;
}

static int tear_down(void **state)
{
    rd_kafka_destroy(outsider);
    assert_ok(uv_env_close(env));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_in_the_middle_is_found_by_a_log_that_knows_nothing),
        cmocka_unit_test(what_is_read_on_from_there_is_what_the_stream_holds),
        cmocka_unit_test(the_end_is_read_by_a_log_that_knows_nothing),
        cmocka_unit_test(a_log_claims_and_reads_from_where_another_has_judged_the_stream),
        cmocka_unit_test(what_is_no_knowledge_of_this_stream_is_not_learnt),
    };
    if (!getenv("PAWL_KAFKA")) {
        fputs("PAWL_KAFKA names no brokers\n", stderr);
        return 1;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
