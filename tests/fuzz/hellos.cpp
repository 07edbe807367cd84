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
            for (const wire::Hello& hello : joined->ranks) {
                std::string why = roster.join(node, hello);
                require(why.find('\n') == std::string::npos || hello.host.find('\n') != std::string::npos,
                        "a refusal of more than one line");
                good = good && why.empty();
                heard += why.empty();
            }
        } else if (auto* gone = std::get_if<wire::RankGone>(&*message)) {
            good = roster.leave(node, gone->rank) && good;
        } else if (std::get_if<wire::Kill>(&*message)) {
            roster.lose(node);
        }
        require(static_cast<size_t>(roster.here()) <= heard, "ranks nobody spoke of");
        require(roster.size() >= 0 && roster.size() <= tree::kMostRanks && roster.here() <= roster.size(),
                "an impossible job");
        for (auto& [rank, where] : roster.ranks())
            require(rank >= 0 && rank < roster.size(), "a rank that cannot be");
        require(roster.complete() == (roster.size() > 0 && roster.missing(80).empty()) &&
                    roster.missing(80).size() < 120,
                "who is missing?");
    }
    return good && !decoder.broken() ? Verdict::accepted : Verdict::refused;
}

std::vector<Bytes> seeds() {
    auto hello = [](int32_t rank, int32_t size) {
        return wire::Hello{"id", rank, size, 4711, "node17", "openmpi", "Open MPI 4.1.4", {}};
    };
    std::vector<std::vector<wire::Message>> talks = {
        {wire::Joined{{hello(0, 4), hello(2, 4)}}, wire::Joined{{hello(1, 4), hello(3, 4)}}},
        {wire::Joined{{hello(0, 2)}}, wire::Joined{{hello(1, 2)}}, wire::Kill{},
         wire::RankGone{0, 4711, "node17", true}},
        {wire::Joined{{hello(9999999, 10000000)}}}};
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
