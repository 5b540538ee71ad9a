/* core/command/build.c: gives numbers to a request that passed the check, and writes the event's bytes. */
#include "core/command/build.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "core/command/build_impl.h"
#include "core/schema/definition.h"
#include "core/schema/row.h"
#include "core/sequence/storage.h"

/* An event can take numbers of all sequences of its workspace: the system's three, and the kind's own. */
_Static_assert(3 + DEFINITION_SEQUENCES_MAX <= ENVELOPE_NUMBERS_MAX, "an event has room for all numbers");

void plan_fill_values(struct plan *plan, size_t i, bool numbered)
{
    const struct request *r = plan->build->request;
    const struct request_object *o = &r->objects[i];
    const struct plan_object *object = &plan->objects[i];
    memset(plan->values, 0, object->type->field_count * sizeof plan->values[0]);
    for (uint32_t k = 0; k < o->field_count; k++) {
        const struct request_field *f = &r->fields[o->field_first + k];
        plan->values[f->place] = f->value;
        if (numbered && f->value.type == VALUE_REF && record_is_raw(f->value.id))
            plan->values[f->place].id = plan->objects[plan_find_raw(plan, f->value.id)->object].id;
    }
    size_t number = object->numbers;
    for (size_t k = 0; object->creates && k < object->type->field_count; k++)
        if (object->type->fields[k].sequence != 0)
            plan->values[k] =
                (struct value){.type = VALUE_INT64, .integer = numbered ? (int64_t)plan->numbers[number++] : 0};
}

/* Where in taken a sequence is, or would be. */
static size_t taken_place(const struct plan *plan, uint16_t seq)
{
    size_t low = 0, high = plan->taken_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (plan->taken[middle].seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Note that a number was, or will be, taken from a sequence. */
static void note_number(struct plan *plan, uint16_t seq, uint64_t number)
{
    size_t at = taken_place(plan, seq);
    if (at < plan->taken_count && plan->taken[at].seq == seq) {
        plan->taken[at].count++;
        return;
    }
    assert(plan->taken_count < plan->taken_room);
    memmove(plan->taken + at + 1, plan->taken + at, (plan->taken_count - at) * sizeof plan->taken[0]);
    plan->taken[at] = (struct event_numbers){.seq = seq, .first = number, .count = 1};
    plan->taken_count++;
}

static int take(struct plan *plan, uint16_t seq, uint64_t *ret_number)
{
    pawl_sequencer *sequencer = plan->build->sequencer;
    int status = pawl_sequencer_next(sequencer, seq, ret_number);
    if (status != PAWL_OK)
        return error_set(plan->error, status, "%s", pawl_sequencer_error(sequencer)->text);
    note_number(plan, seq, *ret_number);
    return PAWL_OK;
}

/* A number for a field, which asks for it by name. */
static int take_for_field(struct plan *plan, size_t i, size_t field, uint64_t *ret_number)
{
    const struct build *b = plan->build;
    uint16_t sequence = plan->objects[i].type->fields[field].sequence;
    int status = take(plan, sequence, ret_number);
    if (status != PAWL_EEXHAUSTED)
        return status;
    char path[REQUEST_PATH_MAX];
    pawl_bytes name = schema_name_text(b->schema, sequence);
    return error_set(plan->error, status, "%s: the sequence %.*s has given its last number",
                     request_path(b->request, b->schema, i, (int)field, path), (int)name.size,
                     (const char *)name.data);
}

static int number_object(struct plan *plan, size_t i, size_t *number)
{
    struct plan_object *object = &plan->objects[i];
    const struct schema_type *type = object->type;
    object->numbers = *number;
    if (!object->creates)
        return PAWL_OK;
    if (type->singleton)
        object->id = type->singleton;
    else {
        bool c = type_in_c(type->kind);
        uint64_t base;
        int status = take(plan, c ? SEQ_CREC_ID : SEQ_REC_ID, &base);
        if (status != PAWL_OK)
            return status;
        object->id = record_id(base, c);
        if (!c)
            plan->head.record = base;
    }
    for (size_t k = 0; k < type->field_count; k++)
        if (type->fields[k].sequence != 0) {
            int status = take_for_field(plan, i, k, &plan->numbers[*number]);
            if (status != PAWL_OK)
                return status;
            (*number)++;
        }
    return PAWL_OK;
}

/* Count the sequences that numbering will use, before it uses any: so the event's size is known and a too large
 * event is refused without using a number. */
static int count_sequences(struct plan *plan)
{
    const struct build *b = plan->build;
    plan->taken_room = 3 + plan->number_count;
    plan->taken = arena_take(b->memory, plan->taken_room * sizeof plan->taken[0]);
    plan->numbers = arena_take(b->memory, plan->number_count * sizeof plan->numbers[0]);
    if (!plan->taken || !plan->numbers)
        return PAWL_ENOMEM;
    note_number(plan, SEQ_WLOG_OFFSET, 0);
    for (size_t i = 0; i < b->request->object_count; i++) {
        const struct plan_object *object = &plan->objects[i];
        if (!object->creates)
            continue;
        if (!object->type->singleton)
            note_number(plan, type_in_c(object->type->kind) ? SEQ_CREC_ID : SEQ_REC_ID, 0);
        for (size_t k = 0; k < object->type->field_count; k++)
            if (object->type->fields[k].sequence != 0)
                note_number(plan, object->type->fields[k].sequence, 0);
    }
    plan->size += envelope_size(plan->taken_count) + event_head_size(&plan->head);
    if (plan->size > b->event_bytes_max)
        return error_set(plan->error, PAWL_ETOOBIG, "the event would have %zu bytes; at most %zu", plan->size,
                         b->event_bytes_max);
    assert(plan->taken_count <= ENVELOPE_NUMBERS_MAX);
    return PAWL_OK;
}

int plan_number(struct plan *plan, struct built *ret_built)
{
    const struct build *b = plan->build;
    int status = pawl_sequencer_start(b->sequencer, b->workspace->kind, b->request->wsid, &ret_built->offset);
    if (status != PAWL_OK)
        return error_set(plan->error, status, "%s", pawl_sequencer_error(b->sequencer)->text);
    plan->taken_count = 0;
    status = take(plan, SEQ_WLOG_OFFSET, &ret_built->workspace_offset);
    if (status == PAWL_OK && ret_built->workspace_offset != b->workspace->last + 1)
        status = error_set(plan->error, PAWL_ECORRUPT,
                           "workspace %" PRIu64 ": its sequencer is at %" PRIu64 ", its state at %" PRIu64,
                           b->request->wsid, ret_built->workspace_offset - 1, b->workspace->last);
    size_t number = 0;
    for (size_t i = 0; status == PAWL_OK && i < b->request->object_count; i++)
        status = number_object(plan, plan_in_order(b->request, i), &number);
    if (status != PAWL_OK)
        pawl_sequencer_cancel(b->sequencer);
    return status;
}

static uint64_t real_parent(const struct plan *plan, size_t i)
{
    const struct request *r = plan->build->request;
    const struct request_object *o = &r->objects[i];
    if (i < r->argument_count)
        return o->parent == REQUEST_NO_PARENT ? 0 : plan->objects[o->parent].id;
    return record_is_raw(o->parent_id) ? plan->objects[plan_find_raw(plan, o->parent_id)->object].id
                                       : o->parent_id;
}

static uint8_t *write_cleared(const struct plan *plan, size_t i, uint8_t *at)
{
    const struct request *r = plan->build->request;
    const struct request_object *o = &r->objects[i];
    uint8_t *first = at;
    for (uint32_t k = 0; k < o->field_count; k++) {
        const struct request_field *f = &r->fields[o->field_first + k];
        if (f->value.type != VALUE_NULL)
            continue;
        uint8_t *to = at; /* by insertion: they are few */
        for (; to > first && get_u16(to - 2) > f->place; to -= 2)
            put_u16(to, get_u16(to - 2));
        put_u16(to, f->place);
        at += 2;
    }
    return at;
}

/* The texts of the head stand right before the objects, in this order. */
static void move_texts(struct event_head *head, const uint8_t *objects)
{
    pawl_bytes *texts[] = {&head->key, &head->causation, &head->correlation, &head->actor};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        objects -= texts[i]->size;
        texts[i]->data = objects;
    }
}

void plan_write(struct plan *plan, uint8_t *body, struct built *ret_built)
{
    const struct build *b = plan->build;
    const struct request *r = b->request;
    size_t head = envelope_size(plan->taken_count);
    envelope_encode(b->workspace->kind, r->wsid, plan->taken, plan->taken_count, body);
    uint8_t *at = event_head_write(&plan->head, body + head);
    ret_built->body = (pawl_bytes){body, plan->size};
    ret_built->event = (struct event){.envelope = {.kind = b->workspace->kind,
                                                   .wsid = r->wsid,
                                                   .count = plan->taken_count,
                                                   .numbers = body + envelope_size(0),
                                                   .content = {body + head, plan->size - head}},
                                      .head = plan->head,
                                      .objects = {at, (size_t)(body + plan->size - at)}};
    move_texts(&ret_built->event.head, at);
    for (size_t i = 0; i < r->object_count; i++) {
        const struct plan_object *object = &plan->objects[i];
        const struct request_object *o = &r->objects[i];
        struct event_object written = {.op = object->creates ? EVENT_CREATE : EVENT_UPDATE,
                                       .active = o->active != ACTIVE_NO,
                                       .says_active = o->active != ACTIVE_UNSAID,
                                       .type = object->type->id,
                                       .raw = object->creates ? (uint16_t)o->id : 0,
                                       .container = object->container,
                                       .id = object->id,
                                       .parent = real_parent(plan, i),
                                       .cleared_count = object->cleared_count,
                                       .row.size = object->row_size};
        at = event_object_write(&written, at);
        if (!object->creates)
            at = write_cleared(plan, i, at);
        plan_fill_values(plan, i, true);
        row_write(plan->values, object->type->field_count, at);
        at += object->row_size;
    }
    assert((size_t)(at - body) == plan->size);
}

int build_event(const struct build *b, struct built *ret_built, pawl_error *error)
{
    const struct request *r = b->request;
    struct plan plan = {.build = b,
                        .error = error,
                        .head = {.command = r->command,
                                 .object_count = (uint32_t)r->object_count,
                                 .argument_count = (uint32_t)r->argument_count,
                                 .schema = b->schema->position,
                                 .time = b->now,
                                 .record = b->workspace->record,
                                 .digest = r->key.size ? request_digest(r) : 0,
                                 .actor = r->actor,
                                 .correlation = r->correlation,
                                 .causation = r->causation,
                                 .key = r->key}};
    struct built built = {0};
    uint8_t *body = NULL;
    int status = plan_check(&plan);
    if (status == PAWL_OK)
        status = count_sequences(&plan);
    if (status == PAWL_OK && !(body = arena_take(b->memory, plan.size)))
        status = PAWL_ENOMEM;
    if (status == PAWL_OK)
        status = plan_number(&plan, &built);
    if (status == PAWL_ENOMEM)
        return error_set(error, status, "no memory to build an event");
    if (status != PAWL_OK)
        return status;
    plan_write(&plan, body, &built);
    built.record = plan.head.record;
    *ret_built = built;
    return PAWL_OK;
}
