// What ranks say of themselves when they come, and that they go: a stream of frames at the root's roster.
// Each frame comes from node (number of the frame) % 3.
#include "fuzz.h"
#include "tree/roster.h"
#include "wire/frame.h"

namespace fermata::fuzz {
namespace {

Verdict run(Input input) {
    wire::Decoder decoder(1 << 16);
    decoder.feed(input.data(), input.size());
    tree::Roster roster;
    bool good = true;
    size_t heard = 0;
    for (int frame = 0; auto message = decoder.next(); ++frame) {
        int node = frame % 3;
        if (auto* joined = std::get_if<wire::Joined>(&*message)) {
            for (const wire::Group& group : joined->groups) {
                std::string why = roster.join(node, group);
                require(why.find('\n') == std::string::npos || group.host.find('\n') != std::string::npos,
                        "a refusal of more than one line");
                good = good && why.empty();
                if (why.empty()) heard += tree::Ranks::of(group.ranks)->count();
            }
        } else if (auto* gone = std::get_if<wire::Gone>(&*message)) {
            auto ranks = tree::Ranks::of(gone->ranks);
            good = ranks && roster.leave(node, *ranks).count() == ranks->count() && good;
        } else if (std::get_if<wire::Kill>(&*message)) {
            roster.lose(node);
        }
        require(static_cast<size_t>(roster.here()) <= heard, "ranks nobody spoke of");
        require(roster.size() >= 0 && roster.size() <= tree::kMostRanks && roster.here() <= roster.size(),
                "an impossible job");
        int there = 0;
        for (auto& [at, place] : roster.places()) {
            require(place.ranks.last() < roster.size(), "a rank that cannot be");
            require(!place.ranks.empty() && place.ranks.count() == place.pids.size(), "a pid for each rank");
            there += roster.at(at);
        }
        require(there == roster.here(), "a rank at two nodes");
        require(roster.complete() == (roster.size() > 0 && roster.missing(80).empty()) &&
                    roster.missing(80).size() < 120,
                "who is missing?");
    }
    return good && !decoder.broken() ? Verdict::accepted : Verdict::refused;
}

std::vector<Bytes> seeds() {
    auto group = [](std::vector<wire::Run> ranks, int32_t size) {
        std::vector<int32_t> pids;
        for (const wire::Run& run : ranks) pids.insert(pids.end(), run.count, 4711);
        return wire::Group{-1, "node17", size, "openmpi", "Open MPI 4.1.4", {}, ranks, pids};
    };
    std::vector<std::vector<wire::Message>> talks = {
        {wire::Joined{{group({{0, 1}, {2, 1}}, 4)}}, wire::Joined{{group({{1, 1}, {3, 1}}, 4)}}},
        {wire::Joined{{group({{0, 1}}, 2)}}, wire::Joined{{group({{1, 1}}, 2)}}, wire::Kill{},
         wire::Gone{-1, {{0, 1}}, true, 4711, "node17"}},
        {wire::Joined{{group({{0, 8}}, 16)}}, wire::Kill{}, wire::Kill{}, wire::Kill{},
         wire::Joined{{group({{0, 16}}, 16)}}, wire::Kill{}, wire::Kill{},
         wire::Gone{-1, {{3, 2}, {9, 1}}, false, 1, "node17"}},
        {wire::Joined{{group({{9999999, 1}}, 10000000)}}}};
    talks[1].back() = wire::Kill{};
    std::vector<Bytes> all;
    for (const auto& talk : talks) {
        Bytes one;
        for (const wire::Message& message : talk)
            for (std::byte b : wire::encode(message)) one.push_back(static_cast<uint8_t>(b));
        all.push_back(one);
    }
    return all;
}

}  // namespace

const Target hellos{"hellos", run, nullptr, seeds, nullptr};

}  // namespace fermata::fuzz
