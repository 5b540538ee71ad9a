#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pawl/serve.h>

#include "bench/http/http.h"

const char schema[] =
    "{\"schema\": 1, \"package\": \"bench\", \"workspaces\": {\"tenant\": {\"sequences\": {\"invoice\": "
    "{\"first\": 1}}}},"
    " \"types\": {\"Invoice\": {\"kind\": \"WDoc\", \"fields\": {"
    "   \"number\": {\"type\": \"int64\", \"sequence\": \"invoice\"}, \"cents\": {\"type\": \"int64\"},"
    "   \"text\": {\"type\": \"string\"}}}},"
    " \"commands\": {\"Bill\": {\"records\": [\"Invoice\"]}}}";

const char command_body[] =
    "{\"command\":\"bench.Bill\",\"records\":[{\"id\":1,\"type\":\"bench.Invoice\",\"fields\":"
    "{\"cents\":12345,\"text\":\"" TEXT "\"}}]}";

size_t http_post(char *text, size_t room, uint64_t wsid, const char *type, const char *body)
{
    int size = snprintf(text, room,
                        "POST /v1/ws/%" PRIu64 "/commands HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n"
                        "Content-Length: %zu\r\n\r\n%s",
                        wsid, type, strlen(body), body);
    return size > 0 && (size_t)size < room ? (size_t)size : 0;
}

/* In each workspace one record, which has the same ID in all. */
static bool fill(pawl_engine *engine, uint64_t *ret_id, pawl_error *error)
{
    pawl_request *request;
    uint64_t id = 0;
    if (pawl_request_new(engine, &request) != PAWL_OK)
        return false;
    bool ok = true;
    for (uint64_t wsid = 1; ok && wsid <= WORKSPACES; wsid++) {
        ok = pawl_workspace_create(engine, request, wsid, "bench.tenant", NULL, error) == PAWL_OK
             && pawl_request_json(request, wsid, (pawl_bytes){command_body, sizeof command_body - 1}) == PAWL_OK
             && pawl_command(engine, request, NULL, error) == PAWL_OK;
        ok = ok && (id == 0 || pawl_request_id(request, 1) == id);
        id = pawl_request_id(request, 1);
    }
    pawl_request_free(request);
    *ret_id = id;
    return ok;
}

pawl_engine *engine_make(const char *dir, uint64_t *ret_id)
{
    char path[PATH_MAX];
    pawl_engine *engine;
    pawl_error error = {0};
    snprintf(path, sizeof path, "%s/pawl", dir);
    if (pawl_open(path, NULL, &engine, &error) != PAWL_OK) {
        bench_failed(path, &error);
        return NULL;
    }
    if (pawl_schema_apply(engine, schema, NULL, &error) == PAWL_OK && fill(engine, ret_id, &error))
        return engine;
    bench_failed("engine", &error);
    pawl_close(engine);
    return NULL;
}

struct said {
    uint64_t id;
    uint16_t port;
};

/* The process of the server: it says its port, and ends when stop is closed. */
static int serve(const char *dir, int said, int stop)
{
    pawl_server *server;
    pawl_error error = {0};
    const pawl_serve_options options = {.listen = "127.0.0.1:0", .socket = ""};
    struct said words;
    char byte;
    pawl_engine *engine = engine_make(dir, &words.id);
    if (!engine)
        return 1;
    if (pawl_serve(engine, &options, &server, &error) != PAWL_OK) {
        bench_failed("serve", &error);
        return 1;
    }
    words.port = pawl_server_port(server);
    bool ok = write(said, &words, sizeof words) == sizeof words;
    while (read(stop, &byte, 1) > 0) {
    }
    pawl_server_stop(server);
    return pawl_close(engine) == PAWL_OK && ok ? 0 : 1;
}

double process_mib(pid_t pid)
{
    char path[64];
    char line[128];
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "re");
    bool read_line = file && fgets(line, sizeof line, file);
    if (file)
        fclose(file);
    const char *resident = read_line ? strchr(line, ' ') : NULL; /* the second number, of pages */
    return resident ? strtod(resident, NULL) * (double)sysconf(_SC_PAGESIZE) / (1 << 20) : 0;
}

bool served_start(const char *dir, struct served *ret_served)
{
    int said[2], stop[2];
    if (pipe(said) != 0 || pipe(stop) != 0)
        return bench_failed("pipe", NULL) > 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(said[0]);
        close(stop[1]);
        _exit(serve(dir, said[1], stop[0]));
    }
    close(said[1]);
    close(stop[0]);
    *ret_served = (struct served){.pid = pid, .stop = stop[1]};
    struct said words = {0};
    bool ok = pid > 0 && read(said[0], &words, sizeof words) == sizeof words;
    close(said[0]);
    ret_served->port = words.port;
    ret_served->id = words.id;
    ret_served->idle_mib = ok ? process_mib(pid) : 0;
    if (!ok)
        served_stop(ret_served);
    return ok;
}

void served_stop(struct served *served)
{
    close(served->stop);
    if (served->pid > 0)
        waitpid(served->pid, NULL, 0);
    served->pid = 0;
}
