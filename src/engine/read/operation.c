#include "engine/read/operation.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "core/schema/definition.h"
#include "engine/node/node.h"

#define ARENA_CHUNK ((size_t)1024)

int operation_show(pawl_engine *e, uint16_t partition, pawl_bytes body, struct json_out *out,
                   struct pawl_operation_source *ret_source, pawl_operation *ret_operation, pawl_error *error)
{
    struct pawl_operation_source *s = ret_source;
    *s = (struct pawl_operation_source){.engine = e, .out = out, .partition = partition};
    json_out_rewind(out, 0);
    int status = operation_decode(body, &s->operation, error);
    if (status != PAWL_OK)
        return status;
    const struct operation *op = &s->operation;
    s->schema = engine_schema_at(e, op->schema);
    if (!s->schema)
        return error_set(error, PAWL_ECORRUPT,
                         "it was made under the schema at %" PRIu64 ", which is not known", op->schema);
    pawl_bytes projector = schema_name_text(s->schema, op->projector);
    if (projector.size == 0)
        return error_set(error, PAWL_ECORRUPT, "the schema at %" PRIu64 " has no name %u", s->schema->position,
                         op->projector);
    *ret_operation = (pawl_operation){.partition = partition,
                                      .number = op->number,
                                      .id = {op->id.high, op->id.low},
                                      .event = op->event,
                                      .wsid = op->wsid,
                                      .projector = projector,
                                      .schema = op->schema,
                                      .attempt = op->attempt,
                                      .time = op->time,
                                      .is_void = op->kind == OPERATION_VOID,
                                      .reason = op->reason,
                                      .source = s};
    return PAWL_OK;
}

/* --- its writes --- */

static int find_entity(const struct pawl_operation_source *s, const char *name,
                       const struct schema_type **ret_entity, pawl_error *error)
{
    pawl_bytes text = {name, strlen(name)};
    const struct schema_type *entity = schema_type_by_name(s->schema, text);
    if (!entity)
        entity = schema_type_by_name(engine_schema_refresh(s->engine), text);
    if (!entity || entity->kind != TYPE_ENTITY)
        return error_set(error, PAWL_ENOTFOUND, "there is no entity %s", name);
    *ret_entity = entity;
    return PAWL_OK;
}

static int entity_of(const struct pawl_operation_source *s, uint16_t id, const struct schema_type **ret_entity,
                     pawl_error *error)
{
    const struct schema_type *entity = schema_type_by_id(s->schema, id);
    if (!entity || entity->kind != TYPE_ENTITY)
        return error_set(error, PAWL_ECORRUPT, "the schema at %" PRIu64 " has no entity %u",
                         s->schema->position, id);
    *ret_entity = entity;
    return PAWL_OK;
}

/* The values of its key and their strings are in memory. */
static int row_of_write(const struct pawl_operation_source *s, const struct schema_type *entity,
                        const struct operation_row *written, struct arena *memory, struct pawl_row *ret_row,
                        pawl_error *error)
{
    static const uint8_t nothing[] = {ROW_VERSION, 0, 0, 0}; /* of a delete: a row of no fields */
    enum value_type types[DEFINITION_KEY_MAX];
    pawl_bytes set = written->set.size ? written->set : (pawl_bytes){nothing, sizeof nothing};
    int status = row_of_entity(s->engine, entity, set, ret_row, error);
    if (status != PAWL_OK)
        return status;
    struct value *key = arena_take(memory, entity->key_count * sizeof *key);
    uint8_t *strings = arena_take(memory, written->key.size);
    if (!key || !strings)
        return error_set(error, PAWL_ENOMEM, "no memory for a key");
    for (size_t i = 0; i < entity->key_count; i++)
        types[i] = entity->fields[entity->key[i]].type;
    if (row_key_read(written->key, types, entity->key_count, strings, key) != PAWL_OK)
        return error_set(error, PAWL_ECORRUPT, "a key is none of %.*s", (int)entity->name.size,
                         (const char *)entity->name.data);
    ret_row->key = key;
    ret_row->cleared = written->cleared;
    return PAWL_OK;
}

static pawl_write_kind kind_of(enum action_kind kind)
{
    return kind == ACTION_UPSERT   ? PAWL_WRITE_UPSERT
           : kind == ACTION_UPDATE ? PAWL_WRITE_UPDATE
                                   : PAWL_WRITE_DELETE;
}

static int visit_writes(const struct pawl_operation_source *s, const struct schema_type *wanted,
                        struct arena *memory, pawl_write_visit visit, void *arg, pawl_error *error)
{
    struct operation_walk walk = {0};
    struct operation_row written;
    int status = PAWL_OK;
    while (status == PAWL_OK && operation_walk(&s->operation, &walk, &written)) {
        const struct schema_type *entity;
        struct pawl_row row;
        if (wanted && walk.entity != wanted->id)
            continue;
        arena_reset(memory);
        status = entity_of(s, walk.entity, &entity, error);
        if (status == PAWL_OK)
            status = row_of_write(s, entity, &written, memory, &row, error);
        if (status == PAWL_OK && !visit(arg, kind_of(walk.kind), &row))
            break;
    }
    return status;
}

int pawl_operation_writes(const pawl_operation *operation, const char *entity, pawl_write_visit visit,
                          void *arg, pawl_error *error)
{
    const struct pawl_operation_source *s = operation->source;
    const struct schema_type *wanted = NULL;
    struct arena memory;
    int status = entity ? find_entity(s, entity, &wanted, error) : PAWL_OK;
    if (status != PAWL_OK || operation->is_void)
        return status;
    arena_init(&memory, s->engine->options.allocator, ARENA_CHUNK);
    status = visit_writes(s, wanted, &memory, visit, arg, error);
    arena_release(&memory);
    return status == PAWL_OK ? status : error_wrap(error, status, "operation %" PRIu64, operation->number);
}

/* --- all of it --- */

int pawl_operation_json(const pawl_operation *operation, pawl_bytes *ret_json, pawl_error *error)
{
    const struct pawl_operation_source *s = operation->source;
    if (s->out->size == 0) {
        int status = json_operation(s->out, s->partition, s->schema, &s->operation, error);
        out_raw(s->out, (pawl_bytes){"", 1}); /* an end for those who print it */
        if (status == PAWL_OK && s->out->status != PAWL_OK)
            status = error_set(error, s->out->status, "no memory for an operation");
        if (status != PAWL_OK) {
            json_out_rewind(s->out, 0);
            return status;
        }
    }
    *ret_json = (pawl_bytes){s->out->data, s->out->size - 1};
    return PAWL_OK;
}
