/* core/token/table.h: the access tokens of a node in memory, found by name and by the digest of a secret.
 *
 * A secret is looked up by the first eight bytes of its digest, and then compared as a whole in constant time.
 * How long the search takes tells at most something about digests, and nobody can choose a secret by its digest.
 *
 * Invariants
 *   A1  Both arrays have the same tokens, in the order of names and of digests.
 *   A2  No two tokens have the same name.
 *
 * It has no lock: its owner has. */
#ifndef CORE_TOKEN_TABLE_H
#define CORE_TOKEN_TABLE_H

#include "core/token/token.h"

struct token_table {
    struct token **by_name;
    struct token **by_digest;
    size_t count;
    size_t room;
    const pawl_allocator *alloc;
};

void token_table_init(struct token_table *table, const pawl_allocator *alloc);
void token_table_release(struct token_table *table);

/* A copy of the token for add, with room for it in the table, so that add cannot fail. forget frees one that was
 * not added. PAWL_ENOMEM; PAWL_EEXISTS (the name is taken); PAWL_ETOOBIG (there are PAWL_TOKENS_MAX). */
int token_table_prepare(struct token_table *table, const struct token *token, struct token **ret_prepared);
void token_table_add(struct token_table *table, struct token *prepared);
void token_table_forget(struct token_table *table, struct token *prepared);

/* False: there is none of this name. */
bool token_table_remove(struct token_table *table, const char *name);

/* NULL: there is none. Borrowed until the table changes. after: the first behind this name, "" for the first of
 * all. */
const struct token *token_table_by_name(const struct token_table *table, const char *name);
const struct token *token_table_by_digest(const struct token_table *table, const uint8_t digest[SHA256_BYTES]);
const struct token *token_table_after(const struct token_table *table, const char *name);

#endif
