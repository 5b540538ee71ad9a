// Every public header compiles as C++, and what it declares can be linked from there.
#include <pawl/admin.h>
#include <pawl/cluster.h>
#include <pawl/command.h>
#include <pawl/engine.h>
#include <pawl/env.h>
#include <pawl/event.h>
#include <pawl/figures.h>
#include <pawl/lane.h>
#include <pawl/lease.h>
#include <pawl/log.h>
#include <pawl/pawl.h>
#include <pawl/project.h>
#include <pawl/read.h>
#include <pawl/row.h>
#include <pawl/schema.h>
#include <pawl/sequencer.h>
#include <pawl/serve.h>
#include <pawl/status.h>
#include <pawl/token.h>
#include <pawl/types.h>
#include <pawl/version.h>
#include <pawl/view.h>
#include <pawl/worker.h>

#include <cstdio>

int main()
{
    pawl_env *env = nullptr;
    pawl_error error = {};
    int status = pawl_env_open(nullptr, &env, &error);
    if (status != PAWL_OK) {
        std::printf("%s: %s\n", pawl_status_name(status), error.text);
        return 1;
    }
    std::printf("pawl %s\n", pawl_version()->version);
    return pawl_env_close(env) == PAWL_OK ? 0 : 1;
}
