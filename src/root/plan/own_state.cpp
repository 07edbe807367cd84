#include "root/plan/own_state.h"

#include <algorithm>

#include "base/text.h"

namespace fermata::root {
namespace {

constexpr int64_t kSayAgainMs = 5000;
constexpr int64_t kComingMs = 2000;  // a program that runs may be about to open libfermata

}  // namespace

void OwnState::heard(const wire::OwnState& said, int64_t now) {
    used_ = true;
    exists_ = exists_ || said.exists;
    saved_ = saved_ || said.saved;
    if (said.saved) began_ = std::max(began_, said.began);
    newest_ = saved_ && began_ >= whole_;
    again_ = again_ || !(said.saved || said.failed);
    if (said.exists && !said.failed) {
        directory_ = said.text;
        generation_ = said.generation;
        what_ = fmt::format("{} in {}, step {}", said.generation.name(), visible(said.text),
                            static_cast<int64_t>(said.step));
    }
    auto answered = std::find_if(wishes_.begin(), wishes_.end(),
                                 [&](const Wish& wish) { return wish.number == said.answers; });
    if (answered == wishes_.end() || !(said.saved || said.failed)) return;
    // A save that began after a wish is the answer to those before it, too.
    for (size_t left = static_cast<size_t>(answered - wishes_.begin()) + 1; left > 0; --left) {
        const Wish wish = wishes_.front();
        wishes_.pop_front();
        if (said.failed)
            answers_.push_back(
                failed(wish, ExitCode::failed,
                       fmt::format("the program could not save its own state: {}", visible(said.text))));
        else
            answers_.push_back(saved(wish, now));
    }
}

void OwnState::whole_committed(uint32_t epoch) {
    whole_ = epoch + 1;
    newest_ = saved_ && began_ >= whole_;
}

OwnState::Answer OwnState::saved(const Wish& wish, int64_t now) {
    Outcome outcome;
    outcome.ok = true;
    outcome.generation = generation_;
    outcome.directory = directory_;
    outcome.line = fmt::format("the program has saved its own state: {}", what_);
    outcome.seconds = static_cast<double>(now - wish.began) / 1000;
    outcome.detail = fmt::format("{:.2f} s after the wish", outcome.seconds);
    // How long the last one takes from the wish on is what has to be known of it.
    outcome.measured.until_saving = outcome.seconds;
    if (wish.request.stop) ends_by_ = std::max(wish.end, now + 1);
    return {wish.request, outcome};
}

void OwnState::wish(const Request& request, uint64_t number, int64_t now, int64_t end) {
    wishes_.push_back({request, number, now, end});
    number_ = number;
    exit_ = exit_ || request.stop;
    told_ = 0;
}

std::optional<wire::AskProgram> OwnState::take_word(int64_t now) {
    if (std::exchange(taken_back_, false)) {
        told_ = wishes_.empty() ? 0 : now;
        return wire::AskProgram{wishes_.empty() ? 0 : number_, exit_};
    }
    const bool again = std::exchange(again_, false);
    if (wishes_.empty() || !used_ || (told_ != 0 && !again && now - told_ < kSayAgainMs)) return {};
    told_ = now;
    return wire::AskProgram{number_, exit_};
}

OwnState::Answer OwnState::failed(const Wish& wish, ExitCode code, const std::string& why) {
    Outcome outcome;
    outcome.code = code;
    outcome.line = why;
    return {wish.request, outcome};
}

// The time of this wish is over; nothing while it is not.
std::optional<OwnState::Answer> OwnState::too_late(const Wish& wish, int64_t now) const {
    if (!used_ && runs_since_ > 0 && now >= std::max(wish.began, runs_since_) + kComingMs)
        return failed(
            wish, ExitCode::refused,
            "the program has not opened libfermata (yet): without --own-state its processes are saved");
    if (now < wish.end) return {};
    return failed(
        wish, ExitCode::timeout,
        fmt::format("the program has not {} in {:.0f} s{}",
                    used_ ? "saved its own state" : "opened libfermata",
                    static_cast<double>(now - wish.began) / 1000,
                    used_ ? ": it has to call fermata_should_checkpoint(), and fermata_save() then" : ""));
}

std::vector<OwnState::Answer> OwnState::take_answers(int64_t now) {
    for (auto wish = wishes_.begin(); wish != wishes_.end();) {
        const std::optional<Answer> answer = too_late(*wish, now);
        if (!answer) {
            ++wish;
            continue;
        }
        answers_.push_back(*answer);
        wish = wishes_.erase(wish);
        taken_back_ = true;
    }
    if (taken_back_ && ends_by_ == 0)
        exit_ = std::any_of(wishes_.begin(), wishes_.end(), [](const Wish& one) { return one.request.stop; });
    return std::exchange(answers_, {});
}

std::vector<OwnState::Answer> OwnState::take_rest(const std::string& why) {
    for (const Wish& wish : wishes_) answers_.push_back(failed(wish, ExitCode::failed, why));
    wishes_.clear();
    return std::exchange(answers_, {});
}

bool OwnState::stopping() const {
    return ends_by_ > 0 ||
           std::any_of(wishes_.begin(), wishes_.end(), [](const Wish& wish) { return wish.request.stop; });
}

}  // namespace fermata::root
