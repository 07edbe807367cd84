#include "api/saving.h"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "api/nodes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/host_name.h"
#include "base/log.h"
#include "files/owners.h"

namespace fermata::api {
namespace {

// The writing thread leaves the program's signals alone.
class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  private:
    sigset_t before_{};
};

}  // namespace

Saving::~Saving() { settle(); }

void Saving::note(Report& report, const Fault& fault) noexcept {
    report.code = fault.code;
    size_t n = std::min(fault.sentence.size(), sizeof report.why - 1);
    std::memcpy(report.why, fault.sentence.data(), n);
    report.why[n] = 0;
}

void Saving::begin(const State& state, int64_t step, const Job& job, bool last) {
    started_ = monotonic_s();
    settle();
    job_ = job;
    // A rank with other names to protect would take part in another job's image.
    struct Claim {
        uint64_t names;
        int64_t step;
    };
    Claim mine{fingerprint(state), step};
    std::vector<Claim> claims = ranks_.gather_all(mine);
    for (size_t r = 1; r < claims.size(); ++r) {
        if (claims[r].names != claims[0].names)
            refuse(FERMATA_MISMATCH, "rank {} protects other names, types or shapes than rank 0", r);
        if (claims[r].step != claims[0].step)
            refuse(FERMATA_MISMATCH, "rank {} saves step {}, rank 0 step {}", r, claims[r].step,
                   claims[0].step);
    }
    const bool memory = memory_ != nullptr;
    ranks_.together([&] { staging_.take(state, step, ranks_.first(), memory); });
    staged_ = monotonic_s();
    if (memory) {
        const uint32_t number = next_number();
        memory_->save(staging_, job, number, options_.write);
        only_memory_ = generation_ = number;
        step_ = step;
        seconds_ = monotonic_s() - started_;
        ++saves_;
        if (last || (options_.flush > 0 && saves_ % options_.flush == 0)) flush();
        return;
    }
    step_ = step;
    open_generation(job, 1);
    start_thread();
}

void Saving::flush() {
    settle();
    if (only_memory_ == 0) return;
    open_generation(job_, only_memory_);
    start_thread();
}

void Saving::start_thread() {
    mine_ = {};
    written_.store(false);
    stage_ = Stage::writing;
    run_in_thread([this] { write(); });
}

template <class What>
void Saving::run_in_thread(What what) {
    SignalsBlocked guard;
    try {
        thread_ = std::thread(what);
    } catch (const std::system_error&) {
        what();  // no thread is to be had: others may wait for this one
    }
}

namespace {

// The highest number in use: what others have put under names of generations is counted, too, because the
// number has to be free in files when memory has it already; but not so that none would be left.
uint32_t highest_in(const store::Store& store) {
    uint32_t highest = 0;
    for (const store::GenerationInfo& one : store.list())
        if (files::believed(one.folder.owner())) highest = std::max(highest, one.number);
    for (const std::string& name : files::Folder::at(store.directory()).names())
        if (auto other = Generation::named(name); other && other->number() < Generation::kLast / 2)
            highest = std::max(highest, other->number());
    return highest;
}

}  // namespace

// One series for files and memory. Nobody else counts while this program has the directory.
uint32_t Saving::next_number() {
    if (number_ > 0) return ++number_;
    uint32_t highest = 0;
    ranks_.together([&] {
        highest = memory_->highest();
        if (store_) highest = std::max(highest, highest_in(*store_));
    });
    std::vector<uint32_t> all = ranks_.gather_all(highest);
    return number_ = *std::max_element(all.begin(), all.end()) + 1;
}

// Which ranks' images share a file. With a file for each node, ranks with one host name share it. Collective.
void Saving::choose_parts() {
    if (!options_.together()) return;
    if (node_of_.empty()) {
        const Nodes nodes(ranks_.gather_texts(host_name()));
        for (int rank = 0; rank < ranks_.size(); ++rank)
            node_of_.push_back(static_cast<uint32_t>(nodes.node_of(rank)));
    }
    parts_ = store::Parts(options_.write.layout, node_of_);
}

// The generation's directory, made by rank 0, and this rank's writer in it.
void Saving::open_generation(const Job& job, uint32_t least) {
    uint32_t number = 0;
    choose_parts();
    ranks_.together([&] {
        if (!ranks_.first()) return;
        pending_ = store_->begin_from(least);
        number = pending_.number;
        if (memory_ && number != least) {
            store_->abandon(std::exchange(pending_, {}));
            fail("{}/{} is taken by something else", job.directory, Generation(least).name());
        }
        parts_.create(pending_.folder);
    });
    ranks_.broadcast(number);
    generation_ = number;
    try {
        ranks_.together([&] {
            folder_ =
                store::open_pending(job.directory + "/" + Generation(number).name(), job.number, number);
            if (!memory_) make_writer(job, number, folder_);
        });
        if (!parts_.together()) return;
        parts_.lay_out(ranks_.gather_all(writer_->room()));
        ranks_.together([&] {
            if (ranks_.first()) parts_.finish(pending_.folder, job.number, number);
        });
        writer_->place(parts_.begin_of(ranks_.own()));
    } catch (const Fault&) {
        writer_.reset();
        if (ranks_.first()) store_->abandon(std::exchange(pending_, {}));
        throw;
    }
}

void Saving::make_writer(const Job& job, uint32_t number, const files::Folder& folder) {
    const Rank rank = ranks_.own();
    const image::Identity who{job.number, number, rank, static_cast<uint32_t>(ranks_.size())};
    image::WriteOptions write = options_.write;
    write.key = key_;
    if (write.threads == 0) write.threads = 1;  // beside the program, whose cores they are
    writer_.reset();
    const image::Place place(folder, parts_.file_of(rank));
    if (parts_.together())
        writer_.emplace(image::Writer::in_shared(place, who, write));
    else
        writer_.emplace(place, who, write);
    fill(*writer_, staging_);
    if (parts_.together()) writer_->prepare();
}

// The image is the same, byte for byte.
image::Summary Saving::copy_from_memory() {
    const std::string name = image::image_name(ranks_.own());
    auto [from, file] = files::split_path(memory_->newest_image());
    Fd in = files::Folder::at(from).read(file), out = folder_.create(name);
    const image::Summary& summary = memory_->newest_summary();
    PageBuffer piece;
    constexpr uint64_t kPiece = 8 << 20;
    piece.reserve(kPiece);
    for (uint64_t at = 0; at < summary.bytes; at += kPiece) {
        const uint64_t size = std::min(kPiece, summary.bytes - at);
        pread_all(in.get(), piece.data(), size, at, memory_->newest_image());
        write_all(out.get(), piece.data(), size, folder_.path_of(name));
    }
    sync_file(out.get(), folder_.path_of(name));
    return summary;
}

// In the thread.
void Saving::write() noexcept {
    try {
        image::Summary summary;
        if (memory_) {
            summary = copy_from_memory();
        } else if (parts_.together()) {
            writer_->write_first();
            writer_->write_rest();
            summary = writer_->conclude();
        } else {
            summary = writer_->finish();
        }
        mine_.image = report_of(summary);
    } catch (const Fault& fault) {
        note(mine_, fault);
    } catch (const std::exception& error) {
        note(mine_, Ranks::fault_of(error));
    }
    seconds_ = monotonic_s() - started_;
    written_.store(true, std::memory_order_release);
}

// Rank 0: all have written, or somebody could not.
void Saving::commit() noexcept {
    all_well_ = {};
    try {
        std::vector<ImageReport> images;
        for (size_t r = 0; r < all_.size(); ++r) {
            const Report& report = all_[r];
            if (report.code != FERMATA_OK)
                throw Fault{static_cast<fermata_code>(report.code),
                            fmt::format("rank {}: {}", r, report.why)};
            images.push_back(report.image);
        }
        store::Manifest m = manifest_of(job_, pending_.number, step_, images, key_.get());
        parts_.note_in(m);
        m.phases = {{"stage", staged_ - started_}, {"save", monotonic_s() - staged_}};
        store_->commit(pending_, m);
        pending_ = {};
        return;
    } catch (const Fault& fault) {
        note(all_well_, fault);
    } catch (const std::exception& error) {
        note(all_well_, Ranks::fault_of(error));
    }
    store_->abandon(std::exchange(pending_, {}));
}

// Removing takes as long as the file system likes: not while the program waits for its save.
void Saving::retire() {
    if (options_.keep == 0 || all_well_.code != FERMATA_OK) return;
    run_in_thread([this] {
        try {
            store_->retain(options_.keep);
        } catch (const std::exception& error) {
            say(std::string(error.what()) + ": an old generation stays");
        }
    });
}

void Saving::settle() {
    if (thread_.joinable()) thread_.join();
}

bool Saving::move_on(bool wait) {
    if (stage_ == Stage::writing) {
        if (!wait && !written_.load(std::memory_order_acquire)) return false;
        settle();
        writer_.reset();
        if (ranks_.first()) all_.resize(static_cast<size_t>(ranks_.size()));
        ranks_.begin_gather(&mine_, all_.data(), sizeof mine_);
        stage_ = Stage::told;
    }
    if (stage_ == Stage::told) {
        if (!ranks_.over(wait)) return false;
        if (ranks_.first()) commit();
        ranks_.begin_broadcast(&all_well_, sizeof all_well_);
        if (ranks_.first()) retire();
        stage_ = Stage::hearing;
    }
    if (stage_ == Stage::hearing) {
        if (!ranks_.over(wait)) return false;
        stage_ = Stage::idle;
        if (all_well_.code != FERMATA_OK)
            throw Fault{static_cast<fermata_code>(all_well_.code), all_well_.why};
        only_memory_ = 0;
    }
    return true;
}

}  // namespace fermata::api
