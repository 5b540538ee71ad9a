/* cli/data/ws_export.c: everything of one workspace, as JSON lines.
 *
 *     {"workspace":{...}}                        as 'ws show' prints it
 *     {"event":{...}} ...                        from the first to its last one
 *     {"record":{...}} ...                       by type, and by ascending ID
 *     {"entity":"shop.Account","row":{...}} ...  by entity, in the order of their keys
 *     {"end":{"events":7,"records":3,"rows":2}}  what is without this line is not whole
 *
 * Invariants
 *   X1  What is exported is the workspace as its last event left it: the events end with the one that the first line
 *       names, entities are read only when the lanes have seen it, and if another event has come by the end, the export
 *       fails.
 *   X2  One page of rows is in memory at a time.
 *   X3  A file appears whole or not at all: it is written beside its place, synced, and renamed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/show/progress.h"
#include "cli/talk/session.h"

#define PAGE ((size_t)200) /* rows, of which each may have a megabyte */

struct exporting {
    struct session session;
    uint64_t wsid;
    uint64_t offset; /* the workspace's last one */
    bool lagging;
    pawl_read_options read; /* entities: behind that event */
    FILE *out;
    char *part; /* of a file: where it is written; NULL: it goes to stdout */
    struct progress progress;
    uint64_t events, records, rows;
};

/* --- lines --- */

static void count(struct exporting *x, uint64_t *counter)
{
    ++*counter;
    if (x->part)
        (void)progress_count(&x->progress, x->events + x->records + x->rows, 0);
}

static bool put_event(void *arg, pawl_bytes json)
{
    struct exporting *x = arg;
    fprintf(x->out, "{\"event\":%.*s}\n", (int)json.size, (const char *)json.data);
    count(x, &x->events);
    return !ferror(x->out);
}

static bool put_record(void *arg, pawl_bytes json)
{
    struct exporting *x = arg;
    fprintf(x->out, "{\"record\":%.*s}\n", (int)json.size, (const char *)json.data);
    count(x, &x->records);
    return !ferror(x->out);
}

struct entity {
    struct exporting *export;
    const char *name;
};

static bool put_row(void *arg, pawl_bytes json)
{
    const struct entity *entity = arg;
    struct exporting *x = entity->export;
    fprintf(x->out, "{\"entity\":\"%s\",\"row\":%.*s}\n", entity->name, (int)json.size,
            (const char *)json.data);
    count(x, &x->rows);
    return !ferror(x->out);
}

/* The last line of a page, as JSON; NULL: there is none. */
static json_t *last_line(const pawl_text *text)
{
    size_t end = text->size;
    if (end > 0 && text->data[end - 1] == '\n')
        end--;
    const char *before = end ? memrchr(text->data, '\n', end) : NULL;
    size_t from = before ? (size_t)(before - text->data) + 1 : 0;
    return end > from ? json_loadb(text->data + from, end - from, 0, NULL) : NULL;
}

/* --- the parts --- */

/* The first line, and what it says. */
static int begin(struct exporting *x, pawl_error *error)
{
    pawl_text text;
    int status = session_workspace_show(&x->session, x->wsid, &(pawl_read_options){0}, &text, error);
    if (status != PAWL_OK)
        return status;
    json_t *shown = json_loadb(text.data, text.size, 0, NULL);
    x->offset = json_u64_in(shown, "workspace_offset");
    if (!x->lagging)
        x->read.min_offset = json_u64_in(shown, "offset");
    fprintf(x->out, "{\"workspace\":%s}\n", text.data);
    json_decref(shown);
    pawl_text_free(&text);
    return PAWL_OK;
}

static int put_events(struct exporting *x, pawl_error *error)
{
    const struct event_range range = {.wsid = x->wsid, .from = 1, .limit = x->offset};
    int status = session_events(&x->session, &range, put_event, x, error);
    if (status == PAWL_OK && x->events < x->offset && !ferror(x->out))
        return pawl_error_set(error, PAWL_EIO, "only %" PRIu64 " of %" PRIu64 " events were there", x->events,
                              x->offset);
    return status;
}

static int put_type(struct exporting *x, const char *type, pawl_error *error)
{
    uint64_t after = 0;
    do {
        pawl_text text;
        int status = session_record_list(&x->session, x->wsid, type, after, PAGE, &x->read, &text, error);
        if (status != PAWL_OK)
            return pawl_error_wrap(error, status, "%s", type);
        json_t *last = last_line(&text);
        after = json_u64_in(last, "id");
        (void)lines_visit(&text, put_record, x);
        json_decref(last);
        pawl_text_free(&text);
    } while (after > 0 && !ferror(x->out));
    return PAWL_OK;
}

/* The key of a row, as the entity's definition has it; free() it. */
static char *key_of(const json_t *row, const json_t *definition)
{
    json_t *key = json_object();
    const json_t *fields = json_object_get(definition, "key"), *field;
    size_t i;
    json_array_foreach(fields, i, field)
    {
        const char *name = json_string_value(field);
        if (name)
            json_object_set(key, name, json_object_get(row, name));
    }
    char *text = json_dumps(key, JSON_COMPACT);
    json_decref(key);
    return text;
}

static int put_entity(struct exporting *x, const char *name, const json_t *definition, pawl_error *error)
{
    struct entity entity = {.export = x, .name = name};
    char *after = NULL;
    int status;
    do {
        pawl_text text;
        pawl_bytes key = {after, after ? strlen(after) : 0};
        status = session_entity_list(&x->session, x->wsid, name, key, PAGE, &x->read, &text, error);
        free(after);
        after = NULL;
        if (status != PAWL_OK)
            break;
        json_t *last = last_line(&text);
        after = last ? key_of(last, definition) : NULL;
        (void)lines_visit(&text, put_row, &entity);
        json_decref(last);
        pawl_text_free(&text);
    } while (after && !ferror(x->out));
    free(after);
    return status == PAWL_OK ? status : pawl_error_wrap(error, status, "%s", name);
}

/* Types that live in their events have no records of their own. */
static bool has_records(const json_t *type)
{
    const char *kind = json_text_in(type, "kind");
    return kind[0] == 'C' || kind[0] == 'W';
}

typedef int (*put_member)(struct exporting *x, const char *name, const json_t *definition, pawl_error *error);

static int put_records(struct exporting *x, const char *name, const json_t *definition, pawl_error *error)
{
    return has_records(definition) ? put_type(x, name, error) : PAWL_OK;
}

static int put_each(struct exporting *x, const json_t *package, const char *what, put_member put,
                    pawl_error *error)
{
    char qualified[256];
    const char *name;
    json_t *definition;
    json_object_foreach(json_object_get(package, what), name, definition)
    {
        snprintf(qualified, sizeof qualified, "%s.%s", json_text_in(package, "package"), name);
        int status = put(x, qualified, definition, error);
        if (status != PAWL_OK || ferror(x->out))
            return status;
    }
    return PAWL_OK;
}

/* All packages, for records and then for entities. */
static int put_state(struct exporting *x, pawl_error *error)
{
    static const struct {
        const char *what;
        put_member put;
    } parts[] = {{"types", put_records}, {"entities", put_entity}};
    pawl_text text;
    int status = session_schema_show(&x->session, SCHEMA_LINES, &text, error);
    if (status != PAWL_OK)
        return status;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        for (size_t at = 0; status == PAWL_OK && at < text.size;) {
            json_error_t end;
            json_t *package = json_loadb(text.data + at, text.size - at, JSON_DISABLE_EOF_CHECK, &end);
            if (!package)
                break;
            status = put_each(x, package, parts[i].what, parts[i].put, error);
            json_decref(package);
            at += (size_t)end.position;
            at += strspn(text.data + at, "\n");
        }
    pawl_text_free(&text);
    return status;
}

/* X1 */
static int finish(struct exporting *x, pawl_error *error)
{
    pawl_text text;
    int status = session_workspace_show(&x->session, x->wsid, &(pawl_read_options){0}, &text, error);
    if (status != PAWL_OK)
        return status;
    json_t *shown = json_loadb(text.data, text.size, 0, NULL);
    uint64_t now = json_u64_in(shown, "workspace_offset");
    json_decref(shown);
    pawl_text_free(&text);
    if (now != x->offset)
        return pawl_error_set(error, PAWL_ECONFLICT,
                              "workspace %" PRIu64 " was written to meanwhile: export it again, or first 'pawl "
                              "ws freeze %" PRIu64 "'",
                              x->wsid, x->wsid);
    fprintf(x->out, "{\"end\":{\"events\":%" PRIu64 ",\"records\":%" PRIu64 ",\"rows\":%" PRIu64 "}}\n",
            x->events, x->records, x->rows);
    return PAWL_OK;
}

static int export(struct exporting *x, pawl_error *error)
{
    int status = begin(x, error);
    if (status == PAWL_OK)
        status = put_events(x, error);
    if (status == PAWL_OK && !ferror(x->out))
        status = put_state(x, error);
    if (status == PAWL_OK && !ferror(x->out))
        status = finish(x, error);
    return status;
}

/* --- the file --- */

static int open_file(struct exporting *x, const char *file, pawl_error *error)
{
    x->out = stdout;
    if (!file)
        return PAWL_OK;
    if (asprintf(&x->part, "%s.new", file) < 0) {
        x->part = NULL;
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for the name of a file");
    }
    x->out = fopen(x->part, "we");
    return x->out ? PAWL_OK : pawl_error_errno(error, errno, "cannot write %s", x->part);
}

/* X3. Returns status, or what went wrong now. */
static int close_file(struct exporting *x, const char *file, int status, pawl_error *error)
{
    if (!x->part)
        return status;
    if (x->out) {
        bool written = !ferror(x->out) && fflush(x->out) == 0 && fsync(fileno(x->out)) == 0;
        int number = errno;
        written = fclose(x->out) == 0 && written;
        if (status == PAWL_OK && !written)
            status = pawl_error_errno(error, number, "cannot write %s", x->part);
        if (status == PAWL_OK && rename(x->part, file) != 0)
            status = pawl_error_errno(error, errno, "cannot rename %s", x->part);
        if (status != PAWL_OK)
            unlink(x->part);
    }
    free(x->part);
    return status;
}

static int run(const struct options *options)
{
    struct exporting x = {.lagging = options_get(options, "lagging") != NULL};
    pawl_error error = {0};
    const char *file = options_get(options, "out");
    if (options_argument(options, 0, "WSID", &x.wsid, &error) != PAWL_OK)
        return say_usage(&error);
    int code = session_open(options, OPEN_TO_READ, &x.session);
    if (code != CLI_OK)
        return code;
    progress_begin(&x.progress, "exporting", "lines");
    int status = open_file(&x, file, &error);
    if (status == PAWL_OK)
        status = export(&x, &error);
    progress_end(&x.progress);
    status = close_file(&x, file, status, &error);
    if (status == PAWL_OK && file && options_get(options, "json"))
        say_json(json_pack("{s:o,s:s,s:o,s:o,s:o}", "wsid", json_u64(x.wsid), "out", file, "events",
                           json_u64(x.events), "records", json_u64(x.records), "rows", json_u64(x.rows)));
    else if (status == PAWL_OK && file)
        printf("%s has workspace %" PRIu64 ": %" PRIu64 " events, %" PRIu64 " records, %" PRIu64
               " rows of entities\n",
               file, x.wsid, x.events, x.records, x.rows);
    return session_close(options, &x.session, status, &error);
}

const struct command command_ws_export = {
    .name = "ws export",
    .summary = "write everything of a workspace, as JSON lines",
    .about =
        "The workspace, its events, its records and its rows of entities, as its last event left them; the "
        "last\n"
        "line says how many there were. A workspace that is written to meanwhile cannot be exported: freeze "
        "it.\n",
    .arguments = {"WSID"},
    .options = {OPTIONS_WHERE,
                {"out", "FILE", "write it there, instead of to stdout"},
                {"lagging", NULL, "take rows that lanes have not brought up to date yet"},
                OPTION_JSON},
    .run = run,
};
