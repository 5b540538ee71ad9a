/* engine/json/request_impl.h: what the parts of reading a command share. */
#ifndef ENGINE_JSON_REQUEST_IMPL_H
#define ENGINE_JSON_REQUEST_IMPL_H

#include "engine/json/request.h"
#include "engine/json/tree.h"

/* Goes bad once: its verdict keeps the first complaint. */
struct request_reader {
    struct verdict v;
    const struct schema *schema;
    struct request *request;
};

/* Set a field of the request's last object. */
void request_read_field(struct request_reader *r, const struct path *at, const struct schema_type *type,
                        uint16_t place, const json_t *json);

/* An ID, as an integer; 0: refused. */
uint64_t request_read_id(struct request_reader *r, const struct path *at, const json_t *json);

/* The key of an entity's row, an object or an array: its fields are set in the key's order. */
void request_read_key(struct request_reader *r, const struct path *at, const struct schema_type *entity,
                      json_t *json);

/* Once all records are read: which place of its parent's type each one's container is. */
void request_read_containers(struct request_reader *r, const struct path *at, const json_t *records);

#endif
