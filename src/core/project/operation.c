#include "core/project/operation.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"

/* Cut the reason to OPERATION_REASON bytes, but not inside a UTF-8 character. */
static pawl_bytes cut_reason(pawl_bytes reason)
{
    const uint8_t *at = reason.data;
    if (reason.size <= OPERATION_REASON)
        return reason;
    reason.size = OPERATION_REASON;
    while (reason.size > 0 && (at[reason.size] & 0xc0) == 0x80)
        reason.size--;
    return reason;
}

int operation_encode(const struct operation *o, struct arena *arena, pawl_bytes *ret_bytes)
{
    pawl_bytes tail = o->kind == OPERATION_VOID ? cut_reason(o->reason) : o->writes;
    if (tail.size > OPERATION_BYTES_MAX - OPERATION_HEAD)
        return PAWL_ETOOBIG;
    uint8_t *at = arena_take(arena, OPERATION_HEAD + tail.size);
    if (!at)
        return PAWL_ENOMEM;
    put_u8(at, OPERATION_VERSION);
    put_u8(at + 1, (uint8_t)o->kind);
    put_u16(at + 2, o->projector);
    put_u32(at + 4, o->attempt);
    put_u64(at + 8, o->number);
    put_u64(at + 16, o->id.high);
    put_u64(at + 24, o->id.low);
    put_u64(at + 32, o->event);
    put_u64(at + 40, o->wsid);
    put_u64(at + 48, o->schema);
    put_u64(at + 56, (uint64_t)o->time.ns);
    put_u32(at + 64, o->kind == OPERATION_VOID ? (uint32_t)tail.size : o->count);
    put_u32(at + 68, 0);
    if (tail.size)
        memcpy(at + OPERATION_HEAD, tail.data, tail.size);
    *ret_bytes = (pawl_bytes){at, OPERATION_HEAD + tail.size};
    return PAWL_OK;
}

/* Reading operations that were checked. */

static struct operation_row row_at(const uint8_t *at)
{
    struct operation_row row = {.key = {at + OPERATION_ROW, get_u16(at)}, .cleared_count = get_u16(at + 2)};
    row.set = (pawl_bytes){at + OPERATION_ROW + row.key.size, get_u32(at + 4)};
    row.cleared = (pawl_bytes){(const uint8_t *)row.set.data + row.set.size, 2 * row.cleared_count};
    return row;
}

static size_t row_bytes(const struct operation_row *row)
{
    return OPERATION_ROW + row->key.size + row->set.size + row->cleared.size;
}

bool operation_next_row(const struct operation_write *write, size_t *cursor, struct operation_row *ret_row)
{
    if (*cursor == write->bytes.size)
        return false;
    *ret_row = row_at((const uint8_t *)write->bytes.data + *cursor);
    *cursor += row_bytes(ret_row);
    return true;
}

bool operation_next_write(const struct operation *o, size_t *cursor, struct operation_write *ret_write)
{
    if (*cursor == o->writes.size)
        return false;
    const uint8_t *at = (const uint8_t *)o->writes.data + *cursor;
    *ret_write = (struct operation_write){
        .kind = (enum action_kind)at[0], .entity = get_u16(at + 2), .rows = get_u32(at + 4)};
    size_t size = 0;
    for (uint32_t i = 0; i < ret_write->rows; i++) {
        struct operation_row row = row_at(at + OPERATION_WRITE + size);
        size += row_bytes(&row);
    }
    ret_write->bytes = (pawl_bytes){at + OPERATION_WRITE, size};
    *cursor += OPERATION_WRITE + size;
    return true;
}

bool operation_walk(const struct operation *o, struct operation_walk *w, struct operation_row *ret_row)
{
    if (w->at == o->writes.size)
        return false;
    const uint8_t *at = (const uint8_t *)o->writes.data + w->at;
    if (w->rows == 0) {
        w->kind = (enum action_kind)at[0];
        w->entity = get_u16(at + 2);
        w->rows = get_u32(at + 4);
        w->at += OPERATION_WRITE;
        at += OPERATION_WRITE;
    }
    *ret_row = row_at(at);
    w->at += row_bytes(ret_row);
    w->rows--;
    return true;
}

uint16_t operation_cleared(const struct operation_row *row, size_t i)
{
    assert(i < row->cleared_count);
    return get_u16((const uint8_t *)row->cleared.data + 2 * i);
}

/* Checking. */

struct check {
    struct decoder d;
    size_t size; /* of all */
    pawl_error *error;
};

static int bad(const struct check *c, const char *what)
{
    return error_set(c->error, PAWL_ECORRUPT, "byte %zu: %s", c->size - c->d.left, what);
}

static int check_row(struct check *c, enum action_kind kind)
{
    const uint8_t *at = decode_raw(&c->d, OPERATION_ROW);
    size_t key = at ? get_u16(at) : 0, cleared = at ? get_u16(at + 2) : 0, set = at ? get_u32(at + 4) : 0;
    if (key == 0 || (kind == ACTION_DELETE) != (set == 0) || (set == 0 && cleared > 0))
        return bad(c, "this is not the head of a row");
    if (set > ROW_BYTES_MAX || cleared > SCHEMA_FIELDS_MAX)
        return bad(c, "the row is larger than a row may be");
    decode_raw(&c->d, key + set);
    int last = -1;
    for (size_t i = 0; i < cleared && !c->d.bad; i++) {
        int place = decode_u16(&c->d);
        if (place <= last)
            return bad(c, "the cleared fields are not in ascending order");
        last = place;
    }
    return c->d.bad ? bad(c, "it ends inside a row") : PAWL_OK;
}

static int check_write(struct check *c)
{
    const uint8_t *at = decode_raw(&c->d, OPERATION_WRITE);
    if (!at || at[0] < ACTION_UPSERT || at[0] > ACTION_DELETE || at[1] != 0 || get_u16(at + 2) == 0
        || get_u32(at + 4) == 0)
        return bad(c, "this is not the head of a write");
    int status = PAWL_OK;
    for (uint32_t i = 0, rows = get_u32(at + 4); status == PAWL_OK && i < rows; i++)
        status = check_row(c, (enum action_kind)at[0]);
    return status;
}

static int check_tail(struct check *c, const struct operation *o, uint32_t count)
{
    if (o->kind == OPERATION_VOID)
        return count > OPERATION_REASON || count != c->d.left ? bad(c, "this is not the reason of a void")
                                                              : PAWL_OK;
    int status = PAWL_OK;
    for (uint32_t i = 0; status == PAWL_OK && i < count; i++)
        status = check_write(c);
    if (status == PAWL_OK && c->d.left > 0)
        return bad(c, "there are bytes behind the last write");
    return status;
}

int operation_decode(pawl_bytes bytes, struct operation *ret_operation, pawl_error *error)
{
    const uint8_t *at = bytes.data;
    if (bytes.size > 0 && at[0] > OPERATION_VERSION)
        return error_set(error, PAWL_EVERSION,
                         "byte 0: the operation is of version %u; this program knows up to %d", at[0],
                         OPERATION_VERSION);
    if (bytes.size < OPERATION_HEAD || bytes.size > OPERATION_BYTES_MAX || at[0] == 0 || get_u32(at + 68) != 0
        || (at[1] != OPERATION_WRITES && at[1] != OPERATION_VOID))
        return error_set(error, PAWL_ECORRUPT, "byte 0: this is not the head of an operation");
    uint32_t count = get_u32(at + 64);
    pawl_bytes tail = {at + OPERATION_HEAD, bytes.size - OPERATION_HEAD};
    struct operation o = {.kind = (enum operation_kind)at[1],
                          .projector = get_u16(at + 2),
                          .attempt = get_u32(at + 4),
                          .number = get_u64(at + 8),
                          .id = {.high = get_u64(at + 16), .low = get_u64(at + 24)},
                          .event = get_u64(at + 32),
                          .wsid = get_u64(at + 40),
                          .schema = get_u64(at + 48),
                          .time = {.ns = (int64_t)get_u64(at + 56)}};
    struct check c = {.d = decoder_over(tail), .size = bytes.size, .error = error};
    int status = check_tail(&c, &o, count);
    if (status != PAWL_OK)
        return status;
    if (o.kind == OPERATION_VOID)
        o.reason = tail;
    else {
        o.writes = tail;
        o.count = count;
    }
    *ret_operation = o;
    return PAWL_OK;
}

/* Making. */

void operation_maker_init(struct operation_maker *m, const pawl_allocator *alloc)
{
    *m = (struct operation_maker){.alloc = alloc};
}

void operation_maker_release(struct operation_maker *m)
{
    mem_free(m->alloc, m->data, m->room);
    mem_free(m->alloc, m->values, m->values_room * sizeof m->values[0]);
    operation_maker_init(m, m->alloc);
}

#define KEPT ((size_t)1 << 20) /* a buffer that is larger is freed after use */

void operation_maker_reset(struct operation_maker *m)
{
    if (m->room > KEPT) {
        mem_free(m->alloc, m->data, m->room);
        m->data = NULL;
        m->room = 0;
    }
    m->size = m->write = 0;
    m->count = m->rows = 0;
    m->status = PAWL_OK;
}

static uint8_t *make_room(struct operation_maker *m, size_t more)
{
    const size_t limit = OPERATION_BYTES_MAX - OPERATION_HEAD;
    if (m->status == PAWL_OK && more > limit - m->size)
        m->status = PAWL_ETOOBIG;
    if (m->status == PAWL_OK && more > m->room - m->size) {
        size_t room = m->room ? 2 * m->room : 1024;
        while (room < m->size + more)
            room *= 2;
        uint8_t *data = mem_resize(m->alloc, m->data, m->room, room);
        if (data) {
            m->data = data;
            m->room = room;
        } else
            m->status = PAWL_ENOMEM;
    }
    if (m->status != PAWL_OK)
        return NULL;
    uint8_t *at = m->data + m->size;
    m->size += more;
    return at;
}

void operation_maker_write(struct operation_maker *m, enum action_kind kind, uint16_t entity)
{
    if (m->status == PAWL_OK && m->rows == 0)
        m->size = m->write;
    m->write = m->size;
    m->rows = 0;
    uint8_t *at = make_room(m, OPERATION_WRITE);
    if (!at)
        return;
    put_u8(at, (uint8_t)kind);
    put_u8(at + 1, 0);
    put_u16(at + 2, entity);
    put_u32(at + 4, 0);
}

/* Pick the values that are set, by place, with nulls between. Returns how many of them are null. */
static size_t pick_set(struct operation_maker *m, const struct value *values, const uint64_t *set,
                       size_t field_count)
{
    size_t cleared = 0;
    if (field_count > m->values_room) {
        struct value *room =
            mem_resize(m->alloc, m->values, m->values_room * sizeof *room, field_count * sizeof *room);
        if (!room) {
            m->status = PAWL_ENOMEM;
            return 0;
        }
        m->values = room;
        m->values_room = field_count;
    }
    for (size_t i = 0; i < field_count; i++) {
        bool is_set = fields_have(set, i);
        m->values[i] = is_set ? values[i] : (struct value){.type = VALUE_NULL};
        cleared += is_set && values[i].type == VALUE_NULL;
    }
    return cleared;
}

void operation_maker_row(struct operation_maker *m, pawl_bytes key, const struct value *values,
                         const uint64_t *set, size_t field_count)
{
    assert(m->status != PAWL_OK || m->size >= m->write + OPERATION_WRITE);
    assert(key.size > 0 && key.size <= UINT16_MAX);
    size_t cleared = 0, size = 0;
    if (m->status == PAWL_OK && values) {
        cleared = pick_set(m, values, set, field_count);
        if (m->status == PAWL_OK)
            m->status = row_size(m->values, field_count, &size);
    }
    uint8_t *at = m->status == PAWL_OK ? make_room(m, OPERATION_ROW + key.size + size + 2 * cleared) : NULL;
    if (!at)
        return;
    put_u16(at, (uint16_t)key.size);
    put_u16(at + 2, (uint16_t)cleared);
    put_u32(at + 4, (uint32_t)size);
    memcpy(at + OPERATION_ROW, key.data, key.size);
    at += OPERATION_ROW + key.size;
    if (values) {
        row_write(m->values, field_count, at);
        at += size;
        for (size_t i = 0; i < field_count; i++)
            if (fields_have(set, i) && values[i].type == VALUE_NULL) {
                put_u16(at, (uint16_t)i);
                at += 2;
            }
    }
    m->count += m->rows == 0;
    put_u32(m->data + m->write + 4, ++m->rows);
}

int operation_maker_writes(const struct operation_maker *m, pawl_bytes *ret_writes, uint32_t *ret_count)
{
    if (m->status != PAWL_OK)
        return m->status;
    *ret_writes = (pawl_bytes){m->data, m->rows ? m->size : m->write};
    *ret_count = m->count;
    return PAWL_OK;
}
