/* engine/tokens/tokens.h: the access tokens of a node, as the other rooms see them. The rest is pawl/token.h. */
#ifndef ENGINE_TOKENS_TOKENS_H
#define ENGINE_TOKENS_TOKENS_H

#include <pawl/token.h>

/* Sets engine->tokens. PAWL_ENOMEM. */
int tokens_new(pawl_engine *engine);
void tokens_free(pawl_engine *engine); /* also if there are none */

/* Read them from DIR/local, in place of those in memory. PAWL_ECORRUPT, PAWL_EVERSION: one cannot be read. Then
 * the directory is not opened: nobody could say who is let in. */
int tokens_load(pawl_engine *engine, pawl_error *error);

#endif
