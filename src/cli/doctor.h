// This header has `fermata doctor`: what this machine has of what Fermata needs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace fermata::cli {

struct DoctorOptions {
    bool json = false;
    bool admin = false;  // also what whoever runs the machine can change
    bool sweep = false;  // remove what dead jobs have left
    std::string ckpt_dir = "fermata-ckpt";
};
void add_doctor(CLI::App* app, DoctorOptions& options);
int doctor(const DoctorOptions& options);

}  // namespace fermata::cli
