/* port/longkey.h: where a key stands in a store's order; the same for every implementation.
 *
 * A store sorts stored keys of at most PAWL_KEY_BYTES_SORTED bytes by memcmp. A key that fits is its own stored
 * key. A longer one is stored as
 *
 *     its first PAWL_KEY_BYTES_PREFIX bytes │ 00 │ 16 bytes of hash of the whole key
 *
 * which has exactly PAWL_KEY_BYTES_SORTED bytes. That form is not unique: a short key may happen to have the
 * same bytes, and two long keys may be made to agree in their hash (XXH3 resists accidents, not intent). So the
 * whole key is kept beside the value, and decides.
 *
 *   I1. The order is (stored key, whole key), both by memcmp: total, and equal only for equal keys.
 *   I2. Between keys that fit, it is memcmp, because each is its own stored key.
 *   I3. Only stored keys of exactly PAWL_KEY_BYTES_SORTED bytes can stand for more than one key.
 *   I4. It depends on the keys alone: two stores, or two nodes, sort alike. */
#ifndef PORT_LONGKEY_H
#define PORT_LONGKEY_H

#include "port/store.h"

struct longkey {
    pawl_bytes stored;
    pawl_bytes whole;
};

/* Borrows the key, and the room if the key is long, for as long as the result is used. An empty key gives an
 * empty place. */
struct longkey longkey_place(pawl_bytes key, uint8_t room[PAWL_KEY_BYTES_SORTED]);

int longkey_compare(struct longkey a, struct longkey b);

/* Two keys, as a store sorts them. */
int longkey_compare_keys(pawl_bytes a, pawl_bytes b);

/* May this stored key stand for several keys (I3)? */
static inline bool longkey_ambiguous(size_t stored_size)
{
    return stored_size == PAWL_KEY_BYTES_SORTED;
}

/* What a store's functions ask of their arguments. PAWL_EINVAL: no such space, or an empty key. PAWL_ETOOBIG.
 */
int longkey_check_key(uint8_t space, pawl_bytes key);
int longkey_check_row(uint8_t space, pawl_bytes key, pawl_bytes value);
int longkey_check_range(pawl_range range);

/* A range with its bounds in place. */
struct longkey_range {
    struct longkey from;
    struct longkey to;
    uint8_t from_room[PAWL_KEY_BYTES_SORTED];
    uint8_t to_room[PAWL_KEY_BYTES_SORTED];
};

/* Borrows the range's bytes; the result points into itself, so it stays where it is. */
void longkey_range_init(struct longkey_range *r, pawl_range range);

/* Negative: in front of the range; 0: inside; positive: behind it. */
int longkey_range_side(const struct longkey_range *r, struct longkey key);

#endif
