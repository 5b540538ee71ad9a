/* http/exchange/access.h: who may ask what: the rules about Host, Origin, Content-Type and tokens. Pure, but for
 * access_token.
 *
 * Host. A page of an attacker's can have its own name resolve to this server's address, and then the browser
 * takes the two for one site. So only names that the operator knows are answered: localhost, the name it listens
 * on, those of the options. An address is always fine, because nobody can make it resolve to something else.
 *
 * Origin. A browser sends it with what a page of another site asks. Only the page of this server itself may ask.
 *
 * Content-Type. A form of another site can be posted without the browser asking first, but not as JSON. So POST
 * and PUT must say that they are.
 *
 * Tokens. "Authorization: Bearer SECRET". The Unix socket needs none: its mode says who may open it. */
#ifndef HTTP_EXCHANGE_ACCESS_H
#define HTTP_EXCHANGE_ACCESS_H

#include <pawl/pawl.h>

enum access_scope {
    SCOPE_NONE = 0, /* anybody: health */
    SCOPE_READ = 1,
    SCOPE_WRITE = 2,
    SCOPE_PROJECT = 4,
    SCOPE_ADMIN = 8,
};
#define SCOPE_ALL (SCOPE_READ | SCOPE_WRITE | SCOPE_PROJECT | SCOPE_ADMIN)

/* Scopes are those of pawl/token.h. */
#define GRANT_WORKSPACES_MAX PAWL_TOKEN_WSIDS_MAX

/* What whoever asks may do. */
struct grant {
    char name[72];   /* of the token; "" without one */
    unsigned scopes; /* of enum access_scope */
    size_t workspace_count;
    uint64_t workspaces[GRANT_WORKSPACES_MAX]; /* none: all */
};

/* Whether a Host header (NULL: none) is one that is answered: an address, localhost, or one of the names, with
 * any port. */
bool access_host(const char *host, const char *const *names, size_t count);

/* Whether an Origin header (NULL: none) is that of the page of this very server: SCHEME://HOST. */
bool access_origin(const char *origin, const char *host, bool tls);

/* Whether this Content-Type (NULL: none) is media type, whatever its parameters. */
bool access_is_type(const char *content_type, const char *type);

/* Whether a type may be sent by POST and PUT: JSON and NDJSON. */
bool access_written_type(const char *content_type);

/* The secret of an Authorization header; false: it has another form. */
bool access_bearer(const char *authorization, pawl_bytes *ret_secret);

/* Whether the grant has the scope; whether it is for this workspace. A grant that is bound to workspaces does not
 * reach 0, which stands for all of them. */
bool access_allows(const struct grant *grant, enum access_scope scope);
bool access_reaches(const struct grant *grant, uint64_t wsid);

/* Whether an address is of this machine only. address: without brackets and port. */
bool access_is_loopback(const char *address);

/* The grant of a token. PAWL_EACCES: there is no such token. Any thread; compares in constant time. */
int access_token(pawl_engine *engine, pawl_bytes secret, struct grant *ret_grant, pawl_error *error);

/* Whether there is any token. */
bool access_has_tokens(pawl_engine *engine);

#endif
