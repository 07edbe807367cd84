// The root as a checkpoint sees it (checkpoint/job.h).
#include <nlohmann/json.hpp>
#include <utility>

#include "base/version.h"
#include "root/root.h"

namespace fermata::root {

class Root::Door : public Job {
  public:
    explicit Door(Root& root) : root_(root) {}

    State state() const override {
        State now;
        now.running = root_.running_;
        now.whole = root_.tree_.whole();
        now.finalized = root_.finalize_released_;
        now.ended = root_.launcher_end_ || root_.fatal_;
        now.lost = root_.losses_.any();
        if (root_.fatal_)
            now.why_over = root_.fatal_->line.substr(root_.fatal_->line.starts_with("error: ") ? 7 : 0);
        else if (root_.launcher_end_ || root_.stopped_)
            now.why_over = "the job has ended";
        else if (root_.losses_.any())
            now.why_over = root_.losses_.why();
        now.replaced = root_.waits_for_recovery();
        now.here = root_.start_.roster().here();
        return now;
    }
    uint32_t ranks() const override { return root_.start_.ranks(); }
    std::vector<Daemon> daemons() const override {
        std::vector<Daemon> all;
        const auto& places = root_.start_.roster().places();
        for (auto& [id, node] : root_.tree_.nodes()) {
            if (node.ranks == 0) continue;
            auto place = places.find(id);
            all.push_back({id, root_.tree_.child_above(id), node.host,
                           place == places.end() ? tree::Ranks() : place->second.ranks});
        }
        return all;
    }
    std::string who_is_missing() const override { return root_.start_.who_is_missing(); }
    std::string who_is_in_a_starter() const override {
        return root_.start_.some_in_starters() ? root_.start_.who_is_in_a_starter() : "";
    }
    store::Manifest manifest() const override {
        const Settings& settings = root_.settings_;
        store::Manifest m;
        m.job = settings.job_number;
        m.job_name = settings.job;
        m.fermata = kVersion;
        m.mpi = root_.start_.mpi();
        m.cpu = settings.cpu;
        m.command = settings.command;
        m.starter = root_.start_.waiting_starter();
        m.segments = settings.segments;
        if (settings.key) m.key_id = settings.key->id();
        return m;
    }

    std::string why_no_renewal(const launch::Renewal& wanted) override {
        if (!root_.launcher_->renews())
            return "only ranks that `fermata run --launcher own` has started get new libraries";
        if (root_.own_state_.used())
            return "the program saves its own state (libfermata), and would lose count of what it has saved";
        root_.launcher_->plan_renewal(wanted);
        return "";
    }
    wire::Renew next_world() override { return root_.launcher_->renew(++root_.worlds_); }
    void renewed() override { root_.launcher_->renewed(); }

    void start_copies(const tree::Ranks& of, Generation images) override { root_.start_copies(of, images); }
    // Whoever is more urgent does not wait for them: they are made again.
    bool copies_have_started() const override {
        const auto& copies = root_.copies_;
        return copies.coming.empty() || copies.waits || copies.takeovers.any() || !root_.requests_.empty();
    }

    void tell(const wire::Message& message) override { root_.tree_.broadcast(message); }
    void tell(int daemon, const wire::Message& message) override { root_.tree_.send(daemon, message); }
    void tell_children(const wire::Message& message) override { root_.tree_.to_children(message); }

    void serve(int milliseconds) override { root_.serve(milliseconds); }
    void watch() override {
        root_.watch_start();
        root_.watch_losses();
    }

    void note(journal::Kind kind, nlohmann::json fields) override { root_.note(kind, std::move(fields)); }
    void entered(int client, const std::string& phase) override {
        root_.control_.say(client, fmt::format("{{\"phase\":\"{}\"}}", phase));
    }
    void committed(uint32_t epoch) override { root_.own_state_.whole_committed(epoch); }

    bool ask_who_waits() override {
        if (root_.inquiry_.going_on() || !root_.settings_.journal) return false;
        root_.start_query();
        return true;
    }
    std::optional<std::string> who_waits(bool now) override {
        if (!now && !root_.query_done()) return {};
        std::string text = root_.inquiry_.text();
        if (root_.status_clients_.empty()) root_.inquiry_.end();
        return text;
    }
    std::string diagnose() override { return root_.diagnose(); }

  private:
    Root& root_;
};

std::unique_ptr<Job> Root::door() { return std::make_unique<Door>(*this); }

}  // namespace fermata::root
