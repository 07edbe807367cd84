#include "noded/parity_work.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/invariant.h"
#include "base/log.h"
#include "base/text.h"
#include "erasure/names.h"
#include "erasure/parity_file.h"
#include "erasure/rebuild.h"
#include "level/memory.h"
#include "level/parity_here.h"
#include "level/place.h"
#include "store/remove.h"
#include "tree/ranks.h"

namespace fermata::noded {
namespace {

using erasure::Contents;
using erasure::Group;
using erasure::Member;

constexpr uint64_t kMostContents = uint64_t{1} << 30;
constexpr double kPatience = 600;  // s, for others to add up what they have
constexpr useconds_t kFirstNap = 1'000, kLongestNap = 50'000;

size_t place_in(const wire::PeerGroup& group, const std::string& host) {
    for (size_t i = 0; i < group.peers.size(); ++i)
        if (group.peers[i].host == host) return i;
    fail("{} is not in this group", host);
}

tree::Ranks ranks_of(const std::vector<wire::Run>& runs) {
    auto ranks = tree::Ranks::of(runs);
    if (!ranks) fail("impossible ranks in an order");
    return *ranks;
}

// A peer that was told later, or has more to add up, has not got it yet.
Contents contents_from(PeerSource& source, const OwnNode& own, const wire::PeerGroup& group, size_t peer) {
    const double end = monotonic_s() + kPatience;
    for (useconds_t nap = kFirstNap;; nap = std::min(2 * nap, kLongestNap)) try {
            const auto bytes =
                source.whole(Member{static_cast<uint32_t>(peer)}, erasure::kContentsFile, kMostContents);
            return Contents::parse(bytes,
                                   fmt::format("{} of {}", erasure::kContentsFile, group.peers[peer].host));
        } catch (const Error&) {
            const bool there = source.reachable(Member{static_cast<uint32_t>(peer)});
            if (!there || own.patience.given_up() || monotonic_s() > end) throw;
            ::usleep(nap);
        }
}

files::Folder generation_here(const OwnNode& own, Generation generation) {
    if (auto found = level::find_generation(own.folder, own.job, generation)) return *found;
    auto made = own.folder.make(generation.name());
    if (!made) fail("{} is in the way", own.folder.path_of(generation.name()));
    store::write_marker(*made, {own.job, generation.number()});
    return *made;
}

void check_room(const OwnNode& own, uint64_t bytes, const std::string& what) {
    const uint64_t room = level::room_in_memory(own.folder);
    if (room < bytes) fail("{} of memory for {} of {}", human_size(room), what, human_size(bytes));
}

// The group as some peer's parity has it.
Group group_from(PeerSource& source, const wire::PeerGroup& group) {
    std::string why = "no peer has its parity";
    for (size_t i = 0; i < group.peers.size(); ++i) try {
            const auto member = Member{static_cast<uint32_t>(i)};
            const std::string path = fmt::format("{} of {}", erasure::kParityFile, group.peers[i].host);
            std::vector<std::byte> bytes(erasure::ParityHead::kPreamble);
            source.read(member, erasure::kParityFile, 0, bytes.data(), bytes.size());
            bytes.resize(erasure::ParityHead::size(bytes, path));
            source.read(member, erasure::kParityFile, 0, bytes.data(), bytes.size());
            Group found = erasure::ParityHead::parse(bytes, path).group();
            if (found.name().bytes == group.name) return found;
            why = path + " is of another group";
        } catch (const Error& error) {
            why = error.what();
        }
    fail("{}", why);
}

// The peer whose data has this rank's image.
std::optional<size_t> owner_of(const wire::PeerGroup& group, int32_t rank) {
    for (size_t i = 0; i < group.peers.size(); ++i)
        if (ranks_of(group.peers[i].ranks).contains(rank)) return i;
    return {};
}

}  // namespace

uint64_t encode(const OwnNode& own, const wire::PeerGroup& order, const erasure::Between& between) {
    const size_t me = place_in(order, own.name);
    always(me < order.peers.size(), "a node that the group does not have");
    const tree::Ranks mine = ranks_of(order.peers[me].ranks);
    auto here = level::find_generation(own.folder, own.job, order.generation);
    if (!here) fail("nothing of {} is in the memory of {}", order.generation.name(), own.name);
    const Contents contents =
        erasure::contents_of(*here, own.job, order.generation, own.name, [&](const std::string& name) {
            auto rank = level::rank_of_image(name);
            return !rank || mine.contains(static_cast<int32_t>(rank->number()));
        });
    const std::vector<std::byte> bytes = contents.to_bytes();
    here->replace_unsynced(erasure::kContentsFile,
                           {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    PeerSource source(own, order);
    std::vector<Contents> members;
    for (size_t i = 0; i < order.peers.size(); ++i)
        members.push_back(i == me ? contents : contents_from(source, own, order, i));
    always(members.size() == order.peers.size() && me < members.size(), "a group without what this node has");
    const Group group = Group::of(std::move(members), order.losses);
    check_room(own, group.parity_bytes(), "parity");
    erasure::write_parity(group, Member{static_cast<uint32_t>(me)}, source, *here, between);
    return group.parity_bytes();
}

std::vector<wire::PeerGroup> parity_in(const OwnNode& own, const std::vector<Generation>& generations) {
    std::vector<wire::PeerGroup> all;
    for (Generation generation : generations) try {
            auto here = level::find_generation(own.folder, own.job, generation);
            if (!here || !here->has(erasure::kParityFile)) continue;
            const erasure::ParityHead head = erasure::read_parity_head(*here);
            const Group& group = head.group();
            if (group.job() != own.job || group.generation() != generation ||
                group.contents(head.member()).host != own.name)
                continue;
            wire::PeerGroup said{generation, group.layout().losses(), group.name().bytes, {}};
            for (const Contents& contents : group.members()) {
                tree::Ranks ranks;
                for (const erasure::File& file : contents.files)
                    if (auto rank = level::rank_of_image(file.name))
                        ranks.add(tree::Ranks(static_cast<int32_t>(rank->number())));
                said.peers.push_back({contents.host, "", ranks.runs()});
            }
            all.push_back(std::move(said));
        } catch (const Error& error) {
            spdlog::warn("parity: {}", error.what());
        }
    return all;
}

void add_parity_flaws(const OwnNode& own, const std::vector<Generation>& generations,
                      std::vector<wire::Flaw>& flaws) {
    for (Generation generation : generations) {
        auto here = level::find_generation(own.folder, own.job, generation);
        if (!here) continue;
        const std::vector<level::Shelf> shelf = {{*here, NodePlace{own.name, Medium::memory}, true}};
        const level::ParityHere parity(shelf, own.job, generation);
        for (const level::ParityHere::Damage& damage : parity.damage())
            flaws.push_back({generation, -1, damage.why});
    }
}

void rebuild(const OwnNode& own, const wire::Repair& repair, const std::vector<wire::PeerGroup>& groups,
             const erasure::Between& between) {
    const files::Folder here = generation_here(own, repair.generation);
    tree::Ranks left = ranks_of(repair.ranks);
    for (const wire::PeerGroup& order : groups) {
        if (order.generation != repair.generation) continue;
        std::map<size_t, tree::Ranks> by_owner;
        left.each([&](int32_t rank) {
            if (auto owner = owner_of(order, rank)) by_owner[*owner].add(tree::Ranks(rank));
        });
        if (by_owner.empty()) continue;
        PeerSource source(own, order);
        const Group group = group_from(source, order);
        erasure::Rebuild rebuilding(group, source);
        for (auto& [owner, ranks] : by_owner) {
            const auto member = Member{static_cast<uint32_t>(owner)};
            const Contents& contents = group.contents(member);
            check_room(own, contents.bytes(), "images to rebuild");
            for (size_t i = 0; i < contents.files.size(); ++i) {
                const erasure::File& file = contents.files[i];
                auto rank = level::rank_of_image(file.name);
                const bool own_data = contents.host == own.name;
                if (rank ? !ranks.contains(static_cast<int32_t>(rank->number()))
                         : erasure::is_there(here, file) &&
                               (!own_data || erasure::is_intact(group, member, i, source)))
                    continue;
                rebuilding.file(member, i, here, {}, between);
            }
            left.take_away(ranks);
        }
        for (const std::string& loss : rebuilding.losses()) spdlog::info("rebuilding without {}", loss);
    }
    if (!left.empty()) fail("no parity has the images of ranks {}", left.text(60));
}

}  // namespace fermata::noded
