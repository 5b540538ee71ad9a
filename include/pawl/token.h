/* token.h: access tokens: who may ask a node for what.
 *
 * A token is a secret that a client shows with each request, and what it is good for: scopes, and perhaps only
 * some workspaces, and perhaps only until a certain time. A server asks pawl_token_check who it is talking to,
 * and pawl_token_allows before it does what is asked.
 *
 *     pawl_token token;
 *     if (pawl_token_check(engine, secret, &token) != PAWL_OK)
 *         return refuse(401);
 *     if (!pawl_token_allows(&token, PAWL_SCOPE_WRITE, wsid))
 *         return refuse(403);
 *
 * The calls of libpawl itself need no token: whoever embeds it, or opens the directory, may do everything.
 *
 * A node keeps its tokens for itself, in DIR/local. They are in no log and in no backup. Only the SHA-256 of a
 * secret is kept, so what is on the disk does not let anybody in.
 *
 * An engine that was opened read-only has the tokens of the moment when it was opened, or of its last
 * pawl_token_list. Until then it does not know what the writing process has created or revoked since.
 *
 * Caveat. Expiry goes by the wall clock, the only one that goes on between two boots. Whoever can set the
 * clock back can use a token longer. */
#ifndef PAWL_TOKEN_H
#define PAWL_TOKEN_H

#include <pawl/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a token is good for. No scope includes another: a token of an administrator who should read, too, has
 * both. */
#define PAWL_SCOPE_READ    1u /* read events, records, entities, views */
#define PAWL_SCOPE_WRITE   2u /* commands, new workspaces */
#define PAWL_SCOPE_PROJECT 4u /* the work of a projector: leases and their results */
#define PAWL_SCOPE_ADMIN   8u /* schemas, views, lanes, tablets, jobs; the state of the node */
#define PAWL_SCOPE_ALL     15u

#define PAWL_TOKEN_NAME_MAX  64    /* bytes of a name */
#define PAWL_TOKEN_WSIDS_MAX 64    /* workspaces that one token may be bound to */
#define PAWL_TOKENS_MAX      10000 /* tokens of a node */
#define PAWL_TOKEN_ID_SIZE   16    /* characters of an ID */

/* A token's secret: "pawl_", and 32 random bytes in base64 with - and _, without padding. */
#define PAWL_TOKEN_SECRET_SIZE 48

typedef struct pawl_token {
    /* The first eight bytes of the SHA-256 of the secret, in hexadecimal: so whoever finds a secret can tell which
     * token it is. It says nothing about the rest of the secret, and may be logged. */
    char id[PAWL_TOKEN_ID_SIZE + 1];
    char name[PAWL_TOKEN_NAME_MAX + 1];
    unsigned scopes;
    size_t wsid_count;                    /* 0: it is good for all workspaces, and for the node as a whole */
    uint64_t wsids[PAWL_TOKEN_WSIDS_MAX]; /* otherwise for these only; ascending */
    pawl_wall created;
    pawl_wall expires; /* 0: never */
} pawl_token;

typedef struct pawl_token_definition {
    const char *name;      /* 1 to 64 letters, digits, '.', '_' and '-'; it begins with a letter or a digit */
    unsigned scopes;       /* at least one */
    const uint64_t *wsids; /* in any order; they need not exist yet */
    size_t wsid_count;     /* 0: all workspaces */
    pawl_wall expires;     /* 0: never; otherwise a time that is still to come */
} pawl_token_definition;

/* Make a token. When this returns, it is synced to the disk and accepted. ret_secret is the only copy of its
 * secret: free it with pawl_text_free, and overwrite it before.
 * Errors: PAWL_EINVAL (the definition; error says what), PAWL_EEXISTS (the name is taken, also by a token that
 * has expired), PAWL_ETOOBIG (there are PAWL_TOKENS_MAX), PAWL_EREADONLY, PAWL_EFULL, PAWL_EIO, PAWL_EACCES.
 * After an error there is no such token, but for PAWL_EIO: then it may be there at the next opening, and nobody
 * knows its secret. */
PAWL_API int pawl_token_create(pawl_engine *engine, const pawl_token_definition *definition,
                               pawl_text *ret_secret, pawl_error *error);

/* Take a token away, for good. When this returns, that is synced, and no check that begins from then on accepts
 * it. What was allowed before goes on: a server ends what it streams to such a client by itself.
 * Errors: PAWL_ENOTFOUND (there is none of this name), PAWL_EREADONLY, PAWL_EFULL, PAWL_EIO: it is still
 * accepted. */
PAWL_API int pawl_token_revoke(pawl_engine *engine, const char *name, pawl_error *error);

/* All tokens by name, also those that have expired. Return false to stop. A token that is created or revoked
 * meanwhile may be visited or not. An engine that was opened read-only reads them from the disk again, first.
 * Errors: those of opening. */
typedef bool (*pawl_token_visit)(void *arg, const pawl_token *token);
PAWL_API int pawl_token_list(pawl_engine *engine, pawl_token_visit visit, void *arg, pawl_error *error);

/* As JSON, without secrets: all tokens, a line each, as `pawl token list --json` prints them; one token, in the same
 * form. */
PAWL_API int pawl_tokens_list(pawl_engine *engine, pawl_text *ret_text, pawl_error *error);
PAWL_API int pawl_token_json(pawl_engine *engine, const pawl_token *token, pawl_text *ret_text,
                             pawl_error *error);

/* How many tokens there are, also expired ones: a node whose last token has expired is closed, not open. Any
 * thread. */
PAWL_API size_t pawl_token_count(pawl_engine *engine);

/* Whose secret this is. PAWL_EACCES: nobody's, or that token was revoked or has expired; which of these it is,
 * is not said. The time it takes tells nothing about a secret. Takes a lock for a moment, reads no file, and
 * may be called on any thread, also Pawl's own, as long as the engine is open. */
PAWL_API int pawl_token_check(pawl_engine *engine, pawl_bytes secret, pawl_token *ret_token);

/* Whether a token is good for something in a workspace. scope: one or more PAWL_SCOPE bits, all of which are
 * needed; 0 is never allowed. wsid 0: it concerns the node as a whole, or all workspaces; then a token that is
 * bound to some is not enough. Looks at nothing but the token: any thread. */
PAWL_API bool pawl_token_allows(const pawl_token *token, unsigned scope, uint64_t wsid);

/* The name of one scope: "read", "write", "project", "admin"; NULL: it is not one scope. parse: names with commas
 * between them, such as "read,write"; PAWL_EINVAL. Any thread. */
PAWL_API const char *pawl_scope_name(unsigned scope);
PAWL_API int pawl_scopes_parse(const char *text, unsigned *ret_scopes, pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif
