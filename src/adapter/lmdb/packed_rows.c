#include "adapter/lmdb/packed_rows.h"

bool packed_rows_next(struct decoder *d, struct packed_row *ret_row)
{
    if (d->left == 0)
        return false;
    size_t key_size = decode_u16(d);
    size_t value_size = decode_u32(d);
    const uint8_t *key = decode_raw(d, key_size);
    const uint8_t *value = decode_raw(d, value_size);
    if (d->bad)
        return false;
    *ret_row = (struct packed_row){.key = {key, key_size}, .value = {value, value_size}};
    return true;
}

int packed_rows_find(pawl_bytes packed, pawl_bytes key, pawl_bytes *ret_value)
{
    struct decoder d = decoder_over(packed);
    struct packed_row row;
    while (packed_rows_next(&d, &row)) {
        if (bytes_equal(row.key, key)) {
            *ret_value = row.value;
            return PAWL_OK;
        }
    }
    return d.bad ? PAWL_ECORRUPT : PAWL_ENOTFOUND;
}

static void write_row(struct encoder *out, const struct packed_row *row)
{
    encode_u16(out, (uint16_t)row->key.size);
    encode_u32(out, (uint32_t)row->value.size);
    encode_raw(out, row->key);
    encode_raw(out, row->value);
}

int packed_rows_edit(pawl_bytes packed, packed_rows_drop drop, void *arg, const struct packed_row *add,
                     struct encoder *out)
{
    struct decoder d = decoder_over(packed);
    struct packed_row row;
    while (packed_rows_next(&d, &row)) {
        if (drop(arg, row.key))
            continue;
        if (add && bytes_compare(add->key, row.key) < 0) {
            write_row(out, add);
            add = NULL;
        }
        write_row(out, &row);
    }
    if (add)
        write_row(out, add);
    return d.bad || out->bad ? PAWL_ECORRUPT : PAWL_OK;
}
