/* fuzz_token.c: bytes behind which a right checksum is put are refused as an access token, or are one: it encodes to the
 * same bytes, and keeps all that core/token/token.h says of it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "core/token/token.h"

#define NAME "deploy"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_token(const struct token *token, pawl_bytes bytes)
{
    const pawl_token *t = &token->shown;
    uint8_t again[TOKEN_BYTES_MAX];
    check(bytes.size <= sizeof again && token_encode(token, again) == bytes.size);
    check(memcmp(again, bytes.data, bytes.size) == 0);
    check(strcmp(t->name, NAME) == 0 && strlen(t->id) == PAWL_TOKEN_ID_SIZE);
    check(t->scopes != 0 && t->scopes <= PAWL_SCOPE_ALL && t->expires.ns >= 0);
    for (size_t i = 0; i < t->wsid_count; i++)
        check(t->wsids[i] > (i ? t->wsids[i - 1] : 0) && pawl_token_allows(t, t->scopes, t->wsids[i]));
    check(pawl_token_allows(t, t->scopes, 0) == (t->wsid_count == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pawl_bytes name = {NAME, strlen(NAME)};
    struct token token;
    uint8_t *bytes = malloc(size + 8);
    check(bytes != NULL);
    memcpy(bytes, data, size);
    put_u64(bytes + size, hash_checksum(hash_checksum(0, name), (pawl_bytes){bytes, size}));
    if (token_decode(name, (pawl_bytes){bytes, size + 8}, &token, NULL) == PAWL_OK)
        check_token(&token, (pawl_bytes){bytes, size + 8});
    (void)token_decode((pawl_bytes){data, size / 2}, (pawl_bytes){data + size / 2, size - size / 2}, &token,
                       NULL);
    free(bytes);
    return 0;
}
