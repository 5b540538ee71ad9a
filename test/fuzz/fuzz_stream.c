/* fuzz_stream.c: a text that parses as a stream is the same text that formatting the stream gives, and no other
 * text parses as that stream. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "port/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';

    pawl_stream stream, again;
    pawl_error error;
    if (pawl_stream_parse(text, &stream, &error) == PAWL_OK) {
        char written[PAWL_STREAM_TEXT_MAX];
        require(pawl_stream_valid(stream));
        pawl_stream_format(stream, written);
        require(strcmp(written, text) == 0);
        require(pawl_stream_parse(written, &again, NULL) == PAWL_OK);
        require(pawl_stream_equal(stream, again));
    } else {
        require(strlen(error.text) < sizeof error.text);
    }
    free(text);
    return 0;
}
