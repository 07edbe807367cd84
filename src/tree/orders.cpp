#include "tree/orders.h"

#include <algorithm>

namespace fermata::tree {
namespace {

template <class T, size_t I = 0>
constexpr size_t place_of() {
    if constexpr (std::is_same_v<std::variant_alternative_t<I, wire::Message::Variant>, T>)
        return I;
    else
        return place_of<T, I + 1>();
}

template <class... Types>
bool is_one_of(const wire::Message& message) {
    return (std::holds_alternative<Types>(message) || ...);
}

// How a checkpoint ended matters to who missed it, what holds for the job, and what else is waited for: which
// generation ranks shall load, what is to be copied. The messages of the clock do not, nor does room for a
// new generation: a checkpoint in which a connection was lost is given up.
bool lasts(const wire::Message& message) {
    return is_one_of<wire::Begin, wire::Freeze, wire::Take, wire::Drain, wire::Save, wire::Renew,
                     wire::AskLog, wire::Resume, wire::Cancel, wire::Leave, wire::Depart,
                     wire::FinalizeReleased, wire::Go, wire::Kill, wire::Stand, wire::Chosen, wire::AskCopies,
                     wire::KeepCopies, wire::Flush>(message);
}

}  // namespace

bool is_followed(const wire::Message& order) { return is_one_of<wire::Begin, wire::Freeze>(order); }

void Orders::add(const wire::Order& order) {
    newest_ = std::max(newest_, order.number);
    auto message = wire::unwrapped(order.frame);
    if (!message || !lasts(*message)) return;
    if (std::get_if<wire::Begin>(&*message))
        for (size_t old : {place_of<wire::Freeze>(), place_of<wire::Take>(), place_of<wire::Drain>(),
                           place_of<wire::Save>(), place_of<wire::Renew>(), place_of<wire::AskLog>()})
            kept_.erase(old);
    kept_[message->index()] = order;
}

std::vector<wire::Order> Orders::since(uint64_t heard) const {
    std::vector<wire::Order> all;
    for (auto& [kind, order] : kept_)
        if (order.number > heard) all.push_back(order);
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
    return all;
}

}  // namespace fermata::tree
