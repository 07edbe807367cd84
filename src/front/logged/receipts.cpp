// Receipts bound the logs: receivers say what they have consumed, members of communicators which calls they
// were told. The words travel on the private world, where the program sends nothing. They may be lost.
#include <algorithm>

#include "base/kill_point.h"
#include "front/core/bridge.h"
#include "front/core/sys.h"
#include "front/logged/state.h"

namespace fermata::front::logged {
namespace {

using Word = Receipts::Word;
using Line = Receipts::Line;

mpi::RealComm world_below() noexcept { return mpi::RealComm{bridge()->private_world}; }

// Letters on their way, each its own request.
struct Letter {
    Vec<Line> lines;
    int from = -1;  // of one that comes
    mpi::RealRequest real{};
    uint64_t restarts = 0;  // the lower half that has it
    bool ended = false;     // and is through with it
};
using Letters = Vec<Letter*>;
Letters *letters, *coming;

Letters& made(Letters*& all) noexcept {
    if (all == nullptr) all = fm_new<Letters>();
    return *all;
}

// Lets go of those that the library is through with, or a former one had; `over` sees the first.
template <typename F>
void reap(Letters& all, const F& over) noexcept {
    for (size_t i = 0; i < all.size();) {
        Letter* letter = all[i];
        int flag = letter->ended ? 1 : 0;
        bool lost = letter->restarts != front.restarts;
        if (!lost && flag == 0)
            lost = LOWER(Test)(&letter->real, &flag, nullptr) != 0;  // a library that fails
        letter->ended = flag != 0;
        if (!lost && (flag == 0 || is_in_doubt())) {
            i++;
            continue;
        }
        if (!lost) over(*letter);
        fm_delete(letter);
        all[i] = all.back();
        all.pop_back();
    }
}
void reap_letters() noexcept {
    reap(made(letters), [](const Letter&) {});
}

void post(Rank to, Vec<Line>&& lines) noexcept {
    if (lines.empty() || to == own_rank()) return;
    auto* letter = fm_new<Letter>();
    letter->lines = static_cast<Vec<Line>&&>(lines);
    letter->restarts = front.restarts;
    if (LOWER(Isend)(letter->lines.data(), static_cast<mpi::Count>(letter->lines.size() * sizeof(Line)),
                     real_byte(), static_cast<int>(to.number()), kReceiptTag, world_below(),
                     &letter->real) != 0) {
        fm_delete(letter);
        return;
    }
    letters->push_back(letter);
}

// Which members of a communicator have said what, at its first member.
struct Heard {
    uint64_t comm;
    Vec<uint64_t> told;  // a prefix for each member
};
Vec<Heard>* heard;

Heard& heard_of(const CommObject& comm) noexcept {
    if (heard == nullptr) heard = fm_new<Vec<Heard>>();
    for (Heard& one : *heard)
        if (one.comm == comm.uid) return one;
    heard->push_back(Heard{comm.uid, Vec<uint64_t>(static_cast<size_t>(comm.size), 0)});
    return heard->back();
}

void everywhere(replay::Uid uid, uint64_t prefix) noexcept {
    const replay::Communicator* on = machine().find(uid);
    if (on != nullptr && replay::value(on->everywhere.prefix()) >= prefix) return;
    Receipts::copy_hears({Word::everywhere, replay::value(uid), 0, prefix, 0}, own_rank());
    replay::ToldSet told;
    told.become(static_cast<replay::Instance>(prefix), {});
    machine().everywhere(uid, told);
}

// At the first member: another one has been told so much.
void hear_told(const CommObject& comm, int member, uint64_t prefix) noexcept {
    Heard& all = heard_of(comm);
    uint64_t& one = all.told[static_cast<size_t>(member)];
    const uint64_t before = *std::min_element(all.told.begin(), all.told.end());
    one = std::max(one, prefix);
    const uint64_t now = *std::min_element(all.told.begin(), all.told.end());
    if (now == before) return;
    for (Member other : comm.members) post(other.rank(), {Line{Word::everywhere, comm.uid, 0, now, 0}});
    everywhere(uid_of(comm), now);
}

void hear(const Line& line, Rank from) noexcept {
    const auto uid = static_cast<replay::Uid>(line.comm);
    if (line.word == Word::receipt) {
        kill_point("receipt.heard");
        Receipts::copy_hears(line, from);
        const replay::Channel channel{uid, own_rank(), from, static_cast<replay::Tag>(line.tag)};
        machine().receipt({channel, static_cast<replay::MessageNo>(line.count),
                           static_cast<replay::MessageNo>(line.taken)});
        return;
    }
    if (line.word == Word::ask) {
        the_log().asked = true;
        return;
    }
    if (line.word == Word::everywhere) return everywhere(uid, line.count);
    const CommObject* comm = find(uid);
    const int member = comm != nullptr ? ranks::find(comm->members, Member(from)) : -1;
    if (member >= 0) hear_told(*comm, member, line.count);
}

// Never in a call that blocks: whoever writes a letter may die before all of it is here.
void read_letters() noexcept {
    Letters& all = made(coming);
    for (;;) {
        int flag = 0;
        mpi::Status status{};
        if (LOWER(Iprobe)(mpi::FM_ANY_SOURCE, kReceiptTag, world_below(), &flag, &status) != 0 || flag == 0)
            break;
        auto* letter = fm_new<Letter>();
        letter->lines.resize(static_cast<size_t>(status.count) / sizeof(Line));
        letter->from = status.source;
        letter->restarts = front.restarts;
        if (LOWER(Irecv)(letter->lines.data(), static_cast<mpi::Count>(letter->lines.size() * sizeof(Line)),
                         real_byte(), status.source, kReceiptTag, world_below(), &letter->real) != 0) {
            fm_delete(letter);
            break;
        }
        all.push_back(letter);
    }
    reap(all, [](const Letter& letter) {
        for (const Line& line : letter.lines) hear(line, Rank(static_cast<uint32_t>(letter.from)));
    });
}

// The newest word on a channel with this lower half: letters are lost with it, and else they arrive.
struct SaidOf {
    replay::Channel channel;
    replay::MessageNo count{}, taken{};
};
struct SaidOfAll {
    replay::ChannelTable<SaidOf> channels;
    uint64_t restarts = 0;
    size_t entries = 0;
};
SaidOfAll* said_of_all;

// False: nothing was said before.
bool has_said() noexcept {
    const bool old =
        said_of_all != nullptr && (said_of_all->restarts != front.restarts ||
                                   said_of_all->entries > 2 * machine().channels_heard() + 64);  // freed ones
    if (old) fm_delete(said_of_all);
    if (!old && said_of_all != nullptr) return true;
    said_of_all = fm_new<SaidOfAll>();
    said_of_all->restarts = front.restarts;
    return false;
}

bool is_news(SaidOfAll& before, const replay::Receipt& now) noexcept {
    SaidOf& one = before.channels.of(now.channel);
    if (one.count == now.count && one.taken == now.taken) return false;
    if (one.count == replay::MessageNo{} && one.taken == replay::MessageNo{}) ++before.entries;
    one.count = now.count;
    one.taken = now.taken;
    return true;
}

void write_receipts() noexcept {
    struct To {
        Rank rank;
        Vec<Line> lines;
    };
    Vec<To> all;
    replay::Vec<replay::Receipt> now = machine().news();
    if (!has_said()) now = machine().receipts();
    for (const replay::Receipt& one : now) {
        if (!is_news(*said_of_all, one)) continue;
        auto at =
            std::find_if(all.begin(), all.end(), [&](const To& to) { return to.rank == one.channel.source; });
        if (at == all.end()) at = all.insert(all.end(), To{one.channel.source, {}});
        at->lines.push_back(Line{Word::receipt, replay::value(one.channel.comm),
                                 static_cast<int64_t>(one.channel.tag), replay::value(one.count),
                                 replay::value(one.taken)});
        if (one.channel.source == own_rank()) hear(at->lines.back(), own_rank());
    }
    for (To& to : all) post(to.rank, static_cast<Vec<Line>&&>(to.lines));
}

void write_told(const CommObject& comm) noexcept {
    const replay::Communicator* on = machine().find(uid_of(comm));
    if (on == nullptr || comm.size == 0) return;
    const uint64_t prefix = replay::value(machine().told_for_good(*on).prefix());
    if (prefix <= replay::value(on->everywhere.prefix())) return;
    const Rank first = comm.members[0].rank();
    if (first == own_rank())
        hear_told(comm, comm.rank, prefix);
    else
        post(first, {Line{Word::told, comm.uid, 0, prefix, 0}});
}

}  // namespace

size_t Receipts::ask() noexcept {
    reap_letters();
    const replay::Vec<Rank> ranks = machine().who_needs_the_log();
    for (Rank rank : ranks) post(rank, {Line{Word::ask, 0, 0, 0, 0}});
    return ranks.size();
}

void Receipts::hear_as_copy(const Line& line, Rank from) noexcept {
    hear(line, from);
    if ((++the_log().words & 63) == 0) forget_old_parts();
}

// Parts whose input nobody needs any more.
void forget_old_parts() noexcept {
    Vec<Kept>& kept = the_log().kept;
    for (size_t i = 0; i < kept.size();) {
        if (machine().logged(kept[i].comm, kept[i].instance) != nullptr) {
            i++;
            continue;
        }
        drop(kept[i].part);
        if (!kept[i].on->predefined) comm_unref(kept[i].on);
        kept[i] = kept.back();
        kept.pop_back();
    }
    note_log_use();
}

void say_what_was_consumed(uint32_t turn) noexcept {
    if ((turn & 63) == 32 && the_log().consumed != 0) exchange_receipts();
}

void exchange_receipts() noexcept {
    if (!is_live()) return;
    the_log().consumed = 0;
    the_log().consumed_bytes = 0;
    the_log().asked = false;
    reap_letters();
    kill_point("receipt.before");
    write_receipts();
    kill_point("receipt.after");
    write_told(comm_world);
    write_told(comm_self);
    for (const CommObject* comm = first_comm(); comm != nullptr; comm = comm->next) write_told(*comm);
    read_letters();
    forget_old_parts();
}

namespace {

// Takes out what the library is through with; `over` hears of each, and whether it has not failed it.
template <typename One, typename Request, typename Over>
void take_complete(Vec<One>* all, const Request& request, const Over& over) noexcept {
    for (size_t i = 0; i < all->size();) {
        int flag = 0;
        mpi::Status status{};
        const int rc = LOWER(Test)(request((*all)[i]), &flag, &status);
        if (rc == 0 && flag == 0) {
            i++;
            continue;
        }
        const One one = (*all)[i];
        all->erase(all->begin() + static_cast<ptrdiff_t>(i));
        over(one, rc == 0 || !library_fails("what it was given out of the message log", rc));
    }
}

}  // namespace

void progress() noexcept {
    Log& log = the_log();
    if (!is_live()) return see_whether_stream_ended();
    believe_held();
    take_complete(
        &log.debts, [](Debt& one) { return &one.real; },
        [&log](const Debt& one, bool good) {
            if (good) log.machine.paid(one.comm, one.instance);
        });
    take_complete(
        &log.again, [](Again& one) { return &one.real; },
        [&log](const Again& one, bool good) {
            if (good) log.machine.sent_from_log(one.channel, one.number);
        });
    take_complete(
        &log.left, [](RequestObject* r) { return real_request(r); },
        [](RequestObject* r, bool) {  // the log has it
            r->real = 0;
            release_request(r);
        });
    reap_letters();
    read_letters();
    if (log.asked) exchange_receipts();
}

void read_last() noexcept {
    // Over TCP, with more ranks than cores: the library prints a line of a letter that comes later (UCX).
    constexpr uint64_t kMomentNs = 25'000'000;
    for (const uint64_t end = now_ns() + kMomentNs; now_ns() < end;) {
        reap_letters();
        read_letters();
    }
}

bool may_arrive() noexcept {
    hear_what_is_stable();
    if (is_live() && the_log().consumed != 0) exchange_receipts();
    return is_live() && machine().may_finalize() && the_log().debts.empty() && the_log().again.empty();
}

}  // namespace fermata::front::logged
