/* engine/json/schema_lanes.c: a schema's lanes as JSON, one on a line. */
#include "engine/json/schema.h"

static void show_projectors(struct json_out *out, const struct schema *schema, uint16_t lane)
{
    out_key(out, "projectors");
    out_open(out, '[');
    for (size_t i = 0; i < schema->projector_count; i++)
        if (schema->projectors[i].lane == lane)
            out_text(out, schema->projectors[i].name);
    out_close(out, ']');
}

static void show_entities(struct json_out *out, const struct schema *schema, uint16_t lane)
{
    out_key(out, "entities");
    out_open(out, '[');
    for (size_t i = 0; i < schema->type_count; i++)
        if (schema->types[i].lane == lane)
            out_text(out, schema->types[i].name);
    out_close(out, ']');
}

void schema_lanes_show(const struct schema *schema, struct json_out *out)
{
    for (size_t i = 0; i < schema->lane_count; i++) {
        const struct schema_lane *lane = &schema->lanes[i];
        out_open(out, '{');
        out_key(out, "lane");
        out_text(out, lane->name);
        out_key(out, "id");
        out_unsigned(out, lane->id);
        out_key(out, "generation");
        out_unsigned(out, lane->generation);
        out_key(out, "serving");
        out_unsigned(out, lane->serving);
        show_projectors(out, schema, lane->id);
        show_entities(out, schema, lane->id);
        out_close(out, '}');
        out_raw(out, (pawl_bytes){"\n", 1});
    }
}
