#include "test/contract/log_model.h"

#include "base/hash.h"

enum { STREAMS = 4, ENTRIES_MAX = 3000, PIPELINE = 8, ROUNDS = 400 };

struct expected {
    size_t size;
    uint64_t salt;
};

struct model_stream {
    pawl_stream id;
    uint64_t epoch, next; /* next: after everything sent */
    uint64_t acked;
    struct expected entries[ENTRIES_MAX]; /* offset - 1 */
    pawl_place places[ENTRIES_MAX];       /* where it was seen last, if ever */
};

/* An append under way, and what must become of its entries. */
struct sent {
    struct job *job;
    int expected[JOB_ENTRIES_MAX];
    uint32_t stream[JOB_ENTRIES_MAX];
};

struct model {
    struct log_fixture *f;
    uint64_t random;
    struct model_stream streams[STREAMS];
    struct sent pipeline[PIPELINE];
    uint32_t first, count;
};

static void claim(struct model *m, uint32_t i)
{
    struct model_stream *s = &m->streams[i];
    uint64_t epoch, next;
    log_claim_stream(m->f, s->id, &epoch, &next);
    assert_true(epoch > s->epoch);
    assert_int_equal(next, s->next);
    s->epoch = epoch;
}

static void settle_one(struct model *m)
{
    struct sent *sent = &m->pipeline[m->first++ % PIPELINE];
    struct job *job = sent->job;
    m->count--;
    job_await(job);
    int first = PAWL_OK;
    for (size_t i = 0; i < job->append.count; i++) {
        assert_status(job->entries[i].status, sent->expected[i]);
        if (first == PAWL_OK)
            first = sent->expected[i];
        if (sent->expected[i] == PAWL_OK)
            m->streams[sent->stream[i]].acked = job->entries[i].entry.offset;
    }
    assert_status(job_status(job), first);
    job_free(job);
}

static void settle(struct model *m)
{
    while (m->count > 0)
        settle_one(m);
}

static void append(struct model *m)
{
    if (m->count == PIPELINE)
        settle_one(m);
    struct sent *sent = &m->pipeline[(m->first + m->count) % PIPELINE];
    struct job *job = sent->job = job_new(m->f, JOB_APPEND, raw(0));
    bool refused[STREAMS] = {false};
    uint64_t entries = 1 + test_below(&m->random, 6);
    for (uint64_t n = 0; n < entries; n++) {
        uint32_t i = (uint32_t)test_below(&m->random, STREAMS);
        struct model_stream *s = &m->streams[i];
        size_t size = test_below(&m->random, 20) ? test_below(&m->random, 300) : test_below(&m->random, 30000);
        uint64_t salt = test_random(&m->random);
        uint64_t wrong = test_below(&m->random, 30) ? 0 : 1 + test_below(&m->random, 3);
        if (wrong)
            refused[i] = true;
        job_add(job, s->id, s->epoch, s->next + wrong, size, salt);
        sent->stream[n] = i;
        sent->expected[n] = refused[i] ? PAWL_EFENCED : PAWL_OK;
        if (!refused[i]) {
            assert_true(s->next <= ENTRIES_MAX);
            s->entries[s->next++ - 1] = (struct expected){size, salt};
        }
    }
    job->append.alone = test_below(&m->random, 8) == 0;
    int status = job_start(job);
    while (status == PAWL_EBUSY && m->count > 0) {
        settle_one(m);
        status = job_start(job);
    }
    assert_ok(status);
    /* settle_one moved the ring on, and left this slot where it is: behind the last. */
    assert_ptr_equal(sent, &m->pipeline[(m->first + m->count) % PIPELINE]);
    m->count++;
}

/* What was acknowledged before the read began must be there; more may be. */
static void read(struct model *m)
{
    struct model_stream *s = &m->streams[test_below(&m->random, STREAMS)];
    struct job *job = job_new(m->f, JOB_READ, s->id);
    job->read.from = 1 + test_below(&m->random, s->next + 2);
    job->read.limit = 1 + test_below(&m->random, 50);
    uint64_t acked = s->acked;
    assert_ok(job_run(job));
    assert_int_equal(job->read.next, job->read.from + job->visited);
    assert_true(job->visited <= job->read.limit);
    if (job->visited < job->read.limit)
        assert_true(job->read.next > acked);
    for (size_t i = 0; i < job->visited; i++) {
        const struct visit *v = &job->visits[i];
        const struct expected *e = &s->entries[job->read.from + i - 1];
        assert_int_equal(v->offset, job->read.from + i);
        assert_true(v->offset < s->next);
        assert_int_equal(v->kind, (uint8_t)e->salt);
        assert_int_equal(v->size, e->size);
        assert_int_equal(v->sum, body_sum(e->size, e->salt));
    }
    job_free(job);
}

struct swept {
    struct model *model;
    uint32_t which[STREAMS];
    uint64_t next[STREAMS];
    uint64_t visited, stop_after;
};

static bool sweep_visit(pawl_sweep *sweep, size_t index, const pawl_entry *entry, pawl_place place)
{
    struct swept *swept = sweep->arg;
    assert_true(index < sweep->count);
    struct model_stream *s = &swept->model->streams[swept->which[index]];
    assert_true(pawl_stream_equal(entry->stream, s->id));
    assert_int_equal(entry->offset, swept->next[index]++);
    assert_true(entry->offset < s->next);
    const struct expected *e = &s->entries[entry->offset - 1];
    assert_int_equal(entry->kind, (uint8_t)e->salt);
    assert_int_equal(entry->body.size, e->size);
    assert_int_equal(hash_checksum(0, entry->body), body_sum(e->size, e->salt));
    s->places[entry->offset - 1] = place;
    return ++swept->visited != swept->stop_after;
}

/* Some of the streams, while appends are under way: from anywhere, at places that fit and that do not. */
static void sweep(struct model *m)
{
    struct swept swept = {.model = m,
                          .stop_after = test_below(&m->random, 4) ? 0 : 1 + test_below(&m->random, 9)};
    pawl_sweep_stream streams[STREAMS];
    uint64_t acked[STREAMS];
    pawl_sweep sweep = {.streams = streams,
                        .limit = test_below(&m->random, 2) ? UINT64_MAX : 1 + test_below(&m->random, 100),
                        .visit = sweep_visit,
                        .arg = &swept};
    for (uint32_t i = 0; i < STREAMS; i++) {
        struct model_stream *s = &m->streams[i];
        if (test_below(&m->random, 4) == 0)
            continue;
        uint64_t from = 1 + test_below(&m->random, s->next + 2);
        uint64_t at = test_below(&m->random, 4) ? from : 1 + test_below(&m->random, s->next);
        acked[sweep.count] = s->acked;
        swept.which[sweep.count] = i;
        swept.next[sweep.count] = from;
        streams[sweep.count++] = (pawl_sweep_stream){
            .stream = s->id, .from = from, .at = at <= ENTRIES_MAX ? s->places[at - 1] : (pawl_place){1, 1}};
    }
    assert_ok(pawl_log_sweep(m->f->log, &sweep));
    assert_true(swept.visited <= sweep.limit);
    for (size_t i = 0; i < sweep.count; i++) {
        assert_int_equal(streams[i].next, swept.next[i]);
        if (sweep.limit == UINT64_MAX && swept.visited != swept.stop_after)
            assert_true(streams[i].ended);
        if (streams[i].ended)
            assert_true(streams[i].next > acked[i]);
    }
}

static void check_all(struct model *m)
{
    for (uint32_t i = 0; i < STREAMS; i++) {
        struct model_stream *s = &m->streams[i];
        assert_int_equal(log_tail_of(m->f, s->id), s->next - 1);
        struct job *job = job_new(m->f, JOB_READ, s->id);
        assert_ok(job_run(job));
        assert_int_equal(job->visited, s->next - 1);
        for (size_t n = 0; n < job->visited; n++)
            assert_int_equal(job->visits[n].sum, body_sum(s->entries[n].size, s->entries[n].salt));
        job_free(job);
    }
}

void log_model_run(struct log_fixture *f, uint64_t seed)
{
    static struct model model;
    struct model *m = &model;
    memset(m, 0, sizeof *m);
    m->f = f;
    m->random = seed;
    for (uint32_t i = 0; i < STREAMS; i++) {
        m->streams[i].id = raw((uint16_t)i);
        m->streams[i].next = 1;
        claim(m, i);
    }
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t what = test_below(&m->random, 100);
        if (what < 75) {
            append(m);
        } else if (what < 87) {
            read(m);
        } else if (what < 97) {
            sweep(m);
        } else {
            settle(m);
            claim(m, (uint32_t)test_below(&m->random, STREAMS));
        }
        if (round != ROUNDS / 2)
            continue;
        settle(m);
        log_fixture_reopen(f);
        for (uint32_t i = 0; i < STREAMS; i++)
            claim(m, i);
    }
    settle(m);
    check_all(m);
    log_fixture_reopen(f);
    check_all(m);
}
