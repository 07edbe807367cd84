// Layout says which member of a group holds what: parity that rotates over all members.
//
// The data of each of G members is cut into G-M chunks. Stripe s has its M chunks of parity on the members
// s .. s+M-1 and one chunk of data of each of the others, all modulo G. So any G above M will do; each member
// has a part in each stripe, keeps M chunks of parity, and whatever M members are lost, each stripe has lost
// M of its G chunks. No I/O and no arithmetic of fields.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/invariant.h"

namespace fermata::erasure {

// Numbers that are not to be taken for each other.
enum class Member : uint32_t {};
enum class Stripe : uint32_t {};
// Place of a chunk in its stripe: data first, then parity.
enum class Position : uint32_t {};

constexpr uint32_t number(Member member) { return static_cast<uint32_t>(member); }
constexpr uint32_t number(Stripe stripe) { return static_cast<uint32_t>(stripe); }
constexpr uint32_t number(Position position) { return static_cast<uint32_t>(position); }

class Layout {
  public:
    static constexpr uint32_t kMostMembers = 255;

    // Gives a layout only when the group can bear the losses and has something left then.
    static std::optional<Layout> of(uint32_t members, uint32_t losses) {
        if (losses == 0 || members <= losses || members > kMostMembers) return {};
        return Layout(members, losses);
    }

    uint32_t members() const { return members_; }
    uint32_t losses() const { return losses_; }
    // Chunks of data in a stripe, and of each member.
    uint32_t data() const { return members_ - losses_; }
    uint32_t stripes() const { return members_; }

    Position position(Stripe stripe, Member member) const {
        check(number(stripe));
        check(number(member));
        return Position{(number(member) + 2 * members_ - number(stripe) - losses_) % members_};
    }
    Member member_at(Stripe stripe, Position position) const {
        check(number(stripe));
        check(number(position));
        return Member{(number(stripe) + losses_ + number(position)) % members_};
    }
    bool is_data(Position position) const { return number(position) < data(); }
    // The row of a chunk of parity.
    uint32_t row(Position position) const {
        always(!is_data(position), "a row of parity for a chunk of data");
        return number(position) - data();
    }
    // Which of the member's chunks is in this stripe: of its data, or of its parity (which is the row).
    uint32_t chunk(Stripe stripe, Member member) const {
        const Position at = position(stripe, member);
        return is_data(at) ? (number(stripe) + 2 * members_ - number(member) - 1) % members_ : row(at);
    }
    // The other way round.
    Stripe stripe_of_data(Member member, uint32_t chunk) const {
        always(chunk < data(), "a chunk of data that no member has");
        check(number(member));
        return Stripe{(number(member) + 1 + chunk) % members_};
    }
    Stripe stripe_of_parity(Member member, uint32_t row) const {
        always(row < losses_, "a row of parity that no member has");
        check(number(member));
        return Stripe{(number(member) + members_ - row) % members_};
    }

    // True if each stripe has enough without the data or parity of these members. Both by member.
    bool bears(const std::vector<bool>& data_lost, const std::vector<bool>& parity_lost) const;

    bool operator==(const Layout&) const = default;

  private:
    Layout(uint32_t members, uint32_t losses) : members_(members), losses_(losses) {}
    void check(uint32_t number) const { always(number < members_, "a member that the group does not have"); }
    uint32_t members_, losses_;
};

}  // namespace fermata::erasure
