/* engine/lanes/handler.h: what the reads of a handler are done with. A worker's reads use the same functions
 * (worker_reads.c), with a context that lasts for one read. */
#ifndef ENGINE_LANES_HANDLER_H
#define ENGINE_LANES_HANDLER_H

#include "engine/lanes/impl.h"

struct pawl_handler_ctx {
    struct job *job;
    pawl_engine *engine;
    pawl_store *store; /* that its reads use */
    struct run_buffers *buffers;
    uint64_t wsid;
    bool reading; /* a read has begun and not ended: its visitor may be running */
    int status;   /* of the first read that failed, and not by a mistake of the handler */
};

#endif
