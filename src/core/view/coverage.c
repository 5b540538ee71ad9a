#include "core/view/coverage.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "port/longkey.h"

void coverage_init(struct coverage *c, const pawl_allocator *alloc)
{
    *c = (struct coverage){.alloc = alloc};
}

static void free_bytes(const struct coverage *c, pawl_bytes bytes)
{
    mem_free(c->alloc, (void *)(uintptr_t)bytes.data, bytes.size ? bytes.size : 0);
}

static void free_interval(const struct coverage *c, const struct interval *interval)
{
    free_bytes(c, interval->from);
    free_bytes(c, interval->to);
}

void coverage_release(struct coverage *c)
{
    for (size_t i = 0; i < c->count; i++)
        free_interval(c, &c->intervals[i]);
    mem_free(c->alloc, c->intervals, c->room * sizeof c->intervals[0]);
    coverage_init(c, c->alloc);
}

/* How many intervals begin at or before the key. */
static size_t begun_until(const struct coverage *c, pawl_bytes key)
{
    size_t low = 0, high = c->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (longkey_compare_keys(c->intervals[middle].from, key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether a key lies before the end of an interval. */
static bool is_before(pawl_bytes key, pawl_bytes end)
{
    return longkey_compare_keys(key, end) < 0;
}

static const struct interval *interval_of(const struct coverage *c, pawl_bytes key)
{
    size_t begun = begun_until(c, key);
    const struct interval *interval = begun ? &c->intervals[begun - 1] : NULL;
    return interval && is_before(key, interval->to) ? interval : NULL;
}

bool coverage_has(const struct coverage *c, pawl_bytes key)
{
    return interval_of(c, key) != NULL;
}

bool coverage_covers(const struct coverage *c, pawl_bytes from, pawl_bytes to)
{
    const struct interval *interval = interval_of(c, from);
    return interval && longkey_compare_keys(to, interval->to) <= 0;
}

pawl_bytes coverage_gap(const struct coverage *c, pawl_bytes from)
{
    const struct interval *interval = interval_of(c, from);
    return interval ? interval->to : from; /* I1: behind an interval there is a gap */
}

static int copy_bytes(const struct coverage *c, pawl_bytes bytes, pawl_bytes *ret_copy)
{
    void *copy = bytes.size ? mem_new(c->alloc, 1, bytes.size) : NULL;
    if (bytes.size && !copy)
        return PAWL_ENOMEM;
    if (bytes.size)
        memcpy(copy, bytes.data, bytes.size);
    *ret_copy = (pawl_bytes){copy, bytes.size};
    return PAWL_OK;
}

static int copy_interval(const struct coverage *c, pawl_bytes from, pawl_bytes to, struct interval *ret_copy)
{
    struct interval copy;
    int status = copy_bytes(c, from, &copy.from);
    if (status != PAWL_OK)
        return status;
    status = copy_bytes(c, to, &copy.to);
    if (status == PAWL_OK)
        *ret_copy = copy;
    else
        free_bytes(c, copy.from);
    return status;
}

static int reserve(struct coverage *c, size_t count)
{
    if (count <= c->room)
        return PAWL_OK;
    size_t room = c->room ? c->room * 2 : 4;
    room = room < count ? count : room;
    struct interval *intervals =
        mem_resize(c->alloc, c->intervals, c->room * sizeof *intervals, room * sizeof *intervals);
    if (!intervals)
        return PAWL_ENOMEM;
    c->intervals = intervals;
    c->room = room;
    return PAWL_OK;
}

int coverage_add(struct coverage *c, pawl_bytes from, pawl_bytes to)
{
    if (!is_before(from, to))
        return PAWL_OK; /* I2 */
    size_t first = begun_until(c, from), last = first;
    if (first > 0 && longkey_compare_keys(from, c->intervals[first - 1].to) <= 0)
        first--; /* it touches the one before */
    while (last < c->count && longkey_compare_keys(c->intervals[last].from, to) <= 0)
        last++; /* all that begin inside, or where it ends */
    if (first < last && longkey_compare_keys(c->intervals[first].from, from) < 0)
        from = c->intervals[first].from;
    if (first < last && longkey_compare_keys(c->intervals[last - 1].to, to) > 0)
        to = c->intervals[last - 1].to;
    size_t count = c->count - (last - first) + 1;
    if (count > COVERAGE_MAX)
        return PAWL_ETOOBIG;
    struct interval added;
    int status = reserve(c, count);
    if (status == PAWL_OK)
        status = copy_interval(c, from, to, &added);
    if (status != PAWL_OK)
        return status;
    for (size_t i = first; i < last; i++)
        free_interval(c, &c->intervals[i]);
    memmove(c->intervals + first + 1, c->intervals + last, (c->count - last) * sizeof added);
    c->intervals[first] = added;
    c->count = count;
    return PAWL_OK;
}

int coverage_copy(struct coverage *to, const struct coverage *from)
{
    struct coverage copy;
    coverage_init(&copy, to->alloc);
    int status = reserve(&copy, from->count);
    for (size_t i = 0; i < from->count && status == PAWL_OK; i++) {
        status = copy_interval(&copy, from->intervals[i].from, from->intervals[i].to, &copy.intervals[i]);
        copy.count += status == PAWL_OK;
    }
    if (status != PAWL_OK) {
        coverage_release(&copy);
        return status;
    }
    coverage_release(to);
    *to = copy;
    return PAWL_OK;
}

size_t coverage_encoded_size(const struct coverage *c)
{
    size_t size = 4;
    for (size_t i = 0; i < c->count; i++)
        size += 8 + c->intervals[i].from.size + c->intervals[i].to.size;
    return size;
}

void coverage_encode(const struct coverage *c, struct encoder *e)
{
    encode_u32(e, (uint32_t)c->count);
    for (size_t i = 0; i < c->count; i++) {
        encode_u32(e, (uint32_t)c->intervals[i].from.size);
        encode_u32(e, (uint32_t)c->intervals[i].to.size);
        encode_raw(e, c->intervals[i].from);
        encode_raw(e, c->intervals[i].to);
    }
}

/* The next interval, which must lie behind all others and touch none. */
static int decode_interval(struct coverage *c, struct decoder *d)
{
    size_t from_size = decode_u32(d), to_size = decode_u32(d);
    if (d->bad || from_size > PAWL_KEY_BYTES_MAX || to_size > PAWL_KEY_BYTES_MAX)
        return PAWL_ECORRUPT;
    pawl_bytes from = {decode_raw(d, from_size), from_size}, to = {decode_raw(d, to_size), to_size};
    const struct interval *last = c->count ? &c->intervals[c->count - 1] : NULL;
    if (d->bad || !is_before(from, to) || (last && longkey_compare_keys(last->to, from) >= 0))
        return PAWL_ECORRUPT;
    int status = reserve(c, c->count + 1);
    assert(status != PAWL_OK || c->intervals);
    if (status == PAWL_OK)
        status = copy_interval(c, from, to, &c->intervals[c->count]);
    c->count += status == PAWL_OK;
    return status;
}

int coverage_decode(struct coverage *c, struct decoder *d)
{
    size_t count = decode_u32(d);
    int status = d->bad || count > COVERAGE_MAX ? PAWL_ECORRUPT : PAWL_OK;
    for (size_t i = 0; i < count && status == PAWL_OK; i++)
        status = decode_interval(c, d);
    if (status != PAWL_OK)
        coverage_release(c);
    return status;
}
