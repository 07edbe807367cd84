#include "tree/tally.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/invariant.h"
#include "wire/frame.h"

namespace fermata::tree {
namespace {

std::optional<wire::Digest> digest_of(const std::string& hex) {
    wire::Digest digest;
    if (hex.size() != 2 * digest.size()) return std::nullopt;
    for (size_t i = 0; i < digest.size(); ++i) {
        const char *begin = hex.data() + 2 * i, *end = begin + 2;
        auto [at, error] = std::from_chars(begin, end, digest[i], 16);
        if (error != std::errc{} || at != end) return std::nullopt;
    }
    return digest;
}

// Bytes that fit into one message.
constexpr size_t kMostOfLogs = wire::kMaxPayload - (1u << 20);

}  // namespace

void Tally::at_once(const wire::Message& message) {
    if (level_ == Level::between) at_once_.push_back(message);
}

void Tally::forget() {
    epoch_ = round_ = 0;
    count_anew();
    answers_.refusal.clear();
    answers_.again = false;
    answers_.warnings = {};
}

// The ranks' words about a restart, and about their end, are no answer: they stay.
void Tally::count_anew() {
    auto anew = [](auto& counts) {
        counts.closed = counts.frozen = counts.drained = counts.captured = counts.resumed = {};
    };
    anew(answers_);
    answers_.sized = answers_.saved = answers_.logs = 0;
    answers_.suspend_us = 0;
    answers_.save_error.clear();
    for (auto& [child, said] : said_) {
        anew(said);
        said.sizes = {};
        said.images = {};
        said.logs = {};
    }
    anew(told_);
    told_.sized = told_.saved = told_.logs = 0;
    told_.sizes_changed = told_.images_changed = told_.logs_changed = false;
}

void Tally::ask(const wire::Message& question) {
    auto anew = [this](uint32_t epoch, uint32_t round = 0) {
        count_anew();
        epoch_ = epoch;
        round_ = round;
    };
    if (auto* m = std::get_if<wire::Begin>(&question)) {
        forget();
        warned_ = 0;
        epoch_ = m->epoch;
    } else if (auto* m = std::get_if<wire::Freeze>(&question)) {
        anew(m->epoch);
    } else if (auto* m = std::get_if<wire::Drain>(&question)) {
        anew(m->epoch, m->round);
    } else if (auto* m = std::get_if<wire::AskLog>(&question)) {
        anew(m->epoch);
    } else if (auto* m = std::get_if<wire::Save>(&question)) {
        anew(m->epoch);
    } else if (auto* m = std::get_if<wire::Renew>(&question)) {
        anew(m->epoch);
    } else if (auto* m = std::get_if<wire::Cancel>(&question)) {
        anew(m->epoch);
    } else if (std::get_if<wire::Resume>(&question)) {
        // Not a new question: with a forked writer Saved comes after this.
        answers_.resumed = told_.resumed = {};
        for (auto& [child, said] : said_) said.resumed = {};
    }
}

bool Tally::replaces(const wire::Message& answer) {
    auto* restored = std::get_if<wire::Restored>(&answer);
    auto is = [&]<class... Types>() { return (std::holds_alternative<Types>(answer) || ...); };
    return (restored && restored->ok) ||
           is.template
           operator()<wire::Closed, wire::Frozen, wire::Drained, wire::Captured, wire::Resumed,
                      wire::ArrivedFinalize, wire::Sizes, wire::Images, wire::LogsSaid, wire::Phase>();
}

bool Tally::take(int child, const wire::Message& answer) {
    if (auto* m = std::get_if<wire::Refuse>(&answer)) {
        refuse(m->epoch, m->why, false, answer);
    } else if (auto* m = std::get_if<wire::Again>(&answer)) {
        refuse(m->epoch, m->why, true, answer);
    } else if (auto* m = std::get_if<wire::Sized>(&answer)) {
        if (current(m->epoch) && m->rank >= 0)
            sized(said_[child], {m->epoch, Ranks(m->rank).runs(), {m->bytes}});
    } else if (auto* m = std::get_if<wire::Sizes>(&answer)) {
        if (current(m->epoch)) sized(said_[child], *m);
    } else if (auto* m = std::get_if<wire::LogSaid>(&answer)) {
        if (current(m->epoch) && m->rank >= 0)
            log_said(said_[child], {m->epoch, Ranks(m->rank).runs(), {m->bytes}});
    } else if (auto* m = std::get_if<wire::LogsSaid>(&answer)) {
        if (current(m->epoch)) log_said(said_[child], *m);
    } else if (auto* m = std::get_if<wire::Saved>(&answer)) {
        if (!current(m->epoch)) return true;
        auto digest = digest_of(m->checksum);
        wire::Images one{m->epoch, {}, {}, m->suspend_us, m->needs, m->error};
        const auto times = BlockTimes::of_rank(m->rank, m->block, m->took_us);
        if (one.error.empty() && (!digest || m->rank < 0))
            one.error = fmt::format("rank {}: the checksum of its image is none", m->rank);
        if (one.error.empty() && !times)
            one.error = fmt::format("rank {}: the times that it has measured are none", m->rank);
        if (one.error.empty()) {
            one.ranks = Ranks(m->rank).runs();
            one.images = {{m->bytes, *digest}};
            one.blocks = times->blocks();
        }
        saved(said_[child], one);
    } else if (auto* m = std::get_if<wire::Images>(&answer)) {
        if (current(m->epoch)) saved(said_[child], *m);
    } else if (auto* m = std::get_if<wire::Warning>(&answer)) {
        if (current(m->epoch)) answers_.warnings.add(m->text);
        at_once(answer);
    } else if (auto* m = std::get_if<wire::Phase>(&answer)) {
        phases_.said(child, *m);
    } else if (auto* m = std::get_if<wire::Warned>(&answer)) {
        // The batch system tells all ranks at once.
        uint64_t bit = uint64_t{1} << (static_cast<uint32_t>(m->signal) & 63);
        if ((warned_ & bit) == 0) at_once(answer);
        warned_ |= bit;
    } else if (auto* m = std::get_if<wire::Restored>(&answer); m && !m->ok) {
        if (answers_.not_restored) return true;
        answers_.not_restored = *m;
        at_once(answer);
    } else {
        return count(said_[child], answer);
    }
    return true;
}

// The answers that are numbers of ranks.
bool Tally::count(Said& said, const wire::Message& answer) {
    Answers& a = answers_;
    if (auto* m = std::get_if<wire::Closed>(&answer)) {
        if (current(m->epoch)) replace(said.closed, a.closed, {m->ranks});
    } else if (auto* m = std::get_if<wire::Frozen>(&answer)) {
        if (current(m->epoch)) replace(said.frozen, a.frozen, {m->ranks, m->sent});
    } else if (auto* m = std::get_if<wire::Drained>(&answer)) {
        if (current(m->epoch) && m->round == round_)
            replace(said.drained, a.drained, {m->ranks, m->sent, m->received, m->open});
    } else if (auto* m = std::get_if<wire::Captured>(&answer)) {
        if (current(m->epoch)) replace(said.captured, a.captured, {m->ranks});
    } else if (auto* m = std::get_if<wire::Resumed>(&answer)) {
        if (current(m->epoch)) replace(said.resumed, a.resumed, {m->ranks});
    } else if (auto* m = std::get_if<wire::Restored>(&answer)) {
        replace(said.restored, a.restored, {m->ranks});
    } else if (auto* m = std::get_if<wire::ArrivedFinalize>(&answer)) {
        replace(said.finalized, a.finalized, {m->ranks});
    } else {
        return false;
    }
    return true;
}

void Tally::replace(Count& old, Count& sum, const Count& now) {
    sum.ranks += now.ranks - old.ranks;
    sum.sent += now.sent - old.sent;
    sum.received += now.received - old.received;
    sum.open += now.open - old.open;
    old = now;
}

void Tally::gone(int child) {
    phases_.gone(child);
    auto found = said_.find(child);
    if (found == said_.end()) return;
    Said& said = found->second;
    Answers& a = answers_;
    replace(said.closed, a.closed, {});
    replace(said.frozen, a.frozen, {});
    replace(said.drained, a.drained, {});
    replace(said.captured, a.captured, {});
    replace(said.resumed, a.resumed, {});
    replace(said.restored, a.restored, {});
    replace(said.finalized, a.finalized, {});
    always(a.sized >= said.sizes.ranks.count() && a.saved >= said.images.ranks.count() &&
               a.logs >= said.logs.ranks.count(),
           "more ranks that are gone than have answered");
    a.sized -= said.sizes.ranks.count();
    a.saved -= said.images.ranks.count();
    a.logs -= said.logs.ranks.count();
    told_.sizes_changed = told_.sizes_changed || !said.sizes.ranks.empty();
    told_.images_changed = told_.images_changed || !said.images.ranks.empty();
    told_.logs_changed = told_.logs_changed || !said.logs.ranks.empty();
    said_.erase(found);
}

void Tally::nobody_is_here() {
    while (!said_.empty()) gone(said_.begin()->first);
    phases_.clear();
}

void Tally::refuse(uint32_t epoch, const std::string& why, bool again, const wire::Message& message) {
    if (!current(epoch) || !answers_.refusal.empty()) return;
    answers_.refusal = why;
    answers_.again = again;
    at_once(message);
}

void Tally::sized(Said& said, const wire::Sizes& sizes) {
    auto ranks = Ranks::of(sizes.ranks);
    if (!ranks || sizes.bytes.size() != ranks->count())
        return save_failed("the protocol broke: sizes of images that are none");
    always(answers_.sized >= said.sizes.ranks.count(), "an answer that is counted less often than given");
    answers_.sized += ranks->count() - said.sizes.ranks.count();
    said.sizes = {std::move(*ranks), sizes.bytes};
    told_.sizes_changed = true;
}

void Tally::saved(Said& said, const wire::Images& images) {
    answers_.suspend_us = std::max(answers_.suspend_us, images.suspend_us);
    if (!images.error.empty()) return save_failed(images.error);
    auto ranks = Ranks::of(images.ranks);
    auto times = BlockTimes::of(images.blocks);
    if (!ranks || images.images.size() != ranks->count() || !times)
        return save_failed("the protocol broke: images that are none");
    always(answers_.saved >= said.images.ranks.count(), "an answer that is counted less often than given");
    answers_.saved += ranks->count() - said.images.ranks.count();
    said.images = {std::move(*ranks), images.images, images.suspend_us, images.needs, std::move(*times)};
    told_.images_changed = true;
}

void Tally::log_said(Said& said, const wire::LogsSaid& logs) {
    auto ranks = Ranks::of(logs.ranks);
    if (!ranks || logs.said.size() != ranks->count())
        return refuse_logs("the protocol broke: counts of message logs that are none");
    always(answers_.logs >= said.logs.ranks.count(), "an answer that is counted less often than given");
    answers_.logs += ranks->count() - said.logs.ranks.count();
    said.logs = {std::move(*ranks), logs.said};
    told_.logs_changed = true;
}

void Tally::refuse_logs(const std::string& why) { refuse(epoch_, why, false, wire::Refuse{epoch_, why}); }

void Tally::save_failed(const std::string& error) {
    if (!answers_.save_error.empty()) return;
    answers_.save_error = error;
    at_once(failed_images());
}

wire::Images Tally::failed_images() const {
    wire::Images images;
    images.epoch = epoch_;
    images.suspend_us = answers_.suspend_us;
    images.error = answers_.save_error;
    return images;
}

std::set<Generation> Tally::needs() const {
    std::set<Generation> all;
    for (auto& [child, said] : said_) all.insert(said.images.needs.begin(), said.images.needs.end());
    return all;
}

BlockTimes Tally::block_times() const {
    BlockTimes all;
    for (auto& [child, said] : said_) all.add(said.images.times);
    return all;
}

// ---- upwards

namespace {

// Lists of several children in the order of all their ranks.
template <class Item, class Each>
void in_order(const Ranks& all, std::vector<Item>& items, const Each& each) {
    items.resize(all.count());
    const auto& runs = all.runs();
    std::vector<size_t> before;  // how many ranks stand before each run
    size_t sum = 0;
    for (const wire::Run& run : runs) before.push_back(std::exchange(sum, sum + run.count));
    each([&](int32_t rank, const Item& item) {
        auto after = std::upper_bound(runs.begin(), runs.end(), rank,
                                      [](int32_t value, const wire::Run& run) { return value < run.first; });
        always(after != runs.begin(), "an item of a rank that has given none");
        auto at = static_cast<size_t>(after - runs.begin() - 1);
        always(static_cast<uint32_t>(rank - runs[at].first) < runs[at].count, "an item between two runs");
        items[before[at] + static_cast<size_t>(rank - runs[at].first)] = item;
    });
}

}  // namespace

wire::Sizes Tally::all_sizes() const {
    Ranks all;
    for (auto& [child, said] : said_) all.add(said.sizes.ranks);
    wire::Sizes sizes{epoch_, all.runs(), {}};
    in_order(all, sizes.bytes, [this](auto put) { each_size(put); });
    return sizes;
}

wire::Images Tally::all_images() const {
    Ranks all;
    for (auto& [child, said] : said_) all.add(said.images.ranks);
    wire::Images images;
    images.epoch = epoch_;
    images.ranks = all.runs();
    images.suspend_us = answers_.suspend_us;
    std::set<Generation> needed = needs();
    images.needs.assign(needed.begin(), needed.end());
    images.blocks = block_times().blocks();
    in_order(all, images.images, [this](auto put) { each_image(put); });
    return images;
}

wire::LogsSaid Tally::all_logs() const {
    Ranks all;
    for (auto& [child, said] : said_) all.add(said.logs.ranks);
    wire::LogsSaid logs{epoch_, all.runs(), {}};
    in_order(all, logs.said, [this](auto put) { each_log(put); });
    return logs;
}

// `may`: it goes up though nothing of it was said before. A number that was said and holds no more is put
// right.
template <class Make>
void Tally::hand_up_count(Count& told, const Count& now, bool may, const Make& make) {
    if (now == told || (!may && told.ranks == 0)) return;
    up_.push_back(make(now));
    told = now;
}

std::vector<wire::Message> Tally::hand_up(uint32_t all, bool time) {
    up_ = std::exchange(at_once_, {});
    const Answers& a = answers_;
    const uint32_t e = epoch_;
    auto complete = [all](uint32_t ranks) { return all > 0 && ranks == all; };
    auto whole = [&](const Count& count) { return complete(count.ranks); };
    // Ranks pass the phases together: the newest is enough.
    auto phase = furthest_behind();
    if (phase && phase != told_.phase) up_.push_back(*phase);
    told_.phase = phase;
    using C = const Count&;
    if (time || whole(a.restored))
        hand_up_count(told_.restored, a.restored, true, [](C c) {
            return wire::Restored{true, "", c.ranks};
        });
    if (time || whole(a.finalized))
        hand_up_count(told_.finalized, a.finalized, true, [](C c) { return wire::ArrivedFinalize{c.ranks}; });
    hand_up_count(told_.closed, a.closed, whole(a.closed), [e](C c) { return wire::Closed{e, c.ranks}; });
    hand_up_count(told_.frozen, a.frozen, whole(a.frozen), [e](C c) {
        return wire::Frozen{e, c.sent, c.ranks};
    });
    hand_up_count(told_.drained, a.drained, whole(a.drained),
                  [&](C c) { return wire::Drained{e, round_, c.sent, c.received, c.open, c.ranks}; });
    hand_up_count(told_.captured, a.captured, whole(a.captured), [e](C c) {
        return wire::Captured{e, c.ranks};
    });
    if (told_.sizes_changed && (complete(a.sized) || told_.sized > 0)) {
        up_.push_back(all_sizes());
        told_.sized = a.sized;
        told_.sizes_changed = false;
    }
    if (told_.images_changed && (complete(a.saved) || told_.saved > 0)) {
        up_.push_back(all_images());
        told_.saved = a.saved;
        told_.images_changed = false;
    }
    if (told_.logs_changed && (complete(a.logs) || told_.logs > 0)) {
        size_t bytes = 0;
        each_log([&](int32_t, const wire::Bytes& one) { bytes += one.size() + sizeof(uint64_t); });
        if (bytes < kMostOfLogs)
            up_.push_back(all_logs());
        else
            refuse_logs("the counts of the message logs are too many for one message");
        told_.logs = a.logs;
        told_.logs_changed = false;
    }
    if (time || whole(a.resumed))
        hand_up_count(told_.resumed, a.resumed, true, [e](C c) { return wire::Resumed{e, c.ranks}; });
    return std::move(up_);
}

bool Tally::parts_wait() const {
    return answers_.restored != told_.restored || answers_.finalized != told_.finalized ||
           answers_.resumed != told_.resumed;
}

void Tally::say_again() {
    told_ = {};
    told_.sizes_changed = told_.images_changed = told_.logs_changed = true;
    if (!answers_.refusal.empty() && answers_.again)
        at_once(wire::Again{epoch_, answers_.refusal});
    else if (!answers_.refusal.empty())
        at_once(wire::Refuse{epoch_, answers_.refusal});
    if (!answers_.save_error.empty()) at_once(failed_images());
    if (answers_.not_restored) at_once(*answers_.not_restored);
}

}  // namespace fermata::tree
