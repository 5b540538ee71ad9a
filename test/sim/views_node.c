#include "test/sim/views_sim.h"

#include "base/error.h"
#include "base/heap.h"
#include "base/id.h"
#include "core/schema/row.h"

const struct building *node_building(const struct node *node)
{
    return group0_building(node->group0);
}

struct partition_set sim_set(const struct sim *sim, uint32_t node, uint32_t shard)
{
    uint32_t first = node - 1 + sim->nodes * shard, step = sim->nodes * sim->shards;
    return (struct partition_set){.first = first,
                                  .step = step,
                                  .count =
                                      first < sim->partitions ? (sim->partitions - first - 1) / step + 1 : 0};
}

static void run_called(void *arg)
{
    struct sim *sim = arg;
    sim->fn(sim->called, sim->called_shard, sim->argument);
}

void sim_on(struct node *node, uint32_t shard, void (*fn)(struct node *node, uint32_t shard, uint64_t argument),
            uint64_t argument)
{
    struct sim *sim = node->sim;
    sim->called = node;
    sim->fn = fn;
    sim->called_shard = shard;
    sim->argument = argument;
    assert_ok(pawl_env_call(mem_env_port(node->env), shard, run_called, sim));
}

/* The store. */

/* Whether the transaction was committed. */
static int commit(struct shard *shard, int status)
{
    if (status == PAWL_OK)
        status = view_tables_flush(&shard->tables);
    if (status == PAWL_OK)
        status = pawl_store_commit(shard->store);
    if (status == PAWL_OK) {
        view_tables_committed(&shard->tables);
    } else {
        pawl_store_abort(shard->store);
        view_tables_aborted(&shard->tables);
    }
    return status;
}

static void refresh(struct shard *shard)
{
    const struct building *b = node_building(shard->node);
    const struct schema *schema = group0_schema(shard->node->group0);
    (void)commit(shard,
                 view_tables_refresh(&shard->tables, b->views, schema, NULL)); /* else the next put does */
}

/* Field c of Item is there only once a schema has brought it. */
static pawl_bytes make_record(struct sim *sim, const struct schema_type *type, uint8_t *room, size_t size)
{
    struct record_row head = {.active = sim_below(sim, 4) > 0, .type = type->id};
    struct value values[3] = {{.type = VALUE_INT64, .integer = (int64_t)sim_below(sim, 12)}};
    size_t row, count = type->field_count;
    char text[16];
    assert_true(count == 2 || count == 3);
    snprintf(text, sizeof text, "x%" PRIu64, sim_below(sim, 5));
    values[1] = (struct value){.type = VALUE_STRING, .bytes = text_bytes(text)};
    if (count == 3)
        values[2] = (struct value){.type = VALUE_INT64, .integer = (int64_t)sim_below(sim, 4)};
    if (sim_below(sim, 10) == 0)
        values[sim_below(sim, count)] = (struct value){0};
    assert_ok(row_size(values, count, &row));
    assert_true(RECORD_BYTES + row <= size);
    record_head_write(&head, room);
    row_write(values, count, room + RECORD_BYTES);
    return (pawl_bytes){room, RECORD_BYTES + row};
}

static pawl_bytes make_sum(struct sim *sim, const struct value *key, uint8_t *room, size_t size)
{
    struct value values[2] = {*key, {.type = VALUE_INT64, .integer = (int64_t)sim_below(sim, 12)}};
    size_t row;
    assert_ok(row_size(values, 2, &row));
    assert_true(row <= size);
    row_write(values, 2, room);
    return (pawl_bytes){room, row};
}

static int put(struct shard *shard, pawl_bytes key, pawl_bytes value)
{
    struct put_watch *watch = view_tables_watch(&shard->tables);
    int status = watch ? watch->put(watch, shard->store, key, NULL, value) : PAWL_OK;
    if (status != PAWL_OK)
        return status;
    shard->node->sim->counts.written++;
    return value.data ? pawl_store_put(shard->store, STATE_SPACE, key, value)
                      : pawl_store_remove(shard->store, STATE_SPACE, key);
}

/* Whether a row that is there is to be removed. */
static bool is_removed(struct shard *shard, pawl_bytes key)
{
    pawl_bytes was;
    return pawl_store_get(pawl_store_writer(shard->store), STATE_SPACE, key, &was) == PAWL_OK
           && sim_below(shard->node->sim, 3) == 0;
}

static int write_record(struct shard *shard, const struct schema_type *type, uint64_t wsid, uint64_t records)
{
    struct sim *sim = shard->node->sim;
    uint8_t key[KEY_NUMBERED], room[256];
    pawl_bytes at = key_numbered(type->table, wsid, 1 + sim_below(sim, records), key);
    pawl_bytes value = {0};
    if (!is_removed(shard, at))
        value = make_record(sim, type, room, sizeof room);
    return put(shard, at, value);
}

/* In each generation that the lane fills. */
static int write_sum(struct shard *shard, const struct schema *schema, const struct schema_type *type,
                     uint64_t wsid)
{
    struct sim *sim = shard->node->sim;
    const struct schema_lane *lane = schema_lane_by_id(schema, type->lane);
    uint32_t generations[2] = {lane->serving, lane->generation};
    int status = PAWL_OK;
    for (size_t i = 0; i < 2 && status == PAWL_OK; i++) {
        uint8_t key[KEY_WORKSPACE + 64], room[256];
        char text[16];
        if (i == 1 && generations[0] == generations[1])
            break;
        snprintf(text, sizeof text, "k%" PRIu64, sim_below(sim, RECORDS));
        struct value name = {.type = VALUE_STRING, .bytes = text_bytes(text)};
        key_of_workspace(schema_table(type, generations[i]), wsid, key);
        size_t own = row_key_write(&name, 1, key + KEY_WORKSPACE, sizeof key - KEY_WORKSPACE);
        pawl_bytes at = {key, KEY_WORKSPACE + own};
        pawl_bytes value = {0};
        if (!is_removed(shard, at))
            value = make_sum(sim, &name, room, sizeof room);
        status = put(shard, at, value);
    }
    return status;
}

/* Insert, change or delete a row of a workspace that lies here. The schema is the one that the store's views know: a
 * generation is filled only behind that. */
static int write_row(struct shard *shard)
{
    struct sim *sim = shard->node->sim;
    struct partition_set set = shard->tables.set;
    const struct schema *schema = shard->tables.schema;
    uint64_t wsid = 1 + sim_below(sim, WORKSPACES), which = sim_below(sim, 20);
    uint16_t partition = partition_of(hash_token(wsid), sim->partitions);
    if (!schema || partition < set.first || (partition - set.first) % set.step != 0)
        return PAWL_OK;
    if (which < 4)
        return write_sum(shard, schema, schema_type_by_name(schema, text_bytes("t.Sum")), wsid);
    bool tiny = which == 4;
    return write_record(shard, schema_type_by_name(schema, text_bytes(tiny ? "t.Tiny" : "t.Item")), wsid,
                        tiny ? 1 : RECORDS);
}

void node_write_rows(struct node *node, uint32_t shard_id, uint64_t count)
{
    struct shard *shard = &node->shards[shard_id];
    int status = PAWL_OK;
    for (uint64_t i = 0; i < count && status == PAWL_OK; i++)
        status = write_row(shard);
    (void)commit(shard, status);
}

/* group0, as the worker sees it. */

static int get_task(void *ctx, uint64_t id, struct task *ret_task)
{
    struct shard *shard = ctx;
    return tasks_find(&node_building(shard->node)->tasks, id, ret_task);
}

struct task_place {
    uint16_t partition;
    pawl_range range;
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
};

static void place_task(struct shard *shard, const struct task *task, struct task_place *place)
{
    uint32_t partitions = node_building(shard->node)->map.partitions;
    place->partition = (uint16_t)(task->tablet / (task->tablets / partitions));
    place->range = tablet_range(task->tablets, task->tablet, task->base, place->from, place->to);
}

static int build_slice(void *ctx, const struct task *tasks, size_t count, uint32_t rows_max,
                       struct slice_report *ret_report, pawl_error *error)
{
    struct shard *shard = ctx;
    uint32_t views[64];
    struct task_place place;
    struct slice_report report;
    assert_true(count <= 64);
    place_task(shard, &tasks[0], &place);
    for (size_t i = 0; i < count; i++)
        views[i] = tasks[i].view;
    struct slice slice = {.partition = place.partition,
                          .base = tasks[0].base,
                          .views = views,
                          .count = count,
                          .range = place.range,
                          .rows_max = 1 + (uint32_t)sim_below(shard->node->sim, rows_max < 8 ? rows_max : 8)};
    int status = PAWL_OK;
    for (uint64_t n = sim_below(shard->node->sim, 4); n > 0 && status == PAWL_OK; n--)
        status = write_row(shard); /* an applier has rows and slices in one transaction */
    status = commit(shard, status == PAWL_OK ? slice_put(&shard->tables, &slice, &report) : status);
    if (status != PAWL_OK)
        return error_set(error, status, "no slice");
    shard->node->sim->counts.slices++;
    mem_env_jump(shard->node->env, PAWL_MILLISECOND);
    *ret_report = report;
    return PAWL_OK;
}

static bool covers(void *ctx, const struct task *task)
{
    struct shard *shard = ctx;
    struct task_place place;
    place_task(shard, task, &place);
    return slice_covers(&shard->tables, task->view, place.partition, place.range);
}

/* Whether the checkpoint covers it, too. */
static bool is_durable(struct shard *shard, const struct task *task, const struct task_place *place)
{
    struct view_state state;
    if (!shard->checkpoint)
        return false;
    view_state_init(&state, NULL, place->partition, task->view, task->base);
    bool durable = view_state_read(&state, pawl_store_writer(shard->checkpoint), NULL) == PAWL_OK
                   && (state.complete || coverage_covers(&state.coverage, place->range.from, place->range.to));
    view_state_release(&state);
    return durable;
}

static enum work_outcome judge(void *ctx, const struct task *task, pawl_error *error)
{
    struct shard *shard = ctx;
    struct task_place place;
    place_task(shard, task, &place);
    if (!is_durable(shard, task, &place))
        return WORK_NOT_DURABLE;
    const struct view_table *table = view_tables_find(&shard->tables, task->view);
    const struct kept_state *kept = view_tables_state(&shard->tables, task->view, place.partition);
    if (!table || !table->view->unique || !kept || !kept->state.complete || kept->state.equal == 0)
        return WORK_FINISHED;
    error_set(error, PAWL_EEXISTS, "%" PRIu64 " rows are equal", kept->state.equal);
    return WORK_FAILED;
}

static bool count_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    (void)key;
    (void)value;
    ++*(uint64_t *)arg;
    return true;
}

/* Tables are in the order of their bases. */
static void list_bases(struct shard *shard, struct arena *arena, struct uncovered_reply *reply)
{
    struct view_tables *t = &shard->tables;
    reply->bases = arena_take(arena, (t->count + 1) * sizeof *reply->bases);
    for (size_t i = 0; i < t->count; i++) {
        if (i > 0 && t->tables[i].base == t->tables[i - 1].base)
            continue;
        struct base_rows rows = {.base = t->tables[i].base};
        for (size_t k = 0; k < t->set.count; k++) {
            uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
            pawl_range range = view_partition_range(t->partitions, partition_set_at(&t->set, k), STATE_SPACE,
                                                    rows.base, from, to);
            (void)pawl_store_scan(pawl_store_writer(t->store), range, false, count_row, &rows.rows);
        }
        reply->bases[reply->base_count++] = rows;
    }
}

static int list_uncovered(void *ctx, struct arena *arena, struct uncovered_reply *ret_reply)
{
    struct shard *shard = ctx;
    const struct tablet_map *map = &node_building(shard->node)->map;
    struct view_tables *t = &shard->tables;
    struct uncovered *list = arena_take(arena, 4096 * sizeof *list);
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++)
        for (uint32_t tablet = 0; tablet < map->tablets && count < 4096; tablet++) {
            struct task task = {.base = t->tables[i].base,
                                .view = t->tables[i].table,
                                .tablet = tablet,
                                .tablets = map->tablets};
            struct replica home = tablet_map_home(map, tablet_partition(map, tablet));
            if (home.node == shard->node->id && home.shard == shard->id && !covers(ctx, &task))
                list[count++] = (struct uncovered){task.base, task.view, tablet};
        }
    *ret_reply = (struct uncovered_reply){.list = list, .count = count};
    list_bases(shard, arena, ret_reply);
    return PAWL_OK;
}

static uint64_t throttle(void *ctx)
{
    struct shard *shard = ctx;
    return node_building(shard->node)->throttle;
}

static const struct worker_ops worker_ops = {
    .task = get_task,
    .slice = build_slice,
    .judge = judge,
    .covers = covers,
    .uncovered = list_uncovered,
    .throttle = throttle,
};

/* The log. */

/* That group0 has changed is told once, and whoever is not listening then misses it. */
static bool is_heard(struct sim *sim)
{
    bool heard = sim->calm || sim_below(sim, 4) > 0;
    sim->counts.unheard += !heard;
    return heard;
}

/* The store's views are told by a call, which is not lost. */
static void shard_changed(pawl_task *task)
{
    struct shard *shard = heap_entry(task, struct shard, changed);
    refresh(shard);
    if (is_heard(shard->node->sim))
        worker_changed(shard->worker);
}

void node_catch_up(struct node *node)
{
    enum group0_outcome outcome;
    size_t before = node->applied;
    for (; node->applied < node->sim->entries; node->applied++)
        assert_ok(group0_apply(node->group0, node->applied + 1, node->sim->log[node->applied], &outcome, NULL));
    if (before == node->applied || !node->shards[0].worker)
        return;
    for (uint32_t i = 0; i < node->sim->shards; i++)
        (void)pawl_env_post(mem_env_port(node->env), i, &node->shards[i].changed);
    if (node->coordinator && is_heard(node->sim))
        coordinator_changed(node->coordinator);
}

static void apply_now(pawl_timer *timer)
{
    node_catch_up(heap_entry(timer, struct node, apply_timer));
}

/* On the node's shard 0. */
static void apply_later(pawl_task *task)
{
    struct node *node = heap_entry(task, struct node, apply_soon);
    struct sim *sim = node->sim;
    pawl_duration delay = node->id == sim->leader ? 0 : sim_below(sim, 400) * PAWL_MILLISECOND;
    pawl_env_after(mem_env_port(node->env), &node->apply_timer, delay);
}

/* The leader's own group0 judges, and is the first one to apply. */
int sim_append(struct sim *sim, pawl_bytes command)
{
    struct node *leader = &sim->node[sim->leader - 1];
    enum group0_outcome outcome;
    if (sim->leader == 0 || !leader->up)
        return PAWL_EBUSY;
    node_catch_up(leader);
    int status = group0_check(leader->group0, command, &outcome, NULL);
    if (status != PAWL_OK || outcome != GROUP0_CHANGED)
        return status;
    assert_true(sim->entries < ENTRIES_MAX);
    sim->log[sim->entries] = arena_copy(&sim->arena, command);
    sim->entries++;
    for (uint32_t i = 0; i < sim->nodes; i++)
        if (sim->node[i].up)
            (void)pawl_env_post(mem_env_port(sim->node[i].env), 0, &sim->node[i].apply_soon);
    return PAWL_OK;
}

/* The coordinator. */

static const struct building *look(void *ctx)
{
    return node_building(ctx);
}

static void looked(void *ctx)
{
    (void)ctx;
}

/* Refused if the node no longer leads, or lost; else it is applied here before the coordinator hears of it. */
static void proposal_is_over(pawl_timer *timer)
{
    struct node *node = heap_entry(timer, struct node, propose_timer);
    struct sim *sim = node->sim;
    int status = PAWL_EFENCED;
    if (node->term == sim->term)
        status = !sim->calm && sim_below(sim, 10) == 0 ? PAWL_EIO : sim_append(sim, node->proposal);
    if (status == PAWL_OK)
        node_catch_up(node);
    coordinator_proposed(node->coordinator, status);
    if (status == PAWL_EFENCED) {
        coordinator_free(node->coordinator);
        node->coordinator = NULL;
    }
}

static void propose(void *ctx, pawl_bytes command)
{
    struct node *node = ctx;
    struct sim *sim = node->sim;
    node->proposal = command;
    pawl_env_after(mem_env_port(node->env), &node->propose_timer, sim_below(sim, 20) * PAWL_MILLISECOND);
}

static const struct coordinator_ops coordinator_ops = {.look = look, .looked = looked, .propose = propose};

static void end_coordinator(struct node *node, uint32_t shard, uint64_t argument)
{
    pawl_env_cancel(mem_env_port(node->env), &node->propose_timer);
    if (node->coordinator)
        node->sim->counts.turns += coordinator_figures(node->coordinator)->turns;
    coordinator_free(node->coordinator);
    node->coordinator = NULL;
}

bool sim_may_switch(struct sim *sim, uint32_t generation)
{
    for (uint32_t i = 0; i < sim->nodes * sim->shards; i++) {
        struct node *node = &sim->node[i / sim->shards];
        struct view_tables *t = &node->shards[i % sim->shards].tables;
        const struct view_list *list = node_building(&sim->node[sim->leader - 1])->views;
        if (!node->up)
            return false;
        for (size_t k = 0; k < list->count; k++) {
            const struct view *view = list->entries[k].view;
            if (view->base->kind != TYPE_ENTITY || list->entries[k].progress != VIEW_SUCCESS)
                continue;
            for (size_t p = 0; p < t->set.count; p++) {
                struct kept_state *kept =
                    view_tables_state(t, view_table(view->number, generation), partition_set_at(&t->set, p));
                if (!kept || !kept->state.complete)
                    return false;
            }
        }
    }
    return true;
}

static void begin_coordinator(struct node *node, uint32_t shard, uint64_t argument)
{
    struct coordinator_options options = {
        .env = mem_env_port(node->env),
        .bus = local_bus_port(node->bus),
        .term = node->sim->term,
        .ops = &coordinator_ops,
        .ctx = node,
        .timeout = 3 * PAWL_SECOND,
    };
    end_coordinator(node, 0, 0);
    node->sim->leader = node->id;
    node->term = node->sim->term;
    node_catch_up(node);
    assert_ok(coordinator_new(&options, &node->coordinator));
}

/* The leader before it goes on until it finds out. */
void node_lead(struct node *node)
{
    node->sim->term++;
    sim_on(node, 0, begin_coordinator, 0);
}

/* Life and death. */

static void open_store(struct shard *shard, const char *name, pawl_store **ret_store)
{
    struct mem_store_options options = {.name = name, .mode = PAWL_STORE_DURABLE};
    assert_ok(mem_store_open(shard->disk, &options, NULL, ret_store, NULL));
}

/* A copy of the last commit takes the place of the one before. */
void node_checkpoint(struct node *node, uint32_t shard_id)
{
    struct shard *shard = &node->shards[shard_id];
    char name[sizeof shard->checkpoint_name];
    snprintf(name, sizeof name, "copy %u", ++shard->names);
    mem_store_disk_fail(shard->disk, (struct mem_store_fault){0});
    assert_ok(pawl_store_copy(shard->store, name, NULL));
    if (shard->checkpoint)
        assert_ok(pawl_store_close(shard->checkpoint));
    memcpy(shard->checkpoint_name, name, sizeof name);
    open_store(shard, name, &shard->checkpoint);
}

void node_keep_checkpoint(struct node *node, uint32_t shard_id)
{
    struct shard *shard = &node->shards[shard_id];
    memcpy(shard->old_name, shard->checkpoint_name, sizeof shard->old_name);
}

static void begin_worker(struct node *node, uint32_t shard_id, uint64_t argument)
{
    struct shard *shard = &node->shards[shard_id];
    struct worker_options options = {
        .env = mem_env_port(node->env),
        .shard = shard_id,
        .bus = local_bus_port(node->bus),
        .ops = &worker_ops,
        .ctx = shard,
    };
    refresh(shard);
    assert_ok(worker_new(&options, &shard->worker));
}

void node_open(struct node *node)
{
    struct sim *sim = node->sim;
    assert_ok(mem_env_open(sim->world, &(struct mem_env_options){.shards = sim->shards}, &node->env, NULL));
    assert_ok(local_bus_open(sim->network, node->id, mem_env_port(node->env), &node->bus));
    assert_ok(group0_new(NULL, &node->group0));
    group0_configure(node->group0, sim->partitions, sim->nodes, sim->shards);
    node->apply_timer = (pawl_timer){.fn = apply_now};
    node->propose_timer = (pawl_timer){.fn = proposal_is_over};
    node->apply_soon = (pawl_task){.fn = apply_later};
    node->up = true;
    node->applied = 0;
    node_catch_up(node);
    for (uint32_t i = 0; i < sim->shards; i++) {
        struct shard *shard = &node->shards[i];
        shard->node = node;
        shard->id = i;
        shard->changed = (pawl_task){.fn = shard_changed};
        if (!shard->disk)
            assert_ok(mem_store_disk_new(NULL, &shard->disk));
        mem_store_disk_fail(shard->disk, (struct mem_store_fault){0});
        if (!shard->live_name[0])
            snprintf(shard->live_name, sizeof shard->live_name, "live");
        open_store(shard, shard->live_name, &shard->store);
        view_tables_init(&shard->tables, shard->store, sim_set(sim, node->id, i), sim->partitions, NULL);
        if (shard->checkpoint_name[0])
            open_store(shard, shard->checkpoint_name, &shard->checkpoint);
        else
            node_checkpoint(node, i);
        sim_on(node, i, begin_worker, 0);
    }
    if (!node->behind)
        check_coverage(sim, node, false);
}

static void end_worker(struct node *node, uint32_t shard_id, uint64_t argument)
{
    worker_free(node->shards[shard_id].worker);
    node->shards[shard_id].worker = NULL;
}

/* Memory is freed as a process's is, and nobody hears of it. */
void node_crash(struct node *node, enum node_loss loss)
{
    struct sim *sim = node->sim;
    bool cut[LINKS_NODES_MAX + 1];
    memcpy(cut, sim->links.cut[node->id], sizeof cut);
    memset(sim->links.cut[node->id], true, sizeof cut);
    if (node->coordinator)
        sim_on(node, 0, end_coordinator, 0);
    for (uint32_t i = 0; i < sim->shards; i++) {
        struct shard *shard = &node->shards[i];
        sim_on(node, i, end_worker, 0);
        view_tables_release(&shard->tables);
        mem_store_disk_crash(shard->disk);
        shard->store = shard->checkpoint = NULL;
        if (loss == LOSS_NONE || (loss == LOSS_RESTORED && !shard->old_name[0]))
            continue;
        node->behind = node->behind || loss == LOSS_RESTORED;
        memcpy(shard->live_name, loss == LOSS_POWER ? shard->checkpoint_name : shard->old_name,
               sizeof shard->live_name);
        shard->old_name[0] = '\0';
        shard->checkpoint_name[0] = '\0'; /* it is copied before anything is changed */
    }
    memcpy(sim->links.cut[node->id], cut, sizeof cut);
    mem_env_kill(node->env);
    local_bus_close(node->bus);
    assert_ok(mem_env_close(node->env));
    group0_free(node->group0);
    node->group0 = NULL;
    node->up = false;
    sim->leader = sim->leader == node->id ? 0 : sim->leader;
}

void node_free(struct node *node)
{
    if (node->up)
        node_crash(node, LOSS_NONE);
    for (uint32_t i = 0; i < node->sim->shards; i++)
        mem_store_disk_free(node->shards[i].disk);
}
