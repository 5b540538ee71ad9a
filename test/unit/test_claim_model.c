/* Several writers, one physical log, and everything that can go wrong between them, from a seed.
 *
 *      writer ── message ──► net ──► log [ final | not yet final ] ──► reports ──► writer
 *                             │               ▲            │
 *         lost, doubled, late ┘       readers ┘            └ may be cut off
 *
 * Checked for every seed: what was acknowledged, or resolved as written, counts for every reader, at its
 * offset, once; what was resolved as not written never counts; all who read agree, record by record, and agree
 * with a second statement of the rules that is written as a search and not as a machine; and when the faults
 * end, a writer can claim and go on. And whatever a finder (port/claim_find.h) finds in this log, from whatever it
 * is told, is what counts. PAWL_SEEDS=n runs that many seeds. */
#include "test/lib/test.h"

#include "base/hash.h"
#include "port/claim_find.h"
#include "port/claim_owner.h"

enum { WRITERS = 3, READERS = 2, LOG_MAX = 4096, NET_MAX = 512, FLIGHT_MAX = 64, WINDOW = 12, STEPS = 500 };

struct message {
    struct claim_record record;
    int writer;
    uint32_t life;   /* which incarnation of the writer waits for the report */
    uint64_t ticket; /* 0: nobody waits (a copy, or a claim) */
};

struct flight {
    uint64_t offset, content;
};

struct writer {
    struct owner owner;
    uint32_t life;
    bool paused;
    uint32_t records, sent; /* of the event being sent: how many it has, how many are sent */
    uint64_t read_to;       /* a gap is to be read up to here */
    struct flight flight[FLIGHT_MAX];
    uint32_t flights;
};

struct fate {
    uint64_t content, offset; /* of the event's last record; where it counted */
};

struct world {
    uint64_t random, sums, nonces, group0;
    struct writer writers[WRITERS];
    struct judge readers[READERS];
    struct message log[LOG_MAX];
    uint8_t verdicts[LOG_MAX]; /* 1 + what the first who read it said */
    uint32_t size, final;
    struct message net[NET_MAX], reports[NET_MAX];
    uint32_t nets, reporteds;
    struct fate acked[LOG_MAX], never[LOG_MAX];
    uint32_t ackeds, nevers;
    uint32_t chaos;   /* percent of things that go wrong; 0 while draining */
    uint32_t rivalry; /* how eager those are that do not own the stream */
};

static struct {
    uint64_t acked, never, gaps, fenced, unsure, cut, copies, sought, found, read_on, verdicts[CLAIM_HOLE + 1];
} seen;

static bool chance(struct world *w, uint32_t percent)
{
    return test_below(&w->random, 100) < percent;
}

static bool mishap(struct world *w, uint32_t percent)
{
    return chance(w, w->chaos) && chance(w, percent);
}

static void push(struct message *queue, uint32_t *count, const struct message *m)
{
    if (*count < NET_MAX)
        queue[(*count)++] = *m;
}

static struct message take(struct message *queue, uint32_t *count, uint32_t index)
{
    struct message m = queue[index];
    memmove(&queue[index], &queue[index + 1], (--*count - index) * sizeof *queue);
    return m;
}

static void judged(struct world *w, uint64_t position, enum claim_verdict verdict)
{
    assert_false(claim_verdict_fatal(verdict));
    if (w->verdicts[position] == 0)
        seen.verdicts[verdict]++;
    else
        assert_int_equal(w->verdicts[position], 1 + verdict);
    w->verdicts[position] = (uint8_t)(1 + verdict);
}

static void act(struct world *w, struct writer *me, const struct owner_actions *a)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < me->flights; i++) {
        struct flight f = me->flight[i];
        if (f.offset <= a->ack_upto)
            w->acked[w->ackeds++] = (struct fate){f.content, f.offset};
        else if (a->resolved)
            w->never[w->nevers++] = (struct fate){f.content, f.offset};
        else
            me->flight[kept++] = f;
    }
    me->flights = kept;
    if (a->read_to > a->read_from) {
        me->read_to = a->read_to;
        seen.gaps++;
    }
    if (a->resolved)
        me->sent = 0;
    seen.fenced += a->fenced;
    seen.unsure += a->must_reclaim;
}

static void start(struct world *w, int i)
{
    struct writer *me = &w->writers[i];
    uint32_t life = me->life + 1;
    struct judge judge;
    judge_init(&judge, 0);
    owner_release(&me->owner);
    *me = (struct writer){.life = life};
    assert_ok(owner_init(&me->owner, NULL, WINDOW, &judge));
}

static void transmit(struct world *w, int i, struct claim_record *r, uint64_t ticket)
{
    struct message m = {.record = *r, .writer = i, .life = w->writers[i].life, .ticket = ticket};
    push(w->net, &w->nets, &m);
}

static void write_claim(struct world *w, int i)
{
    struct owner *owner = &w->writers[i].owner;
    struct claim_record r;
    w->group0 += mishap(w, 20);
    if (owner_claim(owner, (uint64_t)i, ++w->nonces, w->group0, &r) != PAWL_OK)
        return;
    if (mishap(w, 10) && owner->judge.group0 > 0) /* one that does not check */
        r.group0 = owner->judge.group0 - 1;
    r.checksum = ++w->sums;
    transmit(w, i, &r, 0);
}

/* One record of the event that is being sent, or the first of a new one. */
static void write_event(struct world *w, int i)
{
    struct writer *me = &w->writers[i];
    struct claim_record r;
    if (me->sent == 0)
        me->records = chance(w, 70) ? 1 : 2 + (uint32_t)test_below(&w->random, 3);
    if (me->flights == FLIGHT_MAX || owner_draft(&me->owner, me->records, &r) != PAWL_OK)
        return;
    r.checksum = ++w->sums;
    transmit(w, i, &r, owner_sent(&me->owner, &r));
    me->sent++;
    if (r.last) {
        me->flight[me->flights++] = (struct flight){r.offset, r.checksum};
        me->sent = 0;
    }
}

static void nowhere(struct world *w, struct message m)
{
    m.record.position = CLAIM_NOWHERE;
    if (m.ticket)
        push(w->reports, &w->reporteds, &m);
}

/* The broker takes a message: mostly in order. */
static void land(struct world *w)
{
    if (w->nets == 0 || w->size == LOG_MAX)
        return;
    struct message m = take(w->net, &w->nets, mishap(w, 10) ? (uint32_t)test_below(&w->random, w->nets) : 0);
    struct message copy = m;
    copy.ticket = 0;
    if (mishap(w, 8)) { /* lost, or reported as lost and yet under way */
        nowhere(w, m);
        if (chance(w, 50))
            push(w->net, &w->nets, &copy);
        return;
    }
    if (mishap(w, 10)) { /* sent twice: either copy may be the one that is reported */
        seen.copies++;
        push(w->net, &w->nets, chance(w, 50) ? &copy : &m);
        if (w->net[w->nets - 1].ticket)
            m.ticket = 0;
    }
    if (mishap(w, 5)) { /* landed, but the answer does not say where */
        nowhere(w, m);
        m.ticket = 0;
    }
    m.record.position = w->size;
    w->log[w->size++] = m;
}

static void finalise(struct world *w, uint32_t upto)
{
    for (; w->final < upto; w->final++)
        if (w->log[w->final].ticket)
            push(w->reports, &w->reporteds, &w->log[w->final]);
}

/* A broker dies: what was not final yet may be gone. Its clients send it again, or learn that it failed. */
static void cut(struct world *w)
{
    uint32_t keep = w->final + (uint32_t)test_below(&w->random, w->size - w->final + 1);
    for (uint32_t i = keep; i < w->size; i++) {
        seen.cut++;
        if (chance(w, 50))
            push(w->net, &w->nets, &w->log[i]);
        else
            nowhere(w, w->log[i]);
    }
    w->size = keep;
}

static void deliver(struct world *w)
{
    if (w->reporteds == 0)
        return;
    uint32_t index = mishap(w, 30) ? (uint32_t)test_below(&w->random, w->reporteds) : 0;
    if (w->writers[w->reports[index].writer].paused)
        return;
    struct message m = take(w->reports, &w->reporteds, index);
    struct writer *me = &w->writers[m.writer];
    struct owner_actions actions;
    if (m.life != me->life)
        return;
    assert_ok(owner_report(&me->owner, m.ticket, m.record.position, &actions));
    act(w, me, &actions);
}

static void read_one(struct world *w, struct writer *me)
{
    uint64_t at = me->owner.judge.at;
    struct owner_actions actions;
    if (at >= w->final || (me->owner.state == OWNER_OWNING && at >= me->read_to))
        return;
    assert_ok(owner_read(&me->owner, &w->log[at].record, &actions));
    judged(w, at, actions.verdict);
    act(w, me, &actions);
}

static void step(struct world *w)
{
    int i = (int)test_below(&w->random, WRITERS);
    struct writer *me = &w->writers[i];
    bool ready = !me->paused;
    switch (test_below(&w->random, 12)) {
    case 0:
    case 1:
    case 2:
        if (ready)
            write_event(w, i);
        break;
    case 3:
    case 4: land(w); break;
    case 5: finalise(w, w->final + (uint32_t)test_below(&w->random, w->size - w->final + 1)); break;
    case 6:
    case 7: deliver(w); break;
    case 8:
    case 9:
        for (uint64_t n = test_below(&w->random, 8); ready && n > 0; n--)
            read_one(w, me);
        break;
    case 10:
        if (ready && chance(w, me->owner.state == OWNER_OWNING ? w->chaos / 10 : w->rivalry))
            write_claim(w, i);
        break;
    default:
        if (mishap(w, 15))
            me->paused = !me->paused;
        if (mishap(w, 10))
            cut(w);
        if (mishap(w, 3))
            start(w, i);
        struct judge *reader = &w->readers[test_below(&w->random, READERS)];
        for (uint64_t n = test_below(&w->random, 20); n > 0 && reader->at < w->final; n--) {
            uint64_t at = reader->at;
            judged(w, at, judge_next(reader, &w->log[at].record));
        }
    }
}

/* Everything under way arrives, and everybody reads to the end. */
static void settle(struct world *w)
{
    w->chaos = 0;
    while (w->nets > 0 && w->size < LOG_MAX)
        land(w);
    finalise(w, w->size);
    for (int i = 0; i < WRITERS; i++)
        w->writers[i].paused = false;
    while (w->reporteds > 0)
        deliver(w);
    for (int i = 0; i < WRITERS; i++)
        for (uint32_t n = w->size; n > 0; n--)
            read_one(w, &w->writers[i]);
}

/* Without faults two claims are enough: one at worst to learn of a rival, one to succeed him. */
static void goes_on(struct world *w)
{
    struct writer *me = &w->writers[0];
    for (int round = 0; round == 0 || (round == 1 && me->owner.state != OWNER_OWNING); round++) {
        write_claim(w, 0);
        settle(w);
    }
    assert_int_equal(me->owner.state, OWNER_OWNING);
    uint32_t before = w->ackeds;
    for (int n = 0; n < 8 || me->sent > 0; n++) {
        write_event(w, 0);
        settle(w);
    }
    assert_int_equal(me->flights, 0);
    assert_true(w->ackeds > before);
}

/* The rules again: within each reign, search for the next offset and fragment, from where the last was found.
 */
static uint32_t find(const struct world *w, uint32_t from, uint32_t to, uint64_t epoch, uint64_t offset,
                     uint32_t fragment)
{
    for (; from < to; from++) {
        const struct claim_record *r = &w->log[from].record;
        if (r->kind == CLAIM_KIND_EVENT && r->epoch == epoch && r->offset == offset && r->fragment == fragment)
            break;
    }
    return from;
}

static uint32_t find_claim(const struct world *w, uint32_t from, uint64_t epoch, uint64_t group0)
{
    for (; from < w->final; from++) {
        const struct claim_record *r = &w->log[from].record;
        if (r->kind == CLAIM_KIND_CLAIM && r->epoch == epoch && r->group0 >= group0)
            break;
    }
    return from;
}

static uint64_t count_by_search(const struct world *w, uint64_t *contents)
{
    uint64_t offset = 1;
    uint32_t claim = find_claim(w, 0, 1, 0);
    for (uint64_t epoch = 1; claim < w->final; epoch++) {
        uint32_t end = find_claim(w, claim, epoch + 1, w->log[claim].record.group0);
        uint32_t at = claim, fragment = 0;
        while ((at = find(w, at, end, epoch, offset, fragment)) < end) {
            fragment++;
            if (w->log[at].record.last) {
                contents[offset++] = w->log[at].record.checksum;
                fragment = 0;
            }
        }
        claim = end;
    }
    return offset;
}

/* Look for an offset, told of a place before it, and of one that may be behind it. */
static bool run_finder(struct world *w, uint64_t wanted, const struct judge *low, const struct find_fact *fact,
                       struct finder *ret_finder)
{
    struct finder_options options = {.wanted = wanted,
                                     .low = low->at,
                                     .low_next = low->next,
                                     .high = w->final,
                                     .guess = chance(w, 50) ? FIND_NO_GUESS : test_below(&w->random, w->final),
                                     .ahead = chance(w, 50) ? 0 : test_below(&w->random, 30),
                                     .window = WINDOW,
                                     .run = 1 + (uint32_t)test_below(&w->random, 12),
                                     .facts = fact,
                                     .fact_count = chance(w, 50)};
    uint64_t at;
    uint32_t count, runs = 0;
    finder_init(ret_finder, &options);
    enum find_step step;
    while ((step = finder_next(ret_finder, &at, &count)) == FIND_READ) {
        assert_true(runs++ < 200);
        while (count > 0 && at < w->final && finder_take(ret_finder, &w->log[at].record)) {
            at++;
            count--;
        }
    }
    return step == FIND_FOUND;
}

/* What is read from the place that was found is what counts there. */
static void read_on_from(const struct world *w, const struct finder *finder, const uint64_t *contents,
                         uint64_t next)
{
    struct judge judge;
    assert_true(finder->upto < next);
    finder_judge_start(finder, &judge);
    while (judge.at < w->final && judge.next <= finder->upto) {
        const struct claim_record *r = &w->log[judge.at].record;
        enum claim_verdict verdict = finder_judge_next(&judge, r);
        if (verdict != CLAIM_COUNTS && verdict != CLAIM_PART && verdict != CLAIM_STALE)
            return;
        if (verdict == CLAIM_COUNTS) {
            assert_int_equal(contents[r->offset], r->checksum);
            seen.read_on++;
        }
    }
}

static void check_finder(struct world *w, const uint64_t *contents, uint64_t next)
{
    for (uint64_t wanted = 1; wanted < next + WINDOW; wanted++) {
        struct judge low, fact;
        struct finder finder;
        uint64_t known = test_below(&w->random, w->final + 1);
        judge_init(&fact, 0);
        low = fact;
        while (fact.at < known) {
            (void)judge_next(&fact, &w->log[fact.at].record);
            if (fact.next <= wanted && fact.fragments == 0 && chance(w, 10))
                low = fact;
        }
        seen.sought += wanted < next;
        if (!run_finder(w, wanted, &low, &(struct find_fact){fact.epoch, fact.next - 1}, &finder))
            continue;
        assert_true(wanted < next);
        seen.found++;
        read_on_from(w, &finder, contents, next);
    }
}

static int by_content(const void *a, const void *b)
{
    uint64_t x = ((const struct fate *)a)->content, y = ((const struct fate *)b)->content;
    return (x > y) - (x < y);
}

static void check(struct world *w)
{
    static uint64_t contents[LOG_MAX + 2];
    uint64_t next = count_by_search(w, contents);
    struct judge fresh;
    judge_init(&fresh, 0);
    while (fresh.at < w->final) {
        uint64_t at = fresh.at;
        const struct claim_record *r = &w->log[at].record;
        enum claim_verdict verdict = judge_next(&fresh, r);
        judged(w, at, verdict);
        if (verdict == CLAIM_COUNTS && r->kind == CLAIM_KIND_EVENT)
            assert_int_equal(contents[r->offset], r->checksum);
    }
    assert_int_equal(fresh.next, next);
    for (int i = 0; i < READERS; i++) {
        while (w->readers[i].at < w->final) {
            uint64_t at = w->readers[i].at;
            judged(w, at, judge_next(&w->readers[i], &w->log[at].record));
        }
        assert_memory_equal(&w->readers[i], &fresh, sizeof fresh);
    }
    check_finder(w, contents, next);
    for (uint32_t i = 0; i < w->ackeds; i++) {
        assert_true(w->acked[i].offset < next);
        assert_int_equal(contents[w->acked[i].offset], w->acked[i].content);
    }
    qsort(w->never, w->nevers, sizeof *w->never, by_content);
    for (uint64_t offset = 1; offset < next; offset++)
        assert_null(bsearch(&(struct fate){.content = contents[offset]}, w->never, w->nevers, sizeof *w->never,
                            by_content));
    seen.acked += w->ackeds;
    seen.never += w->nevers;
}

static void run(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->random = seed;
    w->chaos = (uint32_t)test_below(&w->random, 4) * 30;
    w->rivalry = chance(w, 50) ? 5 : 40;
    for (int i = 0; i < WRITERS; i++)
        start(w, i);
    for (int i = 0; i < READERS; i++)
        judge_init(&w->readers[i], 0);
    for (int n = 0; n < STEPS; n++)
        step(w);
    settle(w);
    goes_on(w);
    check(w);
    for (int i = 0; i < WRITERS; i++)
        owner_release(&w->writers[i].owner);
}

static uint64_t at_seed;

static int name_the_seed(void **state)
{
    if (at_seed)
        print_message("# failed: PAWL_SEEDS=1 PAWL_SEED=%" PRIu64 " repeats it\n", at_seed);
    return 0;
}

TEST(whatever_happens_an_acknowledged_event_counts_and_all_readers_agree)
{
    static struct world world;
    const char *text = getenv("PAWL_SEEDS");
    uint64_t seeds = text ? strtoull(text, NULL, 0) : 3000, first = test_seed(1);
    for (at_seed = first; at_seed < first + seeds; at_seed++)
        run(&world, at_seed);
    at_seed = 0;
    print_message("# acked %" PRIu64 " never %" PRIu64 " gaps %" PRIu64 " fenced %" PRIu64 " unsure %" PRIu64
                  " cut %" PRIu64 " copies %" PRIu64 "\n",
                  seen.acked, seen.never, seen.gaps, seen.fenced, seen.unsure, seen.cut, seen.copies);
    print_message("# sought %" PRIu64 " found %" PRIu64 " read on %" PRIu64 "\n", seen.sought, seen.found,
                  seen.read_on);
    for (int v = 0; v <= CLAIM_HOLE; v++)
        print_message("# %s: %" PRIu64 "\n", claim_verdict_text((enum claim_verdict)v), seen.verdicts[v]);
    if (seeds < 100)
        return;
    assert_true(seen.acked && seen.never && seen.gaps && seen.fenced && seen.unsure && seen.cut && seen.copies);
    assert_true(seen.found > seen.sought / 2 && seen.read_on > seen.found);
    for (int v = CLAIM_COUNTS; v <= CLAIM_OUTRANKED; v++)
        assert_true(v == CLAIM_EARLY || seen.verdicts[v] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(whatever_happens_an_acknowledged_event_counts_and_all_readers_agree,
                                  name_the_seed),
    };
    return TEST_MAIN(tests);
}
