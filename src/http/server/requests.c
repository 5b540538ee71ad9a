#include "http/server/requests.h"

#include <pthread.h>
#include <stdlib.h>

struct requests {
    pawl_engine *engine;
    pthread_mutex_t lock;
    uint32_t most;
    uint32_t made; /* under lock, like those below */
    uint32_t free_count;
    pawl_request *free[];
};

int requests_new(pawl_engine *engine, uint32_t most, struct requests **ret_requests, pawl_error *error)
{
    struct requests *r = calloc(1, sizeof *r + most * sizeof r->free[0]);
    if (!r)
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for requests");
    r->engine = engine;
    r->most = most;
    pthread_mutex_init(&r->lock, NULL);
    *ret_requests = r;
    return PAWL_OK;
}

void requests_free(struct requests *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < r->free_count; i++)
        pawl_request_free(r->free[i]);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

int requests_take(struct requests *r, pawl_request **ret_request, pawl_error *error)
{
    pawl_request *request = NULL;
    pthread_mutex_lock(&r->lock);
    bool may_make = r->free_count == 0 && r->made < r->most;
    if (r->free_count > 0)
        request = r->free[--r->free_count];
    else if (may_make)
        r->made++;
    pthread_mutex_unlock(&r->lock);
    if (request) {
        *ret_request = request;
        return PAWL_OK;
    }
    if (!may_make)
        return pawl_error_set(error, PAWL_EBUSY, "%u commands are under way already", r->most);
    int status = pawl_request_new(r->engine, ret_request);
    if (status == PAWL_OK)
        return status;
    pthread_mutex_lock(&r->lock);
    r->made--;
    pthread_mutex_unlock(&r->lock);
    return pawl_error_set(error, status, "no memory for a request");
}

void requests_give(struct requests *r, pawl_request *request)
{
    pthread_mutex_lock(&r->lock);
    r->free[r->free_count++] = request;
    pthread_mutex_unlock(&r->lock);
}
