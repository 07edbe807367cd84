// The object behind fermata_open(): everything that one set of ranks does with one directory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/in_job.h"
#include "api/options.h"
#include "api/ranks.h"
#include "api/restoring.h"
#include "api/saving.h"
#include "api/state.h"
#include "api/triggers.h"
#include "store/store.h"

struct fermata_handle {
    // Throws Fault, the same on all ranks; message is set by whoever catches it.
    void start(const fermata_mpi& mpi, const std::string& directory, const std::string& options);
    void save(int64_t step);
    // The save under way, to its end. Throws why it failed: once.
    void wait();
    // True: nothing is under way. Throws why it failed; the next wait() or save() does so again, so that all
    // ranks hear of it in a call that they make together.
    bool test();
    // False: there is nothing. `wanted`: that step or none.
    bool restore(int64_t* step, std::optional<int64_t> wanted = {});
    // Lists the steps that can be restored, newest first. Collective.
    std::vector<int64_t> steps();
    // All throw the Fault of the first rank that has one. Collective.
    void agree(const fermata::api::Fault& mine) const { ranks_->agree(mine); }
    bool is_open() const { return saving_ != nullptr; }

    fermata::api::State state;
    std::string message = "no error";

    bool should_checkpoint();
    bool should_exit();
    // The end: everything saved goes to files, nothing stays in memory.
    void finish();

  private:
    std::unique_ptr<fermata::api::Ranks> ranks_;
    fermata::api::Options options_;
    fermata::api::InJob in_job_;
    fermata::image::KeyPointer key_;
    fermata::api::Job job_;
    std::optional<fermata::store::Store> store_;  // rank 0
    std::unique_ptr<fermata::api::Memory> memory_;
    std::unique_ptr<fermata::api::Saving> saving_;
    std::unique_ptr<fermata::api::Triggers> triggers_;
    void move_on(bool wait);
    void look_whether_put_back();
    void tell_saved() const;
    void tell_failed(const fermata::api::Fault& fault) const;
    std::optional<fermata::api::Fault> failed_;  // the save before, not told by wait() or save() yet
    bool from_files_ = false;                    // restored from files: they have what is newest
    bool last_ = false;                          // the program was told to end
    bool under_way_ = false;                     // a save is, until it is known how it ended
    uint64_t life_ = 0;                          // InJob::Wish::life
    fermata::api::InJob::Wish began_;            // rank 0: what the job wished when the newest save began
};
