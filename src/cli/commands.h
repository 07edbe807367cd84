// This header has one function per subcommand of `fermata`, called once the command line is understood. Each
// returns the exit code. client.cpp has those that speak with a running job, generations.cpp those that read
// a checkpoint directory, verify.cpp the one that mends it, doctor.cpp the rest; `run` and `restart` are in
// life/submit.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "image/save_options.h"
#include "launch/plan.h"
#include "launch/renewal.h"

namespace fermata::cli {

// Which running job is meant: by name, by its checkpoint directory, or the only one.
struct JobChoice {
    std::string job, ckpt_dir;
};

struct CheckpointOptions {
    JobChoice which;
    bool stop = false, json = false, verbose = false, own_state = false;
    double timeout = 0;
};
int checkpoint(const CheckpointOptions& options);

struct StatusOptions {
    JobChoice which;
    bool diagnosis = false, json = false, watch = false;
};
int status(const StatusOptions& options);

struct CancelOptions {
    JobChoice which;
    bool checkpoint_only = false, json = false;
};
int cancel(const CancelOptions& options);

struct RenewOptions {
    JobChoice which;
    launch::Renewal wanted;
    double timeout = 0;
    bool json = false, verbose = false;
};
int renew(const RenewOptions& options);

struct ReplicasOptions {
    JobChoice which;
    std::string of;  // "": only asked
    double timeout = 0;
    bool json = false;
};
int replicas(const ReplicasOptions& options);

struct StoreOptions {
    std::string ckpt_dir = "fermata-ckpt";
    std::optional<uint32_t> generation;
    bool json = false, regions = false, objects = false;
    std::string key_file;  // of encrypted generations; empty: none
};
int list(const StoreOptions& options);
int inspect(const StoreOptions& options);

struct VerifyOptions {
    StoreOptions store;
    bool repair = false;
};
int verify(const VerifyOptions& options);

struct CompactOptions {
    StoreOptions store;
    image::SaveOptions save_options;
    unsigned keep = 0;  // afterwards; 0 = all
};
int compact(const CompactOptions& options);

// `fermata run --check`: what a program needs, and whether this installation has it.
int check_programs(const std::vector<launch::Part>& programs, bool json);

}  // namespace fermata::cli
