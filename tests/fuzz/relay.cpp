// What a node daemon hears from those above and below it in the tree, at its Relay. Each frame stands behind
// a byte that says from whom it comes, or what has happened to a connection.
#include "tree/relay.h"

#include <set>

#include "fuzz.h"
#include "wire/frame.h"

namespace fermata::fuzz {
namespace {

constexpr int kChildren = 4;
enum Who : uint8_t { above, own, lost_above, connected, hand_up, child_gone, child = 8 };

std::optional<wire::Message> next_frame(Input input, size_t& at) {
    wire::Decoder decoder(1 << 16);
    uint32_t payload = 0;
    if (input.size() - at < wire::kHeaderSize) return {};
    std::memcpy(&payload, input.data() + at, sizeof payload);
    const size_t whole = wire::kHeaderSize + size_t{payload};
    if (input.size() - at < whole) return {};
    decoder.feed(input.data() + at, whole);
    at += whole;
    return decoder.next();
}

void from_above(tree::Relay& relay, const wire::Message& message) {
    if (auto* parent = std::get_if<wire::Parent>(&message))
        relay.placed(*parent);
    else if (auto* roll = std::get_if<wire::Roll>(&message))
        relay.roll(*roll);
    else if (auto* order = std::get_if<wire::Order>(&message)) {
        if (auto inner = relay.order(*order)) relay.tally().ask(*inner);
    } else if (auto* letter = std::get_if<wire::To>(&message))
        relay.to(*letter);
}

void look(tree::Relay& relay) {
    for (const tree::Relay::Out& out : relay.take_out()) {
        require(out.to >= tree::Relay::kUp, "a message for nobody");
        wire::Decoder decoder;
        const wire::Bytes frame = wire::encode(out.message);
        decoder.feed(frame.data(), frame.size());
        require(decoder.next() && decoder.empty(), "it says what nobody can read");
    }
    uint32_t below = 0;
    for (auto& [node, ranks] : relay.children()) below += ranks;
    require(below == relay.ranks_below(), "ranks below nobody");
}

Verdict run(Input input) {
    tree::Relay relay;
    for (size_t at = 0; at < input.size();) {
        const uint8_t who = input[at++];
        const int number = who % kChildren;
        if (who == lost_above) {
            relay.lost_above();
        } else if (who == connected) {
            relay.above();
        } else if (who == hand_up) {
            relay.hand_up(3, true);
        } else if (who == child_gone) {
            relay.child_gone(number, true);
        } else {
            auto message = next_frame(input, at);
            if (!message) return Verdict::refused;
            auto* attach = std::get_if<wire::Attach>(&*message);
            if (who == above)
                from_above(relay, *message);
            else if (who == own)
                relay.own(*message);
            else if (attach && attach->node >= 0 && attach->node < kChildren)
                relay.child(*attach);
            else
                relay.from_child(number, *message);
        }
        look(relay);
    }
    return Verdict::accepted;
}

std::vector<Bytes> seeds() {
    wire::Group group{1, "node17", 64, "openmpi", "Open MPI 4.1.4", {}, {{4, 2}}, {4711, 4712}};
    wire::Group mine{-1, "node16", 64, "openmpi", "Open MPI 4.1.4", {}, {{6, 2}}, {4713, 4714}};
    const wire::Message placed = wire::Parent{0, 3, {{6, "10.0.0.5:4711"}}, 5000, 30000};
    const wire::Message here = wire::Here{1, {1}, {group}};
    const wire::Message freeze = wire::Order{4, wire::encode(wire::Freeze{7})};
    using Step = std::pair<uint8_t, std::optional<wire::Message>>;
    const std::vector<std::vector<Step>> plays = {
        {{above, placed},
         {connected, {}},
         {own, wire::Joined{{mine}}},
         {above, wire::Roll{1}},
         {child, wire::Attach{1, 3, 0}},
         {child + 1, here},
         {above, freeze},
         {child + 1, wire::Frozen{7, 100, 2}},
         {hand_up, {}},
         {lost_above, {}},
         {connected, {}},
         {above, wire::Roll{2}},
         {hand_up, {}}},
        {{above, placed},
         {above, wire::Roll{1}},
         {child, wire::Attach{1, 3, 0}},
         {child + 1, here},
         {child + 1, wire::Gone{1, {{5, 1}}, false, 4712, "node17", 9}},
         {own, wire::Fatal{"why", 3}},
         {child_gone, {}},
         {above, wire::Roll{2}},
         {child, wire::Attach{2, 9, 2}},
         {child + 2, wire::Missing{2, 3, wire::Absence::silent}}},
        {{above, placed},
         {above, wire::Roll{1}},
         {child, wire::Attach{1, 3, 0}},
         {child + 1, here},
         {above, wire::To{1, wire::encode(wire::Kill{})}},
         {own, wire::InStarter{6, 1, "sh", ""}},
         {own, wire::Room{7, "node16", "", ""}},
         {child + 1, wire::Sizes{7, {{4, 2}}, {5, 6}}},
         {child + 1, wire::Phase{wire::RestartPhase::adopt, 4, 1, 2}},
         {hand_up, {}}}};
    std::vector<Bytes> all;
    for (const auto& play : plays) {
        Bytes one;
        for (const auto& [who, message] : play) {
            one.push_back(who);
            if (message)
                for (std::byte b : wire::encode(*message)) one.push_back(static_cast<uint8_t>(b));
        }
        all.push_back(one);
    }
    return all;
}

}  // namespace

const Target relay{"relay", run, nullptr, seeds, nullptr};

}  // namespace fermata::fuzz
