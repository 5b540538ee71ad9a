#include "engine/log/import_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "engine/directory/directory.h"
#include "engine/log/cluster.h"

static void look(void *arg, uint64_t node, const pawl_entry *entry)
{
    if (entry)
        import_entry(arg, node, entry->body);
    else
        import_claimed(arg, node);
}

int import_look(pawl_log *log, struct import_watch *ret_watch, pawl_error *error)
{
    struct import_watch watch = {0};
    int status = cluster_scan(log, (pawl_stream){.kind = PAWL_STREAM_GROUP0}, look, &watch, error);
    if (status == PAWL_OK)
        *ret_watch = watch;
    return status;
}

int import_check(pawl_log *log, const char *url, pawl_error *error)
{
    struct import_watch watch;
    int status = import_look(log, &watch, error);
    if (status != PAWL_OK || watch.state != IMPORT_UNDER_WAY)
        return status;
    return error_set(
        error, PAWL_EBUSY,
        "a directory's log is being imported into %.300s, or that was not ended: wait for it, or run 'pawl "
        "cluster import' again, which goes on where it was",
        url);
}

uint16_t name_directory(const char *dir, char name[ASSIGNMENT_NAME_MAX + 1])
{
    char host[128] = "", path[NODE_PATH_MAX], whole[sizeof host + NODE_PATH_MAX + 2];
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    snprintf(whole, sizeof whole, "%s:%s", host[0] ? host : "?", realpath(dir, path) ? path : dir);
    size_t size = strnlen(whole, ASSIGNMENT_NAME_MAX);
    memcpy(name, whole, size);
    name[size] = '\0';
    return (uint16_t)size;
}
