// A Seat is one rank of the job: its copies, the ring between them, its link from the root, its output.
#pragma once

#include "job.h"

namespace fermata::replay::test {

class Job::Seat {
  public:
    Seat(Job& job, Rank rank, const Options& options, bool replicated)
        : job(job),
          out(options.rules),
          kept(options.rules),
          doors{SeatDoor(*this, false), SeatDoor(*this, true)} {
        leader = std::make_unique<Copy>(rank, job.program_, options);
        if (!replicated) return;
        follower = leader->clone();
        follower->machine.follow();
        leader->machine.copy(replay::Copy::follows);
    }

    // The leader's process, the child that may take its place, the process of the other copy.
    std::unique_ptr<Copy> leader, child, follower;
    Job& job;
    std::deque<Entry> ring, flight;          // what the copy has not taken; on its way to the copy's node
    uint64_t arrived = 0, acknowledged = 0;  // records
    std::deque<Link> link;
    bool frozen = false, ready = false;
    Epoch frozen_at{};
    OutputEnd out, kept;
    std::string text;  // at the root

    bool dead() const { return !leader; }
    std::vector<Copy*> copies() {
        std::vector<Copy*> all;
        for (Copy* one : {leader.get(), child.get(), follower.get()})
            if (one) all.push_back(one);
        return all;
    }
    void stable(uint64_t count) {
        if (leader) leader->machine.became_stable(static_cast<Position>(count));
        if (child) child->machine.became_stable(static_cast<Position>(count));
    }
    void lose_follower() {
        follower.reset();
        ring.clear();
        flight.clear();
        if (leader) leader->machine.copy(replay::Copy::none);
        if (child) child->machine.copy(replay::Copy::none);
    }
    Door& door(bool follows) { return doors[follows]; }

  private:
    class SeatDoor : public Door {
      public:
        SeatDoor(Seat& seat, bool follows) : seat_(seat), follows_(follows) {}
        bool room_for_record() override {
            return !seat_.follower || seat_.ring.size() + seat_.flight.size() < seat_.job.plan_.ring;
        }
        void commit(Entry entry) override {
            if (!seat_.follower) return;
            if (seat_.job.plan_.level_node) return seat_.flight.push_back(std::move(entry));
            seat_.ring.push_back(std::move(entry));
            seat_.acknowledged = ++seat_.arrived;
            seat_.stable(seat_.arrived);
        }
        const Entry* next_record() override { return seat_.ring.empty() ? nullptr : &seat_.ring.front(); }
        void pop_record() override { seat_.ring.pop_front(); }
        void print(Position at, const std::string& line) override {
            (follows_ ? seat_.kept : seat_.out)
                .write(at, reinterpret_cast<const uint8_t*>(line.data()), line.size(), !follows_);
        }
        void arrive() override { seat_.job.finish_.arrived(seat_.leader->machine.me()); }
        size_t pick(size_t below) override { return seat_.job.pick(below); }

      private:
        Seat& seat_;
        bool follows_;
    };
    SeatDoor doors[2];
};

}  // namespace fermata::replay::test
