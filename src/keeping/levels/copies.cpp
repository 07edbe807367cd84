#include "keeping/levels/copies.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/invariant.h"
#include "base/log.h"
#include "base/text.h"

namespace fermata::keeping {
namespace {

// Sizes and generations may differ.
bool is_same_reason(std::string one, std::string other) {
    for (std::string* text : {&one, &other})
        std::erase_if(*text, [](char c) { return c >= '0' && c <= '9'; });
    return one == other;
}

}  // namespace

bool Copies::turn(const Moment& moment) {
    if (end_what_is_over(moment.here)) return true;
    if (under_way_ || must_wait(moment)) return false;
    const Generation next = newest();
    if (!is_due(next, moment.now)) return false;
    if (const std::vector<Generation> all = missing(next); !all.empty()) begin(all, moment.now);
    return false;
}

bool Copies::end_what_is_over(const std::set<std::string>& here) {
    std::optional<RoundOver> ended = over(here);
    if (ended) settle(std::move(*ended));
    return ended.has_value();
}

bool Copies::must_wait(const Moment& moment) const {
    return (moment.mending && writes_memory()) || (moment.to_files && goes_to_files());
}

Generation Copies::newest() const { return means_.account.book.newest_in(store::LevelName::memory); }

bool Copies::is_due(Generation newest, int64_t now) {
    const std::optional<double> every = period();
    if (!every || !newest || newest == newest_) return false;
    return begun_ == 0 || static_cast<double>(now - begun_) >= *every * 1000;
}

void Copies::begin(const std::vector<Generation>& generations, int64_t now) {
    always(!under_way_ && !generations.empty(), "a round begins while one is under way, or of nothing");
    newest_ = generations.back();
    begun_ = now;
    const uint32_t number = means_.numbers.next();
    RoundOver result{generations, "", false, 0, monotonic_s(), 0};
    try {
        Order order = this->order(generations, number);
        always(!order.nodes.empty(), "an order to copy that no node answers");
        under_way_ = UnderWay{number, order, order.nodes, result};
        means_.nodes.tell(order.message);
    } catch (const Error& error) {
        under_way_.reset();
        result.why_not = error.what();
        settle(std::move(result));
    }
}

bool Copies::heard(const wire::Message& message) {
    const std::optional<Answer> answer = answer_in(message);
    if (!answer || !under_way_ || answer->number != under_way_->number) return false;
    if (under_way_->waiting.erase(answer->host) == 0) return true;  // said again
    RoundOver& result = under_way_->result;
    result.bytes += answer->bytes;
    if (answer->error.empty()) return true;
    result.unable = true;
    if (result.why_not.empty()) result.why_not = fmt::format("{}: {}", answer->host, answer->error);
    return true;
}

void Copies::say_again() {
    if (under_way_) means_.nodes.tell(under_way_->order.message);
}

std::vector<Generation> Copies::in_use() const {
    return under_way_ ? under_way_->result.generations : std::vector<Generation>();
}

std::optional<RoundOver> Copies::over(const std::set<std::string>& here) {
    if (!under_way_) return {};
    RoundOver& result = under_way_->result;
    std::erase_if(under_way_->waiting, [&](const std::string& host) {
        if (here.count(host)) return false;
        if (result.why_not.empty()) result.why_not = fmt::format("the node daemon of {} is gone", host);
        return true;
    });
    const bool given_up = ends_with_first_error() && !result.why_not.empty();
    if (!under_way_->waiting.empty() && !given_up) return {};
    always(!result.generations.empty(), "the end of a round that copied nothing");
    RoundOver over = std::move(result);
    over.seconds = monotonic_s() - over.began;
    under_way_.reset();
    return over;
}

Copies::Order Copies::order_of(const wire::Fetch& fetch) {
    Order order{fetch, {}};
    for (const wire::Errand& errand : fetch.errands) order.nodes.insert(errand.to);
    return order;
}

std::optional<Copies::Answer> Copies::fetched_in(const wire::Message& message) {
    auto* fetched = std::get_if<wire::Fetched>(&message);
    if (!fetched) return {};
    return Answer{fetched->number, fetched->host, fetched->bytes,
                  fetched->failures.empty() ? "" : fetched->failures.front().error};
}

Copies::Order Copies::order_of(const wire::Flush& flush) {
    Order order{flush, {}};
    for (const wire::Share& share : flush.shares) order.nodes.insert(share.host);
    return order;
}

std::optional<Copies::Answer> Copies::flushed_in(const wire::Message& message) {
    auto* done = std::get_if<wire::Flushed>(&message);
    if (!done) return {};
    return Answer{done->number, done->host, done->bytes, done->error};
}

void Copies::settle(RoundOver over) {
    try {
        if (over.why_not.empty()) count(over);
    } catch (const std::exception& error) {
        over.why_not = error.what();
    }
    if (!over.why_not.empty()) failed(over);
    tell(over);
    note(over);
    trouble_ = over.why_not;
}

void Copies::note(const RoundOver& over) const {
    if (!means_.settings.journal) return;
    means_.settings.journal->note(journal::Kind::copy, {{"ok", over.why_not.empty()},
                                                        {"level", word()},
                                                        {"generation", over.newest().name()},
                                                        {"bytes", over.bytes},
                                                        {"seconds", over.seconds},
                                                        {"why", over.why_not}});
}

void Copies::tell(const RoundOver& over, const char* done, const char* failed) {
    const std::string name = over.newest().name();
    if (over.why_not.empty()) {
        const std::string line =
            name + " " + fmt::format(fmt::runtime(done), human_size(over.bytes), over.seconds);
        spdlog::info("{}", line);
        if (means_.settings.verbose) say(line);
    } else if (!is_same_reason(over.why_not, trouble_)) {
        say(fmt::format("{} {}: {}", name, failed, over.why_not));
    }
}

}  // namespace fermata::keeping
