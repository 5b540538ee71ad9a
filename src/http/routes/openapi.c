/* http/routes/openapi.c: GET /openapi.json: docs/openapi.json, which is part of the library. A test compares it with the
 * table of routes, and real answers with its schemas. */
#include "http/routes/routes.h"

static const unsigned char text[] = {
#include "openapi.inc"
};

void openapi_get(struct exchange *x)
{
    exchange_answer_constant(x, HTTP_OK, TYPE_JSON, (pawl_bytes){text, sizeof text});
}
