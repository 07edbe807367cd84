#include "tree/tally.h"

#include <algorithm>
#include <utility>

namespace fermata::tree {

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

// What ranks have said of a restart, and of their end, is not an answer: it stays.
void Tally::count_anew() {
    Answers fresh;
    fresh.refusal = std::move(answers_.refusal);
    fresh.again = answers_.again;
    fresh.warnings = std::move(answers_.warnings);
    fresh.restored = answers_.restored;
    fresh.finalized = answers_.finalized;
    fresh.not_restored = std::move(answers_.not_restored);
    answers_ = std::move(fresh);
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
    } else if (auto* m = std::get_if<wire::Save>(&question)) {
        anew(m->epoch);
    } else if (auto* m = std::get_if<wire::Cancel>(&question)) {
        anew(m->epoch);
    } else if (std::get_if<wire::Resume>(&question)) {
        // Not a new question: with a forked writer Saved comes after this.
        answers_.resumed = 0;
    }
}

bool Tally::take(int child, const wire::Message& answer) {
    Answers& a = answers_;
    if (auto* m = std::get_if<wire::Refuse>(&answer)) {
        refuse(m->epoch, m->why, false, answer);
    } else if (auto* m = std::get_if<wire::Again>(&answer)) {
        refuse(m->epoch, m->why, true, answer);
    } else if (auto* m = std::get_if<wire::Closed>(&answer)) {
        if (current(m->epoch)) a.closed += m->ranks;
    } else if (auto* m = std::get_if<wire::Frozen>(&answer)) {
        if (current(m->epoch)) a.frozen += m->ranks, a.sent += m->sent;
    } else if (auto* m = std::get_if<wire::Drained>(&answer)) {
        if (!current(m->epoch) || m->round != round_) return true;
        a.drained += m->ranks;
        a.sent += m->sent, a.received += m->received, a.open += m->open;
    } else if (auto* m = std::get_if<wire::Captured>(&answer)) {
        if (current(m->epoch)) a.captured += m->ranks;
    } else if (auto* m = std::get_if<wire::Sized>(&answer)) {
        if (current(m->epoch)) a.sized.push_back(*m);
    } else if (auto* m = std::get_if<wire::SizedList>(&answer)) {
        if (current(m->epoch)) a.sized.insert(a.sized.end(), m->parts.begin(), m->parts.end());
    } else if (auto* m = std::get_if<wire::Saved>(&answer)) {
        if (current(m->epoch)) saved(*m);
    } else if (auto* m = std::get_if<wire::SavedList>(&answer)) {
        if (!current(m->epoch)) return true;
        for (const wire::Saved& image : m->images) saved(image);
    } else if (auto* m = std::get_if<wire::Resumed>(&answer)) {
        if (current(m->epoch)) a.resumed += m->ranks;
    } else if (auto* m = std::get_if<wire::Warning>(&answer)) {
        if (current(m->epoch)) a.warnings.add(m->text);
        at_once(answer);
    } else if (auto* m = std::get_if<wire::Warned>(&answer)) {
        // The batch system tells all ranks at once.
        uint64_t bit = uint64_t{1} << (static_cast<uint32_t>(m->signal) & 63);
        if ((warned_ & bit) == 0) at_once(answer);
        warned_ |= bit;
    } else if (auto* m = std::get_if<wire::ArrivedFinalize>(&answer)) {
        a.finalized += m->ranks;
    } else if (auto* m = std::get_if<wire::Phase>(&answer)) {
        phases_.said(child, *m);
    } else if (auto* m = std::get_if<wire::Restored>(&answer)) {
        if (m->ok) {
            a.restored += m->ranks;
        } else if (!a.not_restored) {
            a.not_restored = *m;
            at_once(answer);
        }
    } else {
        return false;
    }
    return true;
}

void Tally::refuse(uint32_t epoch, const std::string& why, bool again, const wire::Message& message) {
    if (!current(epoch) || !answers_.refusal.empty()) return;
    answers_.refusal = why;
    answers_.again = again;
    at_once(message);
}

void Tally::saved(const wire::Saved& image) {
    answers_.suspend_us = std::max(answers_.suspend_us, image.suspend_us);
    if (image.error.empty()) {
        answers_.saved.push_back(image);
    } else if (answers_.save_error.empty()) {
        answers_.save_error = image.error;
        at_once(wire::SavedList{image.epoch, {image}});
    }
}

std::vector<wire::Message> Tally::hand_up(uint32_t all) {
    std::vector<wire::Message> up = std::exchange(at_once_, {});
    Answers& a = answers_;
    // These are not asked for: ranks come one by one, and who is above adds them up.
    if (a.restored > 0) up.push_back(wire::Restored{true, "", std::exchange(a.restored, 0)});
    if (a.finalized > 0) up.push_back(wire::ArrivedFinalize{std::exchange(a.finalized, 0)});
    // Ranks pass the phases together: the newest is enough.
    auto phase = furthest_behind();
    if (phase && phase != told_phase_) up.push_back(*phase);
    told_phase_ = phase;
    if (all == 0) return up;
    if (a.closed == all) up.push_back(wire::Closed{epoch_, std::exchange(a.closed, 0)});
    if (a.frozen == all)
        up.push_back(wire::Frozen{epoch_, std::exchange(a.sent, 0), std::exchange(a.frozen, 0)});
    if (a.drained == all) {
        up.push_back(wire::Drained{epoch_, round_, a.sent, a.received, a.open, a.drained});
        a.drained = 0, a.sent = a.received = a.open = 0;
    }
    if (a.captured == all) up.push_back(wire::Captured{epoch_, std::exchange(a.captured, 0)});
    if (a.sized.size() == all) up.push_back(wire::SizedList{epoch_, std::exchange(a.sized, {})});
    if (a.saved.size() == all) up.push_back(wire::SavedList{epoch_, std::exchange(a.saved, {})});
    if (a.resumed >= all) up.push_back(wire::Resumed{epoch_, std::exchange(a.resumed, 0)});
    return up;
}

}  // namespace fermata::tree
