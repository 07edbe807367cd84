// Settings of a job that no test starts for real, with a directory of its own.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include "root/plan/settings.h"

namespace fermata::root {

inline Settings fake_settings(std::string* directory) {
    char name[] = "/tmp/fermata-root-test-XXXXXX";
    EXPECT_NE(::mkdtemp(name), nullptr);
    *directory = name;
    Settings settings;
    settings.job = "fake";
    settings.job_id = "00000000000000070000000000000000";
    settings.job_number = 7;
    settings.ckpt_dir = *directory + "/ckpt";
    settings.command = {"program"};
    return settings;
}

}  // namespace fermata::root
