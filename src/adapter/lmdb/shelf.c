#include "adapter/lmdb/shelf.h"

bool shelf_next(struct decoder *d, struct shelf_row *ret_row)
{
    if (d->left == 0)
        return false;
    size_t key_size = decode_u16(d);
    size_t value_size = decode_u32(d);
    const uint8_t *key = decode_raw(d, key_size);
    const uint8_t *value = decode_raw(d, value_size);
    if (d->bad)
        return false;
    *ret_row = (struct shelf_row){.key = {key, key_size}, .value = {value, value_size}};
    return true;
}

int shelf_find(pawl_bytes shelf, pawl_bytes key, pawl_bytes *ret_value)
{
    struct decoder d = decoder_over(shelf);
    struct shelf_row row;
    while (shelf_next(&d, &row)) {
        if (bytes_equal(row.key, key)) {
            *ret_value = row.value;
            return PAWL_OK;
        }
    }
    return d.bad ? PAWL_ECORRUPT : PAWL_ENOTFOUND;
}

static void write_row(struct encoder *out, const struct shelf_row *row)
{
    encode_u16(out, (uint16_t)row->key.size);
    encode_u32(out, (uint32_t)row->value.size);
    encode_raw(out, row->key);
    encode_raw(out, row->value);
}

int shelf_edit(pawl_bytes shelf, shelf_drop drop, void *arg, const struct shelf_row *add, struct encoder *out)
{
    struct decoder d = decoder_over(shelf);
    struct shelf_row row;
    while (shelf_next(&d, &row)) {
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
