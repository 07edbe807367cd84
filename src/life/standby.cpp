#include "life/standby.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "tree/channel.h"

namespace fermata::life {
namespace {

// From the beginning of a life, or the end of one that stood by: a job that fails at once needs its
// processors itself.
constexpr int64_t kPauseMs = 1000, kPauseAfterFallMs = 30'000;

}  // namespace

void Standby::of(const Submission& what, const std::string& base, const root::Root& root) {
    base_ = base;
    job_ = &root;
    next_ = what;
    next_->again = true;
    ++next_->restarts;
    not_before_ = tree::now_ms() + kPauseMs;
}

std::optional<Prepared> Standby::take(const Submission& what) {
    const bool fits = life_ && !life_->root->has_fallen() && what.from && what.options.moved.empty() &&
                      what.from->manifest->mpi == mpi_ &&
                      static_cast<int>(what.from->manifest->images.size()) == life_->ranks;
    if (!fits) dismiss();
    return std::exchange(life_, {});
}

void Standby::dismiss() {
    if (life_) life_->root->dismiss();
    life_.reset();
}

void Standby::add_to(std::vector<pollfd>& fds) {
    if (life_) life_->root->add_to(fds);
}

int Standby::rest(int otherwise) const { return life_ ? life_->root->rest(otherwise) : otherwise; }

void Standby::serve(const std::vector<pollfd>& fds, size_t first) {
    if (life_) life_->root->serve(fds, first);
}

void Standby::turn(Generation newest) {
    const int64_t now = tree::now_ms();
    if (life_ && life_->root->has_fallen()) {
        spdlog::warn("what stood by is gone: {}", life_->root->why_it_ended());
        dismiss();
        not_before_ = now + kPauseAfterFallMs;
    }
    if (life_ || !newest || !next_ || now < not_before_) return;
    not_before_ = now + kPauseAfterFallMs;
    try {
        prepare_from(newest);
    } catch (const std::exception& error) {
        if (!std::exchange(said_, true)) say(fmt::format("nothing stands by (--standby): {}", error.what()));
    }
}

const char* Standby::state() const {
    return !life_ ? "none" : life_->root->is_ready() ? "ready" : "starting";
}

void Standby::prepare_from(Generation newest) {
    store::Store store = store::Store::for_reading(next_->ckpt_dir, next_->key);
    std::vector<store::GenerationInfo> all = store.list();
    auto one = std::find_if(all.begin(), all.end(), [&](const store::GenerationInfo& info) {
        return info.number == newest.number() && info.manifest;
    });
    if (one == all.end()) fail("{} is not to be found", newest.name());
    Submission what = *next_;
    what.options.moved.clear();  // what this life has saved has the new places
    // A node that lost a rank is there; one that is lost would have to be asked for, which takes time.
    const std::set<std::string> hosts = job_->hosts();
    std::erase_if(what.suspects, [&](const std::string& host) { return hosts.count(host) > 0; });
    if (!what.suspects.empty()) fail("{} is lost", what.suspects[0]);
    what.preferred_mpi = one->manifest->mpi;
    what.from = std::move(*one);
    life_ = prepare(what, base_, true);
    mpi_ = what.preferred_mpi;
    life_->root->stand_by(*life_->launcher);
}

}  // namespace fermata::life
