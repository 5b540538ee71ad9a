#include "core/project/reproject.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "core/project/projector_match.h"

void reproject_init(struct reproject *r, const pawl_allocator *alloc)
{
    *r = (struct reproject){.alloc = alloc};
    operation_maker_init(&r->writes, alloc);
}

void reproject_release(struct reproject *r)
{
    operation_maker_release(&r->writes);
    mem_free(r->alloc, (void *)r->first.key.data, r->first.key.size);
}

/* A match, and the operation that the log has for it. */
struct matching {
    struct reproject *reproject;
    const struct derivation *derivation;
    const struct schema_projector *projector;
    struct logged logged;
    struct operation op;
};

static void differ(struct matching *m, const struct schema_type *entity, pawl_bytes key, const char *words)
{
    struct reproject *r = m->reproject;
    if (r->differences++ > 0)
        return;
    r->first = (struct reproject_difference){.number = m->logged.number,
                                             .event = m->derivation->offset,
                                             .wsid = m->derivation->event->envelope.wsid,
                                             .projector = m->projector,
                                             .schema = m->derivation->schema,
                                             .entity = entity,
                                             .words = words};
    void *copy = key.size > 0 ? mem_new(r->alloc, key.size, 1) : NULL;
    if (copy)
        r->first.key = (pawl_bytes){memcpy(copy, key.data, key.size), key.size};
}

static bool same_set(const struct operation_row *a, const struct operation_row *b)
{
    return bytes_equal(a->set, b->set) && a->cleared_count == b->cleared_count
           && bytes_equal(a->cleared, b->cleared);
}

/* The first row in which two writes differ, if there is one. */
static bool compare_write(struct matching *m, const struct operation_write *logged,
                          const struct operation_write *made)
{
    const struct schema_type *entity = schema_type_by_id(m->derivation->schema, logged->entity);
    struct operation_row a, b;
    size_t at = 0, bt = 0;
    for (;;) {
        bool has = operation_next_row(logged, &at, &a), makes = operation_next_row(made, &bt, &b);
        if (!has && !makes)
            return true;
        if (has && makes && bytes_equal(a.key, b.key) && same_set(&a, &b))
            continue;
        if (has && makes && bytes_equal(a.key, b.key))
            differ(m, entity, a.key, "the row is set to other values");
        else if (has)
            differ(m, entity, a.key, "the row is in the log, and is not written when it is run again");
        else
            differ(m, entity, b.key, "the row is written when it is run again, and is not in the log");
        return false;
    }
}

static void compare_writes(struct matching *m, const struct operation *made)
{
    struct operation_write a, b;
    size_t at = 0, bt = 0;
    for (;;) {
        bool has = operation_next_write(&m->op, &at, &a), makes = operation_next_write(made, &bt, &b);
        if (!has && !makes)
            return;
        const struct operation_write *one = has ? &a : &b;
        if (!has || !makes || a.kind != b.kind || a.entity != b.entity) {
            struct operation_row row = {0};
            size_t cursor = 0;
            (void)operation_next_row(one, &cursor, &row);
            differ(m, schema_type_by_id(m->derivation->schema, one->entity), row.key,
                   has ? "the write is in the log, and is not made when it is run again"
                       : "the write is made when it is run again, and is not in the log");
            return;
        }
        if (!compare_write(m, &a, &b))
            return;
    }
}

static int put_before_scan(void *ctx)
{
    const struct redo *redo = ctx;
    return gathered_put(redo->gathered, redo->store, NULL);
}

/* PAWL_ENOTFOUND: this process does not have the handler. */
static int run_again(struct matching *m, struct operation *ret_made, pawl_error *error)
{
    struct reproject *r = m->reproject;
    struct state state = {.overlay = &r->redo.gathered->overlay,
                          .reader = pawl_store_writer(r->redo.store),
                          .scratch = r->redo.scratch,
                          .before_scan = put_before_scan,
                          .ctx = &r->redo};
    const struct intent *intents;
    struct changes changes;
    size_t count;
    int status;
    if (!m->projector->handler)
        status = intents_of(m->projector, r->redo.memory, &intents, &count);
    else if (r->handle)
        status = r->handle(r->ctx, m->derivation, m->projector, m->op.attempt, &state, r->redo.memory, &intents,
                           &count, error);
    else
        status = PAWL_ENOTFOUND;
    if (status != PAWL_OK)
        return status;
    struct explosion explosion = {.derivation = m->derivation,
                                  .generation = r->generation,
                                  .intents = intents,
                                  .intent_count = count,
                                  .writes = &r->writes};
    status = explode(&explosion, &state, r->redo.memory, &changes, error);
    if (status != PAWL_OK)
        return status;
    overlay_remove(&r->redo.gathered->overlay, &changes);
    *ret_made = (struct operation){.kind = OPERATION_WRITES};
    return operation_maker_writes(&r->writes, &ret_made->writes, &ret_made->count);
}

static int compare(struct matching *m, pawl_error *error)
{
    struct operation made;
    pawl_bytes none = {0};
    if (m->op.event != m->derivation->offset || m->op.projector != m->projector->id) {
        differ(m, NULL, none, "the log has an operation of another event or projector under this number");
        return PAWL_OK;
    }
    if (m->op.kind == OPERATION_VOID)
        return PAWL_OK;
    int status = run_again(m, &made, error);
    if (status == PAWL_ENOTFOUND)
        return PAWL_OK;
    m->reproject->compared++;
    if (status == PAWL_EINVAL || status == PAWL_ETOOBIG)
        differ(m, NULL, none, "it fails when it is run again");
    else if (status == PAWL_OK)
        compare_writes(m, &made);
    else
        return status;
    return PAWL_OK;
}

static int take_match(struct matching *m, bool *ret_ended, pawl_error *error)
{
    struct reproject *r = m->reproject;
    int status = r->next(r->ctx, &m->logged, error);
    if (status == PAWL_ENOTFOUND) {
        *ret_ended = true;
        return PAWL_OK;
    }
    if (status == PAWL_OK)
        status = operation_decode(m->logged.body, &m->op, error);
    if (status == PAWL_OK)
        status = compare(m, error);
    if (status == PAWL_OK)
        status = redo_operation(&r->redo, m->logged.number, m->logged.place, m->logged.body, error);
    if (status != PAWL_OK)
        return error_wrap(error, status, "operation %" PRIu64, m->logged.number);
    r->operations++;
    return PAWL_OK;
}

int reproject_event(struct reproject *r, uint64_t offset, pawl_bytes body, bool *ret_ended, pawl_error *error)
{
    struct event event;
    int status = event_decode(body, &event, error);
    if (status != PAWL_OK)
        return status;
    const struct schema *schema = r->schema_for(r->ctx, r->lane, r->generation, event.head.schema);
    struct derivation derivation = {.offset = offset, .event = &event, .schema = schema};
    *ret_ended = false;
    r->body = body;
    for (size_t i = 0; schema && status == PAWL_OK && !*ret_ended && i < schema->projector_count; i++) {
        const struct schema_projector *projector = &schema->projectors[i];
        if (projector->lane != r->lane || !projector_matches(projector, event.head.command))
            continue;
        struct matching matching = {.reproject = r, .derivation = &derivation, .projector = projector};
        status = take_match(&matching, ret_ended, error);
    }
    return status;
}
