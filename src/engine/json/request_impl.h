/* engine/json/request_impl.h: what the files that read a command share. */
#ifndef ENGINE_JSON_REQUEST_IMPL_H
#define ENGINE_JSON_REQUEST_IMPL_H

#include "engine/json/request.h"
#include "engine/json/tree.h"

/* Its verdict keeps the first error; what is read after that does not count. */
struct request_reader {
    struct verdict v;
    const struct schema *schema;
    struct request *request;
};

/* Set a field of the request's last object. */
void request_read_field(struct request_reader *r, const struct path *at, const struct schema_type *type,
                        uint16_t place, const struct tree *json);

/* An ID, as an integer; 0: refused. */
uint64_t request_read_id(struct request_reader *r, const struct path *at, const struct tree *json);

/* Read the key of an entity's row, an object or an array. Its fields are set in the key's order. */
void request_read_key(struct request_reader *r, const struct path *at, const struct schema_type *entity,
                      const struct tree *json);

/* When all records are read: find the place of each record's container in its parent's type. */
void request_read_containers(struct request_reader *r, const struct path *at, const struct tree *records);

#endif
