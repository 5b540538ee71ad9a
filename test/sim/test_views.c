/* Views are built by a cluster in which everything goes wrong, by a seed: rows are written all the time, views
 * come, go and are rebuilt, tablets are split and merged, nodes die, leaders change, messages are lost. In the
 * end the faults stop, and every view must become what its base says. PAWL_SEEDS: how many seeds. */
#include "test/sim/views_sim.h"

#include "base/error.h"
#include "test/lib/schema.h"

enum { ROUNDS = 200 };

#define SCHEMA(more, set)                                                                                      \
    "{'schema': 1, 'package': 't', 'types': {"                                                                 \
    "'Item': {'kind': 'WDoc', 'fields': {'a': {'type': 'int64'}, 'b': {'type': 'string'}" more "}},"           \
    "'Tiny': {'kind': 'WDoc', 'fields': {'a': {'type': 'int64'}, 'b': {'type': 'string'}}}},"                  \
    "'commands': {'Do': {'records': ['Item', 'Tiny']}},"                                                       \
    "'entities': {'Sum': {'key': ['k'], 'fields': {'k': {'type': 'string'}, 'a': {'type': 'int64'}}}},"        \
    "'projectors': {'sums': {'on': ['Do'], 'do': [{'upsert': 'Sum', 'key': {'k': '`x`'},"                      \
    " 'set': {'a': '" set "'}}]}}}"

static const char schema[] = SCHEMA("", "1");
static const char schema_with_c[] = SCHEMA(", 'c': {'type': 'int64'}", "1");

struct shape {
    const char *base;
    const char *key[2];
    const char *filter;
    bool unique;
};

/* Those of c are refused until the field is there. */
static const struct shape shapes[] = {
    {"Item", {"a"}, NULL, false},
    {"Item", {"b", "a"}, "a > 3", false},
    {"Item", {"a", "id"}, NULL, true},
    {"Item", {"b"}, "a = 5", true},
    {"Item", {"b"}, "60 / a > 9 and active", false},
    {"Item", {"c"}, NULL, false},
    {"Item", {"b", "c"}, "c > 1 or a > 5", false},
    {"Tiny", {"b"}, NULL, false},
    {"Tiny", {"a"}, "active", true},
    {"Sum", {"a"}, NULL, false},
    {"Sum", {"a", "k"}, "a > 2", false},
};

static const char *const names[] = {"v0", "v1", "v2"};
static const char *const qualified[] = {"t.v0", "t.v1", "t.v2"};

/* Commands of an operator, which may not fit what is there: then nothing happens. */

static void append(struct node *node, uint32_t shard, uint64_t argument)
{
    pawl_bytes bytes;
    const struct group0_command *c = (const struct group0_command *)(uintptr_t)argument;
    assert_ok(group0_view_encode(c, &node->sim->arena, &bytes));
    (void)sim_append(node->sim, bytes);
}

static void command(struct sim *sim, const struct group0_command *c)
{
    if (sim->leader)
        sim_on(&sim->node[sim->leader - 1], 0, append, (uint64_t)(uintptr_t)c);
}

static void create_view(struct sim *sim)
{
    const struct shape *shape = &shapes[sim_below(sim, sizeof shapes / sizeof shapes[0])];
    pawl_bytes key[2], include[1] = {text_bytes("a")};
    size_t keys = 0;
    for (; keys < 2 && shape->key[keys]; keys++)
        key[keys] = text_bytes(shape->key[keys]);
    struct definition_view view = {
        .name = text_bytes(names[sim_below(sim, 3)]),
        .base = text_bytes(shape->base),
        .key = key,
        .key_count = keys,
        .include = include,
        .include_count = strcmp(shape->key[0], "b") == 0 && keys == 1,
        .filter = text_bytes(shape->filter ? shape->filter : ""),
        .unique = shape->unique,
    };
    struct group0_command c = {.kind = GROUP0_VIEW_CREATE};
    c.schema = (struct definition){.package = text_bytes("t"), .views = &view, .view_count = 1};
    command(sim, &c);
}

static void operate(struct sim *sim)
{
    struct group0_command c = {.name = text_bytes(qualified[sim_below(sim, 3)])};
    uint64_t what = sim_below(sim, 12);
    if (what < 4) {
        create_view(sim);
        return;
    }
    c.kind = what == 4 ? GROUP0_VIEW_DROP : what < 7 ? GROUP0_VIEW_REBUILD : GROUP0_VIEW_PAUSE;
    c.paused = sim_below(sim, 3) == 0;
    if (c.kind == GROUP0_VIEW_PAUSE && sim_below(sim, 3) == 0)
        c.name = (pawl_bytes){0};
    if (what == 11) {
        c = (struct group0_command){.kind = GROUP0_VIEW_THROTTLE};
        c.throttle = sim_below(sim, 2) * (100 + sim_below(sim, 1000));
    }
    command(sim, &c);
}

static void resize(struct sim *sim)
{
    struct node *leader = &sim->node[sim->leader ? sim->leader - 1 : 0];
    if (!sim->leader || !leader->up)
        return;
    const struct tablet_map *map = &node_building(leader)->map;
    struct group0_command c = {.kind = GROUP0_RESIZE_BEGIN};
    c.tablets = sim_below(sim, 2) ? map->tablets * 2 : map->tablets / 2;
    if (map->resize_to != 0)
        c.kind = sim_below(sim, 2) ? GROUP0_RESIZE_FINISH : GROUP0_RESIZE_ROLLBACK;
    if (map->resize_to != 0 || (c.tablets >= sim->partitions && c.tablets <= 8 * sim->partitions))
        command(sim, &c);
}

/* What bases go through. */

static void append_bytes(struct node *node, uint32_t shard, uint64_t argument)
{
    struct sim *sim = node->sim;
    const pawl_bytes *command = (const pawl_bytes *)(uintptr_t)argument;
    size_t before = sim->entries;
    (void)sim_append(sim, *command);
    sim->appended = sim->entries > before;
}

/* Whether it was taken. */
static bool say(struct sim *sim, pawl_bytes command)
{
    sim->appended = false;
    if (sim->leader)
        sim_on(&sim->node[sim->leader - 1], 0, append_bytes, (uint64_t)(uintptr_t)&command);
    return sim->appended;
}

static void add_field(struct sim *sim)
{
    struct arena arena;
    pawl_bytes bytes;
    assert_ok(schema_command(NULL, schema_with_c, &arena, &bytes, NULL));
    sim->counts.fields += say(sim, bytes);
    arena_release(&arena);
}

/* The generation that serves goes when the new one is there; the new one goes when it is rebuilt once more. */
static void change_lane(struct sim *sim)
{
    uint64_t offsets[8] = {0};
    struct arena arena;
    pawl_bytes bytes;
    if (!sim->leader)
        return;
    const struct schema *now = group0_schema(sim->node[sim->leader - 1].group0);
    const struct schema_lane lane = now->lanes[0];
    arena_init(&arena, NULL, 256);
    if (lane.generation == lane.serving || sim_below(sim, 4) == 0) {
        assert_ok(group0_rebuild_encode(lane.id, &arena, &bytes));
        sim->counts.rebuilt += say(sim, bytes);
    } else if (sim_may_switch(sim, lane.generation)) {
        assert_ok(group0_switch_encode(lane.id, lane.generation, offsets, 8, &arena, &bytes));
        sim->counts.switched += say(sim, bytes);
    }
    arena_release(&arena);
}

/* Faults. */

static struct node *any_node(struct sim *sim)
{
    return &sim->node[sim_below(sim, sim->nodes)];
}

static void write_on(struct node *node, uint32_t shard, uint64_t count)
{
    node_write_rows(node, shard, count);
}

static void write_somewhere(struct sim *sim)
{
    struct node *node = any_node(sim);
    if (node->up)
        sim_on(node, (uint32_t)sim_below(sim, sim->shards), write_on, 1 + sim_below(sim, 30));
}

static void crash_or_open(struct sim *sim)
{
    struct node *node = any_node(sim);
    if (!node->up) {
        node_open(node);
        return;
    }
    uint64_t what = sim_below(sim, 10);
    enum node_loss loss = what == 0 ? LOSS_RESTORED : what < 5 ? LOSS_POWER : LOSS_NONE;
    sim->counts.crashes += loss == LOSS_NONE;
    sim->counts.cuts += loss == LOSS_POWER;
    sim->counts.restored += loss == LOSS_RESTORED;
    node_crash(node, loss);
}

static void change_leader(struct sim *sim)
{
    struct node *node = any_node(sim);
    if (node->up)
        node_lead(node);
}

static void change_links(struct sim *sim)
{
    links_mend(&sim->links);
    sim->links.lose_percent = (uint32_t)sim_below(sim, 3) * 10;
    sim->links.twice_percent = (uint32_t)sim_below(sim, 3) * 10;
    sim->links.delay_max = sim_below(sim, 3) * 500 * PAWL_MILLISECOND;
    if (sim_below(sim, 3) == 0)
        links_cut(&sim->links, 1 + (uint32_t)sim_below(sim, sim->nodes),
                  1 + (uint32_t)sim_below(sim, sim->nodes), true);
}

static void fail_store(struct sim *sim)
{
    static const enum mem_store_op ops[] = {MEM_STORE_PUT, MEM_STORE_COMMIT};
    struct node *node = any_node(sim);
    struct mem_store_fault fault = {
        .op = ops[sim_below(sim, 2)], .countdown = 1 + sim_below(sim, 20), .times = 1 + sim_below(sim, 3)};
    fault.status = PAWL_EFULL;
    if (node->up)
        mem_store_disk_fail(node->shards[sim_below(sim, sim->shards)].disk, fault);
}

static void checkpoint_somewhere(struct sim *sim)
{
    struct node *node = any_node(sim);
    uint32_t shard = (uint32_t)sim_below(sim, sim->shards);
    if (!node->up)
        return;
    node_checkpoint(node, shard);
    if (!node->shards[shard].old_name[0] || sim_below(sim, 8) == 0)
        node_keep_checkpoint(node, shard);
}

static void happen(struct sim *sim)
{
    uint64_t what = sim_below(sim, 100);
    if (what < 35)
        write_somewhere(sim);
    else if (what < 51)
        operate(sim);
    else if (what < 54)
        change_lane(sim);
    else if (what < 55)
        add_field(sim);
    else if (what < 65)
        resize(sim);
    else if (what < 80)
        checkpoint_somewhere(sim);
    else if (what < 86)
        crash_or_open(sim);
    else if (what < 90)
        change_leader(sim);
    else if (what < 95)
        change_links(sim);
    else
        fail_store(sim);
}

/* The end: nothing goes wrong any more, and all must be built. */

static void make_calm(struct sim *sim)
{
    sim->calm = true;
    links_mend(&sim->links);
    for (uint32_t i = 0; i < sim->nodes; i++) {
        if (!sim->node[i].up)
            node_open(&sim->node[i]);
        for (uint32_t k = 0; k < sim->shards; k++)
            mem_store_disk_fail(sim->node[i].shards[k].disk, (struct mem_store_fault){0});
    }
    change_leader(sim);
    command(sim, &(struct group0_command){.kind = GROUP0_VIEW_THROTTLE});
    command(sim, &(struct group0_command){.kind = GROUP0_VIEW_PAUSE});
    for (size_t i = 0; i < 3; i++)
        command(sim, &(struct group0_command){.kind = GROUP0_VIEW_PAUSE, .name = text_bytes(qualified[i])});
    if (node_building(&sim->node[sim->leader - 1])->map.resize_to != 0)
        resize(sim);
}

static void settle(struct sim *sim)
{
    const struct building *b = node_building(&sim->node[sim->leader - 1]);
    for (int i = 0; i < 600 && (b->tasks.left > 0 || i < 5); i++) {
        mem_world_advance(sim->world, PAWL_SECOND);
        for (uint32_t n = 0; n < sim->nodes; n++)
            for (uint32_t s = 0; s < sim->shards; s++)
                node_checkpoint(&sim->node[n], s);
    }
    assert_int_equal(b->tasks.left, 0);
    assert_int_equal(b->processing, 0);
    for (size_t i = 0; i < b->views->count; i++) {
        const struct view_entry *e = &b->views->entries[i];
        assert_int_equal(e->replaces != 0 && e->progress != VIEW_FAILED, 0);
        assert_true(e->progress == VIEW_SUCCESS || (e->progress == VIEW_FAILED && e->view->unique));
    }
}

static void sim_open(struct sim *sim, uint64_t seed)
{
    struct arena arena;
    pawl_bytes bytes;
    *sim = (struct sim){.random = seed};
    sim->nodes = 1 + (uint32_t)sim_below(sim, NODES_MAX);
    sim->shards = 1 + (uint32_t)sim_below(sim, SHARDS_MAX);
    sim->partitions = 8;
    sim->links.random = test_random(&sim->random);
    arena_init(&sim->arena, NULL, 65536);
    struct local_network_options network = {.fate = links_fate, .ctx = &sim->links};
    assert_ok(mem_world_open(&(struct mem_world_options){.seed = seed}, &sim->world, NULL));
    assert_ok(local_network_open(&network, &sim->network));
    assert_ok(schema_command(NULL, schema, &arena, &bytes, NULL));
    sim->log[sim->entries++] = arena_copy(&sim->arena, bytes);
    arena_release(&arena);
    for (uint32_t i = 0; i < sim->nodes; i++) {
        sim->node[i].sim = sim;
        sim->node[i].id = i + 1;
        node_open(&sim->node[i]);
    }
    node_lead(&sim->node[0]);
}

static void sim_close(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->nodes; i++)
        node_free(&sim->node[i]);
    local_network_close(sim->network);
    mem_world_close(sim->world);
    arena_release(&sim->arena);
}

static struct sim_counts total;

static void add_counts(const struct sim_counts *c)
{
    total.slices += c->slices;
    total.crashes += c->crashes;
    total.cuts += c->cuts;
    total.restored += c->restored;
    total.unheard += c->unheard;
    total.fields += c->fields;
    total.rebuilt += c->rebuilt;
    total.switched += c->switched;
    total.turns += c->turns;
}

static void run(uint64_t seed)
{
    struct sim *sim = malloc(sizeof *sim);
    assert_non_null(sim);
    sim_open(sim, seed);
    for (int i = 0; i < ROUNDS; i++) {
        happen(sim);
        mem_world_advance(sim->world,
                          sim_below(sim, 4) == 0 ? sim_below(sim, PAWL_SECOND) : sim_below(sim, 20000000));
    }
    make_calm(sim);
    settle(sim);
    for (uint32_t i = 0; i < sim->nodes; i++) {
        check_coverage(sim, &sim->node[i], true);
        check_rows(sim, &sim->node[i]);
    }
    sim_close(sim);
    add_counts(&sim->counts);
    free(sim);
}

TEST(every_view_becomes_what_its_base_says)
{
    const char *text = getenv("PAWL_SEEDS");
    uint64_t seed = test_seed(1), count = text ? strtoull(text, NULL, 0) : TEST_SANITIZED ? 20 : 200;
    for (uint64_t i = 0; i < count; i++) {
        if (getenv("PAWL_SHOW"))
            print_message("# %" PRIu64 "\n", seed + i);
        run(seed + i);
    }
    print_message("# %" PRIu64 " slices, %" PRIu64 " crashes, %" PRIu64 " cuts, %" PRIu64
                  " old states put back, %" PRIu64 " changes not heard of\n",
                  total.slices, total.crashes, total.cuts, total.restored, total.unheard);
    print_message("# %" PRIu64 " fields added, %" PRIu64 " lanes rebuilt, %" PRIu64 " switched, %" PRIu64
                  " turns taken\n",
                  total.fields, total.rebuilt, total.switched, total.turns);
    assert_true(count < 20
                || (total.slices > count && total.crashes > 0 && total.cuts > 0 && total.restored > 0
                    && total.unheard > 0 && total.fields > 0 && total.switched > 0
                    && total.rebuilt > total.switched && total.turns > 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {RUN(every_view_becomes_what_its_base_says)};
    return TEST_MAIN(tests);
}
