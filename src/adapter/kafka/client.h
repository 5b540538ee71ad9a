/* adapter/kafka/client.h: librdkafka's handles, with Pawl's settings on them.
 *
 * A handle has threads of its own, which call nothing of ours. Its errors and reports are taken from its main
 * queue as events. */
#ifndef KAFKA_CLIENT_H
#define KAFKA_CLIENT_H

#include <librdkafka/rdkafka.h>

#include "adapter/kafka/url.h"

enum client_kind { CLIENT_PRODUCER, CLIENT_CONSUMER };

/* A message that was not delivered within the URL's timeout is given up. Errors: PAWL_EINVAL (the file of
 * properties), PAWL_EIO, PAWL_ENOMEM. */
int client_open(const struct kafka_url *url, enum client_kind kind, rd_kafka_t **ret_client, pawl_error *error);
void client_close(rd_kafka_t *client);

/* The status that an error of librdkafka's amounts to. */
int client_status(rd_kafka_resp_err_t err);

/* Whether a report says for certain that the record is not written: the brokers refused it, and no earlier try
 * of it can have been written. */
bool client_refused(const rd_kafka_message_t *report);

/* The reason that such a report, or any other of an error, gives. */
const char *client_reason(const rd_kafka_message_t *report);

/* Set the error: the words, then the reason, if the handle has given one. For a handle whose events nobody else
 * takes. */
int client_complain(rd_kafka_t *client, rd_kafka_resp_err_t err, pawl_error *error, const char *words);

#endif
