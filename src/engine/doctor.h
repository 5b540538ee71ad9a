/* engine/doctor.h: see what a damaged log still holds, and save it into a new directory. */
#ifndef ENGINE_DOCTOR_H
#define ENGINE_DOCTOR_H

#include "adapter/journal/salvage.h"

/* As journal_salvage, with an env of its own; to may be NULL. Release the report as it says. */
int engine_doctor(const char *where, const char *to,
                  void (*progress)(void *arg, uint64_t done, uint64_t of_bytes), void *arg,
                  struct journal_salvage_report *ret_report, pawl_error *error);

#endif
