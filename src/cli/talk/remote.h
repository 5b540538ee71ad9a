/* cli/talk/remote.h: a server that the program talks to by HTTP, at a URL or at the socket in a directory.
 *
 * A call is a target (a path with parameters), perhaps a body, and an answer. Calls of a remote follow one another
 * on one connection, which is kept. A failure that the server tells becomes the pawl_error that libpawl would have
 * given here: its code, and its words with their place. A server that cannot be reached, or whose answer is not
 * Pawl's, is PAWL_EIO, with words that name it.
 *
 * One thread at a time uses a remote. remote_cancel is for any thread. */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include <jansson.h>
#include <pawl/pawl.h>

#include "cli/talk/feed.h"

struct remote;

/* https: what the system trusts is trusted, or the certificates in the file that PAWL_CA names. token: NULL for
 * none. Both copy. Nothing is asked yet. PAWL_EINVAL: it is no URL of a server. */
int remote_open_url(const char *url, const char *token, struct remote **ret_remote, pawl_error *error);

/* DIR/pawl.sock. PAWL_ENOTFOUND: nobody serves there. */
int remote_open_socket(const char *dir, struct remote **ret_remote, pawl_error *error);

void remote_close(struct remote *remote);

/* What it is called in messages: the URL, or the socket's path. */
const char *remote_name(const struct remote *remote);

/* End the call that is under way, and those to come, with PAWL_ECANCELED. */
void remote_cancel(struct remote *remote);

/* --- what is asked --- */

/* A target, made piece by piece. Words are encoded. If there is no memory for it, remote_ask says so. */
struct target {
    struct buffer text;
    bool query;
    bool failed;
};

void target_begin(struct target *target, const char *path);                       /* "/v1/ws", as it is */
void target_word(struct target *target, const char *word);                        /* "/" and a word */
void target_number(struct target *target, uint64_t number);                       /* the same */
void target_add(struct target *target, const char *name, const char *value);      /* a parameter; NULL: none */
void target_add_bytes(struct target *target, const char *name, pawl_bytes value); /* the same; no data: none */
void target_add_number(struct target *target, const char *name, uint64_t value);  /* the same; 0: none */
void target_add_flag(struct target *target, const char *name, bool value);        /* the same; false: none */

/* Of one that was not given to remote_ask. */
void target_release(struct target *target);

struct remote_call {
    const char *method;
    struct target *target; /* released by remote_ask */
    const char *type;      /* of the body; NULL: there is no body */
    pawl_bytes body;
    const char *accept; /* NULL: whatever comes */
    const char *header; /* one more, "Idempotency-Key: k"; NULL: none */
    long timeout_ms;    /* of the whole call; 0: none */

    /* If it is set, gets the body of an answer without a failure as it comes, and returns false to end the call, which
     * then is PAWL_OK. */
    bool (*take)(void *arg, const char *data, size_t size);
    void *arg;
};

struct remote_answer {
    pawl_text text; /* the body; empty with take. pawl_text_free it */
    char *next;     /* Pawl-Next; NULL: there is no more. free() it */
    bool built;     /* Pawl-Built; true if it does not say */
    double covered; /* Pawl-Covered; 1 if it does not say */
};

/* On failure there is no answer to release. ret_answer may be NULL. */
int remote_ask(struct remote *remote, const struct remote_call *call, struct remote_answer *ret_answer,
               pawl_error *error);
void remote_answer_release(struct remote_answer *answer);

/* Ask for one object, whose text has no newline at its end; or for lines, each of which has one. */
int remote_get(struct remote *remote, struct target *target, pawl_text *ret_text, pawl_error *error);
int remote_get_lines(struct remote *remote, struct target *target, pawl_text *ret_text, pawl_error *error);

/* Ask for something to be done, with a body of JSON. Takes body; NULL: it has no members. The answer has no newline at
 * its end; ret_text may be NULL. */
int remote_send(struct remote *remote, const char *method, struct target *target, json_t *body,
                pawl_text *ret_text, pawl_error *error);

/* The error in {"code":...,"message":...,"where":...}; PAWL_EIO if it is none. Returns its code. */
int remote_error(const json_t *tree, pawl_error *error);

#endif
