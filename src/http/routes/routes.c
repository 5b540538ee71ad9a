#include "http/routes/routes.h"

#include <stdio.h>
#include <string.h>

#define READING "min_offset timeout"

const struct route routes[] = {
    {METHOD_GET, "/health/live", SCOPE_NONE, 0, NULL, health_live, NULL, "whether the process answers"},
    {METHOD_GET, "/health/ready", SCOPE_NONE, ROUTE_WAITS, NULL, health_ready, NULL,
     "whether commands are taken"},
    {METHOD_GET, "/", SCOPE_NONE, 0, NULL, page_index, NULL, "the page"},
    {METHOD_GET, "/assets/{file}", SCOPE_NONE, 0, NULL, page_file, NULL, "a file of the page"},

    {METHOD_GET, "/openapi.json", SCOPE_NONE, 0, NULL, openapi_get, NULL,
     "what this server answers, as OpenAPI"},

    {METHOD_POST, "/v1/ws/{wsid}/commands", SCOPE_WRITE, 0, "ack stop_on_error", commands_post, commands_begin,
     "send a command, or many as NDJSON"},

    {METHOD_GET, "/v1/ws", SCOPE_READ, 0, "limit cursor", workspaces_list, NULL, "list the workspaces"},
    {METHOD_GET, "/v1/ws/{wsid}", SCOPE_READ, ROUTE_WAITS, READING, workspaces_show, NULL,
     "a workspace, with the last number of each sequence"},
    {METHOD_PUT, "/v1/ws/{wsid}", SCOPE_WRITE, ROUTE_WAITS, NULL, workspaces_create, NULL,
     "create a workspace"},
    {METHOD_POST, "/v1/ws/{wsid}/freeze", SCOPE_ADMIN, ROUTE_WAITS, NULL, workspaces_freeze, NULL,
     "let a workspace take no more commands"},
    {METHOD_POST, "/v1/ws/{wsid}/thaw", SCOPE_ADMIN, ROUTE_WAITS, NULL, workspaces_thaw, NULL,
     "let a frozen workspace take commands again"},

    {METHOD_GET, "/v1/ws/{wsid}/records/{id}", SCOPE_READ, 0, "type " READING, records_get, NULL, "a record"},
    {METHOD_GET, "/v1/ws/{wsid}/records", SCOPE_READ, 0, "type limit cursor " READING, records_list, NULL,
     "the records of a type"},
    {METHOD_GET, "/v1/ws/{wsid}/entities/{entity}/{key}", SCOPE_READ, 0, READING, entities_get, NULL,
     "a row of an entity"},
    {METHOD_GET, "/v1/ws/{wsid}/entities/{entity}", SCOPE_READ, 0, "key after limit cursor " READING,
     entities_list, NULL, "the rows of an entity, or one by its key"},
    {METHOD_GET, "/v1/ws/{wsid}/views/{view}", SCOPE_READ, 0,
     "key prefix from to exclusive desc complete limit cursor " READING, view_rows_of_workspace, NULL,
     "the rows of a view in a workspace, or one by its key"},
    {METHOD_GET, "/v1/views/{view}/rows", SCOPE_READ, 0,
     "prefix from to exclusive desc complete limit cursor " READING, view_rows_of_all, NULL,
     "the rows of a view in all workspaces"},

    {METHOD_GET, "/v1/schema", SCOPE_READ, 0, "lanes", schema_get, NULL, "the schema, a package on a line"},
    {METHOD_PUT, "/v1/schema", SCOPE_ADMIN, ROUTE_WAITS, NULL, schema_put, NULL, "apply a package's schema"},
    {METHOD_GET, "/v1/system/{table}", SCOPE_READ, 0, NULL, system_get, NULL, "a system table"},

    {METHOD_GET, "/v1/ws/{wsid}/events", SCOPE_READ, ROUTE_WAITS | ROUTE_STREAM, "from limit", events_workspace,
     NULL, "the events of a workspace"},
    {METHOD_GET, "/v1/partitions/{partition}/events", SCOPE_READ, ROUTE_WAITS | ROUTE_STREAM, "from limit",
     events_partition, NULL, "the events of a partition"},
    {METHOD_GET, "/v1/events", SCOPE_READ, ROUTE_WAITS | ROUTE_STREAM, "commands after limit", events_every,
     NULL, "the events of all partitions"},

    {METHOD_GET, "/v1/figures", SCOPE_READ, ROUTE_WAITS | ROUTE_STREAM, "limit", figures_get, NULL,
     "what it is doing"},
    {METHOD_GET, "/v1/alerts", SCOPE_READ, ROUTE_WAITS, NULL, alerts_get, NULL, "what is alarming"},
    {METHOD_GET, "/metrics", SCOPE_READ, ROUTE_WAITS, NULL, metrics_get, NULL, "figures for Prometheus"},

    {METHOD_POST, "/v1/leases", SCOPE_PROJECT, 0, NULL, leases_acquire, NULL,
     "lease an operation of a projector; wait for one"},
    {METHOD_POST, "/v1/leases/{partition}/{lane}/{n}/commit", SCOPE_PROJECT, 0, "wait", leases_commit, NULL,
     "commit the result of a lease"},
    {METHOD_POST, "/v1/leases/{partition}/{lane}/{n}/extend", SCOPE_PROJECT, ROUTE_WAITS, NULL, leases_extend,
     NULL, "extend a lease"},
    {METHOD_POST, "/v1/leases/{partition}/{lane}/{n}/release", SCOPE_PROJECT, ROUTE_WAITS, NULL, leases_release,
     NULL, "give a lease back, or say that the work failed"},
    {METHOD_GET, "/v1/leases/{partition}/{lane}/{n}/entities/{entity}/{key}", SCOPE_PROJECT, ROUTE_WAITS,
     "operation", leases_get, NULL, "a row, read for a lease"},
    {METHOD_GET, "/v1/leases/{partition}/{lane}/{n}/entities/{entity}", SCOPE_PROJECT, ROUTE_WAITS,
     "operation after limit", leases_list, NULL, "rows, read for a lease"},

    {METHOD_GET, "/v1/leases", SCOPE_READ, ROUTE_WAITS, "lane partition from limit", lanes_all_leases, NULL,
     "operations under way, and the last ones committed"},
    {METHOD_GET, "/v1/leases/stats", SCOPE_READ, ROUTE_WAITS, "lane", lanes_stats, NULL,
     "what leases come to, and what is alarming"},
    {METHOD_POST, "/v1/leases/{partition}/{lane}/{n}/retry", SCOPE_ADMIN, ROUTE_WAITS, NULL, leases_retry, NULL,
     "try a stalled operation again"},
    {METHOD_POST, "/v1/leases/{partition}/{lane}/{n}/void", SCOPE_ADMIN, ROUTE_WAITS, NULL, leases_void, NULL,
     "decide that an operation writes nothing"},
    {METHOD_POST, "/v1/leases/{partition}/{lane}/{n}/reclaim", SCOPE_ADMIN, ROUTE_WAITS, NULL, leases_reclaim,
     NULL, "take a lease back"},
    {METHOD_GET, "/v1/projectors", SCOPE_READ, 0, NULL, projectors_list, NULL, "the projectors"},
    {METHOD_GET, "/v1/lanes", SCOPE_READ, ROUTE_WAITS, NULL, lanes_list, NULL, "how far the lanes have come"},
    {METHOD_GET, "/v1/lanes/wait", SCOPE_READ, ROUTE_WAITS, "lane timeout", lanes_wait, NULL,
     "wait until the lanes have caught up"},
    {METHOD_GET, "/v1/lanes/{lane}", SCOPE_READ, ROUTE_WAITS, NULL, lanes_show, NULL,
     "how far a lane has come"},
    {METHOD_GET, "/v1/lanes/{lane}/leases", SCOPE_READ, ROUTE_WAITS, "partition from limit", lanes_leases, NULL,
     "operations of a lane under way, and the last ones committed"},
    {METHOD_POST, "/v1/lanes/{lane}/rebuild", SCOPE_ADMIN, ROUTE_WAITS, NULL, lanes_rebuild, NULL,
     "build the tables of a lane anew"},
    {METHOD_POST, "/v1/lanes/{lane}/pause", SCOPE_ADMIN, ROUTE_WAITS, NULL, lanes_pause, NULL, "pause a lane"},
    {METHOD_POST, "/v1/lanes/{lane}/resume", SCOPE_ADMIN, ROUTE_WAITS, NULL, lanes_resume, NULL,
     "let a lane go on"},
    {METHOD_GET, "/v1/operations", SCOPE_READ, ROUTE_WAITS,
     "lane partition ws generation from source entity limit", operations_list, NULL,
     "what a lane has made of events"},

    {METHOD_GET, "/v1/views", SCOPE_READ, ROUTE_WAITS, NULL, views_list, NULL, "how views are doing"},
    {METHOD_POST, "/v1/views", SCOPE_ADMIN, ROUTE_WAITS, NULL, views_create, NULL, "make a view"},
    {METHOD_PUT, "/v1/views/throttle", SCOPE_ADMIN, ROUTE_WAITS, NULL, views_throttle, NULL,
     "bound the rows that building views reads in a second"},
    {METHOD_POST, "/v1/views/pause", SCOPE_ADMIN, ROUTE_WAITS, NULL, views_pause_all, NULL,
     "stop building views"},
    {METHOD_POST, "/v1/views/resume", SCOPE_ADMIN, ROUTE_WAITS, NULL, views_resume_all, NULL,
     "go on building views"},
    {METHOD_GET, "/v1/views/{view}", SCOPE_READ, ROUTE_WAITS, NULL, views_show, NULL, "how a view is doing"},
    {METHOD_DELETE, "/v1/views/{view}", SCOPE_ADMIN, ROUTE_WAITS, NULL, views_drop, NULL, "drop a view"},
    {METHOD_POST, "/v1/views/{view}/rebuild", SCOPE_ADMIN, ROUTE_WAITS, NULL, views_rebuild, NULL,
     "build a view anew"},
    {METHOD_POST, "/v1/views/{view}/pause", SCOPE_ADMIN, ROUTE_WAITS, NULL, views_pause, NULL,
     "stop building a view"},
    {METHOD_POST, "/v1/views/{view}/resume", SCOPE_ADMIN, ROUTE_WAITS, NULL, views_resume, NULL,
     "go on building a view"},
    {METHOD_GET, "/v1/tablets", SCOPE_READ, ROUTE_WAITS, NULL, tablets_list, NULL, "the tablets"},
    {METHOD_POST, "/v1/tablets/split", SCOPE_ADMIN, ROUTE_WAITS, NULL, tablets_split, NULL,
     "cut every tablet in two"},
    {METHOD_POST, "/v1/tablets/merge", SCOPE_ADMIN, ROUTE_WAITS, NULL, tablets_merge, NULL,
     "join the tablets in pairs"},
    {METHOD_GET, "/v1/sequences", SCOPE_READ, ROUTE_WAITS, "ws limit cursor", sequences_list, NULL,
     "the last number of each sequence"},

    {METHOD_POST, "/v1/verify", SCOPE_ADMIN, 0, NULL, jobs_verify, NULL, "begin to verify the directory"},
    {METHOD_POST, "/v1/audit", SCOPE_ADMIN, 0, NULL, jobs_audit, NULL, "begin to audit it"},
    {METHOD_POST, "/v1/backup", SCOPE_ADMIN, ROUTE_WAITS, NULL, jobs_backup, NULL, "begin a backup"},
    {METHOD_GET, "/v1/jobs", SCOPE_READ, 0, NULL, jobs_read, NULL, "the jobs, the newest first"},
    {METHOD_GET, "/v1/jobs/{id}", SCOPE_READ, 0, NULL, jobs_get, NULL, "how a job is doing"},
    {METHOD_DELETE, "/v1/jobs/{id}", SCOPE_ADMIN, 0, NULL, jobs_delete, NULL, "cancel a job"},

    {METHOD_GET, "/v1/tokens", SCOPE_ADMIN, ROUTE_WAITS, NULL, tokens_list, NULL, "the access tokens"},
    {METHOD_POST, "/v1/tokens", SCOPE_ADMIN, ROUTE_WAITS, NULL, tokens_create, NULL, "make an access token"},
    {METHOD_DELETE, "/v1/tokens/{name}", SCOPE_ADMIN, ROUTE_WAITS, NULL, tokens_revoke, NULL,
     "take an access token away"},
};

const size_t route_count = sizeof routes / sizeof routes[0];

/* The next segment of a pattern; NULL: there is none. */
static const char *next_segment(const char **pattern, size_t *ret_size)
{
    if (**pattern != '/' || (*pattern)[1] == '\0')
        return NULL;
    const char *segment = *pattern + 1;
    *ret_size = strcspn(segment, "/");
    *pattern = segment + *ret_size;
    return segment;
}

static bool fits(const struct route *route, const struct target *target)
{
    const char *rest = route->pattern, *segment;
    size_t size, count = 0;
    while ((segment = next_segment(&rest, &size))) {
        if (count == target->segment_count)
            return false;
        const char *said = target->segments[count++];
        if (segment[0] != '{' && (strlen(said) != size || memcmp(said, segment, size) != 0))
            return false;
    }
    return count == target->segment_count;
}

const struct route *route_find(enum http_method method, const struct target *target, unsigned *ret_allowed)
{
    unsigned allowed = 0;
    for (size_t i = 0; i < route_count; i++) {
        if (!fits(&routes[i], target))
            continue;
        if (routes[i].method == method)
            return &routes[i];
        allowed |= routes[i].method;
    }
    *ret_allowed = allowed;
    return NULL;
}

size_t route_place(const struct route *route, const char *name)
{
    const char *rest = route->pattern, *segment;
    size_t size, length = strlen(name);
    for (size_t place = 0; (segment = next_segment(&rest, &size)); place++)
        if (size == length + 2 && segment[0] == '{' && memcmp(segment + 1, name, length) == 0)
            return place;
    return SIZE_MAX;
}

bool route_lists(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at && *at;) {
        size_t size = strcspn(at, " ");
        if (size == length && memcmp(at, name, size) == 0)
            return true;
        at += size;
        at += strspn(at, " ");
    }
    return false;
}

static const struct {
    const char *name;
    enum http_method method;
} methods[] = {{"GET", METHOD_GET},
               {"HEAD", METHOD_GET},
               {"POST", METHOD_POST},
               {"PUT", METHOD_PUT},
               {"DELETE", METHOD_DELETE}};

#define METHODS (sizeof methods / sizeof methods[0])

enum http_method method_of(const char *name)
{
    for (size_t i = 0; i < METHODS; i++)
        if (strcmp(methods[i].name, name) == 0)
            return methods[i].method;
    return 0;
}

void methods_format(unsigned allowed, char *text)
{
    size_t size = 0;
    text[0] = '\0';
    for (size_t i = 0; i < METHODS; i++)
        if (allowed & methods[i].method)
            size += (size_t)snprintf(text + size, METHODS_TEXT_MAX - size, "%s%s", size ? ", " : "",
                                     methods[i].name);
}
