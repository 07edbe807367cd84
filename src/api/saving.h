// Saving is one save on its way to storage:
//
//     staged    the program's state is copied, a thread writes it
//     written   this rank's image is on storage; rank 0 hears of it
//     told      rank 0 has heard of all, commits, and says what came of it
//     over      durable, or failed
//
// The program's calls move it on; the thread calls no MPI.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/job.h"
#include "api/memory.h"
#include "api/options.h"
#include "api/ranks.h"
#include "api/staging.h"
#include "image/image.h"
#include "store/parts.h"
#include "store/store.h"

namespace fermata::api {

class Saving {
  public:
    // `store`: of rank 0, null on the others. `memory`: null = none.
    Saving(const Ranks& ranks, const Options& options, image::KeyPointer key, store::Store* store,
           Memory* memory)
        : ranks_(ranks), options_(options), key_(std::move(key)), store_(store), memory_(memory) {}
    ~Saving();

    // Collective. Throws Fault, the same on all ranks; then nothing was begun. With memory the state is there
    // when this returns, and goes on to files when it is its turn, or when `last` says so.
    void begin(const State& state, int64_t step, const Job& job, bool last);
    // The newest save, if it is in memory alone, goes to files. Collective.
    void flush();
    // Moves on what is under way; `wait`: to its end. True when nothing is under way any more. Throws the
    // Fault of one that failed, once.
    bool move_on(bool wait);
    // Returns when no thread touches the directory of files any more. Local.
    void settle();
    // A restart of the processes has put the program back: numbers are taken that it does not know of, and
    // what it had in memory may be gone. Local.
    void put_back() { number_ = only_memory_ = saves_ = 0; }
    // With memory: something was saved, and files have the newest of it.
    bool saved() const { return saves_ > 0; }
    bool all_in_files() const { return only_memory_ == 0; }
    // The newest save's.
    uint32_t generation() const { return generation_; }
    int64_t step() const { return step_; }
    // Seconds that the newest save took on this rank, until its image was written.
    double seconds() const { return seconds_; }

  private:
    enum class Stage { idle, writing, told, hearing };
    // How a rank fared. Sent as it is.
    struct Report {
        int32_t code = FERMATA_OK;
        ImageReport image;
        char why[256] = "";
    };

    void choose_parts();
    void open_generation(const Job& job, uint32_t least);
    uint32_t next_number();
    void start_thread();
    template <class What>
    void run_in_thread(What what);
    void retire();
    image::Summary copy_from_memory();
    void make_writer(const Job& job, uint32_t number, const files::Folder& folder);
    void write() noexcept;
    void commit() noexcept;
    static void note(Report& report, const Fault& fault) noexcept;

    const Ranks& ranks_;
    const Options& options_;
    const image::KeyPointer key_;
    store::Store* const store_;
    Memory* const memory_;
    Job job_;
    Staging staging_;
    Stage stage_ = Stage::idle;
    unsigned saves_ = 0;        // in memory
    uint32_t number_ = 0;       // of the newest save in memory; 0 = none yet
    uint32_t generation_ = 0;   // of the newest save, in memory or files
    int64_t step_ = 0;          // of what goes to files, or is in memory
    uint32_t only_memory_ = 0;  // number of the newest save, when no file has it; 0 = one has
    files::Folder folder_;      // of the generation under way
    std::optional<image::Writer> writer_;
    std::vector<uint32_t> node_of_;  // by rank, once a layout has asked for it
    store::Parts parts_;             // files of several images
    std::thread thread_;
    std::atomic<bool> written_{false};
    Report mine_, all_well_;
    std::vector<Report> all_;        // rank 0
    store::GenerationInfo pending_;  // rank 0
    double started_ = 0, staged_ = 0, seconds_ = 0;
};

}  // namespace fermata::api
