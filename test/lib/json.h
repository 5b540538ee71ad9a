/* test/lib/json.h: commands as JSON over a schema that has a bit of everything; single quotes stand for double
 * ones. */
#ifndef TEST_LIB_JSON_H
#define TEST_LIB_JSON_H

#include "core/group0/group0.h"
#include "engine/json/request.h"

/* Package t: CDoc Customer with CRecords in addresses; ODoc Order with lines, which have notes; WDoc Invoice
 * with parts; WDoc Every with a field of each type; WDocs Box and Crate, which both have bits, at different
 * places; WDocs Pole and Rod, which have Leaves at the same place, under different names. */
extern const char json_schema[];

struct json_bed {
    struct group0 *group0;
    const struct schema *schema;
    struct arena arena;
};

void json_bed_open(struct json_bed *bed, const pawl_allocator *alloc);
void json_bed_close(struct json_bed *bed);

/* Of workspace 7. */
int json_bed_read(struct json_bed *bed, const char *text, struct request *ret_request, pawl_error *error);

/* The type of this name; it exists. */
const struct schema_type *json_bed_type(const struct json_bed *bed, const char *name);

#endif
