/* engine/read/text.h: gives a text that was made to the caller. */
#ifndef ENGINE_READ_TEXT_H
#define ENGINE_READ_TEXT_H

#include <pawl/pawl.h>

#include "engine/json/json.h"

/* If status and out->status are PAWL_OK, the text becomes the caller's; otherwise it is freed. Returns the
 * first of the two that is not PAWL_OK. */
int text_take(struct json_out *out, int status, pawl_text *ret_text, pawl_error *error);

#endif
