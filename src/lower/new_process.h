// NewProcess gives a process that has just started what a rank's process had: files, memory and what ranks
// share, then descriptors, signals, limits and the rest. The other part of a restart is new_lower_half.h.
#pragma once

#include <string>
#include <vector>

#include "lower/load_image.h"
#include "lower/mpi_start.h"
#include "tree/agent_link.h"

namespace fermata::lower {

class NewProcess {
  public:
    NewProcess(const tree::AgentConfig& config, const MpiFacts& facts, image::KeyPointer key);

    // Puts the program's files back as they were; over when all ranks have done it, since others may have
    // them open.
    void put_back_files();
    // Maps and reads the memory of the upper half.
    LoadedImage load();
    // Restores what else belongs to a process, with all threads made; "" or why it cannot be.
    std::string restore(const LoadedImage& image);

  private:
    const tree::AgentConfig& config_;
    const MpiFacts& facts_;
    const WantedImage wanted_;
};

}  // namespace fermata::lower
