/* Random commands over few keys, while the log fails and forgets what became of appends, the store fails to
 * commit, memory runs out, unique views are dropped, made and built slice by slice, and lives end by closing,
 * by crashing, and with the state thrown away.
 *
 * The log is the order in which things happened. The model is an array of items, changed by each event of the
 * log. Once a view is settled and its verdict is good, no event of the log may lead to two items with the same
 * key, in that life or in any later one. A command that was refused for its key was wrong at some moment
 * between its being sent and its being answered.
 *
 * PAWL_SEEDS=n runs that many seeds. */
#include "test/lib/codes.h"
#include "test/lib/views.h"

enum { WORKSPACES = 2, ITEMS_MAX = 7, OBJECTS = 3, COMMANDS_MAX = 1500, OUTSTANDING_MAX = 40, VIEWS = 2 };

struct item {
    uint64_t id;
    int code; /* 0: null */
    int rank; /* 0: null */
    bool active;
};

struct items {
    struct item list[ITEMS_MAX + OUTSTANDING_MAX * OBJECTS];
    size_t count;
};

/* What a command asks of an item. */
struct wish {
    uint64_t id;            /* raw: a new one */
    int code, rank, active; /* -1: as it is */
};

struct command {
    struct ask ask;
    char correlation[16];
    size_t workspace;
    struct wish wishes[OBJECTS];
    size_t count;
    bool outstanding;
    bool refused;
    bool wrong[VIEWS]; /* at some moment since it was sent */
    uint64_t event;
    struct sim *sim;
};

struct sim {
    struct partition p;
    uint64_t random;
    uint64_t workspaces[WORKSPACES];
    struct items items[WORKSPACES];
    uint64_t last; /* event of the log */
    struct command *commands[COMMANDS_MAX];
    size_t count, outstanding;
    bool faulty, closing;
    bool views; /* group0 has them */
    bool promised[VIEWS];
    size_t accepted, refused, promises, bad_verdicts;
};

static const char *const view_names[VIEWS] = {"p.codes", "p.live"};

static uint64_t below(struct sim *s, uint64_t bound)
{
    return test_below(&s->random, bound);
}

/* --- the model --- */

static int key_of(const struct item *item, size_t view)
{
    if (view == 0)
        return item->code;
    return item->active ? item->rank : 0;
}

static struct item *find_item(struct items *items, uint64_t id)
{
    for (size_t i = 0; i < items->count; i++)
        if (items->list[i].id == id)
            return &items->list[i];
    return NULL;
}

static void grant(struct items *items, const struct wish *w, uint64_t id)
{
    struct item *item = find_item(items, id);
    if (!item) {
        assert_true(items->count < sizeof items->list / sizeof items->list[0]);
        item = &items->list[items->count++];
        *item = (struct item){.id = id, .active = true};
    }
    item->code = w->code >= 0 ? w->code : item->code;
    item->rank = w->rank >= 0 ? w->rank : item->rank;
    item->active = w->active >= 0 ? w->active : item->active;
}

static bool are_unique(const struct items *items, size_t view)
{
    for (size_t i = 0; i < items->count; i++)
        for (size_t k = 0; k < i; k++)
            if (key_of(&items->list[i], view) && key_of(&items->list[i], view) == key_of(&items->list[k], view))
                return false;
    return true;
}

static void note_wrong(struct sim *s, struct command *c)
{
    struct items after = s->items[c->workspace];
    for (size_t i = 0; i < c->count; i++)
        grant(&after, &c->wishes[i], c->wishes[i].id);
    for (size_t v = 0; v < VIEWS; v++)
        c->wrong[v] = c->wrong[v] || !are_unique(&after, v);
}

/* --- the log is the truth --- */

static bool observe_event(void *arg, const pawl_entry *entry)
{
    struct sim *s = arg;
    struct event event;
    struct event_object object;
    char number[16] = {0};
    assert_int_equal(entry->offset, s->last + 1);
    s->last = entry->offset;
    assert_ok(event_decode(entry->body, &event, NULL));
    if (event.head.correlation.size == 0)
        return true; /* a workspace is created */
    assert_true(event.head.correlation.size < sizeof number);
    memcpy(number, event.head.correlation.data, event.head.correlation.size);
    struct command *c = s->commands[strtoul(number, NULL, 10)];
    assert_true(!c->refused && c->event == 0);
    c->event = entry->offset;
    size_t i = 0;
    for (size_t cursor = 0; event_next(&event, &cursor, &object); i++)
        grant(&s->items[c->workspace], &c->wishes[i], object.id);
    assert_int_equal(i, c->count);
    for (size_t v = 0; v < VIEWS; v++)
        assert_true(!s->promised[v] || are_unique(&s->items[c->workspace], v));
    for (i = 0; i < s->count; i++)
        if (s->commands[i]->outstanding && s->commands[i]->workspace == c->workspace)
            note_wrong(s, s->commands[i]);
    return true;
}

static void observe(struct sim *s)
{
    uint64_t next = partition_read_log(&s->p, s->last + 1, observe_event, s);
    assert_int_equal(next, s->last + 1);
}

static void done(struct call *call)
{
    struct command *c = (struct command *)((char *)call - offsetof(struct command, ask.call));
    struct sim *s = c->sim;
    assert_true(c->outstanding);
    observe(s);
    c->outstanding = false;
    s->outstanding--;
    if (call->status == PAWL_OK) {
        assert_int_equal(c->event, call->offset);
        s->accepted++;
        return;
    }
    assert_int_equal(c->ask.error.code, call->status);
    if (call->status == PAWL_EEXISTS) {
        const char *words = c->ask.error.text;
        size_t view = strncmp(words, "p.codes: ", 9) == 0 ? 0 : 1;
        assert_true(c->wrong[view]);
        s->refused++;
    } else if (!s->faulty && !s->closing)
        print_error("%s: %s\n", pawl_status_name(call->status), c->ask.error.text);
    assert_true(call->status == PAWL_EEXISTS || s->faulty || s->closing);
    if (call->status == PAWL_EUNKNOWN)
        return;
    assert_int_equal(c->event, 0);
    c->refused = true;
}

/* --- commands --- */

/* An item for each wish, or a new one; each at most once. */
static void make_wishes(struct sim *s, struct command *c)
{
    const struct items *items = &s->items[c->workspace];
    c->count = 1 + below(s, OBJECTS);
    for (size_t i = 0; i < c->count; i++) {
        struct wish *w = &c->wishes[i];
        *w = (struct wish){.id = i + 1, .code = (int)below(s, 5), .rank = (int)below(s, 5), .active = -1};
        if (items->count < ITEMS_MAX && below(s, 3) == 0)
            continue;
        if (items->count == 0)
            continue;
        uint64_t id = items->list[below(s, items->count)].id;
        bool taken = false;
        for (size_t k = 0; k < i; k++)
            taken = taken || c->wishes[k].id == id;
        if (taken) {
            c->count = i;
            return;
        }
        w->id = id;
        w->code = below(s, 3) ? w->code : -1;
        w->rank = below(s, 3) ? w->rank : -1;
        w->active = (int)below(s, 3) - 1;
    }
}

static void ask_wishes(struct command *c)
{
    static const char *const codes[] = {NULL, "a", "b", "c", "d"};
    for (size_t i = 0; i < c->count; i++) {
        const struct wish *w = &c->wishes[i];
        codes_item(&c->ask, w->id, w->code < 0 ? "" : codes[w->code]);
        if (w->rank == 0)
            ask_null(&c->ask, "rank");
        else if (w->rank > 0)
            ask_number(&c->ask, "rank", w->rank);
        if (w->active >= 0)
            codes_active(&c->ask, w->active);
    }
}

static void send_one(struct sim *s)
{
    if (s->outstanding >= OUTSTANDING_MAX || s->count == COMMANDS_MAX)
        return;
    struct command *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->sim = s;
    c->workspace = below(s, WORKSPACES);
    snprintf(c->correlation, sizeof c->correlation, "%zu", s->count);
    s->commands[s->count++] = c;
    observe(s);
    make_wishes(s, c);
    codes_ask(&c->ask, &s->p, s->workspaces[c->workspace]);
    ask_wishes(c);
    c->ask.request.correlation = text_bytes(c->correlation);
    c->ask.call.done = done;
    c->ask.call.ack = below(s, 2) ? ACK_APPLIED : ACK_DURABLE;
    note_wrong(s, c);
    int status = partition_submit(&s->p, &c->ask.call);
    c->outstanding = status == PAWL_OK;
    c->refused = status != PAWL_OK;
    assert_true(status == PAWL_OK || s->faulty);
    s->outstanding += c->outstanding;
}

/* --- what goes wrong --- */

static void order_faults(struct sim *s)
{
    static const enum mem_log_fault_kind kinds[] = {MEM_LOG_FAIL, MEM_LOG_FULL, MEM_LOG_DELAY, MEM_LOG_LANDED,
                                                    MEM_LOG_LOST, MEM_LOG_LATE, MEM_LOG_TORN,  MEM_LOG_RIVAL};
    static const enum mem_store_op ops[] = {MEM_STORE_PUT, MEM_STORE_COMMIT, MEM_STORE_GET, MEM_STORE_SCAN};
    s->faulty = true;
    switch (below(s, 5)) {
    case 0:
        mem_store_disk_fail(s->p.store_disk, (struct mem_store_fault){.op = ops[below(s, 4)],
                                                                      .countdown = 1 + below(s, 12),
                                                                      .times = 1 + below(s, 4),
                                                                      .status = PAWL_EIO});
        return;
    case 1:
        s->p.memory.fails_in = 1 + below(s, 20);
        s->p.memory.fails = 1 + below(s, 3);
        return;
    default:
        (void)mem_log_order(s->p.log, &(struct mem_log_fault){kinds[below(s, 8)],
                                                              mem_log_requests(s->p.log) + 1 + below(s, 3),
                                                              (uint32_t)below(s, 5)});
    }
}

/* --- views --- */

static void change_views(struct sim *s)
{
    s->views = !s->views;
    partition_apply(&s->p, s->views ? codes_schema : codes_without);
    for (size_t v = 0; v < VIEWS; v++)
        s->promised[v] = false;
    (void)partition_refresh(&s->p);
}

static void build_views(struct sim *s)
{
    bool covered;
    for (size_t v = 0; s->views && v < VIEWS; v++)
        (void)partition_slice(&s->p, partition_view(&s->p, view_names[v]), (uint32_t)(1 + below(s, 3)),
                              &covered);
}

/* From here on the view keeps its promise. */
static void judge_views(struct sim *s)
{
    observe(s); /* what comes before is not promised */
    for (size_t v = 0; s->views && v < VIEWS; v++) {
        if (!partition_settled(&s->p))
            return;
        int status = partition_verdict(&s->p, partition_view(&s->p, view_names[v]), NULL);
        s->bad_verdicts += status == PAWL_EEXISTS;
        assert_true(status != PAWL_EEXISTS || !s->promised[v]);
        s->promises += status == PAWL_OK && !s->promised[v];
        s->promised[v] = s->promised[v] || status == PAWL_OK;
    }
    for (size_t v = 0; v < VIEWS; v++)
        for (size_t w = 0; w < WORKSPACES; w++)
            assert_true(!s->promised[v] || are_unique(&s->items[w], v));
}

/* --- lives --- */

static void live_a_little(struct sim *s)
{
    if (below(s, 15) == 0)
        order_faults(s);
    if (below(s, s->views ? 60 : 20) == 0)
        change_views(s);
    for (uint64_t n = below(s, 6); n > 0; n--)
        send_one(s);
    partition_run(&s->p);
    if (below(s, 2))
        build_views(s);
    for (uint64_t n = below(s, 40); n > 0; n--)
        mem_world_step(s->p.world);
    judge_views(s);
}

static bool is_quiet(void *arg)
{
    const struct sim *s = arg;
    return s->outstanding == 0;
}

/* Row by row, as the store has them, whatever was staged when a view came, was covered, or went. */
static void check_views(void *arg)
{
    struct sim *s = arg;
    const uint16_t which = partition_set_at(&s->p.views.set, 0);
    assert_true(views_are_right(pawl_store_writer(s->p.store), group0_building(s->p.group0)->views,
                                group0_schema(s->p.group0), PARTITION_OF, &which, 1, true));
}

/* Nothing is under way: then a verdict agrees with the model. */
static void check_quiet(struct sim *s)
{
    mem_store_disk_fail(s->p.store_disk, (struct mem_store_fault){0});
    s->p.memory.fails_in = 0;
    assert_true(mem_world_run_until(s->p.world, is_quiet, s, PARTITION_STEPS_MAX));
    assert_int_equal(partition_wait(&s->p), WRITER_RUNNING);
    mem_world_advance(s->p.world, 3 * PAWL_SECOND);
    observe(s);
    assert_int_equal(processor_figures(s->p.processor)->offset, s->last);
    assert_true(partition_settled(&s->p));
    for (size_t v = 0; s->views && v < VIEWS; v++) {
        int status = partition_verdict(&s->p, partition_view(&s->p, view_names[v]), NULL);
        bool unique = true;
        for (size_t w = 0; w < WORKSPACES; w++)
            unique = unique && are_unique(&s->items[w], v);
        assert_true(status == PAWL_EBUSY || (status == PAWL_OK) == unique);
        assert_true(status != PAWL_EBUSY || !s->promised[v]);
    }
    partition_check_digests(&s->p);
    (void)partition_refresh(&s->p);
    partition_call(&s->p, check_views, s);
}

static void end_life(struct sim *s)
{
    uint64_t way = below(s, 6);
    if (way < 3)
        check_quiet(s);
    s->closing = true;
    if (way < 4)
        partition_halt(&s->p);
    else {
        partition_crash(&s->p, way == 5);
        for (size_t i = 0; i < s->count; i++)
            s->commands[i]->outstanding = false;
        s->outstanding = 0;
    }
    if (way == 0)
        partition_forget_state(&s->p);
}

static void begin_life(struct sim *s)
{
    s->faulty = s->closing = false;
    partition_boot(&s->p);
    if (below(s, 4))
        assert_int_equal(partition_wait(&s->p), WRITER_RUNNING);
}

static void simulate(uint64_t seed, size_t totals[4])
{
    struct sim *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->random = seed;
    s->views = true;
    codes_open(&s->p, codes_schema);
    s->p.options.batch_events_max = 1 + (uint32_t)below(s, 6);
    s->p.options.wait = PAWL_SECOND;
    partition_boot(&s->p);
    assert_int_equal(partition_wait(&s->p), WRITER_RUNNING);
    for (size_t i = 0; i < WORKSPACES; i++) {
        s->workspaces[i] = partition_workspace(i ? s->workspaces[i - 1] : 0);
        codes_create(&s->p, s->workspaces[i]);
    }
    for (uint64_t life = 1 + below(s, 6); life > 0; life--) {
        for (uint64_t n = below(s, 60); n > 0; n--)
            live_a_little(s);
        end_life(s);
        begin_life(s);
    }
    check_quiet(s);
    s->closing = true;
    partition_halt(&s->p);
    partition_close(&s->p);
    totals[0] += s->accepted;
    totals[1] += s->refused;
    totals[2] += s->promises;
    totals[3] += s->bad_verdicts;
    for (size_t i = 0; i < s->count; i++) {
        ask_release(&s->commands[i]->ask);
        free(s->commands[i]);
    }
    free(s);
}

TEST(no_event_of_the_log_gives_two_records_one_key)
{
    const char *text = getenv("PAWL_SEEDS");
    uint64_t seeds = text ? strtoull(text, NULL, 10) : TEST_SANITIZED ? 100 : 500;
    uint64_t first = test_seed(1);
    size_t totals[4] = {0};
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        if (getenv("PAWL_VERBOSE"))
            print_message("# seed %" PRIu64 "\n", seed);
        simulate(seed, totals);
    }
    print_message("# %zu accepted, %zu refused, %zu promises, %zu bad verdicts\n", totals[0], totals[1],
                  totals[2], totals[3]);
    assert_true(seeds < 100 || (totals[0] > 1000 && totals[1] > 1000 && totals[2] > 100 && totals[3] > 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {RUN(no_event_of_the_log_gives_two_records_one_key)};
    return TEST_MAIN(tests);
}
