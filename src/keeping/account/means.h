// Means is what every round works with.
#pragma once

#include "keeping/account/account.h"
#include "keeping/account/auto_levels.h"
#include "keeping/account/nodes.h"
#include "keeping/account/numbers.h"
#include "keeping/account/settings.h"
#include "store/store.h"

namespace fermata::keeping {

struct Means {
    Means(Settings& of_job, store::Store& its_store, Nodes& its_nodes)
        : settings(of_job), store(its_store), nodes(its_nodes), planned(of_job) {}

    const Settings& settings;
    store::Store& store;
    Nodes& nodes;
    AutoLevels planned;
    Numbers numbers;
    Account account;
};

}  // namespace fermata::keeping
