/* serve.h: an HTTP server for an engine that a process has opened. docs/HTTP.md has its routes.
 *
 *     pawl_server *server;
 *     pawl_open("shop.pawl", NULL, &engine, &error);
 *     pawl_serve(engine, NULL, &server, &error);
 *     printf("%s\n", pawl_server_url(server));
 *     ...
 *     pawl_server_stop(server);
 *     pawl_close(engine);
 *
 * It is a library of its own (libpawl-serve, pkg-config pawl-serve), so that libpawl does not need what it
 * needs. It uses libpawl as any program does, by the public headers.
 *
 * It listens on a TCP address and on a Unix socket in the engine's directory. The socket is for the owner of
 * the directory: it has mode 0600, and whoever can open it may do everything. On TCP, beyond loopback, it wants
 * TLS and tokens (pawl/token.h), unless it is told that it may do without.
 *
 * Threads. It starts its own: a few that speak HTTP, however many clients there are, and a few for requests
 * that wait for something. pawl_serve and pawl_server_stop are for any thread that is not one of Pawl's.
 *
 * Bounds. Everything has a bound, which pawl_serve_limits names. What is beyond it is answered with 503 and
 * Retry-After, or with 413; connections beyond it wait until others are closed. */
#ifndef PAWL_SERVE_H
#define PAWL_SERVE_H

#include <pawl/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pawl_server pawl_server;

/* Zero stands for the default, which each comment gives first. */
typedef struct pawl_serve_limits {
    uint32_t threads;         /* 2, that speak HTTP; at most 64 */
    uint32_t waiting_threads; /* 8, for requests that wait; at most 256 */
    uint32_t waiting;         /* 256 such requests that wait for a thread; then 503 */
    uint32_t connections;     /* 4096 */
    uint32_t streams;         /* 2048 clients that follow something; then 503 */
    uint32_t commands;        /* 4096 commands under way; then 503 */
    uint32_t batch_lines;     /* 65536 commands in one NDJSON request */
    size_t header_bytes;      /* 16 KiB: the request line and all headers; at least 4 KiB */
    size_t body_bytes;        /* 16 MiB: a body, or a line of an NDJSON body; at most PAWL_REQUEST_JSON_MAX */
    pawl_duration idle;       /* 60 s: then a connection without a request is closed */
    pawl_duration receive;    /* 30 s for a request to come whole, and a second more for each 16 KiB of it */
    pawl_duration drain;      /* 30 s: how long stop waits for clients that are slow to take their answers */
    pawl_duration stalled; /* 30 s: a client that follows something and takes nothing for so long is cut off; at
                                 least 1 s */
} pawl_serve_limits;

typedef enum pawl_log_level {
    PAWL_LOG_ERROR = 1,
    PAWL_LOG_WARNING = 2,
    PAWL_LOG_INFO = 3,
    PAWL_LOG_DEBUG = 4, /* each request */
} pawl_log_level;

/* One line of the log: a JSON object without a newline, borrowed until this returns:
 * {"time":"2026-11-17T10:00:00.123Z","level":"warning","message":"slow command","ms":1200,...}. Called on any
 * thread, several at once. It must not block for long, and must not call the server. */
typedef void (*pawl_serve_log)(void *arg, pawl_log_level level, pawl_bytes line);

/* Zero stands for the default, which each comment gives first. Strings are copied. */
typedef struct pawl_serve_options {
    const char *listen;   /* "127.0.0.1:7295": HOST:PORT, [ADDRESS]:PORT. Port 0: a free one. "": no TCP */
    const char *socket;   /* DIR/pawl.sock, if the engine was opened for writing. "": none */
    const char *tls_cert; /* none: a file with the certificate chain, PEM; together with tls_key */
    const char *tls_key;
    const char *const *hosts; /* names by which clients may call it, besides localhost, addresses, and listen */
    size_t host_count;
    bool tokens;   /* on loopback, too, nothing is answered without a token, except health */
    bool insecure; /* beyond loopback, do without TLS and tokens */
    const char
        *program; /* none: the pawl program, which does long work in a process of its own: backup, verify */
    const char *backups; /* none: the directory that backups are made in */
    pawl_duration
        slow; /* 1 s: a request that takes longer is a warning in the log; time that its client has asked
                       to wait does not count (a lease's or commit's wait, min_offset), nor do streams */
    pawl_serve_log log; /* none */
    void *log_arg;
    pawl_log_level level; /* PAWL_LOG_INFO: lines of a higher level are not made */
    pawl_serve_limits limits;
} pawl_serve_options;

/* Listen, and serve until stop. The engine must stay open until then.
 * Errors: PAWL_EINVAL (an option; the words name it), PAWL_EACCES (an address beyond loopback needs TLS and a
 * token, or insecure; or the system does not allow the address), PAWL_EEXISTS (the address is in use, or
 * something that is not a socket has the socket's name), PAWL_ENOTFOUND, PAWL_EIO, PAWL_ENOMEM. */
PAWL_API int pawl_serve(pawl_engine *engine, const pawl_serve_options *options, pawl_server **ret_server,
                        pawl_error *error);

/* Accept nothing more, finish what was accepted, end streams, and free the server. A command that is under way
 * is waited for; a client that does not take its answer is cut off after limits.drain. NULL is allowed. */
PAWL_API void pawl_server_stop(pawl_server *server);

/* Where it is: "http://127.0.0.1:7295", "https://..."; "" if it listens on no TCP address. The port; 0 if none.
 * The path of the Unix socket; "" if there is none. Until stop. Any thread. */
PAWL_API const char *pawl_server_url(const pawl_server *server);
PAWL_API uint16_t pawl_server_port(const pawl_server *server);
PAWL_API const char *pawl_server_socket(const pawl_server *server);

#ifdef __cplusplus
}
#endif
#endif
