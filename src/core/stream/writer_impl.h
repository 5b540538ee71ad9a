/* core/stream/writer_impl.h: what the files of the writer share.
 *
 *     writer.c           states, batches, how it begins and ends
 *     writer_send.c      what becomes of a batch: sent, durable and applied; or lost
 *     writer_recover.c   draining, claiming, catching up, the fate of lost entries */
#ifndef CORE_STREAM_WRITER_IMPL_H
#define CORE_STREAM_WRITER_IMPL_H

#include "core/stream/writer.h"

void writer_move(struct writer *w, enum writer_state to);
void writer_free_batch(struct writer_batch *batch);

/* Call writer_step at the loop's next turn. */
void writer_soon(struct writer *w);

/* Tell this fate for all entries of lost batches that have none yet, and free the batches. */
void writer_settle(struct writer *w, enum writer_fate fate);

/* Each goes on as far as it can now. */
void writer_recover(struct writer *w);
void writer_end(struct writer *w);

#endif
