#include "core/group0/building.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/schema/path.h"

#define CHUNK ((size_t)1024)

/* --- lists --- */

const struct view_entry *view_list_by_table(const struct view_list *list, uint32_t table)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->entries[middle].view->number < view_number(table))
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < list->count && list->entries[low].view->number == view_number(table);
    return found ? &list->entries[low] : NULL;
}

const struct view_entry *view_list_by_name(const struct view_list *list, pawl_bytes name,
                                           const struct view_entry **rebuilding)
{
    const struct view_entry *found = NULL, *replacing = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const struct view_entry *e = &list->entries[i];
        if (!bytes_equal(e->view->name, name))
            continue;
        if (e->replaces)
            replacing = e;
        else
            found = e;
    }
    if (rebuilding)
        *rebuilding = replacing;
    return found;
}

void view_list_free(struct view_list *list, const pawl_allocator *alloc)
{
    if (!list)
        return;
    assert(list->entries || list->count == 0);
    for (size_t i = 0; i < list->count; i++)
        view_drop(list->entries[i].view);
    mem_free(alloc, list->entries, list->room * sizeof list->entries[0]);
    arena_release(&list->arena);
    mem_free(alloc, list, sizeof *list);
}

static int copy_entry(struct view_list *list, const struct view_entry *from)
{
    struct view_entry entry = *from;
    entry.words = from->words.size > 0 ? arena_copy(&list->arena, from->words) : (pawl_bytes){"", 0};
    if (!entry.words.data)
        return PAWL_ENOMEM;
    (void)view_hold(entry.view);
    assert(list->count < list->room && list->entries);
    list->entries[list->count++] = entry;
    return PAWL_OK;
}

struct view_list *view_list_draft(const struct building *b, size_t more)
{
    const pawl_allocator *alloc = b->tasks.alloc;
    size_t count = b->views ? b->views->count : 0;
    struct view_list *list = mem_new(alloc, 1, sizeof *list);
    if (!list)
        return NULL;
    arena_init(&list->arena, alloc, CHUNK);
    list->room = count + more;
    list->entries = mem_new(alloc, list->room, sizeof list->entries[0]);
    bool good = list->entries || list->room == 0;
    for (size_t i = 0; good && i < count; i++)
        good = copy_entry(list, &b->views->entries[i]) == PAWL_OK;
    if (good)
        return list;
    list->room = list->entries ? list->room : 0;
    view_list_free(list, alloc);
    return NULL;
}

void building_publish(struct building *b, struct view_list *draft, const struct schema *schema,
                      uint64_t position)
{
    draft->version = position;
    draft->schema = schema;
    draft->older = b->views;
    b->views = draft;
}

static void remove_entry(struct view_list *list, size_t index)
{
    view_drop(list->entries[index].view);
    memmove(list->entries + index, list->entries + index + 1,
            (list->count - index - 1) * sizeof list->entries[0]);
    list->count--;
}

static struct view_entry *find_number(struct view_list *list, uint16_t number)
{
    return (struct view_entry *)(uintptr_t)view_list_by_table(list, view_table(number, 0));
}

int building_init(struct building *b, const pawl_allocator *alloc)
{
    *b = (struct building){0};
    tasks_init(&b->tasks, alloc);
    tablet_map_init(&b->map, 1, 1, 1);
    b->views = view_list_draft(b, 0);
    return b->views ? PAWL_OK : PAWL_ENOMEM;
}

void building_release(struct building *b)
{
    const pawl_allocator *alloc = b->tasks.alloc;
    for (struct view_list *list = b->views, *older; list; list = older) {
        older = list->older;
        view_list_free(list, alloc);
    }
    b->views = NULL;
    tasks_release(&b->tasks);
}

/* --- tasks that follow from views --- */

/* The tables of an incarnation that have rows under this schema. */
static size_t tables_of(const struct schema *schema, const struct view *view, uint32_t tables[2],
                        uint32_t bases[2])
{
    uint32_t generations[2];
    size_t count = view_generations(schema, view, generations);
    for (size_t i = 0; i < count; i++) {
        tables[i] = view_table(view->number, generations[i]);
        bases[i] = view_base_table(view, generations[i]);
    }
    return count;
}

static int make_tasks(struct building *b, const struct schema *schema, const struct view *view)
{
    uint32_t tables[2], bases[2], made;
    size_t count = tables_of(schema, view, tables, bases);
    uint64_t before = b->tasks.next;
    int status = PAWL_OK;
    for (size_t i = 0; i < count && status == PAWL_OK; i++)
        status = tasks_make(&b->tasks, bases[i], tables[i], b->map.tablets, NULL, 0, &made);
    if (status != PAWL_OK)
        tasks_unmake(&b->tasks, before);
    return status;
}

/* All tasks of an incarnation, of any generation. Deleting moves up the groups behind, and no others. */
static void delete_tasks(struct building *b, uint16_t number)
{
    for (size_t i = 0; i < b->tasks.count;) {
        uint32_t view = b->tasks.groups[i].view;
        if (view_number(view) == number)
            tasks_delete_view(&b->tasks, view);
        else
            i++;
    }
}

void building_unfinished(const struct tasks *tasks, struct view_numbers *ret_numbers)
{
    *ret_numbers = (struct view_numbers){0};
    for (size_t i = 0; i < tasks->count; i++) {
        uint16_t number = view_number(tasks->groups[i].view);
        ret_numbers->bits[number / 64] |= UINT64_C(1) << number % 64;
    }
}

/* Delete tasks of views that the list does not have, or of generations that the schema does not. */
static void prune_tasks(struct building *b, const struct view_list *list, const struct schema *schema)
{
    for (size_t i = 0; i < b->tasks.count;) {
        uint32_t view = b->tasks.groups[i].view, tables[2], bases[2];
        const struct view_entry *entry = view_list_by_table(list, view);
        size_t count = entry ? tables_of(schema, entry->view, tables, bases) : 0;
        bool there = view == 0; /* process_staging is about a base, not a view */
        for (size_t k = 0; k < count; k++)
            there = there || tables[k] == view;
        if (there)
            i++;
        else
            tasks_delete_view(&b->tasks, view);
    }
}

/* Views whose last task is gone are built, and take the place of those that they replace (B1, B2); a base without
 * tasks is not processed (B3). True: the list has changed. */
static bool settle(struct building *b, struct view_list *list)
{
    struct view_numbers numbers;
    bool changed = false;
    building_unfinished(&b->tasks, &numbers);
    for (size_t i = 0; i < list->count; i++) {
        struct view_entry *e = &list->entries[i];
        bool unfinished = view_numbers_has(&numbers, e->view->number);
        if (unfinished && e->progress != VIEW_STARTED) {
            e->progress = VIEW_STARTED;
            changed = true;
        }
        if (unfinished || e->progress != VIEW_STARTED)
            continue;
        e->progress = VIEW_SUCCESS;
        changed = true;
        uint16_t replaces = e->replaces;
        e->replaces = 0;
        struct view_entry *old = replaces ? find_number(list, replaces) : NULL;
        if (!old)
            continue;
        delete_tasks(b, replaces);
        remove_entry(list, (size_t)(old - list->entries));
        i = (size_t)-1; /* entries have moved: look at all of them again */
    }
    if (b->processing && tasks_of_base(&b->tasks, b->processing) == 0)
        b->processing = 0;
    return changed;
}

/* --- making --- */

static int add_entry(struct building *b, struct view_list *draft, const struct schema *schema,
                     const struct definition *package, const struct definition_view *definition, bool declared,
                     uint16_t number, uint64_t position, struct view_entry **ret_entry, pawl_error *error)
{
    struct path root = {0}, group = path_member(&root, "views"), at = path_name(&group, definition->name);
    struct definition alone = {
        .package = package->package, .views = (struct definition_view *)definition, .view_count = 1};
    struct view_entry entry = {
        .declared = declared, .progress = VIEW_STARTED, .words = {"", 0}, .created = position};
    if (number == 0)
        return error_set(error, PAWL_EINVAL, "there were %u incarnations of views, and there can be no more",
                         VIEW_NUMBERS_MAX);
    int status =
        view_resolve(schema, package->package, definition, number, &at, b->tasks.alloc, &entry.view, error);
    if (status == PAWL_OK)
        status = definition_encode(&alone, &entry.view->arena, &entry.view->source);
    if (status != PAWL_OK) {
        view_drop(entry.view);
        return status;
    }
    assert(draft->count < draft->room);
    draft->entries[draft->count] = entry;
    *ret_entry = &draft->entries[draft->count++];
    return PAWL_OK;
}

static int check_name(const struct building *b, const struct schema *schema, const struct definition *package,
                      pawl_error *error)
{
    char name[SCHEMA_QNAME_BYTES_MAX + 1];
    pawl_bytes bare = package->views[0].name;
    size_t size = package->package.size + 1 + bare.size;
    if (size > SCHEMA_QNAME_BYTES_MAX)
        return error_set(error, PAWL_EINVAL, "the name is too long");
    memcpy(name, package->package.data, package->package.size);
    name[package->package.size] = '.';
    memcpy(name + package->package.size + 1, bare.data, bare.size);
    const struct schema_name *taken = schema_name_by_text(schema, (pawl_bytes){name, size});
    if (taken && taken->kind != NAMED_VIEW)
        return error_set(error, PAWL_EEXISTS, "%.*s is %s", (int)size, name, named_kind_text(taken->kind));
    const struct view_entry *there = view_list_by_name(b->views, (pawl_bytes){name, size}, NULL);
    if (there)
        return error_set(error, PAWL_EEXISTS,
                         there->declared ? "the view %.*s is there already: its package declares it"
                                         : "the view %.*s is there already",
                         (int)size, name);
    return PAWL_OK;
}

static int create(struct building *b, const struct group0_command *c, uint64_t position,
                  const struct schema *schema, struct view_list *draft, bool dry, pawl_error *error)
{
    const struct definition *package = &c->schema;
    struct arena arena;
    struct view_entry *entry;
    if (package->view_count != 1)
        return error_set(error, PAWL_EINVAL, "it must be one view");
    arena_init(&arena, b->tasks.alloc, CHUNK);
    int status = definition_check(package, &arena, error);
    arena_release(&arena);
    if (status == PAWL_OK)
        status = check_name(b, schema, package, error);
    uint16_t number = b->number < VIEW_NUMBERS_MAX ? (uint16_t)(b->number + 1) : 0;
    if (status == PAWL_OK)
        status =
            add_entry(b, draft, schema, package, &package->views[0], false, number, position, &entry, error);
    if (status != PAWL_OK || dry)
        return status;
    status = make_tasks(b, schema, entry->view);
    b->number = status == PAWL_OK ? number : b->number;
    return status;
}

/* --- what else there is to say about views --- */

static int find_named(struct view_list *list, pawl_bytes name, struct view_entry **ret_entry,
                      struct view_entry **ret_rebuilding, pawl_error *error)
{
    const struct view_entry *rebuilding, *found = view_list_by_name(list, name, &rebuilding);
    if (!found)
        return error_set(error, PAWL_ENOTFOUND, "there is no view %.*s", TEXT(name));
    *ret_entry = &list->entries[found - list->entries];
    *ret_rebuilding = rebuilding ? &list->entries[rebuilding - list->entries] : NULL;
    return PAWL_OK;
}

/* The view, and what was to replace it. */
static void drop_named(struct building *b, struct view_list *list, pawl_bytes name, bool dry)
{
    for (size_t i = list->count; i-- > 0;)
        if (bytes_equal(list->entries[i].view->name, name)) {
            if (!dry)
                delete_tasks(b, list->entries[i].view->number);
            remove_entry(list, i);
        }
}

static int drop(struct building *b, const struct group0_command *c, struct view_list *draft, bool dry,
                pawl_error *error)
{
    struct view_entry *entry, *rebuilding;
    int status = find_named(draft, c->name, &entry, &rebuilding, error);
    if (status != PAWL_OK)
        return status;
    if (entry->declared)
        return error_set(error, PAWL_EINVAL,
                         "the package of %.*s declares it: apply the package without it to drop it",
                         TEXT(c->name));
    drop_named(b, draft, c->name, dry);
    return PAWL_OK;
}

static int rebuild(struct building *b, const struct group0_command *c, uint64_t position,
                   const struct schema *schema, struct view_list *draft, bool dry, pawl_error *error)
{
    struct view_entry *entry, *rebuilding, *fresh;
    struct arena arena;
    struct definition source;
    int status = find_named(draft, c->name, &entry, &rebuilding, error);
    if (status != PAWL_OK)
        return status;
    if (rebuilding && rebuilding->progress != VIEW_FAILED)
        return error_set(error, PAWL_EBUSY, "%.*s is being rebuilt already", TEXT(c->name));
    if (rebuilding) { /* it is behind the entry, and has no tasks (B2) */
        assert(rebuilding > entry);
        remove_entry(draft, (size_t)(rebuilding - draft->entries));
    }
    uint16_t old = entry->view->number;
    uint16_t number = b->number < VIEW_NUMBERS_MAX ? (uint16_t)(b->number + 1) : 0;
    bool declared = entry->declared, paused = entry->paused;
    arena_init(&arena, b->tasks.alloc, CHUNK);
    status = definition_decode(entry->view->source, &arena, &source, error);
    if (status == PAWL_OK)
        status =
            add_entry(b, draft, schema, &source, &source.views[0], declared, number, position, &fresh, error);
    arena_release(&arena);
    if (status != PAWL_OK || dry)
        return status;
    fresh->replaces = old;
    fresh->paused = paused; /* until it is taken back */
    status = make_tasks(b, schema, fresh->view);
    b->number = status == PAWL_OK ? number : b->number;
    return status;
}

static int pause(struct building *b, const struct group0_command *c, struct view_list *draft, bool dry,
                 bool *ret_changed, pawl_error *error)
{
    struct view_entry *entry, *rebuilding;
    if (c->name.size == 0) {
        *ret_changed = b->paused != c->paused;
        if (!dry)
            b->paused = c->paused;
        return PAWL_OK;
    }
    int status = find_named(draft, c->name, &entry, &rebuilding, error);
    if (status != PAWL_OK)
        return status;
    *ret_changed = entry->paused != c->paused || (rebuilding && rebuilding->paused != c->paused);
    entry->paused = c->paused;
    if (rebuilding)
        rebuilding->paused = c->paused;
    return PAWL_OK;
}

static int fail(struct building *b, const struct group0_command *c, struct view_list *draft, bool dry,
                bool *ret_changed)
{
    struct view_entry *entry = find_number(draft, view_number(c->table));
    *ret_changed = entry && entry->progress == VIEW_STARTED;
    if (!*ret_changed)
        return PAWL_OK;
    entry->progress = VIEW_FAILED;
    entry->words = arena_copy(&draft->arena, c->words);
    if (!entry->words.data)
        return PAWL_ENOMEM;
    if (!dry)
        delete_tasks(b, entry->view->number);
    return PAWL_OK;
}

/* Whether a table is one of a present view that can be built. */
static bool can_build(const struct view_list *list, const struct schema *schema, const struct uncovered *u)
{
    const struct view_entry *entry = view_list_by_table(list, u->view);
    uint32_t tables[2], bases[2];
    size_t count = entry && entry->progress != VIEW_FAILED ? tables_of(schema, entry->view, tables, bases) : 0;
    for (size_t i = 0; i < count; i++)
        if (tables[i] == u->view && bases[i] == u->base)
            return true;
    return false;
}

/* Tasks for what a replica does not cover. What is not of a present view is left out, because the replica may not
 * know yet that it is gone. Those of one view that lie side by side become one group. */
static int make_uncovered(struct building *b, const struct group0_command *c, const struct schema *schema,
                          struct view_list *draft, bool dry, bool *ret_changed)
{
    const struct uncovered *list = c->uncovered;
    uint64_t before = b->tasks.next;
    uint32_t made = 1, *tablets = arena_take(&draft->arena, c->uncovered_count * sizeof *tablets);
    int status = tablets ? PAWL_OK : PAWL_ENOMEM;
    for (size_t i = 0, end; i < c->uncovered_count && status == PAWL_OK; i = end) {
        size_t count = 0;
        for (end = i;
             end < c->uncovered_count && list[end].view == list[i].view && list[end].base == list[i].base;
             end++)
            if (list[end].tablet < b->map.tablets)
                tablets[count++] = list[end].tablet;
        if (count == 0 || !can_build(draft, schema, &list[i]))
            continue;
        if (!dry)
            status = tasks_make(&b->tasks, list[i].base, list[i].view, b->map.tablets, tablets, count, &made);
        *ret_changed = *ret_changed || made > 0;
    }
    if (status != PAWL_OK)
        tasks_unmake(&b->tasks, before);
    return status;
}

/* --- tablets --- */

static int resize(struct building *b, const struct group0_command *c, bool dry, pawl_error *error)
{
    int status = PAWL_OK;
    if (c->kind == GROUP0_RESIZE_BEGIN) {
        status = tablet_map_check_resize(&b->map, c->tablets, error);
        if (status == PAWL_OK && !dry)
            status = tasks_abort_all(&b->tasks);
        if (status == PAWL_OK && !dry)
            b->map.resize_to = c->tablets;
        return status;
    }
    if (b->map.resize_to == 0)
        return error_set(error, PAWL_EINVAL, "tablets are neither split nor merged now");
    if (dry)
        return PAWL_OK;
    bool finish = c->kind == GROUP0_RESIZE_FINISH;
    status = finish ? tasks_resize(&b->tasks, b->map.resize_to) : tasks_rollback(&b->tasks);
    if (status != PAWL_OK)
        return status;
    b->map.tablets = finish ? b->map.resize_to : b->map.tablets;
    b->map.resize_to = 0;
    return PAWL_OK;
}

/* --- commands --- */

static int check_guard(const struct building *b, const struct group0_guard *guard, pawl_error *error)
{
    if (guard->map_version && guard->map_version != b->map_version)
        return error_set(error, PAWL_ECONFLICT, "the tablets have changed since this was decided");
    if (guard->views_version && guard->views_version != b->views_version)
        return error_set(error, PAWL_ECONFLICT, "the views have changed since this was decided");
    return PAWL_OK;
}

/* ret_list: whether the list of views changes. */
static int apply_to(struct building *b, struct view_list *draft, const struct group0_command *c,
                    uint64_t position, const struct schema *schema, bool dry, bool *ret_changed, bool *ret_list,
                    pawl_error *error)
{
    uint64_t finished = 0;
    *ret_changed = *ret_list = true;
    switch (c->kind) {
    case GROUP0_VIEW_CREATE: return create(b, c, position, schema, draft, dry, error);
    case GROUP0_VIEW_DROP: return drop(b, c, draft, dry, error);
    case GROUP0_VIEW_REBUILD: return rebuild(b, c, position, schema, draft, dry, error);
    case GROUP0_VIEW_PAUSE:
        *ret_list = c->name.size > 0; /* not if everything is paused */
        return pause(b, c, draft, dry, ret_changed, error);
    case GROUP0_FAILED: return fail(b, c, draft, dry, ret_changed);
    case GROUP0_VIEW_THROTTLE:
        *ret_list = false;
        *ret_changed = b->throttle != c->throttle;
        if (!dry)
            b->throttle = c->throttle;
        return PAWL_OK;
    case GROUP0_BASE:
        *ret_list = false;
        *ret_changed = b->processing != c->table && tasks_of_base(&b->tasks, c->table) > 0;
        if (*ret_changed && !dry)
            b->processing = c->table;
        return PAWL_OK;
    case GROUP0_FINISHED:
        *ret_list = false;
        if (!dry)
            tasks_finish(&b->tasks, c->ids, c->id_count, &finished);
        *ret_changed = dry || finished > 0;
        return PAWL_OK;
    case GROUP0_TASKS:
        *ret_list = *ret_changed = false;
        return make_uncovered(b, c, schema, draft, dry, ret_changed);
    default: *ret_list = false; return resize(b, c, dry, error);
    }
}

static bool is_about_map(enum group0_command_kind kind)
{
    return kind >= GROUP0_RESIZE_BEGIN;
}

int building_apply(struct building *b, const struct group0_command *c, uint64_t position,
                   const struct schema *schema, bool dry, bool *ret_changed, pawl_error *error)
{
    bool list_changed = false;
    int status = check_guard(b, &c->guard, error);
    if (status != PAWL_OK)
        return status;
    struct view_list *draft = view_list_draft(b, 1);
    if (!draft)
        return PAWL_ENOMEM;
    status = apply_to(b, draft, c, position, schema, dry, ret_changed, &list_changed, error);
    if (status == PAWL_OK && !dry && *ret_changed) {
        list_changed = settle(b, draft) || list_changed;
        b->views_version = position; /* tasks change with the map, too */
        if (is_about_map(c->kind))
            b->map_version = position;
        if (list_changed) {
            building_publish(b, draft, schema, position);
            return PAWL_OK;
        }
    }
    view_list_free(draft, b->tasks.alloc);
    return status;
}

/* --- a new schema --- */

static bool is_of_package(const struct view *view, const struct definition *package)
{
    return view->name.size > package->package.size + 1
           && memcmp(view->name.data, package->package.data, package->package.size) == 0
           && ((const char *)view->name.data)[package->package.size] == '.';
}

/* No name that the schema gives out may be that of a view made at run time. */
static int check_run_time_names(const struct view_list *list, const struct schema *after,
                                const struct definition *package, pawl_error *error)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct view_entry *e = &list->entries[i];
        const struct schema_name *name = e->declared ? NULL : schema_name_by_text(after, e->view->name);
        if (name && name->kind != NAMED_VIEW)
            return error_set(error, PAWL_EINVAL,
                             "%.*s is a view that was made at run time: it cannot be %s too",
                             TEXT(e->view->name), named_kind_text(name->kind));
        if (e->declared || !is_of_package(e->view, package) || package->view_count == 0)
            continue;
        pawl_bytes bare = {(const char *)e->view->name.data + package->package.size + 1,
                           e->view->name.size - package->package.size - 1};
        if (definition_find(package->views, package->view_count, sizeof *package->views, bare))
            return error_set(error, PAWL_EINVAL,
                             "$.views.%.*s: a view of this name was made at run time; drop it first",
                             TEXT(bare));
    }
    return PAWL_OK;
}

/* Declared views of the package that it no longer has, or has in another form, go; those that stay are noted. */
static int drop_undeclared(struct building *b, struct view_list *draft, const struct definition *package,
                           bool *stays, bool *ret_changed)
{
    struct arena arena;
    int status = PAWL_OK;
    arena_init(&arena, b->tasks.alloc, CHUNK);
    for (size_t i = draft->count; i-- > 0 && status == PAWL_OK;) {
        struct view_entry *e = &draft->entries[i];
        if (!e->declared || e->replaces || !is_of_package(e->view, package))
            continue;
        bool same = false;
        for (size_t k = 0; k < package->view_count && status == PAWL_OK && !same; k++) {
            struct definition alone = {
                .package = package->package, .views = &package->views[k], .view_count = 1};
            pawl_bytes bytes;
            status = definition_encode(&alone, &arena, &bytes);
            same = status == PAWL_OK && bytes_equal(bytes, e->view->source);
            stays[k] = stays[k] || same;
        }
        if (same || status != PAWL_OK)
            continue;
        *ret_changed = true;
        pawl_bytes name = arena_copy(&arena, e->view->name);
        if (!name.data)
            status = PAWL_ENOMEM;
        else
            drop_named(b, draft, name,
                       true); /* prune_tasks deletes its tasks, when nothing can fail any more */
        i = i < draft->count ? i : draft->count;
    }
    arena_release(&arena);
    return status;
}

static int declare(struct building *b, struct view_list *draft, const struct schema *after,
                   const struct definition *package, uint64_t position, bool dry, bool *ret_changed,
                   pawl_error *error)
{
    bool *stays = mem_new(b->tasks.alloc, package->view_count, sizeof *stays);
    if (!stays && package->view_count > 0)
        return PAWL_ENOMEM;
    uint16_t number = b->number;
    uint64_t before = b->tasks.next;
    int status = check_run_time_names(draft, after, package, error);
    if (status == PAWL_OK)
        status = drop_undeclared(b, draft, package, stays, ret_changed);
    for (size_t i = 0; i < package->view_count && status == PAWL_OK; i++) {
        struct view_entry *entry;
        if (stays[i])
            continue;
        *ret_changed = true;
        number = number == VIEW_NUMBERS_MAX ? 0 : (uint16_t)(number + 1);
        status = add_entry(b, draft, after, package, &package->views[i], true, number, position, &entry, error);
        if (status == PAWL_OK && !dry)
            status = make_tasks(b, after, entry->view);
    }
    mem_free(b->tasks.alloc, stays, package->view_count * sizeof *stays);
    if (status == PAWL_OK && !dry)
        b->number = number;
    if (status != PAWL_OK && !dry)
        tasks_unmake(&b->tasks, before);
    return status;
}

int building_schema(struct building *b, const struct schema *after, const struct definition *package,
                    uint64_t position, bool dry, pawl_error *error)
{
    bool changed = false;
    struct view_list *draft = view_list_draft(b, package ? package->view_count : 0);
    if (!draft)
        return PAWL_ENOMEM;
    int status = package ? declare(b, draft, after, package, position, dry, &changed, error) : PAWL_OK;
    if (status != PAWL_OK || dry) {
        view_list_free(draft, b->tasks.alloc);
        return status;
    }
    uint64_t left = b->tasks.left;
    prune_tasks(b, draft, after);
    changed = settle(b, draft) || changed;
    if (changed || left != b->tasks.left)
        b->views_version = position;
    if (changed)
        building_publish(b, draft, after, position);
    else
        view_list_free(draft, b->tasks.alloc);
    return PAWL_OK;
}

void building_digest(const struct building *b, struct hash128 *digest)
{
    uint8_t bytes[48];
    put_u64(bytes, b->map.tablets | (uint64_t)b->map.resize_to << 32);
    put_u64(bytes + 8, b->processing);
    put_u64(bytes + 16, b->throttle);
    put_u64(bytes + 24, (uint64_t)b->number << 1 | b->paused);
    put_u64(bytes + 32, b->map_version);
    put_u64(bytes + 40, b->views_version);
    hash_chain(digest, (pawl_bytes){bytes, sizeof bytes});
    for (size_t i = 0; i < b->views->count; i++) {
        const struct view_entry *e = &b->views->entries[i];
        put_u64(bytes, e->view->number);
        put_u64(bytes + 8, (uint64_t)e->replaces << 16 | (uint64_t)e->progress << 8 | (uint64_t)e->declared << 1
                               | e->paused);
        put_u64(bytes + 16, e->created);
        hash_chain(digest, (pawl_bytes){bytes, 24});
        hash_chain(digest, e->words);
        hash_chain(digest, e->view->source);
    }
    tasks_digest(&b->tasks, digest);
}
