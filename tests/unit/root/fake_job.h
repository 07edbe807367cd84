// A job of three ranks on two nodes without any process: it answers what a checkpoint asks, or fails at a
// phase in some way.
#pragma once

#include <deque>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "../keeping/fake_nodes.h"
#include "clock/messages.h"
#include "image/image.h"
#include "root/checkpoint/checkpoint.h"

namespace fermata::root {

enum class Fault { none, refusal, error, silence, loss, end };

class FakeJob : public Job {
  public:
    FakeJob(tree::Tally& tally, keeping::Keeper*& keeper) : tally_(tally), keeper_(keeper) {}

    // ---- what is to happen
    std::string fails_at;  // "request", "targets", "converge", "freeze", "drain", "save", "commit", "resume"
    Fault fault = Fault::none;
    std::function<void()> at_fault;  // besides
    bool synchronous = false;
    std::vector<wire::BlockTimes> times[2];  // that its nodes say with the images
    uint32_t on_their_way = 0;               // rounds of drain that find something
    std::string no_renewal;                  // why its ranks cannot get new lower halves
    uint32_t worlds = 0;
    int renewals = 0;  // that the launcher has heard of

    // ---- what has happened
    std::vector<wire::Message> told;
    std::vector<std::string> phases;
    std::vector<std::string> noted;
    std::vector<nlohmann::json> of_ranks;  // events
    int commits = 0;
    template <class M>
    std::vector<M> all() const {
        std::vector<M> found;
        for (const wire::Message& one : told)
            if (auto* m = std::get_if<M>(&one)) found.push_back(*m);
        return found;
    }
    Checkpoint* checkpoint = nullptr;
    State now = {true, true, false, false, false, "", 3};

    // ---- Job
    State state() const override { return now; }
    uint32_t ranks() const override { return 3; }
    std::vector<Daemon> daemons() const override {
        tree::Ranks two(0);
        two.add(tree::Ranks(1));
        return {{1, 1, "a", two}, {2, 2, "b", tree::Ranks(2)}};
    }
    std::string who_is_missing() const override { return "of 3 ranks, rank 2 is missing"; }
    std::string who_is_in_a_starter() const override { return ""; }
    store::Manifest manifest() const override {
        store::Manifest manifest;
        manifest.job = 7;
        manifest.job_name = "test";
        manifest.command = {"./a"};
        return manifest;
    }
    std::string why_no_renewal(const launch::Renewal&) override { return no_renewal; }
    wire::Renew next_world() override {
        return wire::Renew{0, ++worlds, {"A=b"}, "mpich", "/lower", {}, {}, {}};
    }
    void start_copies(const tree::Ranks&, Generation) override {}
    bool copies_have_started() const override { return true; }
    void renewed() override { ++renewals; }

    // Makes the counts that its ranks say of their message logs; by rank.
    std::function<wire::Bytes(uint32_t)> counts;

    void tell(int, const wire::Message& message) override { told.push_back(message); }
    void tell(const wire::Message& message) override {
        told.push_back(message);
        if (auto* m = std::get_if<wire::Begin>(&message)) {
            epoch_ = m->epoch;
            if (m->anywhere) say_logs();
        }
        if (std::get_if<wire::AskLog>(&message)) say_uses();
        if (std::get_if<wire::Freeze>(&message)) freeze();
        if (std::get_if<wire::Take>(&message)) say<wire::Frozen>("freeze", 4);
        if (auto* m = std::get_if<wire::Drain>(&message)) drain(*m);
        if (auto* m = std::get_if<wire::Save>(&message)) save(*m);
        if (std::get_if<wire::Renew>(&message)) renew();
        if (std::get_if<wire::Resume>(&message)) say_resumed("resume");
        if (std::get_if<wire::Cancel>(&message)) say_resumed("cancel");
    }
    void tell_children(const wire::Message& message) override {
        const auto bytes = wire::plain(std::get<wire::Clock>(message).bytes);
        clock::Reader reader(bytes.data(), bytes.size());
        clock::Header header{};
        ASSERT_TRUE(reader.header(&header));
        if (header.kind == clock::Kind::intent && !fails("targets"))
            for (int child : {1, 2})
                from_clock(child, clock::Kind::report, header.epoch,
                           {1, 0, synchronous ? clock::kSynchronousSends : 0});
        if (header.kind == clock::Kind::targets && !fails("converge"))
            for (int child : {1, 2}) from_clock(child, clock::Kind::safe, header.epoch, {0});
    }
    void serve(int) override {
        if (keeper_)
            while (!rooms.empty()) keeper_->heard(take(rooms));
        if (answers_.empty()) usleep(1000);
        while (!answers_.empty()) {
            auto [child, message] = take(answers_);
            if (auto* m = std::get_if<wire::Clock>(&message))
                checkpoint->clock_from(child, *m, "a");
            else
                EXPECT_TRUE(tally_.take(child, message));
        }
        checkpoint->pump_clock();
    }
    void watch() override {}
    void note(journal::Kind kind, nlohmann::json fields) override {
        if (kind == journal::Kind::ranks)
            of_ranks.push_back(std::move(fields));
        else
            noted.push_back(fields["phase"]);
    }
    void entered(int, const std::string& phase) override {
        phases.push_back(phase);
        if (phase == "request" && fails("request")) now.running = fault != Fault::silence;
    }
    void committed(uint32_t) override { ++commits; }
    bool ask_who_waits() override { return false; }
    std::optional<std::string> who_waits(bool) override { return {}; }
    std::string diagnose() override { return "rank 0 waits"; }

    std::deque<wire::Message> rooms;  // answers to the keeper

  private:
    template <class T>
    static T take(std::deque<T>& queue) {
        T first = std::move(queue.front());
        queue.pop_front();
        return first;
    }
    // Does what is to happen at this phase. True: the ranks say nothing else.
    bool fails(const std::string& phase) {
        if (phase != fails_at || failed_) return false;
        failed_ = true;
        if (at_fault) at_fault();
        if (fault == Fault::refusal) answers_.push_back({1, wire::Refuse{epoch_, "rank 0: it cannot"}});
        if (fault == Fault::loss) {
            now.lost = true;
            now.why_over = "rank 2 (pid 5 on b) is gone";
            now.here = 2;
        }
        if (fault == Fault::end) {
            now.ended = true;
            now.why_over = "the job has ended";
        }
        return fault != Fault::none;
    }
    void say_logs() {
        if (fails("freeze")) return;
        answers_.push_back({1, wire::LogsSaid{epoch_, {{0, 2}}, {counts(0), counts(1)}}});
        answers_.push_back({2, wire::LogsSaid{epoch_, {{2, 1}}, {counts(2)}}});
    }
    // As many bytes as its number.
    void say_uses() {
        if (fails("uses")) return;
        answers_.push_back({1, wire::LogsSaid{epoch_, {{0, 2}}, {wire::Bytes(0), wire::Bytes(1)}}});
        answers_.push_back({2, wire::LogsSaid{epoch_, {{2, 1}}, {wire::Bytes(2)}}});
    }
    void freeze() {
        if (synchronous)
            say<wire::Closed>("close");
        else
            say<wire::Frozen>("freeze", 4);
    }
    template <class M, class... More>
    void say(const std::string& phase, More... more) {
        if (fails(phase)) return;
        answers_.push_back({1, M{epoch_, static_cast<uint64_t>(more)..., 2}});
        answers_.push_back({2, M{epoch_, static_cast<uint64_t>(more)..., 1}});
    }
    void say_resumed(const std::string& phase) {
        if (fails(phase)) return;
        answers_.push_back({1, wire::Resumed{epoch_, 2}});
        if (!now.lost) answers_.push_back({2, wire::Resumed{epoch_, 1}});
    }
    void drain(const wire::Drain& order) {
        if (fails("drain")) return;
        const uint64_t received = order.round > on_their_way ? 4 : 3;
        answers_.push_back({1, wire::Drained{epoch_, order.round, 3, received, 0, 2}});
        answers_.push_back({2, wire::Drained{epoch_, order.round, 1, 0, 0, 1}});
    }
    void save(const wire::Save& order) {
        if (fails_at == "save" && fault == Fault::error) {
            answers_.push_back({1, wire::Images{epoch_, {}, {}, 0, {}, "rank 1: no space left on device"}});
            return;
        }
        if (fails("save")) return;
        if (!order.directory.empty())
            for (uint32_t rank : {0u, 1u, 2u})
                std::ofstream(order.directory + "/" + image::image_name(Rank(rank))) << "image";
        if (fails_at == "commit" && fault == Fault::error)
            std::filesystem::remove(order.directory + "/" + image::image_name(Rank(1)));
        answers_.push_back({1, wire::Images{epoch_, {{0, 2}}, {{5, {}}, {5, {}}}, 10, {}, "", times[0]}});
        answers_.push_back({2, wire::Images{epoch_, {{2, 1}}, {{5, {}}}, 10, {}, "", times[1]}});
    }
    void renew() {
        if (fails_at == "renew" && fault == Fault::error)
            answers_.push_back({1, wire::Images{epoch_, {}, {}, 0, {}, "rank 1: its second half has ended"}});
        else if (!fails("renew"))
            for (wire::Run ranks : {wire::Run{0, 2}, wire::Run{2, 1}})
                answers_.push_back(
                    {ranks.first == 0 ? 1 : 2,
                     wire::Images{epoch_,
                                  {ranks},
                                  std::vector<wire::ImageRecord>(static_cast<size_t>(ranks.count)),
                                  0,
                                  {},
                                  ""}});
    }
    void from_clock(int child, clock::Kind kind, uint32_t epoch, std::initializer_list<uint32_t> words) {
        std::vector<uint8_t> bytes(64);
        clock::Writer writer(bytes.data(), bytes.size());
        writer.header(kind, epoch);
        for (uint32_t word : words) writer.u32(word);
        bytes.resize(writer.size());
        answers_.push_back({child, wire::Clock{wire::packed(bytes)}});
    }

    tree::Tally& tally_;
    keeping::Keeper*& keeper_;
    uint32_t epoch_ = 0;
    bool failed_ = false;
    std::deque<std::pair<int, wire::Message>> answers_;
};

}  // namespace fermata::root
