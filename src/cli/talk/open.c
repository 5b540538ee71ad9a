#include "cli/talk/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/show/left_out.h"
#include "cli/show/progress.h"

#define READ_BYTES ((size_t)64 << 10)

int try_open(const char *dir, enum opening opening, pawl_engine **ret_engine, pawl_error *error)
{
    pawl_directory directory;
    pawl_options how = {.must_exist = true, .read_only = opening == OPEN_TO_READ};
    if (pawl_directory_get(dir, &directory, NULL) == PAWL_ENOTFOUND)
        return pawl_error_set(error, PAWL_ENOTFOUND,
                              "%s is not a Pawl directory; 'pawl init --dir %s' makes one", dir, dir);
    return pawl_open(dir, &how, ret_engine, error);
}

int owner_failure(const struct options *options, const pawl_error *error)
{
    int code = say_failure(options, error);
    return error->code == PAWL_EFENCED ? CLI_OWNED : code;
}

int open_dir(const struct options *options, enum opening opening, pawl_engine **ret_engine)
{
    const char *dir;
    pawl_error error = {0};
    if (options_dir(options, &dir, &error) != PAWL_OK)
        return say_usage(&error);
    return try_open(dir, opening, ret_engine, &error) == PAWL_OK ? CLI_OK : owner_failure(options, &error);
}

struct deriving {
    struct progress progress;
    const sigset_t *signals;
    bool shown;
};

static bool is_signalled(const sigset_t *signals)
{
    sigset_t pending;
    return signals && sigpending(&pending) == 0
           && ((sigismember(&pending, SIGINT) == 1 && sigismember(signals, SIGINT) == 1)
               || (sigismember(&pending, SIGTERM) == 1 && sigismember(signals, SIGTERM) == 1));
}

static bool derive(void *arg, uint64_t done, uint64_t total)
{
    struct deriving *d = arg;
    if (!d->shown)
        progress_begin(&d->progress, "deriving", "events");
    d->shown = true;
    if (d->progress.terminal) /* otherwise stderr may be the server's log, of JSON lines */
        (void)progress_count(&d->progress, done, total);
    return !is_signalled(d->signals);
}

int open_owner(const struct options *options, const char *dir, const pawl_options *how, const sigset_t *signals,
               pawl_engine **ret_engine)
{
    pawl_error error = {0};
    pawl_directory directory;
    struct deriving deriving = {.signals = signals};
    pawl_options filled = *how;
    filled.progress = derive;
    filled.progress_arg = &deriving;
    if (pawl_open_check(dir, &filled, &error) != PAWL_OK)
        return say_usage(&error);
    if (!how->log && !how->must_be_new) {
        filled.must_exist = true;
        if (pawl_directory_get(dir, &directory, NULL) == PAWL_ENOTFOUND) {
            pawl_error_set(&error, PAWL_ENOTFOUND, "%s is not a Pawl directory; 'pawl init --dir %s' makes one",
                           dir, dir);
            return say_failure(options, &error);
        }
    }
    int status = pawl_open(dir, &filled, ret_engine, &error);
    if (deriving.shown)
        progress_end(&deriving.progress);
    return status == PAWL_OK ? CLI_OK : owner_failure(options, &error);
}

int try_open_to_wait(const char *dir, pawl_engine **ret_engine, bool *ret_reading, pawl_error *error)
{
    int status = try_open(dir, OPEN_TO_WRITE, ret_engine, error);
    *ret_reading = status == PAWL_ELOCKED;
    return status == PAWL_ELOCKED ? try_open(dir, OPEN_TO_READ, ret_engine, error) : status;
}

void say_left_out(pawl_engine *engine)
{
    struct left_out left_out = {0};
    if (pawl_unwitnessed(engine, left_out_note, &left_out, NULL) == PAWL_OK)
        left_out_say(&left_out);
}

int end_output(const struct options *options, int status, pawl_error *error)
{
    if (status != PAWL_OK) {
        fflush(stdout);
        error->code = status;
        return say_failure(options, error);
    }
    status = say_finish(error);
    return status == PAWL_OK || status == PAWL_ECLOSED ? CLI_OK : say_failure(options, error);
}

int close_dir(const struct options *options, pawl_engine *engine, int status, pawl_error *error)
{
    if (status == PAWL_OK)
        say_left_out(engine);
    bool taken_over = status == PAWL_EFENCED && pawl_owner_check(engine, NULL) == PAWL_EFENCED;
    int closed = pawl_close(engine);
    if (status == PAWL_OK && closed != PAWL_OK)
        status = pawl_error_set(error, closed, "cannot close it cleanly; what was acknowledged is durable");
    int code = end_output(options, status, error);
    return taken_over ? CLI_OWNED : code;
}

int open_log(const char *where, bool read_only, struct open_log *ret_log, pawl_error *error)
{
    struct open_log open;
    int status = pawl_env_open(NULL, &open.env, error);
    if (status != PAWL_OK)
        return status;
    const pawl_log_options how = {.env = open.env, .read_only = read_only};
    status = pawl_log_open(where, &how, &open.log, error);
    if (status == PAWL_OK)
        *ret_log = open;
    else
        pawl_env_close(open.env);
    return status;
}

int close_log(struct open_log *log)
{
    int status = pawl_log_close(log->log);
    pawl_env_close(log->env);
    return status;
}

int options_read(const struct options *options, pawl_read_options *ret_read, pawl_error *error)
{
    pawl_read_options read = {0};
    int status = options_number(options, "min-offset", 1, 0, &read.min_offset, error);
    if (status == PAWL_OK)
        *ret_read = read;
    return status;
}

void print_text(pawl_text *text)
{
    fwrite(text->data, 1, text->size, stdout);
    pawl_text_free(text);
}

/* Read the file to its end. */
static int read_all(int fd, const char *file, size_t bytes_max, char **data, size_t *size, pawl_error *error)
{
    size_t room = 0;
    for (;;) {
        if (room - *size < READ_BYTES + 1) {
            room = room ? room * 2 : 4 * READ_BYTES;
            char *more = realloc(*data, room);
            if (!more)
                return pawl_error_set(error, PAWL_ENOMEM, "no memory to read %s", file);
            *data = more;
        }
        ssize_t n = read(fd, *data + *size, READ_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return pawl_error_errno(error, errno, "cannot read %s", file);
        if (n == 0)
            return PAWL_OK;
        *size += (size_t)n;
        if (*size > bytes_max)
            return pawl_error_set(error, PAWL_ETOOBIG, "%s has more than %zu bytes", file, bytes_max);
    }
}

int read_whole(const char *file, size_t bytes_max, char **ret_data, size_t *ret_size, pawl_error *error)
{
    bool standard = strcmp(file, "-") == 0;
    char *data = NULL;
    size_t size = 0;
    int fd = standard ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return pawl_error_errno(error, errno, "cannot open %s", file);
    int status = read_all(fd, standard ? "the input" : file, bytes_max, &data, &size, error);
    if (!standard)
        close(fd);
    if (status != PAWL_OK) {
        free(data);
        return status;
    }
    data[size] = '\0'; // NOLINT(clang-analyzer-core.NullDereference): without an error there is room
    *ret_data = data;
    *ret_size = size;
    return PAWL_OK;
}
