/* fuzz_coverage.c: bytes that decode as the state of a view keep all invariants of its coverage, and their coverage
 * encodes to the bytes that it was decoded from. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "core/view/view_state.h"
#include "port/longkey.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_coverage(const struct coverage *c, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct interval *at = &c->intervals[i];
        check(longkey_compare_keys(at->from, at->to) < 0);
        check(i == 0 || longkey_compare_keys(c->intervals[i - 1].to, at->from) < 0);
        check(coverage_has(c, at->from) && !coverage_has(c, at->to) && coverage_covers(c, at->from, at->to));
        check(bytes_equal(coverage_gap(c, at->from), at->to));
    }
    size_t encoded = coverage_encoded_size(c);
    check(encoded <= size);
    uint8_t *bytes = calloc(1, encoded);
    check(bytes);
    struct encoder e = encoder_over(bytes, encoded);
    coverage_encode(c, &e);
    check(!e.bad && e.left == 0 && memcmp(bytes, data + size - encoded, encoded) == 0);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct view_state state;
    view_state_init(&state, NULL, 1, 2, 0);
    int status = view_state_decode(&state, (pawl_bytes){data, size}, NULL);
    if (status == PAWL_OK)
        check_coverage(&state.coverage, data, size);
    else
        check(state.coverage.count == 0 && !state.example.data && !state.complete && state.digest.rows == 0);
    view_state_release(&state);
    return 0;
}
