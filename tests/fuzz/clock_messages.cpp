// Messages of the collective clock at all their readers: a rank, a node, the root. An input is a sequence of
//     u8 to, u8 size, bytes
// with to % 4: 0 rank, 1 node from a child, 2 node from its parent, 3 root; to / 4 % 3: which child.
#include <algorithm>
#include <cstdlib>

#include "clock/clock.h"
#include "clock/tree.h"
#include "fuzz.h"

namespace fermata::fuzz {
namespace {
using namespace fermata::clock;

struct Memory {
    std::vector<void*> blocks;
    ~Memory() {
        for (void* block : blocks) std::free(block);
    }
    static void* take(void* self, size_t bytes) {
        if (bytes > size_t{64} << 20) return nullptr;
        void* block = aligned_alloc(64, (bytes + 63) / 64 * 64);
        std::memset(block, 0, bytes);
        static_cast<Memory*>(self)->blocks.push_back(block);
        return block;
    }
};

Environment quiet() {
    auto nothing = [](void*) {};
    return {nullptr, nothing, nothing, [](void*, std::atomic<uint32_t>*, uint32_t, uint32_t) {},
            nothing, nothing};
}

clock::Bytes intent(Epoch epoch) {
    uint8_t bytes[8];
    Writer w(bytes, sizeof bytes);
    w.header(Kind::intent, epoch);
    return {bytes, bytes + w.size()};
}

// What a reader passes on must itself be readable.
void well_formed(ByteSpan message) {
    Reader r(message.data(), message.size());
    Header h;
    require(message.size() <= kMaxMessage && r.header(&h), "an ill-formed message was passed on");
}

Verdict run(Input input) {
    Memory memory;
    Options options;
    options.me = 0;
    options.world = 4;
    RankClock* rank = RankClock::create(options, quiet(), {&memory, Memory::take});
    Rank members[] = {0, 1, 2, 3};
    rank->register_comm(Uid{1}, members, 4);
    clock::Node node(2);
    clock::Root root(2);
    root.begin(1, 0);
    clock::Bytes begin = intent(1);
    require(node.from_parent(begin) && rank->inbox(begin.data(), begin.size()), "INTENT was refused");
    bool good = true;
    uint64_t now = 1;
    while (input.size() >= 2) {
        unsigned to = input[0] % 4, child = input[0] / 4 % 3;
        size_t size = std::min<size_t>(input[1], input.size() - 2);
        clock::Bytes message(input.data() + 2, input.data() + 2 + size);
        input = input.subspan(2 + size);
        bool taken = false;
        if (to == 0) {
            const char* why = nullptr;
            taken = rank->inbox(message.data(), message.size(), &why);
            require(taken || (why && *why), "a rank refuses without a word");
        } else if (to == 3) {
            taken = root.from_child(child, message, now);
            require(taken || !root.error().empty(), "the root refuses without a word");
        } else {
            taken = to == 1 ? node.from_child(child, message) : node.from_parent(message);
            require(taken || !node.error().empty(), "a node refuses without a word");
        }
        good = good && taken;
        rank->poll(++now);
        root.poll(now);
        uint8_t bytes[kMaxMessage];
        while (size_t n = rank->outbox(bytes, sizeof bytes)) well_formed({bytes, n});
        clock::Bytes out;
        while (node.next_up(&out) || node.next_down(&out) || root.next_down(&out)) well_formed(out);
    }
    return good ? Verdict::accepted : Verdict::refused;
}

Bytes operator+(Bytes a, const Bytes& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

// Every message alone, after those that must come before it.
std::vector<Bytes> seeds() {
    auto message = [](unsigned to, Kind kind, auto&& body) {
        uint8_t bytes[256];
        Writer w(bytes, sizeof bytes);
        w.header(kind, 1);
        body(w);
        return Bytes{static_cast<uint8_t>(to), static_cast<uint8_t>(w.size())} +
               Bytes(bytes, bytes + w.size());
    };
    Entry e;
    e.uid = Uid{1};
    e.target = e.least_obliged = 3;
    e.least_entered = 2;
    e.ranks = 2;
    e.size = 4;
    e.run_count = 1;
    auto table = [&](Writer& w) { w.u32(1).u32(1).u32(0).entry(e).run({0, 4}); };
    std::vector<Bytes> all;
    for (unsigned to : {1, 3}) {  // a node, the root; both from child 0 and 1
        Bytes reports = message(to, Kind::report, table) + message(to + 4, Kind::report, table);
        all.push_back(reports);
        for (unsigned child : {0, 4}) {
            all.push_back(reports + message(to + child, Kind::raise, [&](Writer& w) {
                              w.entry(e).run({0, 4});
                          }));
            all.push_back(reports + message(to + child, Kind::demand,
                                            [](Writer& w) { w.rank(0).rank(1).u64(2).u64(1); }));
            all.push_back(reports + message(to + child, Kind::licence, [](Writer& w) { w.rank(1).u32(2); }));
            all.push_back(reports + message(to + child, Kind::revoke, [](Writer& w) { w.rank(1); }));
            all.push_back(reports + message(to + child, Kind::safe, [](Writer& w) { w.u32(0); }));
        }
    }
    for (unsigned to : {0, 2}) {  // a rank, a node
        Bytes targets = message(to, Kind::targets, table);
        all.push_back(targets);
        all.push_back(targets + message(to, Kind::news, [&](Writer& w) {
                          w.u32(1).u32(4).u32(1).entry(e).run({0, 4}).u32(2).rank(0).rank(1).u64(2).u64(1);
                          w.u32(3).rank(1).u32(1).u32(4).rank(1);
                      }));
        all.push_back(targets + message(to, Kind::freeze, [](Writer&) {}));
    }
    return all;
}

}  // namespace

const Target clock_messages{"clock_messages", run, nullptr, seeds, nullptr};

}  // namespace fermata::fuzz
