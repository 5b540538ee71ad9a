/* http/routes/routes.h: the table of all routes, and the one that a request is for.
 *
 * To add a route: write its handler in the file of its group, declare it below, and add a row to the table in
 * routes.c. docs/HTTP.md has a row for it, too; a test compares the two. */
#ifndef HTTP_ROUTES_ROUTES_H
#define HTTP_ROUTES_ROUTES_H

#include "http/exchange/exchange.h"

enum http_method {
    METHOD_GET = 1, /* HEAD, too */
    METHOD_POST = 2,
    METHOD_PUT = 4,
    METHOD_DELETE = 8,
};

enum route_flag {
    ROUTE_WAITS = 1,  /* the handler may block: it is run on the pool */
    ROUTE_STREAM = 2, /* it may follow something for long: it is counted against limits.streams */
};

struct route {
    enum http_method method;
    const char *pattern; /* "/v1/ws/{wsid}/records/{id}" */
    enum access_scope scope;
    unsigned flags;
    const char *params; /* names of its query parameters, with blanks between them; NULL: none */
    exchange_step handler;
    exchange_step begin; /* NULL, or called when the headers are there and access is granted, before the body */
    const char *summary;
};

extern const struct route routes[];
extern const size_t route_count;

/* The first route that fits. NULL: there is none; *ret_allowed then has the methods that the path is there for,
 * 0 if there is no such path. The path of a pattern and its segments are compared byte by byte. */
const struct route *route_find(enum http_method method, const struct target *target, unsigned *ret_allowed);

/* The place of {name} in the pattern, as the index of a segment; SIZE_MAX: it has none. */
size_t route_place(const struct route *route, const char *name);

/* Whether name is in a list with blanks. */
bool route_lists(const char *list, const char *name);

/* The method with this name; 0: none that is known. */
enum http_method method_of(const char *name);

/* The value of an Allow header. text has METHODS_TEXT_MAX bytes. */
#define METHODS_TEXT_MAX 40
void methods_format(unsigned methods, char *text);

/* --- handlers, by file --- */

/* health.c */
void health_live(struct exchange *x);
void health_ready(struct exchange *x);

/* page.c */
void page_index(struct exchange *x);
void page_file(struct exchange *x);

/* openapi.c */
void openapi_get(struct exchange *x);

/* commands.c */
void commands_begin(struct exchange *x);
void commands_post(struct exchange *x);

/* workspaces.c */
void workspaces_list(struct exchange *x);
void workspaces_show(struct exchange *x);
void workspaces_create(struct exchange *x);
void workspaces_freeze(struct exchange *x);
void workspaces_thaw(struct exchange *x);

/* rows.c */
void records_get(struct exchange *x);
void records_list(struct exchange *x);
void entities_get(struct exchange *x);
void entities_list(struct exchange *x);

/* view_rows.c */
void view_rows_of_workspace(struct exchange *x);
void view_rows_of_all(struct exchange *x);

/* schema.c */
void schema_get(struct exchange *x);
void schema_put(struct exchange *x);
void system_get(struct exchange *x);

/* events.c */
void events_workspace(struct exchange *x);
void events_partition(struct exchange *x);
void events_every(struct exchange *x);

/* figures.c */
void figures_get(struct exchange *x);
void alerts_get(struct exchange *x);

/* metrics.c */
void metrics_get(struct exchange *x);

/* leases.c */
void leases_acquire(struct exchange *x);
void leases_commit(struct exchange *x);
void leases_extend(struct exchange *x);
void leases_release(struct exchange *x);
void leases_get(struct exchange *x);
void leases_list(struct exchange *x);

/* lanes.c */
void projectors_list(struct exchange *x);
void lanes_list(struct exchange *x);
void lanes_show(struct exchange *x);
void lanes_stats(struct exchange *x);
void lanes_leases(struct exchange *x);
void lanes_all_leases(struct exchange *x);
void lanes_rebuild(struct exchange *x);
void lanes_pause(struct exchange *x);
void lanes_resume(struct exchange *x);
void leases_retry(struct exchange *x);
void leases_reclaim(struct exchange *x);
void leases_void(struct exchange *x);
void lanes_wait(struct exchange *x);

/* operations.c */
void operations_list(struct exchange *x);

/* tokens.c */
void tokens_list(struct exchange *x);
void tokens_create(struct exchange *x);
void tokens_revoke(struct exchange *x);

/* views.c */
void views_list(struct exchange *x);
void views_show(struct exchange *x);
void views_create(struct exchange *x);
void views_drop(struct exchange *x);
void views_rebuild(struct exchange *x);
void views_pause(struct exchange *x);
void views_resume(struct exchange *x);
void views_pause_all(struct exchange *x);
void views_resume_all(struct exchange *x);
void views_throttle(struct exchange *x);
void tablets_list(struct exchange *x);
void tablets_split(struct exchange *x);
void tablets_merge(struct exchange *x);
void sequences_list(struct exchange *x);

/* maintenance.c */
void jobs_verify(struct exchange *x);
void jobs_audit(struct exchange *x);
void jobs_backup(struct exchange *x);
void jobs_read(struct exchange *x);
void jobs_get(struct exchange *x);
void jobs_delete(struct exchange *x);

#endif
