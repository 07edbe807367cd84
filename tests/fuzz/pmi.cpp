// What ranks say to the PMI-1 engines of two nodes, and what a PMIx helper says to its daemon.
//
// pmi_lines: a sequence of u8 what, u8 size, bytes; what % 4: the rank; what / 4 % 8: 0 it ends, 1 a result
// from above with these bytes as data, else it says the bytes. pmix_helper: a stream of frames.
#include <algorithm>
#include <memory>

#include "fuzz.h"
#include "pmi/engine.h"
#include "pmi/pmix_link.h"

namespace fermata::fuzz {
namespace {
using namespace fermata::pmi;

World world_of(uint32_t node) {
    World world;
    world.epoch = 1;
    world.name = "kvs";
    world.placement.add(0, 2);
    world.placement.add(1, 2);
    world.hosts = {"a", "b"};
    world.node = node;
    return world;
}

void one_line(const std::string& text) {
    require(text.find('\n') == text.npos && !text.empty(), "not one line for the user");
}

// The daemons' and the root's part of it.
class Nodes {
  public:
    Nodes() {
        for (uint32_t node = 0; node < 2; ++node)
            engines_.push_back(std::make_unique<Engine>(world_of(node)));
    }
    Engine& of(uint32_t rank) { return *engines_[rank / 2]; }
    void say(uint32_t rank, std::string_view bytes) {
        of(rank).from_rank(Rank(rank), bytes);
        run();
    }
    void end(uint32_t rank) {
        of(rank).ended(Rank(rank), "was killed");
        run();
        for (const Fence& failed : merge_.lost(Rank(rank), "was killed")) broadcast(failed);
        run();
    }
    void broadcast(const Fence& result) {
        for (auto& engine : engines_) engine->result(result);
    }
    void run() {
        for (bool more = true; more;) {
            more = false;
            for (auto& engine : engines_)
                while (auto event = engine->next()) {
                    more = true;
                    std::visit([&](const auto& e) { take(e); }, *event);
                }
        }
    }
    bool good = true;

  private:
    void take(const ToRank& e) {
        require(e.rank < Rank(4) && e.bytes.rfind("cmd=", 0) == 0 && e.bytes.back() == '\n',
                "an answer that is none");
    }
    void take(const Fence& e) {
        require(e.of == 4 && (e.ranks == 2) == e.fault.empty(), "a part that cannot be");
        if (auto result = merge_.add(e)) broadcast(*result);
    }
    void take(const Fault& e) {
        require(e.rank && *e.rank < Rank(4), "a fault of nobody");
        one_line(e.line);
        good = false;
    }
    void take(const Abort& e) {
        require(e.rank < Rank(4), "an abort of nobody");
        one_line(e.text);
    }
    template <class Other>
    void take(const Other&) {
        require(false, "an event that PMI-1 does not have");
    }

    std::vector<std::unique_ptr<Engine>> engines_;
    FenceMerge merge_{FenceMerge::Level::root, 1, 4};
};

Verdict talk(Input input) {
    Nodes nodes;
    bool alive[4] = {true, true, true, true};
    while (input.size() >= 2) {
        const uint32_t rank = input[0] % 4, what = input[0] / 4 % 8;
        const size_t size = std::min<size_t>(input[1], input.size() - 2);
        const std::string bytes(reinterpret_cast<const char*>(input.data()) + 2, size);
        input = input.subspan(2 + size);
        if (what == 0) {
            alive[rank] = false;
            nodes.end(rank);
        } else if (what == 1) {
            Fence result;
            result.name = {1, {}, rank};
            result.of = result.ranks = 4;
            result.data = bytes;
            nodes.of(rank).result(result);
            nodes.run();
        } else {
            nodes.say(rank, bytes);
        }
    }
    const bool good = nodes.good;
    // Rank 0 dies: nobody may wait for it, whatever was said before.
    nodes.end(0);
    for (uint32_t rank = 1; rank < 4; ++rank) {
        if (!alive[rank]) continue;
        nodes.say(rank, "\nendcmd\ncmd=barrier_in\n");
        require(nodes.of(rank).stage(Rank(rank)) == Stage::failed, "a rank waits for a dead one");
    }
    return good ? Verdict::accepted : Verdict::refused;
}

void add(Bytes& input, uint32_t rank, unsigned what, const std::string& text) {
    for (size_t at = 0; at == 0 || at < text.size(); at += 255) {
        const std::string part = text.substr(at, 255);
        input.push_back(static_cast<uint8_t>(rank + 4 * what));
        input.push_back(static_cast<uint8_t>(part.size()));
        input.insert(input.end(), part.begin(), part.end());
    }
}

std::vector<Bytes> talks() {
    const std::string init = "cmd=init pmi_version=1 pmi_subversion=1\n";
    const std::string ask =
        "cmd=get_maxes\ncmd=get_appnum\ncmd=get_my_kvsname\ncmd=get_universe_size\n"
        "cmd=get kvsname=kvs key=PMI_process_mapping\n";
    Bytes start, spawn, abort, early;
    for (uint32_t rank = 0; rank < 4; ++rank) {
        add(start, rank, 2, init + ask);
        add(start, rank, 2, "cmd=put kvsname=kvs key=r" + std::to_string(rank) + " value=x#y$1\n");
        add(abort, rank, 2, init);
    }
    for (uint32_t rank = 0; rank < 4; ++rank) add(start, rank, 2, "cmd=barrier_in\n");
    for (uint32_t rank = 0; rank < 4; ++rank)
        add(start, rank, 2, "cmd=get kvsname=kvs key=r3\ncmd=finalize\n");
    for (uint32_t rank = 1; rank < 4; ++rank) add(start, rank, 0, "");
    add(spawn, 1, 2,
        init + "mcmd=spawn\nnprocs=1\nexecname=a b\nendcmd\ncmd=publish_name service=a port=b\n");
    add(abort, 2, 2, "cmd=abort exitcode=7\n");
    add(early, 3, 0, "");
    add(early, 1, 1, "a=b\n");
    return {start, spawn, abort, early};
}

// Everything a helper says, to a daemon; and every message, written again, is the same bytes.
Verdict helper_frames(Input input) {
    const std::string bytes(reinterpret_cast<const char*>(input.data()), input.size());
    bool good = true;
    try {
        helper::Decoder decoder;
        decoder.feed(bytes);
        std::string again;
        while (auto message = decoder.next()) again += helper::frame(*message);
        require(bytes.compare(0, again.size(), again) == 0, "a message is not what it was read from");
        good = again.size() == bytes.size();
    } catch (const Error&) {
        good = false;
    }
    PmixLink link(world_of(0), "/run");
    FenceMerge merge(FenceMerge::Level::root, 1, 4);
    size_t node_faults = 0;
    auto run = [&] {
        while (auto event = link.next()) {
            if (auto* fault = std::get_if<Fault>(&*event)) {
                one_line(fault->line);
                node_faults += !fault->rank;
            } else if (auto* abort = std::get_if<Abort>(&*event)) {
                require(abort->rank < Rank(2), "an abort of nobody");
                if (!abort->text.empty()) one_line(abort->text);
            } else if (auto* part = std::get_if<Fence>(&*event)) {
                if (auto result = merge.add(*part)) link.result(*result);
            }
        }
    };
    // In pieces, so that a frame is seen before it is whole.
    for (size_t at = 0; at < bytes.size(); at += 7) {
        link.from_helper(std::string_view(bytes).substr(at, 7));
        run();
    }
    const bool understood = node_faults == 0;
    link.helper_ended("has ended");
    link.ended(Rank(0), "was killed");
    run();
    for (uint32_t rank = 0; rank < 2; ++rank)
        require(link.stage(Rank(rank)) == Stage::finalized || link.stage(Rank(rank)) == Stage::failed,
                "a rank runs on");
    require(node_faults <= 1, "more than one fault of a helper");
    return good && understood ? Verdict::accepted : Verdict::refused;
}

std::vector<Bytes> frame_seeds() {
    const std::vector<std::vector<helper::Message>> talks = {
        {helper::Ready{{{Rank(0), {{"PMIX_RANK", "0"}}}, {Rank(1), {{"PMIX_RANK", "1"}, {"A", ""}}}}},
         helper::Reached{Rank(0), Stage::running}, helper::Reached{Rank(1), Stage::running},
         helper::Entered{0, {{Rank(0), 2}}, "data"}, helper::Entered{1, {}, "data"},
         helper::Request{0, Rank(3)}, helper::Publication{1, 5, "blob", ""},
         helper::Reached{Rank(0), Stage::finalized}, helper::Reached{Rank(1), Stage::finalized}},
        {helper::Aborted{Rank(1), 7, "N/A"}},
    };
    std::vector<Bytes> all;
    for (const auto& talk : talks) {
        std::string bytes;
        for (const helper::Message& message : talk) bytes += helper::frame(message);
        all.emplace_back(bytes.begin(), bytes.end());
    }
    return all;
}

}  // namespace

const Target pmi_lines{"pmi_lines", talk, nullptr, talks, nullptr};
const Target pmix_helper{"pmix_helper", helper_frames, nullptr, frame_seeds, nullptr};

}  // namespace fermata::fuzz
