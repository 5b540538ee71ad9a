/* window.c: the lanes at work.
 *
 *     shop.statements   applied    1,204  [=.==.=....        ]  64 leased, 12 ready, lag 311
 *
 * Between the brackets are the numbers behind the last committed one, in the partition that has most of them
 * under way: # is being committed, = is done and waits for its turn, . is being worked on, - failed and is
 * tried again, ! stalls the lane, and a blank waits for a worker. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shop.h"

#define LANES_MAX 8
#define STRIP     40

struct seen {
    char name[64];
    uint64_t operations;
    uint64_t leased;
    uint64_t ready;
    uint64_t lag;
    uint64_t committed;
    uint64_t expired;
    uint64_t fenced;
    uint64_t repeated;
    uint16_t busiest;
    uint64_t most; /* numbers under way there */
};

struct look {
    struct seen lanes[LANES_MAX];
    size_t count;
};

#define BAR 40

static int lines_before; /* lines of the picture that the next one replaces */

bool window_is_live(void)
{
    return isatty(STDOUT_FILENO);
}

/* --- opening --- */

static void draw_bar(uint64_t done, uint64_t total)
{
    char bar[BAR + 1];
    size_t full = total ? (size_t)(done * BAR / total) : 0;
    for (size_t i = 0; i < BAR; i++)
        bar[i] = i < full ? '=' : ' ';
    bar[BAR] = '\0';
    printf("%s  [%s] %3" PRIu64 " %%  %" PRIu64 " of %" PRIu64 " events%s", window_is_live() ? "\r" : "", bar,
           total ? done * 100 / total : 0, done, total, window_is_live() ? "\033[K" : "\n");
    fflush(stdout);
}

bool window_progress(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    if (total > 0) /* it is known */
        draw_bar(done, total);
    return true;
}

void window_progress_end(pawl_engine *engine)
{
    uint64_t events = 0, offset;
    for (uint32_t i = 0; i < pawl_partitions(engine); i++)
        if (pawl_offset_get(engine, (uint16_t)i, &offset, NULL) == PAWL_OK)
            events += offset;
    draw_bar(events, events);
    if (window_is_live())
        printf("\n");
}

/* --- lanes --- */

static bool note(void *arg, const pawl_lane_status *status)
{
    struct look *look = arg;
    size_t i = 0;
    while (i < look->count && strcmp(look->lanes[i].name, status->lane) != 0)
        i++;
    if (i == LANES_MAX || !status->serving)
        return true;
    struct seen *seen = &look->lanes[i];
    if (i == look->count) {
        *seen = (struct seen){0};
        snprintf(seen->name, sizeof seen->name, "%s", status->lane);
        look->count++;
    }
    const pawl_lease_figures *f = &status->leases;
    seen->operations += status->operations;
    seen->leased += f->active;
    seen->ready += f->waiting;
    seen->lag += status->end > status->offset ? status->end - status->offset : 0;
    seen->committed += f->committed;
    seen->expired += f->expired;
    seen->fenced += f->fenced;
    seen->repeated += status->repeated;
    if (f->active + f->waiting >= seen->most) {
        seen->most = f->active + f->waiting;
        seen->busiest = status->partition;
    }
    return true;
}

struct strip {
    char text[STRIP + 1];
    size_t size;
};

static bool draw(void *arg, const pawl_lease *lease, uint64_t event, const char *projector)
{
    struct strip *strip = arg;
    static const char signs[] = {
        [PAWL_LEASE_BOUND] = ' ',    [PAWL_LEASE_LEASED] = '.', [PAWL_LEASE_BACKING_OFF] = '-',
        [PAWL_LEASE_STALLED] = '!',  [PAWL_LEASE_READY] = '=',  [PAWL_LEASE_TAKEN] = '#',
        [PAWL_LEASE_COMMITTED] = '#'};
    (void)event;
    (void)projector;
    strip->text[strip->size++] = signs[lease->state];
    return strip->size < STRIP;
}

/* 1204 as "1,204". */
static const char *grouped(uint64_t number, char text[32])
{
    char digits[24];
    int size = snprintf(digits, sizeof digits, "%" PRIu64, number), to = 0;
    for (int i = 0; i < size; i++) {
        if (i > 0 && (size - i) % 3 == 0)
            text[to++] = ',';
        text[to++] = digits[i];
    }
    text[to] = '\0';
    return text;
}

static void show_lane(pawl_engine *engine, const struct seen *seen)
{
    struct strip strip = {.size = 0};
    char applied[32], lag[32];
    if (pawl_lane_leases(engine, seen->busiest, seen->name, 0, 0, STRIP, draw, &strip, NULL) != PAWL_OK)
        strip.size = 0;
    printf("  %-16s applied %9s  [%-*.*s]  %" PRIu64 " leased, %" PRIu64 " ready, lag %s%s\n", seen->name,
           grouped(seen->operations, applied), STRIP, (int)strip.size, strip.text, seen->leased, seen->ready,
           grouped(seen->lag, lag), window_is_live() ? "\033[K" : "");
}

void window_show(pawl_engine *engine, const char *head)
{
    struct look look = {.count = 0};
    bool live = window_is_live();
    if (pawl_lanes_read(engine, NULL, note, &look, NULL) != PAWL_OK)
        look.count = 0;
    if (live && lines_before > 0)
        printf("\033[%dA", lines_before);
    if (head)
        printf("%s%s\n", head, live ? "\033[K" : "");
    for (size_t i = 0; i < look.count; i++)
        show_lane(engine, &look.lanes[i]);
    lines_before = (int)look.count + (head ? 1 : 0);
    fflush(stdout);
}

void window_sum(pawl_engine *engine)
{
    struct look look = {.count = 0};
    if (pawl_lanes_read(engine, NULL, note, &look, NULL) != PAWL_OK)
        return;
    for (size_t i = 0; i < look.count; i++)
        printf("  %-16s %" PRIu64 " committed, %" PRIu64 " expired, %" PRIu64 " fenced, %" PRIu64 " repeated\n",
               look.lanes[i].name, look.lanes[i].committed, look.lanes[i].expired, look.lanes[i].fenced,
               look.lanes[i].repeated);
    fflush(stdout);
}
