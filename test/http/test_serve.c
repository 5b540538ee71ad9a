/* test_serve.c: a program that embeds the server: it begins and ends with its options, and says where it is. */
#include <arpa/inet.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "test/lib/dir.h"

#include <pawl/pawl.h>
#include <pawl/serve.h>

struct bed {
    char dir[128];
    pawl_engine *engine;
};

static void set_up(struct bed *bed, bool read_only)
{
    char data[160];
    pawl_error error = {0};
    test_dir_make(bed->dir, sizeof bed->dir);
    snprintf(data, sizeof data, "%s/data", bed->dir);
    if (pawl_open(data, NULL, &bed->engine, &error) != PAWL_OK)
        fail_msg("%s", error.text);
    if (!read_only)
        return;
    assert_int_equal(pawl_close(bed->engine), PAWL_OK);
    const pawl_options options = {.read_only = true};
    assert_int_equal(pawl_open(data, &options, &bed->engine, &error), PAWL_OK);
}

static void tear_down(struct bed *bed)
{
    assert_int_equal(pawl_close(bed->engine), PAWL_OK);
    test_dir_remove(bed->dir);
}

/* The status of a GET on a connection of its own. */
static int get(uint16_t port, const char *path)
{
    char text[512];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    int size =
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    assert_int_equal(write(fd, text, (size_t)size), size);
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    assert_true(got > 12);
    text[got] = '\0';
    return (int)strtol(text + 9, NULL, 10);
}

TEST(serves_on_a_free_port_and_a_socket_until_it_is_stopped)
{
    struct bed bed;
    pawl_server *server;
    pawl_error error = {0};
    struct stat there;
    char url[64], path[256];
    set_up(&bed, false);
    const pawl_serve_options options = {.listen = "127.0.0.1:0"};
    if (pawl_serve(bed.engine, &options, &server, &error) != PAWL_OK)
        fail_msg("%s", error.text);
    uint16_t port = pawl_server_port(server);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
    assert_string_equal(pawl_server_url(server), url);
    snprintf(path, sizeof path, "%s/pawl.sock", pawl_engine_dir(bed.engine));
    assert_string_equal(pawl_server_socket(server), path);
    assert_int_equal(stat(path, &there), 0);
    assert_int_equal(get(port, "/health/live"), 200);
    assert_int_equal(get(port, "/health/ready"), 200);
    assert_int_equal(get(port, "/nowhere"), 404);
    pawl_server_stop(server);
    assert_int_equal(stat(path, &there), -1);
    tear_down(&bed);
}

TEST(may_listen_on_the_socket_alone_or_on_tcp_alone)
{
    struct bed bed;
    pawl_server *server;
    set_up(&bed, false);
    const pawl_serve_options local = {.listen = ""};
    assert_int_equal(pawl_serve(bed.engine, &local, &server, NULL), PAWL_OK);
    assert_string_equal(pawl_server_url(server), "");
    assert_int_equal(pawl_server_port(server), 0);
    pawl_server_stop(server);
    const pawl_serve_options tcp = {.listen = "localhost:0", .socket = ""};
    assert_int_equal(pawl_serve(bed.engine, &tcp, &server, NULL), PAWL_OK);
    assert_string_equal(pawl_server_socket(server), "");
    assert_true(pawl_server_port(server) > 0);
    pawl_server_stop(server);
    tear_down(&bed);
}

TEST(an_engine_that_only_reads_has_no_socket)
{
    struct bed bed;
    pawl_server *server;
    set_up(&bed, true);
    assert_false(pawl_engine_writes(bed.engine));
    const pawl_serve_options options = {.listen = "127.0.0.1:0"};
    assert_int_equal(pawl_serve(bed.engine, &options, &server, NULL), PAWL_OK);
    assert_string_equal(pawl_server_socket(server), "");
    assert_int_equal(get(pawl_server_port(server), "/health/ready"), 200);
    assert_int_equal(get(pawl_server_port(server), "/v1/partitions/0/events"), 200);
    assert_int_equal(get(pawl_server_port(server), "/v1/figures"), 200);
    assert_int_equal(get(pawl_server_port(server), "/metrics"), 200);
    pawl_server_stop(server);
    tear_down(&bed);
}

TEST(wrong_options_are_refused_and_leave_nothing_behind)
{
    struct bed bed;
    pawl_server *server = NULL;
    set_up(&bed, false);
    const struct {
        pawl_serve_options options;
        int status;
        const char *words;
    } wrong[] = {
        {{.listen = "7295"}, PAWL_EINVAL, "HOST:PORT"},
        {{.listen = "0.0.0.0:0"}, PAWL_EACCES, "TLS"},
        {{.listen = "127.0.0.1:0", .tls_key = "x"}, PAWL_EINVAL, "together"},
        {{.listen = "127.0.0.1:0", .limits = {.threads = 65}}, PAWL_EINVAL, "limits.threads"},
        {{.listen = "127.0.0.1:0", .limits = {.stalled = 1}}, PAWL_EINVAL, "limits.stalled"},
        {{.listen = "127.0.0.1:0", .limits = {.header_bytes = 100}}, PAWL_EINVAL, "limits.header_bytes"},
        {{.listen = "127.0.0.1:0", .limits = {.body_bytes = PAWL_REQUEST_JSON_MAX + 1}},
         PAWL_EINVAL,
         "limits.body_bytes"},
        {{.listen = "127.0.0.1:0", .socket = "/no/such/folder/s"}, PAWL_ENOTFOUND, "/no/such/folder"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pawl_error error = {0};
        int status = pawl_serve(bed.engine, &wrong[i].options, &server, &error);
        if (status != wrong[i].status || !strstr(error.text, wrong[i].words))
            fail_msg("%zu: %d, %s", i, status, error.text);
        assert_null(server);
    }
    tear_down(&bed);
}

static void count_line(void *arg, pawl_log_level level, pawl_bytes line)
{
    atomic_int *counts = arg;
    assert_true(level >= PAWL_LOG_ERROR && level <= PAWL_LOG_DEBUG);
    assert_int_equal(((const char *)line.data)[0], '{');
    assert_int_equal(((const char *)line.data)[line.size - 1], '}');
    counts[level]++;
}

TEST(the_log_has_lines_up_to_the_level_that_was_asked_for)
{
    struct bed bed;
    pawl_server *server;
    atomic_int counts[PAWL_LOG_DEBUG + 1] = {0};
    set_up(&bed, false);
    pawl_serve_options options = {
        .listen = "127.0.0.1:0", .log = count_line, .log_arg = counts, .level = PAWL_LOG_WARNING};
    assert_int_equal(pawl_serve(bed.engine, &options, &server, NULL), PAWL_OK);
    get(pawl_server_port(server), "/health/live");
    pawl_server_stop(server);
    for (int i = 0; i <= PAWL_LOG_DEBUG; i++)
        assert_int_equal(counts[i], 0);
    options.level = PAWL_LOG_DEBUG;
    options.slow = 1; /* ns: everything is slow */
    assert_int_equal(pawl_serve(bed.engine, &options, &server, NULL), PAWL_OK);
    get(pawl_server_port(server), "/health/live");
    pawl_server_stop(server);
    assert_true(counts[PAWL_LOG_WARNING] == 1 && counts[PAWL_LOG_INFO] == 2);
    tear_down(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(serves_on_a_free_port_and_a_socket_until_it_is_stopped),
        RUN(may_listen_on_the_socket_alone_or_on_tcp_alone),
        RUN(an_engine_that_only_reads_has_no_socket),
        RUN(wrong_options_are_refused_and_leave_nothing_behind),
        RUN(the_log_has_lines_up_to_the_level_that_was_asked_for),
    };
    return TEST_MAIN(tests);
}
