#include "http/server/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME_MAX_BYTES 100
#define LINE_MAX_BYTES 600
#define EXIT_NOT_SOUND 3 /* of pawl verify: it has printed what is wrong */
#define EXIT_NOT_BEGUN 127

enum job_state { WAITING, RUNNING, DONE, FAILED, CANCELLED };

static const char *const kinds[] = {"verify", "audit", "backup"};
static const char *const states[] = {"waiting", "running", "done", "failed", "cancelled"};

struct job {
    struct job *next; /* the next older one */
    uint64_t id;
    enum job_kind kind;
    char *to; /* of a backup */
    bool audit, replay;
    enum job_state state;
    bool cancel;
    pid_t pid; /* while it runs and was not waited for */
    int64_t asked, began, ended;
    char line[LINE_MAX_BYTES]; /* the last one that it said on stderr */
    json_t *result, *error;
};

struct jobs {
    char *dir;
    char *program;
    char *backups;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below, and of the jobs */
    pthread_cond_t changed;
    struct job *newest;
    size_t count;
    uint64_t last;
    bool stopping;
};

static int64_t wall_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * (int64_t)PAWL_SECOND + now.tv_nsec;
}

static void job_free(struct job *job)
{
    json_decref(job->result);
    json_decref(job->error);
    free(job->to);
    free(job);
}

static bool has_ended(const struct job *job)
{
    return job->state != WAITING && job->state != RUNNING;
}

/* --- the process of a job --- */

/* What a process has said. */
struct output {
    char *text;
    size_t size, room;
    bool too_long;
};

static bool keep_output(struct output *out, const char *data, size_t size)
{
    if (out->too_long || size > JOB_OUTPUT_MAX - out->size) {
        out->too_long = true;
        return true;
    }
    if (out->room - out->size < size + 1) {
        size_t room = out->room ? out->room : 4096;
        while (room - out->size < size + 1)
            room *= 2;
        char *grown = realloc(out->text, room);
        if (!grown)
            return false;
        out->text = grown;
        out->room = room;
    }
    memcpy(out->text + out->size, data, size);
    out->size += size;
    out->text[out->size] = '\0';
    return true;
}

/* In the child, where only functions may be called that a signal handler may call. */
static _Noreturn void become(const char *const *words, int out, int err)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0
        || close_range(STDERR_FILENO + 1, ~0U, 0) != 0)
        _exit(EXIT_NOT_BEGUN);
    execv(words[0], (char *const *)(uintptr_t)words);
    _exit(EXIT_NOT_BEGUN);
}

static bool make_pipes(int out[2], int err[2])
{
    if (pipe2(out, O_CLOEXEC) != 0)
        return false;
    if (pipe2(err, O_CLOEXEC) == 0)
        return true;
    close(out[0]);
    close(out[1]);
    return false;
}

/* The last line of what came, for whoever asks how far it is. */
static void keep_line(struct jobs *jobs, struct job *job, const char *data, size_t size)
{
    while (size > 0 && data[size - 1] == '\n')
        size--;
    const char *begin = data + size;
    while (begin > data && begin[-1] != '\n')
        begin--;
    pthread_mutex_lock(&jobs->lock);
    snprintf(job->line, sizeof job->line, "%.*s", (int)(data + size - begin), begin);
    pthread_mutex_unlock(&jobs->lock);
}

/* Read both until they are closed. */
static bool read_all(struct jobs *jobs, struct job *job, int out, int err, struct output *ret_output)
{
    struct pollfd fds[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
    char data[4096];
    bool good = true;
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return false;
        for (int i = 0; i < 2; i++) {
            if (fds[i].fd < 0 || !fds[i].revents)
                continue;
            ssize_t size = read(fds[i].fd, data, sizeof data);
            if (size <= 0)
                fds[i].fd = size < 0 && errno == EINTR ? fds[i].fd : -1;
            else if (i == 0)
                good = keep_output(ret_output, data, (size_t)size) && good;
            else
                keep_line(jobs, job, data, (size_t)size);
        }
    }
    return good;
}

/* Its exit code; -1: a signal ended it. From the moment at which it is waited for, it is not signalled. */
static int wait_for(struct jobs *jobs, struct job *job, pid_t pid)
{
    siginfo_t info;
    int status = 0;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    pthread_mutex_lock(&jobs->lock);
    job->pid = 0;
    pthread_mutex_unlock(&jobs->lock);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run_process(struct jobs *jobs, struct job *job, const char *const *words, struct output *ret_output)
{
    int out[2], err[2];
    if (!make_pipes(out, err))
        return EXIT_NOT_BEGUN;
    pthread_mutex_lock(&jobs->lock);
    bool cancelled = job->cancel;
    pid_t pid = cancelled ? -1 : fork();
    if (pid == 0)
        become(words, out[1], err[1]);
    job->pid = pid > 0 ? pid : 0;
    pthread_mutex_unlock(&jobs->lock);
    close(out[1]);
    close(err[1]);
    int code = EXIT_NOT_BEGUN;
    if (pid > 0) {
        bool good = read_all(jobs, job, out[0], err[0], ret_output);
        code = wait_for(jobs, job, pid);
        code = good ? code : EXIT_NOT_BEGUN;
    }
    close(out[0]);
    close(err[0]);
    return code;
}

/* --- one job, on the thread --- */

static json_t *error_of(const char *line, const char *otherwise)
{
    json_t *said = json_loads(line, 0, NULL), *error = json_object_get(said, "error");
    error =
        error ? json_incref(error) : json_pack("{s:s,s:s+}", "code", "PAWL_EIO", "message", otherwise, line);
    json_decref(said);
    return error;
}

/* Under the lock. */
static void end_job(struct job *job, int code, const struct output *output)
{
    bool told = code == 0 || (job->kind != JOB_BACKUP && code == EXIT_NOT_SOUND);
    job->ended = wall_now();
    if (told && !output->too_long)
        job->result = json_loads(output->text ? output->text : "", 0, NULL);
    job->state = job->result ? DONE : job->cancel ? CANCELLED : FAILED;
    if (job->state == FAILED)
        job->error = error_of(job->line, output->too_long ? "it has said too much; " : "it has failed: ");
    job->line[0] = '\0';
}

static void run_job(struct jobs *jobs, struct job *job)
{
    const char *words[9] = {jobs->program, job->kind == JOB_BACKUP ? "backup" : "verify", "--json", "--dir",
                            jobs->dir};
    struct output output = {0};
    size_t count = 5;
    if (job->audit)
        words[count++] = "--audit";
    if (job->replay)
        words[count++] = "--replay";
    if (job->kind == JOB_BACKUP) {
        words[count++] = "--to";
        words[count] = job->to;
    }
    int code = run_process(jobs, job, words, &output);
    pthread_mutex_lock(&jobs->lock);
    end_job(job, code, &output);
    pthread_mutex_unlock(&jobs->lock);
    free(output.text);
}

/* Under the lock: the oldest one that waits. */
static struct job *next_job(const struct jobs *jobs)
{
    struct job *found = NULL;
    for (struct job *job = jobs->newest; job; job = job->next)
        found = job->state == WAITING ? job : found;
    return found;
}

static void *work(void *arg)
{
    struct jobs *jobs = arg;
    pthread_mutex_lock(&jobs->lock);
    while (!jobs->stopping) {
        struct job *job = next_job(jobs);
        if (!job) {
            pthread_cond_wait(&jobs->changed, &jobs->lock);
            continue;
        }
        job->state = RUNNING;
        job->began = wall_now();
        pthread_mutex_unlock(&jobs->lock);
        run_job(jobs, job);
        pthread_mutex_lock(&jobs->lock);
    }
    pthread_mutex_unlock(&jobs->lock);
    return NULL;
}

/* --- what handlers call --- */

static char *copy_of(const char *text)
{
    return text && text[0] ? strdup(text) : NULL;
}

int jobs_new(pawl_engine *engine, const char *program, const char *backups, struct jobs **ret_jobs,
             pawl_error *error)
{
    struct jobs *jobs = calloc(1, sizeof *jobs);
    if (!jobs)
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for jobs");
    jobs->dir = strdup(pawl_engine_dir(engine));
    jobs->program = copy_of(program);
    jobs->backups = copy_of(backups);
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_cond_init(&jobs->changed, NULL);
    bool whole =
        jobs->dir && (jobs->program || !program || !program[0]) && (jobs->backups || !backups || !backups[0]);
    int number = whole ? pthread_create(&jobs->thread, NULL, work, jobs) : ENOMEM;
    if (number == 0) {
        *ret_jobs = jobs;
        return PAWL_OK;
    }
    free(jobs->dir);
    free(jobs->program);
    free(jobs->backups);
    pthread_cond_destroy(&jobs->changed);
    pthread_mutex_destroy(&jobs->lock);
    free(jobs);
    return pawl_error_errno(error, number, "cannot start a thread");
}

/* Under the lock. */
static void cancel(struct job *job)
{
    job->cancel = true;
    if (job->pid > 0)
        kill(job->pid, SIGTERM);
    if (job->state == WAITING) {
        job->state = CANCELLED;
        job->ended = wall_now();
    }
}

void jobs_free(struct jobs *jobs)
{
    if (!jobs)
        return;
    pthread_mutex_lock(&jobs->lock);
    jobs->stopping = true;
    for (struct job *job = jobs->newest; job; job = job->next)
        if (!has_ended(job))
            cancel(job);
    pthread_cond_broadcast(&jobs->changed);
    pthread_mutex_unlock(&jobs->lock);
    pthread_join(jobs->thread, NULL);
    while (jobs->newest) {
        struct job *job = jobs->newest;
        jobs->newest = job->next;
        job_free(job);
    }
    free(jobs->dir);
    free(jobs->program);
    free(jobs->backups);
    pthread_cond_destroy(&jobs->changed);
    pthread_mutex_destroy(&jobs->lock);
    free(jobs);
}

static int check_name(const char *name, pawl_error *error)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t size = strlen(name);
    if (size > 0 && size <= NAME_MAX_BYTES && name[0] != '.' && strspn(name, letters) == size)
        return PAWL_OK;
    return pawl_error_set(error, PAWL_EINVAL,
                          "$.name: expected 1 to %d letters, digits, '.', '_' and '-', not '.' first",
                          NAME_MAX_BYTES);
}

/* The place of a backup, in the directory that was configured. */
static int place_backup(const struct jobs *jobs, const char *name, char **ret_to, pawl_error *error)
{
    struct stat info;
    int status = check_name(name, error);
    if (status != PAWL_OK)
        return status;
    if (!jobs->backups)
        return pawl_error_set(error, PAWL_EACCES, "no directory for backups is configured: --backups DIR");
    size_t room = strlen(jobs->backups) + 1 + strlen(name) + 1;
    char *to = malloc(room);
    if (!to)
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for a job");
    snprintf(to, room, "%s/%s", jobs->backups, name);
    if (lstat(to, &info) == 0) {
        free(to);
        return pawl_error_set(error, PAWL_EEXISTS, "$.name: there is a backup %s already", name);
    }
    *ret_to = to;
    return PAWL_OK;
}

/* Under the lock: the oldest ones that have ended make room. */
static void forget_old(struct jobs *jobs)
{
    while (jobs->count >= JOBS_KEPT_MAX) {
        struct job **oldest = NULL;
        for (struct job **at = &jobs->newest; *at; at = &(*at)->next)
            oldest = has_ended(*at) ? at : oldest;
        if (!oldest)
            return;
        struct job *job = *oldest;
        *oldest = job->next;
        job_free(job);
        jobs->count--;
    }
}

static size_t count_open(const struct jobs *jobs)
{
    size_t count = 0;
    for (const struct job *job = jobs->newest; job; job = job->next)
        count += !has_ended(job);
    return count;
}

int jobs_add(struct jobs *jobs, const struct job_wish *wish, uint64_t *ret_id, pawl_error *error)
{
    char *to = NULL;
    if (!jobs->program)
        return pawl_error_set(error, PAWL_EACCES, "jobs are not configured: pawl_serve_options.program");
    int status = wish->kind == JOB_BACKUP ? place_backup(jobs, wish->name, &to, error) : PAWL_OK;
    if (status != PAWL_OK)
        return status;
    struct job *job = calloc(1, sizeof *job);
    if (!job) {
        free(to);
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for a job");
    }
    job->kind = wish->kind;
    job->to = to;
    job->audit = wish->audit || wish->kind == JOB_AUDIT;
    job->replay = wish->replay;
    job->asked = wall_now();
    pthread_mutex_lock(&jobs->lock);
    if (count_open(jobs) >= JOBS_WAITING_MAX) {
        pthread_mutex_unlock(&jobs->lock);
        job_free(job);
        return pawl_error_set(error, PAWL_EBUSY, "%d jobs are waiting already", JOBS_WAITING_MAX);
    }
    forget_old(jobs);
    job->id = ++jobs->last;
    job->next = jobs->newest;
    jobs->newest = job;
    jobs->count++;
    *ret_id = job->id;
    pthread_cond_signal(&jobs->changed);
    pthread_mutex_unlock(&jobs->lock);
    return PAWL_OK;
}

/* --- showing --- */

static void add_time(json_t *object, const char *name, int64_t ns)
{
    char text[PAWL_WALL_TEXT_MAX];
    if (!ns)
        return;
    pawl_wall_format((pawl_wall){ns - ns % (int64_t)PAWL_MILLISECOND}, text);
    json_object_set_new(object, name, json_string(text));
}

static json_t *show(const struct job *job)
{
    json_t *object = json_pack("{s:I,s:s,s:s}", "job", (json_int_t)job->id, "kind", kinds[job->kind], "state",
                               states[job->state]);
    if (!object)
        return NULL;
    add_time(object, "asked", job->asked);
    add_time(object, "began", job->began);
    add_time(object, "ended", job->ended);
    if (job->to)
        json_object_set_new(object, "to", json_string(job->to));
    if (job->state == RUNNING && job->line[0])
        json_object_set_new(object, "progress", json_string(job->line));
    if (job->result)
        json_object_set_new(object, "result", json_deep_copy(job->result));
    if (job->error)
        json_object_set_new(object, "error", json_deep_copy(job->error));
    return object;
}

static struct job *find(const struct jobs *jobs, uint64_t id)
{
    struct job *job = jobs->newest;
    while (job && job->id != id)
        job = job->next;
    return job;
}

json_t *jobs_show(struct jobs *jobs, uint64_t id)
{
    pthread_mutex_lock(&jobs->lock);
    const struct job *job = find(jobs, id);
    json_t *shown = job ? show(job) : NULL;
    pthread_mutex_unlock(&jobs->lock);
    return shown;
}

json_t *jobs_list(struct jobs *jobs)
{
    json_t *all = json_array();
    pthread_mutex_lock(&jobs->lock);
    for (const struct job *job = jobs->newest; job; job = job->next)
        json_array_append_new(all, show(job));
    pthread_mutex_unlock(&jobs->lock);
    return all;
}

int jobs_cancel(struct jobs *jobs, uint64_t id, pawl_error *error)
{
    int status = PAWL_OK;
    pthread_mutex_lock(&jobs->lock);
    struct job *job = find(jobs, id);
    if (!job)
        status = pawl_error_set(error, PAWL_ENOTFOUND, "there is no job %" PRIu64, id);
    else if (has_ended(job))
        status = pawl_error_set(error, PAWL_ECONFLICT, "job %" PRIu64 " has ended", id);
    else
        cancel(job);
    pthread_mutex_unlock(&jobs->lock);
    return status;
}
