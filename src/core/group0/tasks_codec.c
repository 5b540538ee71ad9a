/* core/group0/tasks_codec.c: the tasks as bytes.
 *
 *      0  groups   u32
 *      4  zero     u32
 *      8  next     u64   ID
 *     16  groups, by their first ID, each:
 *           0  first    u64   ID
 *           8  type     u8
 *           9  zero     u8, u16
 *          12  base     u32
 *          16  view     u32
 *          20  tablets  u32
 *          24  made     u32
 *          28  left     u32
 *          32  aborted  u32   how many
 *          36  which are there: a bit a tablet, the lowest first, as u64 each
 *              which are aborted: the same; only if there are any
 *
 * Bits of one tablet more than there are must be 0. */
#include "base/alloc.h"
#include "core/group0/tasks.h"
#include "core/group0/tasks_impl.h"

#define HEAD_BYTES  ((size_t)16)
#define GROUP_BYTES ((size_t)36)
#define WORD_BYTES  ((size_t)8)

static void encode_head(const struct tasks *t, struct encoder *e)
{
    encode_u32(e, (uint32_t)t->count);
    encode_u32(e, 0);
    encode_u64(e, t->next);
}

static void encode_group_head(const struct task_group *g, struct encoder *e)
{
    encode_u64(e, g->first);
    encode_u8(e, (uint8_t)g->type);
    encode_u8(e, 0);
    encode_u16(e, 0);
    encode_u32(e, g->base);
    encode_u32(e, g->view);
    encode_u32(e, g->tablets);
    encode_u32(e, g->made);
    encode_u32(e, g->left);
    encode_u32(e, g->aborted_count);
}

static void encode_words(const uint64_t *words, size_t count, struct encoder *e)
{
    for (size_t i = 0; i < count; i++)
        encode_u64(e, words[i]);
}

static size_t group_words(const struct task_group *g)
{
    return task_words(g->tablets) * (g->aborted_count > 0 ? 2 : 1);
}

size_t tasks_encoded_size(const struct tasks *t)
{
    size_t size = HEAD_BYTES;
    for (size_t i = 0; i < t->count; i++)
        size += GROUP_BYTES + group_words(&t->groups[i]) * WORD_BYTES;
    return size;
}

void tasks_encode(const struct tasks *t, struct encoder *e)
{
    encode_head(t, e);
    for (size_t i = 0; i < t->count; i++) {
        const struct task_group *g = &t->groups[i];
        encode_group_head(g, e);
        encode_words(g->there, task_words(g->tablets), e);
        if (g->aborted)
            encode_words(g->aborted, task_words(g->tablets), e);
    }
}

/* Whether the numbers of a group agree with each other, and with those of the group before, if there is one. */
static bool head_is_right(const struct task_group *g, const struct task_group *before, uint64_t next)
{
    if (g->type == TASK_BUILD_RANGE ? g->view == 0 : g->type != TASK_PROCESS_STAGING || g->view != 0)
        return false;
    if (g->base == 0 || g->tablets == 0 || (before && g->tablets != before->tablets))
        return false;
    if (g->made > g->tablets || g->left == 0 || g->left > g->made || g->aborted_count > g->left)
        return false;
    uint64_t least = before ? before->first + before->tablets : 1;
    return g->first >= least && g->first <= next && g->tablets <= next - g->first;
}

static bool bits_are_right(const struct task_group *g)
{
    size_t words = task_words(g->tablets);
    uint64_t beyond = ~(UINT64_MAX >> (63 - (g->tablets - 1) % 64));
    if ((g->there[words - 1] & beyond) != 0 || task_bits_count(g->there, words) != g->left)
        return false;
    if (!g->aborted)
        return true;
    for (size_t i = 0; i < words; i++) {
        if ((g->aborted[i] & ~g->there[i]) != 0)
            return false;
    }
    return task_bits_count(g->aborted, words) == g->aborted_count;
}

/* The bytes were found to be there. NULL: no memory. */
static uint64_t *decode_words(size_t count, struct decoder *d, const pawl_allocator *alloc)
{
    uint64_t *words = mem_new(alloc, count, sizeof *words);
    for (size_t i = 0; words && i < count; i++)
        words[i] = decode_u64(d);
    return words;
}

/* Counted among the tasks as soon as it holds memory. */
static int decode_group(struct tasks *t, struct decoder *d)
{
    struct task_group g = {.first = decode_u64(d)};
    uint8_t type = decode_u8(d), zero = decode_u8(d);
    uint16_t zeros = decode_u16(d);
    g.type = (enum task_type)type;
    g.base = decode_u32(d);
    g.view = decode_u32(d);
    g.tablets = decode_u32(d);
    g.made = decode_u32(d);
    g.left = decode_u32(d);
    g.aborted_count = decode_u32(d);
    const struct task_group *before = t->count > 0 ? &t->groups[t->count - 1] : NULL;
    if (d->bad || zero != 0 || zeros != 0 || !head_is_right(&g, before, t->next)
        || group_words(&g) > d->left / WORD_BYTES || g.left > TASKS_MAX - t->left)
        return PAWL_ECORRUPT;
    struct task_group *added = &t->groups[t->count++];
    *added = g;
    t->left += g.left;
    added->there = decode_words(task_words(g.tablets), d, t->alloc);
    if (!added->there)
        return PAWL_ENOMEM;
    if (g.aborted_count > 0) {
        added->aborted = decode_words(task_words(g.tablets), d, t->alloc);
        if (!added->aborted)
            return PAWL_ENOMEM;
    }
    return bits_are_right(added) ? PAWL_OK : PAWL_ECORRUPT;
}

/* Whether two tasks of a run of groups are alive for one tablet (K2). taken: room for its bits. */
static bool run_is_right(struct task_group *const *run, size_t count, uint64_t *taken)
{
    size_t words = task_words(run[0]->tablets);
    memset(taken, 0, words * sizeof *taken);
    for (size_t i = 0; i < count; i++) {
        for (size_t word = 0; word < words; word++) {
            uint64_t alive = task_group_alive(run[i], word);
            if ((taken[word] & alive) != 0)
                return false;
            taken[word] |= alive;
        }
    }
    return true;
}

/* K2, and that a view is of one base. */
static int check_views(const struct tasks *t)
{
    if (t->count == 0)
        return PAWL_OK;
    size_t words = task_words(t->groups[0].tablets);
    struct task_group **list = tasks_by_view(t);
    uint64_t *taken = mem_new(t->alloc, words, sizeof *taken);
    int status = list && taken ? PAWL_OK : PAWL_ENOMEM;
    for (size_t from = 0, end; from < t->count && status == PAWL_OK; from = end) {
        end = tasks_run_end(list, t->count, from);
        bool one_base = list[from]->view == 0 || from == 0 || list[from - 1]->view != list[from]->view;
        if (!one_base || !run_is_right(list + from, end - from, taken))
            status = PAWL_ECORRUPT;
    }
    tasks_by_view_free(t, list);
    mem_free(t->alloc, taken, words * sizeof *taken);
    return status;
}

int tasks_decode(struct tasks *t, struct decoder *d)
{
    uint32_t count = decode_u32(d), zero = decode_u32(d);
    struct tasks read;
    tasks_init(&read, t->alloc);
    read.next = decode_u64(d);
    if (d->bad || zero != 0 || read.next == 0 || read.next > TASK_ID_MAX
        || count > d->left / (GROUP_BYTES + WORD_BYTES))
        return PAWL_ECORRUPT;
    int status = tasks_reserve(&read, count);
    for (uint32_t i = 0; i < count && status == PAWL_OK; i++)
        status = decode_group(&read, d);
    if (status == PAWL_OK)
        status = check_views(&read);
    if (status) {
        tasks_release(&read);
        return status;
    }
    tasks_release(t);
    *t = read;
    return PAWL_OK;
}

static void digest_words(const uint64_t *words, size_t count, struct hash128 *digest)
{
    uint8_t bytes[64 * WORD_BYTES];
    for (size_t i = 0; i < count;) {
        struct encoder e = encoder_over(bytes, sizeof bytes);
        size_t part = count - i < 64 ? count - i : 64;
        encode_words(words + i, part, &e);
        hash_chain(digest, (pawl_bytes){bytes, encoder_size(&e)});
        i += part;
    }
}

void tasks_digest(const struct tasks *t, struct hash128 *digest)
{
    uint8_t bytes[GROUP_BYTES];
    struct encoder e = encoder_over(bytes, sizeof bytes);
    encode_head(t, &e);
    hash_chain(digest, (pawl_bytes){bytes, encoder_size(&e)});
    for (size_t i = 0; i < t->count; i++) {
        const struct task_group *g = &t->groups[i];
        e = encoder_over(bytes, sizeof bytes);
        encode_group_head(g, &e);
        hash_chain(digest, (pawl_bytes){bytes, encoder_size(&e)});
        digest_words(g->there, task_words(g->tablets), digest);
        if (g->aborted)
            digest_words(g->aborted, task_words(g->tablets), digest);
    }
}
