#include "core/token/token.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"

/* --- scopes --- */

static const struct {
    unsigned scope;
    const char *name;
} scopes[] = {
    {PAWL_SCOPE_READ, "read"},
    {PAWL_SCOPE_WRITE, "write"},
    {PAWL_SCOPE_PROJECT, "project"},
    {PAWL_SCOPE_ADMIN, "admin"},
};

#define SCOPES (sizeof scopes / sizeof scopes[0])

const char *pawl_scope_name(unsigned scope)
{
    for (size_t i = 0; i < SCOPES; i++)
        if (scopes[i].scope == scope)
            return scopes[i].name;
    return NULL;
}

/* The scope of this name; 0: there is none. */
static unsigned scope_of(pawl_bytes name)
{
    for (size_t i = 0; i < SCOPES; i++)
        if (bytes_equal(name, (pawl_bytes){scopes[i].name, strlen(scopes[i].name)}))
            return scopes[i].scope;
    return 0;
}

int pawl_scopes_parse(const char *text, unsigned *ret_scopes, pawl_error *error)
{
    unsigned found = 0;
    for (;;) {
        size_t length = strcspn(text, ",");
        unsigned scope = scope_of((pawl_bytes){text, length});
        if (scope == 0)
            return error_set(error, PAWL_EINVAL,
                             "there is no scope '%.*s': it is read, write, project or admin",
                             (int)(length < 32 ? length : 32), text);
        found |= scope;
        text += length;
        if (*text == '\0')
            break;
        text++;
    }
    *ret_scopes = found;
    return PAWL_OK;
}

bool pawl_token_allows(const pawl_token *token, unsigned scope, uint64_t wsid)
{
    if (scope == 0 || (token->scopes & scope) != scope)
        return false;
    if (token->wsid_count == 0)
        return true;
    for (size_t i = 0; i < token->wsid_count; i++)
        if (token->wsids[i] == wsid)
            return true;
    return false;
}

bool token_is_expired(const pawl_token *token, pawl_wall now)
{
    return token->expires.ns != 0 && token->expires.ns <= now.ns;
}

/* --- definitions --- */

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool token_name_is_valid(pawl_bytes name)
{
    const char *at = name.data;
    if (name.size == 0 || name.size > PAWL_TOKEN_NAME_MAX || !is_letter_or_digit(at[0]))
        return false;
    for (size_t i = 1; i < name.size; i++)
        if (!is_letter_or_digit(at[i]) && at[i] != '.' && at[i] != '_' && at[i] != '-')
            return false;
    return true;
}

/* Put a workspace where it belongs, unless it is there. */
static void add_wsid(pawl_token *token, uint64_t wsid)
{
    size_t i = token->wsid_count;
    while (i > 0 && token->wsids[i - 1] > wsid)
        i--;
    if (i > 0 && token->wsids[i - 1] == wsid)
        return;
    memmove(&token->wsids[i + 1], &token->wsids[i], (token->wsid_count - i) * sizeof token->wsids[0]);
    token->wsids[i] = wsid;
    token->wsid_count++;
}

int token_define(const pawl_token_definition *d, pawl_wall now, struct token *ret_token, pawl_error *error)
{
    struct token token = {.shown = {.scopes = d->scopes, .created = now, .expires = d->expires}};
    const char *text = d->name ? d->name : "";
    pawl_bytes name = {text, strlen(text)};
    if (!token_name_is_valid(name))
        return error_set(error, PAWL_EINVAL,
                         "the name of a token has 1 to %d letters, digits, '.', '_' and '-', and begins with a "
                         "letter or a digit",
                         PAWL_TOKEN_NAME_MAX);
    if (d->scopes == 0 || (d->scopes & ~PAWL_SCOPE_ALL) != 0)
        return error_set(error, PAWL_EINVAL,
                         "a token needs at least one of the scopes read, write, project, admin");
    if (d->wsid_count > 0 && !d->wsids)
        return error_set(error, PAWL_EINVAL, "the workspaces of a token are missing");
    if (d->wsid_count > PAWL_TOKEN_WSIDS_MAX)
        return error_set(error, PAWL_EINVAL, "a token is bound to at most %d workspaces, not %zu",
                         PAWL_TOKEN_WSIDS_MAX, d->wsid_count);
    if (d->expires.ns < 0 || token_is_expired(&token.shown, now))
        return error_set(error, PAWL_EINVAL, "a token must expire in the future, or never");
    for (size_t i = 0; i < d->wsid_count; i++) {
        if (d->wsids[i] == 0)
            return error_set(error, PAWL_EINVAL, "there is no workspace 0");
        add_wsid(&token.shown, d->wsids[i]);
    }
    memcpy(token.shown.name, name.data, name.size);
    *ret_token = token;
    return PAWL_OK;
}

void token_identify(struct token *token, const uint8_t digest[SHA256_BYTES])
{
    memcpy(token->digest, digest, SHA256_BYTES);
    for (size_t i = 0; i < PAWL_TOKEN_ID_SIZE / 2; i++)
        snprintf(token->shown.id + 2 * i, 3, "%02x", digest[i]);
}

/* --- as bytes --- */

static uint64_t checksum(pawl_bytes name, const uint8_t *bytes, size_t size)
{
    return hash_checksum(hash_checksum(0, name), (pawl_bytes){bytes, size});
}

size_t token_encode(const struct token *token, uint8_t ret_bytes[TOKEN_BYTES_MAX])
{
    const pawl_token *t = &token->shown;
    size_t size = TOKEN_FIXED + 8 * t->wsid_count;
    put_u8(ret_bytes, TOKEN_VERSION);
    put_u8(ret_bytes + 1, 0);
    put_u16(ret_bytes + 2, (uint16_t)t->scopes);
    put_u32(ret_bytes + 4, (uint32_t)t->wsid_count);
    put_u64(ret_bytes + 8, (uint64_t)t->created.ns);
    put_u64(ret_bytes + 16, (uint64_t)t->expires.ns);
    memcpy(ret_bytes + 24, token->digest, SHA256_BYTES);
    for (size_t i = 0; i < t->wsid_count; i++)
        put_u64(ret_bytes + TOKEN_FIXED + 8 * i, t->wsids[i]);
    put_u64(ret_bytes + size, checksum((pawl_bytes){t->name, strlen(t->name)}, ret_bytes, size));
    return size + TOKEN_SUM;
}

/* Everything that the bytes say. False: they are not what encode writes. */
static bool read_fields(pawl_bytes name, pawl_bytes bytes, struct token *token)
{
    pawl_token *t = &token->shown;
    struct decoder d = decoder_over(bytes);
    uint8_t version = decode_u8(&d), zero = decode_u8(&d);
    t->scopes = decode_u16(&d);
    uint32_t count = decode_u32(&d);
    t->created.ns = (int64_t)decode_u64(&d);
    t->expires.ns = (int64_t)decode_u64(&d);
    const uint8_t *digest = decode_raw(&d, SHA256_BYTES);
    if (d.bad || version != TOKEN_VERSION || zero != 0 || t->scopes == 0 || (t->scopes & ~PAWL_SCOPE_ALL) != 0
        || t->expires.ns < 0 || count > PAWL_TOKEN_WSIDS_MAX || d.left != 8 * (size_t)count + TOKEN_SUM)
        return false;
    for (uint64_t last = 0; t->wsid_count < count; last = t->wsids[t->wsid_count++]) {
        t->wsids[t->wsid_count] = decode_u64(&d);
        if (t->wsids[t->wsid_count] <= last)
            return false;
    }
    token_identify(token, digest);
    return decode_u64(&d) == checksum(name, bytes.data, bytes.size - TOKEN_SUM);
}

int token_decode(pawl_bytes name, pawl_bytes bytes, struct token *ret_token, pawl_error *error)
{
    struct token token = {0};
    const uint8_t *at = bytes.data;
    if (!token_name_is_valid(name))
        return error_set(error, PAWL_ECORRUPT, "there is a token whose name is damaged");
    if (bytes.size > 0 && at[0] > TOKEN_VERSION)
        return error_set(error, PAWL_EVERSION, "token %.*s was made by a newer version of Pawl", (int)name.size,
                         (const char *)name.data);
    if (!read_fields(name, bytes, &token))
        return error_set(error, PAWL_ECORRUPT, "token %.*s is damaged", (int)name.size,
                         (const char *)name.data);
    memcpy(token.shown.name, name.data, name.size);
    *ret_token = token;
    return PAWL_OK;
}
