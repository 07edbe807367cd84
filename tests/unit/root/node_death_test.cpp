// The root of a job whose node daemons are not there: a rank with a copy on another node dies, or its node.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "fake_settings.h"
#include "root/root.h"
#include "tree/local_socket.h"
#include "tree/root_address.h"
#include "wire/auth.h"
#include "wire/frame.h"

namespace fermata::root {
namespace {

using Words = std::vector<std::string>;

// As own is: the ranks that are left go on. What it hears is noted.
class Launcher : public launch::Launcher {
  public:
    void start() override {}
    std::optional<int> ended() override { return end_; }
    void ask_to_end() override { end_ = 137; }
    void kill() override { end_ = 137; }
    void hand_on(int, bool) override {}
    bool ends_when_a_rank_dies() const override { return false; }
    void rank_moved(Rank rank, int to) override { note(fmt::format("rank {} to {}", rank.number(), to)); }
    void lost(int daemon) override { note(fmt::format("lost {}", daemon)); }
    bool heard(const wire::Message& message) override {
        if (auto* ended = std::get_if<wire::RankEnded>(&message)) {
            note(fmt::format("rank {} ended on {}", ended->rank, ended->daemon));
            end_ = 137;
            return true;
        }
        return std::holds_alternative<wire::Output>(message);
    }
    Words noted() {
        std::lock_guard held(lock_);
        return noted_;
    }

  private:
    void note(std::string what) {
        std::lock_guard held(lock_);
        noted_.push_back(std::move(what));
    }
    std::mutex lock_;
    Words noted_;
    std::atomic<std::optional<int>> end_{};
};

// A daemon as the root sees it: it answers calls of the roll, and has what it is told.
class Daemon {
  public:
    Daemon(const std::string& root, const wire::Key& key, std::string host)
        : host_(std::move(host)), channel_(tree::connect_to_root(root, key, 20000)) {
        channel_.send(wire::NodeHello{host_, 1, host_});
        serve(20000, [this] { return rolls_ > 0; });
    }
    void say(const wire::Message& message) {
        channel_.send(message);
        channel_.flush(1000);
    }
    void join(int32_t rank, int32_t pid) {
        wire::Group group;
        group.node = number;
        group.host = host_;
        group.size = 3;
        group.mpi = "mpich";
        group.ranks = {{rank, 1}};
        group.pids = {pid};
        groups_.push_back(group);
        say(wire::Joined{{group}});
    }
    template <class M>
    std::optional<M> wait_for(int64_t ms = 20000) {
        std::optional<M> found;
        serve(ms, [&] {
            for (auto at = heard_.begin(); at != heard_.end(); ++at)
                if (auto* m = std::get_if<M>(&*at)) {
                    found = *m;
                    heard_.erase(at);
                    return true;
                }
            return false;
        });
        return found;
    }
    int number = -1;
    void turn() {
        serve(5, [] { return false; });
    }

  private:
    template <class Done>
    void serve(int64_t ms, Done done) {
        for (const int64_t end = tree::now_ms() + ms; !done() && tree::now_ms() < end;) {
            pollfd fd{channel_.fd(), POLLIN, 0};
            ::poll(&fd, 1, 5);
            channel_.serve(fd.revents);
            channel_.send(wire::Beat{});
            while (auto message = channel_.receive()) take(std::move(*message));
            if (channel_.closed()) return;
        }
    }
    void take(wire::Message message) {
        if (auto* order = std::get_if<wire::Order>(&message)) {
            auto inner = wire::unwrapped(order->frame);
            if (!inner) return;
            if (!makes_copies(*inner)) heard_.push_back(std::move(*inner));
        } else if (auto* start = std::get_if<wire::StartCopy>(&message)) {
            heard_.push_back(*start);
            if (start->rank != late_) channel_.send(wire::CopyMade{start->rank, 20 + start->rank, host_});
        } else if (auto* parent = std::get_if<wire::Parent>(&message)) {
            number = parent->node;
        } else if (auto* roll = std::get_if<wire::Roll>(&message)) {
            ++rolls_;
            channel_.send(wire::Here{roll->number, {number}, groups_});
        } else {
            heard_.push_back(std::move(message));
        }
    }
    // What ranks and their daemon answer while copies are made on other nodes; rank 1 gets none.
    bool makes_copies(const wire::Message& order) {
        std::vector<wire::Run> ranks;
        for (const wire::Group& group : groups_) ranks.push_back(group.ranks.front());
        const auto all = static_cast<uint32_t>(ranks.size());
        if (auto* room = std::get_if<wire::MakeRoom>(&order)) {
            channel_.send(wire::Room{room->epoch, host_, "", ""});
        } else if (auto* begin = std::get_if<wire::Begin>(&order); begin && begin->epoch > 2 && late_ >= 0) {
            channel_.send(wire::Refuse{begin->epoch, "of a test"});  // there are no images to commit
        } else if (begin != nullptr) {
            channel_.send(wire::LogsSaid{begin->epoch, ranks, std::vector<wire::Bytes>(all)});
        } else if (auto* ask = std::get_if<wire::AskLog>(&order)) {
            channel_.send(wire::LogsSaid{ask->epoch, ranks, std::vector<wire::Bytes>(all)});
        } else if (auto* save = std::get_if<wire::Save>(&order)) {
            for (const wire::Run& rank : ranks)
                if (rank.first == 1)
                    channel_.send(wire::NoCopy{1, host_, "of a test"});
                else
                    channel_.send(wire::Cloned{rank.first, host_, "", "", rank.first == 2 ? 4u : 0u, 0});
            channel_.send(wire::Captured{save->epoch, all});
            channel_.send(wire::Images{save->epoch, ranks, std::vector<wire::ImageRecord>(all), 0, {}, ""});
        } else if (auto* resume = std::get_if<wire::Resume>(&order)) {
            channel_.send(wire::Resumed{resume->epoch, all});
        } else {
            return false;
        }
        return true;
    }

  public:
    int32_t late_ = -1;  // this rank's copy does not come

  private:
    std::string host_;
    tree::Channel channel_;
    std::vector<wire::Group> groups_;
    std::vector<wire::Message> heard_;
    int rolls_ = 0;
};

class NodeDeath : public ::testing::Test {
  protected:
    void SetUp() override {
        settings = fake_settings(&directory);
        settings.expected_ranks = 3;
        settings.message_log = true;
        settings.replicas = "all";
    }
    void TearDown() override {
        if (life.joinable()) {  // a check has failed
            ::kill(::getpid(), SIGTERM);
            finish();
        }
        std::filesystem::remove_all(directory);
    }

    // Ranks 0 and 1 on a, 2 on b, and the copies the other way round.
    void begin() {
        root = std::make_unique<Root>(settings, key);
        root->listen_at(tree::listen_local(directory, "control"));
        life = std::thread([this] { code = root->run(launcher); });
        a.emplace(root->address(), key, "a");
        b.emplace(root->address(), key, "b");
        a->join(0, 10);
        a->join(1, 11);
        b->say(wire::Output{1, 2, false, "abcd"});  // before its copy is made
        a->late_ = late;
        b->join(2, 12);
        const std::string had = fmt::format("\"had\":{}", late < 0 ? 2 : 1);
        for (int tries = 0; state().find(had) == std::string::npos; ++tries)
            ASSERT_LT(tries, 1000) << state();
        b->say(wire::Output{1, 2, false, "efghij"});
        b->say(wire::Output{1, 2, true, "klm"});
    }
    void finish() {
        for (auto* one : {&a, &b})
            if (*one) (*one)->wait_for<wire::Kill>();
        noted = launcher.noted();
        a.reset();
        b.reset();
        life.join();
        why = root->why_it_ended();
    }
    // Its answer to `fermata status`.
    std::string state() {
        ::usleep(10'000);
        for (auto* one : {&a, &b})
            if (*one) (*one)->turn();
        ControlRequest request;
        request.verb = "status";
        Fd socket = tree::connect_local(directory, "control");
        std::string line = to_json(request) + "\n", answer;
        ::send(socket.get(), line.data(), line.size(), 0);
        char buffer[4096];
        for (ssize_t n; (n = ::recv(socket.get(), buffer, sizeof buffer, 0)) > 0;)
            answer.append(buffer, static_cast<size_t>(n));
        return answer;
    }

    int32_t late = -1;
    std::string directory, why;
    Settings settings;
    const wire::Key key = wire::random_key();
    Launcher launcher;
    std::unique_ptr<Root> root;
    std::thread life;
    std::optional<Daemon> a, b;
    int code = -1;
    Words noted;  // by the launcher, when all was over
};

// As far as the renewal, which this launcher does not know.
TEST_F(NodeDeath, ItsRanksGoOnWhereTheirCopiesAre) {
    begin();
    b.reset();
    const auto place = a->wait_for<wire::TakePlace>();
    ASSERT_TRUE(place);
    EXPECT_EQ(place->rank, 2);
    EXPECT_EQ(place->output, 6u) << "what has come since the copy was made";
    EXPECT_EQ(place->error, 3u);
    const auto gone = a->wait_for<wire::CopyGone>();
    ASSERT_TRUE(gone);
    EXPECT_EQ(gone->rank, 0);
    EXPECT_EQ(launcher.noted(), (Words{"rank 2 to 0", "lost 1"}));
    a->join(2, 22);
    a->say(wire::Promoted{2, 22, "a", place->how});
    finish();
    EXPECT_NE(why.find("a rank's copy could not take its place"), std::string::npos) << why;
    EXPECT_EQ(root->lost_nodes().back(), "b");
}

TEST_F(NodeDeath, ARankWithoutACopyElsewhereEndsTheJob) {
    begin();
    const int lost = a->number;
    a.reset();  // rank 0 has a copy there, rank 1 none
    EXPECT_FALSE(b->wait_for<wire::TakePlace>(300));
    finish();
    EXPECT_NE(code, 0);
    EXPECT_EQ(noted, Words{fmt::format("lost {}", lost)});
}

TEST_F(NodeDeath, ARankDiesAndItsNodeLives) {
    begin();
    b->say(wire::Gone{1, {{2, 1}}, true, 12, "b", -1});
    b->say(wire::LeaderDied{2, 12, "b", "was killed by signal 9", SIGKILL});
    const auto place = a->wait_for<wire::TakePlace>();
    ASSERT_TRUE(place);
    EXPECT_EQ(place->how, "was killed by signal 9");
    EXPECT_EQ(launcher.noted(), Words{"rank 2 to 0"});
    // Its copy, too.
    a->say(wire::CopyEnded{2, 22, "a", "was killed by signal 9", ""});
    finish();
    EXPECT_EQ(noted, (Words{"rank 2 to 0", "rank 2 ended on 0"}));
    EXPECT_EQ(code, 137);
}

// The launcher waits for the rank on the node of its copy, which has ended as well.
TEST_F(NodeDeath, ACopyThatIsNotThereAnyMoreTakesNoPlace) {
    begin();
    b->say(wire::Gone{1, {{2, 1}}, true, 12, "b", -1});
    b->say(wire::LeaderDied{2, 12, "b", "was killed by signal 9", SIGKILL});
    ASSERT_TRUE(a->wait_for<wire::TakePlace>());
    a->say(wire::Gone{a->number, {{2, 1}}, true, 0, "a", -1});  // true: the job is ending
    finish();
    EXPECT_EQ(noted, (Words{"rank 2 to 0", "rank 2 ended on 0"}));
    EXPECT_EQ(code, 137);
}

// Somebody has asked for something meanwhile: its rank writes for nobody, and the copy may miss what others
// know.
TEST_F(NodeDeath, ACopyThatComesTooLateIsNone) {
    late = 2;
    begin();
    ASSERT_TRUE(a->wait_for<wire::StartCopy>());
    ControlRequest request;
    request.verb = "checkpoint";
    Fd socket = tree::connect_local(directory, "control");
    const std::string line = to_json(request) + "\n";
    ::send(socket.get(), line.data(), line.size(), 0);
    for (int turns = 0; turns < 2000 && !b->wait_for<wire::CopyGone>(5); ++turns) a->turn();
    a->say(wire::CopyMade{2, 22, "a"});
    std::optional<wire::EndCopies> ended;
    for (int turns = 0; turns < 2000 && !ended; ++turns) {
        b->turn();
        ended = a->wait_for<wire::EndCopies>(5);
    }
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->ranks, (std::vector<wire::Run>{{2, 1}}));
    // (Not the beginning of the pid of the job itself.)
    for (const char* end : {",", "}"})
        EXPECT_EQ(state().find(std::string("\"pid\":22") + end), std::string::npos);
    b->say(wire::Gone{1, {{2, 1}}, true, 12, "b", -1});
    b->say(wire::LeaderDied{2, 12, "b", "was killed by signal 9", SIGKILL});
    finish();
}

TEST_F(NodeDeath, ARankDiesBehindItsCopy) {
    begin();
    a->say(wire::CopyEnded{2, 22, "a", "was killed by signal 9", ""});
    ASSERT_TRUE(b->wait_for<wire::CopyGone>());
    b->say(wire::Gone{1, {{2, 1}}, true, 12, "b", -1});
    b->say(wire::LeaderDied{2, 12, "b", "was killed by signal 9", SIGKILL});
    finish();
    EXPECT_EQ(noted, Words{"rank 2 ended on 1"});
}

// Who is only not heard may live, until it must know that it is cut off.
TEST_F(NodeDeath, ASilentNodeIsWaitedFor) {
    ::setenv("FERMATA_TREE_SILENT", "600", 1);
    begin();
    ::unsetenv("FERMATA_TREE_SILENT");
    for (int tries = 0; launcher.noted().empty() && tries < 1000; ++tries) a->wait_for<wire::TakePlace>(10);
    const int64_t lost = tree::now_ms();
    ASSERT_TRUE(a->wait_for<wire::TakePlace>());
    EXPECT_GT(tree::now_ms() - lost, 600 + 2 * 100 + 1000 - 50);
    a->join(2, 22);
    a->say(wire::Promoted{2, 22, "a", "was lost"});
    finish();
}

}  // namespace
}  // namespace fermata::root
