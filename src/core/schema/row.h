/* core/schema/row.h: the fields of one record or entity, as bytes. docs/FORMAT.md shows the same for users.
 *
 *      0  version  u8    1
 *      1  zero     u8
 *      2  fields   u16   n: as many as the type had when the row was written
 *      4  present  a bit for each field, least significant first, padded with zeros to a whole byte: 0 is null
 *         slots    8 each, for each present field in order:
 *                  INT64, TIMESTAMP    two's complement
 *                  FLOAT64             IEEE 754
 *                  BOOL                0 or 1
 *                  QNAME, REF          the number
 *                  STRING, BYTES       u32 where in the tail, u32 how long
 *         tail     bytes of strings, one after the other, in the order of their fields, with nothing between
 *
 * A row does not say its type: the record or the table that holds it does. A field beyond n is null, so that a
 * type may grow. Equal values give equal bytes: a row can be compared, hashed and digested as it is.
 *
 * Access needs no copy and no walk: a field's slot is found by counting the present bits before it. */
#ifndef CORE_SCHEMA_ROW_H
#define CORE_SCHEMA_ROW_H

#include "core/schema/schema.h"

#define ROW_VERSION   1
#define ROW_BYTES_MAX ((size_t)16 << 20)

/* Some of a type's fields: a bit for each place. */
#define FIELD_WORDS(count) (((count) + 63) / 64)
#define FIELD_WORDS_MAX    FIELD_WORDS((size_t)SCHEMA_FIELDS_MAX)

static inline void fields_put(uint64_t *fields, size_t place)
{
    fields[place / 64] |= UINT64_C(1) << place % 64;
}

static inline bool fields_have(const uint64_t *fields, size_t place)
{
    return (fields[place / 64] >> place % 64 & 1) != 0;
}

/* A row that was checked, or just written. Borrows its bytes. */
struct row {
    pawl_bytes bytes;
};

/* The bytes that a row of these values takes; values[place], null for what is not there; count is at most
 * SCHEMA_FIELDS_MAX. PAWL_ETOOBIG. */
int row_size(const struct value *values, size_t count, size_t *ret_size);

/* Write it to at, which has row_size bytes. */
void row_write(const struct value *values, size_t count, uint8_t *at);

/* Check everything that reading relies on, against the type's fields: as many as both have. PAWL_EVERSION;
 * PAWL_ECORRUPT, naming the byte or the field. A row with more fields than the type is a row of a later schema,
 * and is fine. */
int row_open(const struct schema_field *fields, size_t field_count, pawl_bytes bytes, struct row *ret_row,
             pawl_error *error);

/* borrow: for a row that was checked before it was stored. It checks the head only, and that all slots are
 * there. The slots' contents are not checked, so its fields are read by row_peek, which checks the one field
 * (PAWL_ECORRUPT), and not by row_get. Errors of borrow: as of open. */
int row_borrow(pawl_bytes bytes, struct row *ret_row, pawl_error *error);
int row_peek(struct row row, size_t place, enum value_type type, struct value *ret_value);

/* How many fields the row was written with. */
size_t row_fields(struct row row);

/* Whether a field is there, and not null. */
bool row_has(struct row row, size_t place);

/* A field's value; null if the row does not have it. type is the field's, as in the type that the row was
 * opened with. Borrows from the row. */
struct value row_get(struct row row, size_t place, enum value_type type);

/* Whether a row has every field that another one has. */
bool row_covers(struct row row, struct row other);

/* Merge two rows: a field has its value in set; or is null, if it is cleared; or has its value in was. Both
 * rows were opened with these fields and have no more than these. cleared: places, u16 each, below count.
 * Written to at, which has row_merge_room bytes and shares none with either. PAWL_EINVAL: a required field
 * would be null; PAWL_ETOOBIG. */
size_t row_merge_room(size_t count, struct row was, struct row set);
int row_merge(const struct schema_field *fields, size_t count, struct row was, struct row set,
              pawl_bytes cleared, uint8_t *at, struct row *ret_row);

/* Write values as the fields of a key that sorts by memcmp as the values do, null first; a string ends so that
 * a prefix sorts before its extensions and the next field's bytes cannot be taken for its own. The size is that
 * of the key even when it did not fit into room (then nothing beyond room was written). */
size_t row_key_write(const struct value *values, size_t count, uint8_t *at, size_t room);

/* The other way: PAWL_ECORRUPT unless the whole of bytes is a key of these types. Strings are unescaped into
 * scratch, which has as many bytes as the key. */
int row_key_read(pawl_bytes bytes, const enum value_type *types, size_t count, uint8_t *scratch,
                 struct value *ret_values);

#endif
