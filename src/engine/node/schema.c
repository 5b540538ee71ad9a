/* engine/node/schema.c: commands of group0: how a schema gets from JSON into the group0 stream, and from there
 * to every shard.
 *
 * One command is proposed at a time, under schema_lock. It is checked before it is written, so every command
 * in the stream can be applied. It is durable before anything refers to it. The schema and the list of views that
 * it makes are published before its proposal returns. group0_lock is held only while group0 changes: shards take
 * it too, and must not wait for the log. */
#include <pawl/pawl.h>

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/json/json.h"
#include "engine/log/log.h"
#include "engine/node/node.h"
#include "engine/read/read.h"
#include "engine/views/views.h"

#define ARENA_CHUNK ((size_t)64 * 1024)

static const pawl_stream GROUP0 = {.kind = PAWL_STREAM_GROUP0};

struct claiming {
    struct latch latch;
};

static void claimed(pawl_claim *claim)
{
    struct claiming *claiming = claim->arg;
    latch_set(&claiming->latch);
}

static int claim_group0(pawl_engine *e, pawl_error *error)
{
    struct claiming claiming;
    pawl_claim claim = {
        .stream = GROUP0, .group0 = e->assignment, .done = claimed, .arg = &claiming, .error = error};
    latch_init(&claiming.latch);
    int status = pawl_log_claim(e->log, &claim);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot claim group0");
    latch_wait(&claiming.latch);
    if (claim.status == PAWL_EFENCED && e->group0_open && e->assignment > 0 && claim.rival >= e->assignment)
        owner_lose(e);
    if (claim.status != PAWL_OK)
        return error_wrap(error, claim.status, "cannot claim group0");
    e->group0_epoch = claim.epoch;
    e->group0_next = claim.next;
    pthread_mutex_lock(&e->group0_lock);
    group0_set_term(e->group0, claim.epoch);
    pthread_mutex_unlock(&e->group0_lock);
    return PAWL_OK;
}

struct reading {
    pawl_engine *engine;
    bool locked; /* the caller holds group0_lock */
    int status;
    pawl_error *error;
};

static int apply_entry_to(pawl_engine *e, bool locked, uint64_t position, pawl_bytes command, pawl_error *error)
{
    enum group0_outcome outcome;
    if (!locked)
        pthread_mutex_lock(&e->group0_lock);
    int status = group0_apply(e->group0, position, command, &outcome, error);
    if (!locked)
        pthread_mutex_unlock(&e->group0_lock);
    return status;
}

static bool apply_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct reading *reading = read->arg;
    reading->status =
        apply_entry_to(reading->engine, reading->locked, entry->offset, entry->body, reading->error);
    return reading->status == PAWL_OK;
}

static void never_called(pawl_read *read)
{
}

/* Read and apply the commands that the stream has and group0 has not. */
static int read_group0(pawl_engine *e, bool locked, pawl_error *error)
{
    struct reading reading = {.engine = e, .locked = locked, .error = error};
    pawl_read read = {.stream = GROUP0,
                      .from = group0_position(e->group0) + 1,
                      .limit = UINT64_MAX,
                      .alone = true,
                      .visit = apply_entry,
                      .done = never_called,
                      .arg = &reading,
                      .error = error};
    int status = pawl_log_read(e->log, &read);
    if (status != PAWL_READ_DONE)
        return error_set(error, status, "cannot read group0");
    if (reading.status != PAWL_OK)
        return error_wrap(error, reading.status, "group0");
    return read.status;
}

/* Under schema_lock; or, if this engine only reads, under group0_lock. */
static void publish(pawl_engine *e)
{
    atomic_store_explicit(&e->schema, group0_schema(e->group0), memory_order_release);
    atomic_store_explicit(&e->view_list, group0_building(e->group0)->views, memory_order_release);
}

const struct schema *engine_schema_at(pawl_engine *e, uint64_t position)
{
    pthread_mutex_lock(&e->group0_lock);
    if (e->options.read_only && position > group0_position(e->group0)) {
        /* The writing process has published a schema meanwhile. It is durable before any event made under
         * it. */
        (void)read_group0(e, true, NULL);
        publish(e);
    }
    const struct schema *schema = group0_schema_at(e->group0, position);
    pthread_mutex_unlock(&e->group0_lock);
    return schema && schema->position == position ? schema : NULL;
}

const struct schema *engine_schema_for(pawl_engine *e, uint16_t lane, uint32_t generation,
                                       uint64_t event_schema)
{
    if (!engine_schema_at(e, event_schema)) /* it also reads new schemas, if another process writes */
        return NULL;
    pthread_mutex_lock(&e->group0_lock);
    const struct schema *schema = group0_schema_for(e->group0, lane, generation, event_schema);
    pthread_mutex_unlock(&e->group0_lock);
    return schema;
}

const struct schema *engine_schema_refresh(pawl_engine *e)
{
    if (e->options.read_only) {
        pthread_mutex_lock(&e->group0_lock);
        (void)read_group0(e, true, NULL);
        publish(e);
        pthread_mutex_unlock(&e->group0_lock);
    }
    return engine_schema(e);
}

const struct view_list *engine_views(pawl_engine *e)
{
    (void)engine_schema_refresh(e);
    return atomic_load_explicit(&e->view_list, memory_order_acquire);
}

const struct view_list *engine_views_decided(pawl_engine *e, const struct schema **ret_schema)
{
    (void)engine_schema_refresh(e);
    pthread_mutex_lock(&e->group0_lock);
    const struct view_list *list = group0_building(e->group0)->views;
    *ret_schema = group0_schema(e->group0);
    pthread_mutex_unlock(&e->group0_lock);
    return list;
}

int engine_group0_read(pawl_engine *e, pawl_error *error)
{
    return read_group0(e, false, error);
}

int engine_group0_claim(pawl_engine *e, pawl_error *error)
{
    int status = claim_group0(e, error);
    if (status == PAWL_OK && group0_position(e->group0) >= e->group0_next) {
        status = group0_snapshot_forget(e);
        group0_set_term(e->group0, e->group0_epoch);
    }
    return status == PAWL_OK ? read_group0(e, false, error) : status;
}

int engine_group0_open(pawl_engine *e, pawl_error *error)
{
    int status;
    group0_snapshot_load(e);
    if (e->options.read_only) {
        status = read_group0(e, false, error);
        if (status == PAWL_OK && node_is_on_kafka(&e->file) && !e->knobs.log)
            status = import_check(e->kafka, e->file.log, error);
    } else {
        status = node_is_on_kafka(&e->file) ? owner_open(e, error) : engine_group0_claim(e, error);
    }
    if (status != PAWL_OK)
        return status;
    e->group0_open = true;
    if (e->assignment > 0)
        owner_follow(e);
    publish(e);
    return PAWL_OK;
}

static void append_done(pawl_append *append)
{
    latch_set(append->arg);
}

static int append_command(pawl_engine *e, pawl_bytes command, pawl_error *error)
{
    struct latch latch;
    pawl_append_entry entry = {
        .entry = {.stream = GROUP0, .epoch = e->group0_epoch, .offset = e->group0_next, .body = command}};
    pawl_append append = {
        .entries = &entry, .count = 1, .alone = true, .done = append_done, .arg = &latch, .error = error};
    latch_init(&latch);
    int status = pawl_log_append(e->log, &append);
    if (status == PAWL_OK)
        latch_wait(&latch);
    else if (status != PAWL_APPEND_DONE)
        return error_set(error, status, "cannot write to group0");
    return append.status;
}

int engine_group0_write(pawl_engine *e, pawl_bytes command, pawl_error *error)
{
    int status = append_command(e, command, error);
    if (status == PAWL_OK)
        status = apply_entry_to(e, false, e->group0_next++, command, error);
    return status;
}

/* After a failure, claim the stream again and read it. If the command is in it after all, it is applied. */
static int settle(pawl_engine *e, int failed, pawl_error *error)
{
    pawl_error words = {0};
    uint64_t offset = e->group0_next;
    int status = claim_group0(e, &words);
    if (status == PAWL_OK)
        status = read_group0(e, false, &words);
    if (status != PAWL_OK)
        return error_set(error, status, "%s", words.text);
    return group0_position(e->group0) >= offset ? PAWL_OK : failed;
}

static int write_command(pawl_engine *e, pawl_bytes command, pawl_error *error)
{
    enum group0_outcome outcome;
    int status = owner_check(e, error);
    if (status == PAWL_OK && e->group0_epoch == 0)
        status = settle(e, PAWL_OK, error);
    if (status != PAWL_OK)
        return status;
    status = group0_check(e->group0, command, &outcome, error);
    if (status != PAWL_OK || outcome == GROUP0_UNCHANGED)
        return status;
    status = append_command(e, command, error);
    if (status != PAWL_OK) {
        e->group0_epoch = 0; /* this epoch writes nothing more */
        status = settle(e, status, error);
        return status;
    }
    status = apply_entry_to(e, false, e->group0_next, command, error);
    e->group0_next++;
    if (status != PAWL_OK) /* the command is in the stream: settle reads it before anything else is written */
        e->group0_epoch = 0;
    return status;
}

/* What is in force. */
struct in_force {
    const struct schema *schema;
    const struct view_list *views;
};

static struct in_force look(pawl_engine *e)
{
    return (struct in_force){.schema = group0_schema(e->group0), .views = group0_building(e->group0)->views};
}

struct telling {
    struct shard *shard;
    struct in_force now;
    bool schema; /* is another one */
};

/* Views first: the tables of a new generation are known before any row is put into them. If the store cannot be
 * written now, no row is put until it can (core/view/tables.h, T5). */
static void tell_shard(void *arg)
{
    const struct telling *t = arg;
    (void)views_refresh_shard(t->shard, t->now.views, t->now.schema, NULL);
    for (size_t i = 0; t->schema && i < t->shard->partitions.count; i++)
        processor_schema(shard_partition(t->shard, i)->processor, t->now.schema);
}

/* Without group0_lock: a shard takes it itself, in engine_schema_at. */
static void tell_shards(pawl_engine *e, struct in_force before, struct in_force now)
{
    for (uint32_t i = 0; i < e->file.shards; i++) {
        struct telling telling = {.shard = &e->shards[i], .now = now, .schema = before.schema != now.schema};
        (void)pawl_env_call(e->env, i, tell_shard, &telling);
    }
}

/* Under schema_lock. *ret_before, *ret_after: the schemas in force before and after. They may differ even on
 * failure, if the stream had a command of another process or of an earlier proposal. *ret_changed: the command
 * changed anything. */
static int propose_held(pawl_engine *e, pawl_bytes command, const struct schema **ret_before,
                        const struct schema **ret_after, bool *ret_changed, pawl_error *error)
{
    struct in_force before = look(e);
    uint64_t position = group0_position(e->group0);
    int status = write_command(e, command, error);
    struct in_force now = look(e);
    *ret_before = before.schema;
    *ret_after = now.schema;
    *ret_changed = group0_position(e->group0) != position;
    if (!*ret_changed)
        return status;
    if (now.schema != before.schema || now.views != before.views)
        tell_shards(e, before, now);
    publish(e);
    int opened = now.schema != before.schema ? lanes_reconcile(e, status == PAWL_OK ? error : NULL) : PAWL_OK;
    views_changed(e);
    group0_snapshot_if_due(e);
    return status == PAWL_OK ? opened : status;
}

static int propose(pawl_engine *e, pawl_bytes command, const struct schema **ret_after, bool *ret_changed,
                   pawl_error *error)
{
    const struct schema *before;
    pthread_mutex_lock(&e->schema_lock);
    int status = propose_held(e, command, &before, ret_after, ret_changed, error);
    pthread_mutex_unlock(&e->schema_lock);
    return status;
}

int engine_group0_propose(pawl_engine *e, pawl_bytes command, enum group0_outcome *ret_outcome,
                          pawl_error *error)
{
    const struct schema *after;
    bool changed;
    int status = propose(e, command, &after, &changed, error);
    if (status == PAWL_OK)
        *ret_outcome = changed ? GROUP0_CHANGED : GROUP0_UNCHANGED;
    return status;
}

int engine_group0_propose_held(pawl_engine *e, pawl_bytes command, pawl_error *error)
{
    const struct schema *before, *after;
    bool changed;
    return propose_held(e, command, &before, &after, &changed, error);
}

static int apply(pawl_engine *e, pawl_bytes json, struct arena *arena, uint64_t *ret_position,
                 pawl_error *error)
{
    struct definition definition;
    pawl_bytes command;
    const struct schema *after = NULL;
    bool changed;
    int status = schema_read(json, arena, &definition, error);
    if (status == PAWL_OK) /* before encoding, whose error for a list that is too long would have no path */
        status = definition_check(&definition, arena, error);
    if (status != PAWL_OK)
        return status;
    status = group0_schema_encode(&definition, arena, &command);
    if (status == PAWL_ETOOBIG)
        return error_set(error, status, "the package would take more than %zu bytes", DEFINITION_BYTES_MAX);
    if (status == PAWL_OK)
        status = propose(e, command, &after, &changed, error);
    if (status == PAWL_OK && ret_position)
        *ret_position = after->position;
    return status;
}

int pawl_schema_apply(pawl_engine *e, const char *json, uint64_t *ret_position, pawl_error *error)
{
    struct arena arena;
    int status = engine_enter_writing(e, error);
    if (status != PAWL_OK)
        return status;
    arena_init(&arena, e->options.allocator, ARENA_CHUNK);
    status = apply(e, (pawl_bytes){json, strlen(json)}, &arena, ret_position, error);
    arena_release(&arena);
    if (status == PAWL_ENOMEM)
        return error_set(error, status, "no memory to apply a schema");
    return status;
}

/* Those that no package declares. */
static int show_views(const struct view_list *list, struct arena *arena, struct json_out *out)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct view_entry *entry = &list->entries[i];
        struct definition source;
        if (entry->declared || entry->replaces)
            continue;
        int status = definition_decode(entry->view->source, arena, &source, NULL);
        if (status != PAWL_OK)
            return status;
        schema_view_show(entry->view->name, entry->view->base->name, &source.views[0], out);
    }
    return PAWL_OK;
}

static int show_all(pawl_engine *e, int (*show)(const struct definition *, struct arena *, pawl_bytes *),
                    pawl_text *ret_text, pawl_error *error)
{
    struct arena arena;
    struct json_out out;
    int status = engine_enter(e, error);
    if (status != PAWL_OK)
        return status;
    arena_init(&arena, e->options.allocator, ARENA_CHUNK);
    json_out_init(&out, e->options.allocator);
    const struct definition *package;
    const struct schema *schema = engine_schema_refresh(e);
    for (size_t i = 0; status == PAWL_OK && (package = schema_package(schema, i)); i++) {
        pawl_bytes shown;
        status = show(package, &arena, &shown);
        if (status == PAWL_OK)
            out_raw(&out, shown);
    }
    if (status == PAWL_OK)
        status = show_views(atomic_load_explicit(&e->view_list, memory_order_acquire), &arena, &out);
    arena_release(&arena);
    if (status != PAWL_OK)
        error_set(error, status, "no memory to show a schema");
    return text_take(&out, status, ret_text, error);
}

int pawl_schema_show(pawl_engine *e, pawl_text *ret_text, pawl_error *error)
{
    return show_all(e, schema_show, ret_text, error);
}

int pawl_schema_list(pawl_engine *e, pawl_text *ret_text, pawl_error *error)
{
    return show_all(e, schema_show_line, ret_text, error);
}

int pawl_schema_lanes_list(pawl_engine *e, pawl_text *ret_text, pawl_error *error)
{
    struct json_out out;
    int status = engine_enter(e, error);
    if (status != PAWL_OK)
        return status;
    json_out_init(&out, e->options.allocator);
    schema_lanes_show(engine_schema_refresh(e), &out);
    return text_take(&out, PAWL_OK, ret_text, error);
}
