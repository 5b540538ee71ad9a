/* fuzz_envelope.c: bytes that decode as an event's envelope are the same bytes that encoding it gives, and no
 * pointer leads outside them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/event/envelope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct envelope e;
    if (envelope_decode((pawl_bytes){data, size}, &e, NULL) != PAWL_OK)
        return 0;
    struct event_numbers *numbers = malloc((e.count + 1) * sizeof *numbers);
    uint8_t *again = malloc(envelope_size(e.count));
    if (!numbers || !again)
        abort();
    for (size_t i = 0; i < e.count; i++)
        numbers[i] = envelope_numbers(&e, i);
    envelope_encode(e.kind, e.wsid, numbers, e.count, again);
    if (envelope_size(e.count) + e.content.size != size || memcmp(again, data, envelope_size(e.count)) != 0)
        abort();
    free(numbers);
    free(again);
    return 0;
}
