/* core/view/view.h: a view, resolved: what row it makes of a row of its base.
 *
 *     base row ── filter ──► not in the view
 *                    └─────► key: the key's fields, then the base row's own key     value: all its fields
 *
 * An incarnation of a view has a number, which is never given again, and a table for each generation of its
 * base. View rows lie in a key space of their own, VIEW_SPACE, with keys like those of all rows
 * (core/state/key.h):
 *
 *     key     table u32 | token u64 | workspace u64 | key fields, sorted | own key of the base row
 *     value   version u8 (1), flags u8 (1: a field of the key is null), size of the base row's own key u16,
 *             then a row (core/schema/row.h) of the key's fields and the included ones
 *
 * So rows never collide, and a view's row tells which base row it is of. Key fields of more than
 * VIEW_KEY_BYTES_MAX bytes in all enter as a prefix and a hash: they are found by equality, and their order is
 * not promised beyond the prefix.
 *
 * Evaluation is total: an expression that fails on a row means that the row is not in the view.
 *
 * A view is immutable and counted. It borrows from the schema that it was resolved with. */
#ifndef CORE_VIEW_VIEW_H
#define CORE_VIEW_VIEW_H

#include <stdatomic.h>

#include "core/schema/definition.h"
#include "core/schema/row.h"
#include "port/store.h"

#define VIEW_KEY_BYTES_MAX ((size_t)400)
#define VIEW_ROW_HEAD      ((size_t)4)
#define VIEW_ROW_VERSION   1
#define VIEW_NUMBERS_MAX   ((uint32_t)65535)
#define VIEW_TABLE_BIT     ((uint32_t)1 << 31)

/* The table of a view's rows, for a generation of its base; what it is of. */
static inline uint32_t view_table(uint16_t number, uint32_t generation)
{
    return VIEW_TABLE_BIT | generation << SCHEMA_TABLE_BITS | number;
}

static inline bool table_is_view(uint32_t table)
{
    return (table & VIEW_TABLE_BIT) != 0;
}

static inline uint16_t view_number(uint32_t table)
{
    return (uint16_t)(table & ((1u << SCHEMA_TABLE_BITS) - 1));
}

static inline uint32_t view_generation(uint32_t table)
{
    return (table & ~VIEW_TABLE_BIT) >> SCHEMA_TABLE_BITS;
}

enum view_source { VIEW_OF_FIELD, VIEW_OF_ID, VIEW_OF_PARENT, VIEW_OF_ACTIVE };

/* Where a field of the view comes from. */
struct view_field {
    enum view_source source;
    uint16_t place; /* FIELD */
};

struct view {
    atomic_size_t references;
    const pawl_allocator *alloc;
    struct arena arena;
    uint16_t number;
    bool unique;
    pawl_bytes name; /* qualified */
    pawl_bytes
        source; /* its definition as bytes: a package with one view (core/schema/definition.h); group0's */
    const struct schema_type *base;
    const struct view_field *fields; /* the key's, then the included ones */
    size_t key_count;
    struct expr *filter;    /* NULL: all rows */
    struct schema_type row; /* its rows as their readers see them: the fields, and key for the key */
};

/* The view that a definition describes; bare names are the package's. at: the path of the definition, for
 * complaints; NULL: the root. PAWL_EINVAL, with the path; PAWL_ENOMEM. */
struct path;
int view_resolve(const struct schema *schema, pawl_bytes package, const struct definition_view *definition,
                 uint16_t number, const struct path *at, const pawl_allocator *alloc, struct view **ret_view,
                 pawl_error *error);
struct view *view_hold(struct view *view);
void view_drop(struct view *view); /* NULL is allowed; the last one frees */

/* The generations of the view's base that have rows, in force now: the one that serves and the one that is being
 * built. Returns their number, 1 or 2. */
size_t view_generations(const struct schema *schema, const struct view *view, uint32_t generations[2]);
uint32_t view_base_table(const struct view *view, uint32_t generation);

/* Room for the row that is made, which grows. Zero it, with an allocator. */
struct view_room {
    uint8_t *key;
    size_t key_room;
    uint8_t *value;
    size_t value_room;
    struct value *values;
    size_t values_room;
    uint8_t *scratch; /* for strings that the filter makes */
    const pawl_allocator *alloc;
};

void view_room_release(struct view_room *room);

/* What a base row becomes. Borrowed from the room until the next use. */
struct view_row {
    bool there;        /* false: not in the view */
    bool failed;       /* because an expression fails on it, or it cannot be read; why has the words */
    bool has_null;     /* a field of its key is null: it is not held to be unique */
    pawl_bytes key;    /* whole */
    size_t key_fields; /* bytes of the key up to the end of its fields: equal for equal fields */
    pawl_bytes value;
};

/* base_key, base_value: a row of the base, as its table has it. Never fails for what is in the row. why may be
 * NULL. PAWL_ENOMEM. */
int view_evaluate(const struct view *view, pawl_bytes base_key, pawl_bytes base_value, struct view_room *room,
                  struct view_row *ret_row, pawl_error *why);

/* The first bytes of the keys of all rows whose key begins with these values, of types that were checked, in
 * key, which has KEY_WORKSPACE + VIEW_KEY_BYTES_MAX bytes. exact: values are all fields of the key; then the
 * bytes end where the fields do. PAWL_ETOOBIG: a prefix that is not exact is longer than the bytes that sort. */
int view_prefix(const struct view *view, uint32_t table, uint64_t wsid, const struct value *values,
                size_t count, uint8_t *key, size_t *ret_size);

/* Take a stored row apart. ret_own: the base row's own key, behind table, token and workspace; borrowed.
 * PAWL_ECORRUPT. */
int view_row_read(pawl_bytes key, pawl_bytes value, pawl_bytes *ret_own, pawl_bytes *ret_row, bool *ret_null);

#endif
