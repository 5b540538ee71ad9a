#include "engine/read/event.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "core/sequence/storage.h"
#include "engine/node/node.h"

static int show_argument(struct pawl_event_source *s, pawl_error *error)
{
    struct event_object object;
    size_t cursor = 0;
    if (s->event.head.argument_count == 0 || !event_next(&s->event, &cursor, &object))
        return PAWL_OK;
    int status = row_of_object(s->engine, s->schema, &object, &s->argument, error);
    s->argument.event = s;
    s->argument.behind = cursor;
    return status;
}

int event_show(pawl_engine *e, uint16_t partition, uint64_t offset, pawl_bytes body, struct json_out *out,
               struct pawl_event_source *ret_source, pawl_event *ret_event, pawl_error *error)
{
    struct pawl_event_source *s = ret_source;
    *s = (struct pawl_event_source){
        .engine = e, .body = body, .out = out, .partition = partition, .offset = offset};
    json_out_rewind(out, 0);
    int status = event_decode(body, &s->event, error);
    if (status != PAWL_OK)
        return status;
    const struct event_head *head = &s->event.head;
    s->schema = engine_schema_at(e, head->schema);
    if (!s->schema)
        return error_set(error, PAWL_ECORRUPT,
                         "it was made under the schema at %" PRIu64 ", which is not known", head->schema);
    pawl_bytes command = schema_name_text(s->schema, head->command);
    if (command.size == 0)
        return error_set(error, PAWL_ECORRUPT, "the schema at %" PRIu64 " has no name %u", s->schema->position,
                         head->command);
    status = show_argument(s, error);
    if (status != PAWL_OK)
        return status;
    *ret_event = (pawl_event){.partition = partition,
                              .offset = offset,
                              .wsid = s->event.envelope.wsid,
                              .workspace_offset = event_numbers_of(&s->event, SEQ_WLOG_OFFSET).first,
                              .time = head->time,
                              .command = command,
                              .actor = head->actor,
                              .correlation = head->correlation,
                              .causation = head->causation,
                              .key = head->key,
                              .source = s};
    return PAWL_OK;
}

const pawl_row *pawl_event_argument(const pawl_event *event)
{
    return event->source->event.head.argument_count ? &event->source->argument : NULL;
}

/* The event's own schema has the types of all its records. The type that is asked for may be newer: then the
 * event has no record of it, and this is not an error. */
static int find_type(const struct pawl_event_source *s, const char *name, const struct schema_type **ret_type,
                     pawl_error *error)
{
    pawl_bytes text = {name, strlen(name)};
    *ret_type = schema_type_by_name(s->schema, text);
    if (!*ret_type)
        *ret_type = schema_type_by_name(engine_schema_refresh(s->engine), text);
    return *ret_type ? PAWL_OK : error_set(error, PAWL_ENOTFOUND, "there is no type of records %s", name);
}

int pawl_event_records(const pawl_event *event, const char *name, pawl_row_visit visit, void *arg,
                       pawl_error *error)
{
    const struct pawl_event_source *s = event->source;
    const struct schema_type *type = NULL;
    struct event_object object;
    size_t cursor = 0;
    int status = name ? find_type(s, name, &type, error) : PAWL_OK;
    for (uint32_t i = 0; status == PAWL_OK && event_next(&s->event, &cursor, &object); i++) {
        struct pawl_row row;
        if (i < s->event.head.argument_count || (type && object.type != type->id))
            continue;
        status = row_of_object(s->engine, s->schema, &object, &row, error);
        if (status == PAWL_OK && !visit(arg, &row))
            break;
    }
    return status;
}

int pawl_event_json(const pawl_event *event, pawl_bytes *ret_json, pawl_error *error)
{
    const struct pawl_event_source *s = event->source;
    struct json_source source = {
        .partition = s->partition, .offset = s->offset, .schema = s->schema, .body = s->body};
    if (s->out->size == 0) {
        int status = json_event(s->out, &source, error);
        out_raw(s->out, (pawl_bytes){"", 1}); /* a 0 byte, for callers that print it */
        if (status == PAWL_OK && s->out->status != PAWL_OK)
            status = error_set(error, s->out->status, "no memory for an event");
        if (status != PAWL_OK) {
            json_out_rewind(s->out, 0);
            return error_wrap(error, status, "plog/%u, offset %" PRIu64, s->partition, s->offset);
        }
    }
    *ret_json = (pawl_bytes){s->out->data, s->out->size - 1};
    return PAWL_OK;
}
