#include "api/saving.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "image/shared.h"

namespace fermata::api {
namespace {

double now_s() { return static_cast<double>(monotonic_ns()) * 1e-9; }

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

Saving::~Saving() {
    if (thread_.joinable()) thread_.join();
}

void Saving::note(Report& report, const Fault& fault) noexcept {
    report.code = fault.code;
    size_t n = std::min(fault.sentence.size(), sizeof report.why - 1);
    std::memcpy(report.why, fault.sentence.data(), n);
    report.why[n] = 0;
}

void Saving::begin(const State& state, int64_t step, const Job& job) {
    started_ = now_s();
    job_ = job;
    // Who protects something else would take part in another job's image.
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
    ranks_.together([&] { staging_.take(state, step, ranks_.first()); });
    open_generation(job);
    staged_ = now_s();
    mine_ = {};
    written_.store(false);
    SignalsBlocked guard;
    thread_ = std::thread([this] { write(); });
    stage_ = Stage::writing;
}

// The generation's directory, made by rank 0, and this rank's writer in it.
void Saving::open_generation(const Job& job) {
    uint32_t number = 0;
    std::optional<image::SharedFile> shared;
    ranks_.together([&] {
        if (!ranks_.first()) return;
        pending_ = level_->begin();
        number = pending_.number;
        if (options_.shared()) shared.emplace(pending_.folder);
    });
    ranks_.broadcast(number);
    try {
        files::Folder folder;
        ranks_.together([&] {
            folder = store::open_pending(job.directory + "/" + Generation(number).name(), job.number, number);
            make_writer(job, number, folder);
        });
        if (!options_.shared()) return;
        std::vector<uint64_t> rooms = ranks_.gather_all(writer_->room());
        begins_ = image::SharedFile::lay_out(rooms);
        shared_bytes_ = begins_.back() + rooms.back();
        ranks_.together([&] {
            if (shared) shared->finish(job.number, number, begins_, shared_bytes_);
        });
        writer_->place(begins_[static_cast<size_t>(ranks_.rank())]);
    } catch (const Fault&) {
        writer_.reset();
        if (ranks_.first()) level_->abandon(std::exchange(pending_, {}));
        throw;
    }
}

void Saving::make_writer(const Job& job, uint32_t number, const files::Folder& folder) {
    const auto rank = static_cast<uint32_t>(ranks_.rank());
    const image::Identity who{job.number, number, rank, static_cast<uint32_t>(ranks_.size())};
    image::WriteOptions write = options_.write;
    write.key = key_;
    if (write.threads == 0) write.threads = 1;  // beside the program, whose cores they are
    writer_.reset();
    if (options_.shared())
        writer_.emplace(image::Writer::in_shared({folder, image::kSharedName}, who, write));
    else
        writer_.emplace(image::Place(folder, image::image_name(rank)), who, write);
    std::vector<std::byte> table = staging_.table().encoded();
    writer_->blob(kBlob, table.data(), table.size());
    for (const Staging::Piece& piece : staging_.pieces())
        writer_->run(piece.address, piece.data, piece.length);
    if (options_.shared()) writer_->prepare();
}

// In the thread.
void Saving::write() noexcept {
    try {
        image::Summary summary;
        if (options_.shared()) {
            writer_->write_first();
            writer_->write_rest();
            summary = writer_->conclude();
        } else {
            summary = writer_->finish();
        }
        mine_.bytes = summary.bytes;
        std::memcpy(mine_.checksum, summary.checksum.bytes.data(), sizeof mine_.checksum);
    } catch (const std::exception& error) {
        note(mine_, Ranks::fault_of(error));
    }
    written_.store(true, std::memory_order_release);
}

// Rank 0: all have written, or somebody could not.
void Saving::commit() noexcept {
    all_well_ = {};
    try {
        store::Manifest m;
        for (size_t r = 0; r < all_.size(); ++r) {
            const Report& report = all_[r];
            if (report.code != FERMATA_OK)
                throw Fault{static_cast<fermata_code>(report.code),
                            fmt::format("rank {}: {}", r, report.why)};
            image::Checksum sum;
            std::memcpy(sum.bytes.data(), report.checksum, sizeof report.checksum);
            auto rank = static_cast<uint32_t>(r);
            m.images.push_back({rank, options_.shared() ? image::kSharedName : image::image_name(rank),
                                report.bytes, sum.hex(), options_.shared() ? begins_[r] : 0});
        }
        m.job = job_.number;
        m.job_name = job_.name;
        m.generation = pending_.number;
        m.created = local_time_text(::time(nullptr));
        m.mpi = job_.library;
        m.command = job_.command;
        m.step = staging_.table().step;
        if (key_) m.key_id = key_->id();
        m.shared_bytes = options_.shared() ? shared_bytes_ : 0;
        m.phases = {{"stage", staged_ - started_}, {"save", now_s() - staged_}};
        level_->commit(pending_, m);
        pending_ = {};
        if (options_.keep > 0) level_->retain(options_.keep);
        return;
    } catch (const Fault& fault) {
        note(all_well_, fault);
    } catch (const std::exception& error) {
        note(all_well_, Ranks::fault_of(error));
    }
    level_->abandon(std::exchange(pending_, {}));
}

bool Saving::move_on(bool wait) {
    if (stage_ == Stage::writing) {
        if (!wait && !written_.load(std::memory_order_acquire)) return false;
        thread_.join();
        writer_.reset();
        if (ranks_.first()) all_.resize(static_cast<size_t>(ranks_.size()));
        ranks_.begin_gather(&mine_, all_.data(), sizeof mine_);
        stage_ = Stage::told;
    }
    if (stage_ == Stage::told) {
        if (!ranks_.over(wait)) return false;
        if (ranks_.first()) commit();
        ranks_.begin_broadcast(&all_well_, sizeof all_well_);
        stage_ = Stage::hearing;
    }
    if (stage_ == Stage::hearing) {
        if (!ranks_.over(wait)) return false;
        stage_ = Stage::idle;
        if (all_well_.code != FERMATA_OK)
            throw Fault{static_cast<fermata_code>(all_well_.code), all_well_.why};
    }
    return true;
}

}  // namespace fermata::api
