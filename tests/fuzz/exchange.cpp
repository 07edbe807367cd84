// What ranks say in an exchange of the message log, and what they are told: what a reader takes is what a
// writer writes, and an exchange can be made of it.
#include <algorithm>

#include "fuzz.h"
#include "replay/wire_form.h"

namespace fermata::fuzz {
namespace {

constexpr uint32_t kRanks = 4;

replay::Instance nth(uint64_t n) { return static_cast<replay::Instance>(n); }

template <class Value>
bool same(const std::optional<Value>& value, Input input) {
    if (!value) return false;
    const replay::Bytes again = replay::wire_form(*value);
    require(std::equal(again.begin(), again.end(), input.begin(), input.end()), "another form of one value");
    return true;
}

Verdict run(Input input) {
    const bool said = same(replay::said_from(input, kRanks), input);
    const bool orders = same(replay::orders_from(input, kRanks), input);
    require(!said || !orders, "counts that are orders");
    return said || orders ? Verdict::accepted : Verdict::refused;
}

replay::Vec<fermata::Rank> all_ranks() {
    replay::Vec<fermata::Rank> all;
    for (uint32_t n = 0; n < kRanks; n++) all.push_back(fermata::Rank(n));
    return all;
}

std::vector<Bytes> seeds() {
    replay::Said said{fermata::Rank(1), {}, {}};
    said.consumed.push_back(
        {{replay::Uid{1}, fermata::Rank(0), fermata::Rank(1), replay::Tag{7}}, replay::MessageNo{12}});
    replay::CommCounts world{replay::Uid{1}, replay::Uid{0}, nth(0), all_ranks(), {}, nth(6)};
    for (uint64_t n : {1, 2, 4, 6}) world.told.add(nth(n));
    said.comms.push_back(world);

    replay::Orders orders{replay::Epoch{3}, said.consumed, {}};
    replay::Planned planned{nth(4), {}, {}};
    planned.told.push_back(fermata::Rank(2));
    planned.made.push_back(replay::Uid{77});
    orders.comms.push_back({replay::Uid{1}, replay::Uid{0}, nth(0), all_ranks(), {}});
    orders.comms[0].plan.push_back(planned);

    std::vector<Bytes> all;
    for (const replay::Bytes& bytes : {replay::wire_form(said), replay::wire_form(orders)})
        all.push_back(Bytes(bytes.begin(), bytes.end()));
    return all;
}

}  // namespace

const Target exchange{"exchange", run, nullptr, seeds, nullptr};

}  // namespace fermata::fuzz
