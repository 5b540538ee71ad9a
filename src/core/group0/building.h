/* core/group0/building.h: the part of group0 that is about views: which there are, the tablets, and the tasks of
 * view building.
 *
 * It has two sections, the map (tablets) and the views (views, tasks, the base being processed). The version of
 * a section is the position of the last command that changed it. A command that was decided on another version
 * than the present one is refused with PAWL_ECONFLICT: its decider looks again (group0.h, G4).
 *
 *     view:  STARTED ── no task of it is left ──► SUCCESS            rebuilt: a new incarnation beside it
 *               └────── two rows are not unique ──► FAILED           tasks made again: STARTED
 *
 * Invariants
 *   B1  Each incarnation of a view has a number that was never given before, and is the only one of its name,
 *       but for one that replaces another, which goes when the new one is built.
 *   B2  A view without tasks is SUCCESS or FAILED; a view with tasks is STARTED. FAILED has no tasks.
 *   B3  processing is 0, or a base that has tasks. */
#ifndef CORE_GROUP0_BUILDING_H
#define CORE_GROUP0_BUILDING_H

#include "core/group0/command.h"
#include "core/group0/tasks.h"
#include "core/tablet/tablet.h"
#include "core/view/view.h"

enum view_progress { VIEW_STARTED = 1, VIEW_SUCCESS = 2, VIEW_FAILED = 3 };

/* An incarnation of a view. */
struct view_entry {
    struct view *view; /* held */
    bool declared;     /* by its package */
    bool paused;
    uint16_t replaces; /* the number of the incarnation that it will replace; 0: none */
    enum view_progress progress;
    pawl_bytes words; /* FAILED: why */
    uint64_t created; /* position of the command */
};

/* The views at one version, immutable: shards and readers are given it. All lists stay, so an entry is small: what
 * does not change is its view's, which all lists share. */
struct view_list {
    uint64_t version;
    const struct schema *schema; /* in force then */
    struct view_entry *entries;  /* by number */
    size_t count;

    /* group0's own. */
    size_t room;
    struct arena arena; /* of words */
    struct view_list *older;
};

struct building {
    struct tablet_map map;
    uint64_t map_version;
    struct tasks tasks;
    uint32_t processing; /* the table of the base being processed; 0: none */
    uint64_t throttle;   /* rows a second; 0: no bound */
    bool paused;         /* all builds */
    uint16_t number;     /* the last one that was given to an incarnation */
    uint64_t views_version;
    struct view_list *views; /* the present list */
};

/* The entry of an incarnation, by its table of any generation; NULL. */
const struct view_entry *view_list_by_table(const struct view_list *list, uint32_t table);

/* The entry that serves reads of this name: not one that only replaces another. NULL. rebuilding, which may be
 * NULL: the one that will replace it, or NULL. */
const struct view_entry *view_list_by_name(const struct view_list *list, pawl_bytes name,
                                           const struct view_entry **rebuilding);

/* --- for group0 --- */

/* A set of incarnations, by number. */
struct view_numbers {
    uint64_t bits[(VIEW_NUMBERS_MAX + 1) / 64];
};

static inline bool view_numbers_has(const struct view_numbers *numbers, uint16_t number)
{
    return (numbers->bits[number / 64] >> number % 64 & 1) != 0;
}

/* Those that have tasks. 0 is among them if there are tasks of process_staging. */
void building_unfinished(const struct tasks *tasks, struct view_numbers *ret_numbers);

/* PAWL_ENOMEM. */
int building_init(struct building *building, const pawl_allocator *alloc);
void building_release(struct building *building);

/* Apply a command about views or tablets; dry: only judge it. ret_changed: whether it changes anything.
 * Errors: PAWL_EINVAL, with the path; PAWL_EEXISTS, PAWL_ENOTFOUND, PAWL_EBUSY, with words; PAWL_ECONFLICT (the
 * guard); PAWL_ENOMEM. After an error nothing changed. */
int building_apply(struct building *building, const struct group0_command *command, uint64_t position,
                   const struct schema *schema, bool dry, bool *ret_changed, pawl_error *error);

/* The schema becomes another one: views that the package (NULL: it is about a lane) declares are made, changed
 * or dropped with it, and tasks of generations that are gone are deleted. Errors as above. */
int building_schema(struct building *building, const struct schema *after, const struct definition *package,
                    uint64_t position, bool dry, pawl_error *error);

/* Chain all that was decided into a digest. */
void building_digest(const struct building *building, struct hash128 *digest);

/* Snapshots: building_codec.c. decode: into one that is empty; each view is resolved with the schema in which it
 * was made, because a later one may have a field that its names would mean instead. schema_at: the schema at a
 * position. PAWL_ECORRUPT, PAWL_EVERSION, PAWL_EINVAL (a view does not resolve), PAWL_ENOMEM. */
typedef const struct schema *building_schema_at(const void *ctx, uint64_t position);
int building_encode(const struct building *building, struct arena *arena, pawl_bytes *ret_bytes);
int building_decode(struct building *building, pawl_bytes bytes, building_schema_at *schema_at, const void *ctx,
                    pawl_error *error);

/* A list to be changed and then published: a copy of the present one, with room for more entries.
 * building_codec.c uses it, too. */
struct view_list *view_list_draft(const struct building *building, size_t more);
void view_list_free(struct view_list *list, const pawl_allocator *alloc);
void building_publish(struct building *building, struct view_list *draft, const struct schema *schema,
                      uint64_t position);

#endif
