/* pawl.h: all of Pawl. Whoever embeds only the sequencer or the leases includes those headers alone. */
#ifndef PAWL_PAWL_H
#define PAWL_PAWL_H

#include <pawl/admin.h>
#include <pawl/cluster.h>
#include <pawl/command.h>
#include <pawl/engine.h>
#include <pawl/event.h>
#include <pawl/figures.h>
#include <pawl/lane.h>
#include <pawl/lease.h>
#include <pawl/log.h>
#include <pawl/project.h>
#include <pawl/read.h>
#include <pawl/row.h>
#include <pawl/schema.h>
#include <pawl/sequencer.h>
#include <pawl/token.h>
#include <pawl/version.h>
#include <pawl/view.h>
#include <pawl/worker.h>

#endif
