#include "core/token/table.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"

#define ROOM_FIRST 8

void token_table_init(struct token_table *table, const pawl_allocator *alloc)
{
    *table = (struct token_table){.alloc = alloc};
}

void token_table_release(struct token_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        mem_free(table->alloc, table->by_name[i], sizeof *table->by_name[i]);
    mem_free(table->alloc, table->by_name, table->room * sizeof *table->by_name);
    mem_free(table->alloc, table->by_digest, table->room * sizeof *table->by_digest);
    token_table_init(table, table->alloc);
}

static uint64_t prefix_of(const uint8_t digest[SHA256_BYTES])
{
    return get_u64_sorted(digest);
}

/* The place of the first token whose name is not before this one. */
static size_t name_place(const struct token_table *table, const char *name)
{
    size_t from = 0, to = table->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (strcmp(table->by_name[middle]->shown.name, name) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The place of the first token whose digest does not begin with less than this one. */
static size_t digest_place(const struct token_table *table, const uint8_t digest[SHA256_BYTES])
{
    size_t from = 0, to = table->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (prefix_of(table->by_digest[middle]->digest) < prefix_of(digest))
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

const struct token *token_table_by_name(const struct token_table *table, const char *name)
{
    size_t at = name_place(table, name);
    return at < table->count && strcmp(table->by_name[at]->shown.name, name) == 0 ? table->by_name[at] : NULL;
}

const struct token *token_table_after(const struct token_table *table, const char *name)
{
    size_t at = name_place(table, name);
    if (at < table->count && strcmp(table->by_name[at]->shown.name, name) == 0)
        at++;
    return at < table->count ? table->by_name[at] : NULL;
}

const struct token *token_table_by_digest(const struct token_table *table, const uint8_t digest[SHA256_BYTES])
{
    for (size_t at = digest_place(table, digest);
         at < table->count && prefix_of(table->by_digest[at]->digest) == prefix_of(digest); at++)
        if (sha256_equal(table->by_digest[at]->digest, digest))
            return table->by_digest[at];
    return NULL;
}

static int grow(struct token_table *table)
{
    size_t room = table->room ? 2 * table->room : ROOM_FIRST;
    struct token **by_name = mem_new(table->alloc, room, sizeof *by_name);
    struct token **by_digest = mem_new(table->alloc, room, sizeof *by_digest);
    if (!by_name || !by_digest) {
        mem_free(table->alloc, by_name, by_name ? room * sizeof *by_name : 0);
        mem_free(table->alloc, by_digest, by_digest ? room * sizeof *by_digest : 0);
        return PAWL_ENOMEM;
    }
    if (table->count) {
        memcpy(by_name, table->by_name, table->count * sizeof *by_name);
        memcpy(by_digest, table->by_digest, table->count * sizeof *by_digest);
    }
    mem_free(table->alloc, table->by_name, table->room * sizeof *by_name);
    mem_free(table->alloc, table->by_digest, table->room * sizeof *by_digest);
    table->by_name = by_name;
    table->by_digest = by_digest;
    table->room = room;
    return PAWL_OK;
}

int token_table_prepare(struct token_table *table, const struct token *token, struct token **ret_prepared)
{
    if (token_table_by_name(table, token->shown.name))
        return PAWL_EEXISTS;
    if (table->count == PAWL_TOKENS_MAX)
        return PAWL_ETOOBIG;
    if (table->count == table->room && grow(table) != PAWL_OK)
        return PAWL_ENOMEM;
    struct token *copy = mem_new(table->alloc, 1, sizeof *copy);
    if (!copy)
        return PAWL_ENOMEM;
    *copy = *token;
    *ret_prepared = copy;
    return PAWL_OK;
}

void token_table_forget(struct token_table *table, struct token *prepared)
{
    mem_free(table->alloc, prepared, sizeof *prepared);
}

static void insert(struct token **array, size_t count, size_t at, struct token *token)
{
    memmove(array + at + 1, array + at, (count - at) * sizeof *array);
    array[at] = token;
}

static void remove_at(struct token **array, size_t count, size_t at)
{
    memmove(array + at, array + at + 1, (count - at - 1) * sizeof *array);
}

void token_table_add(struct token_table *table, struct token *prepared)
{
    assert(table->count < table->room);
    assert(!token_table_by_name(table, prepared->shown.name)); /* A2 */
    size_t named = name_place(table, prepared->shown.name), placed = digest_place(table, prepared->digest);
    insert(table->by_name, table->count, named, prepared);
    insert(table->by_digest, table->count, placed, prepared);
    table->count++;
}

bool token_table_remove(struct token_table *table, const char *name)
{
    size_t named = name_place(table, name);
    if (named == table->count || strcmp(table->by_name[named]->shown.name, name) != 0)
        return false;
    struct token *token = table->by_name[named];
    size_t placed = digest_place(table, token->digest);
    while (table->by_digest[placed] != token) /* A1: it is there */
        placed++;
    remove_at(table->by_name, table->count, named);
    remove_at(table->by_digest, table->count, placed);
    table->count--;
    mem_free(table->alloc, token, sizeof *token);
    return true;
}
