#include "lower/agent_events.h"

namespace fermata::lower {

std::optional<Event> event_of(const wire::Message& message) {
    if (std::holds_alternative<wire::Begin>(message)) return Event::begin;
    if (std::holds_alternative<wire::Clock>(message)) return Event::clock;
    if (std::holds_alternative<wire::Freeze>(message)) return Event::freeze;
    if (std::holds_alternative<wire::Take>(message)) return Event::take;
    if (std::holds_alternative<wire::Drain>(message)) return Event::drain;
    if (std::holds_alternative<wire::AskLog>(message)) return Event::ask_log;
    if (std::holds_alternative<wire::LogOrder>(message)) return Event::orders;
    if (std::holds_alternative<wire::Save>(message)) return Event::save;
    if (std::holds_alternative<wire::Renew>(message)) return Event::save;
    if (std::holds_alternative<wire::Placed>(message)) return Event::placed;
    if (std::holds_alternative<wire::Resume>(message)) return Event::resume;
    if (std::holds_alternative<wire::Cancel>(message)) return Event::cancel;
    if (std::holds_alternative<wire::Leave>(message)) return Event::leave;
    if (std::holds_alternative<wire::Go>(message)) return Event::go;
    return {};
}

std::optional<uint32_t> epoch_of(const wire::Message& message) {
    if (auto* m = std::get_if<wire::Freeze>(&message)) return m->epoch;
    if (auto* m = std::get_if<wire::Take>(&message)) return m->epoch;
    if (auto* m = std::get_if<wire::Drain>(&message)) return m->epoch;
    if (auto* m = std::get_if<wire::AskLog>(&message)) return m->epoch;
    if (auto* m = std::get_if<wire::LogOrder>(&message)) return m->epoch;
    if (auto* m = std::get_if<wire::Save>(&message)) return m->epoch;
    if (auto* m = std::get_if<wire::Renew>(&message)) return m->epoch;
    if (auto* m = std::get_if<wire::Placed>(&message)) return m->epoch;
    if (auto* m = std::get_if<wire::Leave>(&message); m && m->epoch > 0) return m->epoch;
    return {};
}

}  // namespace fermata::lower
