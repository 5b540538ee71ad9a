/* serve.c: the shops, served over HTTP by the process that keeps them.
 *
 * The engine is embedded as before: clerks send commands and a handler writes statements, in this process. One
 * call more, pawl_serve, gives everybody else the page, HTTP and JSON, event streams and metrics, and lets the
 * pawl program work on the directory meanwhile. Clerks take their time here, so that the machine is left in
 * peace; there are busier and quieter times, for the charts to show. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include <pawl/serve.h>

#include "shop.h"

#define REBUILD_SECONDS 6 /* that building the view anew takes, about: long enough to watch it on the page */

/* The first of a kind asks it to end; the second one ends it. */
static void end_soon(int number)
{
    atomic_store(&stop, true);
    signal(number, SIG_DFL);
}

/* At the address that was asked for; if none was, at Pawl's own, or at a free port if that is taken. */
static int listen_somewhere(pawl_engine *engine, const char *address, pawl_server **ret_server, pawl_error *error)
{
    int status = pawl_serve(engine, &(pawl_serve_options){.listen = address}, ret_server, error);
    if (status == PAWL_EEXISTS && !address)
        status = pawl_serve(engine, &(pawl_serve_options){.listen = "127.0.0.1:0"}, ret_server, error);
    return status;
}

static int stay_open(const struct options *o, pawl_engine *engine, pawl_error *error)
{
    pawl_server *server;
    int status = listen_somewhere(engine, o->listen, &server, error);
    if (status != PAWL_OK)
        return status;
    uint64_t started = clerks_start(o, engine);
    printf("the shops are served at %s\n", pawl_server_url(server));
    fflush(stdout);
    while (!atomic_load(&stop))
        wait_ms(50);
    bool good = clerks_join(started) && started == o->threads;
    pawl_server_stop(server); /* finishes what was accepted; then the engine may be closed */
    printf("%" PRIu64 " commands were answered meanwhile\n", atomic_load(&answered));
    return good ? PAWL_OK : pawl_error_set(error, PAWL_ECLOSED, "a clerk has given up");
}

int serve_shops(const struct options *o)
{
    pawl_engine *engine;
    pawl_error error = {0};
    signal(SIGINT, end_soon);
    signal(SIGTERM, end_soon);
    signal(SIGHUP, end_soon);
    if (pawl_open(o->dir, &(pawl_options){.must_exist = true}, &engine, &error) != PAWL_OK)
        return complain("open", &error);
    int status = statements_register(engine, o, &error);
    if (status == PAWL_OK)
        status = view_throttle(engine, REBUILD_SECONDS, &error);
    if (status == PAWL_OK)
        status = stay_open(o, engine, &error);
    if (status == PAWL_OK)
        status = pawl_view_throttle(engine, 0, &error);
    if (status != PAWL_OK)
        complain("serve", &error);
    if (pawl_close(engine) != PAWL_OK)
        return complain("close", &error);
    return status == PAWL_OK ? 0 : 1;
}
