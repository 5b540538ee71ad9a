/* core/token/token.h: an access token as a node keeps it: what pawl/token.h shows of it, and the digest of its
 * secret.
 *
 * As bytes, the value of the key "token/" and its name in the node's own store:
 *
 *      0  version   u8    1
 *      1  zero      u8
 *      2  scopes    u16   read 1, write 2, project 4, admin 8; at least one
 *      4  count     u32   n, workspaces that it is bound to, up to 64; 0: to none
 *      8  created   i64   nanoseconds since 1970
 *     16  expires   i64   the same; 0: never
 *     24  digest    32    SHA-256 of the secret, as it is written
 *     56  wsids     8n    ascending, at least 1
 *         checksum  u64   XXH3_64(XXH3_64(0; name); all bytes before)
 *
 * Invariants
 *   T1  The secret is in no struct here: only its digest is.
 *   T2  Bytes that decode encode to the same bytes. */
#ifndef CORE_TOKEN_TOKEN_H
#define CORE_TOKEN_TOKEN_H

#include <pawl/token.h>

#include "base/sha256.h"

#define TOKEN_VERSION   1
#define TOKEN_FIXED     ((size_t)56)
#define TOKEN_SUM       ((size_t)8)
#define TOKEN_BYTES_MAX (TOKEN_FIXED + 8 * PAWL_TOKEN_WSIDS_MAX + TOKEN_SUM)

struct token {
    pawl_token shown;
    uint8_t digest[SHA256_BYTES];
};

/* A token by its definition, without a secret yet. Sorts the workspaces; one that is named twice is there once.
 * PAWL_EINVAL, with words. */
int token_define(const pawl_token_definition *definition, pawl_wall now, struct token *ret_token,
                 pawl_error *error);

/* Give it the digest of its secret, and the ID that follows from that. */
void token_identify(struct token *token, const uint8_t digest[SHA256_BYTES]);

/* Whether this may be a token's name. */
bool token_name_is_valid(pawl_bytes name);

bool token_is_expired(const pawl_token *token, pawl_wall now);

/* Returns the size. */
size_t token_encode(const struct token *token, uint8_t ret_bytes[TOKEN_BYTES_MAX]);

/* PAWL_ECORRUPT, PAWL_EVERSION; error names the token. */
int token_decode(pawl_bytes name, pawl_bytes bytes, struct token *ret_token, pawl_error *error);

#endif
