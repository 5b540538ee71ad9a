#include "core/command/window.h"

#include <assert.h>

#include "core/state/key.h"

struct window {
    uint32_t tags[WINDOW_EVENTS]; /* 0: no key */
};

static uint32_t tag_of(uint64_t hash)
{
    uint32_t tag = (uint32_t)(hash >> 32);
    return hash == 0 ? 0 : tag == 0 ? 1 : tag;
}

int windows_init(struct windows *w, const pawl_allocator *alloc, uint32_t workspaces)
{
    return lru_init(&w->used, alloc, workspaces, sizeof(struct window));
}

void windows_release(struct windows *w)
{
    lru_release(&w->used);
}

void windows_clear(struct windows *w)
{
    lru_clear(&w->used);
}

static uint64_t first_of_window(uint64_t last)
{
    return last > WINDOW_EVENTS ? last - WINDOW_EVENTS + 1 : 1;
}

struct loading {
    struct window *window;
    uint64_t offset; /* of the last row seen */
    bool bad;
};

static void note_row(struct loading *loading, uint64_t offset, pawl_bytes value)
{
    struct wlog_row row;
    loading->offset = offset;
    loading->bad = !wlog_row_read(value, &row);
    if (!loading->bad)
        loading->window->tags[offset % WINDOW_EVENTS] = tag_of(row.key_hash);
}

static bool load_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct loading *loading = arg;
    if (key.size == KEY_NUMBERED)
        note_row(loading, get_u64_sorted((const uint8_t *)key.data + KEY_WORKSPACE), value);
    else
        loading->bad = true;
    return !loading->bad;
}

/* Read the store's rows with a scan, and then the staged rows behind them one by one: a scan of the overlay
 * would go through the staged rows of every workspace. */
static int load(const struct state *state, uint64_t wsid, uint64_t last, struct window *window)
{
    struct loading loading = {.window = window, .offset = first_of_window(last) - 1};
    uint8_t from[KEY_NUMBERED], to[KEY_NUMBERED];
    pawl_range range = {.space = STATE_SPACE,
                        .from = key_numbered(TABLE_WLOG, wsid, loading.offset + 1, from),
                        .to = key_numbered(TABLE_WLOG, wsid, last + 1, to)};
    int status = pawl_store_scan(state->reader, range, false, load_row, &loading);
    while (status == PAWL_OK && !loading.bad && loading.offset < last) {
        pawl_bytes value;
        status = state_get(state, key_numbered(TABLE_WLOG, wsid, loading.offset + 1, from), &value);
        if (status == PAWL_OK)
            note_row(&loading, loading.offset + 1, value);
    }
    return loading.bad || status == PAWL_ENOTFOUND ? PAWL_ECORRUPT : status;
}

/* Whether the key of the event at this offset has this whole hash. */
static int check_row(const struct state *state, uint64_t wsid, uint64_t offset, uint64_t hash,
                     uint64_t *ret_plog_offset)
{
    uint8_t key[KEY_NUMBERED];
    pawl_bytes value;
    struct wlog_row row;
    int status = state_get(state, key_numbered(TABLE_WLOG, wsid, offset, key), &value);
    if (status == PAWL_ENOTFOUND || (status == PAWL_OK && !wlog_row_read(value, &row)))
        return PAWL_ECORRUPT;
    if (status == PAWL_OK && row.key_hash == hash)
        *ret_plog_offset = row.plog_offset;
    return status;
}

/* No branch inside the loop, so that the compiler makes vector code of it: the answer is nearly always no. */
static bool has_tag(const struct window *window, uint32_t tag)
{
    uint32_t found = 0;
    for (size_t i = 0; i < WINDOW_EVENTS; i++)
        found |= window->tags[i] == tag;
    return found != 0;
}

int windows_find(struct windows *w, const struct state *state, uint64_t wsid, uint64_t last, uint64_t hash,
                 uint64_t *ret_plog_offset)
{
    assert(hash != 0);
    struct window *window = lru_get(&w->used, wsid);
    uint64_t found = 0;
    if (!window) {
        struct lru_evicted evicted;
        window = lru_put(&w->used, wsid, &evicted);
        int status = load(state, wsid, last, window);
        if (status != PAWL_OK) {
            lru_remove(&w->used, wsid);
            return status;
        }
    }
    uint32_t tag = tag_of(hash);
    if (!has_tag(window, tag)) {
        *ret_plog_offset = 0;
        return PAWL_OK;
    }
    for (size_t i = 0; i < WINDOW_EVENTS; i++) {
        if (window->tags[i] != tag)
            continue;
        /* The one offset of the window that has this place. */
        uint64_t offset = last - (last - i) % WINDOW_EVENTS;
        uint64_t plog_offset = 0;
        if (offset == 0 || offset > last || offset < first_of_window(last))
            continue;
        int status = check_row(state, wsid, offset, hash, &plog_offset);
        if (status != PAWL_OK)
            return status;
        found = plog_offset > found ? plog_offset : found;
    }
    *ret_plog_offset = found;
    return PAWL_OK;
}

void windows_note(struct windows *w, uint64_t wsid, uint64_t offset, uint64_t hash)
{
    struct window *window = lru_peek(&w->used, wsid);
    if (window)
        window->tags[offset % WINDOW_EVENTS] = tag_of(hash);
}
