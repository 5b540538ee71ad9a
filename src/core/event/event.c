#include "core/event/event.h"

#include <assert.h>

#include "base/bytes.h"
#include "base/error.h"

enum { FLAG_ACTIVE = 1, FLAG_SAYS_ACTIVE = 2 };

size_t event_head_size(const struct event_head *head)
{
    return EVENT_FIXED + head->actor.size + head->correlation.size + head->causation.size + head->key.size;
}

size_t event_object_size(size_t cleared_count, size_t row_size)
{
    return EVENT_OBJECT + 2 * cleared_count + row_size;
}

uint8_t *event_head_write(const struct event_head *head, uint8_t *at)
{
    const pawl_bytes texts[] = {head->actor, head->correlation, head->causation, head->key};
    assert(head->object_count <= EVENT_OBJECTS_MAX && head->argument_count <= head->object_count);
    put_u8(at, EVENT_VERSION);
    put_u8(at + 1, 0);
    put_u16(at + 2, head->command);
    put_u32(at + 4, head->object_count);
    put_u32(at + 8, head->argument_count);
    put_u32(at + 12, 0);
    put_u64(at + 16, head->schema);
    put_u64(at + 24, (uint64_t)head->time.ns);
    put_u64(at + 32, head->record);
    put_u64(at + 40, head->digest);
    at += 48;
    for (size_t i = 0; i < 4; i++) {
        assert(texts[i].size <= EVENT_TEXT_MAX);
        put_u8(at++, (uint8_t)texts[i].size);
    }
    for (size_t i = 0; i < 4; i++) {
        if (texts[i].size)
            memcpy(at, texts[i].data, texts[i].size);
        at += texts[i].size;
    }
    return at;
}

uint8_t *event_object_write(const struct event_object *object, uint8_t *at)
{
    assert(object->row.size <= UINT32_MAX && object->cleared_count <= UINT16_MAX);
    put_u8(at, (uint8_t)object->op);
    put_u8(at + 1,
           (uint8_t)((object->active ? FLAG_ACTIVE : 0) | (object->says_active ? FLAG_SAYS_ACTIVE : 0)));
    put_u16(at + 2, object->type);
    put_u16(at + 4, object->raw);
    put_u16(at + 6, object->container);
    put_u64(at + 8, object->id);
    put_u64(at + 16, object->parent);
    put_u32(at + 24, (uint32_t)object->row.size);
    put_u16(at + 28, (uint16_t)object->cleared_count);
    put_u16(at + 30, 0);
    return at + EVENT_OBJECT;
}

uint16_t event_cleared(const struct event_object *object, size_t i)
{
    assert(i < object->cleared_count);
    return get_u16(object->cleared + 2 * i);
}

static bool object_is_sound(const struct event_object *o, uint8_t flags, uint16_t zero)
{
    if ((o->op != EVENT_CREATE && o->op != EVENT_UPDATE) || flags > (FLAG_ACTIVE | FLAG_SAYS_ACTIVE)
        || zero != 0)
        return false;
    if (o->id == 0 || o->type == 0 || (o->op == EVENT_CREATE && o->cleared_count != 0))
        return false;
    for (size_t i = 1; i < o->cleared_count; i++)
        if (event_cleared(o, i - 1) >= event_cleared(o, i))
            return false;
    return true;
}

static bool decode_object(struct decoder *d, struct event_object *ret_object)
{
    struct event_object o = {.op = (enum event_op)decode_u8(d)};
    uint8_t flags = decode_u8(d);
    o.active = flags & FLAG_ACTIVE;
    o.says_active = flags & FLAG_SAYS_ACTIVE;
    o.type = decode_u16(d);
    o.raw = decode_u16(d);
    o.container = decode_u16(d);
    o.id = decode_u64(d);
    o.parent = decode_u64(d);
    o.row.size = decode_u32(d);
    o.cleared_count = decode_u16(d);
    uint16_t zero = decode_u16(d);
    o.cleared = decode_raw(d, 2 * o.cleared_count);
    o.row.data = decode_raw(d, o.row.size);
    *ret_object = o;
    return !d->bad && object_is_sound(&o, flags, zero);
}

bool event_next(const struct event *event, size_t *cursor, struct event_object *ret_object)
{
    struct decoder d = decoder_over(event->objects);
    decode_raw(&d, *cursor);
    if (d.left == 0)
        return false;
    bool sound = decode_object(&d, ret_object);
    assert(sound);
    *cursor = event->objects.size - d.left;
    return sound;
}

static pawl_bytes decode_text(struct decoder *d, uint8_t size)
{
    return (pawl_bytes){decode_raw(d, size), size};
}

static bool decode_head(struct decoder *d, struct event_head *h)
{
    bool zero = decode_u8(d) == 0;
    h->command = decode_u16(d);
    h->object_count = decode_u32(d);
    h->argument_count = decode_u32(d);
    zero = decode_u32(d) == 0 && zero;
    h->schema = decode_u64(d);
    h->time = (pawl_wall){(int64_t)decode_u64(d)};
    h->record = decode_u64(d);
    h->digest = decode_u64(d);
    uint8_t sizes[4];
    for (size_t i = 0; i < 4; i++) /* C does not order the elements of an initializer */
        sizes[i] = decode_u8(d);
    h->actor = decode_text(d, sizes[0]);
    h->correlation = decode_text(d, sizes[1]);
    h->causation = decode_text(d, sizes[2]);
    h->key = decode_text(d, sizes[3]);
    return !d->bad && zero && h->command != 0 && h->object_count <= EVENT_OBJECTS_MAX
           && h->argument_count <= h->object_count;
}

int event_decode(pawl_bytes body, struct event *ret_event, pawl_error *error)
{
    struct event e;
    int status = envelope_decode(body, &e.envelope, error);
    if (status != PAWL_OK)
        return status;
    struct decoder d = decoder_over(e.envelope.content);
    size_t head = body.size - d.left;
    uint8_t version = decode_u8(&d);
    if (version > EVENT_VERSION)
        return error_set(error, PAWL_EVERSION,
                         "byte %zu: the event's content is of version %u; this program knows"
                         " up to %d",
                         head, version, EVENT_VERSION);
    if (version == 0 || !decode_head(&d, &e.head))
        return error_set(error, PAWL_ECORRUPT, "byte %zu: this is not the content of an event", head);
    e.objects = (pawl_bytes){d.at, d.left};
    for (uint32_t i = 0; i < e.head.object_count; i++) {
        size_t at = body.size - d.left;
        struct event_object object;
        if (!decode_object(&d, &object))
            return error_set(error, PAWL_ECORRUPT, "byte %zu: this is not an object of an event", at);
    }
    if (d.left != 0)
        return error_set(error, PAWL_ECORRUPT, "byte %zu: %zu bytes behind the event's last object",
                         body.size - d.left, d.left);
    *ret_event = e;
    return PAWL_OK;
}

struct event_numbers event_numbers_of(const struct event *event, uint16_t seq)
{
    for (size_t i = 0; i < event->envelope.count; i++) {
        struct event_numbers numbers = envelope_numbers(&event->envelope, i);
        if (numbers.seq == seq)
            return numbers;
    }
    return (struct event_numbers){.seq = seq};
}
