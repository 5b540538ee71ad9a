/* engine/read/text.h: text that was made, on its way to the caller. */
#ifndef ENGINE_READ_TEXT_H
#define ENGINE_READ_TEXT_H

#include <pawl/pawl.h>

#include "engine/json/json.h"

/* The text becomes the caller's if status, and that of the text, is PAWL_OK; otherwise it is released. Returns
 * the first of them that is not. */
int text_take(struct json_out *out, int status, pawl_text *ret_text, pawl_error *error);

#endif
