#include "core/schema/row.h"

#include <assert.h>
#include <math.h>

#include "base/bytes.h"
#include "base/error.h"
#include "core/schema/text.h"

#define FIXED ((size_t)4) /* version, zero, fields */
#define SLOT  ((size_t)8)

static size_t present_size(size_t fields)
{
    return (fields + 7) / 8;
}

static bool is_text(enum value_type type)
{
    return type == VALUE_STRING || type == VALUE_BYTES;
}

int row_size(const struct value *values, size_t count, size_t *ret_size)
{
    assert(count <= SCHEMA_FIELDS_MAX);
    size_t size = FIXED + present_size(count);
    for (size_t i = 0; i < count; i++) {
        if (values[i].type == VALUE_NULL)
            continue;
        size += SLOT;
        if (is_text(values[i].type)) {
            if (values[i].bytes.size > ROW_BYTES_MAX)
                return PAWL_ETOOBIG;
            size += values[i].bytes.size;
        }
        if (size > ROW_BYTES_MAX)
            return PAWL_ETOOBIG;
    }
    *ret_size = size;
    return PAWL_OK;
}

static uint64_t real_bits(double real)
{
    uint64_t bits;
    real = real == 0 ? 0 : real; /* -0 equals 0, and equal values have equal bytes */
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

static uint64_t slot_bits(const struct value *value)
{
    switch (value->type) {
    case VALUE_INT64:
    case VALUE_TIMESTAMP: return (uint64_t)value->integer;
    case VALUE_FLOAT64: return real_bits(value->real);
    case VALUE_BOOL: return value->boolean;
    case VALUE_QNAME: return value->name;
    case VALUE_REF: return value->id;
    default: return 0; /* null and texts, which have no bits */
    }
}

void row_write(const struct value *values, size_t count, uint8_t *at)
{
    put_u8(at, ROW_VERSION);
    put_u8(at + 1, 0);
    put_u16(at + 2, (uint16_t)count);
    uint8_t *present = at + FIXED;
    memset(present, 0, present_size(count));
    uint8_t *slot = present + present_size(count);
    for (size_t i = 0; i < count; i++)
        if (values[i].type != VALUE_NULL)
            present[i / 8] |= (uint8_t)(1u << i % 8);

    uint32_t tail = 0;
    for (size_t i = 0; i < count; i++) {
        if (values[i].type == VALUE_NULL)
            continue;
        if (is_text(values[i].type)) {
            put_u32(slot, tail);
            put_u32(slot + 4, (uint32_t)values[i].bytes.size);
            tail += (uint32_t)values[i].bytes.size;
        } else
            put_u64(slot, slot_bits(&values[i]));
        slot += SLOT;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_text(values[i].type) || values[i].bytes.size == 0)
            continue;
        memcpy(slot, values[i].bytes.data, values[i].bytes.size);
        slot += values[i].bytes.size;
    }
}

/* Where everything of a row lies. */
struct layout {
    const uint8_t *present;
    const uint8_t *slots;
    size_t fields;
};

/* Of a byte. The compiler's own is a call where the processor is not known to have an instruction for it. */
static inline size_t count_bits(unsigned byte)
{
    byte -= byte >> 1 & 0x55;
    byte = (byte & 0x33) + (byte >> 2 & 0x33);
    return (byte + (byte >> 4)) & 0x0f;
}

static inline size_t present_before(const uint8_t *present, size_t place)
{
    size_t count = 0, whole = place / 8;
    for (size_t i = 0; i < whole; i++)
        count += count_bits(present[i]);
    if (place % 8)
        count += count_bits(present[whole] & ((1u << place % 8) - 1));
    return count;
}

static struct layout row_layout(const uint8_t *bytes)
{
    struct layout l = {.present = bytes + FIXED, .fields = get_u16(bytes + 2)};
    l.slots = l.present + present_size(l.fields);
    return l;
}

static pawl_bytes tail_of(struct row row, const struct layout *l)
{
    const uint8_t *end = (const uint8_t *)row.bytes.data + row.bytes.size;
    const uint8_t *tail = l->slots + SLOT * present_before(l->present, l->fields);
    return (pawl_bytes){tail, (size_t)(end - tail)};
}

static bool is_present(const struct layout *l, size_t place)
{
    return place < l->fields && (l->present[place / 8] >> place % 8 & 1) != 0;
}

/* Whether a slot is what row_write would have made of a value of this type. */
static inline bool slot_is_sound(enum value_type type, const uint8_t *slot)
{
    uint64_t bits = get_u64(slot);
    double real;
    switch (type) {
    case VALUE_BOOL: return bits <= 1;
    case VALUE_QNAME: return bits <= UINT16_MAX;
    case VALUE_FLOAT64: memcpy(&real, &bits, sizeof real); return isfinite(real) && bits == real_bits(real);
    default: return true;
    }
}

/* The fields that both the row and the type have. ret_used: how much of the tail is theirs. */
static int check_fields(const struct layout *l, const struct schema_field *fields, size_t count,
                        pawl_bytes tail, size_t *ret_used, pawl_error *error)
{
    const uint8_t *slot = l->slots;
    size_t used = 0;
    for (size_t i = 0; i < count && i < l->fields; i++) {
        if (!is_present(l, i))
            continue;
        bool sound = slot_is_sound(fields[i].type, slot);
        if (is_text(fields[i].type)) {
            size_t size = get_u32(slot + 4);
            sound = get_u32(slot) == used && size <= tail.size - used;
            if (sound && fields[i].type == VALUE_STRING)
                sound = text_is_utf8((pawl_bytes){(const uint8_t *)tail.data + used, size});
            used += sound ? size : 0;
        }
        if (!sound)
            return error_set(error, PAWL_ECORRUPT, "field '%.*s': these are not bytes of a value of its type",
                             (int)fields[i].name.size, (const char *)fields[i].name.data);
        slot += SLOT;
    }
    *ret_used = used;
    return PAWL_OK;
}

int row_borrow(pawl_bytes bytes, struct row *ret_row, pawl_error *error)
{
    const uint8_t *at = bytes.data, *present = at + FIXED;
    bool whole = bytes.size >= FIXED;
    if (whole && at[0] > ROW_VERSION)
        return error_set(error, PAWL_EVERSION, "byte 0: the row is of version %u; this program knows up to %d",
                         at[0], ROW_VERSION);
    size_t count = whole ? get_u16(at + 2) : 0;
    if (!whole || at[0] == 0 || at[1] != 0 || count > SCHEMA_FIELDS_MAX || bytes.size > ROW_BYTES_MAX)
        return error_set(error, PAWL_ECORRUPT, "byte 0: this is not the head of a row");
    size_t head = FIXED + present_size(count);
    if (bytes.size < head || (count % 8 && present[count / 8] >> count % 8))
        return error_set(error, PAWL_ECORRUPT, "byte %zu: this does not say which of %zu fields are there",
                         FIXED, count);
    size_t slots = present_before(present, count);
    if (bytes.size - head < slots * SLOT)
        return error_set(error, PAWL_ECORRUPT, "byte %zu: the row ends inside its %zu values", bytes.size,
                         slots);
    ret_row->bytes = bytes;
    return PAWL_OK;
}

int row_open(const struct schema_field *fields, size_t field_count, pawl_bytes bytes, struct row *ret_row,
             pawl_error *error)
{
    struct row row;
    size_t used;
    int status = row_borrow(bytes, &row, error);
    if (status)
        return status;
    struct layout l = row_layout(bytes.data);
    pawl_bytes tail = tail_of(row, &l);
    status = check_fields(&l, fields, field_count, tail, &used, error);
    if (status)
        return status;
    if (l.fields <= field_count && used != tail.size)
        return error_set(error, PAWL_ECORRUPT, "byte %zu: %zu bytes that belong to no field",
                         bytes.size - (tail.size - used), tail.size - used);
    *ret_row = row;
    return PAWL_OK;
}

size_t row_fields(struct row row)
{
    return get_u16((const uint8_t *)row.bytes.data + 2);
}

bool row_has(struct row row, size_t place)
{
    struct layout l = {.present = (const uint8_t *)row.bytes.data + FIXED, .fields = row_fields(row)};
    return is_present(&l, place);
}

static inline struct value slot_value(struct row row, const struct layout *l, const uint8_t *slot,
                                      enum value_type type)
{
    uint64_t bits = get_u64(slot);
    struct value v = {.type = type};
    switch (type) {
    case VALUE_INT64:
    case VALUE_TIMESTAMP: v.integer = (int64_t)bits; break;
    case VALUE_FLOAT64: memcpy(&v.real, &bits, sizeof bits); break;
    case VALUE_BOOL: v.boolean = bits != 0; break;
    case VALUE_QNAME: v.name = (uint16_t)bits; break;
    case VALUE_REF: v.id = bits; break;
    case VALUE_STRING:
    case VALUE_BYTES:
        v.bytes = (pawl_bytes){(const uint8_t *)tail_of(row, l).data + get_u32(slot), get_u32(slot + 4)};
        break;
    case VALUE_NULL: break;
    }
    return v;
}

struct value row_get(struct row row, size_t place, enum value_type type)
{
    struct layout l = row_layout(row.bytes.data);
    if (!is_present(&l, place))
        return (struct value){.type = VALUE_NULL};
    return slot_value(row, &l, l.slots + SLOT * present_before(l.present, place), type);
}

static bool text_is_inside(struct row row, const struct layout *l, const uint8_t *slot)
{
    size_t at = get_u32(slot), size = get_u32(slot + 4), tail = tail_of(row, l).size;
    return at <= tail && size <= tail - at;
}

int row_peek(struct row row, size_t place, enum value_type type, struct value *ret_value)
{
    struct layout l = row_layout(row.bytes.data);
    if (!is_present(&l, place)) {
        *ret_value = (struct value){.type = VALUE_NULL};
        return PAWL_OK;
    }
    const uint8_t *slot = l.slots + SLOT * present_before(l.present, place);
    if (!slot_is_sound(type, slot) || (is_text(type) && !text_is_inside(row, &l, slot)))
        return PAWL_ECORRUPT;
    struct value value = slot_value(row, &l, slot, type);
    if (type == VALUE_STRING && !text_is_utf8(value.bytes))
        return PAWL_ECORRUPT;
    *ret_value = value;
    return PAWL_OK;
}

bool row_covers(struct row row, struct row other)
{
    struct layout a = row_layout(row.bytes.data), b = row_layout(other.bytes.data);
    for (size_t i = 0; i < present_size(b.fields); i++)
        if (b.present[i] & ~(i < present_size(a.fields) ? a.present[i] : 0u))
            return false;
    return true;
}

/* Merging: both rows are walked slot by slot beside the fields, so that nothing has to be counted. */

struct source {
    struct layout layout;
    const uint8_t *slot; /* of the next field that it has */
    const uint8_t *tail;
};

static struct source source_of(struct row row)
{
    struct source s = {.layout = row_layout(row.bytes.data)};
    s.slot = s.layout.slots;
    s.tail = tail_of(row, &s.layout).data;
    return s;
}

size_t row_merge_room(size_t count, struct row was, struct row set)
{
    return present_size(count) + was.bytes.size + set.bytes.size;
}

static void merge_present(const struct source *was, const struct source *set, pawl_bytes cleared,
                          uint8_t *present, size_t size)
{
    size_t was_size = present_size(was->layout.fields), set_size = present_size(set->layout.fields);
    for (size_t i = 0; i < size; i++)
        present[i] = (uint8_t)((i < was_size ? was->layout.present[i] : 0u)
                               | (i < set_size ? set->layout.present[i] : 0u));
    for (size_t i = 0; i < cleared.size; i += 2) {
        size_t place = get_u16((const uint8_t *)cleared.data + i);
        present[place / 8] &= (uint8_t) ~(1u << place % 8);
    }
}

int row_merge(const struct schema_field *fields, size_t count, struct row was, struct row set,
              pawl_bytes cleared, uint8_t *at, struct row *ret_row)
{
    assert(row_fields(was) <= count && row_fields(set) <= count && count <= SCHEMA_FIELDS_MAX);
    struct source sources[] = {source_of(was), source_of(set)};
    struct layout merged = {.present = at + FIXED, .slots = at + FIXED + present_size(count), .fields = count};
    put_u8(at, ROW_VERSION);
    put_u8(at + 1, 0);
    put_u16(at + 2, (uint16_t)count);
    merge_present(&sources[0], &sources[1], cleared, at + FIXED, present_size(count));
    uint8_t *slot = at + FIXED + present_size(count);
    uint8_t *tail = slot + SLOT * present_before(merged.present, count), *end = tail;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *from = NULL, *texts = NULL;
        for (size_t k = 0; k < 2; k++)
            if (is_present(&sources[k].layout, i)) {
                from = sources[k].slot;
                texts = sources[k].tail;
                sources[k].slot += SLOT;
            }
        if (!is_present(&merged, i)) {
            if (fields[i].required)
                return PAWL_EINVAL;
            continue;
        }
        assert(from); /* what the merged row has, one of the two has */
        if (is_text(fields[i].type)) {
            size_t size = get_u32(from + 4);
            put_u32(slot, (uint32_t)(end - tail));
            put_u32(slot + 4, (uint32_t)size);
            memcpy(end, texts + get_u32(from), size);
            end += size;
        } else
            memcpy(slot, from, SLOT);
        slot += SLOT;
    }
    if ((size_t)(end - at) > ROW_BYTES_MAX)
        return PAWL_ETOOBIG;
    ret_row->bytes = (pawl_bytes){at, (size_t)(end - at)};
    return PAWL_OK;
}
