/* engine/checkpoint/view_builds.c: views in a shard's checkpoint store. They are kept current by every row that is
 * put, and built by slices between commits, each some slices in a transaction of its own.
 *
 * The live store goes first, partition by partition: what readers see is there sooner, and commands are held up by
 * one of the two at a time. */
#include "base/error.h"
#include "core/view/slice.h"
#include "engine/checkpoint/checkpointer.h"
#include "engine/node/node.h"

#define SLICE_ROWS  4096
#define COMMIT_ROWS UINT64_C(32768)          /* in one transaction */
#define COMMIT_TIME (100 * PAWL_MILLISECOND) /* then the log is read on */
#define REMOVE_ROWS ((size_t)512)
#define BUSY_REST   3 /* times as long as it has built, while commands come in */

static pawl_engine *engine_of(const struct checkpointer *c)
{
    return c->shard->engine;
}

static int commit(struct checkpointer *c, int status)
{
    if (status == PAWL_OK)
        status = view_tables_flush(&c->views);
    if (status == PAWL_OK)
        status = pawl_store_commit(c->store);
    else
        pawl_store_abort(c->store);
    if (status == PAWL_OK)
        view_tables_committed(&c->views);
    else
        view_tables_aborted(&c->views);
    return status;
}

static int fail(struct checkpointer *c, int status, const char *what)
{
    return error_set(&c->words, status, "%s: %s", what,
                     c->store->error.text[0] ? c->store->error.text : pawl_status_text(status));
}

/* What is new is committed with the next events, or at once if there are none. */
int checkpointer_refresh_views(struct checkpointer *c)
{
    pawl_engine *e = engine_of(c);
    pthread_mutex_lock(&c->lock);
    c->views_new = false;
    pthread_mutex_unlock(&c->lock);
    const struct view_list *list = atomic_load_explicit(&e->view_list, memory_order_acquire);
    const struct schema *schema = engine_schema(e);
    if (c->views.refreshed && c->views.list == list && c->views.schema == schema)
        return PAWL_OK;
    int status = view_tables_refresh(&c->views, list, schema, &c->words);
    if (status == PAWL_OK && checkpoint_events(c->checkpoint) == 0)
        status = commit(c, status);
    if (status == PAWL_OK && checkpoint_events(c->checkpoint) == 0)
        views_checkpointed(c->shard);
    return status == PAWL_OK ? status : fail(c, status, "views of a checkpoint cannot be opened");
}

/* The tables over one base that are not complete in a partition, beginning with the first such table. */
struct batch {
    uint16_t partition;
    uint32_t base;
    uint32_t views[SLICE_VIEWS_MAX];
    size_t count;
};

static bool is_live(const struct checkpointer *c, const struct view_table *table, uint16_t partition)
{
    struct view_state state;
    pawl_reader *snapshot;
    view_state_init(&state, c->stores.alloc, partition, table->table, table->base);
    if (pawl_store_snapshot(c->shard->store, &snapshot) == PAWL_OK) {
        (void)view_state_read(&state, snapshot, NULL);
        pawl_store_release(c->shard->store, snapshot);
    }
    bool live = state.complete;
    view_state_release(&state);
    return live;
}

static bool is_missing(struct checkpointer *c, const struct view_table *table, size_t place)
{
    struct kept_state *kept = &table->states[place];
    return view_tables_settle(&c->views, kept) == PAWL_OK && !kept->state.complete
           && views_may_build(engine_of(c), table->table)
           && is_live(c, table, partition_set_at(&c->views.set, place));
}

static bool find_batch(struct checkpointer *c, struct batch *batch)
{
    const struct view_tables *t = &c->views;
    batch->count = 0;
    for (size_t place = 0; place < t->set.count && batch->count == 0; place++)
        for (size_t i = 0; i < t->count && batch->count < SLICE_VIEWS_MAX; i++) {
            bool other = batch->count > 0 && t->tables[i].base != batch->base;
            if (other || !is_missing(c, &t->tables[i], place))
                continue;
            batch->partition = partition_set_at(&t->set, place);
            batch->base = t->tables[i].base;
            batch->views[batch->count++] = t->tables[i].table;
        }
    return batch->count > 0;
}

static int build_slice(struct checkpointer *c, const struct batch *batch, uint64_t rows_max,
                       struct slice_report *ret_report)
{
    uint32_t usual = c->stores.knobs->slice_rows ? c->stores.knobs->slice_rows : SLICE_ROWS;
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
    struct slice slice = {.partition = batch->partition,
                          .base = batch->base,
                          .views = batch->views,
                          .count = batch->count,
                          .range = view_partition_range(engine_of(c)->file.partitions, batch->partition,
                                                        STATE_SPACE, batch->base, from, to),
                          .rows_max = rows_max < usual ? (uint32_t)rows_max : usual};
    return slice_put(&c->views, &slice, ret_report);
}

/* So that commands get the processor and the disk. */
static void rest(struct checkpointer *c, uint64_t rows, pawl_instant begun, uint64_t seen)
{
    uint64_t now = pawl_env_now(engine_of(c)->env).ns;
    bool busy = atomic_load(&c->shard->seen) > seen; /* commands came in meanwhile */
    c->built_rows = rows;
    c->built_from = begun;
    c->build_at.ns = busy ? now + BUSY_REST * (now - begun.ns) : now;
}

/* When the next slice may be built: the throttle may have been changed since the last one. */
static uint64_t next_slice(const struct checkpointer *c)
{
    uint64_t most = views_throttle(engine_of(c));
    uint64_t throttled = most ? c->built_from.ns + c->built_rows * PAWL_SECOND / most : 0;
    return throttled > c->build_at.ns ? throttled : c->build_at.ns;
}

bool checkpointer_builds(struct checkpointer *c, pawl_duration *ret_rest)
{
    struct batch batch;
    uint64_t now = pawl_env_now(engine_of(c)->env).ns, next = next_slice(c);
    *ret_rest = next > now ? next - now : 0;
    return find_batch(c, &batch);
}

int checkpointer_build_views(struct checkpointer *c)
{
    struct batch batch;
    pawl_instant begun = pawl_env_now(engine_of(c)->env);
    uint64_t rows = 0, seen = atomic_load(&c->shard->seen);
    int status = PAWL_OK;
    knobs_step(c->stores.knobs, "slices of a checkpoint are built");
    uint64_t most = views_throttle(engine_of(c)); /* of a second */
    most = most && most < COMMIT_ROWS ? most : COMMIT_ROWS;
    while (status == PAWL_OK && rows < most && pawl_env_now(engine_of(c)->env).ns - begun.ns < COMMIT_TIME
           && find_batch(c, &batch)) {
        struct slice_report report = {0};
        status = build_slice(c, &batch, most - rows, &report);
        rows += report.rows;
    }
    status = commit(c, status);
    if (status != PAWL_OK)
        return fail(c, status, "views of a checkpoint cannot be built");
    knobs_step(c->stores.knobs, "slices of a checkpoint were built");
    rest(c, rows, begun, seen);
    views_checkpointed(c->shard);
    return PAWL_OK;
}

int checkpointer_remove_views(struct checkpointer *c, bool *ret_more)
{
    int status = view_tables_remove_piece(&c->views, REMOVE_ROWS, ret_more);
    if (status == PAWL_OK && !*ret_more)
        return PAWL_OK;
    status = commit(c, status);
    return status == PAWL_OK ? status : fail(c, status, "rows of views cannot be removed");
}

bool checkpointer_covers(struct checkpointer *c, uint32_t view, uint32_t base, uint16_t partition,
                         pawl_range keys)
{
    bool covered = false;
    struct view_state state;
    pawl_reader *snapshot;
    view_state_init(&state, c->stores.alloc, partition, view, base);
    pthread_mutex_lock(&c->store_lock);
    if (c->store && pawl_store_snapshot(c->store, &snapshot) == PAWL_OK) {
        covered = view_state_read(&state, snapshot, NULL) == PAWL_OK
                  && (state.complete || coverage_covers(&state.coverage, keys.from, keys.to));
        pawl_store_release(c->store, snapshot);
    }
    pthread_mutex_unlock(&c->store_lock);
    view_state_release(&state);
    return covered;
}
