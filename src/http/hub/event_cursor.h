/* http/hub/event_cursor.h: a place in the events of all partitions, as text that a client keeps. Pure.
 *
 * It holds one offset a partition: the last event that the client has. The text has only letters, digits, - and
 * _, so that it can stand in a URL and in a header as it is. It says how many partitions it is for: one of
 * another directory is refused, unless that has as many.
 *
 * As bytes, before they become text: a 1 for the form, the number of partitions, an offset for each; numbers as
 * varints, seven bits a byte, the lowest first. */
#ifndef HTTP_HUB_EVENT_CURSOR_H
#define HTTP_HUB_EVENT_CURSOR_H

#include <pawl/types.h>

/* With more partitions a cursor does not fit into a header any more. */
#define EVENT_CURSOR_PARTITIONS_MAX 256
#define EVENT_CURSOR_BYTES_MAX      (4 + 10 * EVENT_CURSOR_PARTITIONS_MAX)

/* The room for a cursor's text, with a 0 behind it. */
size_t event_cursor_room(uint32_t partitions);

/* next: for each partition, the offset to go on from, at least 1. Returns the text's size. */
size_t event_cursor_format(const uint64_t *next, uint32_t partitions, char *text);

/* where: the place for the words, "$query.after". PAWL_EINVAL: it is no cursor, or of another number of
 * partitions; ret_next is then not to be used. */
int event_cursor_parse(const char *text, uint32_t partitions, const char *where, uint64_t *ret_next,
                       pawl_error *error);

#endif
