// LibraryBelow is the MPI library that serves the ranks of a job, with the variables that people have given
// it: those of the start, and after each renewal the ones it asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/library.h"
#include "launch/renewal.h"
#include "wire/message.h"

namespace fermata::launch::own {

class LibraryBelow {
  public:
    explicit LibraryBelow(Library first) : now_{std::move(first), {}}, next_(now_) {}

    // Throws Error when no renewal can do that; what serves the ranks stays what it is.
    void plan(const Renewal& wanted);
    // Returns the order for what was planned, with the number of its world.
    wire::Renew order(uint32_t world) const;
    // The ranks have it.
    void taken() { now_ = next_; }

  private:
    struct Served {
        Library library;
        std::vector<std::string> environment;  // NAME=VALUE, each name once
    };
    Served now_, next_;
};

}  // namespace fermata::launch::own
