#include "lower/own_words.h"

#include <cstring>

namespace fermata::lower {

std::optional<wire::OwnState> OwnWords::news(const split::OwnState* words) {
    if (!words) return {};
    const uint32_t said = __atomic_load_n(&words->said, __ATOMIC_ACQUIRE);
    if (said == said_ || (said & 1) != 0) return {};
    split::OwnState copy;
    std::memcpy(&copy, const_cast<const split::OwnState*>(words), sizeof copy);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    // The program is writing again: the next turn takes that.
    if (words->said != said) return {};
    copy.text[sizeof copy.text - 1] = 0;
    wire::OwnState message;
    message.exists = copy.exists != 0;
    message.saved = copy.saves != saves_;
    message.failed = copy.failures != failures_;
    message.began = copy.began;
    message.answers = copy.answers;
    if (copy.generation <= Generation::kLast) message.generation = Generation(copy.generation);
    message.step = static_cast<uint64_t>(copy.step);
    message.text = copy.text;
    said_ = said;
    saves_ = copy.saves;
    failures_ = copy.failures;
    return message;
}

void OwnWords::ask(split::OwnState* words, const wire::AskProgram& wish) {
    if (!words) return;
    words->exit = wish.exit ? 1 : 0;
    __atomic_store_n(&words->asked, wish.number, __ATOMIC_RELEASE);
}

void OwnWords::captured(split::OwnState* words, uint32_t epoch) {
    if (words) words->captured = epoch;
}

}  // namespace fermata::lower
