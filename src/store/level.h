// Where the generations of a running job are kept: what the root asks of it.
//
// A directory that every node reaches is the first implementation (store.h). Others keep generations in the
// memory of nodes, with a copy elsewhere or an erasure code; a job may have several.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "store/generation.h"

namespace fermata::store {

class Level {
  public:
    virtual ~Level() = default;
    virtual LevelName name() const = 0;

    // A place for the next generation: its number is above every one in use, committed or not.
    virtual GenerationInfo begin() = 0;
    // Throws when less than `bytes` are free.
    virtual void check_space(uint64_t bytes) const = 0;
    // Commits the generation: it exists from here on. Throws when an image of the manifest is missing or the
    // storage fails; then it does not exist.
    virtual void commit(const GenerationInfo& pending, const Manifest& manifest) = 0;
    // Removes an uncommitted generation; never throws.
    virtual void abandon(const GenerationInfo& pending) noexcept = 0;
    // Removes all but the newest `keep` complete generations of this job and those that they need, and its
    // uncommitted ones older than the newest complete one. Nothing of another job's.
    virtual void retain(unsigned keep) = 0;

    // All generations, oldest first; reads manifests, not images.
    virtual std::vector<GenerationInfo> list() const = 0;
    // The newest complete generation or number `wanted`; every image of its manifest is there with its size.
    // A damaged newest one is an error unless `fallback` is allowed. Throws with ExitCode::damaged, or
    // image::KeyError.
    virtual GenerationInfo choose(std::optional<uint32_t> wanted, bool fallback) const = 0;

  protected:
    Level() = default;
    Level(Level&&) = default;
    Level& operator=(Level&&) = default;
};

}  // namespace fermata::store
