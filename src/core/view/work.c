#include "core/view/work.h"

#include <assert.h>

#define RESULT_BYTES    ((size_t)11)
#define UNCOVERED_BYTES ((size_t)12)
#define BASE_ROWS_BYTES ((size_t)12)

int work_encode(uint64_t term, const uint64_t *ids, size_t count, struct arena *arena, pawl_bytes *ret_bytes)
{
    assert(count <= WORK_TASKS_MAX);
    size_t size = 12 + count * 8;
    void *bytes = arena_take(arena, size);
    if (!bytes)
        return PAWL_ENOMEM;
    struct encoder e = encoder_over(bytes, size);
    encode_u64(&e, term);
    encode_u32(&e, (uint32_t)count);
    for (size_t i = 0; i < count; i++)
        encode_u64(&e, ids[i]);
    assert(!e.bad && e.left == 0);
    *ret_bytes = (pawl_bytes){bytes, size};
    return PAWL_OK;
}

int work_decode(pawl_bytes bytes, struct arena *arena, uint64_t *ret_term, uint64_t **ret_ids,
                size_t *ret_count)
{
    struct decoder d = decoder_over(bytes);
    uint64_t term = decode_u64(&d);
    uint32_t count = decode_u32(&d);
    if (d.bad || count > WORK_TASKS_MAX || d.left != count * (size_t)8)
        return PAWL_ECORRUPT;
    uint64_t *ids = arena_take(arena, count * sizeof *ids);
    if (!ids)
        return PAWL_ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = decode_u64(&d);
        if (i > 0 && ids[i] <= ids[i - 1]) /* a task that is named twice would be built twice at once */
            return PAWL_ECORRUPT;
    }
    *ret_term = term;
    *ret_ids = ids;
    *ret_count = count;
    return PAWL_OK;
}

/* The words as they are sent: only with a failure, and cut, though never inside a character. */
static pawl_bytes words_of(const struct work_result *result)
{
    if (result->outcome != WORK_FAILED)
        return (pawl_bytes){0};
    pawl_bytes words = result->words;
    if (words.size <= WORK_WORDS_MAX)
        return words;
    const uint8_t *at = words.data;
    words.size = WORK_WORDS_MAX;
    while (words.size > 0 && (at[words.size] & 0xc0) == 0x80)
        words.size--;
    return words;
}

int work_reply_encode(const struct work_result *results, size_t count, struct arena *arena,
                      pawl_bytes *ret_bytes)
{
    assert(count <= WORK_TASKS_MAX);
    size_t size = 4;
    for (size_t i = 0; i < count; i++)
        size += RESULT_BYTES + words_of(&results[i]).size;
    void *bytes = arena_take(arena, size);
    if (!bytes)
        return PAWL_ENOMEM;
    struct encoder e = encoder_over(bytes, size);
    encode_u32(&e, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        pawl_bytes words = words_of(&results[i]);
        encode_u64(&e, results[i].id);
        encode_u8(&e, (uint8_t)results[i].outcome);
        encode_u16(&e, (uint16_t)words.size);
        encode_raw(&e, words);
    }
    assert(!e.bad && e.left == 0);
    *ret_bytes = (pawl_bytes){bytes, size};
    return PAWL_OK;
}

static bool decode_result(struct decoder *d, struct work_result *result)
{
    *result = (struct work_result){.id = decode_u64(d)};
    uint8_t outcome = decode_u8(d);
    uint16_t size = decode_u16(d);
    const uint8_t *words = decode_raw(d, size);
    if (d->bad || outcome < WORK_FINISHED || outcome > WORK_GONE || size > WORK_WORDS_MAX
        || (size > 0 && outcome != WORK_FAILED))
        return false;
    result->outcome = (enum work_outcome)outcome;
    result->words = (pawl_bytes){words, size};
    return true;
}

int work_reply_decode(pawl_bytes bytes, struct arena *arena, struct work_result **ret_results,
                      size_t *ret_count)
{
    struct decoder d = decoder_over(bytes);
    uint32_t count = decode_u32(&d);
    if (d.bad || count > WORK_TASKS_MAX || d.left / RESULT_BYTES < count)
        return PAWL_ECORRUPT;
    struct work_result *results = arena_take(arena, count * sizeof *results);
    if (!results)
        return PAWL_ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        if (!decode_result(&d, &results[i]))
            return PAWL_ECORRUPT;
    }
    if (d.left != 0)
        return PAWL_ECORRUPT;
    *ret_results = results;
    *ret_count = count;
    return PAWL_OK;
}

int uncovered_encode(uint64_t term, struct arena *arena, pawl_bytes *ret_bytes)
{
    uint8_t *bytes = arena_take(arena, 8);
    if (!bytes)
        return PAWL_ENOMEM;
    put_u64(bytes, term);
    *ret_bytes = (pawl_bytes){bytes, 8};
    return PAWL_OK;
}

int uncovered_decode(pawl_bytes bytes, uint64_t *ret_term)
{
    if (bytes.size != 8)
        return PAWL_ECORRUPT;
    *ret_term = get_u64(bytes.data);
    return PAWL_OK;
}

int uncovered_reply_encode(const struct uncovered_reply *reply, struct arena *arena, pawl_bytes *ret_bytes)
{
    assert(reply->count <= UNCOVERED_MAX && reply->base_count <= BASES_MAX);
    size_t size = 8 + reply->count * UNCOVERED_BYTES + reply->base_count * BASE_ROWS_BYTES;
    void *bytes = arena_take(arena, size);
    if (!bytes)
        return PAWL_ENOMEM;
    struct encoder e = encoder_over(bytes, size);
    encode_u32(&e, (uint32_t)reply->count);
    for (size_t i = 0; i < reply->count; i++) {
        encode_u32(&e, reply->list[i].base);
        encode_u32(&e, reply->list[i].view);
        encode_u32(&e, reply->list[i].tablet);
    }
    encode_u32(&e, (uint32_t)reply->base_count);
    for (size_t i = 0; i < reply->base_count; i++) {
        encode_u32(&e, reply->bases[i].base);
        encode_u64(&e, reply->bases[i].rows);
    }
    assert(!e.bad && e.left == 0);
    *ret_bytes = (pawl_bytes){bytes, size};
    return PAWL_OK;
}

static int decode_uncovered(struct decoder *d, struct arena *arena, struct uncovered_reply *reply)
{
    uint32_t count = decode_u32(d);
    if (d->bad || count > UNCOVERED_MAX || d->left / UNCOVERED_BYTES < count)
        return PAWL_ECORRUPT;
    reply->count = count;
    reply->list = arena_take(arena, count * sizeof *reply->list);
    if (!reply->list)
        return PAWL_ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        reply->list[i].base = decode_u32(d);
        reply->list[i].view = decode_u32(d);
        reply->list[i].tablet = decode_u32(d);
    }
    return PAWL_OK;
}

/* They ascend, so that a base is found by halving. */
static int decode_bases(struct decoder *d, struct arena *arena, struct uncovered_reply *reply)
{
    uint32_t count = decode_u32(d);
    if (d->bad || count > BASES_MAX || d->left != count * BASE_ROWS_BYTES)
        return PAWL_ECORRUPT;
    reply->base_count = count;
    reply->bases = arena_take(arena, count * sizeof *reply->bases);
    if (!reply->bases)
        return PAWL_ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        reply->bases[i].base = decode_u32(d);
        reply->bases[i].rows = decode_u64(d);
        if (i > 0 && reply->bases[i].base <= reply->bases[i - 1].base)
            return PAWL_ECORRUPT;
    }
    return PAWL_OK;
}

int uncovered_reply_decode(pawl_bytes bytes, struct arena *arena, struct uncovered_reply *ret_reply)
{
    struct decoder d = decoder_over(bytes);
    struct uncovered_reply reply;
    int status = decode_uncovered(&d, arena, &reply);
    if (status == PAWL_OK)
        status = decode_bases(&d, arena, &reply);
    if (status == PAWL_OK)
        *ret_reply = reply;
    return status;
}
