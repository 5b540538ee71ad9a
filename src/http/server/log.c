/* http/server/log.c: lines of the log, as JSON. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "http/server/server.h"

bool server_logs(const struct pawl_server *server, pawl_log_level level)
{
    return server->options.log && level <= server->options.level;
}

static const char *level_name(pawl_log_level level)
{
    switch (level) {
    case PAWL_LOG_ERROR: return "error";
    case PAWL_LOG_WARNING: return "warning";
    case PAWL_LOG_INFO: return "info";
    default: return "debug";
    }
}

void server_log(struct pawl_server *server, pawl_log_level level, const char *message, json_t *more)
{
    char when[PAWL_WALL_TEXT_MAX];
    struct timespec now;
    if (!server_logs(server, level)) {
        json_decref(more);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    pawl_wall_format((pawl_wall){(int64_t)now.tv_sec * (int64_t)PAWL_SECOND + now.tv_nsec / 1000000 * 1000000},
                     when);
    json_t *line = json_pack("{s:s,s:s,s:s}", "time", when, "level", level_name(level), "message", message);
    if (line && more)
        json_object_update_missing(line, more);
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    if (text)
        server->options.log(server->options.log_arg, level, (pawl_bytes){text, strlen(text)});
    free(text);
    json_decref(line);
    json_decref(more);
}
