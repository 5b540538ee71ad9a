/* row.h: fields, read from C with their own types.
 *
 * A row is whatever has fields: a record, a row of an entity or of a view, an object of an event's argument, a
 * record in an event, a row that an operation wrote. All are read by the same functions.
 *
 *     static bool add(void *arg, const pawl_row *row)
 *     {
 *         int64_t cents;
 *         if (pawl_row_int64(row, "cents", &cents, NULL) == PAWL_OK)
 *             *(int64_t *)arg += cents;
 *         return true;
 *     }
 *
 * Ownership. A callback borrows a row, and all strings and bytes of it, until it returns. Nothing is copied.
 * Use a row only on the thread of that callback. */
#ifndef PAWL_ROW_H
#define PAWL_ROW_H

#include <pawl/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pawl_row pawl_row;

/* Return false to stop. Where there is one row only, the answer is ignored. It must not take long: the rows of
 * the state are read from a snapshot, which keeps the store from reusing its pages. */
typedef bool (*pawl_row_visit)(void *arg, const pawl_row *row);

/* The qualified name of its type, or of its entity. */
PAWL_API pawl_bytes pawl_row_type(const pawl_row *row);

/* Of a record, or of an object of an event. id and parent are 0 if there is none; rows of entities have none.
 * is_update: the event changes a record that was there before; the row has only the fields that it changes
 * (pawl_row_has). */
PAWL_API uint64_t pawl_row_id(const pawl_row *row);
PAWL_API uint64_t pawl_row_parent(const pawl_row *row);
PAWL_API bool pawl_row_active(const pawl_row *row);
PAWL_API bool pawl_row_is_update(const pawl_row *row);

/* Of a row of a view (pawl/view.h): its workspace. 0 of all other rows. */
PAWL_API uint64_t pawl_row_wsid(const pawl_row *row);

/* Read a field. PAWL_ENOTFOUND: the type has no such field. PAWL_EINVAL: the field has another type.
 * PAWL_ECORRUPT: the stored bytes are not a valid value. On any error the outputs are untouched. ret_null may
 * be NULL; *ret_null says whether the field is null; then the value is 0 or empty. A field that was added to
 * the type after the row was written is null.
 *
 *     int64, float64, bool, string, bytes    the types of these names
 *     time                                   timestamp
 *     name                                   qname: the qualified name
 *     ref                                    ref: the ID of the record */
PAWL_API int pawl_row_int64(const pawl_row *row, const char *field, int64_t *ret_value, bool *ret_null);
PAWL_API int pawl_row_float64(const pawl_row *row, const char *field, double *ret_value, bool *ret_null);
PAWL_API int pawl_row_bool(const pawl_row *row, const char *field, bool *ret_value, bool *ret_null);
PAWL_API int pawl_row_string(const pawl_row *row, const char *field, pawl_bytes *ret_value, bool *ret_null);
PAWL_API int pawl_row_bytes(const pawl_row *row, const char *field, pawl_bytes *ret_value, bool *ret_null);
PAWL_API int pawl_row_time(const pawl_row *row, const char *field, pawl_wall *ret_value, bool *ret_null);
PAWL_API int pawl_row_name(const pawl_row *row, const char *field, pawl_bytes *ret_value, bool *ret_null);
PAWL_API int pawl_row_ref(const pawl_row *row, const char *field, uint64_t *ret_value, bool *ret_null);

/* Whether the row says anything about a field: it has a value, or the event or the operation makes it null.
 * False also if the type has no such field. */
PAWL_API bool pawl_row_has(const pawl_row *row, const char *field);

/* Visit the children of an object of an event's argument, in their order: those in one container of its type
 * (NULL: in all). This reads all objects behind this one, once. Errors: PAWL_ENOTFOUND (the type has no such
 * container), PAWL_EINVAL (the row is not of an argument), PAWL_ECORRUPT. */
PAWL_API int pawl_row_children(const pawl_row *row, const char *container, pawl_row_visit visit, void *arg,
                               pawl_error *error);

/* --- keys of entities and views --- */

typedef enum pawl_type {
    PAWL_NULL = 0, /* in keys of views only */
    PAWL_INT64 = 1,
    PAWL_FLOAT64 = 2,
    PAWL_BOOL = 3,
    PAWL_STRING = 4,
    PAWL_BYTES = 5,
    PAWL_TIME = 6,
    PAWL_NAME = 7,
    PAWL_REF = 8,
} pawl_type;

/* One value. Make it by the functions below. */
typedef struct pawl_value {
    pawl_type type;
    union {
        int64_t integer; /* INT64, TIME */
        double real;
        bool boolean;
        uint64_t id;      /* REF */
        pawl_bytes bytes; /* STRING, BYTES, NAME: borrowed for the call that it is given to */
    } as;
} pawl_value;

PAWL_API pawl_value pawl_value_null(void);
PAWL_API pawl_value pawl_value_int64(int64_t value);
PAWL_API pawl_value pawl_value_float64(double value);
PAWL_API pawl_value pawl_value_bool(bool value);
PAWL_API pawl_value pawl_value_string(const char *text);
PAWL_API pawl_value pawl_value_text(pawl_bytes text); /* a string that need not end in a 0 */
PAWL_API pawl_value pawl_value_bytes(pawl_bytes bytes);
PAWL_API pawl_value pawl_value_time(pawl_wall time);
PAWL_API pawl_value pawl_value_name(const char *qname);
PAWL_API pawl_value pawl_value_ref(uint64_t id);

/* The key of an entity's row: a value for each field of the key, in the key's order. Borrowed for the call.
 * Without values it means "no key", where a key may be left out.
 *
 *     pawl_value key[] = {pawl_value_ref(customer), pawl_value_string("EUR")};
 *     pawl_entity_read(engine, wsid, "shop.Balance", (pawl_key){key, 2}, NULL, visit, arg, &error); */
typedef struct pawl_key {
    const pawl_value *values;
    size_t count;
} pawl_key;

/* Where a scan of an entity's or a view's rows has stopped. Begin with zeros: {0}. A scan goes on from there
 * and moves the cursor; a scan that fails leaves it as it was. A cursor goes only with the workspace and the
 * entity or view that it was begun with: PAWL_EINVAL.
 *
 *     pawl_cursor cursor = {0};
 *     do
 *         status = pawl_entity_scan(engine, wsid, "shop.Balance", (pawl_key){0}, &cursor, 100, NULL, visit,
 *                                   arg, &error);
 *     while (status == PAWL_OK && !cursor.done);
 *     pawl_cursor_free(&cursor); */
typedef struct pawl_cursor {
    bool done;    /* there are no more rows: another scan with this cursor visits none */
    void *memory; /* Pawl's own */
} pawl_cursor;

PAWL_API void pawl_cursor_free(pawl_cursor *cursor);

#ifdef __cplusplus
}
#endif
#endif
