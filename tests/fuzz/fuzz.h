// Readers of outside data, each as a function of bytes: libFuzzer drives it (driver.cpp), and replay_test.cpp
// runs the kept corpus and a sweep of flips and truncations through it in every CI run.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "image/key.h"

namespace fermata::fuzz {

using Bytes = std::vector<uint8_t>;
using Input = std::span<const uint8_t>;

// An oracle of a target that does not hold; everything else that escapes run() is a fault, too.
struct Broken : std::logic_error {
    using std::logic_error::logic_error;
};

inline void require(bool holds, const std::string& what) {
    if (!holds) throw Broken(what);
}

enum class Verdict {
    refused,   // and said why, and where
    accepted,  // what was read is what a writer would have written
};

struct Target {
    const char* name;
    Verdict (*run)(Input);
    // Makes the checksums of a changed input right again, so that what lies behind them is reached. Null:
    // there are none.
    void (*seal)(Bytes&);
    // Valid inputs to begin with.
    std::vector<Bytes> (*seeds)();
    // Must every flipped bit and every truncation of a seed be refused, or change nothing that counts? Null:
    // the format has no checksum. Otherwise what counts, of an accepted input.
    Bytes (*meaning)(Input);
};

// Of the encrypted seeds.
image::KeyPointer fuzz_key();

extern const Target image, encrypted_image, shared_file, manifest, frames, handshake, clock_messages,
    memory_table, duration, save_options, mpiexec_words, addresses, control_request, journal, hellos, program,
    process_state, mpi_objects, app_table, pmi_lines, pmix_helper, hosts, transfers, parity_head, relay,
    known_code, veloc_blob, veloc_words, exchange;

inline std::vector<const Target*> all_targets() {
    return {&image,           &encrypted_image, &shared_file, &manifest,     &frames,        &handshake,
            &clock_messages,  &memory_table,    &duration,    &save_options, &mpiexec_words, &addresses,
            &control_request, &journal,         &hellos,      &program,      &process_state, &mpi_objects,
            &app_table,       &pmi_lines,       &pmix_helper, &hosts,        &transfers,     &parity_head,
            &relay,           &known_code,      &veloc_blob,  &veloc_words,  &exchange};
}

}  // namespace fermata::fuzz
