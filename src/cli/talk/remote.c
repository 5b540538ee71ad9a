#include "cli/talk/remote.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECT_SECONDS 10L
#define POLL_MS         1000
#define ANSWER_MAX      ((size_t)1 << 30) /* bytes of an answer that is kept whole */
#define FAILURE_MAX     ((size_t)64 << 10)
#define SOCKET_NAME     "pawl.sock"

struct remote {
    CURL *easy;
    CURLM *multi;
    char *base; /* "http://localhost:7295", without a slash at its end */
    char *name;
    char *authorization; /* a header, or NULL */
    int dir;             /* of a socket: keeps the place that a path of /proc/self/fd names; -1: none */
    atomic_bool cancelled;
};

/* --- open and close --- */

static int fail_memory(pawl_error *error)
{
    return pawl_error_set(error, PAWL_ENOMEM, "no memory to talk to a server");
}

void remote_close(struct remote *r)
{
    if (!r)
        return;
    if (r->easy)
        curl_easy_cleanup(r->easy);
    if (r->multi)
        curl_multi_cleanup(r->multi);
    if (r->authorization)
        explicit_bzero(r->authorization, strlen(r->authorization));
    free(r->authorization);
    free(r->base);
    free(r->name);
    if (r->dir >= 0)
        close(r->dir);
    free(r);
}

/* The file of certificates to trust; NULL: those of the system. */
static const char *trusted_file(void)
{
    const char *file = getenv("PAWL_CA");
    return file && file[0] ? file : NULL;
}

/* The certificates of the file alone, not those of the system besides. */
static bool trust(CURL *e, const char *file)
{
    return curl_easy_setopt(e, CURLOPT_CAINFO, file) == CURLE_OK
           && curl_easy_setopt(e, CURLOPT_CAPATH, NULL) == CURLE_OK;
}

/* The options that all calls have. A server is asked directly: a proxy of the environment is for the web. */
static bool prepare(struct remote *r)
{
    CURL *e = r->easy;
    return curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L) == CURLE_OK
           && curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK
           && curl_easy_setopt(e, CURLOPT_PROXY, "") == CURLE_OK
           && curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS) == CURLE_OK
           && curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK
           && curl_easy_setopt(e, CURLOPT_TCP_NODELAY, 1L) == CURLE_OK
           && curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK
           && (!trusted_file() || trust(e, trusted_file()));
}

static struct remote *make(const char *base, const char *name, const char *token)
{
    static bool begun; /* the program opens its remotes on its main thread */
    struct remote *r = calloc(1, sizeof *r);
    if (!begun && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(r);
        return NULL;
    }
    begun = true;
    if (!r)
        return NULL;
    r->dir = -1;
    r->easy = curl_easy_init();
    r->multi = curl_multi_init();
    r->base = strdup(base);
    r->name = strdup(name);
    if (token && asprintf(&r->authorization, "Authorization: Bearer %s", token) < 0)
        r->authorization = NULL;
    if (!r->easy || !r->multi || !r->base || !r->name || (token && !r->authorization) || !prepare(r)) {
        remote_close(r);
        return NULL;
    }
    return r;
}

static int check_url(const char *url, pawl_error *error)
{
    CURLU *parts = curl_url();
    char *scheme = NULL, *path = NULL, *rest = NULL;
    if (!parts)
        return fail_memory(error);
    bool good = curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK
                && curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK
                && curl_url_get(parts, CURLUPART_PATH, &path, 0) == CURLUE_OK
                && (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0) && strcmp(path, "/") == 0
                && curl_url_get(parts, CURLUPART_QUERY, &rest, 0) == CURLUE_NO_QUERY
                && curl_url_get(parts, CURLUPART_FRAGMENT, &rest, 0) == CURLUE_NO_FRAGMENT
                && curl_url_get(parts, CURLUPART_USER, &rest, 0) == CURLUE_NO_USER;
    curl_free(scheme);
    curl_free(path);
    curl_free(rest);
    curl_url_cleanup(parts);
    return good ? PAWL_OK
                : pawl_error_set(error, PAWL_EINVAL,
                                 "'%s' is no URL of a server: expected http://HOST:PORT or https://HOST:PORT",
                                 url);
}

int remote_open_url(const char *url, const char *token, struct remote **ret_remote, pawl_error *error)
{
    int status = check_url(url, error);
    if (status != PAWL_OK)
        return status;
    struct remote *r = make(url, url, token);
    if (!r)
        return fail_memory(error);
    size_t size = strlen(r->base);
    if (size > 0 && r->base[size - 1] == '/')
        r->base[size - 1] = '\0';
    *ret_remote = r;
    return PAWL_OK;
}

/* A socket's address holds 107 bytes. A longer path is reached through the directory's descriptor. */
static int find_socket(struct remote *r, const char *dir, pawl_error *error)
{
    char path[sizeof((struct sockaddr_un){0}.sun_path)];
    r->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (r->dir < 0)
        return pawl_error_errno(error, errno, "cannot open %s", dir);
    if (faccessat(r->dir, SOCKET_NAME, F_OK, 0) != 0)
        return pawl_error_set(error, PAWL_ENOTFOUND, "there is no %s", r->name);
    int size = snprintf(path, sizeof path, "%s/" SOCKET_NAME, dir);
    if (size < 0 || (size_t)size >= sizeof path)
        snprintf(path, sizeof path, "/proc/self/fd/%d/" SOCKET_NAME, r->dir);
    return curl_easy_setopt(r->easy, CURLOPT_UNIX_SOCKET_PATH, path) == CURLE_OK ? PAWL_OK : fail_memory(error);
}

int remote_open_socket(const char *dir, struct remote **ret_remote, pawl_error *error)
{
    const char *place = strncmp(dir, "file://", 7) == 0 ? dir + 7 : dir;
    char *name;
    if (asprintf(&name, "%s/" SOCKET_NAME, place) < 0)
        return fail_memory(error);
    struct remote *r = make("http://localhost", name, NULL);
    free(name);
    if (!r)
        return fail_memory(error);
    int status = find_socket(r, place, error);
    if (status == PAWL_OK)
        *ret_remote = r;
    else
        remote_close(r);
    return status;
}

const char *remote_name(const struct remote *r)
{
    return r->name;
}

void remote_cancel(struct remote *r)
{
    atomic_store(&r->cancelled, true);
    curl_multi_wakeup(r->multi);
}

/* --- a call --- */

struct calling {
    struct remote *remote;
    const struct remote_call *call;
    struct buffer body;
    struct remote_answer answer;
    bool ended;   /* take wants no more */
    bool too_big; /* or there is no memory */
};

static bool is_good(CURL *easy)
{
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status < 300;
}

static size_t take_body(char *data, size_t one, size_t count, void *arg)
{
    struct calling *c = arg;
    size_t size = one * count;
    bool good = is_good(c->remote->easy);
    if (good && c->call->take) {
        c->ended = !c->call->take(c->call->arg, data, size);
        return c->ended ? 0 : size;
    }
    size_t most = good ? ANSWER_MAX : FAILURE_MAX;
    if (size > most - c->body.size || !buffer_reserve(&c->body, size + 1)) {
        c->too_big = true;
        return 0;
    }
    memcpy(c->body.data + c->body.size, data, size);
    c->body.size += size;
    return size;
}

/* The value of a header, if the line is of it; free() it. */
static char *value_of(const char *line, size_t size, const char *name)
{
    size_t length = strlen(name);
    if (size <= length || strncasecmp(line, name, length) != 0 || line[length] != ':')
        return NULL;
    const char *from = line + length + 1, *to = line + size;
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (to > from && strchr(" \t\r\n", to[-1]))
        to--;
    return strndup(from, (size_t)(to - from));
}

static size_t take_header(char *line, size_t one, size_t count, void *arg)
{
    struct calling *c = arg;
    char *next = value_of(line, one * count, "Pawl-Next"), *built = value_of(line, one * count, "Pawl-Built"),
         *covered = value_of(line, one * count, "Pawl-Covered");
    if (next) {
        free(c->answer.next);
        c->answer.next = next;
    }
    if (built)
        c->answer.built = strcmp(built, "true") == 0;
    if (covered)
        c->answer.covered = strtod(covered, NULL);
    free(built);
    free(covered);
    return one * count;
}

static int perform(struct remote *r, CURLcode *ret_code)
{
    int running = 1;
    while (running && !atomic_load(&r->cancelled)) {
        if (curl_multi_perform(r->multi, &running) != CURLM_OK)
            return PAWL_ENOMEM;
        if (running && curl_multi_poll(r->multi, NULL, 0, POLL_MS, NULL) != CURLM_OK)
            return PAWL_ENOMEM;
    }
    if (running)
        return PAWL_ECANCELED;
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(r->multi, &left)))
        if (message->msg == CURLMSG_DONE)
            *ret_code = message->data.result;
    return PAWL_OK;
}

static struct curl_slist *headers_of(const struct remote *r, const struct remote_call *call)
{
    struct curl_slist *list = NULL;
    char line[128];
    /* Without this one curl would ask first whether a large body may come, and wait. */
    list = curl_slist_append(list, "Expect:");
    if (r->authorization)
        list = curl_slist_append(list, r->authorization);
    if (call->type) {
        snprintf(line, sizeof line, "Content-Type: %s", call->type);
        list = curl_slist_append(list, line);
    }
    if (call->accept) {
        snprintf(line, sizeof line, "Accept: %s", call->accept);
        list = curl_slist_append(list, line);
    }
    return call->header ? curl_slist_append(list, call->header) : list;
}

static bool set_up(struct calling *c, const char *url, struct curl_slist *headers)
{
    CURL *e = c->remote->easy;
    const struct remote_call *call = c->call;
    bool good = curl_easy_setopt(e, CURLOPT_URL, url) == CURLE_OK
                && curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, call->timeout_ms) == CURLE_OK
                && curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers) == CURLE_OK
                && curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK
                && curl_easy_setopt(e, CURLOPT_WRITEDATA, c) == CURLE_OK
                && curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, take_header) == CURLE_OK
                && curl_easy_setopt(e, CURLOPT_HEADERDATA, c) == CURLE_OK;
    if (good && call->type)
        good = curl_easy_setopt(e, CURLOPT_POST, 1L) == CURLE_OK
               && curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.size) == CURLE_OK
               && curl_easy_setopt(e, CURLOPT_POSTFIELDS, call->body.size ? call->body.data : "") == CURLE_OK;
    else if (good)
        good = curl_easy_setopt(e, CURLOPT_HTTPGET, 1L) == CURLE_OK;
    return good && curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, call->method) == CURLE_OK;
}

/* What the TLS library has found; libcurl hands it on as it is. */
static const char *why_not_trusted(CURL *easy)
{
    static const struct {
        long gnutls, openssl;
        const char *words;
    } reasons[] = {
        {1 << 10, 10, "its certificate has expired"},
        {1 << 9, 9, "its certificate is not valid yet"},
    };
    const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
    bool gnutls = curl->ssl_version && strncmp(curl->ssl_version, "GnuTLS", 6) == 0;
    long found = 0;
    curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &found);
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (gnutls ? (found & reasons[i].gnutls) != 0 : found == reasons[i].openssl)
            return reasons[i].words;
    return found ? "its certificate is signed by nobody who is trusted; PAWL_CA names a file of certificates "
                   "to trust"
                 : "its certificate is for another name";
}

/* Failures of TLS. PAWL_OK: it is none. */
static int fail_tls(const struct remote *r, CURLcode code, pawl_error *error)
{
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
        return pawl_error_set(error, PAWL_EIO, "cannot trust %.300s: %s", r->name, why_not_trusted(r->easy));
    case CURLE_SSL_CACERT_BADFILE:
        return pawl_error_set(error, PAWL_EIO,
                              "cannot read the certificates to trust in %.300s, which PAWL_CA names",
                              trusted_file() ? trusted_file() : "the system's file");
    case CURLE_SSL_CONNECT_ERROR:
        return pawl_error_set(
            error, PAWL_EIO,
            "cannot reach %.300s: it does not answer with TLS; if it serves without, say http://", r->name);
    case CURLE_GOT_NOTHING:
        if (strncmp(r->base, "http://", 7) == 0 && r->dir < 0)
            return pawl_error_set(
                error, PAWL_EIO,
                "lost the connection to %.300s: it has answered nothing; if it serves with TLS, "
                "say https://",
                r->name);
        return PAWL_OK;
    default: return PAWL_OK;
    }
}

static int fail_transport(const struct remote *r, CURLcode code, pawl_error *error)
{
    int status = fail_tls(r, code, error);
    if (status != PAWL_OK)
        return status;
    bool reached =
        code != CURLE_COULDNT_CONNECT && code != CURLE_COULDNT_RESOLVE_HOST && code != CURLE_OPERATION_TIMEDOUT;
    long number = 0;
    curl_easy_getinfo(r->easy, CURLINFO_OS_ERRNO, &number);
    const char *why = !reached && number ? strerror((int)number) : curl_easy_strerror(code);
    if (!reached && number == EACCES)
        return pawl_error_set(error, PAWL_EACCES, "cannot reach %.300s: %s", r->name, why);
    return pawl_error_set(error, PAWL_EIO,
                          reached ? "lost the connection to %.300s: %s" : "cannot reach %.300s: %s", r->name,
                          why);
}

static int fail_answer(const struct remote *r, const struct buffer *body, pawl_error *error)
{
    long status = 0;
    curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
    json_t *tree = json_loadb(body->data ? body->data : "", body->size, 0, NULL);
    const json_t *failure = json_object_get(tree, "error");
    int code;
    if (failure)
        code = remote_error(failure, error);
    else
        code = pawl_error_set(error, PAWL_EIO, "%.300s answered with HTTP status %ld, not as Pawl does",
                              r->name, status);
    json_decref(tree);
    return code;
}

static int judge(struct calling *c, CURLcode code, pawl_error *error)
{
    if (c->ended)
        return PAWL_OK;
    if (c->too_big)
        return pawl_error_set(error, PAWL_ETOOBIG, "the answer of %.300s is too long", c->remote->name);
    if (code != CURLE_OK)
        return fail_transport(c->remote, code, error);
    return is_good(c->remote->easy) ? PAWL_OK : fail_answer(c->remote, &c->body, error);
}

static int call_it(struct calling *c, const char *url, pawl_error *error)
{
    struct remote *r = c->remote;
    struct curl_slist *headers = headers_of(r, c->call);
    CURLcode code = CURLE_OK;
    int status = PAWL_ENOMEM;
    if (headers && set_up(c, url, headers) && curl_multi_add_handle(r->multi, r->easy) == CURLM_OK) {
        status = perform(r, &code);
        curl_multi_remove_handle(r->multi, r->easy);
    }
    curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    if (status == PAWL_OK)
        return judge(c, code, error);
    return status == PAWL_ECANCELED ? pawl_error_set(error, status, "it was cancelled") : fail_memory(error);
}

int remote_ask(struct remote *r, const struct remote_call *call, struct remote_answer *ret_answer,
               pawl_error *error)
{
    struct calling c = {.remote = r, .call = call, .answer = {.built = true, .covered = 1}};
    char *url = NULL;
    int status;
    if (call->target->failed || asprintf(&url, "%s%s", r->base, call->target->text.data) < 0)
        status = fail_memory(error);
    else {
        status = call_it(&c, url, error);
        free(url);
    }
    target_release(call->target);
    if (status == PAWL_OK && (!c.body.data || c.body.size == 0)) /* a text is never without memory */
        status = buffer_reserve(&c.body, 1) ? PAWL_OK : fail_memory(error);
    if (status == PAWL_OK)
        c.body.data[c.body.size] = '\0';
    c.answer.text = (pawl_text){.data = c.body.data, .size = c.body.size, .room = c.body.room};
    if (status == PAWL_OK && ret_answer)
        *ret_answer = c.answer;
    else
        remote_answer_release(&c.answer);
    return status;
}

void remote_answer_release(struct remote_answer *answer)
{
    pawl_text_free(&answer->text);
    free(answer->next);
    answer->next = NULL;
}

static void cut_newline(pawl_text *text)
{
    if (text->size > 0 && text->data[text->size - 1] == '\n')
        text->data[--text->size] = '\0';
}

int remote_send(struct remote *r, const char *method, struct target *target, json_t *body, pawl_text *ret_text,
                pawl_error *error)
{
    struct remote_answer answer;
    char *text = body ? json_dumps(body, JSON_COMPACT) : strdup("{}");
    json_decref(body);
    if (!text) {
        target_release(target);
        return pawl_error_set(error, PAWL_EINVAL, "an argument is not UTF-8, or there is no memory for it");
    }
    const struct remote_call call = {
        .method = method, .target = target, .type = "application/json", .body = {text, strlen(text)}};
    int status = remote_ask(r, &call, &answer, error);
    free(text);
    if (status != PAWL_OK)
        return status;
    free(answer.next);
    cut_newline(&answer.text);
    if (ret_text)
        *ret_text = answer.text;
    else
        pawl_text_free(&answer.text);
    return PAWL_OK;
}

int remote_get_lines(struct remote *r, struct target *target, pawl_text *ret_text, pawl_error *error)
{
    const struct remote_call call = {.method = "GET", .target = target};
    struct remote_answer answer;
    int status = remote_ask(r, &call, &answer, error);
    if (status != PAWL_OK)
        return status;
    free(answer.next);
    *ret_text = answer.text;
    return PAWL_OK;
}

int remote_get(struct remote *r, struct target *target, pawl_text *ret_text, pawl_error *error)
{
    int status = remote_get_lines(r, target, ret_text, error);
    if (status == PAWL_OK)
        cut_newline(ret_text);
    return status;
}

/* --- what is in an answer --- */

static int code_named(const char *name)
{
    static const int codes[] = {
#define X(name, code, text) PAWL_##name,
        PAWL_STATUS_TABLE(X)
#undef X
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(pawl_status_name(codes[i]), name) == 0)
            return codes[i];
    return PAWL_EIO;
}

int remote_error(const json_t *tree, pawl_error *error)
{
    const char *code = json_string_value(json_object_get(tree, "code"));
    const char *message = json_string_value(json_object_get(tree, "message"));
    const char *where = json_string_value(json_object_get(tree, "where"));
    if (!code || !message)
        return pawl_error_set(error, PAWL_EIO, "the server told a failure, but not which");
    /* A place in the request's head means nothing to one who has written options. */
    if (where
        && (strncmp(where, "$header.", 8) == 0 || strncmp(where, "$query.", 7) == 0
            || strncmp(where, "$path.", 6) == 0))
        where = NULL;
    return pawl_error_set(error, code_named(code), "%s%s%s", where ? where : "", where ? ": " : "", message);
}
