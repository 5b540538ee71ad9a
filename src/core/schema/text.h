/* core/schema/text.h: what may stand in a string, and in a name. */
#ifndef CORE_SCHEMA_TEXT_H
#define CORE_SCHEMA_TEXT_H

#include <pawl/types.h>

/* Valid UTF-8: no overlong form, no surrogate, nothing above U+10FFFF. U+0000 is a character as any other. */
bool text_is_utf8(pawl_bytes text);

/* [A-Za-z_][A-Za-z0-9_]*, at most SCHEMA_NAME_BYTES_MAX of them. */
bool text_is_name(pawl_bytes text);

#endif
