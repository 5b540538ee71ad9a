/* A coordinator on node 1, and a fake worker on each shard of two nodes, under virtual time. What happens is
 * written down line by line: the time in ms, who, what.
 *
 *     0 1/0 works 1 5       the worker of node 1, shard 0, is called with these tasks
 *     200 FINISHED 1 5      this is proposed
 *
 * group0 is a struct building, changed by the proposals themselves, and by the test. */
#include "test/lib/test.h"

#include <time.h>

#include "adapter/local/bus.h"
#include "adapter/mem/env.h"
#include "base/heap.h"
#include "core/view/coordinator.h"
#include "core/view/work.h"
#include "test/lib/alloc.h"

enum { NODES = 2, SHARDS = 2, REPLICAS = NODES * SHARDS, VIEWS = 3, LIMIT = 1000000 };

#define BASE    ((uint32_t)300)
#define OTHER   ((uint32_t)301)
#define TERM    ((uint64_t)7)
#define TRACE   ((size_t)1 << 16)
#define VIEW(i) view_table((uint16_t)(i), 0)

/* How a worker answers. */
enum manner { FINISHES, IS_SILENT, REFUSES, IS_NOT_DURABLE, FAILS, KNOWS_NOTHING };

struct fake_worker {
    struct scene *s;
    uint32_t node, shard;
    enum manner manner;
    int status; /* REFUSES */
    const char *words;
    pawl_duration takes;
    pawl_timer timer;
    pawl_bus_request *request; /* that is being worked on */
    struct uncovered uncovered[4];
    size_t uncovered_count;
    struct base_rows bases[2];
    size_t base_count;
    uint32_t asked; /* what it does not cover: how often */
};

struct scene {
    struct mem_world *world;
    struct local_network *network;
    struct mem_env *envs[NODES];
    struct local_bus *buses[NODES];
    struct fake_worker workers[REPLICAS];
    struct coordinator *coordinator;

    struct building building;
    struct view_list list;
    struct view_entry entries[VIEWS];
    struct view views[VIEWS];
    uint64_t position;
    bool looking;

    pawl_timer propose_timer; /* a proposal is applied */
    pawl_duration propose_takes;
    pawl_bytes proposal;
    int propose_status; /* it is not written */
    uint32_t refuse;    /* so many are answered with PAWL_ECONFLICT */
    void (*before_apply)(struct scene *s);

    struct arena arena;
    uint64_t began;
    char trace[TRACE];
    size_t trace_size;
    bool quiet;                      /* nothing is written down */
    const pawl_allocator *allocator; /* the coordinator's */
    void (*fn)(struct scene *s);
};

static uint64_t milliseconds(struct scene *s)
{
    return (pawl_env_now(mem_env_port(s->envs[0])).ns - s->began) / PAWL_MILLISECOND;
}

__attribute__((format(printf, 2, 3))) static void write_down(struct scene *s, const char *format, ...)
{
    va_list arguments;
    if (s->quiet)
        return;
    va_start(arguments, format);
    int n = vsnprintf(s->trace + s->trace_size, TRACE - s->trace_size, format, arguments);
    va_end(arguments);
    assert_true(n >= 0 && (size_t)n < TRACE - s->trace_size);
    s->trace_size += (size_t)n;
}

static void forget(struct scene *s)
{
    s->trace_size = 0;
    s->trace[0] = '\0';
}

/* What was written down since the last time. */
static void expect(struct scene *s, const char *trace)
{
    assert_string_equal(s->trace, trace);
    forget(s);
}

/* Workers. */

static void worker_answer(struct fake_worker *w)
{
    static const enum work_outcome outcomes[] = {
        [FINISHES] = WORK_FINISHED,
        [IS_NOT_DURABLE] = WORK_NOT_DURABLE,
        [FAILS] = WORK_FAILED,
        [KNOWS_NOTHING] = WORK_GONE,
    };
    struct scene *s = w->s;
    pawl_bus_request *request = w->request;
    pawl_bus *bus = local_bus_port(s->buses[w->node - 1]);
    uint64_t term, *ids;
    size_t count;
    pawl_bytes reply;
    w->request = NULL;
    if (w->manner == REFUSES) {
        pawl_bus_answer(bus, request, w->status, text_bytes(w->words ? w->words : ""));
        return;
    }
    assert_ok(work_decode(request->body, &s->arena, &term, &ids, &count));
    struct work_result *results = arena_take(&s->arena, count * sizeof *results);
    for (size_t i = 0; i < count; i++) {
        results[i] = (struct work_result){.id = ids[i], .outcome = outcomes[w->manner]};
        if (w->manner == FAILS)
            results[i].words = text_bytes("two are equal");
    }
    assert_ok(work_reply_encode(results, count, &s->arena, &reply));
    pawl_bus_answer(bus, request, PAWL_OK, reply);
}

static void worker_is_through(pawl_timer *timer)
{
    struct fake_worker *w = heap_entry(timer, struct fake_worker, timer);
    if (w->request && w->manner != IS_SILENT)
        worker_answer(w);
}

static void worker_cancelled(pawl_bus_request *request)
{
    struct fake_worker *w = request->arg;
    write_down(w->s, "%" PRIu64 " %u/%u cancelled\n", milliseconds(w->s), w->node, w->shard);
    if (w->request == request)
        w->request = NULL;
}

static void on_work(void *arg, pawl_bus_request *request)
{
    struct fake_worker *w = arg;
    struct scene *s = w->s;
    uint64_t term, *ids;
    size_t count;
    assert_ok(work_decode(request->body, &s->arena, &term, &ids, &count));
    assert_int_equal(term, TERM);
    write_down(s, "%" PRIu64 " %u/%u works", milliseconds(s), w->node, w->shard);
    for (size_t i = 0; i < count; i++)
        write_down(s, " %" PRIu64, ids[i]);
    write_down(s, "\n");
    assert_true(!w->request || w->manner == IS_SILENT); /* O1 */
    request->arg = w;
    request->cancelled = worker_cancelled;
    w->request = request;
    w->timer.fn = worker_is_through;
    if (w->manner != IS_SILENT)
        pawl_env_after(mem_env_port(s->envs[w->node - 1]), &w->timer, w->takes);
}

static void on_uncovered(void *arg, pawl_bus_request *request)
{
    struct fake_worker *w = arg;
    uint64_t term;
    pawl_bytes reply;
    assert_ok(uncovered_decode(request->body, &term));
    assert_int_equal(term, TERM);
    w->asked++;
    struct uncovered_reply lacks = {w->uncovered, w->uncovered_count, w->bases, w->base_count};
    assert_ok(uncovered_reply_encode(&lacks, &w->s->arena, &reply));
    pawl_bus_answer(local_bus_port(w->s->buses[w->node - 1]), request, PAWL_OK, reply);
}

static void serve(void *arg)
{
    struct fake_worker *w = arg;
    pawl_bus *bus = local_bus_port(w->s->buses[w->node - 1]);
    assert_ok(pawl_bus_serve(bus, w->shard, VERB_WORK, on_work, w));
    assert_ok(pawl_bus_serve(bus, w->shard, VERB_UNCOVERED, on_uncovered, w));
}

/* group0. */

static const struct building *look(void *ctx)
{
    struct scene *s = ctx;
    assert_false(s->looking);
    s->looking = true;
    return &s->building;
}

static void looked(void *ctx)
{
    ((struct scene *)ctx)->looking = false;
}

static void group0_changed(struct scene *s)
{
    s->building.views_version = ++s->position;
    if (s->building.processing && tasks_of_base(&s->building.tasks, s->building.processing) == 0)
        s->building.processing = 0;
}

static int apply_tasks(struct scene *s, const struct group0_command *c)
{
    uint32_t made;
    for (size_t i = 0; i < c->uncovered_count; i++) {
        const struct uncovered *u = &c->uncovered[i];
        write_down(s, " %u/%u/%u", u->base, view_number(u->view), u->tablet);
        assert_ok(
            tasks_make(&s->building.tasks, u->base, u->view, s->building.map.tablets, &u->tablet, 1, &made));
    }
    return PAWL_OK;
}

static int apply_finished(struct scene *s, const struct group0_command *c)
{
    uint64_t finished;
    for (size_t i = 0; i < c->id_count; i++)
        write_down(s, " %" PRIu64, c->ids[i]);
    tasks_finish(&s->building.tasks, c->ids, c->id_count, &finished);
    return PAWL_OK;
}

static int apply(struct scene *s, const struct group0_command *c)
{
    struct building *b = &s->building;
    assert_int_equal(c->guard.term, TERM);
    if ((c->guard.map_version && c->guard.map_version != b->map_version)
        || (c->guard.views_version && c->guard.views_version != b->views_version) || s->refuse > 0) {
        s->refuse -= s->refuse > 0;
        write_down(s, " conflict");
        return PAWL_ECONFLICT;
    }
    switch (c->kind) {
    case GROUP0_BASE:
        write_down(s, " %u", c->table);
        b->processing = c->table;
        return PAWL_OK;
    case GROUP0_FINISHED: return apply_finished(s, c);
    case GROUP0_TASKS: return apply_tasks(s, c);
    default:
        write_down(s, " %u %.*s", view_number(c->table), (int)c->words.size, (const char *)c->words.data);
        tasks_delete_view(&b->tasks, c->table);
        return PAWL_OK;
    }
}

static void proposal_is_written(pawl_timer *timer)
{
    static const char *const kinds[] = {[GROUP0_BASE] = "BASE",
                                        [GROUP0_FINISHED] = "FINISHED",
                                        [GROUP0_FAILED] = "FAILED",
                                        [GROUP0_TASKS] = "TASKS"};
    struct scene *s = heap_entry(timer, struct scene, propose_timer);
    struct group0_command command;
    if (s->before_apply)
        s->before_apply(s);
    assert_ok(group0_command_decode(s->proposal, &s->arena, &command, NULL));
    write_down(s, "%" PRIu64 " %s", milliseconds(s), kinds[command.kind]);
    int status = s->propose_status;
    if (status == PAWL_OK)
        status = apply(s, &command);
    else
        write_down(s, " lost");
    write_down(s, "\n");
    s->proposal = (pawl_bytes){0};
    if (status == PAWL_OK)
        group0_changed(s);
    coordinator_proposed(s->coordinator, status);
    coordinator_changed(s->coordinator);
}

static void propose(void *ctx, pawl_bytes command)
{
    struct scene *s = ctx;
    assert_false(s->looking);
    assert_int_equal(s->proposal.size, 0); /* O4 */
    s->proposal = command;
    s->propose_timer.fn = proposal_is_written;
    pawl_env_after(mem_env_port(s->envs[0]), &s->propose_timer, s->propose_takes);
}

static const struct coordinator_ops ops = {.look = look, .looked = looked, .propose = propose};

/* The scene. */

static void run_fn(void *arg)
{
    struct scene *s = arg;
    s->fn(s);
}

static void on_coordinator(struct scene *s, void (*fn)(struct scene *s))
{
    s->fn = fn;
    assert_ok(pawl_env_call(mem_env_port(s->envs[0]), 0, run_fn, s));
}

static void begin_coordinator(struct scene *s)
{
    struct coordinator_options options = {
        .env = mem_env_port(s->envs[0]),
        .shard = 0,
        .bus = local_bus_port(s->buses[0]),
        .term = TERM,
        .ops = &ops,
        .ctx = s,
        .collect = 200 * PAWL_MILLISECOND,
        .backoff = PAWL_SECOND,
        .timeout = 10 * PAWL_SECOND,
        .allocator = s->allocator,
    };
    int status = coordinator_new(&options, &s->coordinator);
    if (status != PAWL_OK) { /* the one allocation that fails */
        assert_status(status, PAWL_ENOMEM);
        assert_ok(coordinator_new(&options, &s->coordinator));
    }
}

static void end_coordinator(struct scene *s)
{
    coordinator_free(s->coordinator);
    s->coordinator = NULL;
}

static void tell(struct scene *s)
{
    coordinator_changed(s->coordinator);
}

/* Partitions: tablet t is of partition t, and lies on node 1 + t % 2. */
static struct scene *scene_new(uint32_t partitions)
{
    struct scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    assert_ok(mem_world_open(&(struct mem_world_options){.seed = 1}, &s->world, NULL));
    assert_ok(local_network_open(&(struct local_network_options){0}, &s->network));
    arena_init(&s->arena, NULL, 65536);
    tasks_init(&s->building.tasks, NULL);
    tablet_map_init(&s->building.map, partitions, NODES, SHARDS);
    for (int i = 0; i < VIEWS; i++) {
        s->views[i].number = (uint16_t)(i + 1);
        s->entries[i] = (struct view_entry){.view = &s->views[i], .progress = VIEW_STARTED};
    }
    s->list = (struct view_list){.version = 1, .entries = s->entries, .count = VIEWS};
    s->building.views = &s->list;
    s->building.views_version = s->building.map_version = s->position = 1;
    for (uint32_t i = 0; i < NODES; i++) {
        struct mem_env_options options = {.shards = SHARDS};
        assert_ok(mem_env_open(s->world, &options, &s->envs[i], NULL));
        assert_ok(local_bus_open(s->network, i + 1, mem_env_port(s->envs[i]), &s->buses[i]));
    }
    for (uint32_t i = 0; i < REPLICAS; i++) {
        s->workers[i] = (struct fake_worker){.s = s, .node = 1 + i / SHARDS, .shard = i % SHARDS};
        assert_ok(pawl_env_call(mem_env_port(s->envs[i / SHARDS]), i % SHARDS, serve, &s->workers[i]));
    }
    s->began = pawl_env_now(mem_env_port(s->envs[0])).ns;
    return s;
}

static void scene_free(struct scene *s)
{
    if (s->coordinator)
        on_coordinator(s, end_coordinator);
    for (uint32_t i = 0; i < NODES; i++)
        local_bus_close(s->buses[i]);
    local_network_close(s->network);
    mem_world_close(s->world);
    tasks_release(&s->building.tasks);
    arena_release(&s->arena);
    free(s);
}

static void begin(struct scene *s)
{
    on_coordinator(s, begin_coordinator);
}

static void pass(struct scene *s, uint64_t ms)
{
    mem_world_advance(s->world, ms * PAWL_MILLISECOND);
}

static void make(struct scene *s, uint32_t base, uint32_t view)
{
    uint32_t made;
    assert_ok(tasks_make(&s->building.tasks, base, view, s->building.map.tablets, NULL, 0, &made));
    group0_changed(s);
}

static void all_work(struct scene *s, enum manner manner, pawl_duration takes)
{
    for (uint32_t i = 0; i < REPLICAS; i++) {
        s->workers[i].manner = manner;
        s->workers[i].takes = takes;
    }
}

/* The one that has the home of partition 0. */
static struct fake_worker *first_worker(struct scene *s)
{
    struct replica home = tablet_map_home(&s->building.map, 0);
    return &s->workers[(home.node - 1) * SHARDS + home.shard];
}

static uint64_t tasks_left(const struct scene *s)
{
    return s->building.tasks.left;
}

TEST(all_views_of_a_tablet_are_given_out_together_and_finished_together)
{
    struct scene *s = scene_new(1);
    make(s, BASE, VIEW(1)); /* task 1 */
    make(s, BASE, VIEW(2)); /* task 2 */
    begin(s);
    pass(s, 199);
    expect(s, "0 BASE 300\n0 1/0 works 1 2\n");
    pass(s, 1);
    expect(s, "200 FINISHED 1 2\n");
    assert_int_equal(tasks_left(s), 0);
    pass(s, 100000);
    expect(s, "");
    scene_free(s);
}

TEST(tasks_of_all_replicas_that_finish_within_200_ms_are_one_proposal)
{
    struct scene *s = scene_new(8);
    make(s, BASE, VIEW(1));
    for (uint32_t i = 0; i < REPLICAS; i++)
        s->workers[i].takes = (i + 1) * 20 * PAWL_MILLISECOND;
    begin(s);
    pass(s, 10000);
    assert_int_equal(tasks_left(s), 0);
    assert_int_equal(coordinator_figures(s->coordinator)->finished, 8);
    assert_true(coordinator_figures(s->coordinator)->proposals <= 3); /* with that of the base */
    scene_free(s);
}

/* Another thread writes its last words, while steps go on. */
TEST(after_its_last_words_it_proposes_nothing)
{
    struct scene *s = scene_new(8);
    pawl_bytes said;
    make(s, BASE, VIEW(1));
    for (uint32_t i = 0; i < REPLICAS; i++)
        s->workers[i].takes = (i + 1) * 20 * PAWL_MILLISECOND;
    begin(s);
    pass(s, 50);
    assert_ok(coordinator_last_words(s->coordinator, &said));
    assert_true(said.size > 0);
    pawl_bytes copy = arena_copy(&s->arena, said);
    uint64_t proposals = coordinator_figures(s->coordinator)->proposals;
    pass(s, 10000);
    assert_int_equal(coordinator_figures(s->coordinator)->proposals, proposals);
    assert_memory_equal(said.data, copy.data, copy.size);
    scene_free(s);
}

TEST(a_replica_is_called_for_its_own_tablets_one_after_the_other)
{
    struct scene *s = scene_new(8);
    make(s, BASE, VIEW(1));
    all_work(s, FINISHES, PAWL_MILLISECOND);
    begin(s);
    pass(s, 1000);
    assert_int_equal(tasks_left(s), 0);
    for (uint16_t p = 0; p < 8; p++) {
        char line[32];
        struct replica home = tablet_map_home(&s->building.map, p);
        snprintf(line, sizeof line, "%u/%u works %u\n", home.node, home.shard, p + 1u);
        assert_contains(s->trace, line);
    }
    scene_free(s);
}

static uint32_t works_of(const struct scene *s, const char *id)
{
    uint32_t count = 0;
    char word[32];
    snprintf(word, sizeof word, "works %s\n", id);
    for (const char *at = s->trace; (at = strstr(at, word)); at++)
        count++;
    return count;
}

TEST(a_task_that_is_finished_and_not_yet_written_is_not_given_out_again)
{
    struct scene *s = scene_new(4);
    s->propose_takes = 3 * PAWL_SECOND;
    make(s, BASE, VIEW(1));
    begin(s);
    pass(s, 6000);
    assert_int_equal(works_of(s, "1"), 1);
    scene_free(s);
}

TEST(a_proposal_that_is_not_written_is_tried_again)
{
    struct scene *s = scene_new(1);
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    s->propose_status = PAWL_EIO;
    begin(s);
    pass(s, 1199);
    expect(s, "0 1/0 works 1\n200 FINISHED lost\n");
    s->propose_status = PAWL_OK;
    pass(s, 10);
    expect(s, "1200 FINISHED 1\n");
    scene_free(s);
}

TEST(a_proposal_that_is_out_of_date_is_decided_anew)
{
    struct scene *s = scene_new(1);
    make(s, BASE, VIEW(1));
    s->refuse = 1;
    begin(s);
    pass(s, 10);
    expect(s, "0 BASE conflict\n0 BASE 300\n0 1/0 works 1\n");
    assert_int_equal(coordinator_figures(s->coordinator)->conflicts, 1);
    scene_free(s);
}

static void abort_all(struct scene *s)
{
    assert_ok(tasks_abort_all(&s->building.tasks));
    s->building.map.resize_to = 2;
    s->building.map_version = ++s->position;
    group0_changed(s);
}

TEST(a_finished_task_that_was_aborted_meanwhile_is_not_proposed)
{
    struct scene *s = scene_new(1);
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    begin(s);
    pass(s, 100);
    expect(s, "0 1/0 works 1\n");
    abort_all(s);
    on_coordinator(s, tell);
    pass(s, 10000);
    expect(s, "");
    assert_int_equal(tasks_left(s), 1);
    scene_free(s);
}

TEST(a_finished_task_that_is_aborted_behind_the_proposal_stays)
{
    struct scene *s = scene_new(1);
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    s->propose_takes = 10 * PAWL_MILLISECOND;
    begin(s);
    pass(s, 205);
    s->before_apply = abort_all;
    pass(s, 10);
    s->before_apply = NULL;
    assert_int_equal(tasks_left(s), 1); /* group0 leaves it alone */
    forget(s);
    s->building.map.resize_to = 0;
    assert_ok(tasks_rollback(&s->building.tasks));
    s->building.map_version = ++s->position;
    group0_changed(s);
    on_coordinator(s, tell);
    pass(s, 1000);
    expect(s, "215 1/0 works 2\n425 FINISHED 2\n"); /* the copy has an ID of its own */
    assert_int_equal(tasks_left(s), 0);
    scene_free(s);
}

TEST(nothing_is_given_out_while_the_map_is_being_resized)
{
    struct scene *s = scene_new(1);
    s->building.processing = BASE;
    s->building.map.resize_to = 2;
    make(s, BASE, VIEW(1));
    begin(s);
    pass(s, 5000);
    expect(s, "");
    s->building.map.resize_to = 0;
    s->building.map.tablets = 2;
    s->building.map_version = ++s->position;
    assert_ok(tasks_resize(&s->building.tasks, 2));
    group0_changed(s);
    on_coordinator(s, tell);
    pass(s, 1000);
    expect(s, "5000 1/0 works 2\n5000 1/0 works 3\n5200 FINISHED 2 3\n");
    scene_free(s);
}

TEST(a_lost_call_is_made_again_after_a_second)
{
    struct scene *s = scene_new(1);
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    first_worker(s)->manner = IS_SILENT;
    begin(s);
    pass(s, 10999);
    expect(s, "0 1/0 works 1\n");
    assert_int_equal(coordinator_figures(s->coordinator)->lost, 1);
    first_worker(s)->manner = FINISHES;
    first_worker(s)->request = NULL;
    pass(s, 1000);
    expect(s, "11000 1/0 works 1\n11200 FINISHED 1\n");
    scene_free(s);
}

TEST(a_node_that_is_down_does_not_keep_the_others_from_building)
{
    struct scene *s = scene_new(8);
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    local_bus_leave(s->buses[1]);
    begin(s);
    pass(s, 5000);
    assert_int_equal(tasks_left(s), 4);
    assert_true(coordinator_figures(s->coordinator)->lost > 0);
    scene_free(s);
}

TEST(a_worker_that_is_busy_or_full_is_called_again_and_the_words_are_told)
{
    struct scene *s = scene_new(1);
    pawl_error error;
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    first_worker(s)->manner = REFUSES;
    first_worker(s)->status = PAWL_EFULL;
    first_worker(s)->words = "the disk is full";
    begin(s);
    assert_false(coordinator_trouble(s->coordinator, VIEW(1), &error));
    pass(s, 2500);
    expect(s, "0 1/0 works 1\n1000 1/0 works 1\n2000 1/0 works 1\n");
    assert_true(coordinator_trouble(s->coordinator, VIEW(1), &error));
    assert_int_equal(error.code, PAWL_EFULL);
    assert_string_equal(error.text, "the disk is full");
    assert_false(coordinator_trouble(s->coordinator, VIEW(2), &error));
    first_worker(s)->status = PAWL_EBUSY;
    first_worker(s)->words = "";
    pass(s, 1000);
    assert_true(coordinator_trouble(s->coordinator, VIEW(1), &error));
    assert_int_equal(error.code, PAWL_EBUSY);
    forget(s);
    first_worker(s)->manner = FINISHES;
    pass(s, 1000);
    expect(s, "4000 1/0 works 1\n4200 FINISHED 1\n");
    assert_false(coordinator_trouble(s->coordinator, VIEW(1), &error));
    scene_free(s);
}

TEST(a_batch_that_failed_is_called_with_the_same_tasks_so_that_it_attaches)
{
    struct scene *s = scene_new(1);
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    first_worker(s)->manner = IS_SILENT;
    begin(s);
    pass(s, 5000);
    make(s, BASE, VIEW(2));
    on_coordinator(s, tell);
    pass(s, 6500);
    expect(s, "0 1/0 works 1\n11000 1/0 works 1\n");
    scene_free(s);
}

TEST(what_is_not_durable_is_asked_about_again_and_keeps_no_other_tablet_waiting)
{
    struct scene *s = scene_new(4);
    tablet_map_init(&s->building.map, 4, 1, 1);
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    first_worker(s)->manner = IS_NOT_DURABLE;
    begin(s);
    pass(s, 199);
    expect(s, "0 1/0 works 1\n0 1/0 works 2\n0 1/0 works 3\n0 1/0 works 4\n");
    first_worker(s)->manner = FINISHES;
    pass(s, 500);
    expect(s, "200 1/0 works 1\n200 1/0 works 2\n200 1/0 works 3\n200 1/0 works 4\n"
              "400 FINISHED 1 2 3 4\n");
    scene_free(s);
}

TEST(a_worker_that_does_not_know_a_task_yet_is_asked_again_later)
{
    struct scene *s = scene_new(1);
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    first_worker(s)->manner = KNOWS_NOTHING;
    begin(s);
    pass(s, 199);
    expect(s, "0 1/0 works 1\n");
    first_worker(s)->manner = FINISHES;
    pass(s, 500);
    expect(s, "200 1/0 works 1\n400 FINISHED 1\n");
    scene_free(s);
}

TEST(a_view_that_fails_is_told_at_once)
{
    struct scene *s = scene_new(1);
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    first_worker(s)->manner = FAILS;
    begin(s);
    pass(s, 1);
    expect(s, "0 1/0 works 1\n0 FAILED 1 two are equal\n");
    pass(s, 10000);
    expect(s, "");
    scene_free(s);
}

/* 8 tablets; OTHER comes with one task. */
static struct scene *two_bases(void)
{
    struct scene *s = scene_new(8);
    uint32_t tablet = 0, made;
    make(s, BASE, VIEW(1));
    assert_ok(tasks_make(&s->building.tasks, OTHER, VIEW(2), 8, &tablet, 1, &made));
    group0_changed(s);
    return s;
}

TEST(the_base_with_the_least_work_left_is_chosen)
{
    struct scene *s = two_bases();
    begin(s);
    pass(s, 1000);
    assert_memory_equal(s->trace, "0 BASE 301\n", 11);
    assert_contains(s->trace, "200 BASE 300\n");
    assert_int_equal(tasks_left(s), 0);
    assert_int_equal(coordinator_figures(s->coordinator)->turns, 0);
    scene_free(s);
}

static void make_staging(struct scene *s, uint32_t base, uint32_t tablet)
{
    uint32_t made;
    assert_ok(tasks_make(&s->building.tasks, base, VIEW(3), s->building.map.tablets, &tablet, 1, &made));
    struct task_group *g = &s->building.tasks.groups[s->building.tasks.count - 1];
    g->type = TASK_PROCESS_STAGING;
    g->view = 0;
    group0_changed(s);
}

TEST(a_base_with_staging_only_is_chosen_first)
{
    struct scene *s = scene_new(1);
    make(s, BASE, VIEW(1));
    make_staging(s, OTHER, 0);
    make(s, BASE + 100, VIEW(2));
    begin(s);
    pass(s, 10);
    expect(s, "0 BASE 301\n0 1/0 works 2\n");
    scene_free(s);
}

TEST(ranges_are_built_before_what_is_staged)
{
    struct scene *s = scene_new(4);
    tablet_map_init(&s->building.map, 4, 1, 1);
    s->building.processing = BASE;
    make_staging(s, BASE, 1); /* task 2 of 1 to 4 */
    make(s, BASE, VIEW(1));   /* 5 to 8 */
    begin(s);
    pass(s, 10);
    expect(s, "0 1/0 works 5\n0 1/0 works 6\n0 1/0 works 7\n0 1/0 works 8\n0 1/0 works 2\n");
    scene_free(s);
}

TEST(a_small_base_takes_its_turn_beside_a_huge_one)
{
    struct scene *s = scene_new(1);
    uint32_t tablet = 0, made;
    tablet_map_init(&s->building.map, 1, 1, 1);
    s->building.map.tablets = 16;
    make(s, BASE, VIEW(1)); /* tasks 1 to 16 */
    first_worker(s)->manner = IS_SILENT;
    begin(s);
    pass(s, 1000);
    expect(s, "0 BASE 300\n0 1/0 works 1\n");
    first_worker(s)->manner = FINISHES;
    assert_ok(tasks_make(&s->building.tasks, OTHER, VIEW(2), 16, &tablet, 1, &made)); /* 17 */
    group0_changed(s);
    on_coordinator(s, tell);
    pass(s, 199);
    expect(s, "1000 BASE 301\n1000 1/0 cancelled\n1000 1/0 works 17\n");
    pass(s, 1);
    assert_contains(s->trace, "1200 FINISHED 17\n");
    pass(s, 1000);
    assert_int_equal(tasks_left(s), 0);
    assert_int_equal(coordinator_figures(s->coordinator)->turns, 1);
    scene_free(s);
}

/* Every tablet has a task for each view, however many rows there are: what counts is rows. */
static struct scene *huge_beside(uint64_t rows)
{
    struct scene *s = scene_new(16);
    make(s, BASE, VIEW(1)); /* tasks 1 to 16 */
    for (uint32_t i = 0; i < REPLICAS; i++) {
        s->workers[i].manner = IS_SILENT;
        s->workers[i].bases[0] = (struct base_rows){BASE, 1000000};
        s->workers[i].base_count = 1;
    }
    begin(s);
    pass(s, 100);
    assert_int_equal(s->building.processing, BASE);
    forget(s);
    make(s, OTHER, VIEW(3)); /* as many */
    for (uint32_t i = 0; i < REPLICAS; i++) {
        s->workers[i].bases[1] = (struct base_rows){OTHER, rows};
        s->workers[i].base_count = 2;
    }
    s->list.version = s->position + 1;
    group0_changed(s);
    on_coordinator(s, tell);
    return s;
}

TEST(a_base_with_few_rows_takes_its_turn_though_it_has_as_many_tasks)
{
    struct scene *s = huge_beside(1000);
    pass(s, 100);
    assert_int_equal(s->building.processing, OTHER);
    assert_int_equal(coordinator_figures(s->coordinator)->turns, 1);
    pass(s, 5000); /* and keeps it */
    assert_int_equal(s->building.processing, OTHER);
    assert_int_equal(coordinator_figures(s->coordinator)->turns, 1);
    scene_free(s);
}

TEST(a_base_with_many_rows_waits_though_it_has_as_many_tasks)
{
    struct scene *s = huge_beside(200000);
    pass(s, 5000);
    assert_int_equal(s->building.processing, BASE);
    scene_free(s);
}

TEST(a_base_whose_rows_are_not_told_yet_takes_no_turn)
{
    struct scene *s = scene_new(16);
    uint32_t tablet = 0, made;
    make(s, BASE, VIEW(1));
    for (uint32_t i = 0; i < REPLICAS; i++) {
        s->workers[i].manner = IS_SILENT;
        s->workers[i].bases[0] = (struct base_rows){BASE, 8};
        s->workers[i].bases[1] = (struct base_rows){OTHER, 1000000};
        s->workers[i].base_count = 2;
    }
    begin(s);
    pass(s, 100);
    forget(s);
    assert_ok(tasks_make(&s->building.tasks, OTHER, VIEW(3), 16, &tablet, 1, &made)); /* one task, and huge */
    s->list.version = s->position + 1;
    group0_changed(s);
    on_coordinator(s, tell);
    pass(s, 5000);
    assert_int_equal(s->building.processing, BASE);
    assert_int_equal(coordinator_figures(s->coordinator)->turns, 0);
    scene_free(s);
}

TEST(a_base_that_is_not_much_smaller_waits)
{
    struct scene *s = scene_new(4);
    uint32_t tablets[2] = {0, 1}, made;
    make(s, BASE, VIEW(1));
    for (uint32_t i = 0; i < REPLICAS; i++)
        s->workers[i].manner = IS_SILENT;
    begin(s);
    pass(s, 100);
    forget(s);
    assert_ok(tasks_make(&s->building.tasks, OTHER, VIEW(2), 4, tablets, 2, &made));
    group0_changed(s);
    on_coordinator(s, tell);
    pass(s, 100);
    expect(s, "");
    scene_free(s);
}

/* Pausing makes a new list. */
static void set_paused(struct scene *s, uint32_t view, bool paused)
{
    s->entries[view - 1].paused = paused;
    s->list.version = s->position + 1;
    group0_changed(s);
    on_coordinator(s, tell);
}

TEST(a_paused_view_is_left_out)
{
    struct scene *s = scene_new(1);
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    make(s, BASE, VIEW(2));
    s->entries[0].paused = true;
    begin(s);
    pass(s, 1000);
    expect(s, "0 1/0 works 2\n200 FINISHED 2\n");
    set_paused(s, 1, false);
    pass(s, 1000);
    expect(s, "1000 1/0 works 1\n1200 FINISHED 1\n");
    scene_free(s);
}

TEST(pausing_a_view_stops_the_batch_that_has_it)
{
    struct scene *s = scene_new(1);
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    make(s, BASE, VIEW(2));
    first_worker(s)->manner = IS_SILENT;
    begin(s);
    pass(s, 1000);
    forget(s);
    first_worker(s)->manner = FINISHES;
    set_paused(s, 1, true);
    pass(s, 10);
    expect(s, "1000 1/0 cancelled\n1000 1/0 works 2\n");
    scene_free(s);
}

TEST(a_base_whose_views_are_all_paused_is_not_chosen)
{
    struct scene *s = two_bases();
    s->entries[1].paused = true;
    begin(s);
    pass(s, 1);
    assert_memory_equal(s->trace, "0 BASE 300\n", 11);
    scene_free(s);
}

TEST(a_base_whose_views_become_paused_gives_way)
{
    struct scene *s = two_bases();
    s->building.processing = OTHER;
    s->entries[1].paused = true;
    begin(s);
    pass(s, 1);
    assert_memory_equal(s->trace, "0 BASE 300\n", 11);
    scene_free(s);
}

TEST(pausing_everything_stops_everything)
{
    struct scene *s = scene_new(1);
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    first_worker(s)->manner = IS_SILENT;
    begin(s);
    pass(s, 1000);
    forget(s);
    s->building.paused = true;
    group0_changed(s);
    on_coordinator(s, tell);
    pass(s, 20000);
    expect(s, "1000 1/0 cancelled\n");
    first_worker(s)->manner = FINISHES;
    s->building.paused = false;
    group0_changed(s);
    on_coordinator(s, tell);
    pass(s, 1000);
    expect(s, "21000 1/0 works 1\n21200 FINISHED 1\n");
    scene_free(s);
}

TEST(what_is_not_covered_gets_tasks)
{
    struct scene *s = scene_new(4);
    first_worker(s)->uncovered[0] = (struct uncovered){BASE, VIEW(1), 0};
    first_worker(s)->uncovered_count = 1;
    begin(s);
    pass(s, 1000);
    expect(s, "0 TASKS 300/1/0\n0 BASE 300\n0 1/0 works 1\n200 FINISHED 1\n");
    for (uint32_t i = 0; i < REPLICAS; i++)
        assert_int_equal(s->workers[i].asked, 1); /* every shard, once a term */
    scene_free(s);
}

TEST(what_is_not_covered_and_has_a_task_gets_no_second_one)
{
    struct scene *s = scene_new(4);
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    all_work(s, IS_SILENT, 0);
    first_worker(s)->uncovered[0] = (struct uncovered){BASE, VIEW(1), 0};
    first_worker(s)->uncovered[1] = (struct uncovered){BASE, VIEW(2), 99}; /* there is no such tablet */
    first_worker(s)->uncovered[2] = (struct uncovered){BASE, VIEW(9), 0};  /* nor such a view */
    first_worker(s)->uncovered_count = 3;
    begin(s);
    pass(s, 1000);
    assert_null(strstr(s->trace, "TASKS"));
    scene_free(s);
}

TEST(a_failed_view_gets_no_tasks)
{
    struct scene *s = scene_new(4);
    s->entries[0].progress = VIEW_FAILED;
    first_worker(s)->uncovered[0] = (struct uncovered){BASE, VIEW(1), 0};
    first_worker(s)->uncovered_count = 1;
    begin(s);
    pass(s, 1000);
    expect(s, "");
    scene_free(s);
}

TEST(tasks_for_what_is_not_covered_are_proposed_again_after_a_conflict)
{
    struct scene *s = scene_new(4);
    first_worker(s)->uncovered[0] = (struct uncovered){BASE, VIEW(1), 0};
    first_worker(s)->uncovered_count = 1;
    s->refuse = 1;
    begin(s);
    pass(s, 100);
    expect(s, "0 TASKS conflict\n0 TASKS 300/1/0\n0 BASE 300\n0 1/0 works 1\n");
    scene_free(s);
}

TEST(shards_are_asked_again_when_the_views_or_the_map_have_changed)
{
    struct scene *s = scene_new(4);
    begin(s);
    pass(s, 100);
    set_paused(s, 1, true); /* another list */
    pass(s, 100);
    s->building.map_version = ++s->position;
    on_coordinator(s, tell);
    pass(s, 100);
    group0_changed(s); /* only tasks */
    on_coordinator(s, tell);
    pass(s, 100);
    for (uint32_t i = 0; i < REPLICAS; i++)
        assert_int_equal(s->workers[i].asked, 3);
    scene_free(s);
}

/* Whatever changes while a step waits for its answers is seen by the next look: a look is at the state, not at
 * the message that told of it. */
TEST(a_change_that_nobody_tells_is_seen_with_the_next_answer)
{
    struct scene *s = scene_new(1);
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    first_worker(s)->takes = 50 * PAWL_MILLISECOND;
    begin(s);
    pass(s, 10);
    make(s, BASE, VIEW(2));
    pass(s, 1000);
    expect(s, "0 1/0 works 1\n50 1/0 works 2\n250 FINISHED 1 2\n");
    scene_free(s);
}

TEST(a_new_task_behind_the_cursor_is_found)
{
    struct scene *s = scene_new(4);
    tablet_map_init(&s->building.map, 4, 1, 1);
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    first_worker(s)->takes = 10 * PAWL_MILLISECOND;
    begin(s);
    pass(s, 25);
    uint32_t tablet = 0, made;
    assert_ok(tasks_make(&s->building.tasks, BASE, VIEW(2), 4, &tablet, 1, &made)); /* 5 */
    group0_changed(s);
    on_coordinator(s, tell);
    pass(s, 1000);
    expect(s, "0 1/0 works 1\n10 1/0 works 2\n20 1/0 works 3\n30 1/0 works 5\n40 1/0 works 4\n"
              "210 FINISHED 1 2 3 5 4\n");
    scene_free(s);
}

TEST(a_coordinator_that_ends_cancels_its_calls)
{
    struct scene *s = scene_new(1);
    s->building.processing = BASE;
    make(s, BASE, VIEW(1));
    first_worker(s)->manner = IS_SILENT;
    begin(s);
    pass(s, 1000);
    forget(s);
    on_coordinator(s, end_coordinator);
    pass(s, 20000);
    expect(s, "1000 1/0 cancelled\n");
    begin(s); /* the next leader knows nothing of what was answered, and asks again */
    pass(s, 1);
    expect(s, "21000 1/0 works 1\n");
    scene_free(s);
}

TEST(an_allocation_that_fails_costs_time_and_no_task)
{
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        struct scene *s = scene_new(8);
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        s->allocator = &memory.allocator;
        make(s, BASE, VIEW(1));
        make(s, OTHER, VIEW(2));
        s->workers[0].uncovered[0] = (struct uncovered){BASE, VIEW(3), 0};
        s->workers[0].uncovered_count = 1;
        begin(s);
        pass(s, 20000);
        assert_int_equal(tasks_left(s), 0);
        assert_contains(s->trace, "TASKS 300/3/0");
        bool failed = test_alloc_failed(&memory);
        scene_free(s);
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
}

static uint64_t thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * PAWL_SECOND + (uint64_t)now.tv_nsec;
}

/* Steps that took more than a millisecond, of so many that the world made. A few may be the machine's. */
static uint64_t long_steps(struct scene *s, uint64_t count)
{
    uint64_t number = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t from = thread_ns();
        if (!mem_world_step(s->world))
            pass(s, 1);
        number += thread_ns() - from > (TEST_SANITIZED ? 20 : 1) * PAWL_MILLISECOND;
        if (i % 1000 == 0)
            arena_reset(&s->arena);
    }
    return number;
}

TEST(a_step_is_short_with_a_million_tasks)
{
    enum { TABLETS = 1048576 };
    struct scene *s = scene_new(16384);
    s->quiet = true;
    s->building.map.tablets = TABLETS;
    for (int i = 1; i <= VIEWS; i++)
        make(s, i == 3 ? OTHER : BASE, VIEW((uint16_t)i));
    for (uint64_t id = 1; id < TABLETS; id++) /* of the first view few are left, far from each other */
        if (id % 5000 != 0)
            tasks_finish(&s->building.tasks, &id, 1, &(uint64_t){0});
    group0_changed(s);
    all_work(s, FINISHES, PAWL_MILLISECOND);
    begin(s);
    uint64_t before = tasks_left(s), slow = long_steps(s, 50000);
    print_message("# %" PRIu64 " slow steps\n", slow);
    assert_true(tasks_left(s) < before);
    assert_true(coordinator_figures(s->coordinator)->steps > 1000);
    assert_true(slow <= 5);
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(all_views_of_a_tablet_are_given_out_together_and_finished_together),
        RUN(tasks_of_all_replicas_that_finish_within_200_ms_are_one_proposal),
        RUN(after_its_last_words_it_proposes_nothing),
        RUN(a_replica_is_called_for_its_own_tablets_one_after_the_other),
        RUN(a_task_that_is_finished_and_not_yet_written_is_not_given_out_again),
        RUN(a_proposal_that_is_not_written_is_tried_again),
        RUN(a_proposal_that_is_out_of_date_is_decided_anew),
        RUN(a_finished_task_that_was_aborted_meanwhile_is_not_proposed),
        RUN(a_finished_task_that_is_aborted_behind_the_proposal_stays),
        RUN(nothing_is_given_out_while_the_map_is_being_resized),
        RUN(a_lost_call_is_made_again_after_a_second),
        RUN(a_node_that_is_down_does_not_keep_the_others_from_building),
        RUN(a_worker_that_is_busy_or_full_is_called_again_and_the_words_are_told),
        RUN(a_batch_that_failed_is_called_with_the_same_tasks_so_that_it_attaches),
        RUN(what_is_not_durable_is_asked_about_again_and_keeps_no_other_tablet_waiting),
        RUN(a_worker_that_does_not_know_a_task_yet_is_asked_again_later),
        RUN(a_view_that_fails_is_told_at_once),
        RUN(the_base_with_the_least_work_left_is_chosen),
        RUN(a_base_with_staging_only_is_chosen_first),
        RUN(ranges_are_built_before_what_is_staged),
        RUN(a_small_base_takes_its_turn_beside_a_huge_one),
        RUN(a_base_with_few_rows_takes_its_turn_though_it_has_as_many_tasks),
        RUN(a_base_with_many_rows_waits_though_it_has_as_many_tasks),
        RUN(a_base_whose_rows_are_not_told_yet_takes_no_turn),
        RUN(a_base_that_is_not_much_smaller_waits),
        RUN(a_paused_view_is_left_out),
        RUN(pausing_a_view_stops_the_batch_that_has_it),
        RUN(a_base_whose_views_are_all_paused_is_not_chosen),
        RUN(a_base_whose_views_become_paused_gives_way),
        RUN(pausing_everything_stops_everything),
        RUN(what_is_not_covered_gets_tasks),
        RUN(what_is_not_covered_and_has_a_task_gets_no_second_one),
        RUN(a_failed_view_gets_no_tasks),
        RUN(tasks_for_what_is_not_covered_are_proposed_again_after_a_conflict),
        RUN(shards_are_asked_again_when_the_views_or_the_map_have_changed),
        RUN(a_change_that_nobody_tells_is_seen_with_the_next_answer),
        RUN(a_new_task_behind_the_cursor_is_found),
        RUN(a_coordinator_that_ends_cancels_its_calls),
        RUN(an_allocation_that_fails_costs_time_and_no_task),
        RUN(a_step_is_short_with_a_million_tasks),
    };
    return TEST_MAIN(tests);
}
