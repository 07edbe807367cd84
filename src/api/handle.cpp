#include "api/handle.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "files/folder.h"

using namespace fermata;
using namespace fermata::api;

namespace {

uint64_t random_number() {
    uint64_t number = 0;
    while (number == 0)
        if (::getentropy(&number, sizeof number) != 0) fail_errno("no random number");
    return number;
}

// Reads the command line of this process, as the kernel has it.
std::string own_command_line() { return read_file("/proc/self/cmdline"); }

std::vector<std::string> words_of(const std::string& all) {
    std::vector<std::string> words;
    for (size_t at = 0; at < all.size();) {
        size_t end = std::min(all.find('\0', at), all.size());
        words.push_back(all.substr(at, end - at));
        at = end + 1;
    }
    if (words.empty()) words.push_back("unknown");
    return words;
}

// Gives the name of the MPI library as a manifest has it.
std::string library_name(const std::string& version) {
    auto has = [&](const char* word) { return version.find(word) != std::string::npos; };
    return has("Open MPI") ? "openmpi" : has("MPICH") || has("Intel") ? "mpich" : "other";
}

}  // namespace

void fermata_handle::start(const fermata_mpi& mpi, const std::string& directory, const std::string& options) {
    if (mpi.version != FERMATA_MPI_VERSION)
        refuse(FERMATA_ARGUMENT,
               "the program was compiled with another version of fermata.h than this library");
    ranks_ = std::make_unique<Ranks>(mpi);
    if (!mpi.now || !mpi.behind) refuse(FERMATA_MPI_FAILED, "the communicator cannot be duplicated");
    ranks_->together([&] {
        options_ = parse_options(options);
        key_ = image::Key::from_file_or_none(options_.key_file);
    });
    // The words of rank 0 are those of all.
    job_.directory = ranks_->broadcast_text(files::absolute_path(directory));
    job_.library = library_name(mpi.library ? mpi.library : "");
    // Manifests on several nodes are the same to the last byte.
    std::string line;
    ranks_->together([&] { line = own_command_line(); });
    job_.command = words_of(ranks_->broadcast_text(line));
    job_.name = files::split_path(job_.command[0]).second;
    ranks_->together([&] {
        if (!ranks_->first()) return;
        job_.number = random_number();
        store_ = store::Store::for_writing(job_.directory, key_);
        store_->lock(fmt::format("{} (pid {})", job_.name, ::getpid()), job_.number);
    });
    ranks_->broadcast(job_.number);
    triggers_ = std::make_unique<Triggers>(options_, in_job_);
    if (options_.memory != Options::Memory::none)
        memory_ = std::make_unique<Memory>(*ranks_, options_.memory, job_.directory, key_);
    saving_ = std::make_unique<Saving>(*ranks_, options_, key_, store_ ? &*store_ : nullptr, memory_.get());
    life_ = in_job_.wish().life;
    if (ranks_->first()) in_job_.opened(job_.directory);
}

void fermata_handle::tell_saved() const {
    if (ranks_->first() && saving_->generation() > 0)
        in_job_.saved(began_, saving_->generation(), saving_->step(), job_.directory);
}

void fermata_handle::tell_failed(const Fault& fault) const {
    if (ranks_->first()) in_job_.failed(began_, fault.sentence);
}

void fermata_handle::move_on(bool wait) {
    if (!under_way_) return;
    try {
        if (!saving_->move_on(wait)) return;
        triggers_->saved(saving_->seconds());
        tell_saved();
    } catch (const Fault& fault) {
        failed_ = fault;
        tell_failed(fault);
    }
    under_way_ = false;
}

void fermata_handle::wait() {
    move_on(true);
    if (failed_) throw *std::exchange(failed_, {});
}

bool fermata_handle::test() {
    move_on(false);
    if (failed_) throw *failed_;
    return !under_way_;
}

void fermata_handle::save(int64_t step) {
    wait();
    triggers_->saved(0);
    look_whether_put_back();
    if (ranks_->first()) began_ = triggers_->answer();
    try {
        saving_->begin(state, step, job_, last_);
    } catch (const Fault& fault) {
        tell_failed(fault);
        throw;
    }
    // The last one before the end counts when it is in files, which the memory of nodes may not outlive.
    if (memory_ && !last_) tell_saved();
    under_way_ = true;
}

std::vector<int64_t> fermata_handle::steps() {
    wait();
    saving_->settle();
    return Restoring(*ranks_, state, job_.directory, key_, memory_.get()).steps();
}

bool fermata_handle::restore(int64_t* step, std::optional<int64_t> wanted) {
    wait();
    saving_->settle();
    auto restored = Restoring(*ranks_, state, job_.directory, key_, memory_.get()).run(wanted);
    if (!restored) return false;
    // The job goes on: what it saves and what it retires are one series.
    job_.number = restored->job;
    from_files_ = !restored->from_memory;
    if (store_) store_->act_for(job_.number);
    if (step) *step = restored->step;
    if (ranks_->first()) in_job_.exists(restored->generation, restored->step, job_.directory);
    return true;
}

bool fermata_handle::should_checkpoint() {
    move_on(false);  // a failure is told by the save that follows
    const Triggers::Due due = triggers_->should_checkpoint(*ranks_);
    last_ = last_ || due.end;
    return due.save;
}
bool fermata_handle::should_exit() {
    const bool yes = triggers_->should_exit(*ranks_);
    last_ = last_ || yes;
    return yes;
}

void fermata_handle::look_whether_put_back() {
    if (std::exchange(life_, in_job_.wish().life) != life_) saving_->put_back();
}

void fermata_handle::finish() {
    wait();
    look_whether_put_back();
    if (!memory_) return;
    saving_->flush();
    under_way_ = true;
    wait();
    // A generation that is in memory alone stays: a process that only looked, or could not restore it, may
    // not take it from the next one.
    if (saving_->saved() ? saving_->all_in_files() : from_files_) memory_->clear();
}
