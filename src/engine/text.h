/* engine/text.h: text that grows, for pawl_text. */
#ifndef ENGINE_TEXT_H
#define ENGINE_TEXT_H

#include <pawl/engine.h>

/* Add bytes, and keep a zero behind them. PAWL_ENOMEM: the text is as it was. */
int text_add(pawl_text *text, pawl_bytes bytes);

#endif
