/* engine/tokens/tokens.c: access tokens: kept in DIR/local, checked in memory.
 *
 *     create, revoke ── changing ──► DIR/local, synced ──► table, under tokens.lock
 *     check          ── SHA-256 of the secret ──► table, under tokens.lock
 *
 * Invariants
 *   K1  A token in the table is in the store, synced; so what was accepted once is accepted after a restart, and
 *       what was revoked is not.
 *   K2  Only the owner of changing changes the store and the table. tokens.lock is held for the change of the
 *       table alone: no check ever waits for the disk.
 *   K3  The secret of a new token is in the text for its caller, and nowhere else: what it was made of, and the text
 *       of a token that could not be made, is overwritten. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "core/token/table.h"
#include "engine/json/json.h"
#include "engine/node/node.h"

#define KEY_PREFIX    "token/"
#define KEY_MAX       (sizeof KEY_PREFIX - 1 + PAWL_TOKEN_NAME_MAX)
#define SECRET_PREFIX "pawl_"
#define SECRET_BYTES  32

struct tokens {
    pthread_mutex_t changing; /* who changes the store and the table */
    pthread_mutex_t lock;     /* of the table; taken behind changing */
    struct token_table table;
};

int tokens_new(pawl_engine *e)
{
    struct tokens *tokens = mem_new(e->options.allocator, 1, sizeof *tokens);
    if (!tokens)
        return PAWL_ENOMEM;
    pthread_mutex_init(&tokens->changing, NULL);
    pthread_mutex_init(&tokens->lock, NULL);
    token_table_init(&tokens->table, e->options.allocator);
    e->tokens = tokens;
    return PAWL_OK;
}

void tokens_free(pawl_engine *e)
{
    if (!e->tokens)
        return;
    token_table_release(&e->tokens->table);
    pthread_mutex_destroy(&e->tokens->lock);
    pthread_mutex_destroy(&e->tokens->changing);
    mem_free(e->options.allocator, e->tokens, sizeof *e->tokens);
}

/* --- loading --- */

struct loading {
    struct token_table table;
    int status;
    pawl_error *error;
};

static bool load_one(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct loading *l = arg;
    size_t prefix = strlen(KEY_PREFIX);
    struct token token, *prepared;
    pawl_bytes name = {(const char *)key.data + prefix, key.size - prefix};
    l->status = token_decode(name, value, &token, l->error);
    if (l->status != PAWL_OK)
        return false;
    l->status = token_table_prepare(&l->table, &token, &prepared);
    if (l->status == PAWL_OK)
        token_table_add(&l->table, prepared);
    else
        (void)error_set(l->error, l->status, "%s", pawl_status_text(l->status));
    return l->status == PAWL_OK;
}

int tokens_load(pawl_engine *e, pawl_error *error)
{
    static const pawl_bytes prefix = {KEY_PREFIX, sizeof KEY_PREFIX - 1};
    struct loading l = {.error = error};
    token_table_init(&l.table, e->options.allocator);
    pthread_mutex_lock(&e->tokens->changing);
    int status = local_scan(e->local, prefix, load_one, &l, error);
    status = status == PAWL_OK ? l.status : status;
    if (status == PAWL_OK) {
        struct token_table before = e->tokens->table;
        pthread_mutex_lock(&e->tokens->lock);
        e->tokens->table = l.table;
        pthread_mutex_unlock(&e->tokens->lock);
        l.table = before;
    }
    pthread_mutex_unlock(&e->tokens->changing);
    token_table_release(&l.table);
    return status == PAWL_OK ? status : error_wrap(error, status, "cannot read the access tokens");
}

/* --- changing --- */

/* One row of the store; bytes.data NULL: it is removed. */
static int store_token(pawl_engine *e, const char *name, pawl_bytes bytes, pawl_error *error)
{
    uint8_t room[KEY_MAX];
    struct encoder key = encoder_over(room, sizeof room);
    encode_raw(&key, (pawl_bytes){KEY_PREFIX, sizeof KEY_PREFIX - 1});
    encode_raw(&key, (pawl_bytes){name, strlen(name)});
    return local_put(e->local, (pawl_bytes){room, encoder_size(&key)}, bytes, error);
}

static int refuse(const struct token *token, int status, pawl_error *error)
{
    switch (status) {
    case PAWL_EEXISTS: return error_set(error, status, "there is a token %s already", token->shown.name);
    case PAWL_ETOOBIG:
        return error_set(error, status, "there are %d tokens, which is the most", PAWL_TOKENS_MAX);
    default: return error_set(error, status, "no memory for a token");
    }
}

/* Under changing. K1: first the store, then the table. */
static int add(pawl_engine *e, const struct token *token, pawl_error *error)
{
    struct tokens *tokens = e->tokens;
    struct token *prepared;
    uint8_t bytes[TOKEN_BYTES_MAX];
    pthread_mutex_lock(&tokens->lock);
    int status = token_table_prepare(&tokens->table, token, &prepared);
    pthread_mutex_unlock(&tokens->lock);
    if (status != PAWL_OK)
        return refuse(token, status, error);
    size_t size = token_encode(token, bytes);
    status = store_token(e, token->shown.name, (pawl_bytes){bytes, size}, error);
    pthread_mutex_lock(&tokens->lock);
    if (status == PAWL_OK)
        token_table_add(&tokens->table, prepared);
    else
        token_table_forget(&tokens->table, prepared);
    pthread_mutex_unlock(&tokens->lock);
    return status == PAWL_OK ? status : error_wrap(error, status, "cannot store token %s", token->shown.name);
}

static int make_secret(char secret[PAWL_TOKEN_SECRET_SIZE], pawl_error *error)
{
    uint8_t bytes[SECRET_BYTES];
    char text[PAWL_TOKEN_SECRET_SIZE];
    size_t prefix = strlen(SECRET_PREFIX);
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_errno(error, errno, "the system has no random bytes for a secret");
    size_t size = form_base64url_write((pawl_bytes){bytes, sizeof bytes}, text);
    assert(prefix + size == PAWL_TOKEN_SECRET_SIZE);
    memcpy(secret, SECRET_PREFIX, prefix);
    memcpy(secret + prefix, text, size);
    explicit_bzero(bytes, sizeof bytes); /* K3 */
    explicit_bzero(text, sizeof text);
    return PAWL_OK;
}

int pawl_token_create(pawl_engine *e, const pawl_token_definition *definition, pawl_text *ret_secret,
                      pawl_error *error)
{
    const pawl_allocator *alloc = e->options.allocator;
    struct token token;
    uint8_t digest[SHA256_BYTES];
    int status = engine_enter_writing(e, error);
    if (status == PAWL_OK)
        status = token_define(definition, pawl_env_wall_now(e->env), &token, error);
    if (status != PAWL_OK)
        return status;
    size_t room = PAWL_TOKEN_SECRET_SIZE + 1;
    char *secret = mem_new(alloc, 1, room);
    if (!secret)
        return error_set(error, PAWL_ENOMEM, "no memory for a secret");
    status = make_secret(secret, error);
    if (status == PAWL_OK) {
        sha256((pawl_bytes){secret, PAWL_TOKEN_SECRET_SIZE}, digest);
        token_identify(&token, digest);
        pthread_mutex_lock(&e->tokens->changing);
        status = add(e, &token, error);
        pthread_mutex_unlock(&e->tokens->changing);
    }
    if (status != PAWL_OK) {
        explicit_bzero(secret, room); /* K3 */
        mem_free(alloc, secret, room);
        return status;
    }
    *ret_secret = (pawl_text){.data = secret, .size = PAWL_TOKEN_SECRET_SIZE, .room = room, .allocator = alloc};
    return PAWL_OK;
}

/* Under changing. */
static int take_away(pawl_engine *e, const char *name, pawl_error *error)
{
    struct tokens *tokens = e->tokens;
    pthread_mutex_lock(&tokens->lock);
    bool there = token_table_by_name(&tokens->table, name) != NULL;
    pthread_mutex_unlock(&tokens->lock);
    if (!there)
        return error_set(error, PAWL_ENOTFOUND, "there is no token %.*s", PAWL_TOKEN_NAME_MAX, name);
    int status = store_token(e, name, (pawl_bytes){0}, error);
    if (status != PAWL_OK)
        return error_wrap(error, status, "cannot revoke token %s, which is still accepted", name);
    pthread_mutex_lock(&tokens->lock);
    (void)token_table_remove(&tokens->table, name);
    pthread_mutex_unlock(&tokens->lock);
    return PAWL_OK;
}

int pawl_token_revoke(pawl_engine *e, const char *name, pawl_error *error)
{
    int status = engine_enter_writing(e, error);
    if (status != PAWL_OK)
        return status;
    if (!name)
        return error_set(error, PAWL_EINVAL, "the name of a token is missing");
    pthread_mutex_lock(&e->tokens->changing);
    status = take_away(e, name, error);
    pthread_mutex_unlock(&e->tokens->changing);
    return status;
}

/* --- reading --- */

int pawl_token_list(pawl_engine *e, pawl_token_visit visit, void *arg, pawl_error *error)
{
    struct tokens *tokens = e->tokens;
    pawl_token token = {0};
    int status = engine_enter(e, error);
    if (status == PAWL_OK && e->options.read_only)
        status = tokens_load(e, error);
    while (status == PAWL_OK) {
        pthread_mutex_lock(&tokens->lock);
        const struct token *next = token_table_after(&tokens->table, token.name);
        if (next)
            token = next->shown;
        pthread_mutex_unlock(&tokens->lock);
        if (!next || !visit(arg, &token))
            break;
    }
    return status;
}

size_t pawl_token_count(pawl_engine *e)
{
    pthread_mutex_lock(&e->tokens->lock);
    size_t count = e->tokens->table.count;
    pthread_mutex_unlock(&e->tokens->lock);
    return count;
}

int pawl_token_check(pawl_engine *e, pawl_bytes secret, pawl_token *ret_token)
{
    uint8_t digest[SHA256_BYTES];
    pawl_token token;
    if (secret.size != PAWL_TOKEN_SECRET_SIZE)
        return PAWL_EACCES;
    sha256(secret, digest);
    pthread_mutex_lock(&e->tokens->lock);
    const struct token *found = token_table_by_digest(&e->tokens->table, digest);
    if (found)
        token = found->shown;
    pthread_mutex_unlock(&e->tokens->lock);
    if (!found || token_is_expired(&token, pawl_env_wall_now(e->env)))
        return PAWL_EACCES;
    *ret_token = token;
    return PAWL_OK;
}
