#include "keeping/levels/copy_rounds.h"

#include "base/clock.h"

namespace fermata::keeping {

bool CopyRounds::due(Generation newest, double period, int64_t now) const {
    if (fetching_ || !newest || newest == newest_) return false;
    return begun_ == 0 || static_cast<double>(now - begun_) >= period * 1000;
}

void CopyRounds::start(std::vector<Generation> generations, const wire::Fetch& order, int64_t now) {
    generations_ = std::move(generations);
    newest_ = generations_.back();
    begun_ = now;
    began_ = monotonic_s();
    fetching_.emplace(order);
    send_(order);
}

bool CopyRounds::heard(const wire::Message& message) {
    auto* fetched = std::get_if<wire::Fetched>(&message);
    return fetched && fetching_ && fetching_->heard(*fetched);
}

void CopyRounds::say_again() {
    if (fetching_) send_(fetching_->order());
}

std::vector<Generation> CopyRounds::under_way() const {
    return fetching_ ? generations_ : std::vector<Generation>();
}

std::optional<RoundOver> CopyRounds::over(const std::set<std::string>& here) {
    if (!fetching_) return {};
    fetching_->only(here);
    if (!fetching_->done()) return {};
    RoundOver over{generations_, "", fetching_->bytes(), monotonic_s() - began_};
    if (!fetching_->failed().empty()) over.why_not = fetching_->failed().front().why;
    fetching_.reset();
    return over;
}

}  // namespace fermata::keeping
