/* engine/node/schema.c: the schema, from JSON to the group0 stream to every shard; and any other command of group0.
 *
 * One command is proposed at a time, under group0's lock. It is checked before it is written, so what is in the
 * stream can always be applied; it is durable before anyone can name it; and the schema that it makes is
 * published before its proposal returns. */
#include <pawl/pawl.h>

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/json/json.h"
#include "engine/node/node.h"
#include "engine/read/read.h"

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
    pawl_claim claim = {.stream = GROUP0, .done = claimed, .arg = &claiming, .error = error};
    latch_init(&claiming.latch);
    int status = pawl_log_claim(e->log, &claim);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot claim group0");
    latch_wait(&claiming.latch);
    if (claim.status != PAWL_OK)
        return error_wrap(error, claim.status, "cannot claim group0");
    e->group0_epoch = claim.epoch;
    e->group0_next = claim.next;
    return PAWL_OK;
}

struct reading {
    pawl_engine *engine;
    int status;
    pawl_error *error;
};

static bool apply_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct reading *reading = read->arg;
    enum group0_outcome outcome;
    reading->status =
        group0_apply(reading->engine->group0, entry->offset, entry->body, &outcome, reading->error);
    return reading->status == PAWL_OK;
}

static void never_called(pawl_read *read)
{
}

/* What the stream has beyond what was applied. */
static int read_group0(pawl_engine *e, pawl_error *error)
{
    struct reading reading = {.engine = e, .error = error};
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

static void publish(pawl_engine *e)
{
    atomic_store_explicit(&e->schema, group0_schema(e->group0), memory_order_release);
}

const struct schema *engine_schema_at(pawl_engine *e, uint64_t position)
{
    pthread_mutex_lock(&e->group0_lock);
    if (e->options.read_only && position > group0_position(e->group0)) {
        /* The process that writes has applied a schema meanwhile, and it comes before the events made under it.
         */
        (void)read_group0(e, NULL);
        publish(e);
    }
    const struct schema *schema = group0_schema_at(e->group0, position);
    pthread_mutex_unlock(&e->group0_lock);
    return schema && schema->position == position ? schema : NULL;
}

const struct schema *engine_schema_for(pawl_engine *e, uint16_t lane, uint32_t generation,
                                       uint64_t event_schema)
{
    if (!engine_schema_at(e, event_schema)) /* which reads what a process that writes has applied meanwhile */
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
        (void)read_group0(e, NULL);
        publish(e);
        pthread_mutex_unlock(&e->group0_lock);
    }
    return engine_schema(e);
}

int engine_group0_open(pawl_engine *e, pawl_error *error)
{
    int status = e->options.read_only ? PAWL_OK : claim_group0(e, error);
    if (status == PAWL_OK)
        status = read_group0(e, error);
    if (status == PAWL_OK)
        publish(e);
    return status;
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

/* After a failure the stream is claimed again and read: if the command is there after all, it is applied. */
static int settle(pawl_engine *e, int failed, pawl_error *error)
{
    pawl_error words = {0};
    uint64_t offset = e->group0_next;
    int status = claim_group0(e, &words);
    if (status == PAWL_OK)
        status = read_group0(e, &words);
    if (status != PAWL_OK)
        return error_set(error, status, "%s", words.text);
    return group0_position(e->group0) >= offset ? PAWL_OK : failed;
}

static int write_command(pawl_engine *e, pawl_bytes command, pawl_error *error)
{
    enum group0_outcome outcome;
    if (e->group0_epoch == 0) {
        int status = settle(e, PAWL_OK, error);
        if (status != PAWL_OK)
            return status;
    }
    int status = group0_check(e->group0, command, &outcome, error);
    if (status != PAWL_OK || outcome == GROUP0_UNCHANGED)
        return status;
    status = append_command(e, command, error);
    if (status != PAWL_OK) {
        e->group0_epoch = 0; /* nothing more is written under it */
        status = settle(e, status, error);
        return status;
    }
    status = group0_apply(e->group0, e->group0_next, command, &outcome, error);
    e->group0_next++;
    if (status != PAWL_OK) /* it is in the stream, and is taken in from there before anything else is written */
        e->group0_epoch = 0;
    return status;
}

struct telling {
    struct shard *shard;
    const struct schema *schema;
};

static void tell_shard(void *arg)
{
    const struct telling *t = arg;
    for (size_t i = 0; i < t->shard->partitions.count; i++)
        processor_schema(shard_partition(t->shard, i)->processor, t->schema);
}

/* schema_at takes the lock on a shard: so shards are told after it was given back. */
static void tell_shards(pawl_engine *e, const struct schema *schema)
{
    for (uint32_t i = 0; i < e->file.shards; i++) {
        struct telling telling = {.shard = &e->shards[i], .schema = schema};
        (void)pawl_env_call(e->env, i, tell_shard, &telling);
    }
}

/* ret_before, ret_after: the schemas in force. They differ even on failure, when what another process or an
 * earlier proposal wrote was met. Under schema_lock. */
static int propose_held(pawl_engine *e, pawl_bytes command, const struct schema **ret_before,
                        const struct schema **ret_after, pawl_error *error)
{
    pthread_mutex_lock(&e->group0_lock);
    *ret_before = group0_schema(e->group0);
    int status = write_command(e, command, error);
    *ret_after = group0_schema(e->group0);
    pthread_mutex_unlock(&e->group0_lock);
    if (*ret_after == *ret_before)
        return status;
    tell_shards(e, *ret_after);
    publish(e);
    int opened = lanes_reconcile(e, status == PAWL_OK ? error : NULL);
    return status == PAWL_OK ? opened : status;
}

static int propose(pawl_engine *e, pawl_bytes command, const struct schema **ret_before,
                   const struct schema **ret_after, pawl_error *error)
{
    pthread_mutex_lock(&e->schema_lock);
    int status = propose_held(e, command, ret_before, ret_after, error);
    pthread_mutex_unlock(&e->schema_lock);
    return status;
}

int engine_group0_propose(pawl_engine *e, pawl_bytes command, enum group0_outcome *ret_outcome,
                          pawl_error *error)
{
    const struct schema *before, *after;
    int status = propose(e, command, &before, &after, error);
    if (status == PAWL_OK)
        *ret_outcome = after != before ? GROUP0_CHANGED : GROUP0_UNCHANGED;
    return status;
}

int engine_group0_propose_held(pawl_engine *e, pawl_bytes command, pawl_error *error)
{
    const struct schema *before, *after;
    return propose_held(e, command, &before, &after, error);
}

static int apply(pawl_engine *e, pawl_bytes json, struct arena *arena, uint64_t *ret_position,
                 pawl_error *error)
{
    struct definition definition;
    pawl_bytes command;
    const struct schema *before, *after = NULL;
    int status = schema_read(json, arena, &definition, error);
    if (status == PAWL_OK) /* or a list that is too long to be encoded would be told without its path */
        status = definition_check(&definition, arena, error);
    if (status != PAWL_OK)
        return status;
    status = group0_schema_encode(&definition, arena, &command);
    if (status == PAWL_ETOOBIG)
        return error_set(error, status, "the package would take more than %zu bytes", DEFINITION_BYTES_MAX);
    if (status == PAWL_OK)
        status = propose(e, command, &before, &after, error);
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

int pawl_schema_show(pawl_engine *e, pawl_text *ret_text, pawl_error *error)
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
        status = schema_show(package, &arena, &shown);
        if (status == PAWL_OK)
            out_raw(&out, shown);
    }
    arena_release(&arena);
    if (status != PAWL_OK)
        error_set(error, status, "no memory to show a schema");
    return text_take(&out, status, ret_text, error);
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
